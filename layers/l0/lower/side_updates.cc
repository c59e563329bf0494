#include "layers/l0/lower/side_updates.h"

#include <algorithm>

namespace l3c::l0::lower {

using tensor::Op;
using tensor::Shape;

namespace {

// Fewer columns make no two tiles of products for the workers.
constexpr int64_t kLeastColumns = 128;

// What the factors of a contraction are views of.
std::vector<ValueId> FactorsOf(const ValueTable& table, ValueId contraction) {
  std::vector<ValueId> found;
  std::vector<ValueId> stack;
  for (const Definition& d : table.values[contraction].definitions) {
    if (IsContraction(d.op)) stack.insert(stack.end(), d.inputs.begin(), d.inputs.end());
  }
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (std::find(found.begin(), found.end(), v) != found.end()) continue;
    found.push_back(v);
    for (const Definition& d : table.values[v].definitions) {
      if (IsView(d.op)) stack.push_back(d.inputs[0]);
    }
  }
  return found;
}

}  // namespace

std::optional<ColumnSum> DescribeColumnSum(const ValueTable& table, const Candidate& loop) {
  ColumnSum sum;
  sum.update = {loop.group, loop.roots};
  const Shape& shape = table.values[loop.roots.front()].shape;
  if (shape.size() != 1 || shape[0] < kLeastColumns) return std::nullopt;
  for (const Entry& entry : loop.entries) {
    for (const Inline& way : entry.inlines) {
      const Definition& d = table.values[entry.value].definitions[way.definition];
      if (d.op != Op::kReduceSum) continue;
      const Shape& rows = table.values[d.inputs[0]].shape;
      const bool last_kept = d.attr.ints.size() + 1 == rows.size() &&
                             d.attr.ints.back() + 2 == static_cast<int64_t>(rows.size());
      if (last_kept && rows.back() == shape[0]) sum.rows.push_back(d.inputs[0]);
    }
  }
  if (sum.rows.empty()) return std::nullopt;
  return sum;
}

std::vector<SideUpdate> SideUpdatesOf(const ValueTable& table, const std::vector<ColumnSum>& sums,
                                      const std::vector<ValueId>& roots, ValueId anchor) {
  std::vector<SideUpdate> found;
  const Value& root = table.values[roots.front()];
  if (root.shape.size() < 2) return found;
  const std::vector<ValueId> factors = FactorsOf(table, anchor);
  for (const ColumnSum& sum : sums) {
    const Value& side = table.values[sum.update.roots.front()];
    if (side.shape[0] != root.shape.back()) continue;
    const bool shared = std::any_of(sum.rows.begin(), sum.rows.end(), [&](ValueId rows) {
      return std::find(factors.begin(), factors.end(), rows) != factors.end();
    });
    if (shared) found.push_back(sum.update);
  }
  return found;
}

}  // namespace l3c::l0::lower
