// Systems and steps that tests of placement start from.
#pragma once

#include <string>
#include <vector>

#include "layers/l1/place.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {

inline System SystemOf(const std::string& body) {
  const auto program = ParseText("system s {\n" + body + "}\n");
  return program ? program->system : System{};
}

inline System GpuBox() {
  return SystemOf(
      "node ssd_0 { kind: storage }\n"
      "node ram_0 { kind: memory, capacity: 32GB }\n"
      "node cpu_0 { kind: compute, isa: x86_64, cores: 8, features: [avx2, fma] }\n"
      "node gpu_0 { kind: compute, isa: cuda, vram: 24GB, sm: 84 }\n"
      "edges {\n"
      "    ssd_0 -> ram_0 : bandwidth 2GB/s\n"
      "    ram_0 <-> cpu_0 : bandwidth 50GB/s\n"
      "    cpu_0 <-> gpu_0 : bandwidth 32GB/s\n"
      "}\n");
}

inline StepDemand Demand(double gflop) {
  StepDemand demand;
  demand.model_flops = gflop * 1e9;
  demand.update_flops = 4e6;
  demand.batch_bytes = 4e5;
  demand.gradient_bytes = 1e6;
  demand.parameter_bytes = 1e6;
  demand.state_bytes = 3e6;
  return demand;
}

inline const std::vector<std::string> kBoth = {"x86_64", "cuda"};

}  // namespace l3c::l1
