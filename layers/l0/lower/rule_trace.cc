#include "layers/l0/lower/rule_trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "egraph/why_not.h"
#include "layers/search/rule_trace.h"

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::RuleId;

namespace {

class Tracer {
 public:
  Tracer(egraph::EGraph& graph, const egraph::EGraphView& view, const egraph::Extraction& best,
         const ChooseResult& chosen, const Explainer& explainer)
      : graph_(graph), view_(view), best_(best), chosen_(chosen), explainer_(explainer) {
    for (const ChosenKernel& kernel : chosen_.selection.kernels) {
      for (const auto& [where, source] : kernel.sources) {
        if (source.kind == Source::Kind::kDefinition || source.kind == Source::Kind::kDot) {
          computed_[where.second].insert(source.definition);
        }
      }
      for (const ChosenStore& store : kernel.stores) stored_.insert(store.value);
    }
  }

  void Trace(RuleId id, search::RuleTrace& trace) {
    const std::string& ruleset = graph_.ruleset_name(graph_.rule(id).ruleset);
    const uint64_t matches = graph_.history(id).matches;
    trace.matches += matches;
    if (ruleset == "algebra") Definitions(id, trace);
    if (ruleset == "store") Stored(id, trace);
    if (ruleset == "choose") Choices(id, trace);
    if (trace.matches > 0) {
      trace.why_not.clear();
    } else {
      trace.why_not = WhyNot(id);
    }
  }

 private:
  const Value& value(ValueId v) const { return chosen_.table.values[static_cast<size_t>(v)]; }
  std::string Place(const std::string& what) const { return explainer_.prefix() + "/" + what; }

  // Rules of the algebra: the definitions that they have written, and the values they have joined.
  void Definitions(RuleId id, search::RuleTrace& trace) const {
    for (ValueId v = 0; v < static_cast<ValueId>(chosen_.table.values.size()); ++v) {
      const std::vector<Definition>& definitions = value(v).definitions;
      bool wrote = false;
      for (uint32_t d = 0; d < definitions.size(); ++d) {
        if (definitions[d].rule != id) continue;
        wrote = true;
        const std::string text = Text(definitions[d]);
        const auto it = computed_.find(v);
        if (it != computed_.end() && it->second.contains(d)) {
          trace.won.push_back(Place(value(v).name) + ": computed as " + text);
        } else if (it == computed_.end()) {
          trace.lost.push_back(Place(value(v).name) + ": " + text +
                               "; the plan does not need this value");
        } else if (definitions.size() > 1) {
          trace.lost.push_back(Place(value(v).name) + ": " + text + "; computed as " +
                               Text(definitions[*it->second.begin()]));
        }
      }
      if (wrote || definitions.size() < 2) continue;
      const std::vector<RuleId> joined = graph_.RulesOf(graph_.Find(value(v).class_id));
      if (std::find(joined.begin(), joined.end(), id) == joined.end()) continue;
      trace.won.push_back(Place(value(v).name) + ": joined with an equal value, computed as " +
                          (computed_.contains(v) ? Text(definitions[*computed_.at(v).begin()])
                                                 : Text(definitions.front())));
    }
  }

  std::string Text(const Definition& definition) const {
    std::string text = std::string("(") + FormOf(definition.op).name;
    for (ValueId input : definition.inputs) text += " " + value(input).name;
    if (!definition.attr.ints.empty()) text += " \"" + JoinInts(definition.attr.ints) + "\"";
    return text + ")";
  }

  // Rules that say what may be kept: whether it is.
  void Stored(RuleId id, search::RuleTrace& trace) const {
    graph_.ForEachRow(graph_.FindFunction("stored"), [&](const egraph::Row& row) {
      if (row.rule() != id) return;
      const auto v = static_cast<ValueId>(graph_.AsI64(row.arg(0)));
      if (v < 0 || v >= static_cast<ValueId>(chosen_.table.values.size())) return;
      if (stored_.contains(v)) {
        trace.won.push_back(Place(value(v).name) + ": kept in memory");
      } else {
        trace.lost.push_back(Place(value(v).name) + ": computed again where it is used");
      }
    });
  }

  // Rules that give alternatives: the choices that are of theirs.
  void Choices(RuleId id, search::RuleTrace& trace) const {
    for (ClassRef c : best_.order) {
      const ENodeRef first = view_.FirstNode(c);
      for (uint32_t i = 0; i < view_.NodeCountOf(c); ++i) {
        const ENodeRef n{first.index + i};
        if (view_.NodeRule(n) != id) continue;
        if (best_.Chosen(c) == n) {
          trace.won.push_back(explainer_.ClassName(c) + " = " + explainer_.Label(n));
        } else {
          trace.lost.push_back(explainer_.ClassName(c) + ": " + explainer_.Label(n) +
                               "; taken is " + explainer_.Label(best_.Chosen(c)));
        }
      }
    }
  }

  std::string WhyNot(RuleId id) {
    if (names_.empty()) {
      for (const Value& v : chosen_.table.values) names_[v.class_id.bits] = v.name;
    }
    const egraph::WhyNotRule why = egraph::WhyNoMatch(graph_, id, [this](egraph::Value c) {
      const auto it = names_.find(graph_.Find(c).bits);
      return it == names_.end() ? std::string() : it->second;
    });
    return search::WhyNoMatchText(why);
  }

  egraph::EGraph& graph_;
  const egraph::EGraphView& view_;
  const egraph::Extraction& best_;
  const ChooseResult& chosen_;
  const Explainer& explainer_;
  std::map<ValueId, std::set<uint32_t>> computed_;  // definitions by which kernels compute it
  std::set<ValueId> stored_;
  std::map<uint32_t, std::string> names_;  // of classes of Val
};

}  // namespace

void TraceRules(egraph::EGraph& graph, const egraph::EGraphView& view,
                const egraph::Extraction& best, const ChooseResult& chosen,
                std::span<const RuleId> rules, const Explainer& explainer,
                search::Explanation& explanation) {
  Tracer tracer(graph, view, best, chosen, explainer);
  for (RuleId id : rules) {
    tracer.Trace(id, search::TraceOf(graph.rule(id), explanation));
  }
}

}  // namespace l3c::l0::lower
