#include "layers/l2/searcher.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {

using search::NoCandidates;
using search::SearchFailure;
using support::PrintInteger;

bool Better(const Scored& a, const Scored& b) {
  return Better(a.score, a.choice, b.score, b.choice);
}

Searcher::Searcher(const Space& space, const Scorer& scorer, SpaceGraph& graph,
                   const search::LoweringOptions& options)
    : space_(space), scorer_(scorer), graph_(graph), prefix_("l2/" + space.model->name + "/") {
  for (const auto& [id, label] : options.forced) {
    if (id.starts_with("l2/") && id != prefix_ + "plan") forced_.required[id] = label;
  }
}

std::optional<SearchFailure> Searcher::CheckForced() const {
  for (const auto& [id, label] : forced_.required) {
    const auto labels = Labels(space_, id);
    if (!labels) {
      return NoCandidates{"there is no decision '" + id + "' to force",
                          "decisions: " + support::Join(AllDecisionIds(space_)),
                          {}};
    }
    if (std::find(labels->begin(), labels->end(), label) == labels->end()) {
      return NoCandidates{
          "'" + label + "' is no choice of '" + id + "'", "choices: " + support::Join(*labels), {}};
    }
  }
  return std::nullopt;
}

std::optional<Scored> Searcher::Best(const Restriction& restriction) {
  struct Pair {
    size_t batch, optimizer;
    Choice rest;   // all but the network
    double bound;  // no candidate of the pair has a lower log score
  };
  std::vector<Pair> pairs;
  for (size_t b = 0; b < space_.priors.batches.size(); ++b) {
    for (size_t o = 0; o < space_.priors.optimizers.size(); ++o) {
      auto rest = BestRest(b, o, restriction);
      if (!rest) continue;
      pairs.push_back({b, o, rest->first, rest->second + BestNetworkLog(b, o)});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.bound < b.bound; });
  std::optional<Scored> best;
  for (const Pair& pair : pairs) {
    // A little slack: the bound and the score add the same numbers in another order.
    if (best &&
        pair.bound > std::log(best->score.time_to_target() / space_.priors.base_steps) + 1e-9) {
      break;
    }
    const auto network = graph_.Network(pair.batch, pair.optimizer, restriction);
    if (!network) continue;
    Choice choice = pair.rest;
    choice.embed = network->embed;
    choice.hidden = network->hidden;
    choice.readout = network->readout;
    Scored candidate = Evaluate(std::move(choice));
    if (!best || Better(candidate, *best)) best = std::move(candidate);
  }
  return best;
}

// What is left when a candidate is taken splits by its decisions: those that differ from it in the
// first, those that agree in the first and differ in the second, and so on; each part is searched
// for its best (Lawler 1972).
std::vector<Scored> Searcher::Top(Scored winner, size_t count) {
  struct Part {
    Scored best;
    Restriction restriction;
  };
  std::vector<Part> parts = {{std::move(winner), forced_}};
  std::vector<Scored> top;
  while (!parts.empty() && top.size() < count && !graph_.exhausted()) {
    const auto next =
        std::min_element(parts.begin(), parts.end(),
                         [](const Part& a, const Part& b) { return Better(a.best, b.best); });
    const Part part = std::move(*next);
    parts.erase(next);
    top.push_back(part.best);
    if (top.size() == count) break;
    Restriction agrees = part.restriction;
    for (const auto& [id, label] : Decisions(space_, part.best.choice)) {
      if (part.restriction.required.contains(id)) continue;
      Restriction differs = agrees;
      differs.excluded[id].push_back(label);
      agrees.required[id] = label;
      if (auto best = Best(differs)) parts.push_back({std::move(*best), std::move(differs)});
    }
  }
  return top;
}

