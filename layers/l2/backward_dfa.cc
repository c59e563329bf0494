// dfa(feedback_dim): direct feedback alignment (Nøkland 2016). The last stage gets its exact
// gradient. Every hidden stage gets the gradient of ⟨h, eB⟩, where h is what the stage after it
// reads and e = ∂L/∂z the error at the last stage's result z: the error comes to it through a fixed
// random matrix B instead of the weights of the stages between. B = P·Q goes through feedback_dim
// numbers, with P [elements of z, n] and Q [n, elements of h] normal of variance 1/n and 1/elements
// of h. What the loss says of the parameters themselves (a norm) keeps its own gradient.
#include <cmath>

#include "layers/l2/algebra.h"
#include "layers/l2/backward.h"
#include "layers/l2/infer.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

// Nodes of the network that are stages, in order.
std::vector<uint32_t> Stages(const InferGraph& infer) {
  std::vector<uint32_t> stages;
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    if (EntryOf(infer.nodes[i]).is_stage) stages.push_back(i);
  }
  return stages;
}

void Check(const Form& form, const Module& module, const Methods& methods,
           support::Diagnostics& diagnostics) {
  const InferGraph& infer = methods.infer;
  auto refuse = [&](support::Span span, const std::string& why) {
    diagnostics
        .Error(support::Kind::kConsistency, form.span, "dfa cannot train this network: " + why)
        .With({span, "because of this"})
        .Fix("write autodiff(mode: reverse)");
  };
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    if (node.inputs != std::vector<uint32_t>{i - 1}) {
      return refuse(node.form.span, "it is no chain, so a stage has no place of its own");
    }
    if (node.lender) return refuse(node.form.span, "two layers share parameters");
  }
  if (module.methods.size() > 1) {
    return refuse(methods.span, "other models read its output");
  }
  if (Stages(infer).size() < 2) {
    refuse(infer.form.span, "it has no hidden stage to feed the error back to");
  }
}

std::vector<NodeId> Direct(BackwardGraph& to, const BackwardCall& call) {
  const InferGraph& infer = call.methods->infer;
  const std::vector<uint32_t> stages = Stages(infer);
  const auto ranges = ParameterRanges(infer);
  const NetworkNodes& network = to.network(call.model);
  const uint32_t last = stages.back();
  // The error, and where the parameters before the last stage meet the loss without the network.
  std::vector<NodeId> error = to.Differentiate(to.loss(), {network.values[last]});
  std::vector<NodeId> wrt;
  for (size_t p : call.parameters) wrt.push_back(to.parameter(p));
  Graph& g = to.graph();
  const NodeId z = network.values[last];
  const Shape out = g.node(z).shape;
  const int64_t batch = out[0];
  const int64_t errors = tensor::NumElements(out) / batch;
  const int64_t n = call.form->Integer(0);

  // What the loss says of the parameters but through z.
  std::map<NodeId, NodeId> values;  // what stands in place of each value in the end
  const NodeId fixed_z = Apply(g, "stop_gradient", {z});
  values[fixed_z] = fixed_z;
  NodeId surrogate = to.Substitute(to.loss(), {{z, fixed_z}});
  auto add = [&](NodeId value, NodeId delta) {
    const NodeId fixed = Apply(g, "stop_gradient", {delta});
    values[fixed] = fixed;
    const NodeId shaped = g.Reshape(fixed, g.node(value).shape);
    surrogate = Add(g, surrogate, SumAll(g, Mul(g, value, shaped)));
  };
  const NodeId flat_error = g.Reshape(error[0], {batch, errors});
  const NodeId down = TimesConstant(g, Normal(g, to.FixedKey("feedback"), {errors, n}),
                                    1 / std::sqrt(static_cast<double>(n)));
  const NodeId fed = g.Matmul(flat_error, down);
  for (size_t s = 1; s < stages.size(); ++s) {
    const NodeId h = network.values[stages[s] - 1];
    const int64_t width = tensor::NumElements(g.node(h).shape) / batch;
    const NodeId key = to.FixedKey("feedback " + infer.nodes[stages[s]].name);
    const NodeId up =
        TimesConstant(g, Normal(g, key, {n, width}), 1 / std::sqrt(static_cast<double>(width)));
    add(h, g.Matmul(fed, up));
  }
  add(z, flat_error);

  // A stage's value with what it reads cut off from the stages before, so that each part of the
  // surrogate moves the parameters of its own stage alone.
  for (size_t s = 0; s < stages.size(); ++s) {
    const NodeId value = s + 1 < stages.size() ? network.values[stages[s + 1] - 1] : z;
    if (s == 0) {
      values[value] = value;
      continue;
    }
    const NodeId h = network.values[stages[s] - 1];
    values[value] = to.Substitute(value, {{h, Apply(g, "stop_gradient", {h})}});
  }
  const NodeId local = to.Substitute(surrogate, values);
  return to.Differentiate(local, wrt);
}

}  // namespace

BackwardEntry DfaBackward() {
  BackwardEntry dfa;
  dfa.form = {"dfa",
              {Arg::Integer("feedback_dim", 1, int64_t{1} << 20)},
              "every stage learns from the error, fed back to it through a fixed random matrix"};
  dfa.check = Check;
  dfa.direct = Direct;
  return dfa;
}

}  // namespace l3c::l2
