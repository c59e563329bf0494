// Function values, and the primitives that apply them to the elements of containers.
#include "egraph/container_primitives.h"

#include <utility>

namespace l3c::egraph {

namespace {

using Args = std::span<const Value>;
using Result = std::optional<Value>;
using Elements = std::vector<Value>;

}  // namespace

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
}

namespace {

bool IsContainerOf(const EGraph& g, SortId sort, ContainerKind kind, SortId element) {
  const Sort& s = g.sort(sort);
  return s.container == kind && s.parameters[0] == element;
}

// Elements for which the function gives nothing are left out.
void RegisterElementwise(EGraph& g, std::string_view name, SortId fn, SortId from, SortId to) {
  g.RegisterPrimitive(name, {fn, from}, to, [fn, to](EGraph& e, Args a) -> Result {
    Elements all;
    for (Value v : CopyElements(e, a[1])) {
      const Result mapped = ApplyFn(e, fn, a[0], std::span(&v, 1));
      if (mapped) all.push_back(*mapped);
    }
    return MadeContainer(e, to, std::move(all));
  });
}

// The elements for which a premise holds, or does not hold.
void RegisterFilter(EGraph& g, std::string_view name, SortId fn, SortId from, bool holds) {
  g.RegisterPrimitive(name, {fn, from}, from, [fn, from, holds](EGraph& e, Args a) -> Result {
    Elements all;
    for (Value v : CopyElements(e, a[1])) {
      if (ApplyFn(e, fn, a[0], std::span(&v, 1)).has_value() == holds) all.push_back(v);
    }
    return MadeContainer(e, from, std::move(all));
  });
}

// Every element is replaced by the elements of what the function gives for it, if anything.
void RegisterFlatMap(EGraph& g, SortId fn, SortId from) {
  g.RegisterPrimitive("unstable-multiset-flat-map", {fn, from}, from,
                      [fn, from](EGraph& e, Args a) -> Result {
                        Elements all;
                        for (Value v : CopyElements(e, a[1])) {
                          const Result mapped = ApplyFn(e, fn, a[0], std::span(&v, 1));
                          const Elements more = mapped ? CopyElements(e, *mapped) : Elements{v};
                          if (all.size() + more.size() > kMaxElements) return std::nullopt;
                          all.insert(all.end(), more.begin(), more.end());
                        }
                        return MadeContainer(e, from, std::move(all));
                      });
}

// f(f(f(a, b), c), …); the value given where there are no elements.
void RegisterReduce(EGraph& g, SortId fn, SortId from) {
  const SortId element = g.sort(from).parameters[0];
  g.RegisterPrimitive("unstable-multiset-reduce", {fn, element, from}, element,
                      [fn](EGraph& e, Args a) -> Result {
                        const Elements all = CopyElements(e, a[2]);
                        if (all.empty()) return a[1];
                        Result reduced = all[0];
                        for (size_t i = 1; i < all.size() && reduced; ++i) {
                          const Value pair[] = {*reduced, all[i]};
                          reduced = ApplyFn(e, fn, a[0], pair);
                        }
                        return reduced;
                      });
}

// The function that an index is kept in: named, nothing captured, and declared with values.
FunctionId IndexFunction(const EGraph& e, SortId fn, Value value) {
  const std::vector<SortId>& signature = e.sort(fn).parameters;
  if (e.Elements(value).size() != 1) return {};
  const FunctionId f = e.FindFunction(e.AsString(e.Elements(value)[0]));
  if (!f.valid()) return {};
  const Function& function = e.function(f);
  const bool fits = function.kind == FunctionKind::kFunction && function.output == kI64 &&
                    function.inputs.size() == 2 && function.inputs[0] == signature[0] &&
                    function.inputs[1] == signature[1];
  return fits ? f : FunctionId{};
}

// Writes how often each element is in the multiset into f(multiset, element), or takes that out. An
// index is written as a whole, so one that has a row already is left as it is.
void RegisterIndex(EGraph& g, SortId fn, SortId from) {
  g.RegisterPrimitive("unstable-multiset-fill-index", {from, fn}, kUnit,
                      [fn](EGraph& e, Args a) -> Result {
                        const FunctionId f = IndexFunction(e, fn, a[1]);
                        if (!e.in_action() || !f.valid()) return std::nullopt;
                        const Elements all = CopyElements(e, a[0]);
                        for (Value v : all) {
                          if (e.Lookup(f, {a[0], v})) return e.Unit();
                        }
                        for (size_t i = 0, end; i < all.size(); i = end) {
                          for (end = i; end < all.size() && all[end] == all[i]; ++end) {
                          }
                          e.Set(f, {a[0], all[i]}, e.I64(static_cast<int64_t>(end - i)));
                        }
                        return e.Unit();
                      });
  g.RegisterPrimitive("unstable-multiset-clear-index", {from, fn}, kUnit,
                      [fn](EGraph& e, Args a) -> Result {
                        const FunctionId f = IndexFunction(e, fn, a[1]);
                        if (!e.in_action() || !f.valid()) return std::nullopt;
                        for (Value v : CopyElements(e, a[0])) {
                          const Value row[] = {a[0], v};
                          e.Remove(f, row);
                        }
                        return e.Unit();
                      });
}

// A function of one argument and the containers that it goes from and to.
void RegisterUnary(EGraph& g, SortId fn, SortId from, SortId added) {
  const SortId input = g.sort(fn).parameters[0], output = g.sort(fn).parameters[1];
  const ContainerKind kind = g.sort(from).container;
  const bool multiset = kind == ContainerKind::kMultiSet;
  if ((!multiset && kind != ContainerKind::kVec) || !IsContainerOf(g, from, kind, input)) return;
  for (uint32_t s = 0; s < g.sort_count(); ++s) {
    const SortId to{s};
    if (added != fn && added != from && added != to) continue;
    if (!IsContainerOf(g, to, kind, output)) continue;
    RegisterElementwise(g, multiset ? "unstable-multiset-map" : "unstable-vec-map", fn, from, to);
  }
  if (!multiset || (added != fn && added != from)) return;
  if (output == kUnit) {
    RegisterFilter(g, "unstable-multiset-filter", fn, from, true);
    RegisterFilter(g, "unstable-multiset-filter-not", fn, from, false);
  }
  if (output == from) RegisterFlatMap(g, fn, from);
}

void RegisterBinary(EGraph& g, SortId fn, SortId from) {
  const std::vector<SortId> signature = g.sort(fn).parameters;
  if (g.sort(from).container != ContainerKind::kMultiSet) return;
  const SortId element = g.sort(from).parameters[0];
  if (signature == std::vector{element, element, element}) RegisterReduce(g, fn, from);
  if (signature == std::vector{from, element, kI64}) RegisterIndex(g, fn, from);
}

}  // namespace

void RegisterHigherOrder(EGraph& g, SortId added) {
  const bool is_fn = g.sort(added).container == ContainerKind::kFn;
  for (uint32_t f = 0; f < g.sort_count(); ++f) {
    const SortId fn{f};
    if (g.sort(fn).container != ContainerKind::kFn || (is_fn && fn != added)) continue;
    const size_t parameters = g.sort(fn).parameters.size();
    if (parameters == 3 && !is_fn) RegisterBinary(g, fn, added);
    for (uint32_t s = 0; s < g.sort_count(); ++s) {
      if (parameters == 2) RegisterUnary(g, fn, SortId{s}, added);
      if (parameters == 3 && is_fn) RegisterBinary(g, fn, SortId{s});
    }
  }
}

}  // namespace l3c::egraph
