#include "layers/search/rule_trace.h"

#include <algorithm>

#include "egraph/program.h"

namespace l3c::search {

RuleTrace& TraceOf(const egraph::Rule& rule, Explanation& explanation) {
  for (RuleTrace& trace : explanation.traces) {
    const RuleUse& use = trace.rule;
    if (use.name == rule.name && use.file == rule.file && use.line == static_cast<int>(rule.line)) {
      return trace;
    }
  }
  RuleTrace& trace = explanation.traces.emplace_back();
  trace.rule = {rule.name, rule.file, static_cast<int>(rule.line)};
  trace.numerics = NumericsName(rule.numerics);
  return trace;
}

std::string WhyNoMatchText(const egraph::WhyNotRule& why) {
  if (!why.held_back.empty()) return why.held_back;
  std::string text = std::to_string(why.matched) + " of " + std::to_string(why.premises) +
                     " premises hold at best";
  if (!why.nearest.empty()) text += ", with " + why.nearest;
  if (!why.failed.empty()) text += "; fails: " + why.failed;
  return text;
}

std::string LoadAddedRules(egraph::EGraph& graph, const std::vector<AddedRules>& rules,
                           std::string_view lowering) {
  for (const AddedRules& added : rules) {
    if (added.lowering != lowering) continue;
    const egraph::ProgramResult loaded = egraph::LoadProgram(graph, added.text, added.file);
    if (!loaded.ok()) return loaded.status.ToString();
  }
  return "";
}

void TraceRules(egraph::EGraph& graph, uint32_t first, Explanation& explanation) {
  for (uint32_t r = first; r < graph.rule_count(); ++r) {
    const egraph::Rule& rule = graph.rule(egraph::RuleId{r});
    RuleTrace& trace = TraceOf(rule, explanation);
    trace.matches += graph.history(egraph::RuleId{r}).matches;
    for (const Decision& decision : explanation.decisions) {
      const bool cited = std::any_of(
          decision.rules.begin(), decision.rules.end(),
          [&](const RuleUse& use) { return use.name == rule.name && use.file == rule.file; });
      if (cited) trace.won.push_back(decision.id + " = " + decision.chosen);
    }
    if (trace.matches == 0) {
      trace.why_not = WhyNoMatchText(egraph::WhyNoMatch(graph, egraph::RuleId{r}));
    } else if (trace.won.empty()) {
      trace.lost.push_back("no decision takes what it gave");
    }
  }
}

}  // namespace l3c::search
