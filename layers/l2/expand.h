// The meaning of a method as tensor programs: what the lowering to L1 differentiates and places.
//
// ExpandForward gives one graph from a batch of samples to the loss and the metrics, with every
// layer and loss replaced by its tensor algebra. ExpandUpdate gives the graph of one optimiser
// step. Neither is rewritten: identities are applied after differentiation, never before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/l2/ir.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

enum class Init : uint8_t {
  kZeros,
  kOnes,
  kKaimingNormal,  // normal with standard deviation sqrt(2 / fan_in)
  kNormal,         // normal with standard deviation `deviation`
};

// A learned parameter of one layer.
struct Parameter {
  std::string name;  // "linear1_weight": the layer node's name, then the role
  Shape shape;
  Init init = Init::kZeros;
  int64_t fan_in = 0;    // kaiming only
  double deviation = 0;  // normal only
};

// In the order of the nodes, then of each entry's list.
std::vector<Parameter> Parameters(const InferGraph& infer);
int64_t ParameterCount(const InferGraph& infer);

// Fills every node's shape from the input's. False after reporting what does not fit.
bool PropagateShapes(InferGraph& infer, const Shape& input, support::Diagnostics& diagnostics);

// value = Σ numerator / Σ denominator over the batches of a period.
struct MetricNodes {
  std::string name;                // "loss", "accuracy"
  tensor::NodeId numerator = 0;    // f32 []
  tensor::NodeId denominator = 0;  // f32 []
};

// What a model makes of its own input.
struct NetworkNodes {
  tensor::NodeId output = 0;
  std::optional<tensor::NodeId> log_output;  // where it ends in a distribution
  std::vector<tensor::NodeId> values;        // by node of the network
  size_t first_parameter = 0;                // of the model's, in ForwardGraph::parameters
};

// What a turn of the goal minimises, and whose parameters it changes.
struct TurnNodes {
  std::string name;         // objective.h
  tensor::NodeId loss = 0;  // f32 []
  // f32 [batch]: the weighted sum of the terms that compare outputs row by row; none: no such term.
  std::optional<tensor::NodeId> row_loss;
  // f32 []: the weighted sum of all others (norms, constraints, custom losses); none: no such term.
  std::optional<tensor::NodeId> other_loss;
  std::vector<size_t> parameters;  // indices of those that it updates, ascending
  size_t first_metric = 0;         // its metrics: a range of ForwardGraph::metrics, its loss first
  size_t metric_count = 0;
};

struct ForwardGraph {
  tensor::Graph graph;
  // Graph inputs, in this order: one per data field read (named as the field, [batch, …]), `mask`
  // (f32 [batch]: 1 for a row of data, 0 for padding), `step`, then the parameters by their names.
  // With several models a parameter's name begins with its model's: `judge_linear1_weight`.
  struct FieldInput {
    std::string data;  // L3 data declaration
    std::string field;
    tensor::NodeId node = 0;
  };
  std::vector<FieldInput> fields;
  tensor::NodeId mask = 0;
  tensor::NodeId row_weight = 0;  // f32 [batch]: the mask, 0 too for rows that do not count
  // i64 []: how often `clock`, the first model that the goal updates, was updated: `ticks` times in
  // every step. Where random numbers are drawn.
  std::optional<tensor::NodeId> step;
  size_t clock = 0;  // index into Module::methods
  int64_t ticks = 1;
  std::vector<Parameter> parameters;
  std::vector<size_t> parameter_models;  // index into Module::methods, for each parameter
  std::vector<tensor::NodeId> parameter_nodes;
  tensor::NodeId output = 0;  // of the model of `methods`, [batch, …]
  tensor::NodeId loss = 0;    // of the first turn
  std::vector<TurnNodes> turns;
  std::map<size_t, NetworkNodes> networks;  // by index into Module::methods
  // Named "loss" and "accuracy" for the first turn, and with the turn's name before it for others.
  std::vector<MetricNodes> metrics;
};

struct ForwardOptions {
  bool training = false;  // layers that draw random numbers do
  uint64_t seed = 0;      // of what they draw
};

// All turns of the goal, with every model that they depend on. A model stands once for each value
// that it is applied to, always with the same parameters. `module` must have passed Verify.
ForwardGraph ExpandForward(const Module& module, const Methods& methods, int64_t batch,
                           const ForwardOptions& options = {});

// Where an update stands among those of a training. The default: it is the only one, and moves
// every parameter.
struct UpdatePlace {
  std::vector<bool> frozen;  // by parameter: it stays as it is; empty: none does
  // By role, the update whose state has the plain names, `linear1_weight_m`; that of others says
  // so, `linear1_weight_lion_m`. Absent roles are plain.
  std::map<std::string, std::string> role_owners;
  std::string step = "step";  // the counter of steps: i64 [], advances by one
  // By parameter: counters (i64 []) whose sum is how many steps the leaf's state of it has seen;
  // none for a parameter, or for all: `step`.
  std::vector<std::vector<std::string>> history;
  std::vector<std::string> counters;  // of those, which advance in this step
};

// Graph inputs of the update: for each parameter p `p` and `p_grad`, each state field by its name,
// and `step` (i64 []: completed steps, 0 before the first). Outputs: the parameters, each state
// field and `step`, by their names. What is frozen has no gradient, and is there at all only where
// a running mean gathers it.
struct UpdateStateField {
  std::string name;  // "linear1_weight_m"
  Shape shape;
  tensor::DType dtype = tensor::DType::kF32;
};
struct UpdateGraph {
  tensor::Graph graph;
  std::vector<UpdateStateField> state;  // zero at the start; without `step`
};

// `total_steps`: how often it is made in all phases, ≥ 1; decay ends there. `dtype`: of parameters
// and state.
UpdateGraph ExpandUpdate(const Form& update, const std::vector<Parameter>& parameters,
                         int64_t total_steps, tensor::DType dtype = tensor::DType::kF32,
                         const UpdatePlace& place = {});

// Steps of all phases over `rows` rows of data; nothing where they are more than kMaxTotalSteps
// (verify.h).
std::optional<int64_t> TotalSteps(const Methods& methods, int64_t rows);

}  // namespace l3c::l2
