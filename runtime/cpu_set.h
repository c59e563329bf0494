// The CPUs that this process may run on.
#pragma once

#include <thread>
#include <vector>

namespace l3c::runtime {

class CpuSet {
 public:
  // Of the calling thread; {0} where the system does not tell.
  static CpuSet Usable();

  int count() const { return static_cast<int>(cpus_.size()); }
  // Without `cpu`, unless that would leave nothing.
  CpuSet Without(int cpu) const;
  // Lets `thread` run on these CPUs alone, and moves it at once if it waits on another. A system
  // that refuses leaves it where it is.
  void Hold(std::thread& thread) const;

 private:
  std::vector<int> cpus_;
};

// Of the calling thread at this moment; -1 where the system does not tell.
int CurrentCpu();

}  // namespace l3c::runtime
