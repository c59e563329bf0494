#include "layers/l0/lower/explain.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "layers/support/diagnostics.h"

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::ENodeRef;

std::string KernelLabel(const ValueTable& table, const Candidate& kernel) {
  std::string roots;
  for (ValueId root : kernel.roots) {
    roots += (roots.empty() ? "" : ", ") + table.values[root].name;
  }
  const std::string on = kernel.anchor >= 0 ? " on " + table.values[kernel.anchor].name : "";
  switch (kernel.kind) {
    case KernelKind::kLoop:
      return "loop(" + roots + ")";
    case KernelKind::kAnchor:
      return roots + on;
    case KernelKind::kSums:
      return "sums(" + roots + ")";
    case KernelKind::kLast:
      return "last(" + roots + ")";
    case KernelKind::kUpdate:
      return "update(" + roots + ")";
    case KernelKind::kUpdateAnchor:
      return "update(" + roots + ")" + on;
  }
  return roots;
}

std::string KernelId(const ValueTable& table, const Candidate& kernel) {
  std::string text = KernelLabel(table, kernel);
  std::erase(text, ' ');
  return text;
}

Explainer::Explainer(const egraph::EGraph& graph, const egraph::EGraphView& view,
                     const ValueTable& table, const CandidateSet& candidates,
                     const std::vector<DotForm>& forms, DefinitionAt definition_at,
                     const ChooseOptions& options)
    : graph_(graph),
      view_(view),
      table_(table),
      candidates_(candidates),
      forms_(forms),
      definition_at_(std::move(definition_at)),
      options_(options) {
  names_.resize(view.class_count());
  auto name = [&](egraph::Value value, const std::string& text) {
    const ClassRef c = view.ClassOf(value);
    if (!c.valid()) return;
    names_[c.index] = prefix() + "/" + text;
    if (!options_.forced.empty()) by_name_.emplace(options_.Spelled(names_[c.index]), c);
  };
  graph.ForEachRow(graph.FindFunction("InMem"), [&](const egraph::Row& row) {
    const ValueId v = static_cast<ValueId>(graph.AsI64(row.arg(0)));
    const int64_t q = graph.AsI64(row.arg(1));
    const bool last = q + 1 >= static_cast<int64_t>(candidates.storers[v].size());
    name(graph.Find(row.output()),
         table.values[v].name + ".memory" + (last ? "" : "@" + std::to_string(q)));
  });
  std::vector<std::pair<uint32_t, uint32_t>> owner;
  for (uint32_t k = 0; k < candidates.kernels.size(); ++k) {
    for (uint32_t c = 0; c < candidates.kernels[k].contexts.size(); ++c) owner.emplace_back(k, c);
  }
  graph.ForEachRow(graph.FindFunction("InReg"), [&](const egraph::Row& row) {
    const ValueId v = static_cast<ValueId>(graph.AsI64(row.arg(0)));
    const auto [k, c] = owner[static_cast<size_t>(graph.AsI64(row.arg(1)))];
    const Candidate& kernel = candidates.kernels[k];
    std::string text = KernelId(table, kernel) + "." + table.values[v].name;
    if (c != 0) text += "@" + table.values[kernel.contexts[c].reduction].name;
    name(graph.Find(row.output()), text);
  });
  graph.ForEachRow(graph.FindFunction("Updated"), [&](const egraph::Row& row) {
    const UpdateGroup& group = candidates.groups[static_cast<size_t>(graph.AsI64(row.arg(0)))];
    const ValueId v = group.members.front().new_value;
    name(graph.Find(row.output()), table.values[v].name + ".update");
  });
}

std::string Explainer::ClassName(ClassRef c) const {
  const std::string& name = names_[c.index];
  return name.empty() ? "class " + std::to_string(c.index) : name;
}

std::string Explainer::Label(ENodeRef n) const {
  const std::string& f = view_.function(n).name;
  const auto arg = [&](size_t i) { return graph_.AsI64(view_.NodeArgs(n)[i]); };
  const auto kernel = [&](size_t i) {
    return KernelLabel(table_, candidates_.kernels[static_cast<size_t>(arg(i))]);
  };
  if (f == "Given") return "given";
  if (f == "Store") return "own kernel " + kernel(1);
  if (f == "Beside") return "beside " + kernel(1);
  if (f == "Sooner") return "earlier kernel";
  if (f == "Overwrite") return "in place by " + kernel(1);
  if (f == "CopyBack") return "copied at the end";
  if (f == "Load" || f == "LoadRow") return "load";
  if (f == "AddUp") return "add up";
  if (f == "Hoist") return "hoist";
  if (f == "Dot") {
    const DotForm& form = forms_[static_cast<size_t>(arg(2))];
    return form.schedule.name + " of " + table_.values[form.left].name + ", " +
           table_.values[form.right].name + By(arg(0));
  }
  return "compute" + By(arg(0));
}

std::string Explainer::By(int64_t number) const {
  const auto [v, d] = definition_at_(number);
  if (d == 0) return "";
  const std::vector<Definition>& definitions = table_.values[v].definitions;
  const egraph::RuleId rule = definitions[d].rule;
  const auto same = std::count_if(definitions.begin(), definitions.end(),
                                  [&](const Definition& other) { return other.rule == rule; });
  if (rule == egraph::kInitial || rule == egraph::kCongruence || same > 1 ||
      graph_.rule(rule).name.empty()) {
    return " by definition " + std::to_string(d);
  }
  return " by " + graph_.rule(rule).name;
}

bool Explainer::Knows(const std::string& id) const {
  return by_name_.contains(id) || id.ends_with(".schedule");
}

