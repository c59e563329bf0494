// The memory of a step beside its state and its batch: which bytes each result lies in, and when.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "layers/l0/lower/memory_plan.h"
#include "layers/l0/lower/step_plan.h"
#include "layers/l0/lower/values.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::l0::lower {

struct Arena {
  // Positions: launch i at i, then the copies, then the reports all at once. Offsets are those in
  // the memory that the value lies in (Value::memory).
  std::map<Storage, Slot> slots;
  std::map<uint32_t, Packing> packings;  // by memory
  Packing packing;                       // of all of them together; the order is the largest's

  int64_t BytesIn(std::optional<uint32_t> memory) const;  // without one: in all
};

// Slots smaller than a cache line share lines where one launch uses them at a time, in one block:
// not with `streams`, where several streams run the step, and not where its values lie in several
// memories, as then they may.
Arena PackArena(const StepPlan& plan, const ValueTable& table, bool streams = false);

// The most bytes that live when a program runs op by op, as the interpreter of tensor graphs does:
// each op, views among them, into a tensor of its own that is there until it is read for the last
// time. Inputs are not counted.
int64_t OpByOpBytes(const tensor::Graph& graph);

// The decision PREFIX/arena.packing: which slots are placed first. Its cost has the bytes of the
// arena, the most that live at once, and OpByOpBytes().
void ExplainPacking(const StepPlan& plan, const Step& step, const ValueTable& table,
                    const std::string& prefix, search::Explanation& explanation);
// Takes the order that is forced. What is wrong with it, or "".
std::string ForcePacking(const search::ForcedChoices& forced, const std::string& prefix,
                         StepPlan& plan);

}  // namespace l3c::l0::lower
