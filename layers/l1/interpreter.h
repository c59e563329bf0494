// Runs an L1 program step by step on batches that the caller gives: the oracle for everything
// below. No data, no overlap; what a pipeline computes, in the order of its links.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/tensor/interpreter.h"

namespace l3c::l1 {

class Interpreter {
 public:
  // State gets its initial values under `seed`. `program` must have passed Verify and outlive this.
  Interpreter(const Program& program, uint64_t seed,
              tensor::Precision precision = tensor::Precision::kOwnDType);

  // Runs the graphs and messages of a pipeline on one batch: the arguments of its tensor graphs by
  // name, where no graph before gives them. Stages are passed over. Returns the outputs of its
  // graphs by name. Throws tensor::ShapeError when an argument is missing or has another type than
  // declared.
  std::map<std::string, tensor::Array> Run(const Pipeline& pipeline,
                                           const std::map<std::string, tensor::Array>& batch);

  // Runs one step as flow.h has it, with its stages: `rows` holds a batch of each field that they
  // read, by its name, and the mask as kValidField. A branch that is not taken does not run, nor
  // what it would have handed buffers to.
  std::map<std::string, tensor::Array> RunRows(const Pipeline& pipeline,
                                               const std::map<std::string, tensor::Array>& rows);

  const tensor::Array& State(const std::string& actor, const std::string& field) const {
    return state_.at({actor, field});
  }
  void SetState(const std::string& actor, const std::string& field, tensor::Array value) {
    state_[{actor, field}] = std::move(value);
  }

 private:
  using Values = std::map<std::string, tensor::Array>;

  // Inputs in declaration order: arguments from `values`, the rest from the actor's state.
  std::vector<tensor::Array> Inputs(const tensor::Graph& graph,
                                    const std::vector<std::string>& args, const Values& values,
                                    const std::vector<const Actor*>& actors) const;

  friend class StepRun;

  const Program& program_;
  const tensor::Precision precision_;
  std::map<std::pair<std::string, std::string>, tensor::Array> state_;
};

}  // namespace l3c::l1
