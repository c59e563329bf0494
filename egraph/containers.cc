#include "egraph/containers.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "egraph/egraph.h"

namespace l3c::egraph {
namespace {

using Args = std::span<const Value>;
using Result = std::optional<Value>;
using Elements = std::vector<Value>;

// A primitive does not build containers larger than this; it gives nothing instead.
constexpr size_t kMaxElements = size_t{1} << 24;

uint32_t HashElements(SortId sort, std::span<const Value> elements) {
  uint64_t h = sort.index;
  for (Value v : elements) h = (h ^ v.bits) * 0x9e3779b97f4a7c15u ^ (h >> 29);
  return static_cast<uint32_t>(h ^ (h >> 32));
}

// One container sort: its sorts at hand, and registration under short signatures.
struct Registrar {
  EGraph& g;
  SortId self;
  SortId first;   // element, key, or first
  SortId second;  // value, or second; the same as first where there is one parameter

  // op: std::optional<Elements>(std::span<const Value> container, Args all arguments)
  template <typename Op>
  void Change(std::string_view name, std::vector<SortId> inputs, Op op, uint32_t repeated = 0) {
    g.RegisterPrimitive(
        name, inputs, self,
        [op, sort = self](EGraph& e, Args a) -> Result {
          std::optional<Elements> elements = op(e, a);
          if (!elements || elements->size() > kMaxElements) return std::nullopt;
          const Value made = e.Container(sort, std::move(*elements));
          if (e.ContainerDepth(made) > kMaxContainerDepth) return std::nullopt;
          return made;
        },
        repeated);
  }
  // op: bool(EGraph&, Args). A premise: Unit where it holds.
  template <typename Op>
  void Test(std::string_view name, std::vector<SortId> inputs, Op op) {
    g.RegisterPrimitive(name, inputs, kUnit, [op](EGraph& e, Args a) -> Result {
      if (!op(e, a)) return std::nullopt;
      return e.Unit();
    });
  }
  void Length(std::string_view name, size_t columns) {
    g.RegisterPrimitive(name, {self}, kI64, [columns](EGraph& e, Args a) -> Result {
      return e.I64(static_cast<int64_t>(e.Elements(a[0]).size() / columns));
    });
  }
  // All arguments are the elements.
  void Of(std::string_view name, std::vector<SortId> inputs, uint32_t repeated) {
    Change(
        name, std::move(inputs), [](EGraph&, Args a) { return std::optional(Elements(a.begin(), a.end())); },
        repeated);
  }
};

Elements Copy(EGraph& e, Value container) {
  const std::span<const Value> all = e.Elements(container);
  return Elements(all.begin(), all.end());
}

bool Contains(EGraph& e, Value container, Value v) {
  const std::span<const Value> all = e.Elements(container);
  return std::find(all.begin(), all.end(), v) != all.end();
}

// The index in argument `v`, where it is one below `size`.
std::optional<size_t> IndexBelow(EGraph& e, Value v, size_t size) {
  const int64_t i = e.AsI64(v);
  if (i < 0 || static_cast<uint64_t>(i) >= size) return std::nullopt;
  return static_cast<size_t>(i);
}

void RegisterMembership(Registrar& r, const std::string& prefix, bool swapped_too) {
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

Result ApplyFn(EGraph& e, SortId sort, Value fn, Args given);

// unstable-vec-map and unstable-multiset-map to every sort that `fn` leads to from the containers
// `from`. Elements for which the function gives nothing are left out.
void RegisterMaps(EGraph& g, SortId from, SortId fn) {
  const ContainerKind kind = g.sort(from).container;
  const bool vec = kind == ContainerKind::kVec;
  const std::vector<SortId> signature = g.sort(fn).parameters;
  if ((!vec && kind != ContainerKind::kMultiSet) || signature.size() != 2 ||
      g.sort(from).parameters[0] != signature[0]) {
    return;
  }
  for (uint32_t s = 0; s < g.sort_count(); ++s) {
    const SortId to{s};
    if (g.sort(to).container != kind || g.sort(to).parameters[0] != signature[1]) continue;
    g.RegisterPrimitive(vec ? "unstable-vec-map" : "unstable-multiset-map", {fn, from}, to,
                        [fn, to](EGraph& e, Args a) -> Result {
                          Elements all;
                          for (Value v : Copy(e, a[1])) {
                            const Result mapped = ApplyFn(e, fn, a[0], std::span(&v, 1));
                            if (mapped) all.push_back(*mapped);
                          }
                          return e.Container(to, std::move(all));
                        });
  }
}

void RegisterMapsOf(Registrar& r) {
  for (uint32_t s = 0; s < r.g.sort_count(); ++s) {
    if (r.g.sort(SortId{s}).container == ContainerKind::kFn) RegisterMaps(r.g, r.self, SortId{s});
  }
}

void RegisterVec(Registrar& r) {
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
    Elements all = Copy(e, a[0]);
    all.push_back(a[1]);
    return std::optional(std::move(all));
  });
  r.Change("vec-pop", {r.self}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
    if (!all.empty()) all.pop_back();
    return std::optional(std::move(all));
  });
  r.Change("vec-set", {r.self, kI64, r.first}, [](EGraph& e, Args a) -> std::optional<Elements> {
    Elements all = Copy(e, a[0]);
    const std::optional<size_t> i = IndexBelow(e, a[1], all.size());
    if (!i) return std::nullopt;
    all[*i] = a[2];
    return all;
  });
  r.Change("vec-remove", {r.self, kI64}, [](EGraph& e, Args a) -> std::optional<Elements> {
    Elements all = Copy(e, a[0]);
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
      const Elements x = Copy(e, a[0]), y = Copy(e, a[1]);
      if (!e.in_action() || x.size() != y.size()) return std::nullopt;
      for (size_t i = 0; i < x.size(); ++i) e.Union(x[i], y[i]);
      return a[0];
    });
  }
  RegisterMapsOf(r);
  r.Length("vec-length", 1);
  RegisterMembership(r, "vec", false);
}

