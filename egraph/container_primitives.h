// How the primitives of containers are registered: a file for each group of kinds.
//
// Every container sort has primitives of its own; those over function values are registered when
// the second of the two sorts is declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egraph/containers.h"
#include "egraph/egraph.h"

namespace l3c::egraph {

// A primitive does not build containers larger than this; it gives nothing instead.
inline constexpr size_t kMaxElements = size_t{1} << 20;

// A container of `sort`, or nothing where it is too large or nests too deep.
std::optional<Value> MadeContainer(EGraph& e, SortId sort, std::vector<Value> elements);

// One container sort: its sorts at hand, and registration under short signatures.
struct ContainerRegistrar {
  using Args = std::span<const Value>;
  using Result = std::optional<Value>;
  using Elements = std::vector<Value>;

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
          return elements ? MadeContainer(e, sort, std::move(*elements)) : std::nullopt;
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
        name, std::move(inputs),
        [](EGraph&, Args a) { return std::optional(Elements(a.begin(), a.end())); }, repeated);
  }
};

// Copies are taken where interning may move the pool.
std::vector<Value> CopyElements(EGraph& e, Value container);
// The index in argument `v`, where it is one below `size`.
std::optional<size_t> IndexBelow(EGraph& e, Value v, size_t size);
// PREFIX-contains and PREFIX-not-contains; with `swapped_too` also with their arguments swapped.
void RegisterMembership(ContainerRegistrar& r, const std::string& prefix, bool swapped_too);

void RegisterVec(ContainerRegistrar& r);
void RegisterSet(ContainerRegistrar& r);
void RegisterMultiSet(ContainerRegistrar& r);
void RegisterMap(ContainerRegistrar& r);
void RegisterPair(ContainerRegistrar& r);
// A sort of functions: making and applying them.
void RegisterFn(EGraph& graph, SortId sort);
// The primitives that apply functions to the elements of containers, for all the sorts that
// `added`, just declared, completes: a sort of functions, and the containers it goes from and to.
void RegisterHigherOrder(EGraph& graph, SortId added);

// Applies the function value `fn` of sort `sort` to what it has captured and then to `given`.
// Tables are looked up; a constructor's e-node is added where actions run.
std::optional<Value> ApplyFn(EGraph& graph, SortId sort, Value fn, std::span<const Value> given);

}  // namespace l3c::egraph
