// What a plan asks of the machine in one run of a sequence, counted from its commands alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/l0/plan.h"

namespace l3c::tools {

struct SequenceFigures {
  std::string sequence;    // of several that differ in their staging buffers alone, the first
  std::string split;       // that it reports of: "train", "test"; "": it reports nothing
  int64_t kernels = 0;     // launches
  double bytes_moved = 0;  // each launch reads and writes the distinct bytes of its parameters once
  double multiply_adds = 0;
};

// Of every sequence that launches kernels, in the plan's order.
std::vector<SequenceFigures> FiguresOf(const l0::Plan& plan);

}  // namespace l3c::tools
