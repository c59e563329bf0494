// The primitives of multisets.
#include "egraph/container_primitives.h"

#include <algorithm>
#include <iterator>

namespace l3c::egraph {

namespace {

using Args = std::span<const Value>;
using Result = std::optional<Value>;
using Elements = std::vector<Value>;

// x without the elements of y, each as often as it stands there; nothing where one is missing.
std::optional<Elements> Subtract(EGraph& e, Value x, Value y) {
  const std::span<const Value> from = e.Elements(x), less = e.Elements(y);
  if (!std::includes(from.begin(), from.end(), less.begin(), less.end())) return std::nullopt;
  Elements all;
  std::set_difference(from.begin(), from.end(), less.begin(), less.end(), std::back_inserter(all));
  return all;
}

std::optional<Elements> RemoveOne(EGraph& e, Value x, Value v) {
  Elements all = CopyElements(e, x);
  const auto it = std::find(all.begin(), all.end(), v);
  if (it == all.end()) return std::nullopt;
  all.erase(it);
  return all;
}

}  // namespace

void RegisterMultiSet(ContainerRegistrar& r) {
  r.Of("multiset-of", {r.first}, 1);
  r.Change("multiset-single", {r.first, kI64}, [](EGraph& e, Args a) -> std::optional<Elements> {
    const int64_t count = e.AsI64(a[1]);
    if (count < 0 || static_cast<uint64_t>(count) > kMaxElements) return std::nullopt;
    return Elements(static_cast<size_t>(count), a[0]);
  });
  r.Change("multiset-insert", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    all.push_back(a[1]);
    return std::optional(std::move(all));
  });
  r.Change("multiset-remove", {r.self, r.first},
           [](EGraph& e, Args a) { return RemoveOne(e, a[0], a[1]); });
  r.Change("multiset-remove-swapped", {r.first, r.self},
           [](EGraph& e, Args a) { return RemoveOne(e, a[1], a[0]); });
  r.Change("multiset-subtract", {r.self, r.self},
           [](EGraph& e, Args a) { return Subtract(e, a[0], a[1]); });
  r.Change("multiset-subtract-swapped", {r.self, r.self},
           [](EGraph& e, Args a) { return Subtract(e, a[1], a[0]); });
  r.Change("multiset-intersection", {r.self, r.self}, [](EGraph& e, Args a) {
    const std::span<const Value> x = e.Elements(a[0]), y = e.Elements(a[1]);
    Elements all;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(all));
    return std::optional(std::move(all));
  });
  r.Change("multiset-sum", {r.self, r.self}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    const Elements more = CopyElements(e, a[1]);
    all.insert(all.end(), more.begin(), more.end());
    return std::optional(std::move(all));
  });
  r.Change("multiset-reset-counts", {r.self}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return std::optional(std::move(all));
  });
  r.g.RegisterPrimitive("multiset-pick", {r.self}, r.first, [](EGraph& e, Args a) -> Result {
    if (e.Elements(a[0]).empty()) return std::nullopt;
    return e.Elements(a[0])[0];
  });
  r.g.RegisterPrimitive("multiset-pick-max", {r.self}, r.first, [](EGraph& e, Args a) -> Result {
    const std::span<const Value> all = e.Elements(a[0]);
    Result best;
    size_t most = 0;
    for (size_t i = 0, end; i < all.size(); i = end) {
      for (end = i; end < all.size() && all[end] == all[i]; ++end) {
      }
      if (end - i < most) continue;
      most = end - i;
      best = all[i];
    }
    return best;
  });
  r.g.RegisterPrimitive("multiset-count", {r.self, r.first}, kI64, [](EGraph& e, Args a) -> Result {
    const std::span<const Value> all = e.Elements(a[0]);
    return e.I64(std::count(all.begin(), all.end(), a[1]));
  });
  if (r.g.sort(r.first).container == ContainerKind::kMultiSet) {
    r.g.RegisterPrimitive("multiset-sum-multisets", {r.self}, r.first,
                          [sort = r.first](EGraph& e, Args a) -> Result {
                            Elements all;
                            for (Value part : CopyElements(e, a[0])) {
                              const Elements more = CopyElements(e, part);
                              if (all.size() + more.size() > kMaxElements) return std::nullopt;
                              all.insert(all.end(), more.begin(), more.end());
                            }
                            return MadeContainer(e, sort, std::move(all));
                          });
  }
  if (r.g.sort(r.first).is_equality) {
    // All elements become one class, which is given.
    r.g.RegisterPrimitive("multiset-union-values", {r.self}, r.first,
                          [](EGraph& e, Args a) -> Result {
                            const Elements all = CopyElements(e, a[0]);
                            if (!e.in_action() || all.empty()) return std::nullopt;
                            for (Value v : all) e.Union(all[0], v);
                            return e.Find(all[0]);
                          });
  }
  r.Length("multiset-length", 1);
  RegisterMembership(r, "multiset", true);
}

}  // namespace l3c::egraph
