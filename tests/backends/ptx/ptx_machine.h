// Runs PTX: all threads of all blocks of a grid, one block after the other, and watches what they
// do. After the PTX ISA and its memory consistency model; not after whoever emits the text.
//
// What it reports, as "thread 3 of block 0, line 41 (ld.shared.f32 …): …":
//   - two threads that touch one byte of shared or global memory, one of them writing, without a
//     barrier between them; between blocks nothing orders them
//   - reads of registers, shared memory or output that nothing has written
//   - accesses outside of a buffer or of the shared variable, and misaligned ones
//   - barriers that not all threads of a block reach, and shuffles that not all members reach or
//     that read from a lane that is no member
//   - a thread that never ends
//   - instructions that it does not know
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tests/backends/ptx/ptx_module.h"

namespace l3c::testing {

struct PtxBuffer {
  std::byte* data = nullptr;
  size_t bytes = 0;
  bool written = true;  // has contents when the kernel starts
};

struct PtxLimits {
  int64_t steps = 200'000'000;  // of one block
};

// The first fault; nothing where all went well.
std::optional<std::string> RunPtx(const PtxModule& module, std::span<const PtxBuffer> buffers,
                                  int64_t grid, const PtxLimits& limits = {});

}  // namespace l3c::testing
