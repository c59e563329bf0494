// The best candidates of a space, and what they beat.
//
// Batch and optimiser change what a stage of the network costs; everything else but the network
// changes the steps alone, so its best label does not depend on the network. So for each pair of
// batch and optimiser the best network is extracted and joined with the best of the other choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/candidate.h"
#include "layers/l2/score.h"
#include "layers/l2/space_graph.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

struct Scored {
  Choice choice;
  Score score;
};

// The order of candidates: by score, then the fixed order of choices.
bool Better(const Scored& a, const Scored& b);

class Searcher {
 public:
  // All must outlive the searcher. Choices of other models in options.forced must be gone.
  Searcher(const Space& space, const Scorer& scorer, SpaceGraph& graph,
           const search::LoweringOptions& options);

  const Restriction& forced() const { return forced_; }
  uint64_t scored() const { return scored_; }

  // A forced choice that no candidate has.
  std::optional<search::SearchFailure> CheckForced() const;
  // The best candidate under a restriction; nothing when none is legal.
  std::optional<Scored> Best(const Restriction& restriction);
  // The `count` best, in order, `winner` first.
  std::vector<Scored> Top(Scored winner, size_t count);
  // The first legal candidate in the fixed order of decisions and labels.
  std::optional<Scored> First();
  // From the first candidate, each decision in turn to the label that is best as all else stands,
  // until no single change helps.
  std::optional<Scored> Greedy();
  // Adds the decisions of the winner; `losers`: with the best candidate under every other label.
  void Explain(const Scored& winner, bool losers, search::Explanation& explanation);

 private:
  Scored Evaluate(Choice choice);
  // log(steps factor · seconds) of the best network for the pair, unrestricted.
  double BestNetworkLog(size_t batch, size_t optimizer);
  // All choices but the network, each at its best for one batch and optimiser, with their share of
  // log steps. They change the steps alone, so they do not depend on one another.
  std::optional<std::pair<Choice, double>> BestRest(size_t batch, size_t optimizer,
                                                    const Restriction& restriction) const;
  bool WithinBudget(const Score& score) const;
  // The legal candidates that differ from `choice` in this decision alone.
  std::vector<Scored> SingleChanges(const Choice& choice, const std::string& id);
  void AddLosers(const Scored& winner, const std::string& id, const std::string& chosen,
                 search::Decision& decision);
  std::vector<search::RuleUse> RulesOf(const std::string& what) const;

  const Space& space_;
  const Scorer& scorer_;
  SpaceGraph& graph_;
  std::string prefix_;
  Restriction forced_;
  std::map<std::pair<size_t, size_t>, double> best_network_;
  uint64_t scored_ = 0;
};

}  // namespace l3c::l2
