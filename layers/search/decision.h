// What a lowering decided and why: the record behind `--explain`, `--json` and `--force`.
//
// Every lowering (L3→L2, L2→L1, L1→L0) fills one Explanation; the command line prints it. Nothing
// here depends on time, thread count or addresses, so the same source gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::search {

// One component of a cost: its unit, and where the figure comes from ("analytical", "measured",
// "interpolated", "extrapolated", "prior").
struct CostComponent {
  std::string name;  // "steps", "step_time", "bytes", "flops"
  double value = 0;
  std::string unit;  // "steps", "s", "B", "FLOP"; "" for a plain number
  std::string evidence;
};

// Components in the order in which they are compared.
using CostVector = std::vector<CostComponent>;

// loser − winner, component by component; both have the same components.
CostVector Difference(const CostVector& loser, const CostVector& winner);

struct Loser {
  std::string label;       // the choice as it would be written; what `--force ID=LABEL` takes
  CostVector cost;         // of the whole target program with this choice, all else at its best
  CostVector difference;   // cost − the winner's cost
  std::string decided_by;  // the component (or the term inside it) that decided against it
};

struct RuleUse {
  std::string name;
  std::string file;  // "rewrites/lower_l3_l2.egg"
  int line = 0;
};

struct Pruned {
  std::string what;  // "widths above 512"
  std::string why;   // "width(512)"
  uint64_t count = 0;
};

struct Decision {
  std::string id;      // stable: "l2/classify/layer1.width", "l1/node.forward", "l0/kernel3.group"
  std::string chosen;  // label of the choice made
  CostVector cost;     // of the whole target program
  std::vector<Loser> losers;  // best first; the next two are printed, all can be forced
  std::vector<RuleUse> rules;
  std::vector<Pruned> pruned;
  bool forced = false;
};

// What became of a rule that the user brought. Places are named as in the ids of decisions.
struct RuleTrace {
  RuleUse rule;
  std::string numerics;           // "exact", "reassoc", "fast"
  uint64_t matches = 0;           // each a place where it fired
  std::vector<std::string> won;   // where the plan is made of what it gave
  std::vector<std::string> lost;  // where it is not, and what is there instead
  // Of a rule that never matched: the nearest match and the premise that it fails; or why it was
  // not run.
  std::string why_not;
};

struct SearchReport {
  uint64_t egraph_nodes = 0;
  uint64_t egraph_classes = 0;
  uint64_t work = 0;         // rule matches + extraction steps, never time
  uint64_t work_budget = 0;  // 0: none was set
  std::string stop_reason;   // "saturated", "node limit", …
  double candidates = 0;     // counted on the graph: exact below 2^53, infinity beyond its range
  uint64_t scored = 0;       // candidates scored one by one
};

struct Explanation {
  std::string lowering;  // "l3->l2"
  std::vector<Decision> decisions;
  std::vector<Pruned> pruned;
  std::vector<RuleTrace> traces;  // in the order of their files
  std::vector<std::string> cuts;  // what a budget left out, and the option that has more looked at
  SearchReport report;

  const Decision* Find(std::string_view id) const;
};

// Text for a terminal, without colour: each decision with its winner, the next two losers, the
// cost difference and the term that decided it, rules, what was pruned, what became of the rules
// that the user brought, then the report.
std::string RenderExplanation(const Explanation& explanation);
// Of it, the part on the user's rules; "" without any.
std::string RenderRuleTraces(const Explanation& explanation);
// One JSON object a line: a {"event":"decision",…} each, then {"event":"search",…}.
std::string RenderExplanationJson(const Explanation& explanation);

}  // namespace l3c::search
