#include "layers/l1/discover.h"

#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "layers/support/tile_permission.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace l3c::l1 {
namespace {

#if defined(__x86_64__)
constexpr char kIsa[] = "x86_64";

// What code generation and the cost model can make use of, in a fixed order.
std::vector<std::string> Features() {
  std::vector<std::string> features;
  const auto add = [&](bool has, const char* name) {
    if (has) features.emplace_back(name);
  };
  __builtin_cpu_init();
  // These ask the operating system too: a register file that it does not save is not there.
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  const bool avx512 = __builtin_cpu_supports("avx512f");
  add(avx512, "avx512f");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512dq"), "avx512dq");
  add(__builtin_cpu_supports("avx512vl"), "avx512vl");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    add(avx512 && (d >> 23 & 1), "avx512fp16");
    add((d >> 22 & 1) && support::TilesPermitted(), "amx_bf16");
    add((d >> 25 & 1) && support::TilesPermitted(), "amx_int8");
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) add(avx512 && (a >> 5 & 1), "avx512bf16");
  std::sort(features.begin(), features.end());
  return features;
}
#elif defined(__aarch64__)
constexpr char kIsa[] = "aarch64";
std::vector<std::string> Features() { return {"neon"}; }
#else
constexpr char kIsa[] = "unknown";
std::vector<std::string> Features() { return {}; }
#endif

// The limit of the control group that the process runs in, if there is one.
std::optional<int64_t> MemoryLimit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    int64_t bytes = 0;
    if (file >> bytes && bytes > 0) return bytes;
  }
  return std::nullopt;
}

}  // namespace

System DiscoverHost() {
  int64_t cores = 1;
  int64_t memory = 0;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0) {
      cores = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
      memory = static_cast<int64_t>(hwloc_get_root_obj(topology)->total_memory);
    }
    hwloc_topology_destroy(topology);
  }
  if (const auto limit = MemoryLimit()) memory = memory > 0 ? std::min(memory, *limit) : *limit;
  constexpr int64_t kGB = 1'000'000'000;

  System system;
  system.name = "host";
  SystemNode ssd;
  ssd.name = "ssd_0";
  ssd.kind = NodeKind::kStorage;
  SystemNode ram;
  ram.name = "ram_0";
  ram.kind = NodeKind::kMemory;
  ram.capacity = std::max<int64_t>(memory / kGB, 1) * kGB;
  SystemNode cpu;
  cpu.name = "cpu_0";
  cpu.kind = NodeKind::kCompute;
  cpu.isa = kIsa;
  cpu.cores = cores;
  cpu.features = Features();
  system.nodes = {ssd, ram, cpu};
  system.edges = {{0, 1, false, kAssumedStorageRate, {}}, {1, 2, true, kAssumedMemoryRate, {}}};
  return system;
}

}  // namespace l3c::l1
