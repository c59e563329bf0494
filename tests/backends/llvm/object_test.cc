// Objects of the kernel compiler, placed by backends/elf, run as what the just-in-time compiler
// makes; and objects that are damaged.
#include <random>

#include "backends/elf/object_linker.h"
#include "backends/llvm/kernel_compiler.h"
#include "gtest/gtest.h"
#include "tests/backends/llvm/kernel_runner.h"
#include "tests/backends/llvm/placed_code.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

// Constants, a table of lanes, and calls of the C library.
constexpr char kText[] =
    R"(kernel wave(x: in f64 [40], y: in f32 [40], z: out f64 [40], w: out f32 [40]) {
    axis i : grid 40 block 16
    %0 = load x[i]
    %1 = sin %0
    %2 = exp2 %1
    store z[i], %2
    %3 = load y[i]
    %4 = log2 %3
    %5 = const f32 0.3
    %6 = mod %4, %5
    store w[i], %6
})";

TEST(Object, LinkedByOurselvesDoesWhatTheJitDoes) {
  const l0::Kernel kernel = testing::ParseOne(kText);
  auto compiler = llvm_backend::KernelCompiler::Create({});
  ASSERT_TRUE(compiler.ok());
  const auto modules = (*compiler)->Compile({&kernel, 1});
  ASSERT_TRUE(modules.ok()) << modules.status();
  elf::ObjectLinker linker;
  for (const auto& module : *modules) {
    const absl::Status status = linker.Add(module.object);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_FALSE(linker.Add(module.object).ok()) << "defined twice";
  }
  EXPECT_FALSE(linker.Link(0, 1 << 20, {}).ok()) << "sin is outside";
  EXPECT_FALSE(linker.OffsetOf("no_such").ok());

  testing::PlacedCode placed;
  const absl::Status compiled = placed.Compile({&kernel, 1});
  ASSERT_TRUE(compiled.ok()) << compiled;
  testing::Buffers ours(kernel, 7), theirs(kernel, 7);
  placed.Find("wave")(ours.Pointers().data(), 0, l0::NumBlocks(kernel));
  auto jit = testing::NewJit({});
  ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
  jit->Find("wave")(theirs.Pointers().data(), 0, l0::NumBlocks(kernel));
  EXPECT_EQ(ours, theirs);
  ours.ExpectGuards();
}

TEST(Object, DamageIsAnError) {
  const l0::Kernel kernel = testing::ParseOne(kText);
  auto compiler = llvm_backend::KernelCompiler::Create({.threads = 1});
  ASSERT_TRUE(compiler.ok());
  const auto modules = (*compiler)->Compile({&kernel, 1});
  ASSERT_TRUE(modules.ok());
  const std::vector<char>& object = modules->front().object;
  for (size_t size = 0; size < object.size(); size += 97) {
    EXPECT_FALSE(elf::ObjectLinker().Add({object.data(), size}).ok()) << size;
  }
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<char> damaged = object;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    elf::ObjectLinker linker;
    if (!linker.Add(damaged).ok()) {
      ++refused;
    } else {
      (void)linker.Link(0, 1 << 20, {{"sin", 0}, {"exp2", 0}, {"fmodf", 0}});
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace l3c
