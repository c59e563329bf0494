#include "layers/l2/estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/infer.h"
#include "layers/l2/methods.h"
#include "layers/l2/updates.h"
#include "layers/support/units.h"
#include "layers/tensor/graph.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr double kF32Bytes = 4;

double OpWeight(Op op) {
  switch (op) {
    case Op::kExp2:
    case Op::kLog2:
    case Op::kSin:
      return 8;
    case Op::kRecip:
    case Op::kSqrt:
    case Op::kMod:
      return 4;
    default:
      return 1;
  }
}

// Arithmetic of a graph of primitives. Scalars cost nothing beside tensors.
search::StepWork CountArithmetic(const Graph& graph) {
  search::StepWork work;
  for (const tensor::Node& node : graph.nodes()) {
    switch (tensor::Definition(node.op).op_class) {
      case tensor::OpClass::kElementwise:
        work.elementwise_flops +=
            OpWeight(node.op) * static_cast<double>(tensor::NumElements(node.shape));
        break;
      case tensor::OpClass::kReduction:
        work.elementwise_flops +=
            static_cast<double>(tensor::NumElements(graph.node(node.inputs[0]).shape));
        break;
      case tensor::OpClass::kContraction:
        work.contraction_flops += 2 * static_cast<double>(tensor::NumElements(node.shape)) *
                                  static_cast<double>(graph.node(node.inputs[0]).shape.back());
        break;
      default:
        break;
    }
  }
  return work;
}

}  // namespace

LayerWork EstimateLayer(const LayerEntry& entry, const Form& form, std::span<const Shape> operands,
                        std::span<const Parameter> borrowed) {
  LayerWork work;
  Graph graph;
  std::vector<NodeId> inputs;
  double operand_elements = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    Shape shape = operands[i];
    shape.insert(shape.begin(), 1);
    operand_elements += static_cast<double>(tensor::NumElements(shape));
    inputs.push_back(graph.AddInput("x" + std::to_string(i), tensor::DType::kF32, shape));
  }
  std::vector<NodeId> parameters;
  if (entry.parameters) {
    for (const Parameter& p : entry.parameters(form, operands)) {
      work.parameters += tensor::NumElements(p.shape);
      parameters.push_back(graph.AddInput("p_" + p.name, tensor::DType::kF32, p.shape));
    }
  }
  for (const Parameter& p : borrowed) {
    parameters.push_back(graph.AddInput("p_" + p.name, tensor::DType::kF32, p.shape));
  }
  const NodeId result = entry.expand(graph, form, inputs, parameters);
  graph.AddOutput("y", result);
  work.per_sample = CountArithmetic(tensor::RemoveDead(tensor::ExpandDerived(graph)));
  const double elements = static_cast<double>(tensor::NumElements(graph.node(result).shape));
  work.activation_bytes = kF32Bytes * elements;
  work.per_sample.bytes = kF32Bytes * (operand_elements + elements);
  work.per_step.bytes = kF32Bytes * static_cast<double>(work.parameters);
  work.per_step.launches = 1;
  return work;
}

LayerWork EstimateNode(const InferGraph& infer, uint32_t id) {
  const LayerNode& node = infer.nodes[id];
  const LayerEntry& entry = EntryOf(node);
  const std::vector<Shape> operands = OperandShapes(infer, node);
  if (!node.lender || entry.parameters) {
    LayerWork work = EstimateLayer(entry, node.form, operands);
    if (node.lender) work.parameters = 0;
    return work;
  }
  return EstimateLayer(entry, node.form, operands, ParametersOf(infer, id));
}

LayerWork WithBackward(const LayerWork& forward) {
  LayerWork all = forward;
  all.per_sample.contraction_flops *= 3;
  all.per_sample.elementwise_flops *= 2;
  all.per_sample.bytes *= 2;
  // Parameters are read again, and their gradient is written.
  all.per_step.bytes *= 3;
  all.per_step.launches *= 2;
  return all;
}

double ForwardLatency(const LayerWork& forward, const Priors& priors) {
  search::StepWork work = forward.per_sample;
  work += forward.per_step;
  return ReferenceMachine(priors).Seconds(work);
}

double ForwardLatency(const InferGraph& infer, const Priors& priors) {
  double seconds = 0;
  for (size_t i = 1; i < infer.nodes.size(); ++i) {
    seconds += ForwardLatency(EstimateNode(infer, static_cast<uint32_t>(i)), priors);
  }
  return seconds;
}

std::string LatencyText(double seconds) {
  const double unit = std::pow(10, std::floor(std::log10(seconds)) - 2);
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", seconds);
  // The figure that is read back must not be below what it stands for.
  double up = std::strtod(text, nullptr);
  if (up < seconds) {
    std::snprintf(text, sizeof text, "%.3g", seconds + unit);
    up = std::strtod(text, nullptr);
  }
  return support::PrintSeconds(up);
}

search::StepWork EstimateUpdate(const Form& update) {
  // One parameter tensor, large enough that what is paid once a step vanishes beside it.
  constexpr int64_t kElements = 1 << 20;
  const UpdateGraph expanded = ExpandUpdate(update, {{"p", {kElements}, Init::kZeros, 0}}, 1000);
  search::StepWork work =
      CountArithmetic(tensor::RemoveDead(tensor::ExpandDerived(expanded.graph)));
  work.elementwise_flops /= kElements;
  work.bytes = kF32Bytes * (3 + 2 * static_cast<double>(expanded.state.size()));
  return work;
}

MethodEstimate EstimateMethod(const Methods& methods) {
  MethodEstimate estimate;
  const InferGraph& infer = methods.infer;
  estimate.batch = BatchOf(methods.sample);
  const double batch = static_cast<double>(estimate.batch);
  auto add = [&](const search::StepWork& work, double times) {
    estimate.step.contraction_flops += times * work.contraction_flops;
    estimate.step.elementwise_flops += times * work.elementwise_flops;
    estimate.step.bytes += times * work.bytes;
    estimate.step.launches += times * work.launches;
  };
  for (size_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerWork forward = EstimateNode(infer, static_cast<uint32_t>(i));
    const LayerWork both = WithBackward(forward);
    estimate.parameters += forward.parameters;
    estimate.forward_flops +=
        forward.per_sample.contraction_flops + forward.per_sample.elementwise_flops;
    estimate.activation_bytes += batch * forward.activation_bytes;
    add(both.per_sample, batch);
    add(both.per_step, 1);
  }
  add(EstimateUpdate(methods.update), static_cast<double>(estimate.parameters));
  estimate.step_flops = estimate.step.contraction_flops + estimate.step.elementwise_flops;
  estimate.parameter_bytes = kF32Bytes * static_cast<double>(estimate.parameters);
  for (const Form* form : UpdateChain(methods.update)) {
    estimate.state_bytes +=
        estimate.parameter_bytes * static_cast<double>(FindUpdate(form->name)->state(*form).size());
  }
  return estimate;
}

}  // namespace l3c::l2
