// What runs in one step of a pipeline, in order.
//
// A pipeline that no phase runs, and whose first link is not a source, continues the pipeline that
// feeds it: a stage of that one forwards to its first link, or the last graph there has outputs of
// the names of the first link's arguments. So the specification's
//
//   pipeline train { load_data -> transfer_to_gpu -> forward_backward }
//   pipeline grad_return { transfer_grads }
//
// are one step when the schedule has both and `train` runs. A message that a stage sends need not
// be a link: it is handled behind the stage.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "layers/l1/program_index.h"

namespace l3c::l1 {

// Names of the arguments of a stage, a graph or "actor.message", in order; nothing for no unit.
std::vector<std::string> ArgumentsOf(const ProgramIndex& index, const std::string& unit);

class Flows {
 public:
  // Both must outlive this.
  Flows(const Program& program, const ProgramIndex& index);

  // Its own links, then those of the pipelines that continue it: of several that are fed the first
  // in the schedule comes first. An evaluation is its own links and no more.
  std::vector<Reference> LinksOf(const Pipeline& pipeline) const;
  // Whether a phase runs the pipeline, to train or to evaluate. Without phases: any of a source.
  bool IsRun(const Pipeline& pipeline) const;

 private:
  std::vector<Reference> WithMessages(const std::vector<Reference>& links) const;

  const ProgramIndex& index_;
  std::vector<const Pipeline*> continuing_;  // may continue another, in the order of the schedule
  std::unordered_map<std::string, std::vector<size_t>> by_link_, by_argument_;  // of the first link
  std::set<std::string> trained_, run_;
  bool phases_ = false;
};

// A schedule without phases trains each pipeline that comes from a source and sends a message, for
// one epoch each: adds these phases. Does nothing when there are any.
void AddDefaultPhases(Program& program);

}  // namespace l3c::l1
