// The primitives of vectors, sets, maps and pairs.
#include "egraph/container_primitives.h"

#include <algorithm>
#include <iterator>

namespace l3c::egraph {

namespace {

using Args = std::span<const Value>;
using Result = std::optional<Value>;
using Elements = std::vector<Value>;

bool Contains(EGraph& e, Value container, Value v) {
  const std::span<const Value> all = e.Elements(container);
  return std::find(all.begin(), all.end(), v) != all.end();
}

// The position of a key in the elements of a map, or their number.
size_t FindKey(std::span<const Value> all, Value key) {
  for (size_t i = 0; i < all.size(); i += 2) {
    if (all[i] == key) return i;
  }
  return all.size();
}

}  // namespace

std::optional<Value> MadeContainer(EGraph& e, SortId sort, std::vector<Value> elements) {
  if (elements.size() > kMaxElements || e.PoolIsFull()) return std::nullopt;
  const Value made = e.Container(sort, std::move(elements));
  if (e.ContainerDepth(made) > kMaxContainerDepth) return std::nullopt;
  return made;
}

std::vector<Value> CopyElements(EGraph& e, Value container) {
  const std::span<const Value> all = e.Elements(container);
  return Elements(all.begin(), all.end());
}

std::optional<size_t> IndexBelow(EGraph& e, Value v, size_t size) {
  const int64_t i = e.AsI64(v);
  if (i < 0 || static_cast<uint64_t>(i) >= size) return std::nullopt;
  return static_cast<size_t>(i);
}

void RegisterMembership(ContainerRegistrar& r, const std::string& prefix, bool swapped_too) {
  r.Test(prefix + "-contains", {r.self, r.first},
         [](EGraph& e, Args a) { return Contains(e, a[0], a[1]); });
  r.Test(prefix + "-not-contains", {r.self, r.first},
         [](EGraph& e, Args a) { return !Contains(e, a[0], a[1]); });
  if (!swapped_too) return;
  r.Test(prefix + "-contains-swapped", {r.first, r.self},
         [](EGraph& e, Args a) { return Contains(e, a[1], a[0]); });
  r.Test(prefix + "-not-contains-swapped", {r.first, r.self},
         [](EGraph& e, Args a) { return !Contains(e, a[1], a[0]); });
}

void RegisterVec(ContainerRegistrar& r) {
  r.Of("vec-of", {r.first}, 1);
  r.Of("vec-empty", {}, 0);
  r.Change(
      "vec-append", {r.self},
      [](EGraph& e, Args a) -> std::optional<Elements> {
        Elements all;
        for (Value v : a) {
          const std::span<const Value> part = e.Elements(v);
          if (all.size() + part.size() > kMaxElements) return std::nullopt;
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      },
      1);
  r.Change("vec-push", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    all.push_back(a[1]);
    return std::optional(std::move(all));
  });
  r.Change("vec-pop", {r.self}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    if (!all.empty()) all.pop_back();
    return std::optional(std::move(all));
  });
  r.Change("vec-set", {r.self, kI64, r.first}, [](EGraph& e, Args a) -> std::optional<Elements> {
    Elements all = CopyElements(e, a[0]);
    const std::optional<size_t> i = IndexBelow(e, a[1], all.size());
    if (!i) return std::nullopt;
    all[*i] = a[2];
    return all;
  });
  r.Change("vec-remove", {r.self, kI64}, [](EGraph& e, Args a) -> std::optional<Elements> {
    Elements all = CopyElements(e, a[0]);
    const std::optional<size_t> i = IndexBelow(e, a[1], all.size());
    if (!i) return std::nullopt;
    all.erase(all.begin() + static_cast<ptrdiff_t>(*i));
    return all;
  });
  r.g.RegisterPrimitive("vec-get", {r.self, kI64}, r.first, [](EGraph& e, Args a) -> Result {
    const std::optional<size_t> i = IndexBelow(e, a[1], e.Elements(a[0]).size());
    if (!i) return std::nullopt;
    return e.Elements(a[0])[*i];
  });
  if (r.first == kI64) {
    r.Change("vec-range", {kI64}, [](EGraph& e, Args a) -> std::optional<Elements> {
      const int64_t end = std::max<int64_t>(0, e.AsI64(a[0]));
      if (static_cast<uint64_t>(end) > kMaxElements) return std::nullopt;
      Elements all;
      for (int64_t i = 0; i < end; ++i) all.push_back(e.I64(i));
      return all;
    });
  }
  if (r.g.sort(r.first).is_equality) {
    r.g.RegisterPrimitive("vec-union", {r.self, r.self}, r.self, [](EGraph& e, Args a) -> Result {
      const Elements x = CopyElements(e, a[0]), y = CopyElements(e, a[1]);
      if (!e.in_action() || x.size() != y.size()) return std::nullopt;
      for (size_t i = 0; i < x.size(); ++i) e.Union(x[i], y[i]);
      return a[0];
    });
  }
  r.Length("vec-length", 1);
  RegisterMembership(r, "vec", false);
}

