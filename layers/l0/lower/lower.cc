#include "layers/l0/lower/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "layers/l0/lower/arena.h"
#include "layers/l0/lower/assemble.h"
#include "layers/l0/lower/memory_bound.h"
#include "layers/l0/lower/own_kernel_make.h"
#include "layers/l0/lower/parts_plan.h"
#include "layers/l0/lower/step.h"
#include "layers/l0/lower/step_cache.h"
#include "layers/l0/lower/step_plan.h"
#include "layers/l0/lower/streams.h"

namespace l3c::l0::lower {

namespace {

// The graph outputs that metrics of the pipeline's split read.
std::vector<std::pair<std::string, std::string>> ReportsOf(const l1::Program& program,
                                                           const l1::Pipeline& pipeline) {
  std::vector<std::pair<std::string, std::string>> reports;
  auto add = [&](const std::string& graph, const std::string& output) {
    const auto report = std::make_pair(graph, output);
    if (std::find(reports.begin(), reports.end(), report) == reports.end()) {
      reports.push_back(report);
    }
  };
  for (const l1::Metric& metric : program.schedule.metrics) {
    for (const l1::Reference& link : pipeline.links) {
      if (link.name != metric.graph) continue;
      add(metric.graph, metric.numerator);
      add(metric.graph, metric.denominator);
    }
  }
  return reports;
}

// The step's plan, out of the cache where it is there. Its explanation goes to `whole` either way.
// Nothing when `failure` or `rule_error` is set.
std::optional<PlannedStep> PlanOrReuse(const Step& step, const KernelCostModel& costs,
                                       const LowerOptions& options, const ChooseOptions& choose,
                                       search::Explanation& whole,
                                       std::optional<search::SearchFailure>& failure,
                                       std::string& rule_error) {
  const std::string key =
      options.cache != nullptr ? StepKey(step, costs, options.rules, choose) : "";
  if (!key.empty()) {
    if (const auto kept = options.cache->Load(options.cache_kind, choose.prefix, key)) {
      if (std::optional<PlannedStep> planned = ReadPlannedStep(*kept)) {
        AddExplanation(planned->explanation, whole);
        return planned;
      }
    }
  }
  std::optional<PlannedStep> planned;
  std::string alone;
  if (choose.added.empty()) {
    planned = PlanByParts(step, costs, options.rules, choose, options.cache, &alone);
  }
  if (!planned) {
    planned.emplace();
    // Rules of the user's are traced over all steps together.
    search::Explanation& explanation = choose.added.empty() ? planned->explanation : whole;
    std::optional<ChooseResult> chosen =
        ChooseKernels(step, costs, options.rules, choose, explanation, failure, rule_error);
    if (chosen) planned->plan = PlanStep(step, *chosen, costs, choose, explanation, failure);
    if (!chosen || failure) {
      AddExplanation(planned->explanation, whole);
      return std::nullopt;
    }
    planned->table = std::move(chosen->table);
    if (!alone.empty()) planned->explanation.cuts.push_back(std::move(alone));
  }
  if (!key.empty()) options.cache->Store(options.cache_kind, key, WritePlannedStep(*planned));
  AddExplanation(planned->explanation, whole);
  return planned;
}

// Kernels that keep less and compute more are the other way to need less memory: what a byte in
// memory may count for (ChooseOptions), where it is short. What the joint search ends with is the
// least before anything is launched twice, not always after: what the local one ends with is tried
// as well, at the prices that win most often.
struct KernelSet {
  const char* label;
  double seconds_per_byte;
  std::optional<search::Mode> mode;  // of the search; nothing: as asked
};
constexpr KernelSet kKernelSets[] = {{"fastest", 0, {}},
                                     {"lean", 1e-11, {}},
                                     {"leaner", 1e-10, {}},
                                     {"leanest", 1e-9, {}},
                                     {"fastest locally", 0, search::Mode::kGreedy},
                                     {"lean locally", 1e-11, search::Mode::kGreedy}};
constexpr const char* kKernelSetId = "l0/kernels.memory";

class Lowering {
 public:
  Lowering(const l1::Program& program, const KernelCostModel& costs, const LowerOptions& options,
           support::Diagnostics& diagnostics)
      : program_(program), costs_(costs), options_(options), diagnostics_(diagnostics) {
    result_.explanation.lowering = "l1->l0";
  }