std::optional<std::pair<ClassRef, ENodeRef>> Explainer::Force(const std::string& id,
                                                              const std::string& label,
                                                              std::string& reason) const {
  auto it = by_name_.find(id);
  if (it == by_name_.end()) {
    if (id.ends_with(".schedule")) return std::nullopt;
    std::vector<std::string> names;
    for (const auto& [name, c] : by_name_) names.push_back(name);
    reason = "there is no decision '" + id + "' to force";
    const std::string close = support::ClosestMatch(id, names);
    if (!close.empty()) reason += "; the closest is '" + close + "'";
    return std::nullopt;
  }
  const ENodeRef first = view_.FirstNode(it->second);
  std::string known;
  for (uint32_t i = 0; i < view_.NodeCountOf(it->second); ++i) {
    const ENodeRef n{first.index + i};
    const std::string text = options_.Spelled(Label(n));
    if (text == label) return std::make_pair(it->second, n);
    known += (known.empty() ? "'" : ", '") + text + "'";
  }
  reason = "'" + label + "' is no choice of '" + id + "': those are " + known;
  return std::nullopt;
}

search::CostVector Explainer::Costs(const egraph::CostVector& cost) const {
  static constexpr const char* kNames[] = {"time", "launches", "bytes", "flops"};
  static constexpr const char* kUnits[] = {"s", "", "B", "FLOP"};
  search::CostVector vector;
  for (size_t i = 0; i < 4; ++i) {
    vector.push_back(
        {kNames[i], cost.value[i], kUnits[i], std::string(egraph::EvidenceName(cost.evidence[i]))});
  }
  return vector;
}

search::Loser Explainer::LoserOf(std::string label, const egraph::Extraction& other,
                                 const search::Decision& decision) const {
  search::Loser loser;
  loser.label = std::move(label);
  loser.cost = Costs(other.cost);
  loser.difference = search::Difference(loser.cost, decision.cost);
  // Which part of the time it was: launches, bytes and flops at nominal rates.
  const double launches = std::abs(loser.difference[TermCosts::kLaunches].value) * 2.5e-6;
  const double bytes = std::abs(loser.difference[TermCosts::kBytes].value) / 2e10;
  const double flops = std::abs(loser.difference[TermCosts::kFlops].value) / 1e11;
  loser.decided_by = "time";
  if (launches > 0 && launches >= bytes && launches >= flops) {
    loser.decided_by = "launches";
  } else if (bytes > 0 && bytes >= flops) {
    loser.decided_by = "bytes";
  } else if (flops > 0) {
    loser.decided_by = "flops";
  }
  return loser;
}

void Explainer::ExplainForm(const ValueForm& form, std::string chosen,
                            const egraph::Extraction& best, bool forced,
                            const std::vector<std::pair<std::string, egraph::Extraction>>& others,
                            search::Explanation& explanation) const {
  search::Decision decision;
  decision.id = prefix() + "/" + form.name;
  decision.chosen = std::move(chosen);
  decision.cost = Costs(best.cost);
  decision.forced = forced;
  for (egraph::RuleId id : form.rules) {
    const egraph::Rule& rule = graph_.rule(id);
    decision.rules.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
  }
  for (const auto& [label, other] : others) {
    ++explanation.report.scored;
    decision.losers.push_back(LoserOf(label, other, decision));
  }
  std::stable_sort(decision.losers.begin(), decision.losers.end(),
                   [](const search::Loser& a, const search::Loser& b) {
                     return a.cost[0].value < b.cost[0].value;
                   });
  explanation.decisions.push_back(std::move(decision));
}

void Explainer::Explain(ChoiceSearch& search, const egraph::Extraction& best,
                        const std::vector<std::pair<ClassRef, ENodeRef>>& forced, bool losers,
                        search::Explanation& explanation) const {
  for (ClassRef c : best.order) {
    if (names_[c.index].empty() || view_.NodeCountOf(c) < 2) continue;
    search::Decision decision;
    decision.forced = std::any_of(forced.begin(), forced.end(),
                                  [&](const auto& choice) { return choice.first == c; });
    // That an earlier kernel has stored it is decided where it is stored.
    if (view_.function(best.Chosen(c)).name == "Sooner" && !decision.forced) continue;
    decision.id = names_[c.index];
    decision.chosen = Label(best.Chosen(c));
    decision.cost = Costs(best.cost);
    std::set<egraph::RuleId> rules = {view_.NodeRule(best.Chosen(c))};
    for (egraph::RuleId id : rules) {
      if (id == egraph::kInitial || id == egraph::kCongruence) continue;
      const egraph::Rule& rule = graph_.rule(id);
      decision.rules.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
    }
    if (losers) {
      const ENodeRef first = view_.FirstNode(c);
      for (uint32_t i = 0; i < view_.NodeCountOf(c); ++i) {
        const ENodeRef node{first.index + i};
        if (node == best.Chosen(c)) continue;
        // The class is asked for itself, or a loser's cost could be that of a plan without it.
        auto choices = forced;
        std::erase_if(choices, [&](const auto& choice) { return choice.first == c; });
        choices.emplace_back(c, node);
        const auto found = search.With(choices);
        if (!found) continue;
        ++explanation.report.scored;
        decision.losers.push_back(LoserOf(Label(node), *found, decision));
      }
      std::stable_sort(decision.losers.begin(), decision.losers.end(),
                       [](const search::Loser& a, const search::Loser& b) {
                         return a.cost[0].value < b.cost[0].value;
                       });
    }
    explanation.decisions.push_back(std::move(decision));
  }
}

}  // namespace l3c::l0::lower