std::optional<Scored> Searcher::First() {
  Restriction so_far = forced_;
  std::optional<Scored> found;
  size_t at = 0;
  for (;;) {
    if (!found) {
      found = Best(so_far);
      if (!found) return std::nullopt;
    }
    const auto decisions = Decisions(space_, found->choice);
    if (at == decisions.size()) return found;
    const std::string id = decisions[at++].first;
    if (so_far.required.contains(id)) continue;
    const std::vector<std::string> labels = *Labels(space_, id);
    for (const std::string& label : labels) {
      Restriction next = so_far;
      next.required[id] = label;
      if (auto candidate = Best(next)) {
        so_far = std::move(next);
        found = std::move(candidate);
        break;
      }
    }
  }
}

std::optional<Scored> Searcher::Greedy() {
  std::optional<Scored> now = First();
  for (bool changed = now.has_value(); changed;) {
    changed = false;
    for (size_t at = 0; at < Decisions(space_, now->choice).size(); ++at) {
      const auto [id, label] = Decisions(space_, now->choice)[at];
      if (forced_.required.contains(id)) continue;
      for (Scored& other : SingleChanges(now->choice, id)) {
        if (!Better(other, *now)) continue;
        now = std::move(other);
        changed = true;
      }
    }
  }
  return now;
}

void Searcher::Explain(const Scored& winner, bool losers, search::Explanation& explanation) {
  for (const auto& [id, label] : Decisions(space_, winner.choice)) {
    search::Decision decision;
    decision.id = id;
    decision.chosen = label;
    decision.cost = scorer_.Cost(winner.score);
    decision.forced = forced_.required.contains(id);
    const std::string what = id.substr(prefix_.size());
    decision.rules = RulesOf(what);
    if (losers) AddLosers(winner, id, label, decision);
    explanation.decisions.push_back(std::move(decision));
  }
}

Scored Searcher::Evaluate(Choice choice) {
  ++scored_;
  Score score = scorer_.Evaluate(choice);
  return {std::move(choice), std::move(score)};
}

double Searcher::BestNetworkLog(size_t batch, size_t optimizer) {
  auto [it, fresh] = best_network_.try_emplace(std::pair(batch, optimizer), 0.0);
  if (fresh) it->second = graph_.LeastLogScore(batch, optimizer);
  return it->second;
}

std::optional<std::pair<Choice, double>> Searcher::BestRest(size_t batch, size_t optimizer,
                                                            const Restriction& restriction) const {
  const Priors& p = space_.priors;
  auto allows = [&](std::string_view what, const std::string& label) {
    return restriction.Allows(prefix_ + std::string(what), label);
  };
  if (!allows("sample.batch", PrintInteger(p.batches[batch])) ||
      !allows("update.optimizer", p.optimizers[optimizer].name)) {
    return std::nullopt;
  }
  double sum = scorer_.BatchLog(batch) + scorer_.OptimizerLog(optimizer);
  bool legal = true;
  auto least = [&](std::string_view what, size_t labels, auto label, auto log) {
    std::optional<size_t> best;
    for (size_t i = 0; i < labels; ++i) {
      if (allows(what, label(i)) && (!best || log(i) < log(*best))) best = i;
    }
    if (best) sum += log(*best);
    legal = legal && best;
    return best.value_or(0);
  };
  const OptimizerPrior& prior = p.optimizers[optimizer];
  Choice choice;
  choice.batch = batch;
  choice.optimizer = optimizer;
  choice.rate = least(
      "update.lr", prior.rates.size(), [&](size_t i) { return support::PrintReal(prior.rates[i]); },
      [&](size_t i) { return scorer_.RateLog(optimizer, i); });
  choice.warmup = least(
      "update.warmup", p.warmups.size(), [&](size_t i) { return PrintInteger(p.warmups[i]); },
      [&](size_t i) { return scorer_.WarmupLog(optimizer, i); });
  choice.decay = least(
      "update.decay", p.decays.size(), [&](size_t i) { return p.decays[i].name; },
      [&](size_t i) { return scorer_.DecayLog(i); });
  for (size_t t = 0; t < space_.loss_terms.size(); ++t) {
    const auto& fitting = space_.fitting_losses[t];
    choice.losses.push_back(fitting[least(
        "loss." + space_.loss_terms[t], fitting.size(),
        [&](size_t i) { return p.losses[fitting[i]].label; },
        [&](size_t i) { return scorer_.LossLog(fitting[i]); })]);
  }
  choice.epochs = least(
      "phases.epochs", p.epochs.size(), [&](size_t i) { return PrintInteger(p.epochs[i]); },
      [&](size_t i) { return scorer_.EpochsLog(i); });
  if (!legal) return std::nullopt;
  return std::pair(std::move(choice), sum);
}

