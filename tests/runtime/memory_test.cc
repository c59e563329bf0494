// What a process holds beside its pools.
#include "runtime/memory.h"

#include <cstdint>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace l3c::runtime {
namespace {

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
