// The e-graph of all candidates: rewrites/lower_l3_l2.egg saturated over a specification's facts,
// and fronts of networks extracted from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/pareto.h"
#include "egraph/view.h"
#include "layers/l2/candidate.h"
#include "layers/l2/score.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

class SpaceGraph {
 public:
  // `work` grows by the matches of the rules. A Timeout when the budget ends before the rules do.
  SpaceGraph(const Space& space, const Scorer& scorer, const search::Budget& budget);

  const std::optional<search::Timeout>& timeout() const { return timeout_; }
  uint64_t work() const { return work_; }

  // Complete methods, each alternative of each choice counted.
  double CountCandidates() const;
  size_t node_count() const { return view_->node_count(); }
  size_t class_count() const { return view_->class_count(); }
  const std::string& stop_reason() const { return stop_reason_; }

  // Networks that no `k` others beat in steps and step time (and parameters, where they are
  // bounded), for steps of this batch and optimiser, under the restriction's choices of depth and
  // layers. Only `hidden` of each Choice is filled. Empty when nothing is legal.
  std::vector<Choice> Networks(size_t batch, size_t optimizer, const Restriction& restriction,
                               size_t k);
  // The fewest parameters that a network can have, whatever the budget.
  std::optional<int64_t> FewestParameters(const Restriction& restriction);

  // Work ran out during an extraction since the start.
  bool exhausted() const { return exhausted_; }

  // The rules that made the alternatives of a decision: of the constructor that holds it ("Stage")
  // and of a fact that had to hold ("Width"; "" for none).
  std::vector<search::RuleUse> RulesFor(std::string_view constructor,
                                        std::string_view fact = {}) const;

 private:
  struct Allowed;
  // What an e-node of a network stands for.
  struct NetworkNode {
    const Piece* piece = nullptr;  // null: no stage
    bool output = false;
    size_t position = 0;           // hidden stages before it
    HiddenStage stage;
  };

  void ReadNetworkNodes();
  Allowed Mask(const Restriction& restriction) const;
  bool Allows(const Allowed& allowed, const NetworkNode& node) const;
  egraph::ParetoResult Extract(egraph::ParetoOptions options);
  Choice Decode(const egraph::ParetoTerm& term) const;
  // The class of a request without arguments ("NetworkWanted").
  egraph::ClassRef ClassOf(std::string_view request) const;

  const Space& space_;
  const Scorer& scorer_;
  uint64_t budget_work_ = 0;
  egraph::EGraph graph_;
  std::unique_ptr<egraph::EGraphView> view_;
  std::vector<NetworkNode> nodes_;  // by e-node of the view
  std::string stop_reason_;
  std::optional<search::Timeout> timeout_;
  uint64_t work_ = 0;
  bool exhausted_ = false;
};

}  // namespace l3c::l2
