// Random control units, and a host that writes down all that a unit does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/l0/control.h"
#include "layers/l0/control_code.h"
#include "layers/l0/control_interpreter.h"

namespace l3c::testing {

// Sound in all that VerifyControl checks but for the descriptors, which are any numbers. Every unit
// ends: turns of loops are counted in a region. `live`: about how many values an operation may
// choose from.
l0::ControlUnit RandomControl(uint32_t seed, int live);

// What a run showed from outside.
struct ControlTrace {
  l0::ControlOutcome outcome;
  std::vector<int64_t> queue_operations;  // queue, descriptor, and the words of all regions then
  std::vector<std::vector<int64_t>> regions;

  bool operator==(const ControlTrace& other) const {
    return outcome.end == other.outcome.end && outcome.block == other.outcome.block &&
           outcome.instruction == other.outcome.instruction &&
           outcome.stop_seen == other.outcome.stop_seen &&
           queue_operations == other.queue_operations && regions == other.regions;
  }
};

// With `code`, by it; else interpreted. The host stops the run at its `stop_after`th queue
// operation.
ControlTrace RunTraced(const l0::ControlUnit& unit, l0::ControlFn code, size_t stop_after);

}  // namespace l3c::testing
