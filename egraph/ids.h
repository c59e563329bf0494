// The 32-bit names of everything in an e-graph.
//
// A Value is a cell of a table. What its bits mean depends on the sort of the column it stands in:
// the id of an e-class for an equality sort, an interned (or inline) literal for a base sort. The
// sort is never stored with the value, so two values are comparable only within one sort.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <utility>

namespace l3c::egraph {

struct Value {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t bits = kNone;

  bool valid() const { return bits != kNone; }
  friend auto operator<=>(const Value&, const Value&) = default;
  template <typename H>
  friend H AbslHashValue(H h, Value v) {
    return H::combine(std::move(h), v.bits);
  }
};

// A dense index with a type of its own; the default one names nothing.
template <typename Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t index = kNone;

  bool valid() const { return index != kNone; }
  friend auto operator<=>(const Id&, const Id&) = default;
  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.index);
  }
};

using SortId = Id<struct SortTag>;
using FunctionId = Id<struct FunctionTag>;
using RuleId = Id<struct RuleTag>;
using RulesetId = Id<struct RulesetTag>;
using SchedulerId = Id<struct SchedulerTag>;

// The base sorts, declared in every e-graph.
inline constexpr SortId kUnit{0};
inline constexpr SortId kBool{1};
inline constexpr SortId kI64{2};
inline constexpr SortId kF64{3};
inline constexpr SortId kString{4};
inline constexpr SortId kBigInt{5};
inline constexpr SortId kBigRat{6};
inline constexpr SortId kRational{7};
// In the signature of a primitive only: any sort, the same one wherever it stands.
inline constexpr SortId kAnySort{0xfffffffeu};

// Provenance that is no rule: what the caller added, and what congruence concluded.
inline constexpr RuleId kInitial{0};
inline constexpr RuleId kCongruence{1};

// The ruleset of rules that name none.
inline constexpr RulesetId kDefaultRuleset{0};

}  // namespace l3c::egraph
