#include "egraph/extract/cost.h"

namespace l3c::egraph {

std::string_view EvidenceName(Evidence evidence) {
  switch (evidence) {
    case Evidence::kMeasured:
      return "measured";
    case Evidence::kInterpolated:
      return "interpolated";
    case Evidence::kExtrapolated:
      return "extrapolated";
    case Evidence::kAnalytical:
      return "analytical";
  }
  return "analytical";
}

DeclaredCosts::DeclaredCosts() { schema_.components.push_back({"cost", ""}); }

CostVector DeclaredCosts::NodeCost(const EGraphView& view, ENodeRef node) const {
  CostVector cost;
  cost.Set(0, view.function(node).cost, Evidence::kAnalytical);
  return cost;
}

}  // namespace l3c::egraph
