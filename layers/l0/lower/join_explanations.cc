#include "layers/l0/lower/join_explanations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "layers/l0/lower/step_cache.h"

namespace l3c::l0::lower {

namespace {

const search::CostComponent* Find(const search::CostVector& cost, const std::string& name) {
  const auto it = std::find_if(cost.begin(), cost.end(),
                               [&](const auto& component) { return component.name == name; });
  return it == cost.end() ? nullptr : &*it;
}

class ExplanationJoiner {
 public:
  ExplanationJoiner(const Step& whole, const StepParts& parts,
                    std::vector<PartExplanation> explanations)
      : whole_(whole), parts_(parts), explanations_(std::move(explanations)) {
    total_ = JoinCosts(explanations_);
  }

  search::Explanation Run() {
    for (PartExplanation& of_part : explanations_) {
      SpellAll(of_part);
      for (search::Decision& decision : of_part.explanation.decisions) OfWhole(of_part, decision);
    }
    for (PartExplanation& of_part : explanations_) {
      search::Explanation& from = of_part.explanation;
      for (search::Decision& decision : from.decisions) {
        if (joined_.Find(decision.id) == nullptr) joined_.decisions.push_back(Joined(decision.id));
      }
      for (search::Pruned& pruned : from.pruned) AddPruned(std::move(pruned));
      for (std::string& cut : from.cuts) {
        if (std::find(joined_.cuts.begin(), joined_.cuts.end(), cut) == joined_.cuts.end()) {
          joined_.cuts.push_back(std::move(cut));
        }
      }
      from.decisions.clear();
      from.pruned.clear();
      from.cuts.clear();
      AddReport(from.report);
    }
    return std::move(joined_);
  }

 private:
  void SpellAll(PartExplanation& of_part) const {
    const auto spell = [&](std::string& text) {
      text = Spell(text, parts_, *of_part.part, 0, whole_);
    };
    for (search::Decision& decision : of_part.explanation.decisions) {
      spell(decision.id);
      spell(decision.chosen);
      for (search::Loser& loser : decision.losers) spell(loser.label);
      for (search::Pruned& pruned : decision.pruned) spell(pruned.what), spell(pruned.why);
    }
    for (search::Pruned& pruned : of_part.explanation.pruned) spell(pruned.what);
    for (std::string& cut : of_part.explanation.cuts) spell(cut);
  }

  void OfWhole(const PartExplanation& of_part, search::Decision& decision) const {
    const auto times = static_cast<double>(of_part.part->copies);
    const auto scale = [&](search::CostVector& cost, bool difference) {
      for (search::CostComponent& component : cost) {
        const search::CostComponent* part = Find(of_part.cost, component.name);
        const search::CostComponent* all = Find(total_, component.name);
        if (difference || part == nullptr || all == nullptr) {
          component.value *= times;
        } else {
          component.value = all->value + times * (component.value - part->value);
        }
      }
    };
    scale(decision.cost, false);
    for (search::Loser& loser : decision.losers) {
      scale(loser.cost, false);
      scale(loser.difference, true);
    }
    if (of_part.part->copies > 1) {
      decision.pruned.push_back({"the same choice in other copies of the block",
                                 "--force holds for all of them",
                                 static_cast<uint64_t>(of_part.part->copies) - 1});
    }
  }

  // The decision as all parts that have it make it.
  search::Decision Joined(const std::string& id) {
    std::vector<const search::Decision*> same;
    for (const PartExplanation& of_part : explanations_) {
      if (const search::Decision* found = of_part.explanation.Find(id)) same.push_back(found);
    }
    search::Decision joined = *same.front();
    if (same.size() == 1) return joined;
    joined.cost = total_;
    joined.losers.clear();
    joined.pruned.clear();
    std::vector<std::string> labels;
    for (const search::Decision* decision : same) {
      if (decision->chosen != joined.chosen) joined.chosen = "in part";
      labels.push_back(decision->chosen);
      for (const search::Loser& loser : decision->losers) labels.push_back(loser.label);
      for (const search::RuleUse& rule : decision->rules) {
        const auto known = [&](const search::RuleUse& other) { return other.name == rule.name; };
        if (std::none_of(joined.rules.begin(), joined.rules.end(), known)) {
          joined.rules.push_back(rule);
        }
      }
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      const bool again = std::find(labels.begin(), labels.begin() + static_cast<long>(i),
                                   labels[i]) != labels.begin() + static_cast<long>(i);
      if (again || labels[i] == joined.chosen || labels[i] == "in part") continue;
      if (auto loser = Everywhere(same, labels[i])) joined.losers.push_back(*std::move(loser));
    }
    std::stable_sort(joined.losers.begin(), joined.losers.end(),
                     [](const search::Loser& a, const search::Loser& b) {
                       return a.cost[0].value < b.cost[0].value;
                     });
    return joined;
  }

  // The label in all parts at once; nothing where one of them has no plan with it.
  std::optional<search::Loser> Everywhere(const std::vector<const search::Decision*>& decisions,
                                          const std::string& label) const {
    search::Loser loser;
    loser.label = label;
    loser.cost = total_;
    double most = 0;
    for (const search::Decision* decision : decisions) {
      if (decision->chosen == label) continue;
      const auto it =
          std::find_if(decision->losers.begin(), decision->losers.end(),
                       [&](const search::Loser& other) { return other.label == label; });
      if (it == decision->losers.end()) return std::nullopt;
      for (search::CostComponent& component : loser.cost) {
        const search::CostComponent* more = Find(it->difference, component.name);
        if (more != nullptr) component.value += more->value;
      }
      const search::CostComponent* time = Find(it->difference, "time");
      if (loser.decided_by.empty() || (time != nullptr && time->value > most)) {
        loser.decided_by = it->decided_by;
        most = time == nullptr ? 0 : time->value;
      }
    }
    loser.difference = search::Difference(loser.cost, total_);
    return loser;
  }

  void AddPruned(search::Pruned pruned) {
    for (search::Pruned& other : joined_.pruned) {
      if (other.what != pruned.what || other.why != pruned.why) continue;
      other.count += pruned.count;
      return;
    }
    joined_.pruned.push_back(std::move(pruned));
  }

  void AddReport(const search::SearchReport& report) {
    search::Explanation part;
    part.report = report;
    AddExplanation(std::move(part), joined_);
  }

  const Step& whole_;
  const StepParts& parts_;
  std::vector<PartExplanation> explanations_;
  search::CostVector total_;
  search::Explanation joined_;
};

}  // namespace

search::CostVector JoinCosts(const std::vector<PartExplanation>& parts) {
  search::CostVector total;
  for (const PartExplanation& part : parts) {
    for (const search::CostComponent& component : part.cost) {
      const auto it = std::find_if(total.begin(), total.end(),
                                   [&](const auto& other) { return other.name == component.name; });
      const double value = component.value * static_cast<double>(part.part->copies);
      if (it == total.end()) {
        total.push_back(component);
        total.back().value = value;
      } else {
        it->value += value;
      }
    }
  }
  return total;
}

search::Explanation JoinExplanations(const Step& whole, const StepParts& parts,
                                     std::vector<PartExplanation> explanations) {
  return ExplanationJoiner(whole, parts, std::move(explanations)).Run();
}

}  // namespace l3c::l0::lower
