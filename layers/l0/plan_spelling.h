// The words of a plan's text that stand for one of a few things.
#pragma once

#include <string>
#include <string_view>

#include "layers/l0/plan.h"

namespace l3c::l0 {

struct Spelling {
  std::string_view word;
  int value;
};
inline constexpr Spelling kPoolKinds[] = {{"persistent", static_cast<int>(PoolKind::kPersistent)},
                                          {"arena", static_cast<int>(PoolKind::kArena)},
                                          {"staging", static_cast<int>(PoolKind::kStaging)},
                                          {"window", static_cast<int>(PoolKind::kWindow)},
                                          {"exchange", static_cast<int>(PoolKind::kExchange)}};
inline constexpr Spelling kStreamKinds[] = {{"loader", static_cast<int>(StreamKind::kLoader)},
                                            {"compute", static_cast<int>(StreamKind::kCompute)},
                                            {"host", static_cast<int>(StreamKind::kHost)},
                                            {"transfer", static_cast<int>(StreamKind::kTransfer)}};
inline constexpr Spelling kSampleKinds[] = {
    {"epoch_shuffle", static_cast<int>(SampleKind::kEpochShuffle)},
    {"sequential", static_cast<int>(SampleKind::kSequential)},
    {"replay", static_cast<int>(SampleKind::kReplay)}};
inline constexpr Spelling kInitKinds[] = {{"zeros", static_cast<int>(InitKind::kZeros)},
                                          {"constant", static_cast<int>(InitKind::kConstant)},
                                          {"normal", static_cast<int>(InitKind::kNormal)},
                                          {"uniform", static_cast<int>(InitKind::kUniform)}};

template <size_t N, class E>
std::string Spell(const Spelling (&table)[N], E value) {
  for (const Spelling& entry : table) {
    if (entry.value == static_cast<int>(value)) return std::string(entry.word);
  }
  return {};
}

}  // namespace l3c::l0
