#include "layers/l0/lower/step_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "layers/l0/lower/explain.h"

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
    for (size_t i : Order()) {
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
    auto forced = options_.forced.find(decision.id);
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

  std::vector<size_t> Order() const {
    const size_t n = built_.size();
    std::map<Storage, size_t> writer;
    std::map<int32_t, size_t> overwriter;
    for (size_t i = 0; i < n; ++i) {
      for (size_t p = 0; p < built_[i].bindings.size(); ++p) {
        if (built_[i].kernel.params[p].access == Access::kIn) continue;
        const Binding& b = built_[i].bindings[p];
        if (b.state >= 0) {
          overwriter[b.state] = i;
        } else {
          writer[b.storage] = i;
        }
      }
    }
    std::vector<std::set<size_t>> after(n);  // what must have run
    std::map<Storage, size_t> readers;
    for (size_t i = 0; i < n; ++i) {
      for (size_t p = 0; p < built_[i].bindings.size(); ++p) {
        const Binding& b = built_[i].bindings[p];
        if (b.state >= 0) {
          auto it = overwriter.find(b.state);
          if (it != overwriter.end() && it->second != i) after[it->second].insert(i);
        } else if (built_[i].kernel.params[p].access == Access::kIn) {
          auto it = writer.find(b.storage);
          if (it != writer.end()) {
            after[i].insert(it->second);
            ++readers[b.storage];
          }
        }
      }
    }
    std::vector<bool> done(n);
    std::vector<size_t> order;
    while (order.size() < n) {
      size_t pick = n;
      int64_t least = 0;
      for (size_t i = 0; i < n; ++i) {
        if (done[i]) continue;
        bool ready = true;
        for (size_t before : after[i]) ready = ready && done[before];
        if (!ready) continue;
        int64_t growth = 0;
        for (size_t p = 0; p < built_[i].bindings.size(); ++p) {
          const Binding& b = built_[i].bindings[p];
          if (b.state >= 0 || b.storage.kernel < 0) continue;
          const int64_t bytes = Bytes(chosen_.table.values[b.storage.value]);
          if (built_[i].kernel.params[p].access != Access::kIn) {
            growth += bytes;
          } else if (readers.at(b.storage) == 1) {
            growth -= bytes;
          }
        }
        if (pick == n || growth < least) {
          pick = i;
          least = growth;
        }
      }
      done[pick] = true;
      order.push_back(pick);
      for (size_t p = 0; p < built_[pick].bindings.size(); ++p) {
        if (built_[pick].kernel.params[p].access != Access::kIn) continue;
        auto it = readers.find(built_[pick].bindings[p].storage);
        if (it != readers.end() && it->second > 0) --it->second;
      }
    }
    return Postponed(std::move(order), after);
  }

  // What makes more than it frees goes as late as those that follow it allow: a weight turned over
  // for the backward pass is not made before the forward pass because it is small.
  std::vector<size_t> Postponed(std::vector<size_t> order,
                                const std::vector<std::set<size_t>>& after) const {
    std::map<Storage, size_t> last_reader;  // positions move, but not past a reader
    for (size_t i : order) {
      for (const Binding& b : built_[i].bindings) last_reader[b.storage] = i;
    }
    for (size_t at = order.size(); at-- > 0;) {
      const size_t i = order[at];
      int64_t growth = 0;
      for (size_t p = 0; p < built_[i].bindings.size(); ++p) {
        const Binding& b = built_[i].bindings[p];
        if (b.state >= 0 || b.storage.kernel < 0) continue;
        const int64_t bytes = Bytes(chosen_.table.values[b.storage.value]);
        if (built_[i].kernel.params[p].access != Access::kIn) {
          growth += bytes;
        } else if (last_reader.at(b.storage) == i) {
          growth -= bytes;
        }
      }
      if (growth <= 0) continue;
      size_t to = at;
      while (to + 1 < order.size() && !after[order[to + 1]].contains(i)) ++to;
      // Nobody waits for what is reported at the end; it stays where it is.
      if (to + 1 == order.size()) continue;
      std::rotate(order.begin() + at, order.begin() + at + 1, order.begin() + to + 1);
    }
    return order;
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