void RegisterSet(Registrar& r) {
  r.Of("set-of", {r.first}, 1);
  r.Of("set-empty", {}, 0);
  r.g.RegisterPrimitive("set-get", {r.self, kI64}, r.first, [](EGraph& e, Args a) -> Result {
    const std::optional<size_t> i = IndexBelow(e, a[1], e.Elements(a[0]).size());
    if (!i) return std::nullopt;
    return e.Elements(a[0])[*i];
  });
  r.Change("set-insert", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
    all.push_back(a[1]);
    return std::optional(std::move(all));
  });
  r.Change("set-remove", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
    std::erase(all, a[1]);
    return std::optional(std::move(all));
  });
  r.Change("set-union", {r.self, r.self}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
    const Elements more = Copy(e, a[1]);
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

// x without the elements of y, each as often as it stands there; nothing where one is missing.
std::optional<Elements> Subtract(EGraph& e, Value x, Value y) {
  const std::span<const Value> from = e.Elements(x), less = e.Elements(y);
  if (!std::includes(from.begin(), from.end(), less.begin(), less.end())) return std::nullopt;
  Elements all;
  std::set_difference(from.begin(), from.end(), less.begin(), less.end(), std::back_inserter(all));
  return all;
}

std::optional<Elements> RemoveOne(EGraph& e, Value x, Value v) {
  Elements all = Copy(e, x);
  const auto it = std::find(all.begin(), all.end(), v);
  if (it == all.end()) return std::nullopt;
  all.erase(it);
  return all;
}

void RegisterMultiSet(Registrar& r) {
  r.Of("multiset-of", {r.first}, 1);
  r.Change("multiset-single", {r.first, kI64}, [](EGraph& e, Args a) -> std::optional<Elements> {
    const int64_t count = e.AsI64(a[1]);
    if (count < 0 || static_cast<uint64_t>(count) > kMaxElements) return std::nullopt;
    return Elements(static_cast<size_t>(count), a[0]);
  });
  r.Change("multiset-insert", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
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
    Elements all = Copy(e, a[0]);
    const Elements more = Copy(e, a[1]);
    all.insert(all.end(), more.begin(), more.end());
    return std::optional(std::move(all));
  });
  r.Change("multiset-reset-counts", {r.self}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
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
                            for (Value part : Copy(e, a[0])) {
                              const Elements more = Copy(e, part);
                              all.insert(all.end(), more.begin(), more.end());
                            }
                            return e.Container(sort, std::move(all));
                          });
  }
  RegisterMapsOf(r);
  r.Length("multiset-length", 1);
  RegisterMembership(r, "multiset", true);
}

// The position of a key in the elements of a map, or their number.
size_t FindKey(std::span<const Value> all, Value key) {
  for (size_t i = 0; i < all.size(); i += 2) {
    if (all[i] == key) return i;
  }
  return all.size();
}

