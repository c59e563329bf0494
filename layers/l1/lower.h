// L2 → L1: where each computation lives, and everything arithmetic made explicit.
//
//   methods ──ExpandForward──► loss ──Differentiate──► tensor_graph forward_backward
//           ──ExpandUpdate───► actor model_state, on GradUpdate(…)
//                              (several models: an actor for each, MODEL_state; several turns of
//                              the goal: a graph for each, TURN_step, and the messages after it)
//           ──ExpandForward──► tensor_graph evaluate
//   data    ── bound to a storage node; stages load_train and load_test draw its batches
//
// The backward pass is that of the unrewritten forward graph: identities are applied at L0, after
// differentiation, so that none can change a gradient. What is decided here is placement: see
// place.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l2/ir.h"
#include "layers/search/lowering.h"

namespace l3c::l1 {

// What the lowering must know of a data set; the caller asks the reader of its files.
struct DatasetInfo {
  std::string path;                     // as the program will say it
  std::map<std::string, int64_t> rows;  // by split: "train" must be there, "test" may
};

struct LowerOptions {
  System system;
  std::map<std::string, DatasetInfo> data;  // by the name of the L3 declaration
  // In place of the phases' own figures; at most one. All phases become one.
  std::optional<int64_t> epochs;
  std::optional<int64_t> steps;
  std::optional<uint64_t> seed;  // in place of the method's; 0 when neither says
  int64_t pipeline_depth = 2;    // 1 when the staging buffers of 2 steps do not fit
  // Instruction sets that there is a backend for; other compute nodes are not considered.
  std::vector<std::string> isas = {"x86_64"};
  search::LoweringOptions search;
  std::string folder;  // that the files of annotations are relative to
};

// `module` must have passed l2::Verify. What cannot be placed is
// NoCandidates, with its cause; other faults of the input (a form that has no lowering, data that
// is missing) as well.
search::LoweringResult<Program> Lower(const l2::Module& module, const LowerOptions& options);

}  // namespace l3c::l1
