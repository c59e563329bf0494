#include "layers/l2/backward.h"

#include <algorithm>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/l2/registry.h"
#include "layers/tensor/differentiate.h"

namespace l3c::l2 {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

namespace {

// A new backward method is a line here and a file of its own.
const Registry<BackwardEntry>& Table() {
  static const Registry<BackwardEntry> table(Family::kBackward, {{AutodiffBackward()},
                                                                 {StraightThroughBackward()},
                                                                 {DfaBackward()},
                                                                 {ReinforceBackward()},
                                                                 {ZerothOrderBackward()},
                                                                 {EvolutionBackward()},
                                                                 {HybridBackward()}});
  return table;
}

// The backward forms among the arguments.
std::vector<const Form*> InnerForms(const Form& form) {
  std::vector<const Form*> inner;
  const Entry& entry = FindBackward(form.name)->form;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    if (entry.args[i].kind == ArgKind::kForm) inner.push_back(&form.Inner(i));
  }
  return inner;
}

}  // namespace

const std::deque<BackwardEntry>& AllBackwardMethods() { return Table().all(); }
const BackwardEntry* FindBackward(std::string_view name) { return Table().Find(name); }

bool DrawsRandomNumbers(const Form& backward) {
  if (FindBackward(backward.name)->draws) return true;
  const auto inner = InnerForms(backward);
  return std::any_of(inner.begin(), inner.end(),
                     [](const Form* f) { return DrawsRandomNumbers(*f); });
}

bool TakesSurrogates(const Form& backward) { return !SurrogateOf(backward).empty(); }

std::string SurrogateOf(const Form& backward) {
  if (FindBackward(backward.name)->takes_surrogates) return backward.Word(0);
  for (const Form* inner : InnerForms(backward)) {
    if (const std::string kind = SurrogateOf(*inner); !kind.empty()) return kind;
  }
  return {};
}

void CheckBackward(const Form& backward, const Module& module, const Methods& methods,
                   support::Diagnostics& diagnostics) {
  const BackwardEntry& entry = *FindBackward(backward.name);
  if (entry.check) entry.check(backward, module, methods, diagnostics);
  for (const Form* inner : InnerForms(backward)) {
    CheckBackward(*inner, module, methods, diagnostics);
  }
}

BackwardGraph::BackwardGraph(const ForwardGraph& forward, size_t turn, uint64_t seed,
                             int64_t total_steps)
    : graph_(forward.graph),
      info_(forward.parameters),
      parameters_(forward.parameter_nodes),
      networks_(forward.networks),
      loss_(forward.turns[turn].loss),
      row_loss_(forward.turns[turn].row_loss),
      other_loss_(forward.turns[turn].other_loss),
      mask_(forward.row_weight),
      seed_(seed),
      total_steps_(total_steps) {
  Settle();
}

void BackwardGraph::Settle(std::vector<std::vector<NodeId>*> pinned) {
  std::vector<NodeId> ids;
  graph_ = tensor::ExpandDerived(graph_, ids);
  auto update = [&](NodeId& id) { id = ids[id]; };
  update(loss_);
  update(mask_);
  if (row_loss_) update(*row_loss_);
  if (other_loss_) update(*other_loss_);
  for (NodeId& id : parameters_) update(id);
  for (auto& [model, network] : networks_) {
    update(network.output);
    if (network.log_output) update(*network.log_output);
    for (NodeId& id : network.values) update(id);
  }
  pinned.insert(pinned.end(), pins_.begin(), pins_.end());
  for (std::vector<NodeId>* own : pinned) {
    for (NodeId& id : *own) update(id);
  }
}

BackwardGraph::Pin::Pin(BackwardGraph& graph, std::vector<NodeId>& nodes) : graph_(graph) {
  graph_.pins_.push_back(&nodes);
}
BackwardGraph::Pin::~Pin() { graph_.pins_.pop_back(); }

NodeId BackwardGraph::completed() { return graph_.Cast(*graph_.Find("step"), DType::kF64); }

NodeId BackwardGraph::Key(std::string_view label) {
  const NodeId step = graph_.Cast(*graph_.Find("step"), DType::kU64);
  return DeriveKey(graph_, step, std::string(label) + "/" + std::to_string(seed_));
}

NodeId BackwardGraph::FixedKey(std::string_view label) {
  return DeriveKey(graph_, graph_.Const(0, DType::kU64),
                   std::string(label) + "/" + std::to_string(seed_));
}

std::vector<NodeId> BackwardGraph::Differentiate(NodeId scalar, std::vector<NodeId> wrt,
                                                 std::vector<std::vector<NodeId>*> pinned) {
  std::vector<NodeId> root = {scalar};
  pinned.push_back(&root);
  pinned.push_back(&wrt);
  Settle(pinned);
  return tensor::Differentiate(graph_, root[0], wrt).nodes;
}

NodeId BackwardGraph::Substitute(NodeId root, const std::map<NodeId, NodeId>& in_place_of) {
  std::vector<bool> needed(root + 1);
  needed[root] = true;
  for (NodeId id = root + 1; id-- > 0;) {
    if (!needed[id] || in_place_of.contains(id)) continue;
    for (NodeId input : graph_.node(id).inputs) needed[input] = true;
  }
  std::vector<NodeId> copy(root + 1);
  for (NodeId id = 0; id <= root; ++id) {
    copy[id] = id;
    if (!needed[id]) continue;
    if (const auto other = in_place_of.find(id); other != in_place_of.end()) {
      copy[id] = other->second;
      continue;
    }
    const tensor::Node node = graph_.node(id);
    std::vector<NodeId> inputs;
    bool changed = false;
    for (NodeId input : node.inputs) {
      inputs.push_back(copy[input]);
      changed |= copy[input] != input;
    }
    if (changed) copy[id] = graph_.Add(node.op, std::move(inputs), node.attr, {}, node.span);
  }
  return copy[root];
}

}  // namespace l3c::l2
