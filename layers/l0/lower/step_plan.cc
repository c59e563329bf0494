#include "layers/l0/lower/step_plan.h"

#include <algorithm>

#include "layers/l0/lower/explain.h"
#include "layers/l0/lower/launch_order.h"

namespace l3c::l0::lower {

namespace {

search::CostVector TimeOf(double seconds, std::string_view evidence) {
  return {{"time", seconds, "s", std::string(evidence)}};
}

class StepPlanner {
 public:
  StepPlanner(const Step& step, const ChooseResult& chosen, const KernelCostModel& costs,
              const ChooseOptions& options, search::Explanation& explanation,
              std::optional<search::SearchFailure>& failure)
      : step_(step),
        chosen_(chosen),
        costs_(costs),
        options_(options),
        explanation_(explanation),
        failure_(failure) {}

  StepPlan Run() {
    for (const ChosenKernel& kernel : chosen_.selection.kernels) {
      built_.push_back(
          BuildKernel(step_, chosen_.table, chosen_.candidates, chosen_.selection, kernel));
    }
    StepPlan plan;
    std::vector<LaunchToOrder> launches;
    for (const BuiltKernel& built : built_) launches.push_back({&built.kernel, &built.bindings});
    // Kernels load only what earlier ones have stored (candidates.h), so there is an order.
    const std::vector<size_t> order = OrderLaunches(launches, chosen_.table).value();
    for (size_t i : order) {
      Launch launch;
      launch.bindings = built_[i].bindings;
      launch.id = KernelId(chosen_.table,
                           chosen_.candidates.kernels[chosen_.selection.kernels[i].candidate]);
      if (!ScheduleKernel(i, launch)) return plan;
      plan.launches.push_back(std::move(launch));
    }
    plan.copies = chosen_.selection.copies;
    plan.reports = chosen_.selection.reports;
    plan.seconds = chosen_.selection.seconds + forced_seconds_;
    plan.cost = chosen_.selection.cost;
    return plan;
  }

 private:
  bool ScheduleKernel(size_t i, Launch& launch) {
    const BuiltKernel& built = built_[i];
    if (built.own >= 0) {
      launch.own = built.own;
      launch.kernel = built.kernel;
      const Schedule schedule = CandidateSchedules(built.kernel, costs_.target()).front();
      launch.seconds = costs_.KernelSeconds(built.kernel, schedule) + costs_.LaunchSeconds(1);
      return true;
    }
    const std::vector<Schedule> schedules = CandidateSchedules(built.kernel, costs_.target());
    std::vector<double> seconds;
    for (const Schedule& s : schedules) seconds.push_back(costs_.KernelSeconds(built.kernel, s));
    size_t best = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
    // The choice of kernels counted on this form of the contraction.
    for (size_t s = 0; s < schedules.size(); ++s) {
      if (!built.form.empty() && schedules[s].name == built.form) best = s;
    }
    const size_t own = best;
    search::Decision decision;
    decision.id = options_.prefix + "/" + launch.id + ".schedule";
    auto forced = options_.forced.find(options_.Spelled(decision.id));
    if (forced != options_.forced.end()) {
      bool known = false;
      for (size_t s = 0; s < schedules.size(); ++s) {
        if (schedules[s].name == forced->second) best = s, known = true;
      }
      if (!known) {
        failure_ =
            search::NoCandidates{"'" + forced->second + "' is no choice of '" + decision.id + "'",
                                 "see --explain for the ids and labels",
                                 {}};
        return false;
      }
      decision.forced = true;
      forced_seconds_ += seconds[best] - seconds[own];
    }
    if (schedules.size() > 1) {
      const std::string_view evidence = costs_.evidence();
      // Of the step, everything else as chosen.
      const double whole = chosen_.selection.seconds - seconds[own];
      decision.chosen = schedules[best].name;
      decision.cost = TimeOf(whole + seconds[best], evidence);
      std::vector<size_t> order;
      for (size_t s = 0; s < schedules.size(); ++s) {
        if (s != best) order.push_back(s);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });
      for (size_t s : order) {
        search::Loser loser;
        loser.label = schedules[s].name;
        loser.cost = TimeOf(whole + seconds[s], evidence);
        loser.difference = search::Difference(loser.cost, decision.cost);
        loser.decided_by = "time";
        decision.losers.push_back(std::move(loser));
      }
      explanation_.decisions.push_back(std::move(decision));
    }
    launch.kernel = ApplySchedule(built.kernel, schedules[best]);
    double blocks = 1;
    for (const Axis& axis : launch.kernel.axes) {
      if (axis.kind != AxisKind::kGrid) continue;
      blocks *= static_cast<double>((axis.extent + axis.block - 1) / axis.block);
    }
    launch.seconds = seconds[best] + costs_.LaunchSeconds(blocks);
    return true;
  }

  const Step& step_;
  const ChooseResult& chosen_;
  const KernelCostModel& costs_;
  const ChooseOptions& options_;
  search::Explanation& explanation_;
  std::optional<search::SearchFailure>& failure_;
  std::vector<BuiltKernel> built_;
  double forced_seconds_ = 0;  // that forced schedules add
};

}  // namespace

StepPlan PlanStep(const Step& step, const ChooseResult& chosen, const KernelCostModel& costs,
                  const ChooseOptions& options, search::Explanation& explanation,
                  std::optional<search::SearchFailure>& failure) {
  return StepPlanner(step, chosen, costs, options, explanation, failure).Run();
}

}  // namespace l3c::l0::lower
