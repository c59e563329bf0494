#include "runtime/cpu_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace l3c::runtime {
namespace {

TEST(CpuSet, KeepsOneCpuAtLeast) {
  CpuSet set = CpuSet::Usable();
  ASSERT_GE(set.count(), 1);
  EXPECT_EQ(set.Without(-1).count(), set.count());
  for (int all = set.count(); all > 1; --all) {
    // Some usable CPU is taken out each time.
    CpuSet rest = set;
    for (int cpu = 0; rest.count() == all; ++cpu) rest = set.Without(cpu);
    EXPECT_EQ(rest.count(), all - 1);
    set = rest;
  }
  for (int cpu = 0; cpu < 4096; ++cpu) EXPECT_EQ(set.Without(cpu).count(), 1);
}

TEST(CpuSet, HoldsAThreadOffTheCpuOfTheCaller) {
  const CpuSet usable = CpuSet::Usable();
  if (usable.count() < 2) GTEST_SKIP() << "one CPU";
  std::atomic<bool> held{false}, done{false};
  int avoided = -1, seen = 0;
  std::thread thread([&] {
    while (!held.load()) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) {
      if (CurrentCpu() == avoided) ++seen;
      std::this_thread::yield();
    }
    done.store(true);
  });
  avoided = CurrentCpu();
  usable.Without(avoided).Hold(thread);
  held.store(true);
  while (!done.load()) std::this_thread::yield();
  thread.join();
  EXPECT_EQ(seen, 0);
}

}  // namespace
}  // namespace l3c::runtime
