// A plan's pools, one behind the other in one allocation, each aligned to a page and zeroed.
// Nothing else of the run's data lives elsewhere, and nothing is allocated while it goes on.
//
// Where they take a megabyte or more they lie on huge pages to the last byte: down the columns of a
// wide matrix every row is on a small page of its own, and the processor keeps the addresses of
// fewer pages than that.
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
  Memory() = default;

  void* mapped_ = nullptr;
  size_t size_ = 0;  // of what is mapped
  std::vector<std::byte*> addresses_;
};

}  // namespace l3c::runtime
