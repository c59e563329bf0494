// Blocks that a step repeats, such as the layers of a deep network: searched once, stamped out.
//
// A block is what belongs to one of n copies wherever it stands in the step: its part of the
// forward pass, of the backward pass, of the updates, and its state. Copies are equal but for names
// and for which copy they read: the same ops, shapes and constants in the same order, operands in
// the same place of the same copy, of a neighbouring one, or outside of all. Nothing outside reads
// a copy. What the first and the last copy read instead of a neighbour's is a copy too, as far as
// it goes.
//
// The step that is searched in their place has one of the copies between the parts before and
// after, so that it is searched beside what it is beside. What is chosen for it holds for all
// copies, and its costs count as often (Step::blocks).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "layers/l0/lower/step.h"

namespace l3c::l0::lower {

struct RepeatedBlocks {
  static constexpr int32_t kFirst = 0;   // what is there of the copy before the first
  static constexpr int32_t kMiddle = 1;  // the first
  static constexpr int32_t kLast = 2;    // what is there of the copy after the last
  static constexpr tensor::NodeId kNone = ~tensor::NodeId{0};

  Step step;             // `blocks` says which node belongs to which of the three
  int64_t left_out = 0;  // copies that the middle one speaks for besides itself; 1 or more
  uint64_t left_out_nodes = 0;

  std::vector<tensor::NodeId> origin;   // by node of `step`: the node of the whole step
  std::vector<tensor::NodeId> outline;  // the other way; kNone where it is left out
  // By node of the whole step: the same one copy later and one copy earlier, or kNone.
  std::vector<tensor::NodeId> later;
  std::vector<tensor::NodeId> earlier;
  std::map<uint32_t, uint32_t> later_state;  // by state
  std::map<uint32_t, uint32_t> earlier_state;
  std::map<uint32_t, int32_t> block_of_state;  // of states of `step` that belong to a copy
  std::vector<size_t> inputs;                  // by input of `step`: that of the whole step
  std::vector<size_t> outputs;

  // The node `copies` copies later, earlier where negative; kNone where there is no such copy.
  tensor::NodeId Shift(tensor::NodeId node, int64_t copies) const;
  std::optional<uint32_t> ShiftState(uint32_t state, int64_t copies) const;
};

// Nothing where no three copies are there of anything that is worth it.
std::optional<RepeatedBlocks> FindRepeatedBlocks(const Step& step);

}  // namespace l3c::l0::lower