void RegisterSet(ContainerRegistrar& r) {
  r.Of("set-of", {r.first}, 1);
  r.Of("set-empty", {}, 0);
  r.g.RegisterPrimitive("set-get", {r.self, kI64}, r.first, [](EGraph& e, Args a) -> Result {
    const std::optional<size_t> i = IndexBelow(e, a[1], e.Elements(a[0]).size());
    if (!i) return std::nullopt;
    return e.Elements(a[0])[*i];
  });
  r.Change("set-insert", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    all.push_back(a[1]);
    return std::optional(std::move(all));
  });
  r.Change("set-remove", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    std::erase(all, a[1]);
    return std::optional(std::move(all));
  });
  r.Change("set-union", {r.self, r.self}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    const Elements more = CopyElements(e, a[1]);
    all.insert(all.end(), more.begin(), more.end());
    return std::optional(std::move(all));
  });
  // Elements are in order.
  r.Change("set-diff", {r.self, r.self}, [](EGraph& e, Args a) {
    const std::span<const Value> x = e.Elements(a[0]), y = e.Elements(a[1]);
    Elements all;
    std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(all));
    return std::optional(std::move(all));
  });
  r.Change("set-intersect", {r.self, r.self}, [](EGraph& e, Args a) {
    const std::span<const Value> x = e.Elements(a[0]), y = e.Elements(a[1]);
    Elements all;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(all));
    return std::optional(std::move(all));
  });
  r.Length("set-length", 1);
  RegisterMembership(r, "set", false);
}

void RegisterMap(ContainerRegistrar& r) {
  r.Of("map-of", {r.first, r.second}, 2);
  r.Of("map-empty", {}, 0);
  r.g.RegisterPrimitive("map-get", {r.self, r.first}, r.second, [](EGraph& e, Args a) -> Result {
    const std::span<const Value> all = e.Elements(a[0]);
    const size_t i = FindKey(all, a[1]);
    if (i == all.size()) return std::nullopt;
    return all[i + 1];
  });
  r.Change("map-insert", {r.self, r.first, r.second}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    all.push_back(a[1]);
    all.push_back(a[2]);
    return std::optional(std::move(all));
  });
  r.Change("map-remove", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = CopyElements(e, a[0]);
    const size_t i = FindKey(all, a[1]);
    if (i != all.size()) {
      all.erase(all.begin() + static_cast<ptrdiff_t>(i),
                all.begin() + static_cast<ptrdiff_t>(i + 2));
    }
    return std::optional(std::move(all));
  });
  r.Length("map-length", 2);
  const auto has = [](EGraph& e, Args a) {
    const std::span<const Value> all = e.Elements(a[0]);
    return FindKey(all, a[1]) != all.size();
  };
  r.Test("map-contains", {r.self, r.first}, has);
  r.Test("map-not-contains", {r.self, r.first}, [has](EGraph& e, Args a) { return !has(e, a); });
}

void RegisterPair(ContainerRegistrar& r) {
  r.Of("pair", {r.first, r.second}, 0);
  r.g.RegisterPrimitive("pair-first", {r.self}, r.first,
                        [](EGraph& e, Args a) -> Result { return e.Elements(a[0])[0]; });
  r.g.RegisterPrimitive("pair-second", {r.self}, r.second,
                        [](EGraph& e, Args a) -> Result { return e.Elements(a[0])[1]; });
}

void RegisterContainerPrimitives(EGraph& graph, SortId sort) {
  const Sort& s = graph.sort(sort);
  ContainerRegistrar r{graph, sort, s.parameters.front(), s.parameters.back()};
  switch (s.container) {
    case ContainerKind::kVec:
      RegisterVec(r);
      break;
    case ContainerKind::kSet:
      RegisterSet(r);
      break;
    case ContainerKind::kMultiSet:
      RegisterMultiSet(r);
      break;
    case ContainerKind::kMap:
      RegisterMap(r);
      break;
    case ContainerKind::kPair:
      RegisterPair(r);
      break;
    case ContainerKind::kFn:
      RegisterFn(graph, sort);
      break;
    case ContainerKind::kNone:
      return;
  }
  RegisterHigherOrder(graph, sort);
}

}  // namespace l3c::egraph
