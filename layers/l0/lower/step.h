// One run of a pipeline as one tensor program.
//
// L1 says graph → handler: a tensor graph computes gradients, an actor's handler turns them into
// new state. Here the two are joined: the handler's arguments are replaced by the values that the
// graph gives them, state fields become inputs, and their new values outputs. Between the two there
// is nothing that a kernel may not cross, which is what lets an update share the kernel of its
// gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/lower/own_kernel.h"
#include "layers/l1/ir.h"
#include "layers/support/diagnostics.h"
#include "layers/tensor/graph.h"

namespace l3c::l0::lower {

// A field of an actor: "actor.field".
struct StateRef {
  std::string name;
  uint32_t actor = 0;
  uint32_t field = 0;
};
std::vector<StateRef> AllState(const l1::Program& program);

struct StepInput {
  enum class Kind : uint8_t { kField, kMask, kState, kHandedOver } kind = Kind::kField;
  tensor::NodeId node = 0;
  std::string field;   // kField: of the sampled data
  uint32_t state = 0;  // kState: index into AllState
  // kHandedOver, by another part of the step (step_parts.h): when, among all that this part takes
  // and gives. Who makes what is given earlier cannot wait for it.
  int32_t order = -1;
};

struct StepOutput {
  enum class Kind : uint8_t { kState, kReport } kind = Kind::kReport;
  tensor::NodeId node = 0;
  uint32_t state = 0;  // kState
  std::string name;    // kReport
  // ≥ 0: what other parts of the step take, in this order among what this one takes and gives; it
  // is a kReport without a name.
  int32_t order = -1;
};

struct Step {
  std::string name;        // of the pipeline
  std::string made = "v";  // what names of values begin with that only rules have made
  tensor::Graph graph;     // primitives only
  // By node of the graph: the memory, a node of the system, that L1 has its value in. What makes a
  // value leaves it in the memory that it works in; a copy of L1 between memories stores nothing.
  std::vector<uint32_t> memory;
  std::vector<StepInput> inputs;
  std::vector<StepOutput> outputs;
  std::vector<OwnKernel> own;  // their nodes are inputs of the graph that are not in `inputs`
  l1::Sampling sampling;       // of the stage that feeds it
};

// `reports`: outputs of the pipeline's graphs that metrics read, as (graph, output).
// Nothing when anything was reported.
std::optional<Step> MergeStep(const l1::Program& program, const l1::Pipeline& pipeline,
                              const std::vector<std::pair<std::string, std::string>>& reports,
                              support::Diagnostics& diagnostics);

}  // namespace l3c::l0::lower
