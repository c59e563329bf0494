#include "tests/egraph/workloads/case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "egraph/explain.h"
#include "egraph/program.h"
#include "egraph/proof_checker.h"
#include "egraph/run.h"

namespace l3c::egraph {

std::string LoadWorkload(EGraph& graph, const std::string& file) {
  std::ifstream in(std::string(L3C_SOURCE_DIR "/tests/egraph/workloads/") + file);
  EXPECT_TRUE(in.good()) << file;
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const ProgramResult loaded = LoadProgram(graph, text, file);
  EXPECT_TRUE(loaded.ok()) << loaded.status.ToString();
  return loaded.output();
}

std::string Load(EGraph& graph, const std::string& text) {
  const ProgramResult loaded = LoadProgram(graph, text, "test");
  EXPECT_TRUE(loaded.ok()) << loaded.status.ToString();
  return loaded.output();
}

bool Holds(EGraph& graph, const std::string& fact) {
  const ProgramStatus status = LoadProgram(graph, "(check " + fact + ")", "goal").status;
  EXPECT_TRUE(status.ok || status.message.find("check failed") == 0) << status.ToString();
  return status.ok;
}

WorkloadOutcome RunLoaded(EGraph& graph, const Workload& workload, const WorkloadCase& c) {
  WorkloadOutcome outcome;
  outcome.found.assign(c.goals.size(), false);
  std::vector<Schedule> parts;
  if (!workload.analysis.empty()) {
    parts.push_back(Schedule::Saturate(Schedule::Run(graph.FindRuleset(workload.analysis))));
  }
  parts.push_back(Schedule::Run(graph.FindRuleset(workload.rules)));
  const Schedule step = Schedule::Sequence(std::move(parts));

  const auto all_found = [&] {
    for (size_t i = 0; i < c.goals.size(); ++i) {
      outcome.found[i] = outcome.found[i] || Holds(graph, "(= start " + c.goals[i] + ")");
    }
    return std::find(outcome.found.begin(), outcome.found.end(), false) == outcome.found.end();
  };
  Budget budget;
  budget.max_nodes = 20 * c.max_nodes;  // rows of analyses and one step beyond the limit included
  while (outcome.stop.empty()) {
    const uint64_t version = graph.version();
    const RunReport report = RunSchedule(graph, step, budget);
    ++outcome.steps;
    outcome.nodes = graph.NodeCount();
    if (report.stop == StopReason::kFailed) {
      ADD_FAILURE() << *graph.failure();
      outcome.stop = "failed";
    } else if (all_found() && c.provable) {
      outcome.stop = "goals found";
    } else if (graph.version() == version) {
      outcome.stop = "saturated";
    } else if (outcome.nodes > c.max_nodes) {
      outcome.stop = "node limit";
    } else if (outcome.steps == c.max_steps) {
      outcome.stop = "step limit";
    }
  }
  return outcome;
}

WorkloadOutcome RunWorkload(EGraph& graph, const Workload& workload, const WorkloadCase& c) {
  LoadWorkload(graph, workload.file);
  Load(graph, "(let start " + c.start + ")");
  if (c.sees_goals) {
    for (const std::string& goal : c.goals) Load(graph, goal);
  }
  return RunLoaded(graph, workload, c);
}

// Loads `facts` as the premises of a rule and gives that.
const Rule& Premises(EGraph& graph, const std::string& facts, const std::string& actions,
                     const std::string& ruleset) {
  Load(graph, "(ruleset " + ruleset + ") (rule (" + facts + ") (" + actions + ") :ruleset " +
                  ruleset + " :name \"" + ruleset + "\")");
  return graph.rule(RuleId{static_cast<uint32_t>(graph.rule_count()) - 1});
}

// The value of each slot of a query without variables: from the constants up.
std::vector<Value> Evaluate(EGraph& graph, const Query& query) {
  std::vector<Value> slots(query.slot_sorts.size());
  for (const Query::Preset& preset : query.presets) slots[preset.slot] = graph.Find(preset.value);
  for (size_t round = 0; round <= query.atoms.size() + query.primitives.size(); ++round) {
    const auto value = [&](const Operand& o) {
      return o.is_constant ? Value{o.bits} : slots[o.bits];
    };
    const auto bind = [&](const Operand& o, std::optional<Value> v) {
      if (v && !o.is_constant && !slots[o.bits].valid()) slots[o.bits] = *v;
    };
    for (const Atom& atom : query.atoms) {
      std::vector<Value> args;
      for (const Operand& o : atom.columns) args.push_back(value(o));
      args.pop_back();
      const auto bound = [](Value v) { return v.valid(); };
      if (!std::all_of(args.begin(), args.end(), bound)) continue;
      bind(atom.columns.back(), graph.Lookup(atom.function, args));
    }
    for (const PrimitiveAtom& p : query.primitives) {
      std::vector<Value> args;
      for (const Operand& o : p.args) args.push_back(value(o));
      const auto bound = [](Value v) { return v.valid(); };
      if (!std::all_of(args.begin(), args.end(), bound)) continue;
      bind(p.output, graph.primitives()[p.primitive].fn(graph, args));
    }
  }
  return slots;
}

size_t CheckProof(EGraph& graph, const std::string& fact) {
  const std::string ruleset = "proof-" + std::to_string(graph.ruleset_count());
  const Query query = Premises(graph, fact, "", ruleset).query;
  graph.Rebuild();
  Explainer explainer(graph);
  const std::optional<Proof> proof = explainer.ExplainMatch(query, Evaluate(graph, query));
  if (!proof) {
    ADD_FAILURE() << "no explanation of " << fact << ": " << explainer.gap();
    return 0;
  }
  const std::optional<std::string> wrong = ProofChecker(graph).Check(*proof);
  EXPECT_FALSE(wrong) << fact << ": " << wrong.value_or("");
  return proof->steps.size();
}

// The goal with its variables replaced by what the class holds in their places.
std::string GroundGoal(EGraph& graph, const WorkloadCase& c, const std::string& goal) {
  if (c.variables.empty()) return goal;
  const std::string name = "witness-" + std::to_string(graph.ruleset_count());
  std::string sorts, found;
  std::vector<std::string> used;
  for (const std::string& variable : c.variables) {
    if (goal.find(" " + variable + " ") == goal.npos) continue;
    used.push_back(variable);
    sorts += " " + c.variable_sort;
    found += " " + variable;
  }
  Load(graph, "(relation " + name + " (" + sorts + "))");
  Premises(graph, "(= start " + goal + ")", "(" + name + found + ")", name + "s");
  RunSchedule(graph, Schedule::Run(graph.FindRuleset(name + "s")));
  std::vector<std::string> terms;
  graph.ForEachRow(graph.FindFunction(name), [&](const auto& row) {
    if (!terms.empty()) return;
    for (uint32_t i = 0; i < row.size(); ++i) {
      terms.push_back(FormatValue(graph, graph.FindSort(c.variable_sort), row.arg(i)));
    }
  });
  std::string ground = goal;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (const char end : {' ', ')'}) {
      const std::string token = " " + used[i] + end;
      for (size_t at = ground.find(token); at != ground.npos; at = ground.find(token, at + 1)) {
        ground.replace(at, token.size(), " " + terms[i] + end);
      }
    }
  }
  return ground;
}

size_t CheckProofs(EGraph& graph, const WorkloadCase& c, const WorkloadOutcome& outcome) {
  size_t steps = 0;
  for (size_t i = 0; i < c.goals.size(); ++i) {
    if (!outcome.found[i]) continue;
    steps += CheckProof(graph, "(= start " + GroundGoal(graph, c, c.goals[i]) + ")");
  }
  return steps;
}

}  // namespace l3c::egraph
