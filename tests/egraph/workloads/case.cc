#include "tests/egraph/workloads/case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "egraph/program.h"
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

}  // namespace l3c::egraph
