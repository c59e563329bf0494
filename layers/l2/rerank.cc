#include "layers/l2/rerank.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layers/support/printer.h"

namespace l3c::l2 {
namespace {

using search::NoCandidates;
using search::SearchFailure;

// "layer1.norm=norm(rms)": where a choice differs from another.
std::string Differing(const Space& space, const Choice& choice, const Choice& from) {
  std::map<std::string, std::string> other;
  for (auto& [id, label] : Decisions(space, from)) other[id] = label;
  const std::string prefix = "l2/" + space.model->name + "/";
  std::vector<std::string> differing;
  for (const auto& [id, label] : Decisions(space, choice)) {
    if (other[id] != label) differing.push_back(id.substr(prefix.size()) + "=" + label);
  }
  return support::Join(differing);
}

// Plans take the same time where nothing differs but figures: which these are.
std::string PlanKey(const Space& space, const Choice& choice) {
  std::string key;
  for (const auto& [id, label] : Decisions(space, choice)) {
    const bool figure = id.ends_with("update.lr") || id.ends_with("phases.epochs") ||
                        (id.ends_with("update.warmup") && label != "0");
    key += id + "=" + (figure ? "" : label) + ";";
  }
  return key;
}

}  // namespace

std::string PlanDecision(const Space& space) { return "l2/" + space.model->name + "/plan"; }

std::optional<SearchFailure> Rerank(const Space& space, const StepSimulator& simulate,
                                    const search::ForcedChoices& forced, std::vector<Scored>& found,
                                    search::Explanation& explanation) {
  const std::string id = PlanDecision(space);
  struct Simulated {
    Scored candidate;
    size_t rank = 0;  // by the priors, from 1
    search::CostVector cost;
  };
  std::map<std::string, std::optional<double>> seconds;  // by plan
  std::vector<Simulated> all;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [it, fresh] = seconds.try_emplace(PlanKey(space, found[i].choice));
    if (fresh) it->second = simulate(Build(space, found[i].choice));
    if (!it->second) continue;  // it cannot be placed
    Simulated& one = all.emplace_back();
    one.candidate = found[i];
    one.rank = i + 1;
    one.cost = {{"simulated", found[i].score.steps * *it->second, "s", "prior"},
                {"plan_step", *it->second, "s", "analytical"},
                {"time_to_target", found[i].score.time_to_target(), "s", "prior"}};
  }
  if (all.empty()) return std::nullopt;  // the next lowering says why
  std::stable_sort(all.begin(), all.end(), [](const Simulated& a, const Simulated& b) {
    return a.cost[0].value < b.cost[0].value;
  });
  std::string rank;
  for (const auto& [other, label] : forced) {
    if (other.starts_with("l2/")) rank = "1";
  }
  if (const auto wanted = forced.find(id); wanted != forced.end()) rank = wanted->second;
  if (!rank.empty()) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const Simulated& one) {
      return std::to_string(one.rank) == rank;
    });
    if (at != all.end()) {
      std::rotate(all.begin(), at, at + 1);
    } else if (forced.contains(id)) {
      return NoCandidates{"'" + rank + "' is no candidate of '" + id + "'",
                          "candidates: 1 to " + std::to_string(found.size()),
                          {}};
    }
  }
  search::Decision decision;
  decision.id = id;
  decision.chosen = std::to_string(all.front().rank);
  decision.cost = all.front().cost;
  decision.forced = forced.contains(id);
  for (size_t i = 1; i < all.size(); ++i) {
    search::Loser loser;
    loser.label = std::to_string(all[i].rank);
    loser.cost = all[i].cost;
    loser.difference = search::Difference(loser.cost, decision.cost);
    const bool slower = all[i].cost[1].value > all.front().cost[1].value;
    loser.decided_by = (slower ? "the simulated plan; " : "predicted steps; ") +
                       Differing(space, all[i].candidate.choice, all.front().candidate.choice);
    decision.losers.push_back(std::move(loser));
  }
  explanation.decisions.push_back(std::move(decision));
  found.clear();
  for (Simulated& one : all) found.push_back(std::move(one.candidate));
  return std::nullopt;
}

}  // namespace l3c::l2
