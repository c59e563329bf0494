// The backward methods: how the direction of a step is found. Each is one entry in a file of its
// own, which says what networks it can handle and appends the direction to the graph of a step.
// Everything below L2 sees tensor ops alone.
//
//   autodiff            the exact gradient, by reverse or forward accumulation
//   straight_through    the gradient, with flat layers taken for something that has a slope
//   dfa                 the gradient of each stage, for an error fed back at random
//   reinforce           the gradient of expected loss, from sampled outputs
//   zeroth_order        differences of the loss at random points around the parameters
//   evolution           a population around the parameters, weighed by fitness
//   hybrid              a blend of two
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/l2/ir.h"
#include "layers/support/diagnostics.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// The graph of a step while directions are added to it.
class BackwardGraph {
 public:
  // `forward.graph` becomes primitives only. `turn`: which loss. `total_steps`: of all phases.
  BackwardGraph(const ForwardGraph& forward, size_t turn, uint64_t seed, int64_t total_steps);

  tensor::Graph& graph() { return graph_; }
  tensor::NodeId loss() const { return loss_; }
  // The two parts of the loss: TurnNodes.
  const std::optional<tensor::NodeId>& row_loss() const { return row_loss_; }
  const std::optional<tensor::NodeId>& other_loss() const { return other_loss_; }
  tensor::NodeId mask() const { return mask_; }  // f32 [batch]: 0 for rows that count nothing
  tensor::NodeId parameter(size_t p) const { return parameters_[p]; }
  const std::vector<Parameter>& parameters() const { return info_; }
  // What the model with this index makes of its own input.
  const NetworkNodes& network(size_t model) const { return networks_.at(model); }
  int64_t total_steps() const { return total_steps_; }
  tensor::NodeId completed();                       // f64 []: steps done
  tensor::NodeId Key(std::string_view label);       // u64 [], another in every step
  tensor::NodeId FixedKey(std::string_view label);  // the same in every step

  // Gradients of a scalar by nodes of the graph. Derived ops that were appended are expanded first,
  // which changes ids: `pinned` lists the caller's own, to be brought up to date; those of a Pin
  // that is alive are, too.
  std::vector<tensor::NodeId> Differentiate(tensor::NodeId scalar, std::vector<tensor::NodeId> wrt,
                                            std::vector<std::vector<tensor::NodeId>*> pinned = {});
  // The value of `root` where other nodes stand in place of some: what depends on them once more.
  tensor::NodeId Substitute(tensor::NodeId root,
                            const std::map<tensor::NodeId, tensor::NodeId>& in_place_of);
  void Settle(std::vector<std::vector<tensor::NodeId>*> pinned = {});

  // Keeps nodes up to date while others append to the graph.
  class Pin {
   public:
    Pin(BackwardGraph& graph, std::vector<tensor::NodeId>& nodes);
    ~Pin();
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    BackwardGraph& graph_;
  };

 private:
  tensor::Graph graph_;
  std::vector<Parameter> info_;
  std::vector<tensor::NodeId> parameters_;
  std::map<size_t, NetworkNodes> networks_;
  tensor::NodeId loss_ = 0;
  std::optional<tensor::NodeId> row_loss_;
  std::optional<tensor::NodeId> other_loss_;
  std::vector<std::vector<tensor::NodeId>*> pins_;  // of those alive, the oldest first
  tensor::NodeId mask_ = 0;
  uint64_t seed_ = 0;
  int64_t total_steps_ = 1;
};

struct BackwardCall {
  const Form* form = nullptr;
  const Methods* methods = nullptr;  // of the model whose parameters move
  size_t model = 0;                  // its index
  std::vector<size_t> parameters;    // into BackwardGraph::parameters()
};

struct BackwardEntry {
  Entry form;
  // Reports why the method cannot train the network; null: it can train any.
  std::function<void(const Form&, const Module&, const Methods&, support::Diagnostics&)> check;
  // The direction of each parameter of the call.
  std::function<std::vector<tensor::NodeId>(BackwardGraph&, const BackwardCall&)> direct;
  bool draws = false;  // random numbers
  // Layers with a surrogate are expanded as it.
  bool takes_surrogates = false;
};

const std::deque<BackwardEntry>& AllBackwardMethods();
const BackwardEntry* FindBackward(std::string_view name);

// Of the form and those inside it.
bool DrawsRandomNumbers(const Form& backward);
bool TakesSurrogates(const Form& backward);
// The surrogate's kind, where one is taken: "identity", "clipped".
std::string SurrogateOf(const Form& backward);
void CheckBackward(const Form& backward, const Module& module, const Methods& methods,
                   support::Diagnostics& diagnostics);

BackwardEntry AutodiffBackward();         // backward_autodiff.cc
BackwardEntry StraightThroughBackward();  // backward_straight_through.cc
BackwardEntry DfaBackward();              // backward_dfa.cc
BackwardEntry ReinforceBackward();        // backward_reinforce.cc
BackwardEntry ZerothOrderBackward();      // backward_population.cc
BackwardEntry EvolutionBackward();        // backward_population.cc
BackwardEntry HybridBackward();           // backward_hybrid.cc

}  // namespace l3c::l2
