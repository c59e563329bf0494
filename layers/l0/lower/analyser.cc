#include "layers/l0/lower/analyser.h"

#include <algorithm>
#include <numeric>

namespace l3c::l0::lower {

using tensor::NumElements;
using tensor::Op;
using tensor::Shape;

std::optional<Candidate> Analyser::Analyse(KernelKind kind, std::vector<ValueId> roots,
                                           ValueId anchor, std::vector<SideUpdate> sides) {
  partners_.clear();
  sides_ = std::move(sides);
  return Walked(kind, std::move(roots), anchor);
}

std::optional<Candidate> Analyser::AnalyseSums(const WalkPart& root,
                                               std::vector<const WalkPart*> partners) {
  sides_.clear();
  partners_ = std::move(partners);
  partners_.insert(partners_.begin(), &root);
  return Walked(KernelKind::kSums, {root.value}, -1);
}

std::optional<Candidate> Analyser::Walked(KernelKind kind, std::vector<ValueId> roots,
                                          ValueId anchor) {
  splits_.clear();
  own_first_ = false;
  for (int attempt = 0; attempt < kMaxSplits; ++attempt) {
    last_attempt_ = attempt + 1 == kMaxSplits;
    restart_ = false;
    Start(kind, roots, anchor);
    Walk();
    if (full_ && !own_first_ && !failed_) {
      own_first_ = true;
      restart_ = false;
      Start(kind, roots, anchor);
      Walk();
    }
    if (!restart_) break;
  }
  if (failed_) return std::nullopt;
  if (anchor >= 0) {
    const Entry* entry = candidate_.Find(0, anchor);
    if (!entry || entry->maps.size() != 1 ||
        !IsBijective(entry->maps[0], table_.values[anchor].shape, candidate_.extents)) {
      return std::nullopt;
    }
  }
  CountPoints();
  return std::move(candidate_);
}

void Analyser::Start(KernelKind kind, const std::vector<ValueId>& roots, ValueId anchor) {
  candidate_ = Candidate();
  candidate_.kind = kind;
  candidate_.roots = roots;
  candidate_.anchor = anchor;
  candidate_.contexts.push_back({});
  origins_.clear();
  queue_.clear();
  later_.clear();
  anchors_met_.clear();
  barred_.clear();
  failed_ = false;
  full_ = false;
  FindDependents(roots, anchor);
  if (!partners_.empty()) return StartSums();
  if (StartScatter(kind, roots.front()) || StartOwn(kind, roots)) return;
  const Shape& shape = table_.values[roots.front()].shape;
  const IndexMap map = NewAxes(-1, 0, shape);
  candidate_.root_axes = static_cast<uint32_t>(candidate_.extents.size());
  candidate_.sides = sides_;
  IndexMap column;
  if (!map.dims.empty()) column.dims = {map.dims.back()};
  columns_ = AxesOfMap(column);
  for (ValueId root : roots) Push({0, root, map});
  for (const SideUpdate& side : sides_) {
    for (ValueId root : side.roots) Push({0, root, column});
  }
}

bool Analyser::StartScatter(KernelKind kind, ValueId root) {
  const Definition& d = table_.values[root].definitions.front();
  if (kind != KernelKind::kLoop || d.op != Op::kScatterAdd) return false;
  candidate_.scatter = true;
  const IndexMap map = NewAxes(-1, 0, table_.values[d.inputs[1]].shape);
  candidate_.root_axes = static_cast<uint32_t>(candidate_.extents.size());
  Entry entry;
  entry.value = root;
  entry.maps = {map};
  entry.axes = AxesOfMap(map);
  entry.inlines = {{0, -1}};
  candidate_.index_[{0, root}] = 0;
  candidate_.entries.push_back(std::move(entry));
  IndexMap at;
  const size_t rank = table_.values[d.inputs[0]].shape.size();
  at.dims.assign(map.dims.begin(), map.dims.begin() + static_cast<long>(rank));
  Push({0, d.inputs[0], std::move(at)});
  Push({0, d.inputs[1], map});
  return true;
}

void Analyser::StartSums() {
  const auto operand = [&](const WalkPart& part) {
    if (part.kind == WalkKind::kElements) return part.value;
    return table_.values[part.value].definitions[part.definition].inputs[0];
  };
  const Shape& space = table_.values[operand(*partners_.front())].shape;
  const IndexMap map = NewAxes(-1, 0, space);
  candidate_.root_axes = static_cast<uint32_t>(candidate_.extents.size());
  for (const WalkPart* part : partners_) {
    const Definition& d = table_.values[part->value].definitions[part->definition];
    const Shape& shape = table_.values[operand(*part)].shape;
    std::optional<SplitRequest> split;
    std::optional<IndexMap> at =
        ThroughView(Op::kReshape, {}, shape, space, map, candidate_.extents, split);
    if (at) at = WithDims(*at, shape, candidate_.extents, split);
    if (split && !last_attempt_) {
      Split(*split);
      if (restart_) return;
    }
    if (!at) continue;
    if (part->kind == WalkKind::kElements) {
      Push({0, part->value, *std::move(at)});
      continue;
    }
    IndexMap kept;
    for (size_t dim = 0, bound = 0; dim < shape.size(); ++dim) {
      if (bound < d.attr.ints.size() && d.attr.ints[bound] == static_cast<int64_t>(dim)) {
        ++bound;
      } else {
        kept.dims.push_back(at->dims[dim]);
      }
    }
    if (part->kind == WalkKind::kRow) {
      Push({0, part->value, std::move(kept)});
      continue;
    }
    Entry entry;
    entry.value = part->value;
    entry.axes = AxesOfMap(kept);
    entry.maps = {std::move(kept)};
    entry.inlines = {{part->definition, -1}};
    candidate_.index_[{0, part->value}] = static_cast<uint32_t>(candidate_.entries.size());
    candidate_.entries.push_back(std::move(entry));
    candidate_.added.push_back({part->value, part->definition, *at});
    Push({0, d.inputs[0], *std::move(at)});
  }
  failed_ |= !HasAdded(partners_.front()->value);
}

bool Analyser::StartOwn(KernelKind kind, const std::vector<ValueId>& roots) {
  if (std::none_of(roots.begin(), roots.end(),
                   [&](ValueId root) { return table_.values[root].own >= 0; })) {
    return false;
  }
  if (kind != KernelKind::kLoop) {
    failed_ = true;
    return true;
  }
  const ValueId root = roots.front();
  const auto add = [&](ValueId value) -> Entry& {
    candidate_.index_[{0, value}] = static_cast<uint32_t>(candidate_.entries.size());
    Entry& entry = candidate_.entries.emplace_back();
    entry.value = value;
    return entry;
  };
  const IndexMap map = NewAxes(-1, 0, table_.values[root].shape);
  candidate_.root_axes = static_cast<uint32_t>(candidate_.extents.size());
  Entry& entry = add(root);
  entry.maps = {map};
  entry.axes = AxesOfMap(map);
  entry.inlines = {{0, -1}};
  for (ValueId operand : table_.values[root].definitions.front().inputs) {
    if (candidate_.Find(0, operand) != nullptr) continue;
    Entry& loaded = add(operand);
    loaded.maps.emplace_back().dims.resize(table_.values[operand].shape.size());
    loaded.readable = Readable(operand);
    loaded.cut = true;
  }
  return true;
}

IndexMap Analyser::NewAxes(ValueId reduction, uint32_t definition, const Shape& dims) {
  IndexMap map;
  for (uint32_t d = 0; d < dims.size(); ++d) {
    std::vector<int64_t> digits = {dims[d]};
    auto it = splits_.find({reduction, definition, d});
    if (it != splits_.end()) digits = it->second;
    Affine index;
    int64_t stride = dims[d];
    for (uint32_t i = 0; i < digits.size(); ++i) {
      const AxisId axis = static_cast<AxisId>(candidate_.extents.size());
      candidate_.extents.push_back(digits[i]);
      origins_.push_back({reduction, definition, d, i});
      stride = digits[i] == 0 ? 0 : stride / digits[i];
      if (dims[d] != 1) index = index + AxisTerm(axis, stride);
    }
    map.dims.push_back(std::move(index));
  }
  return map;
}

void Analyser::FindDependents(const std::vector<ValueId>& roots, ValueId anchor) {
  if (anchor < 0) return;
  first_dependent_ = anchor;
  ValueId last = *std::max_element(roots.begin(), roots.end());
  for (const SideUpdate& side : sides_) {
    for (ValueId root : side.roots) last = std::max(last, root);
  }
  dependent_.assign(static_cast<size_t>(std::max(last, anchor) - anchor) + 1, false);
  dependent_[0] = true;
  for (ValueId v = anchor + 1; v <= last; ++v) {
    for (const Definition& d : table_.values[v].definitions) {
      for (ValueId input : d.inputs) {
        if (IsDependent(input)) dependent_[static_cast<size_t>(v - anchor)] = true;
      }
    }
  }
}

bool Analyser::IsDependent(ValueId v) const {
  const int64_t i = int64_t{v} - first_dependent_;
  return i >= 0 && i < static_cast<int64_t>(dependent_.size()) && dependent_[i];
}

bool Analyser::IsRoot(ValueId v) const {
  const auto has = [&](const std::vector<ValueId>& roots) {
    return std::find(roots.begin(), roots.end(), v) != roots.end();
  };
  return has(candidate_.roots) ||
         std::any_of(candidate_.sides.begin(), candidate_.sides.end(),
                     [&](const SideUpdate& side) { return has(side.roots); });
}

void Analyser::Walk() {
  while (!restart_ && !failed_ && (own_first_ || !full_)) {
    std::deque<Item>& next = queue_.empty() ? later_ : queue_;
    if (next.empty()) return;
    const Item item = std::move(next.front());
    next.pop_front();
    Meet(item);
  }
}

void Analyser::Push(Item item) {
  std::deque<Item>& queue = own_first_ && item.context != 0 ? later_ : queue_;
  if (options_.needed_first && !Readable(item.value)) {
    queue.push_front(std::move(item));
  } else {
    queue.push_back(std::move(item));
  }
}

uint64_t Analyser::BoundAxes(uint32_t context) const {
  uint64_t axes = 0;
  for (AxisId a : candidate_.contexts[context].axes) axes |= uint64_t{1} << a;
  return axes;
}

void Analyser::Meet(const Item& item) {
  // A sum is there when all rows have been walked, which is too late for a kernel that needs it.
  if (HasAdded(item.value)) {
    failed_ = true;
    return;
  }
  const uint64_t axes = AxesOfMap(item.map);
  const bool hoisted = item.context != 0 && (axes & BoundAxes(item.context)) == 0;
  const auto key = std::make_pair(item.context, item.value);
  auto it = candidate_.index_.find(key);
  if (it == candidate_.index_.end()) {
    const bool cut = candidate_.entries.size() >= options_.max_entries;
    if (cut) {
      full_ = true;
      if (!own_first_) return;
      // Nothing below is computed here; what is in memory can still be loaded.
      ++pruned_;
      if (!Readable(item.value)) {
        if (item.context == 0) candidate_.unmet.push_back(item.value);
        return;
      }
    }
    it = candidate_.index_.emplace(key, static_cast<uint32_t>(candidate_.entries.size())).first;
    Entry entry;
    entry.context = item.context;
    entry.value = item.value;
    entry.readable = Readable(item.value);
    entry.cut = cut;
    candidate_.entries.push_back(std::move(entry));
  }
  const uint32_t index = it->second;
  Entry& entry = candidate_.entries[index];
  if (std::find(entry.maps.begin(), entry.maps.end(), item.map) != entry.maps.end()) return;
  const bool first = entry.maps.empty();
  entry.maps.push_back(item.map);
  entry.axes |= axes;
  // What is hoisted is computed elsewhere for all of its maps, or for none.
  if (hoisted && (first || entry.hoisted)) {
    entry.hoisted = true;
    Push({0, item.value, item.map});
    return;
  }
  if (entry.hoisted) {
    entry.hoisted = false;
    const std::vector<IndexMap> maps = entry.maps;
    for (size_t m = 0; m < maps.size(); ++m) {
      Compute({item.context, item.value, maps[m]}, index, m == 0);
      if (restart_ || failed_) return;
    }
    return;
  }
  Compute(item, index, first);
}

void Analyser::Compute(const Item& item, uint32_t index, bool first) {
  if (candidate_.entries[index].cut) return;
  const size_t definitions = table_.values[item.value].definitions.size();
  for (uint32_t d = 0; d < definitions; ++d) {
    Define(item, index, d, first);
    if (restart_ || failed_) return;
  }
}

bool Analyser::Readable(ValueId v) const {
  if (IsRoot(v)) return table_.values[v].input >= 0;  // a copy of what is given
  if (candidate_.anchor >= 0 && IsDependent(v)) return false;
  return table_.values[v].input >= 0 || stored_[v];
}

void Analyser::Define(const Item& item, uint32_t index, uint32_t d, bool first) {
  const Definition& definition = table_.values[item.value].definitions[d];
  auto inlines = [&](int32_t pass) {
    Entry& entry = candidate_.entries[index];
    if (barred_.contains({index, d})) return;
    for (const Inline& known : entry.inlines) {
      if (known.definition == d) return;
    }
    entry.inlines.push_back({d, pass});
  };
  const bool may_compute = options_.fuse || IsRoot(item.value);
  if (definition.op == Op::kInput) return;
  if (!item.map.guards.empty() && !IsView(definition.op)) {
    // Under padding the value is zero outside, which only a guarded load gives.
    Bar(index, d);
    return;
  }
  if (definition.op == Op::kConst || definition.op == Op::kIota) {
    if (definition.op == Op::kIota && item.map.flat) {
      Need(item);
    } else {
      inlines(-1);
    }
    return;
  }
  if (IsView(definition.op)) {
    const Value& operand = table_.values[definition.inputs[0]];
    std::optional<SplitRequest> split;
    auto map = ThroughView(definition.op, definition.attr, operand.shape,
                           table_.values[item.value].shape, item.map, candidate_.extents, split);
    if (map) {
      inlines(-1);
      Push({item.context, definition.inputs[0], std::move(*map)});
      return;
    }
    if (split && !last_attempt_) {
      Split(*split);
      return;
    }
    Bar(index, d);
    if (item.map.flat && !Readable(item.value)) {
      // Known by its offset alone, which is enough to load it.
      candidate_.unmet.push_back(item.value);
    }
    return;
  }
  if (!may_compute) return;
  if (item.map.flat && !IsElementwise(definition.op)) {
    Need(item);
    return;
  }
  if (IsElementwise(definition.op)) {
    if (TooWide(item.value, definition)) return;
    inlines(-1);
    for (ValueId input : definition.inputs) Push({item.context, input, item.map});
    return;
  }
  if (definition.op == Op::kRandom) {
    inlines(-1);
    Push({item.context, definition.inputs[0], IndexMap{}});
    return;
  }
  if (IsReduction(definition.op)) {
    if (first) {
      Reduce(item, d, inlines);
    } else {
      // A pass is at one point of the space only.
      std::erase_if(candidate_.entries[index].inlines,
                    [&](const Inline& i) { return i.definition == d; });
    }
    return;
  }
  if (IsContraction(definition.op) && item.context == 0) {
    if (item.value == candidate_.anchor) {
      if (first) inlines(-1);
    } else if (first &&
               IsBijective(item.map, table_.values[item.value].shape, candidate_.extents) &&
               NumElements(table_.values[item.value].shape) ==
                   NumElements(table_.values[candidate_.roots.front()].shape)) {
      anchors_met_.push_back(item.value);
    }
    return;
  }
  if (definition.op == Op::kGather) {
    inlines(-1);
    candidate_.tables.push_back(definition.inputs[0]);
    const size_t rank = table_.values[definition.inputs[1]].shape.size();
    IndexMap at;
    at.dims.assign(item.map.dims.begin(), item.map.dims.begin() + static_cast<long>(rank));
    Push({item.context, definition.inputs[1], std::move(at)});
  }
}

void Analyser::Bar(uint32_t index, uint32_t definition) {
  barred_.emplace(index, definition);
  std::erase_if(candidate_.entries[index].inlines,
                [&](const Inline& i) { return i.definition == definition; });
}

bool Analyser::TooWide(ValueId v, const Definition& definition) const {
  if (candidate_.anchor < 0) return false;
  const size_t room = tensor::SizeOf(table_.values[candidate_.anchor].dtype);
  const auto wide = [&](ValueId value) {
    const tensor::DType dtype = table_.values[value].dtype;
    return tensor::IsFloat(dtype) && tensor::SizeOf(dtype) > room;
  };
  return wide(v) || std::any_of(definition.inputs.begin(), definition.inputs.end(), wide);
}

void Analyser::Need(const Item& item) {
  std::optional<SplitRequest> split;
  WithDims(item.map, table_.values[item.value].shape, candidate_.extents, split);
  if (split && !last_attempt_) Split(*split);
}

bool Analyser::IsOfColumns(const IndexMap& map) const {
  return !candidate_.sides.empty() && columns_ != 0 && AxesOfMap(map) == columns_;
}

template <typename AddInline>
void Analyser::Reduce(const Item& item, uint32_t d, AddInline&& inlines) {
  const Definition& definition = table_.values[item.value].definitions[d];
  const bool of_columns = candidate_.anchor >= 0 && IsOfColumns(item.map);
  if (item.context != 0 || (candidate_.anchor >= 0 && !of_columns)) return;
  if (candidate_.contexts.size() > options_.max_passes) return;
  // The axes that the result depends on must be the outer ones: then it is computed once for each
  // of their points, and what is inside can use it.
  const uint64_t axes = AxesOfMap(item.map);
  bool inside = false;
  double outer_points = 1;
  for (AxisId a = 0; a < candidate_.root_axes; ++a) {
    if (candidate_.extents[a] == 1) continue;
    const bool depends = (axes >> a) & 1;
    if (depends && inside && !of_columns) return;
    if (!depends) inside = true;
    if (depends) outer_points *= static_cast<double>(candidate_.extents[a]);
  }
  const bool space_is_one_point = NumElements(table_.values[candidate_.roots.front()].shape) == 1;
  if (axes == 0 && !space_is_one_point) return;

  const Shape& operand = table_.values[definition.inputs[0]].shape;
  Shape reduced;
  for (int64_t axis : definition.attr.ints) reduced.push_back(operand[axis]);
  if (candidate_.extents.size() + 2 * reduced.size() > kMaxAxes) return;
  Context context;
  context.reduction = item.value;
  const AxisId first_axis = static_cast<AxisId>(candidate_.extents.size());
  const IndexMap inner = NewAxes(item.value, d, reduced);
  context.points = outer_points;
  for (AxisId a = first_axis; a < candidate_.extents.size(); ++a) {
    context.axes.push_back(a);
    context.points *= static_cast<double>(candidate_.extents[a]);
  }
  IndexMap map;
  size_t kept = 0;
  size_t bound = 0;
  for (size_t dim = 0; dim < operand.size(); ++dim) {
    if (bound < reduced.size() && definition.attr.ints[bound] == static_cast<int64_t>(dim)) {
      map.dims.push_back(inner.dims[bound++]);
    } else {
      map.dims.push_back(item.map.dims[kept++]);
    }
  }
  const uint32_t pass = static_cast<uint32_t>(candidate_.contexts.size());
  candidate_.contexts.push_back(std::move(context));
  inlines(static_cast<int32_t>(pass));
  Push({pass, definition.inputs[0], std::move(map)});
}

void Analyser::Split(const SplitRequest& request) {
  const Origin origin = origins_[request.axis];
  if (candidate_.extents.size() >= kMaxAxes - 1) return;
  std::vector<int64_t>& digits = splits_[{origin.reduction, origin.definition, origin.dim}];
  if (digits.empty()) digits = {candidate_.extents[request.axis]};
  const int64_t extent = digits[origin.digit];
  digits[origin.digit] = extent / request.inner;
  digits.insert(digits.begin() + origin.digit + 1, request.inner);
  restart_ = true;
}

double Analyser::Points(uint32_t context_index, uint64_t axes) const {
  double points = 1;
  double running = 1;
  auto pass_over = [&](AxisId a) {
    running *= static_cast<double>(candidate_.extents[a]);
    if ((axes >> a) & 1) points = running;
  };
  if (context_index == 0) {
    // Values of the whole kernel are computed once in every block.
    if (axes == 0) return kBlocksOfAKernel;
    // Where figures of columns are stored, those are outermost.
    if (!candidate_.sides.empty() && (axes & ~columns_) == 0) {
      for (AxisId a = 0; a < candidate_.root_axes; ++a) {
        if ((columns_ >> a) & 1) pass_over(a);
      }
      return points;
    }
    for (AxisId a = 0; a < candidate_.root_axes; ++a) pass_over(a);
    return points;
  }
  const Context& context = candidate_.contexts[context_index];
  double outer = context.points;
  for (AxisId a : context.axes) outer /= static_cast<double>(candidate_.extents[a]);
  if ((axes & BoundAxes(context_index)) == 0) return outer;
  running = outer;
  points = outer;
  for (AxisId a : context.axes) pass_over(a);
  return points;
}

void Analyser::CountPoints() {
  // Operands have smaller numbers, and the kernel's own context comes before its passes.
  std::vector<uint32_t> order(candidate_.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Entry& x = candidate_.entries[a];
    const Entry& y = candidate_.entries[b];
    return x.value != y.value ? x.value < y.value : x.context < y.context;
  });
  for (uint32_t i : order) {
    Entry& entry = candidate_.entries[i];
    const double maps = static_cast<double>(entry.maps.size());
    entry.points = Points(entry.context, entry.axes) * maps;
    entry.computed_axes = ComputedAxes(entry);
    entry.computed_points = Points(entry.context, entry.computed_axes) * maps;
  }
}

uint64_t Analyser::ComputedAxes(const Entry& entry) const {
  if (entry.hoisted) {
    // Unmet in the kernel's own context where the bound on its size came first.
    const Entry* own = candidate_.Find(0, entry.value);
    return own != nullptr ? own->computed_axes : entry.axes;
  }
  if (entry.inlines.empty()) return entry.axes;
  const Inline& way = entry.inlines.front();
  const Definition& d = table_.values[entry.value].definitions[way.definition];
  if (way.pass >= 0 || IsContraction(d.op) || d.op == Op::kIota || d.op == Op::kGather ||
      d.op == Op::kScatterAdd || d.op == Op::kRandom) {
    return entry.axes;
  }
  uint64_t axes = 0;
  for (ValueId input : d.inputs) {
    const Entry* operand = candidate_.Find(entry.context, input);
    axes |= operand ? operand->computed_axes : entry.axes;
  }
  return axes;
}

}  // namespace l3c::l0::lower
