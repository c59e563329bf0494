#include "layers/l0/lower/kernel_build.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

#include "layers/l0/lower/dot_forms.h"
#include "layers/l0/lower/merge_passes.h"

namespace l3c::l0::lower {

using tensor::DType;
using tensor::Op;

std::string Identifier(const std::string& name) {
  std::string id;
  for (char c : name) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    id += word ? c : '_';
  }
  if (id.empty() || (id[0] >= '0' && id[0] <= '9')) id = "v" + id;
  return id;
}

namespace {

UOp UopOf(Op op) {
  switch (op) {
    case Op::kAdd:
      return UOp::kAdd;
    case Op::kMul:
      return UOp::kMul;
    case Op::kNeg:
      return UOp::kNeg;
    case Op::kRecip:
      return UOp::kReciprocal;
    case Op::kMax:
      return UOp::kMax;
    case Op::kMod:
      return UOp::kMod;
    case Op::kExp2:
      return UOp::kExp2;
    case Op::kLog2:
      return UOp::kLog2;
    case Op::kSin:
      return UOp::kSin;
    case Op::kSqrt:
      return UOp::kSqrt;
    case Op::kCmpLt:
      return UOp::kCmpLt;
    case Op::kCmpNe:
      return UOp::kCmpNe;
    case Op::kWhere:
      return UOp::kWhere;
    case Op::kCast:
      return UOp::kCast;
    case Op::kBitcast:
      return UOp::kBitcast;
    default:
      return UOp::kCustom;  // bf16_pair; other ops have their own case
  }
}

class Builder {
 public:
  Builder(const Step& step, const ValueTable& table, const CandidateSet& candidates,
          const Selection& selection, const ChosenKernel& chosen)
      : step_(step),
        table_(table),
        kernel_(candidates.kernels[chosen.candidate]),
        selection_(selection),
        chosen_(chosen),
        extents_(kernel_.extents) {}

  BuiltKernel Build() {
    if (table_.values[kernel_.roots.front()].own >= 0) return BuildOwn();
    Kernel& out = built_.kernel;
    std::vector<std::pair<UopId, ChosenStore>> stores;
    const std::vector<Uop> sums = StartSums();
    for (const ChosenStore& store : chosen_.stores) {
      if (kernel_.scatter && store.value == kernel_.roots.front()) continue;
      if (kernel_.FindAdded(store.value) != nullptr) continue;
      const Entry& entry = *kernel_.Find(0, store.value);
      stores.emplace_back(Evaluate(0, store.value, entry.maps[0]), store);
    }
    for (const auto& [value, store] : stores) {
      const Entry& entry = *kernel_.Find(0, store.value);
      const Value& what = table_.values[store.value];
      Binding binding;
      if (store.state >= 0) {
        binding.state = store.state;
      } else {
        binding.storage = {store.value, static_cast<int32_t>(chosen_.candidate)};
      }
      Uop uop;
      uop.op = UOp::kStore;
      uop.dtype = what.dtype;
      uop.src = {value};
      uop.param = Parameter(binding, what, Access::kOut);
      uop.index = Flatten(entry.maps[0], what.shape);
      uop.span = what.span;
      out.uops.push_back(std::move(uop));
      out.origin.push_back(what.name);
    }
    out.uops.insert(out.uops.end(), sums.begin(), sums.end());
    for (const ChosenStore& store : chosen_.stores) {
      if (kernel_.scatter && store.value == kernel_.roots.front()) EmitScatter(store.value);
    }
    // Named after its root, or after the last value that it does store.
    ValueId named = chosen_.stores.back().value;
    for (const ChosenStore& store : chosen_.stores) {
      if (store.value == kernel_.roots.front()) named = store.value;
    }
    out.name = Identifier(table_.values[named].name);
    out.span = table_.values[named].span;
    NameAxes();
    return std::move(built_);
  }

 private:
  // The user's, bound to its operands and its value.
  BuiltKernel BuildOwn() {
    const ValueId root = kernel_.roots.front();
    const Value& value = table_.values[root];
    built_.own = value.own;
    built_.kernel = step_.own[static_cast<size_t>(value.own)].kernel;
    for (ValueId operand : value.definitions.front().inputs) {
      built_.bindings.push_back(BindingOf(chosen_.sources.at({0, operand}).storage));
    }
    built_.bindings.emplace_back().storage = {root, static_cast<int32_t>(chosen_.candidate)};
    return std::move(built_);
  }

