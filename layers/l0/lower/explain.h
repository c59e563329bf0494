// Names for the choices in the kernel e-graph: decision ids, labels, losers.
//
//   PREFIX/VALUE.memory          which kernel writes the value: "own kernel loop(h1)", "beside …"
//   PREFIX/KERNEL.VALUE          in that kernel: "load", "compute", "compute by RULE" where a rule
//   of the
//                                algebra gave the definition, or for a contraction the form: "tile
//                                6x64 of x, w1"
//   PREFIX/KERNEL.schedule       "tile 6x64"
//   PREFIX/TOPIC/FORM            how far a form goes (forms.h): "everywhere", "nowhere", "in part"
//   PREFIX/STATE.update          "update loop(w)", "update w on dw", "copied at the end"
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "egraph/extract/extract.h"
#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/choice_search.h"
#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/forms.h"
#include "layers/l0/lower/term_costs.h"
#include "layers/search/decision.h"

namespace l3c::l0::lower {

// "loop(h1)", "h1 on z1", "update(w, m, v)", "update(w, m, v) on dw".
std::string KernelLabel(const ValueTable& table, const Candidate& kernel);

// The same without blanks, as it stands in ids, so that a shell needs no quotes.
std::string KernelId(const ValueTable& table, const Candidate& kernel);

class Explainer {
 public:
  Explainer(const egraph::EGraph& graph, const egraph::EGraphView& view, const ValueTable& table,
            const CandidateSet& candidates, const std::vector<DotForm>& forms,
            DefinitionAt definition_at, const ChooseOptions& options);

  // Whether an id is that of a choice here, or of a schedule, which is settled later.
  bool Knows(const std::string& id) const;

  // What an id and a label force. Nothing with an empty `reason`: the id is not of this graph.
  std::optional<std::pair<egraph::ClassRef, egraph::ENodeRef>> Force(const std::string& id,
                                                                     const std::string& label,
                                                                     std::string& reason) const;

  // Appends a decision for every class reached that had a choice; with `losers`, what the others
  // would have cost.
  void Explain(ChoiceSearch& search, const egraph::Extraction& best,
               const std::vector<std::pair<egraph::ClassRef, egraph::ENodeRef>>& forced,
               bool losers, search::Explanation& explanation) const;

  // Appends the decision on a form; `others` are the plans with another extent of it.
  void ExplainForm(const ValueForm& form, std::string chosen, const egraph::Extraction& best,
                   bool forced,
                   const std::vector<std::pair<std::string, egraph::Extraction>>& others,
                   search::Explanation& explanation) const;

  std::string ClassName(egraph::ClassRef c) const;
  std::string Label(egraph::ENodeRef n) const;
  const std::string& prefix() const { return options_.prefix; }
  search::CostVector Costs(const egraph::CostVector& cost) const;

 private:
  // " by RULE" of a definition that a rule gave; "" for the program's own.
  std::string By(int64_t definition) const;
  // What another plan would have cost, beside the decision's own.
  search::Loser LoserOf(std::string label, const egraph::Extraction& other,
                        const search::Decision& decision) const;

  const egraph::EGraph& graph_;
  const egraph::EGraphView& view_;
  const ValueTable& table_;
  const CandidateSet& candidates_;
  const std::vector<DotForm>& forms_;
  DefinitionAt definition_at_;
  const ChooseOptions& options_;
  std::vector<std::string> names_;  // by class: its id, "" where there is no choice to name
  std::map<std::string, egraph::ClassRef> by_name_;  // as it is forced
};

}  // namespace l3c::l0::lower
