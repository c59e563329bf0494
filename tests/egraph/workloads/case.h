// One question to a workload: is a start term found equal to each goal within the limits?
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "egraph/egraph.h"

namespace l3c::egraph {

struct WorkloadCase {
  std::string name;
  std::string start;               // a term in the workload's .egg language
  std::vector<std::string> goals;  // patterns that the class of `start` must hold
  bool provable = true;            // false: no goal may be found
  // egg's limits, looked at after every step as there.
  size_t max_steps = 30;
  size_t max_nodes = 10'000;
  bool sees_goals = false;  // the goals stand in the graph from the start
  // The variables of the goals, bound to whatever the class holds there: of sort `variable_sort`.
  std::vector<std::string> variables = {};
  std::string variable_sort = {};
};

inline void PrintTo(const WorkloadCase& c, std::ostream* out) { *out << c.name; }

// The rules of a workload and how one step of it is run.
struct Workload {
  std::string file;      // in tests/egraph/workloads
  std::string analysis;  // a ruleset saturated before every step; empty: none
  std::string rules;     // the ruleset of a step
};

struct WorkloadOutcome {
  std::vector<bool> found;  // by goal
  size_t steps = 0;
  size_t nodes = 0;
  std::string stop;  // why: "goals found", "saturated", "step limit", "node limit"
};

// Loads tests/egraph/workloads/`file`, or `text`; gives what it prints. An error fails the current
// test.
std::string LoadWorkload(EGraph& graph, const std::string& file);
std::string Load(EGraph& graph, const std::string& text);

// Runs the loaded workload until every goal is found equal to the global `start`, or a limit stops
// it. An error of the data fails the current test.
WorkloadOutcome RunLoaded(EGraph& graph, const Workload& workload, const WorkloadCase& c);
// The same after loading the workload and the case's start.
WorkloadOutcome RunWorkload(EGraph& graph, const Workload& workload, const WorkloadCase& c);

// Whether the fact holds in the graph.
bool Holds(EGraph& graph, const std::string& fact);

// Explains that the global `start` equals each goal that was found and has the checker look at the
// proof; an explanation that is missing or wrong fails the current test. Gives the steps of all
// proofs. The graph must keep a log.
size_t CheckProofs(EGraph& graph, const WorkloadCase& c, const WorkloadOutcome& outcome);
// The same for one fact without variables.
size_t CheckProof(EGraph& graph, const std::string& fact);

}  // namespace l3c::egraph