  UopId Append(Uop uop) {
    // The same operation on the same operands is one value.
    for (UopId id = 0; id < built_.kernel.uops.size(); ++id) {
      if (Same(built_.kernel.uops[id], uop)) return id;
    }
    built_.kernel.uops.push_back(std::move(uop));
    return static_cast<UopId>(built_.kernel.uops.size() - 1);
  }

  static bool Same(const Uop& a, const Uop& b) {
    const auto bits = [](double x) {
      uint64_t u;
      static_assert(sizeof u == sizeof x);
      __builtin_memcpy(&u, &x, sizeof u);
      return u;
    };
    return a.op == b.op && a.dtype == b.dtype && a.src == b.src && a.param == b.param &&
           a.index == b.index && a.dynamic_stride == b.dynamic_stride && a.guards == b.guards &&
           bits(a.number) == bits(b.number) && a.integer == b.integer && a.axis == b.axis &&
           a.fold == b.fold && a.axes == b.axes && a.custom == b.custom && a.memory == b.memory;
  }

  uint32_t Parameter(const Binding& binding, const Value& value, Access access) {
    for (uint32_t p = 0; p < built_.bindings.size(); ++p) {
      if (built_.bindings[p] != binding) continue;
      Access& has = built_.kernel.params[p].access;
      if (has != access) has = Access::kInOut;
      return p;
    }
    built_.bindings.push_back(binding);
    std::string name = Identifier(value.name);
    for (const Param& param : built_.kernel.params) {
      if (param.name == name) name += "_" + std::to_string(built_.bindings.size());
    }
    built_.kernel.params.push_back({std::move(name), access, value.dtype, value.shape});
    return static_cast<uint32_t>(built_.bindings.size() - 1);
  }

  Binding BindingOf(const Storage& storage) const {
    Binding binding;
    const Value& value = table_.values[storage.value];
    if (storage.kernel < 0 && value.input >= 0 &&
        step_.inputs[value.input].kind == StepInput::Kind::kState) {
      binding.state = static_cast<int32_t>(step_.inputs[value.input].state);
    } else {
      binding.storage = storage;
    }
    return binding;
  }

  UopId LoadFrom(const Storage& storage, const IndexMap& map) {
    const Value& value = table_.values[storage.value];
    Uop uop;
    uop.op = UOp::kLoad;
    uop.dtype = value.dtype;
    uop.param = Parameter(BindingOf(storage), value, Access::kIn);
    uop.index = Flatten(map, value.shape);
    uop.guards = map.guards;
    return Append(std::move(uop));
  }

  struct Frame {
    uint32_t context;
    ValueId value;
    IndexMap map;
    bool opened = false;
  };
  using Term = std::vector<std::pair<AxisId, int64_t>>;
  using Key = std::tuple<uint32_t, ValueId, std::vector<std::pair<int64_t, Term>>>;

  static Key KeyOf(uint32_t context, ValueId value, const IndexMap& map) {
    Key key{context, value, {}};
    auto& dims = std::get<2>(key);
    for (const Affine& a : map.dims) dims.emplace_back(a.constant, a.terms);
    if (map.flat) dims.emplace_back(map.flat->constant, map.flat->terms);
    for (const Guard& g : map.guards) {
      dims.emplace_back(g.expression.constant, g.expression.terms);
      dims.emplace_back(g.low, Term{});
      dims.emplace_back(g.high, Term{});
    }
    return key;
  }

  // Depth-first over an explicit stack: kernels may be thousands of operations deep.
  UopId Evaluate(uint32_t context, ValueId value, const IndexMap& map) {
    std::vector<Frame> stack;
    stack.push_back({context, value, map});
    while (!stack.empty()) {
      const Frame frame = stack.back();
      if (memo_.contains(KeyOf(frame.context, frame.value, frame.map))) {
        stack.pop_back();
        continue;
      }
      std::vector<Frame> needs;
      Children(frame, needs);
      bool ready = true;
      for (size_t i = needs.size(); i-- > 0;) {
        if (memo_.contains(KeyOf(needs[i].context, needs[i].value, needs[i].map))) continue;
        ready = false;
        stack.push_back(needs[i]);
      }
      if (!ready) continue;
      std::vector<UopId> operands;
      for (const Frame& need : needs) {
        operands.push_back(memo_.at(KeyOf(need.context, need.value, need.map)));
      }
      const UopId id = Emit(frame, operands);
      memo_[KeyOf(frame.context, frame.value, frame.map)] = id;
      stack.pop_back();
    }
    return memo_.at(KeyOf(context, value, map));
  }

