#include "layers/l0/lower/candidates.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <tuple>

#include "layers/l0/lower/sum_groups.h"

namespace l3c::l0::lower {

using tensor::NumElements;
using tensor::Op;
using tensor::Shape;

const Entry* Candidate::Find(uint32_t context, ValueId value) const {
  auto it = index_.find({context, value});
  return it == index_.end() ? nullptr : &entries[it->second];
}

const AddedSum* Candidate::FindAdded(ValueId value) const {
  for (const AddedSum& sum : added) {
    if (sum.value == value) return &sum;
  }
  return nullptr;
}

IndexMap IdentityMap(const Shape& shape) {
  IndexMap map;
  for (size_t d = 0; d < shape.size(); ++d) {
    map.dims.push_back(shape[d] == 1 ? Affine{} : AxisTerm(static_cast<AxisId>(d)));
  }
  return map;
}

int32_t VersionBefore(const CandidateSet& set, ValueId value, uint32_t kernel) {
  const std::vector<uint32_t>& storers = set.storers[value];
  const auto it = std::lower_bound(storers.begin(), storers.end(), kernel);
  return static_cast<int32_t>(it - storers.begin()) - 1;
}

namespace {

// Of the space, the axes around the passes: those outside of the first one's row. 0 without passes.
uint64_t OuterAxes(const Candidate& kernel) {
  uint64_t outer = 0;
  for (const Context& context : kernel.contexts) {
    if (context.reduction < 0) continue;
    const Entry* entry = kernel.Find(0, context.reduction);
    if (entry != nullptr) outer |= entry->axes;
  }
  return outer & ((uint64_t{1} << kernel.root_axes) - 1);
}

// Whether the context's walks are of one row: those of the kernel's own are, inside of its passes.
bool WalksRow(const Candidate& kernel, uint32_t context, uint64_t outer) {
  if (context == 0) return true;
  const Entry* entry = kernel.Find(0, kernel.contexts[context].reduction);
  return entry != nullptr && entry->axes == outer;
}

}  // namespace

double RowBytes(const Candidate& kernel, const Entry& entry) {
  const uint64_t outer = OuterAxes(kernel);
  double bytes = 4;
  for (AxisId a = 0; a < kernel.extents.size(); ++a) {
    if (((entry.axes & ~outer) >> a) & 1) bytes *= static_cast<double>(kernel.extents[a]);
  }
  return bytes;
}

bool IsNear(const ValueTable& table, const Candidate& kernel, const Entry& entry) {
  constexpr double kNearBytes = 64e3;
  if (static_cast<double>(Bytes(table.values[entry.value])) <= kNearBytes) return false;
  const uint64_t outer = OuterAxes(kernel);
  if (outer == 0 || entry.hoisted || !WalksRow(kernel, entry.context, outer)) return false;
  if (RowBytes(kernel, entry) > kNearBytes) return false;
  for (uint32_t c = 0; c < kernel.contexts.size(); ++c) {
    const Entry* other = c == entry.context ? nullptr : kernel.Find(c, entry.value);
    if (other != nullptr && other->readable && !other->hoisted && WalksRow(kernel, c, outer)) {
      return true;
    }
  }
  return false;
}

// Walks from a candidate's roots to what it could compute.
class Analyser {
 public:
  Analyser(const ValueTable& table, const std::vector<bool>& stored,
           const CandidateOptions& options)
      : table_(table), stored_(stored), options_(options) {}

  // Nothing when the candidate cannot be: an anchor that is not met at one point of the space.
  std::optional<Candidate> Analyse(KernelKind kind, std::vector<ValueId> roots, ValueId anchor) {
    partners_.clear();
    return Walked(kind, std::move(roots), anchor);
  }

  // The walk over the rows that `root` is the sum of, with what can be made of them besides.
  std::optional<Candidate> AnalyseSums(const WalkPart& root,
                                       std::vector<const WalkPart*> partners) {
    partners_ = std::move(partners);
    partners_.insert(partners_.begin(), &root);
    return Walked(KernelKind::kSums, {root.value}, -1);
  }

  // Matmuls that the last analysis met at every point of the root's space exactly once.
  const std::vector<ValueId>& anchors_met() const { return anchors_met_; }
  uint64_t pruned() const { return pruned_; }

 private:
  static constexpr int kMaxSplits = 8;

