// How far a rule may move a floating-point result.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace l3c::egraph {

// Ordered: a graph that admits a class admits every class before it.
enum class Numerics : uint8_t {
  kExact,    // bit for bit
  kReassoc,  // another association order, accumulators of the same precision
  kFast,     // approximate, within the bound that the rule states
};

std::string_view NumericsName(Numerics numerics);  // "exact", "reassoc", "fast"
std::optional<Numerics> ParseNumerics(std::string_view name);

}  // namespace l3c::egraph