  const Source& SourceOf(const Frame& frame) const {
    return chosen_.sources.at({frame.context, frame.value});
  }

  void Children(const Frame& frame, std::vector<Frame>& needs) const {
    const Source& source = SourceOf(frame);
    if (source.kind == Source::Kind::kLoad || source.kind == Source::Kind::kDot) return;
    if (source.kind == Source::Kind::kHoist) {
      needs.push_back({0, frame.value, frame.map});
      return;
    }
    const Value& value = table_.values[frame.value];
    const Definition& d = value.definitions[source.definition];
    if (IsView(d.op)) {
      std::optional<SplitRequest> split;
      auto map = ThroughView(d.op, d.attr, table_.values[d.inputs[0]].shape, value.shape, frame.map,
                             extents_, split);
      needs.push_back({frame.context, d.inputs[0], std::move(*map)});
    } else if (IsReduction(d.op)) {
      needs.push_back({static_cast<uint32_t>(source.pass), d.inputs[0],
                       PassMap(frame, d, kernel_.contexts[source.pass])});
    } else if (d.op == Op::kRandom) {
      needs.push_back({frame.context, d.inputs[0], IndexMap{}});
    } else if (d.op == Op::kGather) {
      const size_t rank = table_.values[d.inputs[1]].shape.size();
      IndexMap at;
      at.dims.assign(frame.map.dims.begin(), frame.map.dims.begin() + static_cast<long>(rank));
      needs.push_back({frame.context, d.inputs[1], std::move(at)});
    } else {
      for (ValueId input : d.inputs) needs.push_back({frame.context, input, frame.map});
    }
  }

  // The operand's map inside a pass: reduced dimensions run over the pass's axes, cut as the
  // candidate has them.
  IndexMap PassMap(const Frame& frame, const Definition& d, const Context& pass) const {
    const tensor::Shape& operand = table_.values[d.inputs[0]].shape;
    IndexMap map;
    size_t kept = 0;
    size_t bound = 0;
    size_t next_axis = 0;
    for (size_t dim = 0; dim < operand.size(); ++dim) {
      if (bound < d.attr.ints.size() && d.attr.ints[bound] == static_cast<int64_t>(dim)) {
        ++bound;
        Affine index;
        int64_t stride = operand[dim];
        int64_t covered = 1;
        do {
          const AxisId axis = pass.axes[next_axis++];
          covered *= extents_[axis];
          stride = extents_[axis] == 0 ? 0 : stride / extents_[axis];
          if (operand[dim] != 1) index = index + AxisTerm(axis, stride);
        } while (covered < operand[dim]);
        map.dims.push_back(std::move(index));
      } else {
        map.dims.push_back(frame.map.dims[kept++]);
      }
    }
    return map;
  }

