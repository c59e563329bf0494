// A CPU's cost model with measured figures in the place of the analytical ones.
//
// The formulas are those of CpuCostModel. Where a kernel is like one of the probes (cost/probe.h),
// its time is multiplied by what the probes took over what the formulas say of them, interpolated
// between the shapes that were measured, over the logarithms of their extents and inversely to the
// square of the distance. How an answer is known:
//   measured      the very shape was timed
//   interpolated  it lies between shapes that were, or follows from measured figures alone
//   extrapolated  it lies outside of them: the ratio of the nearest ones is taken
//   analytical    the figure that decides was not measured: scattered loads, and integers
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/evidence.h"
#include "cost/machine.h"
#include "cost/probe.h"

namespace l3c::cost {

// The machine class with the figures of `evidence`.
CpuMachine MeasuredMachine(CpuMachine machine, const Evidence& evidence);

class CalibratedCostModel : public CpuCostModel {
 public:
  // `machine` describes the same target as the evidence (see Describes).
  CalibratedCostModel(const CpuMachine& machine, const Evidence& evidence);

  double KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule) const override;
  double KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule,
                       const Traffic& traffic) const override;
  // Of whole plans: known no better than their worst part may be.
  std::string_view evidence() const override { return "extrapolated"; }
  std::string_view KernelEvidence(const l0::Kernel& kernel) const override;
  std::string_view AccessEvidence(const l0::lower::AccessWork& work) const override;
  std::string_view ComputeEvidence(const l0::lower::ComputeWork& work) const override;
  std::string_view LaunchEvidence(double blocks) const override {
    return blocks > 1 ? "interpolated" : "analytical";
  }
  std::string figures() const override;

 private:
  struct Point {
    Extents extents{};
    double log_ratio = 0;
  };
  struct Ratio {
    double value = 1;
    std::string_view evidence = "interpolated";
  };
  Ratio RatioOf(const Likeness& like) const;

  std::string revision_;  // all that was measured, as text
  std::vector<Point> points_[std::size(kProbes)];
};

// Whether a compute node is the machine that the evidence was measured on.
bool Describes(const Evidence& evidence, const l1::SystemNode& node);

}  // namespace l3c::cost
