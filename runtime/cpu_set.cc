#include "runtime/cpu_set.h"

#include <pthread.h>
#include <sched.h>

namespace l3c::runtime {

CpuSet CpuSet::Usable() {
  CpuSet usable;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) usable.cpus_.push_back(cpu);
    }
  }
  if (usable.cpus_.empty()) usable.cpus_.push_back(0);
  return usable;
}

CpuSet CpuSet::Without(int cpu) const {
  CpuSet rest;
  for (int other : cpus_) {
    if (other != cpu) rest.cpus_.push_back(other);
  }
  return rest.cpus_.empty() ? *this : rest;
}

void CpuSet::Hold(std::thread& thread) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus_) CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
}

int CurrentCpu() { return sched_getcpu(); }

}  // namespace l3c::runtime
