// Blocks that a step repeats, such as the layers of a deep network: searched once, stamped out.
//
// A block is what belongs to one of n copies wherever it stands in the step: its part of the
// forward pass, of the backward pass, of the updates, and its state. Copies are equal but for names
// and for which copy they read: the same ops, shapes and constants in the same order, operands in
// the same place of the same copy, of a neighbouring one, or outside of all. Nothing outside reads
// a copy. What the first and the last copy read instead of a neighbour's is a copy too, as far as
// it goes.
//
// One of them is searched for all, between what is before and behind (step_parts.h).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "layers/l0/lower/step.h"

namespace l3c::l0::lower {

struct RepeatedBlocks {
  static constexpr tensor::NodeId kNone = ~tensor::NodeId{0};
  static constexpr int64_t kNoCopy = std::numeric_limits<int64_t>::min();

  int64_t left_out = 0;  // copies that the first speaks for besides itself; 1 or more
  uint64_t left_out_nodes = 0;

  // By node of the step: its copy, where those from 0 to left_out are the equal ones and others
  // are there in part; kNoCopy outside of all.
  std::vector<int64_t> copy;
  // By node of the step: the same one copy later and one copy earlier, or kNone.
  std::vector<tensor::NodeId> later;
  std::vector<tensor::NodeId> earlier;
  std::map<uint32_t, uint32_t> later_state;  // by state
  std::map<uint32_t, uint32_t> earlier_state;

  // The node `copies` copies later, earlier where negative; kNone where there is no such copy.
  tensor::NodeId Shift(tensor::NodeId node, int64_t copies) const;
  std::optional<uint32_t> ShiftState(uint32_t state, int64_t copies) const;
};

// Nothing where no three copies are there of anything that is worth it.
std::optional<RepeatedBlocks> FindRepeatedBlocks(const Step& step);

}  // namespace l3c::l0::lower
