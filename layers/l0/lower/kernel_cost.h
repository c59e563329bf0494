// What the search asks of a cost model. cost/machine.h answers from a machine description.
//
// Costs are seconds on the whole machine and add up over the parts of a kernel. A contraction is
// one part, with the larger of arithmetic and memory taken inside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/tensor/op.h"

namespace l3c::l0::lower {

// How consecutive lanes find their elements.
enum class Pattern : uint8_t {
  kContiguous,
  kBroadcast,  // all lanes the same one
  kStrided,    // apart, each a load of its own
};

struct AccessWork {
  double points = 0;  // elements loaded or stored, repetitions included
  double bytes = 0;   // distinct
  double buffer = 0;  // bytes of the whole buffer: decides in which cache it is found
  int element = 4;    // bytes
  Pattern pattern = Pattern::kContiguous;
  double lanes = 1;   // useful lanes of a vector, 1 … target().lanes
  double blocks = 1;  // independent parts
};

struct ComputeWork {
  tensor::Op op = tensor::Op::kAdd;
  tensor::DType dtype = tensor::DType::kF32;
  double points = 0;
  double lanes = 1;
  double blocks = 1;
};

class KernelCostModel {
 public:
  virtual ~KernelCostModel() = default;
  // Of a kernel of about so many blocks.
  virtual double LaunchSeconds(double blocks) const = 0;
  virtual double LoadSeconds(const AccessWork& work) const = 0;
  virtual double StoreSeconds(const AccessWork& work) const = 0;
  virtual double ComputeSeconds(const ComputeWork& work) const = 0;
  // A whole kernel under a schedule, without its launch. Also used for bare contractions.
  virtual double KernelSeconds(const Kernel& kernel, const Schedule& schedule) const = 0;
  virtual ScheduleTarget target() const = 0;
  // How sums over a whole plan are known: "measured", "interpolated", "extrapolated" or
  // "analytical", in this order the best of it.
  virtual std::string_view evidence() const = 0;
  // The same of single answers.
  virtual std::string_view KernelEvidence(const Kernel&) const { return evidence(); }
  virtual std::string_view AccessEvidence(const AccessWork&) const { return evidence(); }
  virtual std::string_view ComputeEvidence(const ComputeWork&) const { return evidence(); }
  virtual std::string_view LaunchEvidence(double /*blocks*/) const { return evidence(); }
  // Everything that the answers depend on, as text; "": it cannot be told, and nothing that was
  // decided by them may be kept for another run.
  virtual std::string figures() const { return ""; }
};

}  // namespace l3c::l0::lower
