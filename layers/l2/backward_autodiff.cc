// autodiff(mode, checkpoint): the exact gradient. reverse: one pass back through the graph.
// forward: one pass for each element of the parameters, so only for a few of them (Griewank,
// Walther 2008).
//
// checkpoint: [layers] names the layers whose results the backward pass may keep; every other value
// that it needs is computed once more from those (and from the batch), which the tensor graph of L1
// then says. Without a list the choice is left open: everything is kept as long as it fits, and
// computed again under a bound on memory (layers/l0/lower/recompute.h).
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/algebra.h"
#include "layers/l2/backward.h"
#include "layers/l2/infer.h"
#include "layers/l2/layers.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"
#include "layers/tensor/forward.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr int64_t kMaxPasses = 64;

void Check(const Form& form, const Module&, const Methods& methods,
           support::Diagnostics& diagnostics) {
  if (form.Word(0) == "forward" && ParameterCount(methods.infer) > kMaxPasses) {
    diagnostics
        .Error(support::Kind::kConsistency, form.span,
               "forward mode needs one pass for each of " +
                   support::PrintInteger(ParameterCount(methods.infer)) + " parameters")
        .Label("at most " + support::PrintInteger(kMaxPasses))
        .Fix("write autodiff(mode: reverse)");
  }
  if (form.Word(0) == "forward" && !form.Names(1).empty()) {
    diagnostics
        .Error(support::Kind::kConsistency, form.span,
               "forward mode keeps nothing for a backward pass, so there is nothing to "
               "checkpoint")
        .Fix("leave out 'checkpoint'");
  }
  std::vector<std::string> layers;
  for (size_t i = 1; i < methods.infer.nodes.size(); ++i) {
    layers.push_back(methods.infer.nodes[i].name);
  }
  for (const std::string& name : form.Names(1)) {
    if (std::find(layers.begin(), layers.end(), name) != layers.end()) continue;
    auto& diagnostic = diagnostics.Error(support::Kind::kSafety, form.span,
                                         "there is no layer '" + name + "' to keep");
    const std::string close = support::ClosestMatch(name, layers);
    if (!close.empty()) diagnostic.Fix("replace with '" + close + "'");
  }
  // A surrogate is what gives a flat layer a slope; without one its gradient is zero everywhere.
  if (TakesSurrogates(methods.backward)) return;
  for (size_t i = 1; i < methods.infer.nodes.size(); ++i) {
    const LayerNode& node = methods.infer.nodes[i];
    if (!EntryOf(node).expand_surrogate) continue;
    diagnostics
        .Error(
            support::Kind::kConsistency, form.span,
            "'" + node.form.name + "' is flat: its gradient is zero, and nothing before it learns")
        .With({node.form.span, "the layer is here"})
        .Fix("write straight_through(estimator: clipped)");
    return;
  }
}

// One at element i of the tensor, zero elsewhere.
NodeId Unit(Graph& g, const Shape& shape, int64_t i, DType dtype) {
  const int64_t n = tensor::NumElements(shape);
  const NodeId index = Iota(g, {n}, 0, DType::kI64);
  const NodeId at = Apply(g, "cmpeq", {index, g.Full(static_cast<double>(i), {n}, DType::kI64)});
  return g.Reshape(g.Cast(at, dtype), shape);
}

std::vector<NodeId> Forward(BackwardGraph& to, const BackwardCall& call) {
  std::vector<NodeId> done;
  for (size_t p : call.parameters) {
    const Shape shape = to.parameters()[p].shape;
    std::vector<NodeId> elements;
    for (int64_t i = 0; i < tensor::NumElements(shape); ++i) {
      std::vector<NodeId> held = {Unit(to.graph(), shape, i, DType::kF32)};
      to.Settle({&held, &elements, &done});
      const auto tangents = tensor::ForwardDifferentiate(to.graph(), std::vector{to.loss()},
                                                         std::vector{to.parameter(p)}, held);
      elements.push_back(to.graph().Reshape(tangents.nodes[0], {1}));
    }
    const NodeId joined = Concatenate(to.graph(), elements, 0);
    done.push_back(to.graph().Reshape(joined, shape));
  }
  to.Settle({&done});
  return done;
}

