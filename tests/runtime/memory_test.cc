// Where the pools of a plan lie, and what a process holds beside them.
#include "runtime/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace l3c::runtime {
namespace {

constexpr size_t kHugePage = 2 << 20;

l0::Plan PlanOf(std::initializer_list<int64_t> sizes) {
  l0::Plan plan;
  for (const int64_t size : sizes) {
    const auto pool = static_cast<uint32_t>(plan.pools.size());
    plan.pools.push_back({});
    plan.pools.back().size = size;
    plan.buffers.push_back({});
    plan.buffers.back().pool = pool;
    plan.buffers.back().size = size;
  }
  return plan;
}

// The flags that the system keeps of the mapping at `address` (proc(5), VmFlags).
std::string FlagsAt(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long low = 0;
    unsigned long high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) inside = low <= at && at < high;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Memory, PoolsAreZeroedAndApart) {
  const l0::Plan plan = PlanOf({100, 5000, 0, 64});
  const auto memory = Memory::Allocate(plan);
  ASSERT_TRUE(memory.ok()) << memory.status();
  for (l0::BufferId buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    std::byte* at = memory->Address(buffer);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 4096, 0u);
    for (int64_t i = 0; i < plan.buffers[buffer].size; ++i) ASSERT_EQ(at[i], std::byte{0});
    std::memset(at, 0xff, static_cast<size_t>(plan.buffers[buffer].size));
  }
}

// To the last byte: a part on small pages makes its kernels slower.
TEST(Memory, LargePoolsLieOnHugePages) {
  const l0::Plan plan = PlanOf({300, (3 << 20) + 1});
  const auto memory = Memory::Allocate(plan);
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::byte* first = memory->Address(0);
  std::byte* last = memory->Address(1) + (3 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kHugePage, 0u);
  *last = std::byte{1};
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this system has no huge pages";
  }
  const uintptr_t page = reinterpret_cast<uintptr_t>(last) / kHugePage * kHugePage;
  for (const uintptr_t at : {reinterpret_cast<uintptr_t>(first), page, page + kHugePage - 1}) {
    EXPECT_NE(FlagsAt(reinterpret_cast<const void*>(at)).find(" hg "), std::string::npos) << at;
  }
}

// Of the program's own pages that nothing writes to, those in memory; kB.
int64_t ResidentProgram() {
  std::ifstream file("/proc/self/smaps");
  int64_t resident = 0;
  bool counts = false;
  std::string program;
  for (std::string line; std::getline(file, line);) {
    const size_t path = line.find('/');
    if (line.find('-') < line.find(' ')) {  // a mapping begins
      const std::string of = path == std::string::npos ? "" : line.substr(path);
      if (program.empty()) program = of;
      counts = of == program && line.find(" r-xp ") != std::string::npos;
    } else if (counts && line.starts_with("Rss:")) {
      resident += std::stoll(line.substr(4));
    }
  }
  return resident;
}

TEST(Memory, LeavesOfTheProgramWhatARunNeeds) {
  const int64_t before = ResidentProgram();
  if (before == 0) GTEST_SKIP() << "the system does not tell what is resident";
  ASSERT_TRUE(Memory::Allocate(l0::Plan()).ok());
  EXPECT_LT(ResidentProgram(), before);
}

}  // namespace
}  // namespace l3c::runtime