void RegisterMap(Registrar& r) {
  r.Of("map-of", {r.first, r.second}, 2);
  r.Of("map-empty", {}, 0);
  r.g.RegisterPrimitive("map-get", {r.self, r.first}, r.second, [](EGraph& e, Args a) -> Result {
    const std::span<const Value> all = e.Elements(a[0]);
    const size_t i = FindKey(all, a[1]);
    if (i == all.size()) return std::nullopt;
    return all[i + 1];
  });
  r.Change("map-insert", {r.self, r.first, r.second}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
    all.push_back(a[1]);
    all.push_back(a[2]);
    return std::optional(std::move(all));
  });
  r.Change("map-remove", {r.self, r.first}, [](EGraph& e, Args a) {
    Elements all = Copy(e, a[0]);
    const size_t i = FindKey(all, a[1]);
    if (i != all.size()) {
      all.erase(all.begin() + static_cast<ptrdiff_t>(i), all.begin() + static_cast<ptrdiff_t>(i + 2));
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

void RegisterPair(Registrar& r) {
  r.Of("pair", {r.first, r.second}, 0);
  r.g.RegisterPrimitive("pair-first", {r.self}, r.first,
                        [](EGraph& e, Args a) -> Result { return e.Elements(a[0])[0]; });
  r.g.RegisterPrimitive("pair-second", {r.self}, r.second,
                        [](EGraph& e, Args a) -> Result { return e.Elements(a[0])[1]; });
}

// Applies the function named in `fn` to what it has captured and then to `given`.
Result ApplyFn(EGraph& e, SortId sort, Value fn, Args given) {
  const std::vector<SortId>& signature = e.sort(sort).parameters;
  const std::span<const Value> captured = e.Elements(fn);
  const std::string& name = e.AsString(captured[0]);
  std::vector<SortId> sorts;
  std::vector<Value> args;
  for (size_t i = 1; i + 1 < captured.size(); i += 2) {
    sorts.push_back(SortId{captured[i].bits});
    args.push_back(captured[i + 1]);
  }
  sorts.insert(sorts.end(), signature.begin(), signature.end() - 1);
  args.insert(args.end(), given.begin(), given.end());
  if (args.size() > EGraph::kMaxArity) return std::nullopt;
  if (const FunctionId f = e.FindFunction(name); f.valid()) {
    const Function& function = e.function(f);
    if (function.inputs != sorts || function.output != signature.back()) return std::nullopt;
    if (function.kind == FunctionKind::kConstructor && e.in_action()) return e.Add(f, args);
    return e.Lookup(f, args);
  }
  for (uint32_t p : e.FindPrimitives(name)) {
    const Primitive& primitive = e.primitives()[p];
    if (!primitive.Takes(args.size())) continue;
    SortId any;
    const auto agrees = [&any](SortId declared, SortId actual) {
      if (declared != kAnySort) return declared == actual;
      if (!any.valid()) any = actual;
      return any == actual;
    };
    bool fits = true;
    for (size_t i = 0; i < args.size() && fits; ++i) fits = agrees(primitive.Input(i), sorts[i]);
    if (fits && agrees(primitive.output, signature.back())) return primitive.fn(e, args);
  }
  return std::nullopt;
}

void RegisterFn(EGraph& g, SortId sort) {
  // Called by the compiler alone, which knows the sorts of what is captured: name, sort, value, ….
  g.RegisterPrimitive("unstable-fn", {}, sort, [sort](EGraph& e, Args a) -> Result {
    const Value made = e.Container(sort, Elements(a.begin(), a.end()));
    if (e.ContainerDepth(made) > kMaxContainerDepth) return std::nullopt;
    return made;
  });
  const std::vector<SortId> parameters = g.sort(sort).parameters;
  std::vector<SortId> inputs{sort};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end() - 1);
  g.RegisterPrimitive("unstable-app", inputs, parameters.back(),
                      [sort](EGraph& e, Args a) { return ApplyFn(e, sort, a[0], a.subspan(1)); });
  for (uint32_t s = 0; s < g.sort_count(); ++s) RegisterMaps(g, SortId{s}, sort);
}

}  // namespace

ContainerKind ParseContainerKind(std::string_view name) {
  if (name == "Vec") return ContainerKind::kVec;
  if (name == "Set") return ContainerKind::kSet;
  if (name == "MultiSet") return ContainerKind::kMultiSet;
  if (name == "Map") return ContainerKind::kMap;
  if (name == "Pair") return ContainerKind::kPair;
  if (name == "UnstableFn") return ContainerKind::kFn;
  return ContainerKind::kNone;
}

size_t ContainerParameters(ContainerKind kind) {
  return kind == ContainerKind::kMap || kind == ContainerKind::kPair ? 2 : 1;
}

std::string_view ContainerConstructor(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::kVec:
      return "vec-of";
    case ContainerKind::kSet:
      return "set-of";
    case ContainerKind::kMultiSet:
      return "multiset-of";
    case ContainerKind::kMap:
      return "map-of";
    case ContainerKind::kPair:
      return "pair";
    case ContainerKind::kFn:
      return "unstable-fn";
    case ContainerKind::kNone:
      break;
  }
  return "";
}

