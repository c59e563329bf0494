#include "layers/l0/lower/parts_plan.h"

#include <algorithm>
#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/lower/join_parts.h"
#include "layers/l0/lower/recompute.h"
#include "layers/l0/lower/step_parts.h"

namespace l3c::l0::lower {

namespace {

constexpr std::string_view kCacheKind = "part";

class PartPlanner {
 public:
  PartPlanner(const Step& step, const KernelCostModel& costs, const RuleSources& rules,
              const ChooseOptions& options, support::BlobCache* cache)
      : step_(step), costs_(costs), rules_(rules), options_(options), cache_(cache) {
    for (const auto& [id, label] : options.forced) {
      if (options.Concerns(id) && !IsMemoryDecision(id)) forced_.insert(id);
    }
  }

  bool forced() const { return !forced_.empty(); }

  std::optional<PlannedStep> Run() {
    const std::optional<StepParts> parts = CutStep(step_);
    if (!parts) return std::nullopt;
    left_out_ = parts->blocks.left_out;
    for (const StepPart& part : parts->parts) nodes_ += part.step.graph.size();
    std::vector<PartSearch> searches;
    for (const StepPart& part : parts->parts) searches.push_back(Begin(*parts, part));
    // No part knows of another, so they are searched beside one another.
    std::vector<std::future<void>> running;
    PartSearch* own = nullptr;
    for (PartSearch& search : searches) {
      if (search.planned) continue;
      if (own != nullptr)
        running.push_back(std::async(std::launch::async, [&, own] { Plan(*own); }));
      own = &search;
    }
    if (own != nullptr) Plan(*own);
    for (std::future<void>& other : running) other.get();
    std::vector<PlannedStep> planned;
    std::set<std::string> nowhere = forced_;
    for (PartSearch& search : searches) {
      if (!search.planned) return std::nullopt;
      if (search.made && !search.key.empty()) {
        cache_->Store(kCacheKind, search.key, WritePlannedStep(*search.planned));
      }
      planned.push_back(*std::move(search.planned));
      std::erase_if(nowhere, [&](const std::string& id) { return !search.elsewhere.contains(id); });
    }
    if (!nowhere.empty()) return std::nullopt;
    std::optional<PlannedStep> joined = JoinParts(step_, *parts, std::move(planned));
    if (!joined) return std::nullopt;
    joined->explanation.pruned.push_back(
        {options_.prefix + ": operations of " + std::to_string(left_out_) + " repeated blocks",
         "they are those of the first of them but for names, and take its kernels",
         parts->blocks.left_out_nodes});
    return joined;
  }

  int64_t copies() const { return left_out_ + 1; }

 private:
  struct PartSearch {
    const StepPart* part = nullptr;
    const StepParts* parts = nullptr;
    std::string key;  // in the cache; "": it is kept out of it
    std::optional<PlannedStep> planned;
    bool made = false;                // by a search now
    std::set<std::string> elsewhere;  // what is forced and none of its business
  };

  ChooseOptions OptionsOf(const PartSearch& search) const {
    ChooseOptions options = options_;
    options.prefix = "l0/" + std::string(kStepName);
    options.spell = [this, parts = search.parts, part = search.part](std::string_view text) {
      return Spell(text, *parts, *part, 0, step_);
    };
    if (options.budget.work != search::Budget().work) {
      // What is given is for all parts, each by its size.
      options.budget.work = options.budget.work / nodes_ * search.part->step.graph.size();
    }
    return options;
  }

  // Out of the cache, where it is there.
  PartSearch Begin(const StepParts& parts, const StepPart& part) const {
    PartSearch search;
    search.part = &part;
    search.parts = &parts;
    if (cache_ == nullptr || !forced_.empty()) return search;
    const ChooseOptions options = OptionsOf(search);
    search.key = StepKey(part.step, costs_, rules_, options);
    if (search.key.empty()) return search;
    if (const auto kept = cache_->Load(kCacheKind, options_.prefix + "/" + part.name, search.key)) {
      search.planned = ReadPlannedStep(*kept);
    }
    return search;
  }

  void Plan(PartSearch& search) const {
    const Step& step = search.part->step;
    ChooseOptions options = OptionsOf(search);
    options.elsewhere = &search.elsewhere;
    PlannedStep planned;
    std::optional<search::SearchFailure> failure;
    std::string rule_error;
    std::optional<ChooseResult> chosen =
        ChooseKernels(step, costs_, rules_, options, planned.explanation, failure, rule_error);
    if (!chosen) return;
    planned.plan = PlanStep(step, *chosen, costs_, options, planned.explanation, failure);
    if (failure) return;
    planned.table = std::move(chosen->table);
    search.planned = std::move(planned);
    search.made = true;
  }

  const Step& step_;
  const KernelCostModel& costs_;
  const RuleSources& rules_;
  const ChooseOptions& options_;
  support::BlobCache* cache_;
  std::set<std::string> forced_;  // of this step
  int64_t left_out_ = 0;
  uint64_t nodes_ = 0;  // of all parts
};

}  // namespace

std::optional<PlannedStep> PlanByParts(const Step& step, const KernelCostModel& costs,
                                       const RuleSources& rules, const ChooseOptions& options,
                                       support::BlobCache* cache, std::string* alone) {
  PartPlanner planner(step, costs, rules, options, cache);
  std::optional<PlannedStep> planned = planner.Run();
  if (!planned && planner.copies() > 1 && planner.forced() && alone != nullptr) {
    *alone = "a choice forced of '" + step.name + "' is none of the first of its " +
             std::to_string(planner.copies()) +
             " repeated blocks, which is searched for all, nor of what is around them: the whole "
             "step is searched, which takes longer and may end with other kernels; to force it in "
             "all copies, force it where '--explain' shows it";
  }
  return planned;
}

}  // namespace l3c::l0::lower