  UopId Emit(const Frame& frame, const std::vector<UopId>& operands) {
    const Source& source = SourceOf(frame);
    const Value& value = table_.values[frame.value];
    switch (source.kind) {
      case Source::Kind::kLoad:
        return LoadFrom(source.storage, frame.map);
      case Source::Kind::kHoist:
        return operands[0];
      case Source::Kind::kDot:
        return EmitDot(frame, source);
      case Source::Kind::kDefinition:
        break;
    }
    const Definition& d = value.definitions[source.definition];
    Uop uop;
    uop.dtype = value.dtype;
    uop.span = value.span;
    if (IsView(d.op)) return operands[0];
    if (d.op == Op::kConst) return EmitConstant(d.attr.scalar, value.dtype);
    if (d.op == Op::kIota) return EmitIndex(frame.map.dims[d.attr.axis], value.dtype);
    if (IsReduction(d.op)) {
      uop.op = UOp::kReduce;
      uop.fold = d.op == Op::kReduceSum ? Fold::kAdd : Fold::kMax;
      uop.src = {operands[0]};
      uop.axes = kernel_.contexts[source.pass].axes;
      return Append(std::move(uop));
    }
    if (d.op == Op::kGather) {
      const Value& table = table_.values[d.inputs[0]];
      const size_t rank = table_.values[d.inputs[1]].shape.size();
      IndexMap at;
      at.dims.push_back({});  // the row is the data's
      at.dims.insert(at.dims.end(), frame.map.dims.begin() + static_cast<long>(rank),
                     frame.map.dims.end());
      uop.op = UOp::kLoad;
      uop.param = Parameter(BindingOf(source.storage), table, Access::kIn);
      uop.index = Flatten(at, table.shape);
      uop.src = {operands[0]};
      uop.dynamic_stride =
          table.shape[0] == 0 ? 1 : tensor::NumElements(table.shape) / table.shape[0];
      uop.dynamic_extent = table.shape[0];
      return Append(std::move(uop));
    }
    if (d.op == Op::kRandom) {
      uop.op = UOp::kCustom;
      uop.custom = std::string(kPhilox);
      uop.src = {operands[0], EmitIndex(Flatten(frame.map, value.shape), DType::kI64)};
      return Append(std::move(uop));
    }
    uop.op = UopOf(d.op);
    if (d.op == Op::kBf16Pair) uop.custom = std::string(kBf16Pair);
    uop.src = operands;
    return Append(std::move(uop));
  }

  UopId EmitConstant(double number, DType dtype) {
    Uop uop;
    uop.op = UOp::kConst;
    uop.dtype = dtype;
    if (tensor::IsFloat(dtype)) {
      uop.number = number;
    } else {
      uop.integer = static_cast<int64_t>(number);
    }
    return Append(std::move(uop));
  }

  UopId EmitInteger(int64_t number) {
    Uop uop;
    uop.op = UOp::kConst;
    uop.dtype = DType::kI64;
    uop.integer = number;
    return Append(std::move(uop));
  }

  UopId EmitIndex(const Affine& index, DType dtype) {
    auto binary = [&](UOp op, UopId a, UopId b) {
      Uop uop;
      uop.op = op;
      uop.dtype = DType::kI64;
      uop.src = {a, b};
      return Append(std::move(uop));
    };
    std::optional<UopId> sum;
    if (index.constant != 0 || index.terms.empty()) sum = EmitInteger(index.constant);
    for (const auto& [axis, coefficient] : index.terms) {
      Uop uop;
      uop.op = UOp::kRange;
      uop.dtype = DType::kI64;
      uop.axis = axis;
      UopId term = Append(std::move(uop));
      if (coefficient != 1) term = binary(UOp::kMul, term, EmitInteger(coefficient));
      sum = sum ? binary(UOp::kAdd, *sum, term) : term;
    }
    if (dtype == DType::kI64) return *sum;
    Uop cast;
    cast.op = UOp::kCast;
    cast.dtype = dtype;
    cast.src = {*sum};
    return Append(std::move(cast));
  }

  UopId EmitDot(const Frame& frame, const Source& source) {
    const Value& value = table_.values[frame.value];
    const Definition& d = value.definitions[source.definition];
    const int64_t depth = table_.values[d.inputs[0]].shape.back();
    const AxisId axis = static_cast<AxisId>(extents_.size());
    extents_.push_back(depth);
    const size_t rank = value.shape.size();
    const Affine k = depth == 1 ? Affine{} : AxisTerm(axis);
    IndexMap left = frame.map;
    left.dims[rank - 1] = k;
    IndexMap right = frame.map;
    right.dims[rank - 2] = k;
    const auto load = [&](const Storage& storage, ValueId factor, const IndexMap& at) {
      return LoadFrom(storage, *MapThroughViews(table_, factor, storage.value, at, extents_));
    };
    const UopId a = load(source.left, d.inputs[0], left);
    const UopId b = load(source.right, d.inputs[1], right);
    Uop product;
    product.dtype = value.dtype;
    SetProduct(product, d.op);
    product.src = {a, b};
    Uop sum;
    sum.op = UOp::kReduce;
    sum.dtype = value.dtype;
    sum.src = {Append(std::move(product))};
    sum.axes = {axis};
    sum.span = value.span;
    built_.form = selection_.forms[source.form].schedule.name;
    return Append(std::move(sum));
  }

