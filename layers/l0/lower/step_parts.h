// A step cut into parts that are searched by themselves: a block that it repeats, and what is
// around.
//
// A part is a step: what it takes of other parts is given in memory, like a batch, and what others
// take of it is stored, like a report. Its text says nothing of the rest of the program: names are
// places (PlaceName) and states are numbered by the part. So the same part of another program, or
// of this one with another loss, is the same step, and its plan is there already (step_cache.h).
//
// No part can wait for one that waits for it: what parts hand over has an order (StepInput::order),
// that of the whole step, and what a part hands over early is made without what it is given late.
//
// What follows from constants and single numbers of the state alone, such as a rate of learning, is
// in every part that needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/lower/repeated_blocks.h"
#include "layers/l0/lower/step.h"

namespace l3c::l0::lower {

struct StepPart {
  std::string name;                    // of this step's parts: "block", "before", "after"
  Step step;                           // named kStepName
  std::vector<tensor::NodeId> origin;  // by node: that of the whole step, in the first copy
  // By number of a state: that of the whole step, in the first copy; and whether each copy has one.
  std::vector<uint32_t> states;
  std::vector<bool> state_is_copied;
  int64_t copies = 1;           // that it is the plan of
  std::vector<size_t> outputs;  // by output, behind those that are handed over: that of the step
};

struct StepParts {
  RepeatedBlocks blocks;
  std::vector<StepPart> parts;

  // Of the whole step: the place of a part's node, and its state, in a copy of the part. Nothing
  // where that copy has none.
  std::optional<tensor::NodeId> NodeOf(const StepPart& part, tensor::NodeId node,
                                       int64_t copy) const;
  std::optional<uint32_t> StateOf(const StepPart& part, uint32_t state, int64_t copy) const;
};

// Nothing where the step repeats no blocks.
std::optional<StepParts> CutStep(const Step& step);

inline constexpr std::string_view kStepName = "__step__";
inline constexpr std::string_view kMadeName = "__made__";

// The name of a part's node, and of the first that stands in a text.
std::string PlaceName(tensor::NodeId node);
std::optional<tensor::NodeId> FirstPlace(std::string_view text);

// A text of a part's plan with the names of the whole step in place of the part's.
std::string Spell(std::string_view text, const StepParts& parts, const StepPart& part, int64_t copy,
                  const Step& whole);

}  // namespace l3c::l0::lower
