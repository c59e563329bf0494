// The hash of the engine's own tables.
//
// Multiplicative, with a fixed multiplier (2^64 / golden ratio): same input, same layout.
#pragma once

#include <bit>
#include <cstdint>

namespace l3c::egraph {

// Of a sequence: from 0, with each of its values in turn.
inline uint64_t Mix(uint64_t hash, uint64_t x) {
  return (std::rotl(hash, 23) ^ x) * 0x9e3779b97f4a7c15u;
}
// Where 32 bits are enough.
inline uint32_t Fold(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace l3c::egraph
