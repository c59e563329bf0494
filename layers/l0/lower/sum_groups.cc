#include "layers/l0/lower/sum_groups.h"

#include <algorithm>
#include <cstdlib>

namespace l3c::l0::lower {

using tensor::NumElements;
using tensor::Op;
using tensor::Shape;

namespace {

constexpr size_t kMostPartners = 8;

// Nothing for a reduction that keeps the columns alone: no axis is left to share among workers.
std::optional<WalkKind> KindOf(const Definition& d, const Shape& operand) {
  const std::vector<int64_t>& axes = d.attr.ints;
  const auto rank = static_cast<int64_t>(operand.size());
  if (axes.empty() || static_cast<int64_t>(axes.size()) == rank) return std::nullopt;
  if (axes.back() != rank - 1) {
    int64_t workers = 1;
    for (int64_t axis = 0; axis + 1 < rank; ++axis) {
      const bool summed = std::find(axes.begin(), axes.end(), axis) != axes.end();
      if (!summed) workers *= operand[static_cast<size_t>(axis)];
    }
    if (workers < 2 || operand.back() < 2 || d.op != Op::kReduceSum) return std::nullopt;
    return WalkKind::kColumns;
  }
  // Over more than the last axis, a row's sum comes first (rewrites/algebra.egg, sum-row-first).
  return axes.size() == 1 ? std::optional(WalkKind::kRow) : std::nullopt;
}

bool Has(const std::vector<ValueId>& ascending, ValueId v) {
  return std::binary_search(ascending.begin(), ascending.end(), v);
}

}  // namespace

std::optional<WalkPart> DescribePart(const ValueTable& table, const Candidate& loop, ValueId v) {
  const Value& value = table.values[v];
  if (!tensor::IsFloat(value.dtype) || loop.scatter || value.own >= 0) return std::nullopt;
  WalkPart part;
  part.value = v;
  bool found = false;
  for (uint32_t i = 0; i < value.definitions.size() && !found; ++i) {
    const Definition& d = value.definitions[i];
    std::optional<WalkKind> kind;
    Shape walked = value.shape;
    if (IsReduction(d.op)) {
      walked = table.values[d.inputs[0]].shape;
      kind = KindOf(d, walked);
    } else if (IsElementwise(d.op)) {
      kind = WalkKind::kElements;
    }
    if (!kind) continue;
    part.kind = *kind;
    part.definition = i;
    part.points = NumElements(walked);
    found = true;
  }
  if (!found) return std::nullopt;
  for (const Entry& entry : loop.entries) {
    part.met.push_back(entry.value);
    if (entry.readable && NumElements(table.values[entry.value].shape) == part.points) {
      part.wide.push_back(entry.value);
    }
  }
  for (std::vector<ValueId>* list : {&part.met, &part.wide}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return part;
}

bool CanJoin(const WalkPart& a, const WalkPart& b) {
  if (a.points != b.points || Has(a.met, b.value) || Has(b.met, a.value)) return false;
  return std::any_of(a.wide.begin(), a.wide.end(), [&](ValueId v) { return Has(b.wide, v); });
}

std::vector<const WalkPart*> PartnersOf(const WalkPart& root, const std::vector<WalkPart>& parts,
                                        const std::vector<bool>& late) {
  const auto wanted = [&](const WalkPart& part) {
    switch (part.kind) {
      case WalkKind::kColumns:
        return part.value < root.value;
      case WalkKind::kRow:
        return static_cast<bool>(late[part.value]);
      case WalkKind::kElements:
        return part.value > root.value;
    }
    return false;
  };
  std::vector<const WalkPart*> partners;
  for (const WalkPart& part : parts) {
    if (wanted(part) && CanJoin(root, part)) partners.push_back(&part);
  }
  std::stable_sort(partners.begin(), partners.end(), [&](const WalkPart* a, const WalkPart* b) {
    return std::abs(a->value - root.value) < std::abs(b->value - root.value);
  });
  std::vector<const WalkPart*> agreed;
  for (const WalkPart* partner : partners) {
    const bool fits = std::all_of(agreed.begin(), agreed.end(), [&](const WalkPart* other) {
      const bool sums = partner->kind == WalkKind::kColumns || other->kind == WalkKind::kColumns;
      return !sums || (!Has(partner->met, other->value) && !Has(other->met, partner->value));
    });
    if (fits && agreed.size() < kMostPartners) agreed.push_back(partner);
  }
  return agreed;
}

}  // namespace l3c::l0::lower