  search::LoweringResult<Plan> Run() {
    Attempt attempt;
    if (!PlanAll(kKernelSets[0], options_.search.forced, options_.explain, attempt)) {
      return Failed(attempt);
    }
    const MemoryBound memory(attempt.plan, program_.system, options_.memory);
    bool asked = options_.explain;
    for (const auto& [id, label] : options_.search.forced) asked |= IsMemoryDecision(id);
    if (!memory.Fits()) {
      const std::optional<size_t> set = ChooseKernelSet(memory);
      if (!set) return std::move(result_);
      if (*set > 0) {
        attempt = {};
        if (!PlanAll(kKernelSets[*set], options_.search.forced, options_.explain, attempt)) {
          return Failed(attempt);
        }
      }
      attempt.explanation.decisions.push_back(std::move(set_));
    }
    if (asked || !MemoryBound(attempt.plan, program_.system, options_.memory).Fits()) {
      int64_t needed = 0;
      if (!Keep(attempt, needed)) {
        if (!attempt.failure) Exceeds(memory, needed);
        return Failed(attempt);
      }
      // What helps in one memory may be too much for another.
      const MemoryBound kept(attempt.plan, program_.system, options_.memory);
      if (!kept.Fits()) {
        Exceeds(kept, kept.taken());
        return Failed(attempt);
      }
      for (const auto& [name, lowered] : attempt.steps) {
        ExplainPacking(lowered.plan, lowered.step, lowered.table, lowered.options.prefix,
                       attempt.explanation);
      }
    }
    search::Candidate<Plan> candidate;
    candidate.target = std::move(attempt.plan);
    candidate.cost = {{"time", SecondsOf(attempt.steps), "s", std::string(costs_.evidence())}};
    attempt.explanation.decisions.push_back(
        ExplainStreams(program_, candidate.target, OneOfEach(), candidate.cost));
    result_.candidates.push_back(std::move(candidate));
    result_.explanation = std::move(attempt.explanation);
    return std::move(result_);
  }

 private:
  struct Attempt {
    std::map<std::string, LoweredStep> steps;
    Plan plan;
    search::Explanation explanation;
    std::optional<search::SearchFailure> failure;
  };

  void Take(Attempt& attempt) {
    result_.failure = std::move(attempt.failure);
    result_.explanation = std::move(attempt.explanation);
  }
  search::LoweringResult<Plan> Failed(Attempt& attempt) {
    Take(attempt);
    return std::move(result_);
  }

  void Exceeds(const MemoryBound& memory, int64_t needed) {
    memory.Report(needed, diagnostics_);
    result_.needed_bytes = needed;
  }

  static bool Fail(std::string reason, std::string hint, Attempt& attempt) {
    attempt.failure = search::NoCandidates{std::move(reason), std::move(hint), {}};
    return false;
  }

  // Of a step of each phase.
  double SecondsOf(const std::map<std::string, LoweredStep>& steps) const {
    double seconds = 0;
    std::set<std::string> counted;
    for (const l1::Phase& phase : program_.schedule.phases) {
      if (counted.insert(phase.pipeline).second) seconds += steps.at(phase.pipeline).plan.seconds;
    }
    return seconds;
  }

  // Every pipeline by itself, everything saved, and all of them put together.
  bool PlanAll(const KernelSet& set, const search::ForcedChoices& forced, bool explain,
               Attempt& attempt) {
    attempt.explanation.lowering = "l1->l0";
    for (const l1::Phase& phase : program_.schedule.phases) {
      for (const std::string& name : {phase.pipeline, phase.eval}) {
        if (name.empty() || attempt.steps.contains(name)) continue;
        const l1::Pipeline* pipeline = l1::FindPipeline(program_, name);
        if (!pipeline) return Fail("there is no pipeline '" + name + "'", "declare it", attempt);
        auto step = MergeStep(program_, *pipeline, ReportsOf(program_, *pipeline), diagnostics_);
        if (!step) return Fail("pipeline '" + name + "' does not hold together", "", attempt);
        ChooseOptions choose;
        choose.mode = set.mode.value_or(options_.search.mode);
        choose.budget = options_.search.budget;
        choose.forced = forced;
        choose.prefix = "l0/" + name;
        choose.explain = explain;
        choose.seconds_per_byte = set.seconds_per_byte;
        choose.numerics = options_.numerics;
        for (const search::AddedRules& added : options_.search.rules) {
          if (added.lowering == "l1->l0") choose.added.push_back({added.file, added.text});
        }
        for (OwnKernel& own : step->own) {
          if (!MakeOwnKernel(own, costs_, options_.rules, choose, diagnostics_)) {
            return Fail("'" + own.name + "' has no kernel of its own", "", attempt);
          }
        }
        std::string rule_error;
        std::optional<PlannedStep> planned = PlanOrReuse(
            *step, costs_, options_, choose, attempt.explanation, attempt.failure, rule_error);
        if (!rule_error.empty()) return Fail(rule_error, "mend the rules", attempt);
        if (!planned) return false;
        if (const std::string wrong = ForcePacking(choose.forced, choose.prefix, planned->plan);
            !wrong.empty()) {
          return Fail(wrong, "see --explain for the ids and labels", attempt);
        }
        attempt.steps[name] = {std::move(*step), std::move(planned->table),
                               std::move(planned->plan), choose};
      }
    }
    if (attempt.steps.empty()) {
      return Fail("the schedule has no phases", "add `phases [ … ]`", attempt);
    }
    return Assemble(attempt);
  }

  bool OneOfEach() const {
    const auto forced = options_.search.forced.find(kStreamsId);
    return forced != options_.search.forced.end() && forced->second == kOneOfEach;
  }

