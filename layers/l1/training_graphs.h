// The tensor graphs of a training, from its methods: one for each turn of the goal and each variant
// of the update, and one that evaluates.
//
// The backward pass is that of the unrewritten forward graph. Everything is named before
// differentiation, so that a gradient is named after what it is the gradient of; and derived ops
// are expanded before that, so that nothing is renamed in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "layers/l1/lower.h"
#include "layers/l1/update_plan.h"
#include "layers/l2/expand.h"
#include "layers/l2/ir.h"

namespace l3c::l1 {

inline constexpr char kActor[] = "model_state";
inline constexpr char kEvalGraph[] = "evaluate";

// One metric's figures as outputs of a graph.
struct MetricOutputs {
  std::string name;
  std::string numerator;
  std::string denominator;
};

// A tensor graph of the program and what it is handed.
struct Compute {
  std::string name;
  tensor::Graph graph;
  std::vector<tensor::NodeId>
      args;  // of the forward graph: the fields that it reads, then the mask
  std::vector<MetricOutputs> metrics;
  std::vector<size_t> models;         // whose parameters it reads
  std::vector<std::string> messages;  // "actor.message", sent when it is done
  std::string suffix;                 // of the buffers that are staged for it
  size_t variant = 0;

  std::set<std::string> Reported() const;  // outputs that metrics read
};

// A module's methods with all that its placement needs to know.
struct Training {
  const l2::Module* module = nullptr;
  l2::Methods methods;  // of the first model, with the phases that are trained
  int64_t batch = 1;
  bool drop_last = false;
  bool has_test = false;
  std::string data_name;
  const DatasetInfo* info = nullptr;
  uint64_t seed = 0;
  int64_t total_steps = 1;
  l2::ForwardGraph forward;     // in training
  l2::ForwardGraph evaluation;  // of the same fields and parameters
  UpdatePlan updates;

  // Filled in by BuildGraphs().
  std::map<std::string, size_t> state_read;  // of the updates, by evaluation: whose it is
  std::map<size_t, size_t> messages;         // by model: how often a step updates it
  std::vector<Compute> train;                // by turn
  Compute eval;

  std::string ActorName(size_t model) const;
  std::vector<std::string> ArgsOf(const Compute& compute) const;
  // The fields that training loads, then the mask.
  std::vector<tensor::NodeId> TrainInputs() const;
  // Whether a graph reads a field of the model's state that is no parameter: its mean, or the steps
  // that random numbers are drawn by.
  bool ReadsState(const std::string& name, size_t model) const;
};

std::string VariantSuffix(size_t variant);  // "", "_2", …
std::string MessageName(size_t count);      // "GradUpdate", "GradUpdate2", …
void BuildGraphs(Training& training);

}  // namespace l3c::l1
