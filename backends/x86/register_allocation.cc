#include "backends/x86/register_allocation.h"

#include <algorithm>

namespace l3c::x86 {
namespace {

using l0::BlockId;
using l0::ControlInstruction;
using l0::ControlOp;
using l0::Operand;

struct Interval {
  size_t value = 0;
  int64_t begin = -1, end = -1;
};

}  // namespace

Allocation AllocateRegisters(const l0::ControlUnit& unit, int registers) {
  const size_t blocks = unit.blocks.size();
  Allocation allocation;
  allocation.places.resize(unit.registers);
  allocation.uses.assign(unit.registers, 0);

  // Positions in the order of the text: instruction n reads at 2n and writes at 2n + 1, so that a
  // result may take the place of an operand that is read for the last time.
  std::vector<int64_t> first(blocks + 1, 0);
  std::vector<std::vector<BlockId>> predecessors(blocks);
  std::vector<Interval> intervals(unit.registers);
  std::vector<BlockId> home(unit.registers, 0);
  for (size_t b = 0; b < blocks; ++b) {
    const auto& instructions = unit.blocks[b].instructions;
    first[b + 1] = first[b] + static_cast<int64_t>(instructions.size());
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (!HasResult(instructions[i].op)) continue;
      const int64_t at = 2 * (first[b] + static_cast<int64_t>(i)) + 1;
      intervals[instructions[i].result] = {instructions[i].result, at, at};
      home[instructions[i].result] = static_cast<BlockId>(b);
    }
    const ControlInstruction& last = instructions.back();
    const auto from = static_cast<BlockId>(b);
    if (last.op == ControlOp::kJump || last.op == ControlOp::kBranch) {
      predecessors[last.target].push_back(from);
    }
    if (last.op == ControlOp::kBranch) predecessors[last.otherwise].push_back(from);
  }
  // A value is alive at the entry of every block from which a use is reached without passing its
  // home; seen[b] says for which value block b was last found to be so.
  std::vector<size_t> seen(blocks, SIZE_MAX);
  std::vector<std::vector<std::pair<BlockId, int64_t>>> reads(unit.registers);
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t i = 0; i < unit.blocks[b].instructions.size(); ++i) {
      for (const Operand& operand : Reads(unit.blocks[b].instructions[i])) {
        if (operand.immediate) continue;
        const auto value = static_cast<size_t>(operand.value);
        ++allocation.uses[value];
        reads[value].emplace_back(static_cast<BlockId>(b),
                                  2 * (first[b] + static_cast<int64_t>(i)));
      }
    }
  }
  std::vector<BlockId> work;
  for (size_t value = 0; value < reads.size(); ++value) {
    Interval& interval = intervals[value];
    const auto cover = [&](int64_t at) {
      interval.begin = std::min(interval.begin, at);
      interval.end = std::max(interval.end, at);
    };
    const auto enter = [&](BlockId block) {
      if (seen[block] == value) return;
      seen[block] = value;
      work.push_back(block);
    };
    for (const auto& [block, at] : reads[value]) {
      cover(at);
      if (block != home[value]) enter(block);
    }
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      cover(2 * first[block]);
      for (BlockId before : predecessors[block]) {
        cover(2 * first[before + 1] - 1);
        if (before != home[value]) enter(before);
      }
    }
  }

  std::vector<Interval> order;
  for (const Interval& interval : intervals) {
    if (interval.begin >= 0) order.push_back(interval);
  }
  std::sort(order.begin(), order.end(), [](const Interval& x, const Interval& y) {
    return std::pair(x.begin, x.value) < std::pair(y.begin, y.value);
  });
  std::vector<Interval> active;
  std::vector<bool> taken(static_cast<size_t>(registers), false);
  for (const Interval& interval : order) {
    std::erase_if(active, [&](const Interval& other) {
      if (other.end >= interval.begin) return false;
      taken[static_cast<size_t>(allocation.places[other.value].reg)] = false;
      return true;
    });
    const auto free = std::find(taken.begin(), taken.end(), false);
    if (free != taken.end()) {
      *free = true;
      allocation.places[interval.value].reg = static_cast<int>(free - taken.begin());
      active.push_back(interval);
      continue;
    }
    // The one that lives longest goes to the stack.
    auto longest =
        std::max_element(active.begin(), active.end(),
                         [](const Interval& x, const Interval& y) { return x.end < y.end; });
    if (longest->end > interval.end) {
      allocation.places[interval.value].reg = allocation.places[longest->value].reg;
      allocation.places[longest->value] = {-1, allocation.slots++};
      *longest = interval;
    } else {
      allocation.places[interval.value] = {-1, allocation.slots++};
    }
  }
  return allocation;
}

}  // namespace l3c::x86
