// The choice of a step's kernels: facts in, e-graph, extraction out.
//
// Facts about the candidates (candidates.h) are asserted, the rules of rewrites/layout.egg,
// kernel_grouping.egg and fusion.egg turn them into alternatives, and extraction weighs all of them
// together under additive costs. See rewrites/kernel_terms.egg for the terms.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/kernel_cost.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::l0::lower {

// The text of a rule file by its name ("fusion"), so that callers can put another in its place.
struct RuleSource {
  std::string path;
  std::string text;
};
using RuleSources = std::map<std::string, RuleSource>;
RuleSources EmbeddedRules();

// A value in memory: as `kernel` stores it; -1: given, a batch or the old state. `again`: how often
// the kernel has run before, where it runs several times in a step.
struct Storage {
  ValueId value = -1;
  int32_t kernel = -1;
  int32_t again = 0;
  auto operator<=>(const Storage&) const = default;
};

// One way to run a contraction: which stored values its factors are loaded from, and the schedule.
struct DotForm {
  ValueId matmul = -1;
  ValueId left = -1;
  ValueId right = -1;
  Schedule schedule;  // of the bare contraction
  double seconds = 0;
  std::string_view evidence;  // for the seconds; the cost model's own
};

// How a context of a chosen kernel comes by a value.
struct Source {
  enum class Kind : uint8_t { kLoad, kHoist, kDefinition, kDot } kind = Kind::kDefinition;
  Storage storage;          // kLoad; of a gather's table
  uint32_t definition = 0;  // kDefinition, kDot
  int32_t pass = -1;        // reductions
  uint32_t form = 0;        // kDot: index into Selection::forms
  Storage left;             // kDot
  Storage right;            // kDot
};

struct ChosenStore {
  ValueId value = -1;
  int32_t state = -1;  // ≥ 0: over the state's old value
};

struct ChosenKernel {
  uint32_t candidate = 0;
  std::map<std::pair<uint32_t, ValueId>, Source> sources;  // by (context of the candidate, value)
  std::vector<ChosenStore> stores;
};

struct ChosenCopy {
  Storage from;
  uint32_t state = 0;
};

struct Selection {
  std::vector<ChosenKernel> kernels;  // by candidate
  std::vector<ChosenCopy> copies;
  std::vector<Storage> reports;  // parallel to the step's outputs; unused for state
  std::vector<DotForm> forms;
  double seconds = 0;  // of the step, by the cost model
  search::CostVector cost;
};

struct ChooseOptions {
  search::Mode mode = search::Mode::kEGraph;
  search::Budget budget;
  search::ForcedChoices forced;
  std::string prefix;    // of decision ids: "l0/train"
  bool explain = false;  // fill in the losers: each is an extraction of its own
  // What it counts for to keep a byte in memory, beside the time of writing and reading it: 0 but
  // where memory is short.
  double seconds_per_byte = 0;
  std::vector<RuleSource> added;  // the user's rules, after all others
  egraph::Numerics numerics = egraph::Numerics::kReassoc;
  // Of a part of a step (step_parts.h): how what is forced names its choices; nothing: as it does
  // itself. What is forced of other parts is none of its business, and goes to `elsewhere`.
  std::function<std::string(std::string_view)> spell;
  std::set<std::string>* elsewhere = nullptr;

  std::string Spelled(std::string text) const { return spell ? spell(text) : text; }
  bool Concerns(const std::string& id) const { return id.starts_with(Spelled(prefix) + "/"); }
};

struct ChooseResult {
  ValueTable table;
  CandidateSet candidates;
  Selection selection;
};

// Nothing when `failure` or `rule_error` is set.
std::optional<ChooseResult> ChooseKernels(const Step& step, const KernelCostModel& costs,
                                          const RuleSources& rules, const ChooseOptions& options,
                                          search::Explanation& explanation,
                                          std::optional<search::SearchFailure>& failure,
                                          std::string& rule_error);

}  // namespace l3c::l0::lower
