#include "layers/l2/search_failures.h"

#include <algorithm>
#include <string>

#include "layers/l2/score.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {

using search::NoCandidates;
using search::SearchFailure;
using support::PrintInteger;

SearchFailure Infeasible(const Space& space, SpaceGraph& graph, const Restriction& forced) {
  const auto budget = space.model->param_budget();
  const auto fewest = graph.FewestParameters(forced);
  if (budget && fewest && *fewest > *budget) {
    const l3::Property* property = space.model->FindProperty(l3::Property::Kind::kParamBudget);
    return NoCandidates{
        "the smallest candidate has " + PrintInteger(*fewest) + " parameters, param_budget(" +
            support::PrintCount(*budget) + ") allows " + PrintInteger(*budget),
        "raise param_budget to " + PrintInteger(*fewest) + " or more", property->span};
  }
  const auto time = space.model->latency_budget();
  const auto least = graph.LeastLatency(forced);
  const l3::Property* latency = space.model->FindProperty(l3::Property::Kind::kLatencyBudget);
  if (time && least && *least > *time) {
    return NoCandidates{
        "the forward pass of one sample of the smallest candidate is predicted to take " +
            LatencyText(*least) + ", latency_budget(" + support::PrintSeconds(*time) + ") allows " +
            support::PrintSeconds(*time),
        "raise latency_budget to " + LatencyText(*least) + " or more", latency->span};
  }
  if (budget && time && fewest && least) {
    return NoCandidates{"no candidate is within param_budget(" + support::PrintCount(*budget) +
                            ") and latency_budget(" + support::PrintSeconds(*time) + ") at once",
                        forced.required.empty() ? "raise one of the two"
                                                : "raise one of the two, or force fewer choices",
                        latency->span};
  }
  return NoCandidates{"the forced choices exclude one another", "force fewer of them", {}};
}

namespace {

// Networks, by a count that needs no graph: Σ over depths of (widths·norms·activations)^hidden.
double NetworkCount(double per_stage, int64_t max_stages) {
  double count = 0, term = 1;
  for (int64_t d = 1; d <= max_stages; ++d, term *= per_stage) count += term;
  return count;
}

}  // namespace

SearchFailure TooMany(const Space& space, uint64_t scored, uint64_t bound) {
  const double kinds = static_cast<double>(
      space.priors.norms.size() * space.priors.activations.size() * LegalKinds(space).size());
  const double widths = static_cast<double>(space.widths.size());
  const double all = NetworkCount(widths * kinds, space.max_stages);
  // What a turn of each screw takes away: one stage less, or half the width.
  const double shallower = NetworkCount(widths * kinds, space.max_stages - 1);
  const double narrower = NetworkCount((widths - 1) * kinds, space.max_stages);
  const bool by_depth = all - shallower >= all - narrower;
  search::TooManyCandidates many;
  many.count = scored;
  const auto kind = by_depth ? l3::Property::Kind::kDepth : l3::Property::Kind::kWidth;
  const l3::Property* property = space.model->FindProperty(kind);
  const std::string name(l3::PropertyName(kind));
  const int64_t value = by_depth ? space.max_stages : space.widths.back();
  many.loosest = property != nullptr ? name + "(" + PrintInteger(property->count) + ")"
                                     : "the missing " + name + "(n)";
  many.hint = "at most " + PrintInteger(static_cast<int64_t>(bound)) + " are scored; write " +
              name + "(" + PrintInteger(std::max<int64_t>(1, by_depth ? value - 1 : value / 2)) +
              ")";
  if (property != nullptr) many.where = property->span;
  return many;
}

}  // namespace l3c::l2
