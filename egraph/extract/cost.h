// Costs of e-nodes: vectors of named components, each with its unit and its evidence.
//
// A CostModel names its components once (a schema) and gives every e-node a vector over them. What
// extraction minimises is one weighted sum, the Objective; the vector itself is carried along so
// that a report can say which component decided and how well it is known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/view.h"

namespace l3c::egraph {

// How a figure is known, best first.
enum class Evidence : uint8_t { kMeasured, kInterpolated, kExtrapolated, kAnalytical };
std::string_view EvidenceName(Evidence evidence);  // "measured", …

inline constexpr size_t kMaxCostComponents = 8;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();  // forbidden

struct CostComponent {
  std::string name;  // "time", "bytes", …
  std::string unit;  // "s", "B", …
};

// The components of one model; at most kMaxCostComponents.
struct CostSchema {
  std::vector<CostComponent> components;
  size_t size() const { return components.size(); }
};

// Values beyond the schema's size stay zero. All are ≥ 0; infinity or NaN in any component, or a
// negative objective, forbids the e-node.
struct CostVector {
  std::array<double, kMaxCostComponents> value{};
  std::array<Evidence, kMaxCostComponents> evidence{};

  static CostVector Forbidden() {
    CostVector v;
    v.value[0] = std::numeric_limits<double>::infinity();
    return v;
  }
  bool forbidden() const {
    return std::any_of(value.begin(), value.end(), [](double x) { return !(x < kInfinity); });
  }
  CostVector& Set(size_t component, double x, Evidence e) {
    value[component] = x;
    evidence[component] = e;
    return *this;
  }
  // A sum is known no better than its worst non-zero part.
  CostVector& operator+=(const CostVector& other) {
    for (size_t i = 0; i < kMaxCostComponents; ++i) {
      if (other.value[i] == 0) continue;
      evidence[i] = value[i] == 0 ? other.evidence[i] : std::max(evidence[i], other.evidence[i]);
      value[i] += other.value[i];
    }
    return *this;
  }
};

// Weight of each component, ≥ 0.
struct Objective {
  std::array<double, kMaxCostComponents> weight{};

  static Objective Single(size_t component) {
    Objective o;
    o.weight[component] = 1;
    return o;
  }
  double operator()(const CostVector& v) const {
    if (v.forbidden()) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (size_t i = 0; i < kMaxCostComponents; ++i) sum += weight[i] * v.value[i];
    return sum;
  }
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual const CostSchema& schema() const = 0;
  // Of the e-node alone, its children not counted. Called once per e-node and extraction; must
  // depend on the view only.
  virtual CostVector NodeCost(const EGraphView& view, ENodeRef node) const = 0;
};

// The `:cost` of each constructor, as one component.
class DeclaredCosts : public CostModel {
 public:
  DeclaredCosts();
  const CostSchema& schema() const override { return schema_; }
  CostVector NodeCost(const EGraphView& view, ENodeRef node) const override;

 private:
  CostSchema schema_;
};

}  // namespace l3c::egraph
