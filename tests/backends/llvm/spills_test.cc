// Every micro-kernel that the search can choose for a product keeps its sums in registers: the
// emitted code of each candidate schedule is read, in f32 and in bfloat16, of whole tiles and of
// what remains of ragged extents, with and without staging, for 32 registers of 16 lanes and for
// 16 of 8.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/llvm/kernel_compiler.h"
#include "layers/l0/kernel_schedule.h"
#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

constexpr const char* kWide = "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16";
constexpr const char* kNarrow = "+sse2,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma";

std::string S(int64_t n) { return std::to_string(n); }

// y = a·b, with b's neighbours along the columns, a's along the sum or, turned, along the rows.
l0::Kernel Product(int64_t m, int64_t k, int64_t n, bool turned, bool pairs) {
  const std::string type = pairs ? "u32" : "f32";
  return testing::ParseOne(
      "kernel product(a: in " + type + " [" + S(m * k) + "], b: in " + type + " [" + S(k * n) +
      "], y: out f32 [" + S(m * n) + "]) {\n axis i : loop " + S(m) + "\n axis j : loop " + S(n) +
      "\n axis k : reduce " + S(k) + "\n %0 = load a[" +
      (turned ? "i + " + S(m) + "*k" : S(k) + "*i + k") + "]\n %1 = load b[" + S(n) +
      "*k + j]\n %2 = " + (pairs ? "bf16_dot" : "mul") +
      " %0, %1\n %3 = reduce_add %2 over k\n store y[" + S(n) + "*i + j], %3\n}");
}

// Vector registers that go to the stack or come back from it in an innermost loop. Those have a
// constant place there; what is staged has an index.
int SpillsInLoops(const std::string& assembly) {
  std::vector<std::string> lines;
  std::map<std::string, size_t> labels;
  size_t loop_begin = 0;  // no loop begins before: the one that ended last is not within another
  int spills = 0;
  for (size_t at = 0; at < assembly.size();) {
    const size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(".L")) labels[line.substr(0, line.find(':'))] = lines.size();
    lines.push_back(line);
    const size_t target = line.find(".L");
    if (!line.starts_with("\tj") || target == std::string::npos) continue;
    const auto label = labels.find(line.substr(target));
    if (label == labels.end() || label->second < loop_begin) continue;
    loop_begin = lines.size();
    for (size_t i = label->second; i < lines.size(); ++i) {
      const bool vector =
          lines[i].find("%ymm") != std::string::npos || lines[i].find("%zmm") != std::string::npos;
      const bool stack = lines[i].find("(%rsp)") != std::string::npos;
      if (vector && stack) ++spills;
    }
  }
  return spills;
}

void ExpectNoSpills(const l0::Kernel& plain, const l0::ScheduleTarget& target,
                    llvm_backend::KernelCompiler& compiler, std::set<std::string>& shapes) {
  for (const l0::Schedule& schedule : l0::CandidateSchedules(plain, target)) {
    if (!schedule.name.starts_with("tile")) continue;
    const l0::Kernel kernel = l0::ApplySchedule(plain, schedule);
    const auto modules = compiler.Compile({&kernel, 1});
    ASSERT_TRUE(modules.ok()) << modules.status();
    EXPECT_EQ(SpillsInLoops((*modules)[0].assembly), 0) << schedule.name << "\n"
                                                        << l0::PrintKernel(kernel);
    shapes.insert(schedule.name);
  }
}

void ExpectNoSpills(const char* features, const l0::ScheduleTarget& target, bool pairs,
                    size_t least) {
  const auto compiler = llvm_backend::KernelCompiler::Create({.text = true, .features = features});
  ASSERT_TRUE(compiler.ok());
  std::set<std::string> shapes;
  // Whole tiles of all shapes, a large b that is staged, ragged extents, few columns, few rows.
  ExpectNoSpills(Product(48, 256, 192, false, pairs), target, **compiler, shapes);
  ExpectNoSpills(Product(96, 512, 1024, true, pairs), target, **compiler, shapes);
  ExpectNoSpills(Product(127, 251, 509, false, pairs), target, **compiler, shapes);
  ExpectNoSpills(Product(128, 256, 10, true, pairs), target, **compiler, shapes);
  ExpectNoSpills(Product(3, 64, 160, false, pairs), target, **compiler, shapes);
  EXPECT_GE(shapes.size(), least);
}

// More sums than registers: the reader of the code sees what it looks for.
TEST(Spills, AreSeen) {
  const auto compiler = llvm_backend::KernelCompiler::Create({.text = true, .features = kWide});
  ASSERT_TRUE(compiler.ok());
  l0::Kernel kernel = Product(48, 256, 256, false, false);
  kernel.axes[0].tile = 8;
  kernel.axes[1].tile = 80;
  kernel.axes[1].vector = 16;
  const auto modules = (*compiler)->Compile({&kernel, 1});
  ASSERT_TRUE(modules.ok());
  EXPECT_GT(SpillsInLoops((*modules)[0].assembly), 0);
}

TEST(Spills, NoProductOfF32) {
  ExpectNoSpills(kWide, {.vector_registers = 32, .lanes = 16}, false, 12);
  ExpectNoSpills(kNarrow, {.vector_registers = 16, .lanes = 8}, false, 6);
}

TEST(Spills, NoProductOfBf16) {
  ExpectNoSpills(kWide, {.vector_registers = 32, .lanes = 16}, true, 12);
}

}  // namespace
}  // namespace l3c
