#include "layers/l1/lower.h"

#include <algorithm>
#include <string>
#include <utility>

#include "layers/l1/annotations.h"
#include "layers/l1/place.h"
#include "layers/l1/placed_program.h"
#include "layers/l1/step_demand.h"
#include "layers/l1/training_graphs.h"
#include "layers/l1/update_plan.h"
#include "layers/l2/expand.h"
#include "layers/l2/inputs.h"
#include "layers/l2/methods.h"
#include "layers/l2/verify.h"

namespace l3c::l1 {
namespace {

class Lowering {
 public:
  Lowering(const l2::Module& module, const LowerOptions& options)
      : module_(module), options_(options) {}

  search::LoweringResult<Program> Run() {
    if (!Prepare()) return std::move(result_);
    if (!PlaceWithPins(DemandOf(t_, options_.system, notes_.kernels))) return std::move(result_);
    search::Candidate<Program> candidate;
    candidate.target = PlacedProgram(t_, options_.system, notes_.kernels, place_);
    if (!result_.explanation.decisions.empty()) {
      candidate.cost = result_.explanation.decisions[0].cost;
    }
    result_.candidates.push_back(std::move(candidate));
    return std::move(result_);
  }

 private:
  bool Fail(std::string reason, std::string hint, Span where = {}) {
    result_.failure = search::NoCandidates{std::move(reason), std::move(hint), where};
    return false;
  }

  bool IsComputed(const LayerKernel& kernel) {
    bool found = t_.eval.graph.Find(kernel.layer).has_value();
    for (const Compute& train : t_.train) found = found || train.graph.Find(kernel.layer);
    if (found) return true;
    return Fail("'" + support::PrintEscapeHatch(kernel.hatch) + "' on " + kernel.where +
                    ": no value stands for the layer",
                "annotate another layer, or a let of an l1 file", kernel.hatch.span);
  }

  // The search, held to what annotations ask for.
  bool PlaceWithPins(const StepDemand& demand) {
    search::LoweringOptions search = options_.search;
    constexpr char kModel[] = "l1/node.forward_backward";
    if (notes_.model) {
      const auto [forced, fresh] = search.forced.try_emplace(kModel, notes_.model->node);
      if (!fresh && forced->second != notes_.model->node) {
        return Fail("--force " + std::string(kModel) + "=" + forced->second +
                        " disagrees with the annotation on " + notes_.model->where,
                    "leave out one of the two", notes_.model->span);
      }
    }
    PlacementResult placed =
        Place(options_.system, demand, options_.isas, options_.pipeline_depth, search);
    result_.explanation = std::move(placed.explanation);
    result_.failure = std::move(placed.failure);
    if (!placed.placement) {
      auto* none = std::get_if<search::NoCandidates>(&*result_.failure);
      if (none != nullptr && notes_.model) none->where = notes_.model->span;
      return false;
    }
    place_ = *placed.placement;
    const std::string& storage = options_.system.nodes[place_.storage].name;
    if (notes_.data && notes_.data->node != storage) {
      return Fail("the data of " + notes_.data->where + " lie on " + storage + ", not on '" +
                      notes_.data->node + "'",
                  "the first storage node of the system holds the data: put it first",
                  notes_.data->span);
    }
    return true;
  }

  // Expands the method into graphs and measures their work.
  bool Prepare() {
    result_.explanation.lowering = "l2->l1";
    if (module_.methods.empty()) return Fail("there are no methods", "write methods for a model");
    // Models of one goal train together: what concerns all stands in the methods of each.
    t_.module = &module_;
    t_.methods = module_.methods.front();
    search::NoCandidates wrong;
    auto notes = ReadAnnotations(module_, options_.system, options_.folder, wrong);
    if (!notes) {
      result_.failure = std::move(wrong);
      return false;
    }
    notes_ = *std::move(notes);
    ApplyOverrides();
    t_.batch = l2::BatchOf(t_.methods.sample);
    t_.drop_last = l2::DropsLast(t_.methods.sample);
    t_.seed = options_.seed.value_or(t_.methods.seed.value_or(0));
    t_.forward = l2::ExpandForward(module_, t_.methods, t_.batch, {/*training=*/true, t_.seed});
    t_.evaluation = l2::ExpandForward(module_, t_.methods, t_.batch);

    for (const auto& field : t_.forward.fields) {
      if (t_.data_name.empty()) t_.data_name = field.data;
      if (field.data != t_.data_name) {
        return Fail("the loss reads both '" + t_.data_name + "' and '" + field.data + "'",
                    "a batch comes from one data declaration", t_.methods.sample.span);
      }
    }
    const auto info = options_.data.find(t_.data_name);
    if (info == options_.data.end()) {
      return Fail("nothing is known about the files of data '" + t_.data_name + "'",
                  "say where they are: --data " + t_.data_name + "=DIR");
    }
    t_.info = &info->second;
    const auto rows = t_.info->rows.find("train");
    const l2::SamplePlan plan = l2::PlanOf(t_.methods.sample);
    const int64_t samples = rows == t_.info->rows.end() ? 0 : l2::SamplesOf(plan, rows->second);
    if (samples < t_.batch) {
      const std::string what = plan.window > 0 ? " windows" : " rows";
      const int64_t most = samples / plan.shards;
      return Fail(
          "data '" + t_.data_name + "' has " + std::to_string(samples) + what +
              " to train on, and a batch has " + std::to_string(t_.batch),
          most == 0 ? "train on more data" : "write batch: " + std::to_string(most) + " or less",
          t_.methods.sample.span);
    }
    l2::SamplePlan evaluated = plan;
    evaluated.shards = 1;
    const auto& phases = t_.methods.phases;
    t_.has_test =
        t_.info->rows.contains("test") && l2::SamplesOf(evaluated, t_.info->rows.at("test")) > 0 &&
        std::any_of(phases.begin(), phases.end(), [](const auto& p) { return p.eval_every > 0; });

    const auto steps = l2::TotalSteps(t_.methods, rows->second);
    if (!steps) {
      return Fail("the phases together make more than " + std::to_string(l2::kMaxTotalSteps) +
                      " steps on the " + std::to_string(rows->second) + " rows of data '" +
                      t_.data_name + "'",
                  "train for fewer epochs, or write 'steps: n' in place of them",
                  t_.methods.phases.front().span);
    }
    t_.total_steps = *steps;
    t_.updates = PlanUpdates(module_, t_.methods, t_.forward, t_.total_steps);
    if (t_.updates.variants.size() > 1 && t_.forward.turns.size() > 1) {
      return Fail(
          "phases that freeze layers or have an update of their own, and a goal of several "
          "turns",
          "write one of the two", t_.methods.phases.front().span);
    }
    BuildGraphs(t_);
    for (const LayerKernel& kernel : notes_.kernels) {
      if (!IsComputed(kernel)) return false;
    }
    return true;
  }

  void ApplyOverrides() {
    if (!options_.epochs && !options_.steps) return;
    l2::Phase phase = t_.methods.phases.empty() ? l2::Phase{"main"} : t_.methods.phases.front();
    phase.epochs = options_.steps ? 0 : *options_.epochs;
    phase.steps = options_.steps.value_or(0);
    t_.methods.phases = {phase};
  }

  const l2::Module& module_;
  const LowerOptions& options_;
  search::LoweringResult<Program> result_;
  Annotations notes_;
  Training t_;
  Placement place_;
};

}  // namespace

search::LoweringResult<Program> Lower(const l2::Module& module, const LowerOptions& options) {
  return Lowering(module, options).Run();
}

}  // namespace l3c::l1
