#include "layers/l1/init.h"

#include <cmath>

#include "layers/tensor/philox.h"

namespace l3c::l1 {

uint64_t StateKey(std::string_view actor, std::string_view field) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](std::string_view text) {
    for (const char c : text) {
      hash ^= static_cast<unsigned char>(c);
      hash *= 0x100000001b3;
    }
  };
  mix(actor);
  mix(".");
  mix(field);
  return hash;
}

std::string_view NameForState(const Actor& actor) {
  return actor.replicates.empty() ? actor.name : actor.replicates;
}

InitDistribution DistributionOf(const StateField& field) {
  switch (field.init) {
    case InitKind::kZeros:
      return {InitKind::kConstant, 0, 0};
    case InitKind::kOnes:
      return {InitKind::kConstant, 1, 0};
    case InitKind::kConstant:
      return {InitKind::kConstant, field.a, 0};
    case InitKind::kNormal:
      return {InitKind::kNormal, 0, field.a};
    case InitKind::kUniform:
      return {InitKind::kUniform, -field.a, field.a};
    case InitKind::kKaiming: {
      double fan_in = 1;
      for (size_t i = 0; i + 1 < field.shape.size(); ++i) {
        fan_in *= static_cast<double>(field.shape[i]);
      }
      return {InitKind::kNormal, 0, static_cast<double>(static_cast<float>(std::sqrt(2 / fan_in)))};
    }
  }
  return {};
}

std::vector<double> InitialValues(const StateField& field, std::string_view actor, uint64_t seed) {
  const InitDistribution init = DistributionOf(field);
  const size_t count = static_cast<size_t>(tensor::NumElements(field.shape));
  if (init.kind == InitKind::kConstant) return std::vector<double>(count, init.a);
  std::vector<float> values(count);
  const uint64_t key = StateKey(actor, field.name);
  if (init.kind == InitKind::kNormal) {
    tensor::FillNormal(seed, key, static_cast<float>(init.a), static_cast<float>(init.b), values);
  } else {
    tensor::FillUniform(seed, key, static_cast<float>(init.a), static_cast<float>(init.b), values);
  }
  return {values.begin(), values.end()};
}

}  // namespace l3c::l1
