#include "layers/l0/lower/dot_forms.h"

#include <algorithm>

namespace l3c::l0::lower {

using tensor::Op;

void SetProduct(Uop& product, Op op) {
  if (op == Op::kBf16Matmul) {
    product.op = UOp::kCustom;
    product.custom = std::string(kBf16Dot);
  } else {
    product.op = UOp::kMul;
  }
}

std::optional<IndexMap> MapThroughViews(const ValueTable& table, ValueId from, ValueId target,
                                        const IndexMap& at, std::span<const int64_t> extents) {
  struct Item {
    ValueId value;
    IndexMap map;
  };
  std::vector<Item> stack = {{from, at}};
  while (!stack.empty()) {
    const Item item = std::move(stack.back());
    stack.pop_back();
    if (item.value == target) return item.map;
    for (const Definition& d : table.values[item.value].definitions) {
      // Operands have smaller numbers, so what lies below the target cannot lead to it.
      if (!IsView(d.op) || d.inputs[0] < target) continue;
      std::optional<SplitRequest> split;
      auto map = ThroughView(d.op, d.attr, table.values[d.inputs[0]].shape,
                             table.values[item.value].shape, item.map, extents, split);
      if (map) stack.push_back({d.inputs[0], std::move(*map)});
    }
  }
  return std::nullopt;
}

std::vector<ValueId> DotForms::Readable(ValueId factor) const {
  std::vector<ValueId> found;
  std::vector<ValueId> stack = {factor};
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (std::find(found.begin(), found.end(), v) != found.end()) continue;
    if (table_.values[v].input >= 0 || stored_[v]) found.push_back(v);
    for (const Definition& d : table_.values[v].definitions) {
      if (IsView(d.op)) stack.push_back(d.inputs[0]);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

// The contraction alone, as a kernel: out[batch…, i, j] = Σk left · right.
std::optional<Kernel> BareContraction(const ValueTable& table, ValueId matmul,
                                      const Definition& definition, ValueId left, ValueId right) {
  const Value& result = table.values[matmul];
  const size_t rank = result.shape.size();
  Kernel kernel;
  kernel.name = "contraction";
  std::vector<int64_t> extents = result.shape;
  extents.push_back(table.values[definition.inputs[0]].shape.back());
  for (size_t a = 0; a < extents.size(); ++a) {
    Axis axis;
    axis.name = "a" + std::to_string(a);
    axis.extent = extents[a];
    axis.kind = a < rank ? AxisKind::kLoop : AxisKind::kReduce;
    kernel.axes.push_back(axis);
  }
  auto index = [&](size_t a) {
    return extents[a] == 1 ? Affine{} : AxisTerm(static_cast<AxisId>(a));
  };
  IndexMap left_at;
  IndexMap right_at;
  for (size_t d = 0; d + 2 < rank; ++d) {
    left_at.dims.push_back(index(d));
    right_at.dims.push_back(index(d));
  }
  left_at.dims.push_back(index(rank - 2));
  left_at.dims.push_back(index(rank));
  right_at.dims.push_back(index(rank));
  right_at.dims.push_back(index(rank - 1));
  const auto left_map = MapThroughViews(table, definition.inputs[0], left, left_at, extents);
  const auto right_map = MapThroughViews(table, definition.inputs[1], right, right_at, extents);
  if (!left_map || !right_map) return std::nullopt;
  auto load = [&](ValueId v, const IndexMap& map) {
    const Value& value = table.values[v];
    kernel.params.push_back(
        {"p" + std::to_string(kernel.params.size()), Access::kIn, value.dtype, value.shape});
    Uop uop;
    uop.op = UOp::kLoad;
    uop.dtype = value.dtype;
    uop.param = static_cast<uint32_t>(kernel.params.size() - 1);
    uop.index = Flatten(map, value.shape);
    uop.guards = map.guards;
    kernel.uops.push_back(uop);
    return static_cast<UopId>(kernel.uops.size() - 1);
  };
  auto add = [&](UOp op, std::vector<UopId> src) {
    Uop uop;
    uop.op = op;
    uop.dtype = result.dtype;
    uop.src = std::move(src);
    kernel.uops.push_back(uop);
    return static_cast<UopId>(kernel.uops.size() - 1);
  };
  const UopId a = load(left, *left_map);
  const UopId b = load(right, *right_map);
  const UopId product = add(UOp::kMul, {a, b});
  SetProduct(kernel.uops[product], definition.op);
  const UopId sum = add(UOp::kReduce, {product});
  kernel.uops[sum].axes = {static_cast<AxisId>(rank)};
  kernel.params.push_back({"out", Access::kOut, result.dtype, result.shape});
  const UopId store = add(UOp::kStore, {sum});
  kernel.uops[store].param = static_cast<uint32_t>(kernel.params.size() - 1);
  kernel.uops[store].index = Flatten(IdentityMap(result.shape), result.shape);
  return kernel;
}

}  // namespace

const std::vector<uint32_t>& DotForms::Of(ValueId matmul, uint32_t definition_index) {
  auto [it, inserted] = by_matmul_.try_emplace({matmul, definition_index});
  if (!inserted) return it->second;
  const Definition& definition = table_.values[matmul].definitions[definition_index];
  for (ValueId left : Readable(definition.inputs[0])) {
    for (ValueId right : Readable(definition.inputs[1])) {
      const auto bare = BareContraction(table_, matmul, definition, left, right);
      if (!bare) continue;
      std::vector<DotForm> forms;
      const std::string_view evidence = costs_.KernelEvidence(*bare);
      for (Schedule& schedule : CandidateSchedules(*bare, costs_.target())) {
        const double seconds = costs_.KernelSeconds(*bare, schedule);
        forms.push_back({matmul, left, right, std::move(schedule), seconds, evidence});
      }
      std::stable_sort(forms.begin(), forms.end(),
                       [](const DotForm& a, const DotForm& b) { return a.seconds < b.seconds; });
      if (forms.size() > kSchedulesKept) {
        pruned_ += forms.size() - kSchedulesKept;
        forms.resize(kSchedulesKept);
      }
      for (DotForm& form : forms) {
        it->second.push_back(static_cast<uint32_t>(forms_.size()));
        forms_.push_back(std::move(form));
      }
    }
  }
  return it->second;
}

}  // namespace l3c::l0::lower
