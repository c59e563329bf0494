// The e-graph of all candidates: rewrites/lower_l3_l2.egg saturated over a specification's facts,
// and the best networks extracted from it.
//
// Log steps L and step time T both add up over the stages of a network, but what ranks it is their
// product, that is L + log T. That is a concave function of the point (L, T), so its least value
// over all networks is at a corner of their convex hull, and every corner is the least of L + λT
// for some λ ≥ 0: one pass over the graph. The corners are found by splitting: between two of them,
// the λ at which both are equal gives either a corner between or the proof that there is none. A
// few dozen passes search any number of networks.
//
// A bound on parameters or latency, P ≤ B, cuts into the hull. When the best network exceeds one,
// chains are extended one stage at a time instead, keeping of each class those that no other beats
// in L, T and what is bounded. What keeps this small is a lower bound on what a chain can still
// become, exact but for the budgets: the least of L + log T over the corners of the hull of
// everything that may follow; and the same with the budgets priced in, L + Σ μ(P − B) + log T,
// which is no more than L + log T for every network within the budgets. A chain whose bound exceeds
// a network already known is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/view.h"
#include "layers/l2/candidate.h"
#include "layers/l2/score.h"
#include "layers/search/lowering.h"
#include "layers/search/rule_trace.h"

namespace l3c::l2 {

class SpaceGraph {
 public:
  // `work` grows by the matches of the rules. A Timeout when the budget ends before the rules do.
  // Rules of the user's that belong to the lowering are loaded after the built-in ones.
  SpaceGraph(const Space& space, const Scorer& scorer, const search::Budget& budget,
             const std::vector<search::AddedRules>& added = {});

  const std::optional<search::Timeout>& timeout() const { return timeout_; }
  uint64_t work() const { return work_; }

  // Complete methods, each alternative of each choice counted.
  double CountCandidates() const;
  size_t node_count() const { return view_->node_count(); }
  size_t class_count() const { return view_->class_count(); }
  const std::string& stop_reason() const { return stop_reason_; }

  // The network of the least steps · step time within param_budget and latency_budget, for steps of
  // this batch and optimiser, under the restriction's choices of depth and layers. Only `hidden` of
  // the Choice is filled. Nothing when nothing is legal.
  std::optional<Choice> Network(size_t batch, size_t optimizer, const Restriction& restriction);
  // log(steps factor · step time) of the best network without restriction or budget.
  double LeastLogScore(size_t batch, size_t optimizer);
  // The fewest parameters that a network can have, whatever the budget.
  std::optional<int64_t> FewestParameters(const Restriction& restriction);
  // The least predicted seconds of one sample's forward pass that a network can have, likewise.
  std::optional<double> LeastLatency(const Restriction& restriction);

  // What became of the user's rules, once the decisions are in `explanation`.
  void Trace(search::Explanation& explanation) {
    search::TraceRules(graph_, first_added_, explanation);
  }

  // Work ran out during an extraction since the start.
  bool exhausted() const { return exhausted_; }

  // The rules that made the alternatives of a decision: of the constructor that holds it ("Stage")
  // and of a fact that had to hold ("Width"; "" for none).
  std::vector<search::RuleUse> RulesFor(std::string_view constructor,
                                        std::string_view fact = {}) const;

 private:
  // What an e-node of a network stands for.
  struct NetworkNode {
    const Piece* piece = nullptr;  // null: no stage
    bool embedding = false;        // `stage.width` is that of the tokens' vectors
    bool output = false;
    Readout readout = Readout::kFlat;
    size_t position = 0;  // hidden stages before it
    HiddenStage stage;
    bool leaf() const { return piece == nullptr || embedding; }
  };

  // A complete network: its place in the plane of L and T, and its e-nodes.
  struct Point {
    double steps = 0;  // L
    double time = 0;   // T
    std::vector<egraph::ENodeRef> nodes;
    double score() const;
  };

  // Something of which a network may have only so much. It adds up over the stages.
  struct Bound {
    const std::vector<double>* load = nullptr;  // by e-node
    double budget = 0;
  };

  // What a pass adds up, by e-node of the view: L and T, or stand-ins for them.
  struct Costs {
    const std::vector<double>* steps = nullptr;
    const std::vector<double>* time = nullptr;
  };

  void ReadNetworkNodes();
  // By e-node of the view: may it be taken?
  std::vector<bool> Mask(const Restriction& restriction) const;
  Costs CostsOf(size_t batch, size_t optimizer);
  // The network of the least a·L + b·T; of equals, the lesser in the figure of no weight.
  std::optional<Point> Least(double a, double b, const Costs& costs, const std::vector<bool>& mask);
  // The network of the least L + log(T).
  std::optional<Point> LeastScore(const Costs& costs, const std::vector<bool>& mask);
  // Stage after stage, as the scores add it up.
  double Load(const Point& point, const std::vector<double>& load) const;
  bool Within(const Point& point) const;
  // The best network within all bounds.
  std::optional<Point> LeastWithinBudget(const Costs& costs, const std::vector<bool>& mask);
  // A network within all bounds, good if not the best, and the prices of a unit of each, in log
  // steps, under which the bound on all networks is highest.
  struct Priced {
    std::optional<Point> network;
    std::vector<double> prices;  // by bound
  };
  Priced PriceBounds(const Costs& costs, const std::vector<bool>& mask);
  std::vector<double> WithPrices(const std::vector<double>& steps,
                                 std::span<const double> prices) const;
  // By class: corners (L, T) of the hull of what may follow a chain of the class, by ascending L.
  using Hull = std::vector<std::pair<double, double>>;
  std::vector<Hull> RestHulls(const Costs& costs, const std::vector<bool>& mask) const;
  // By class: the least load that may follow; infinite where nothing can.
  std::vector<double> LeastToFollow(const std::vector<double>& load,
                                    const std::vector<bool>& mask) const;
  Choice Decode(std::span<const egraph::ENodeRef> nodes) const;
  // The class of a request without arguments ("NetworkWanted").
  egraph::ClassRef ClassOf(std::string_view request) const;

  const Space& space_;
  const Scorer& scorer_;
  uint64_t budget_work_ = 0;
  egraph::EGraph graph_;
  uint32_t first_added_ = 0;  // rule of the user's
  std::unique_ptr<egraph::EGraphView> view_;
  std::vector<NetworkNode> nodes_;           // by e-node of the view
  std::vector<egraph::ClassRef> by_length_;  // classes of networks, shorter chains first
  std::vector<double> log_steps_, parameters_, latency_;  // by e-node
  std::vector<Bound> bounds_;
  std::map<std::pair<size_t, size_t>, std::vector<double>> seconds_;  // by batch and optimiser
  std::string stop_reason_;
  std::optional<search::Timeout> timeout_;
  uint64_t work_ = 0;
  bool exhausted_ = false;
};

}  // namespace l3c::l2