void NormalizeElements(ContainerKind kind, std::vector<Value>* elements) {
  switch (kind) {
    case ContainerKind::kSet:
      std::sort(elements->begin(), elements->end());
      elements->erase(std::unique(elements->begin(), elements->end()), elements->end());
      return;
    case ContainerKind::kMultiSet:
      std::sort(elements->begin(), elements->end());
      return;
    case ContainerKind::kMap: {
      std::vector<std::pair<Value, Value>> entries;
      for (size_t i = 0; i + 1 < elements->size(); i += 2) {
        entries.emplace_back((*elements)[i], (*elements)[i + 1]);
      }
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      elements->clear();
      for (size_t i = 0; i < entries.size(); ++i) {
        if (i + 1 < entries.size() && entries[i + 1].first == entries[i].first) continue;
        elements->push_back(entries[i].first);
        elements->push_back(entries[i].second);
      }
      return;
    }
    case ContainerKind::kVec:
    case ContainerKind::kPair:
    case ContainerKind::kFn:
    case ContainerKind::kNone:
      return;
  }
}

void RegisterContainerPrimitives(EGraph& graph, SortId sort) {
  const Sort& s = graph.sort(sort);
  Registrar r{graph, sort, s.parameters.front(), s.parameters.back()};
  switch (s.container) {
    case ContainerKind::kVec:
      return RegisterVec(r);
    case ContainerKind::kSet:
      return RegisterSet(r);
    case ContainerKind::kMultiSet:
      return RegisterMultiSet(r);
    case ContainerKind::kMap:
      return RegisterMap(r);
    case ContainerKind::kPair:
      return RegisterPair(r);
    case ContainerKind::kFn:
      return RegisterFn(graph, sort);
    case ContainerKind::kNone:
      return;
  }
}

Value ContainerPool::Intern(SortId sort, std::span<const Value> elements, uint32_t depth) {
  if ((entries_.size() + 1) * 2 > slots_.size()) Fill(std::max<size_t>(16, slots_.size() * 2));
  const uint32_t hash = HashElements(sort, elements);
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && entry.sort == sort && entry.size == elements.size() &&
        std::equal(elements.begin(), elements.end(), elements_.begin() + static_cast<ptrdiff_t>(entry.begin))) {
      return Value{slots_[slot] - 1};
    }
  }
  Entry entry;
  entry.begin = elements_.size();
  entry.size = static_cast<uint32_t>(elements.size());
  entry.hash = hash;
  entry.depth = depth;
  entry.sort = sort;
  elements_.insert(elements_.end(), elements.begin(), elements.end());
  entries_.push_back(entry);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  return Value{slots_[slot] - 1};
}

void ContainerPool::Fill(size_t slots) {
  slots_.assign(slots, 0);
  const size_t mask = slots_.size() - 1;
  for (uint32_t e = 0; e < entries_.size(); ++e) {
    size_t slot = entries_[e].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = e + 1;
  }
}

void ContainerPool::Rewind(const Mark& mark) {
  const size_t mask = slots_.size() - 1;
  if (slots_.size() == mark.slots) {
    // The latest entry was the last to enter a run of full slots: none behind it moves up.
    for (size_t e = entries_.size(); e-- > mark.entries;) {
      size_t slot = entries_[e].hash & mask;
      while (slots_[slot] != e + 1) slot = (slot + 1) & mask;
      slots_[slot] = 0;
    }
  }
  entries_.resize(mark.entries);
  elements_.resize(mark.elements);
  if (slots_.size() != mark.slots) Fill(mark.slots);
}

}  // namespace l3c::egraph