  bool Assemble(Attempt& attempt) {
    attempt.plan = {};
    const auto forced = options_.search.forced.find(kStreamsId);
    if (forced != options_.search.forced.end() && !OneOfEach() && forced->second != kInferred) {
      return Fail("'" + forced->second + "' is no choice for " + kStreamsId,
                  "the choices are " + std::string(kInferred) + ", " + kOneOfEach, attempt);
    }
    if (AssemblePlan(program_, attempt.steps, OneOfEach(), attempt.plan, diagnostics_)) return true;
    return Fail("the plan cannot be put together", "", attempt);
  }

  // Decides what is saved and puts the plan together again.
  bool Keep(Attempt& attempt, int64_t& needed) {
    std::vector<BoundStep> bounded;
    for (auto& [name, lowered] : attempt.steps) {
      bounded.push_back({&lowered.plan, &lowered.table, &lowered.options});
    }
    std::string rule_error;
    const MemoryBound memory(attempt.plan, program_.system, options_.memory);
    if (!memory.Keep(bounded, costs_.evidence(), options_.rules, attempt.explanation,
                     attempt.failure, rule_error, needed)) {
      return rule_error.empty() ? false : Fail(rule_error, "mend the rules", attempt);
    }
    return Assemble(attempt);
  }

  // Which kernels are fastest once they fit, all else at its best. Nothing when none fit, which has
  // been reported then.
  std::optional<size_t> ChooseKernelSet(const MemoryBound& memory) {
    std::vector<std::optional<double>> seconds(std::size(kKernelSets));
    int64_t least = kNoBound;
    std::optional<size_t> best;
    const auto forced = options_.search.forced.find(kKernelSetId);
    std::vector<bool> tried(std::size(kKernelSets));
    for (size_t p = 0; p < std::size(kKernelSets); ++p) {
      const KernelSet& set = kKernelSets[p];
      const bool asked = forced != options_.search.forced.end() && forced->second == set.label;
      tried[p] = !set.mode || (options_.search.mode == search::Mode::kEGraph && (best || asked));
      if (!tried[p]) continue;
      Attempt attempt;
      if (!PlanAll(kKernelSets[p], {}, false, attempt)) {
        Take(attempt);
        return std::nullopt;
      }
      // What is launched again only adds to it.
      if (set.mode && best && !asked && SecondsOf(attempt.steps) >= *seconds[*best]) {
        tried[p] = false;
        continue;
      }
      int64_t needed = 0;
      if (!MemoryBound(attempt.plan, program_.system, options_.memory).Fits() &&
          !Keep(attempt, needed)) {
        if (attempt.failure) {
          Take(attempt);
          return std::nullopt;
        }
        least = std::min(least, needed);
        continue;
      }
      seconds[p] = SecondsOf(attempt.steps);
      if (!best || *seconds[p] < *seconds[*best]) best = p;
    }
    if (!best) {
      Exceeds(memory, least);
      return std::nullopt;
    }
    const auto cost = [&](size_t p) -> search::CostVector {
      return {{"time", *seconds[p], "s", std::string(costs_.evidence())}};
    };
    set_.id = kKernelSetId;
    if (forced != options_.search.forced.end()) {
      const auto it = std::find_if(std::begin(kKernelSets), std::end(kKernelSets),
                                   [&](const auto& set) { return set.label == forced->second; });
      const size_t p = static_cast<size_t>(it - std::begin(kKernelSets));
      if (p == std::size(kKernelSets) || !seconds[p]) {
        result_.failure = search::NoCandidates{
            "'" + forced->second + "' of '" + kKernelSetId + "' does not fit or is not known",
            "see --explain for the labels",
            {}};
        return std::nullopt;
      }
      best = p;
      set_.forced = true;
    }
    set_.chosen = kKernelSets[*best].label;
    set_.cost = cost(*best);
    for (size_t p = 0; p < std::size(kKernelSets); ++p) {
      if (p == *best || !tried[p]) continue;
      if (!seconds[p]) {
        set_.pruned.push_back({kKernelSets[p].label, "does not fit", 0});
        continue;
      }
      search::Loser loser;
      loser.label = kKernelSets[p].label;
      loser.cost = cost(p);
      loser.difference = search::Difference(loser.cost, set_.cost);
      loser.decided_by = "time";
      set_.losers.push_back(std::move(loser));
    }
    std::stable_sort(set_.losers.begin(), set_.losers.end(),
                     [](const search::Loser& a, const search::Loser& b) {
                       return a.cost[0].value < b.cost[0].value;
                     });
    return best;
  }

  const l1::Program& program_;
  const KernelCostModel& costs_;
  const LowerOptions& options_;
  support::Diagnostics& diagnostics_;
  search::Decision set_;
  search::LoweringResult<Plan> result_;
};

}  // namespace

search::LoweringResult<Plan> Lower(const l1::Program& program, const KernelCostModel& costs,
                                   const LowerOptions& options, support::Diagnostics& diagnostics) {
  return Lowering(program, costs, options, diagnostics).Run();
}

}  // namespace l3c::l0::lower