  // Stores zeros where rows will be added up, what is outermost first, so that no loop over them
  // comes between the walk over the rows and itself; returns the stores that add.
  std::vector<Uop> StartSums() {
    std::vector<Uop> adds;
    for (const ChosenStore& store : chosen_.stores) {
      const AddedSum* sum = kernel_.FindAdded(store.value);
      if (sum == nullptr) continue;
      const Value& value = table_.values[store.value];
      const Definition& d = value.definitions[sum->definition];
      Binding binding;
      binding.storage = {store.value, static_cast<int32_t>(chosen_.candidate)};
      Uop add;
      add.op = UOp::kStore;
      add.dtype = value.dtype;
      add.src = {Evaluate(0, d.inputs[0], sum->operand)};
      add.param = Parameter(binding, value, Access::kOut);
      add.index = Flatten(kernel_.Find(0, store.value)->maps[0], value.shape);
      add.accumulate = true;
      add.span = value.span;
      adds.push_back(std::move(add));
      built_.kernel.origin.push_back(value.name);
    }
    std::vector<Uop> zeros = adds;
    std::stable_sort(zeros.begin(), zeros.end(), [](const Uop& a, const Uop& b) {
      return a.index.terms.size() < b.index.terms.size();
    });
    for (Uop& zero : zeros) {
      zero.src = {EmitConstant(0, zero.dtype)};
      zero.accumulate = false;
      built_.kernel.uops.push_back(std::move(zero));
    }
    return adds;
  }

  // Zeros over the whole root, then each row added at its number.
  void EmitScatter(ValueId root) {
    const Value& value = table_.values[root];
    const Entry& entry = *kernel_.Find(0, root);
    const Definition& d = value.definitions.front();
    const size_t rank = table_.values[d.inputs[0]].shape.size();
    IndexMap at_row;
    at_row.dims.assign(entry.maps[0].dims.begin(),
                       entry.maps[0].dims.begin() + static_cast<long>(rank));
    const UopId row = Evaluate(0, d.inputs[0], at_row);
    const UopId update = Evaluate(0, d.inputs[1], entry.maps[0]);
    IndexMap inside;
    inside.dims.push_back({});  // the row is the data's
    inside.dims.insert(inside.dims.end(), entry.maps[0].dims.begin() + static_cast<long>(rank),
                       entry.maps[0].dims.end());
    const AxisId rows = static_cast<AxisId>(extents_.size());
    extents_.push_back(value.shape[0]);
    Binding binding;
    binding.storage = {root, static_cast<int32_t>(chosen_.candidate)};
    Uop zero;
    zero.op = UOp::kStore;
    zero.dtype = value.dtype;
    zero.src = {EmitConstant(0, value.dtype)};
    zero.param = Parameter(binding, value, Access::kOut);
    const int64_t stride =
        value.shape[0] == 0 ? 1 : tensor::NumElements(value.shape) / value.shape[0];
    Uop add = zero;
    zero.index = Flatten(inside, value.shape);
    if (value.shape[0] != 1) zero.index = zero.index + AxisTerm(rows, stride);
    add.src = {update, row};
    add.index = Flatten(inside, value.shape);
    add.dynamic_stride = stride;
    add.dynamic_extent = value.shape[0];
    add.accumulate = true;
    add.span = value.span;
    built_.kernel.uops.push_back(std::move(zero));
    built_.kernel.uops.push_back(std::move(add));
    built_.kernel.origin.push_back(value.name);
  }