// The backward pass over values that are computed again: each when it is first asked for, from what
// is kept. What is kept is read through a reshape to its own shape, so that computing it again is
// another term than computing it first, and nothing below merges the two.
class Recomputation {
 public:
  // Nodes below `forward_size` are the forward pass.
  Recomputation(BackwardGraph& to, const BackwardCall& call, size_t forward_size)
      : g_(to.graph()), forward_size_(forward_size), kept_(forward_size), fenced_(forward_size) {
    for (NodeId id = 0; id < forward_size; ++id) {
      const Op op = g_.node(id).op;
      kept_[id] = op == Op::kInput || op == Op::kConst;
      fenced_[id] = op == Op::kInput;
    }
    for (size_t p = 0; p < to.parameters().size(); ++p) fenced_[to.parameter(p)] = false;
    const NetworkNodes& network = to.network(call.model);
    for (size_t i = 0; i < network.values.size(); ++i) {
      const auto& names = call.form->Names(1);
      const std::string& name = call.methods->infer.nodes[i].name;
      if (i == 0 || std::find(names.begin(), names.end(), name) != names.end()) {
        kept_[network.values[i]] = fenced_[network.values[i]] = true;
      }
    }
  }

  std::vector<NodeId> Run(std::vector<NodeId> gradients) {
    const size_t size = g_.size();
    std::vector<bool> needed(size);
    for (NodeId id : gradients) needed[id] = true;
    for (NodeId id = static_cast<NodeId>(size); id-- > forward_size_;) {
      if (!needed[id]) continue;
      for (NodeId input : g_.node(id).inputs) needed[input] = true;
    }
    // A backward value stays where nothing that it is computed from is computed again.
    std::vector<NodeId> copy(size);
    for (NodeId id = 0; id < size; ++id) {
      copy[id] = id;
      if (!needed[id] || id < forward_size_) continue;
      const tensor::Node node = g_.node(id);
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) {
        inputs.push_back(input < forward_size_ ? Again(input) : copy[input]);
      }
      if (inputs != node.inputs) {
        copy[id] = g_.Add(node.op, std::move(inputs), node.attr, {}, node.span);
      }
    }
    for (NodeId& id : gradients) id = id < forward_size_ ? Again(id) : copy[id];
    return gradients;
  }

 private:
  // What the backward pass reads in place of a forward value.
  NodeId Again(NodeId root) {
    if (kept_[root]) return root;
    std::vector<NodeId> open = {root};
    while (!open.empty()) {
      const NodeId id = open.back();
      const tensor::Node node = g_.node(id);
      bool ready = true;
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) {
        if (kept_[input]) {
          inputs.push_back(Fenced(input));
        } else if (const auto again = again_.find(input); again != again_.end()) {
          inputs.push_back(again->second);
        } else {
          open.push_back(input);
          ready = false;
        }
      }
      if (!ready) continue;
      open.pop_back();
      if (again_.contains(id)) continue;
      again_[id] = inputs == node.inputs ? id
                                         : g_.Add(node.op, std::move(inputs), node.attr,
                                                  Name(node, "_again"), node.span);
    }
    return again_.at(root);
  }

  NodeId Fenced(NodeId id) {
    if (!fenced_[id]) return id;
    const auto [at, fresh] = fences_.try_emplace(id);
    if (fresh) {
      const tensor::Node node = g_.node(id);
      tensor::Attributes shape;
      shape.ints = node.shape;
      at->second = g_.Add(Op::kReshape, {id}, shape, Name(node, "_kept"), node.span);
    }
    return at->second;
  }

  std::string Name(const tensor::Node& node, const char* suffix) const {
    const std::string name = node.name.empty() ? std::string() : node.name + suffix;
    return g_.Find(name) ? std::string() : name;
  }

  Graph& g_;
  const size_t forward_size_;
  std::vector<bool> kept_;    // by forward value
  std::vector<bool> fenced_;  // kept, and no parameter or constant
  std::map<NodeId, NodeId> again_, fences_;
};

std::vector<NodeId> Direct(BackwardGraph& to, const BackwardCall& call) {
  if (call.form->Word(0) == "forward") return Forward(to, call);
  std::vector<NodeId> wrt;
  for (size_t p : call.parameters) wrt.push_back(to.parameter(p));
  to.Settle({&wrt});
  const size_t forward_size = to.graph().size();
  std::vector<NodeId> gradients = to.Differentiate(to.loss(), wrt);
  if (call.form->Names(1).empty()) return gradients;
  return Recomputation(to, call, forward_size).Run(std::move(gradients));
}

}  // namespace

BackwardEntry AutodiffBackward() {
  BackwardEntry autodiff;
  autodiff.form = {"autodiff",
                   {Arg::Word("mode", {"reverse", "forward"}), Arg::NameList("checkpoint")},
                   "exact gradients of the graph"};
  autodiff.check = Check;
  autodiff.direct = Direct;
  return autodiff;
}

}  // namespace l3c::l2