bool Searcher::WithinBudget(const Score& score) const {
  const auto parameters = space_.model->param_budget();
  const auto latency = space_.model->latency_budget();
  return (!parameters || score.parameters <= *parameters) &&
         (!latency || score.latency <= *latency);
}

std::vector<Scored> Searcher::SingleChanges(const Choice& choice, const std::string& id) {
  std::vector<Scored> changes;
  auto consider = [&](Choice changed) {
    auto settled = Settle(space_, std::move(changed));
    if (!settled) return;
    for (const auto& [other, label] : Decisions(space_, *settled)) {
      if (!forced_.Allows(other, label)) return;
    }
    Scored candidate = Evaluate(std::move(*settled));
    if (WithinBudget(candidate.score)) changes.push_back(std::move(candidate));
  };
  const std::string what = id.substr(prefix_.size());
  auto each = [&](size_t count, auto set) {
    for (size_t i = 0; i < count; ++i) {
      Choice changed = choice;
      set(changed, i);
      consider(std::move(changed));
    }
  };
  const Priors& p = space_.priors;
  if (what == "depth") {
    // Stages that are new begin like the last.
    each(static_cast<size_t>(space_.max_stages), [&](Choice& c, size_t i) {
      c.hidden.resize(i, c.hidden.empty() ? HiddenStage{} : c.hidden.back());
    });
    if (choice.hidden.empty()) {
      // Of a first hidden stage there are many: all are tried.
      for (StageKind kind : LegalKinds(space_)) {
        for (size_t w = 0; w < space_.widths.size(); ++w) {
          for (size_t n = 0; n < p.norms.size(); ++n) {
            for (size_t a = 0; a < p.activations.size(); ++a) {
              Choice changed = choice;
              changed.hidden = {{kind, w, n, a}};
              consider(std::move(changed));
            }
          }
        }
      }
    }
  } else if (what == "embed.width") {
    each(space_.widths.size(), [](Choice& c, size_t i) { c.embed = i; });
  } else if (what == "readout") {
    const std::vector<Readout> readouts = LegalReadouts(space_);
    each(readouts.size(), [&](Choice& c, size_t i) { c.readout = readouts[i]; });
  } else if (what == "sample.batch") {
    each(p.batches.size(), [](Choice& c, size_t i) { c.batch = i; });
  } else if (what == "update.optimizer") {
    each(p.optimizers.size(), [&](Choice& c, size_t i) {
      c.optimizer = i;
      c.rate = std::min(c.rate, p.optimizers[i].rates.size() - 1);
    });
  } else if (what == "update.lr") {
    each(p.optimizers[choice.optimizer].rates.size(), [](Choice& c, size_t i) { c.rate = i; });
  } else if (what == "update.warmup") {
    each(p.warmups.size(), [](Choice& c, size_t i) { c.warmup = i; });
  } else if (what == "update.decay") {
    each(p.decays.size(), [](Choice& c, size_t i) { c.decay = i; });
  } else if (what == "phases.epochs") {
    each(p.epochs.size(), [](Choice& c, size_t i) { c.epochs = i; });
  } else if (what.starts_with("loss.")) {
    for (size_t t = 0; t < space_.loss_terms.size(); ++t) {
      if (what != "loss." + space_.loss_terms[t]) continue;
      each(space_.fitting_losses[t].size(),
           [&](Choice& c, size_t i) { c.losses[t] = space_.fitting_losses[t][i]; });
    }
  } else {
    const size_t dot = what.find('.');
    const size_t layer = static_cast<size_t>(std::stoul(what.substr(5, dot - 5))) - 1;
    const std::string part = what.substr(dot + 1);
    if (part == "kind") {
      const std::vector<StageKind> kinds = LegalKinds(space_);
      each(kinds.size(), [&](Choice& c, size_t i) { c.hidden[layer].kind = kinds[i]; });
    } else if (part == "width") {
      each(space_.widths.size(), [&](Choice& c, size_t i) { c.hidden[layer].width = i; });
    } else if (part == "norm") {
      each(p.norms.size(), [&](Choice& c, size_t i) { c.hidden[layer].norm = i; });
    } else {
      each(p.activations.size(), [&](Choice& c, size_t i) { c.hidden[layer].activation = i; });
    }
  }
  return changes;
}