  // Keeps the axes that something uses, those of the space first.
  void NameAxes() {
    Kernel& out = built_.kernel;
    std::vector<bool> used(extents_.size());
    std::vector<bool> reduced(extents_.size());
    for (const Uop& uop : out.uops) {
      for (const auto& [axis, coefficient] : uop.index.terms) used[axis] = true;
      for (const Guard& g : uop.guards) {
        for (const auto& [axis, coefficient] : g.expression.terms) used[axis] = true;
      }
      if (uop.op == UOp::kRange) used[uop.axis] = true;
      for (AxisId axis : uop.axes) used[axis] = reduced[axis] = true;
    }
    std::vector<AxisId> renamed(extents_.size());
    int spaces = 0;
    int sums = 0;
    for (AxisId a = 0; a < extents_.size(); ++a) {
      if (!used[a]) continue;
      renamed[a] = static_cast<AxisId>(out.axes.size());
      Axis axis;
      axis.extent = extents_[a];
      axis.kind = reduced[a] ? AxisKind::kReduce : AxisKind::kLoop;
      axis.name = reduced[a] ? "r" + std::to_string(sums++) : "i" + std::to_string(spaces++);
      out.axes.push_back(std::move(axis));
    }
    for (Uop& uop : out.uops) {
      for (auto& [axis, coefficient] : uop.index.terms) axis = renamed[axis];
      for (Guard& g : uop.guards) {
        for (auto& [axis, coefficient] : g.expression.terms) axis = renamed[axis];
      }
      if (uop.op == UOp::kRange) uop.axis = renamed[uop.axis];
      for (AxisId& axis : uop.axes) axis = renamed[axis];
    }
  }

  const Step& step_;
  const ValueTable& table_;
  const Candidate& kernel_;
  const Selection& selection_;
  const ChosenKernel& chosen_;
  std::vector<int64_t> extents_;
  std::map<Key, UopId> memo_;
  BuiltKernel built_;
};

int64_t Coefficient(const Affine& affine, AxisId axis) {
  for (const auto& [a, coefficient] : affine.terms) {
    if (a == axis) return coefficient;
  }
  return 0;
}

// Whether axis b, inside axis a, continues it in every access.
bool Continues(const Kernel& kernel, AxisId a, AxisId b) {
  if (kernel.axes[a].kind != kernel.axes[b].kind) return false;
  const int64_t extent = kernel.axes[b].extent;
  auto follows = [&](const Affine& affine) {
    return Coefficient(affine, a) == Coefficient(affine, b) * extent;
  };
  for (const Uop& uop : kernel.uops) {
    if (uop.op == UOp::kRange && (uop.axis == a || uop.axis == b)) return false;
    if (!follows(uop.index)) return false;
    for (const Guard& guard : uop.guards) {
      if (!follows(guard.expression)) return false;
    }
    if (uop.op == UOp::kReduce) {
      const bool has_a = std::find(uop.axes.begin(), uop.axes.end(), a) != uop.axes.end();
      const bool has_b = std::find(uop.axes.begin(), uop.axes.end(), b) != uop.axes.end();
      if (has_a != has_b) return false;
    }
  }
  return true;
}

void MergePair(Kernel& kernel, AxisId a, AxisId b) {
  kernel.axes[b].extent *= kernel.axes[a].extent;
  kernel.axes[b].name = kernel.axes[a].name;
  kernel.axes.erase(kernel.axes.begin() + a);
  auto rename = [&](Affine& affine) {
    std::erase_if(affine.terms, [&](const auto& term) { return term.first == a; });
    for (auto& [axis, coefficient] : affine.terms) axis -= axis > a ? 1 : 0;
  };
  for (Uop& uop : kernel.uops) {
    rename(uop.index);
    for (Guard& guard : uop.guards) rename(guard.expression);
    std::erase(uop.axes, a);
    for (AxisId& axis : uop.axes) axis -= axis > a ? 1 : 0;
    if (uop.op == UOp::kRange && uop.axis > a) --uop.axis;
  }
}

}  // namespace

BuiltKernel BuildKernel(const Step& step, const ValueTable& table, const CandidateSet& candidates,
                        const Selection& selection, const ChosenKernel& chosen) {
  BuiltKernel built = Builder(step, table, candidates, selection, chosen).Build();
  if (built.own < 0) {
    MergePasses(built.kernel);
    MergeAxes(built.kernel);
  }
  return built;
}

void MergeAxes(Kernel& kernel) {
  bool merged = true;
  while (merged) {
    merged = false;
    for (AxisId a = 0; a + 1 < kernel.axes.size() && !merged; ++a) {
      if (!Continues(kernel, a, a + 1)) continue;
      MergePair(kernel, a, a + 1);
      merged = true;
    }
  }
}

}  // namespace l3c::l0::lower
