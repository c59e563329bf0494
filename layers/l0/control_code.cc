#include "layers/l0/control_code.h"

#include <algorithm>

namespace l3c::l0 {
namespace {

int64_t Push(void* host, int64_t queue, int64_t descriptor) {
  return static_cast<ControlHost*>(host)->Push(static_cast<RegionId>(queue), descriptor) ? 1 : 0;
}

int64_t Pop(void* host, int64_t queue, int64_t* entry) {
  const std::optional<int64_t> popped =
      static_cast<ControlHost*>(host)->Pop(static_cast<RegionId>(queue));
  if (popped) *entry = *popped;
  return popped.has_value() ? 1 : 0;
}

bool TouchesQueue(const ControlBlock& block) {
  return std::any_of(block.instructions.begin(), block.instructions.end(),
                     [](const ControlInstruction& instruction) {
                       return instruction.op == ControlOp::kQueuePush ||
                              instruction.op == ControlOp::kQueuePop;
                     });
}

}  // namespace

ControlOutcome RunControlCode(ControlFn code, std::span<const RegionBytes> regions,
                              ControlHost& host) {
  ControlFrame frame;
  frame.host = &host;
  frame.push = Push;
  frame.pop = Pop;
  for (size_t r = 0; r < regions.size(); ++r) frame.regions[r] = regions[r].data();
  code(&frame);
  return {static_cast<ControlEnd>(frame.end), static_cast<BlockId>(frame.block),
          static_cast<uint32_t>(frame.instruction), frame.stop_seen != 0};
}

std::vector<bool> IdleLoopBlocks(const ControlUnit& unit) {
  // Blocks without queue operations that are left when those that cannot be on a loop of such
  // blocks are taken away: first those that no other leads to, then those that lead to no other.
  const size_t n = unit.blocks.size();
  std::vector<bool> idle(n);
  for (size_t b = 0; b < n; ++b) idle[b] = !TouchesQueue(unit.blocks[b]);
  const auto peel = [&](bool forward) {
    std::vector<std::vector<BlockId>> next(n);
    std::vector<size_t> before(n, 0);
    for (size_t b = 0; b < n; ++b) {
      if (!idle[b]) continue;
      const ControlInstruction& last = unit.blocks[b].instructions.back();
      const auto add = [&](BlockId to) {
        if (!idle[to]) return;
        const auto from = static_cast<BlockId>(b);
        next[forward ? from : to].push_back(forward ? to : from);
        ++before[forward ? to : from];
      };
      if (last.op == ControlOp::kJump || last.op == ControlOp::kBranch) add(last.target);
      if (last.op == ControlOp::kBranch) add(last.otherwise);
    }
    std::vector<BlockId> work;
    for (size_t b = 0; b < n; ++b) {
      if (idle[b] && before[b] == 0) work.push_back(static_cast<BlockId>(b));
    }
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      idle[block] = false;
      for (BlockId to : next[block]) {
        if (--before[to] == 0) work.push_back(to);
      }
    }
  };
  peel(/*forward=*/true);
  peel(/*forward=*/false);
  return idle;
}

}  // namespace l3c::l0