void Searcher::AddLosers(const Scored& winner, const std::string& id, const std::string& chosen,
                         search::Decision& decision) {
  std::vector<std::pair<Scored, std::string>> losers;
  const std::vector<std::string> labels = *Labels(space_, id);
  for (const std::string& label : labels) {
    if (label == chosen) continue;
    Restriction restriction = forced_;
    restriction.required[id] = label;
    if (auto loser = Best(restriction)) {
      losers.emplace_back(std::move(*loser), label);
      continue;
    }
    const auto fewest = graph_.FewestParameters(restriction);
    const auto budget = space_.model->param_budget();
    if (fewest && budget && *fewest > *budget) {
      decision.pruned.push_back({label,
                                 "needs at least " + PrintInteger(*fewest) +
                                     " parameters, param_budget(" + support::PrintCount(*budget) +
                                     ")",
                                 0});
      continue;
    }
    const auto least = graph_.LeastLatency(restriction);
    const auto time = space_.model->latency_budget();
    if (least && time && *least > *time) {
      decision.pruned.push_back({label,
                                 "a forward pass takes at least " + LatencyText(*least) +
                                     ", latency_budget(" + support::PrintSeconds(*time) + ")",
                                 0});
    } else if (fewest && budget && time) {
      decision.pruned.push_back({label, "exceeds param_budget or latency_budget", 0});
    } else {
      decision.pruned.push_back({label, "does not go with what is forced", 0});
    }
  }
  std::stable_sort(losers.begin(), losers.end(),
                   [](const auto& a, const auto& b) { return Better(a.first, b.first); });
  for (auto& [loser, label] : losers) {
    search::Loser record;
    record.label = label;
    record.cost = scorer_.Cost(loser.score);
    record.difference = search::Difference(record.cost, decision.cost);
    record.decided_by = scorer_.DecidedBy(winner.score, loser.score);
    decision.losers.push_back(std::move(record));
  }
}

std::vector<search::RuleUse> Searcher::RulesOf(const std::string& what) const {
  if (what == "depth" || what == "readout") return graph_.RulesFor("Output");
  if (what == "embed.width") return graph_.RulesFor("Embed", "Width");
  if (what.starts_with("layer")) {
    return graph_.RulesFor("Stage", what.ends_with(".width")  ? "Width"
                                    : what.ends_with(".kind") ? "Move"
                                                              : "");
  }
  if (what == "sample.batch") return graph_.RulesFor("EpochShuffle");
  if (what == "update.optimizer" || what == "update.lr") return graph_.RulesFor("Step");
  if (what.starts_with("update.")) return graph_.RulesFor("Schedule");
  if (what.starts_with("loss.")) return graph_.RulesFor("Term");
  return graph_.RulesFor("Epochs");
}

}  // namespace l3c::l2