  std::optional<Candidate> Walked(KernelKind kind, std::vector<ValueId> roots, ValueId anchor) {
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

  struct Origin {
    ValueId reduction = -1;   // -1: the root's shape
    uint32_t definition = 0;  // of the reduction: each has axes of its own
    uint32_t dim = 0;
    uint32_t digit = 0;
  };
  struct Item {
    uint32_t context;
    ValueId value;
    IndexMap map;
  };

  void Start(KernelKind kind, const std::vector<ValueId>& roots, ValueId anchor) {
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
    for (ValueId root : roots) Push({0, root, map});
  }

  // The space of a scatter is that of what is added: (index [k…], updates [k…, …]).
  bool StartScatter(KernelKind kind, ValueId root) {
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

  // The space is that of what is added up, the same points for all.
  void StartSums() {
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

  bool HasAdded(ValueId v) const { return candidate_.FindAdded(v) != nullptr; }

  // A kernel of the user's loads its operands and stores its value, and does nothing else.
  bool StartOwn(KernelKind kind, const std::vector<ValueId>& roots) {
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

  // One axis (or its digits) for each dimension; the map that reads them as an index.
  IndexMap NewAxes(ValueId reduction, uint32_t definition, const Shape& dims) {
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

  // What is computed from the anchor, among the values up to the roots: operands have smaller
  // numbers than what is computed from them, so no others are met.
  void FindDependents(const std::vector<ValueId>& roots, ValueId anchor) {
    if (anchor < 0) return;
    first_dependent_ = anchor;
    const ValueId last = *std::max_element(roots.begin(), roots.end());
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

  bool IsDependent(ValueId v) const {
    const int64_t i = int64_t{v} - first_dependent_;
    return i >= 0 && i < static_cast<int64_t>(dependent_.size()) && dependent_[i];
  }

  bool IsRoot(ValueId v) const {
    return std::find(candidate_.roots.begin(), candidate_.roots.end(), v) != candidate_.roots.end();
  }

  // In rings around the roots. Where the bound on a kernel's size cuts, the kernel's own context
  // comes before its passes: what a pass lacks it leaves to others, but the root needs its
  // operands.
  void Walk() {
    while (!restart_ && !failed_ && (own_first_ || !full_)) {
      std::deque<Item>& next = queue_.empty() ? later_ : queue_;
      if (next.empty()) return;
      const Item item = std::move(next.front());
      next.pop_front();
      Meet(item);
    }
  }

  void Push(Item item) {
    std::deque<Item>& queue = own_first_ && item.context != 0 ? later_ : queue_;
    if (options_.needed_first && !Readable(item.value)) {
      queue.push_front(std::move(item));
    } else {
      queue.push_back(std::move(item));
    }
  }

  uint64_t BoundAxes(uint32_t context) const {
    uint64_t axes = 0;
    for (AxisId a : candidate_.contexts[context].axes) axes |= uint64_t{1} << a;
    return axes;
  }

  void Meet(const Item& item) {
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

  void Compute(const Item& item, uint32_t index, bool first) {
    if (candidate_.entries[index].cut) return;
    const size_t definitions = table_.values[item.value].definitions.size();
    for (uint32_t d = 0; d < definitions; ++d) {
      Define(item, index, d, first);
      if (restart_ || failed_) return;
    }
  }

  bool Readable(ValueId v) const {
    if (IsRoot(v)) return table_.values[v].input >= 0;  // a copy of what is given
    if (candidate_.anchor >= 0 && IsDependent(v)) return false;
    return table_.values[v].input >= 0 || stored_[v];
  }

  void Define(const Item& item, uint32_t index, uint32_t d, bool first) {
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

  // An entry is computed for all of its maps or for none: one that the definition cannot serve is
  // enough.
  void Bar(uint32_t index, uint32_t definition) {
    barred_.emplace(index, definition);
    std::erase_if(candidate_.entries[index].inlines,
                  [&](const Inline& i) { return i.definition == definition; });
  }

  // A register tile has as many lanes as its widest value leaves room for: f64 arithmetic on the
  // side (a learning rate) would halve those of a contraction.
  bool TooWide(ValueId v, const Definition& definition) const {
    if (candidate_.anchor < 0) return false;
    const size_t room = tensor::SizeOf(table_.values[candidate_.anchor].dtype);
    const auto wide = [&](ValueId value) {
      const tensor::DType dtype = table_.values[value].dtype;
      return tensor::IsFloat(dtype) && tensor::SizeOf(dtype) > room;
    };
    return wide(v) || std::any_of(definition.inputs.begin(), definition.inputs.end(), wide);
  }

  // Has the axes cut so that the item's dimensions are known the next time.
  void Need(const Item& item) {
    std::optional<SplitRequest> split;
    WithDims(item.map, table_.values[item.value].shape, candidate_.extents, split);
    if (split && !last_attempt_) Split(*split);
  }

  template <typename AddInline>
  void Reduce(const Item& item, uint32_t d, AddInline&& inlines) {
    const Definition& definition = table_.values[item.value].definitions[d];
    if (item.context != 0 || candidate_.anchor >= 0) return;
    if (candidate_.contexts.size() > options_.max_passes) return;
    // The axes that the result depends on must be the outer ones: then it is computed once for each
    // of their points, and what is inside can use it.
    const uint64_t axes = AxesOfMap(item.map);
    bool inside = false;
    double outer_points = 1;
    for (AxisId a = 0; a < candidate_.root_axes; ++a) {
      if (candidate_.extents[a] == 1) continue;
      const bool depends = (axes >> a) & 1;
      if (depends && inside) return;
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

  void Split(const SplitRequest& request) {
    const Origin origin = origins_[request.axis];
    if (candidate_.extents.size() >= kMaxAxes - 1) return;
    std::vector<int64_t>& digits = splits_[{origin.reduction, origin.definition, origin.dim}];
    if (digits.empty()) digits = {candidate_.extents[request.axis]};
    const int64_t extent = digits[origin.digit];
    digits[origin.digit] = extent / request.inner;
    digits.insert(digits.begin() + origin.digit + 1, request.inner);
    restart_ = true;
  }

  // Of the point set of `axes` in a context, walked in order: everything inside the innermost axis
  // that matters is hoisted out.
  double Points(uint32_t context_index, uint64_t axes) const {
    double points = 1;
    double running = 1;
    auto pass_over = [&](AxisId a) {
      running *= static_cast<double>(candidate_.extents[a]);
      if ((axes >> a) & 1) points = running;
    };
    if (context_index == 0) {
      // Values of the whole kernel are computed once in every block.
      if (axes == 0) return kBlocksOfAKernel;
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

  void CountPoints() {
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

  uint64_t ComputedAxes(const Entry& entry) const {
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

  static constexpr size_t kMaxAxes = 30;
  static constexpr double kBlocksOfAKernel = 8;

  const ValueTable& table_;
  const std::vector<bool>& stored_;
  const CandidateOptions& options_;
  Candidate candidate_;
  std::map<std::tuple<ValueId, uint32_t, uint32_t>, std::vector<int64_t>> splits_;
  std::vector<Origin> origins_;  // by axis
  std::deque<Item> queue_;
  std::deque<Item> later_;  // of passes, when the kernel's own context goes first
  std::vector<ValueId> anchors_met_;
  std::vector<const WalkPart*> partners_;           // kSums: the root and what may be made with it
  std::set<std::pair<uint32_t, uint32_t>> barred_;  // (entry, definition): cannot be computed there
  ValueId first_dependent_ = 0;                     // of the anchor
  std::vector<bool> dependent_;                     // from it on
  bool restart_ = false;
  bool failed_ = false;
  bool last_attempt_ = false;
  bool own_first_ = false;
  bool full_ = false;  // the bound on a kernel's size was met
  uint64_t pruned_ = 0;
};

namespace {

bool Computes(const Candidate& candidate, ValueId root) {
  const Entry* entry = candidate.Find(0, root);
  return entry && !entry->inlines.empty();
}

class CandidateFinder {
 public:
  CandidateFinder(const Step& step, const ValueTable& table, const std::vector<bool>& stored,
                  const CandidateOptions& options)
      : step_(step),
        table_(table),
        stored_(stored),
        options_(options),
        analyser_(table, stored, options) {}

  CandidateSet Run() {
    for (ValueId v = 0; v < static_cast<ValueId>(table_.values.size()); ++v) {
      if (!stored_[v]) continue;
      AddKernels({v}, -1);
      if (rows_ <= options_.max_rows) continue;
      CandidateSet none;
      none.too_many_at = static_cast<double>(v + 1) / static_cast<double>(table_.values.size());
      return none;
    }
    if (options_.fuse) AddJoined();
    FindGroups();
    OrderGroups();
    for (uint32_t k = 0; k < set_.kernels.size(); ++k) {
      Candidate& kernel = set_.kernels[k];
      kernel.position = k;
      kernel.first_context = set_.contexts;
      set_.contexts += static_cast<uint32_t>(kernel.contexts.size());
    }
    set_.storers.resize(table_.values.size());
    for (uint32_t k = 0; k < set_.kernels.size(); ++k) {
      const Candidate& kernel = set_.kernels[k];
      if (kernel.group >= 0) continue;
      set_.storers[kernel.roots[0]].push_back(k);
      for (ValueId v : kernel.beside) set_.storers[v].push_back(k);
    }
    set_.pruned_entries = analyser_.pruned();
    FindMissing();
    return std::move(set_);
  }

 private:
  static constexpr int64_t kMostLateBytes = 1 << 16;

  // Values that no kernel can compute are too long a chain of values that are not kept, or a view
  // of one whose place is no affine function of the axes: keeping what the bound on a kernel's size
  // cut off, or what was viewed, makes two kernels of it.
  void FindMissing() {
    std::vector<bool> had(table_.values.size());
    for (const Candidate& kernel : set_.kernels) {
      if (!CanCompute(kernel)) continue;
      for (ValueId root : kernel.roots) had[root] = true;
    }
    for (const Candidate& kernel : set_.kernels) {
      for (ValueId root : kernel.roots) {
        if (!had[root]) set_.missing.insert(kernel.unmet.begin(), kernel.unmet.end());
      }
    }
  }

  // A scalar is no work beside a tensor, but whoever reads it would wait for all of the tensor:
  // every update of a step for that of the embedding, say, and what they read would live till then.
  bool CanSideStore(const Candidate& kernel, const Entry& entry) const {
    if (tensor::NumElements(table_.values[entry.value].shape) == 1 &&
        tensor::NumElements(table_.values[kernel.roots[0]].shape) > 1) {
      return false;
    }
    return options_.fuse && entry.context == 0 && stored_[entry.value] &&
           table_.values[entry.value].input < 0 && entry.value != kernel.roots[0] &&
           !entry.inlines.empty() && entry.maps.size() == 1 &&
           IsBijective(entry.maps[0], table_.values[entry.value].shape, kernel.extents);
  }

  void AddKernels(const std::vector<ValueId>& roots, int32_t group) {
    const bool update = group >= 0;
    auto loop = analyser_.Analyse(update ? KernelKind::kUpdate : KernelKind::kLoop, roots, -1);
    if (!loop) return;
    std::vector<ValueId> anchors = analyser_.anchors_met();
    if (loop->scatter) anchors.clear();
    if (!update && options_.fuse) {
      if (auto part = DescribePart(table_, *loop, roots[0])) parts_.push_back(*std::move(part));
    }
    if (!options_.fuse) {
      std::erase_if(anchors, [&](ValueId a) { return roots.size() != 1 || a != roots[0]; });
    }
    auto keep = [&](std::optional<Candidate> candidate) {
      if (!candidate) return;
      for (ValueId root : roots) {
        if (!Computes(*candidate, root) && !OnlyReads(*candidate, root)) return;
      }
      candidate->group = group;
      if (update && !MayOverwrite(*candidate, set_.groups[group])) return;
      if (!update) {
        for (const Entry& entry : candidate->entries) {
          if (CanSideStore(*candidate, entry)) candidate->beside.push_back(entry.value);
        }
      }
      rows_ += Rows(*candidate);
      set_.kernels.push_back(std::move(*candidate));
    };
    keep(std::move(loop));
    for (ValueId anchor : anchors) {
      keep(analyser_.Analyse(update ? KernelKind::kUpdateAnchor : KernelKind::kAnchor, roots,
                             anchor));
    }
  }

  // Small values that nothing but reports needs.
  std::vector<bool> FindLate() const {
    std::vector<bool> late(table_.values.size(), true);
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      if (step_.outputs[o].kind == StepOutput::Kind::kState) late[table_.outputs[o]] = false;
    }
    for (ValueId v = static_cast<ValueId>(table_.values.size()); v-- > 0;) {
      if (table_.values[v].input >= 0 || Bytes(table_.values[v]) > kMostLateBytes) late[v] = false;
      if (late[v]) continue;
      for (const Definition& d : table_.values[v].definitions) {
        for (ValueId input : d.inputs) late[input] = false;
      }
    }
    return late;
  }

  // Candidates that make several sums in one walk, each behind the kernels of its root, and at the
  // end those for what only reports need of their sums. As far as there is room: all that they
  // make can be had otherwise.
  void AddJoined() {
    const std::vector<bool> late = FindLate();
    std::map<ValueId, Candidate> joined;
    bool for_reports = false;
    const auto is_root = [&](const WalkPart& part) {
      return part.kind == WalkKind::kColumns && !late[part.value];
    };
    for (const WalkPart& sum : parts_) {
      if (!is_root(sum)) continue;
      // Of sums that go together the last has all others for partners.
      const bool last = std::none_of(parts_.begin(), parts_.end(), [&](const WalkPart& other) {
        return is_root(other) && other.value > sum.value && CanJoin(sum, other);
      });
      if (!last) continue;
      auto candidate = analyser_.AnalyseSums(sum, PartnersOf(sum, parts_, late));
      if (!candidate || !StoreBesideSums(*candidate)) continue;
      if (!Fits(*candidate)) continue;
      for (ValueId v : candidate->beside) {
        if (late[v]) candidate->late.insert(v);
      }
      for_reports |= !candidate->late.empty();
      joined.emplace(sum.value, *std::move(candidate));
    }
    if (joined.empty()) return;
    std::vector<Candidate> kernels;
    for (size_t k = 0; k < set_.kernels.size(); ++k) {
      const ValueId root = set_.kernels[k].roots[0];
      kernels.push_back(std::move(set_.kernels[k]));
      if (k + 1 < set_.kernels.size() && set_.kernels[k + 1].roots[0] == root) continue;
      if (auto it = joined.find(root); it != joined.end()) kernels.push_back(std::move(it->second));
    }
    set_.kernels = std::move(kernels);
    for (ValueId v = 0; for_reports && v < static_cast<ValueId>(late.size()); ++v) {
      if (!late[v] || !stored_[v]) continue;
      auto candidate = analyser_.Analyse(KernelKind::kLoop, {v}, -1);
      if (!candidate || candidate->scatter || table_.values[v].own >= 0) continue;
      candidate->kind = KernelKind::kLast;
      // What is large would have to be kept until then.
      for (Entry& entry : candidate->entries) {
        if (Bytes(table_.values[entry.value]) > kMostLateBytes) entry.readable = false;
      }
      if (CanCompute(*candidate) && Fits(*candidate)) set_.kernels.push_back(*std::move(candidate));
    }
  }

  bool Fits(const Candidate& candidate) {
    const uint64_t rows = Rows(candidate);
    if (rows_ + rows > options_.max_rows) return false;
    rows_ += rows;
    return true;
  }

  // The sums are made by several workers where all keep one axis beside the columns; what is stored
  // with them has to keep it too. False where there is none.
  bool StoreBesideSums(Candidate& candidate) const {
    uint64_t common = ~uint64_t{0};
    for (const AddedSum& sum : candidate.added) {
      common &= candidate.Find(0, sum.value)->axes;
    }
    std::optional<AxisId> split;
    for (AxisId a = 0; a + 1 < candidate.root_axes; ++a) {
      if (!((common >> a) & 1) || candidate.extents[a] < 2) continue;
      if (!split || candidate.extents[a] > candidate.extents[*split]) split = a;
    }
    if (!split) return false;
    for (const Entry& entry : candidate.entries) {
      if (((entry.axes >> *split) & 1) == 0) continue;
      if (CanSideStore(candidate, entry)) candidate.beside.push_back(entry.value);
    }
    return true;
  }

  // Of the e-graph: the facts about a candidate and what the rules make of them.
  static uint64_t Rows(const Candidate& candidate) {
    uint64_t rows = 2 + 4 * (1 + candidate.beside.size());  // root, beside, later; Store, Sooner
    for (const Entry& entry : candidate.entries) {
      const uint64_t ways = entry.inlines.size() + entry.readable + entry.hoisted;
      rows += 1 + 2 * ways;  // InReg; a fact and a term each
    }
    return rows;
  }

  // A kernel may also just copy a value that is given.
  bool OnlyReads(const Candidate& candidate, ValueId root) const {
    const Entry* entry = candidate.Find(0, root);
    return entry && entry->readable;
  }

  static bool Gathers(const Candidate& candidate, ValueId v) {
    return std::find(candidate.tables.begin(), candidate.tables.end(), v) != candidate.tables.end();
  }

  // In place is legal where each old value is read at the element that is written, and nowhere
  // else.
  bool MayOverwrite(const Candidate& candidate, const UpdateGroup& group) const {
    const Entry* root = candidate.Find(0, candidate.roots.front());
    for (const UpdateMember& member : group.members) {
      if (member.old_value < 0) continue;
      if (Gathers(candidate, member.old_value)) return false;
      for (const Entry& entry : candidate.entries) {
        if (entry.value != member.old_value || entry.hoisted) continue;
        if (entry.context != 0 || entry.maps.size() != 1) return false;
        if (entry.maps[0] != root->maps[0]) return false;
      }
    }
    return true;
  }

  // States whose new values are made at the same points from one another share an update.
  void FindGroups() {
    std::vector<UpdateMember> members;
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      if (step_.outputs[o].kind != StepOutput::Kind::kState) continue;
      UpdateMember member;
      member.state = step_.outputs[o].state;
      member.new_value = table_.outputs[o];
      for (size_t i = 0; i < step_.inputs.size(); ++i) {
        if (step_.inputs[i].kind == StepInput::Kind::kState &&
            step_.inputs[i].state == member.state) {
          member.old_value = table_.inputs[i];
        }
      }
      members.push_back(member);
    }
    std::vector<size_t> parent(members.size());
    std::iota(parent.begin(), parent.end(), size_t{0});
    auto find = [&](size_t i) {
      while (parent[i] != i) i = parent[i];
      return i;
    };
    if (options_.fuse) {
      for (size_t i = 0; i < members.size(); ++i) {
        auto loop = analyser_.Analyse(KernelKind::kUpdate, {members[i].new_value}, -1);
        if (!loop) continue;
        const Entry* root = loop->Find(0, members[i].new_value);
        for (size_t j = 0; j < members.size(); ++j) {
          if (i == j) continue;
          const Entry* other = loop->Find(0, members[j].new_value);
          if (other && other->maps.size() == 1 && other->maps[0] == root->maps[0] &&
              table_.values[members[j].new_value].shape ==
                  table_.values[members[i].new_value].shape) {
            parent[std::max(find(i), find(j))] = std::min(find(i), find(j));
          }
        }
      }
    }
    std::vector<int32_t> group_of(members.size(), -1);
    for (size_t i = 0; i < members.size(); ++i) {
      const size_t leader = find(i);
      if (group_of[leader] < 0) {
        group_of[leader] = static_cast<int32_t>(set_.groups.size());
        set_.groups.push_back({});
      }
      set_.groups[group_of[leader]].members.push_back(members[i]);
    }
  }

  // Whether every root can be had from what the kernel may read.
  bool CanCompute(const Candidate& kernel) const {
    std::vector<uint32_t> order(kernel.entries.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const Entry& x = kernel.entries[a];
      const Entry& y = kernel.entries[b];
      return x.value != y.value ? x.value < y.value : x.context < y.context;
    });
    std::map<std::pair<uint32_t, ValueId>, bool> known;
    const auto has = [&](uint32_t context, ValueId v) {
      auto it = known.find({context, v});
      return it != known.end() && it->second;
    };
    for (uint32_t i : order) {
      const Entry& entry = kernel.entries[i];
      bool can = entry.readable || (entry.hoisted && has(0, entry.value));
      for (const Inline& way : entry.inlines) {
        const Definition& d = table_.values[entry.value].definitions[way.definition];
        bool all = true;
        if (!IsContraction(d.op)) {
          const uint32_t context = way.pass >= 0 ? static_cast<uint32_t>(way.pass) : entry.context;
          const size_t first = d.op == Op::kGather ? 1 : 0;  // the table is in memory
          for (size_t in = first; in < d.inputs.size(); ++in) all &= has(context, d.inputs[in]);
        }
        can |= all;
      }
      known[{entry.context, entry.value}] = can;
    }
    return std::all_of(kernel.roots.begin(), kernel.roots.end(),
                       [&](ValueId root) { return has(0, root); });
  }

  // Makes the update kernels of each group and puts groups that read a state before the group that
  // overwrites it. Groups that read one another are not done in place.
  void OrderGroups() {
    const size_t n = set_.groups.size();
    const size_t ordinary = set_.kernels.size();
    std::vector<std::pair<size_t, size_t>> ranges(n);
    for (size_t g = 0; g < n; ++g) {
      std::vector<ValueId> roots;
      bool computes = true;
      for (const UpdateMember& member : set_.groups[g].members) {
        if (std::find(roots.begin(), roots.end(), member.new_value) == roots.end()) {
          roots.push_back(member.new_value);
        }
        // Moving one state into another has nothing to compute; a copy does it.
        computes &= table_.values[member.new_value].input < 0;
      }
      const size_t first = set_.kernels.size();
      if (computes && roots.size() == set_.groups[g].members.size()) {
        AddKernels(roots, static_cast<int32_t>(g));
      }
      ranges[g] = {first, set_.kernels.size()};
      set_.groups[g].in_place = set_.kernels.size() > first;
    }
    // before[a][b]: kernels of group a may read old state of group b.
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
    std::map<ValueId, std::vector<size_t>> groups_of;  // by old state
    for (size_t b = 0; b < n; ++b) {
      for (const UpdateMember& member : set_.groups[b].members) {
        if (member.old_value >= 0) groups_of[member.old_value].push_back(b);
      }
    }
    for (size_t a = 0; a < n; ++a) {
      const auto read = [&](ValueId v) {
        const auto it = groups_of.find(v);
        if (it == groups_of.end()) return;
        for (size_t b : it->second) before[a][b] = before[a][b] || a != b;
      };
      for (size_t k = ranges[a].first; k < ranges[a].second; ++k) {
        for (ValueId table : set_.kernels[k].tables) read(table);
        for (const Entry& entry : set_.kernels[k].entries) {
          if (entry.readable) read(entry.value);
        }
      }
    }
    std::vector<bool> placed(n);
    std::vector<size_t> order;
    for (size_t g = 0; g < n; ++g) placed[g] = !set_.groups[g].in_place;
    // Kernels of group a do without old state of group b, where they can.
    auto renounce = [&](size_t a, size_t b) {
      std::vector<Candidate> left;
      for (size_t k = ranges[a].first; k < ranges[a].second; ++k) {
        Candidate kernel = set_.kernels[k];
        bool gathers = false;
        for (const UpdateMember& member : set_.groups[b].members) {
          gathers |= Gathers(kernel, member.old_value);
        }
        if (gathers) continue;
        for (Entry& entry : kernel.entries) {
          for (const UpdateMember& member : set_.groups[b].members) {
            if (entry.value == member.old_value) entry.readable = false;
          }
        }
        if (CanCompute(kernel)) left.push_back(std::move(kernel));
      }
      if (left.empty()) return false;
      for (size_t k = 0; k < left.size(); ++k) {
        set_.kernels[ranges[a].first + k] = std::move(left[k]);
      }
      ranges[a].second = ranges[a].first + left.size();
      before[a][b] = false;
      return true;
    };
    while (true) {
      size_t pick = n;
      size_t first_left = n;
      for (size_t g = 0; g < n && pick == n; ++g) {
        if (placed[g]) continue;
        if (first_left == n) first_left = g;
        bool free = true;
        for (size_t other = 0; other < n; ++other) {
          if (!placed[other] && before[other][g]) free = false;
        }
        if (free) pick = g;
      }
      if (pick == n && first_left == n) break;
      if (pick == n) {
        bool freed = true;
        for (size_t other = 0; other < n && freed; ++other) {
          if (!placed[other] && before[other][first_left]) freed = renounce(other, first_left);
        }
        if (freed) continue;
        placed[first_left] = true;
        set_.groups[first_left].in_place = false;
        continue;
      }
      placed[pick] = true;
      order.push_back(pick);
    }
    std::vector<Candidate> kernels;
    for (size_t k = 0; k < ordinary; ++k) kernels.push_back(std::move(set_.kernels[k]));
    for (size_t g : order) {
      for (size_t k = ranges[g].first; k < ranges[g].second; ++k) {
        kernels.push_back(std::move(set_.kernels[k]));
      }
    }
    set_.kernels = std::move(kernels);
  }

  const Step& step_;
  const ValueTable& table_;
  const std::vector<bool>& stored_;
  const CandidateOptions& options_;
  Analyser analyser_;
  CandidateSet set_;
  std::vector<WalkPart> parts_;
  uint64_t rows_ = 0;  // of set_.kernels
};

}  // namespace

CandidateSet FindCandidates(const Step& step, const ValueTable& table,
                            const std::vector<bool>& stored, const CandidateOptions& options) {
  return CandidateFinder(step, table, stored, options).Run();
}

}  // namespace l3c::l0::lower
