#include "layers/l0/plan_verify_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/plan_verify.h"

namespace l3c::l0 {
namespace {

using support::Diagnostics;
using support::Kind;

// Beyond this a number of steps is taken for a mistake, as in L1.
constexpr int64_t kMaxSteps = int64_t{1} << 40;

class PlanData {
 public:
  PlanData(const Plan& plan, Diagnostics& diagnostics) : plan_(plan), diagnostics_(diagnostics) {}

  void CheckSources() {
    for (const DataSource& source : plan_.sources) {
      std::set<std::string> fields;
      for (const FieldSource& field : source.fields) {
        const std::string title = "field '" + source.name + "." + field.field + "'";
        if (!IsPlanName(field.field) || !fields.insert(field.field).second) {
          diagnostics_.Error(Kind::kConsistency, source.span,
                             title + " is declared twice or has no name");
        }
        double elements = 1;
        bool sound = field.shape.size() < static_cast<size_t>(tensor::kMaxRank);
        for (int64_t extent : field.shape) {
          sound = sound && extent >= 1;
          elements *= static_cast<double>(extent);
        }
        if (!sound || elements > static_cast<double>(tensor::kMaxElements)) {
          diagnostics_.Error(Kind::kResourceBound, source.span, title + " has an impossible shape");
        }
      }
    }
    for (const Sampler& sampler : plan_.samplers) {
      if (sampler.batch < 1) {
        diagnostics_.Error(Kind::kResourceBound, sampler.span,
                           "sampler '" + sampler.name + "' yields batches of no row");
      }
      if (sampler.samples < 0 || sampler.samples > UINT32_MAX) {
        diagnostics_.Error(Kind::kResourceBound, sampler.span,
                           "sampler '" + sampler.name + "' has an impossible number of samples");
      }
      if ((sampler.kind == SampleKind::kReplay) != (sampler.buffer > 0)) {
        diagnostics_.Error(Kind::kConsistency, sampler.span,
                           "sampler '" + sampler.name + "': replay, and only replay, has a buffer");
      }
      if (sampler.shards < 1 || sampler.batch % sampler.shards != 0) {
        diagnostics_.Error(Kind::kConsistency, sampler.span,
                           "sampler '" + sampler.name + "': a batch of " +
                               std::to_string(sampler.batch) + " cannot take evenly of " +
                               std::to_string(sampler.shards) + " shards");
      }
      if (!IsPlanName(sampler.split)) {
        diagnostics_.Error(Kind::kConsistency, sampler.span,
                           "sampler '" + sampler.name + "' has no split");
      }
    }
    for (const Phase& phase : plan_.phases) {
      if (phase.epochs < 0 || phase.steps < 0 || phase.batch < 1) {
        diagnostics_.Error(Kind::kConsistency, phase.span,
                           "phase '" + phase.name + "' has impossible totals");
      }
    }
  }

  // The words that bound the loops of control units, by the names that control_build.h gives them;
  // a phase of several has its name in front.
  void CheckLimits(const ControlUnit& unit) {
    for (const Region& region : unit.regions) {
      if (region.name != "limits" || region.names.size() != region.values.size()) continue;
      for (size_t w = 0; w < region.values.size(); ++w) {
        CheckLimit(region, region.names[w], region.values[w]);
      }
    }
  }

  void CheckLimit(const Region& region, std::string_view name, int64_t value) {
    const auto is = [name](std::string_view word) {
      return name == word || (name.ends_with(word) && name[name.size() - word.size() - 1] == '_');
    };
    // An evaluation may go through the split once.
    const bool evaluation = name == "batches" || is("eval_batches");
    int64_t least = 0, most = std::numeric_limits<int64_t>::max();
    if (evaluation) {
      least = name == "batches" ? 1 : 0;
      most = std::max<int64_t>(least, BatchesOfEvaluation());
    } else if (is("steps")) {
      least = 1;
      most = kMaxSteps;
    } else if (is("steps_per_epoch")) {
      least = 1;
    } else if (!is("eval_every") && !is("checkpoint_every")) {
      return;
    }
    if (value >= least && value <= most) return;
    diagnostics_
        .Error(Kind::kResourceBound, region.span,
               "'" + std::string(name) + "' is " + std::to_string(value))
        .Fix("it must be " + std::to_string(least) + " to " + std::to_string(most) +
             (evaluation ? ", the batches of the split that is evaluated" : ""));
  }

  // Of the largest split that is not trained on.
  int64_t BatchesOfEvaluation() const {
    int64_t most = 0;
    for (const Sampler& sampler : plan_.samplers) {
      if (sampler.batch < 1 || sampler.split == "train") continue;
      most =
          std::max(most, sampler.samples / sampler.batch + (sampler.samples % sampler.batch > 0));
    }
    return most;
  }

 private:
  const Plan& plan_;
  Diagnostics& diagnostics_;
};

}  // namespace

void CheckData(const Plan& plan, support::Diagnostics& diagnostics) {
  PlanData data(plan, diagnostics);
  data.CheckSources();
  for (const ControlUnit& unit : plan.control) data.CheckLimits(unit);
}

}  // namespace l3c::l0
