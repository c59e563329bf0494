// An analytical cost model of a CPU: the figures of one core and its caches, and what follows from
// them for the parts of a kernel.
//
// The figures describe a class of machines, they are not taken from the one that compiles, so the
// same program gives the same plan everywhere. Every figure is "analytical" until a calibration
// puts a measured one in its place.
//
//   time of a part = max(arithmetic, memory) / parts side by side
//   arithmetic     = vector operations · cycles each / clock
//   memory         = distinct bytes / bandwidth of the smallest level that holds the buffer
#pragma once

#include <cstdint>
#include <string>

#include "layers/l0/lower/kernel_cost.h"
#include "layers/l1/ir.h"

namespace l3c::cost {

struct CpuMachine {
  std::string name = "x86-64-v4";
  int64_t cores = 2;
  int lanes = 16;  // f32 lanes of a vector register
  int registers = 32;
  double clock = 3.3e9;  // Hz under full vector load
  // Cycles that a full vector of f32 costs a core, in throughput. Transcendentals are polynomials
  // of the kernel compiler (backends/llvm/transcendental.h), taken from its operation counts.
  double fma = 0.5;
  double bf16_dot = 0.5;    // two products a lane, added to a sum
  double bf16_pair = 2.5;   // two roundings and a permutation
  double tile_product = 0;  // of 16×16 sums and 16 pairs of each factor, 16 vectors; 0: has none
  double tile_load = 8;     // of 16 rows of 64 bytes, from the first level
  double simple = 0.5;
  double divide = 8;
  double square_root = 8;
  double exp2 = 9;
  double log2 = 20;
  double sine = 40;
  double vector_load = 0.5;  // from the first level
  double vector_store = 1;
  double scalar_load = 1;  // of a lane that lies apart
  double fma_latency = 4;
  double lane_fold = 7;  // sixteen lanes to one: four shuffles and additions in a chain
  // Bytes that each level holds for a core, and what a core draws from it (bytes a second). Half of
  // a level counts, so that a producer's output is still there when it is read.
  double l2_bytes = 0.5e6;
  double l2_bandwidth = 150e9;
  double l3_bytes = 12e6;
  double l3_bandwidth = 50e9;
  double memory_bandwidth = 25e9;  // of all cores together
  double launch = 2.5e-6;          // a launch on several cores and the barrier after it, seconds
  double launch_alone = 0.3e-6;    // of a single block: no other core is woken
};

// The machine class of a compute node: its cores and vector width; the rest as above.
CpuMachine MachineOf(const l1::SystemNode& node);

// Bytes by where they are found: the caches of the cores, the one they share, and beyond.
struct Traffic {
  double l2 = 0;
  double l3 = 0;
  double memory = 0;
};

class CpuCostModel : public l0::lower::KernelCostModel {
 public:
  explicit CpuCostModel(CpuMachine machine) : machine_(std::move(machine)) {}

  const CpuMachine& machine() const { return machine_; }

  double LaunchSeconds(double blocks) const override {
    return blocks > 1 && machine_.cores > 1 ? machine_.launch : machine_.launch_alone;
  }
  double LoadSeconds(const l0::lower::AccessWork& work) const override;
  double StoreSeconds(const l0::lower::AccessWork& work) const override;
  double ComputeSeconds(const l0::lower::ComputeWork& work) const override;
  double KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule) const override;
  // The same where its bytes are found elsewhere than a kernel finds them that runs by itself.
  virtual double KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule,
                               const Traffic& traffic) const;
  // Adds bytes between whose last use and this one others were touched, `distance` bytes in all
  // (negative: never used); a line of those that are `allocated`, written and not read, comes
  // first.
  void AddTraffic(double distance, double bytes, double allocated, Traffic& traffic) const;
  l0::ScheduleTarget target() const override;
  std::string_view evidence() const override { return "analytical"; }
  std::string figures() const override;

 protected:
  // But for the time that its bytes take.
  double ArithmeticSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule) const;
  // Of all but multiply-adds, on one lane.
  double OtherCycles(const l0::KernelWork& work) const;
  double TrafficSeconds(const Traffic& traffic, double blocks) const;

 private:
  // Of `cores` cores drawing at once from the level that holds `buffer` bytes.
  double Bandwidth(double buffer, double cores) const;
  double Cores(double blocks) const;
  CpuMachine machine_;
};

}  // namespace l3c::cost
