// A plan's pools: one allocation each, of the plan's size, aligned to a page and zeroed. Nothing
// else of the run's data lives elsewhere, and nothing is allocated while it goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"

namespace l3c::runtime {

// What may still be allocated, by the kernel's own estimate and the control group's limit.
int64_t AvailableBytes();

class Memory {
 public:
  // ResourceExhausted, with the figures, when the machine (or the container) has not enough.
  static absl::StatusOr<Memory> Allocate(const l0::Plan& plan);

  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;
  ~Memory();

  std::byte* Address(l0::BufferId buffer) const { return addresses_[buffer]; }

 private:
  struct Mapping {
    void* base = nullptr;
    size_t size = 0;
  };
  Memory() = default;

  std::vector<Mapping> pools_;
  std::vector<std::byte*> addresses_;
};

}  // namespace l3c::runtime
