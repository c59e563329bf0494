#include "layers/l0/lower/forms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::EGraphView;
using egraph::ENodeRef;
using egraph::RuleId;

namespace {

// "convolution/im2col" of "convolution/im2col/weights"; "" for the name of no form.
std::string FormName(std::string_view rule) {
  const size_t topic = rule.find('/');
  if (topic == std::string_view::npos || topic == 0) return "";
  return std::string(rule.substr(0, rule.find('/', topic + 1)));
}

bool Has(const std::vector<int64_t>& numbers, int64_t number) {
  return std::binary_search(numbers.begin(), numbers.end(), number);
}

}  // namespace

std::vector<ValueForm> FindForms(const ValueTable& table, const egraph::EGraph& graph,
                                 const std::function<int64_t(ValueId, uint32_t)>& number) {
  std::map<RuleId, std::string> names;
  std::vector<ValueForm> forms;
  for (uint32_t r = 0; r < graph.rule_count(); ++r) {
    const std::string name = FormName(graph.rule(RuleId{r}).name);
    if (name.empty()) continue;
    names[RuleId{r}] = name;
    const auto known = std::find_if(forms.begin(), forms.end(),
                                    [&](const ValueForm& form) { return form.name == name; });
    ValueForm& form = known == forms.end() ? forms.emplace_back() : *known;
    form.name = name;
    form.rules.push_back(RuleId{r});
  }
  for (ValueForm& form : forms) {
    for (ValueId v = 0; v < static_cast<ValueId>(table.values.size()); ++v) {
      std::vector<int64_t> own;
      std::vector<int64_t> others;
      for (uint32_t d = 0; d < table.values[v].definitions.size(); ++d) {
        const auto it = names.find(table.values[v].definitions[d].rule);
        (it != names.end() && it->second == form.name ? own : others).push_back(number(v, d));
      }
      if (own.empty() || others.empty()) continue;
      form.own.insert(form.own.end(), own.begin(), own.end());
      form.others.insert(form.others.end(), others.begin(), others.end());
    }
  }
  std::erase_if(forms, [](const ValueForm& form) { return form.own.empty(); });
  return forms;
}

int64_t DefinitionOf(const EGraphView& view, ENodeRef node) {
  static constexpr std::string_view kByDefinition[] = {
      "Leaf", "Unary", "Binary", "Ternary", "View", "Fold", "Dot", "Row", "Scatter", "AddUp"};
  const std::string& name = view.function(node).name;
  if (std::find(std::begin(kByDefinition), std::end(kByDefinition), name) ==
      std::end(kByDefinition)) {
    return -1;
  }
  return view.graph().AsI64(view.NodeArgs(node)[0]);
}

std::vector<std::pair<ClassRef, ENodeRef>> NodesOf(const egraph::Extractor& extractor,
                                                   const std::vector<int64_t>& definitions) {
  const EGraphView& view = extractor.view();
  std::map<uint32_t, ENodeRef> cheapest;  // by class
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    const ENodeRef node{n};
    const int64_t d = DefinitionOf(view, node);
    if (d < 0 || !Has(definitions, d)) continue;
    const auto [it, fresh] = cheapest.try_emplace(view.NodeClass(node).index, node);
    if (!fresh && extractor.NodeObjective(node) < extractor.NodeObjective(it->second)) {
      it->second = node;
    }
  }
  std::vector<std::pair<ClassRef, ENodeRef>> nodes;
  for (const auto& [c, node] : cheapest) nodes.emplace_back(ClassRef{c}, node);
  return nodes;
}

std::string Extent(const ValueForm& form, const EGraphView& view,
                   const egraph::Extraction& extraction) {
  bool own = false;
  bool others = false;
  for (ClassRef c : extraction.order) {
    const int64_t d = DefinitionOf(view, extraction.Chosen(c));
    own |= d >= 0 && Has(form.own, d);
    others |= d >= 0 && Has(form.others, d);
  }
  return !own ? "nowhere" : others ? "in part" : "everywhere";
}

}  // namespace l3c::l0::lower
