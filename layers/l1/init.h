// The values of actor state before the first step. Lowering to L0 and the L1 interpreter both take
// keys and figures from here, so that they start from the same bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "layers/l1/ir.h"

namespace l3c::l1 {

// The Philox stream of a state field under the run's seed: 64-bit FNV-1a of "actor.field". It
// depends on the names alone, so that adding a layer leaves the others' weights as they were.
uint64_t StateKey(std::string_view actor, std::string_view field);
// By whose name an actor's state is drawn: its own, or that of the one that it replicates.
std::string_view NameForState(const Actor& actor);

// A field's initial distribution with every figure known.
//   kZeros, kOnes, kConstant: all elements are `a`
//   kNormal (and kKaiming):   mean `a`, standard deviation `b`
//   kUniform:                 in [`a`, `b`)
struct InitDistribution {
  InitKind kind = InitKind::kZeros;  // kConstant, kNormal or kUniform
  double a = 0;
  double b = 0;
};
// kaiming is normal with standard deviation sqrt(2 / fan_in) (He, Zhang, Ren and Sun, ICCV 2015),
// rounded to f32; the fan-in is the product of the extents but the last, 1 for a vector.
InitDistribution DistributionOf(const StateField& field);

// All elements, row-major, as f32 holds them. Integer state is given by its value.
std::vector<double> InitialValues(const StateField& field, std::string_view actor, uint64_t seed);

}  // namespace l3c::l1
