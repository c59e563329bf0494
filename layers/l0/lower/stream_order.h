// Commands that stand in one order and run on several streams: where one stream has to hand over to
// another so that they leave the same bytes as in that order.
#pragma once

#include <cstddef>
#include <vector>

#include "layers/l0/plan.h"

namespace l3c::l0::lower {

struct StreamedCommand {
  StreamId stream = 0;
  std::vector<BufferId> reads, writes;
};

// `before` begins when `after` is over; both are indices of commands, on different streams.
struct Handover {
  size_t after = 0, before = 0;
};

// By `before`. Between two streams both ends come in the order of their stream, so that one token
// serves them all. Beyond what the bytes ask for, every stream begins after the first command and
// is over before the last, which are those of one stream: a run of the commands is fenced from the
// next one by that stream alone. What follows from other handovers is left out.
std::vector<Handover> OrderStreams(const Plan& plan, const std::vector<StreamedCommand>& commands);

}  // namespace l3c::l0::lower
