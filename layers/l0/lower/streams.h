// Which streams a program's steps need.
//
//   loaders    one for each batch in flight, that is `pipeline_depth`, as far as the node that
//   loads
//              has cores: slot k of a pipeline is filled on loader k mod their number. A batch is a
//              function of its number and every loader draws by itself, so batches in flight are
//              decoded beside one another.
//   computing  one for each memory that kernels of a step work in, that is for each node of a
//   system
//              with several hosts. Of one node one: a step reads the state that the step before
//              leaves, and a kernel is given all threads, so a second stream would wait for the
//              first all the time.
//   transfers  one, where state is brought in from another memory: what a step brings in is what
//              the step before has carried back. Such a step computes on one stream.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "layers/l0/plan.h"
#include "layers/l1/ir.h"
#include "layers/search/decision.h"

namespace l3c::l0::lower {

struct StreamPlan {
  std::vector<Stream> streams;
  std::vector<StreamId> loaders;
  // That begins and ends every step, reports it and writes checkpoints.
  StreamId compute = 0;
  std::map<uint32_t, StreamId> of_memory;  // by memory: other streams that compute

  StreamId LoaderOf(int64_t slot) const {
    return loaders[static_cast<size_t>(slot) % loaders.size()];
  }
  StreamId ComputeIn(uint32_t memory) const {
    const auto found = of_memory.find(memory);
    return found == of_memory.end() ? compute : found->second;
  }
};

// `memories`: those that kernels work in. `one_of_each`: as few as there can be.
StreamPlan InferStreams(const l1::Program& program, const std::set<uint32_t>& memories,
                        bool one_of_each);

inline constexpr char kStreamsId[] = "l0/streams";
inline constexpr char kInferred[] = "inferred";
inline constexpr char kOneOfEach[] = "one of each";
// The decision l0/streams: how many there are, and why there are no more. `cost`: of the plan, of
// whose kernels they change nothing.
search::Decision ExplainStreams(const l1::Program& program, const Plan& plan, bool one_of_each,
                                const search::CostVector& cost);

}  // namespace l3c::l0::lower
