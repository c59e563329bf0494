// CUSTOM operations as machine code: the bits of the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/llvm/kernel_compiler.h"
#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

using testing::Buffers;
using testing::NewJit;
using testing::ParseOne;

std::string Text(int64_t n) { return std::to_string(n); }

// `reversed`: columns from the last to the first, so that lanes are no neighbours.
l0::Kernel Sparse(int64_t rows, int64_t elements, int64_t height, int64_t width,
                  const std::string& schedule, bool reversed = false) {
  const std::string column = reversed ? "  %2 = neg %1\n  %3 = const i64 " + Text(width - 1) +
                                            "\n  %4 = add %2, %3\n  %5 = csr_dot %0, %4"
                                      : "  %2 = csr_dot %0, %1";
  return ParseOne(
      "kernel sparse(offsets: in i32 [" + Text(rows + 1) + "], columns: in i32 [" + Text(elements) +
      "], values: in f32 [" + Text(elements) + "], x: in f32 [" + Text(height) + ", " +
      Text(width) + "], y: out f32 [" + Text(rows) + ", " + Text(width) + "]) {\n  axis i : grid " +
      Text(rows) + " block 3\n  axis j : loop " + Text(width) + schedule +
      "\n  %0 = range i\n  %1 = range j\n" + column + " of offsets, columns, values, x\n" +
      (reversed ? "  %6 = neg %5\n  store y[" : "  %3 = neg %2\n  store y[") + Text(width) +
      "*i + j], " + (reversed ? "%6" : "%3") + "\n}\n");
}

void ExpectSameBits(const l0::Kernel& kernel, uint32_t seed, bool sound) {
  Buffers expected(kernel, seed);
  auto* offsets = expected.Data<int32_t>(0);
  const auto elements = static_cast<int64_t>(expected.Count(1));
  const auto rows = static_cast<int64_t>(expected.Count(0)) - 1;
  if (sound) {
    for (int64_t i = 0; i <= rows; ++i) offsets[i] = static_cast<int32_t>(i * elements / rows);
    for (int64_t p = 0; p < elements; ++p) {
      expected.Data<int32_t>(1)[p] =
          static_cast<int32_t>((7 * p + p / 5) % std::max<int64_t>(kernel.params[3].shape[0], 1));
    }
  }
  Buffers actual = expected;
  l0::Run(kernel, expected.Pointers().data(), 0, l0::NumBlocks(kernel));
  const auto jit = NewJit();
  const absl::Status status = jit->Compile({&kernel, 1});
  ASSERT_TRUE(status.ok()) << status;
  jit->Find(kernel.name)(actual.Pointers().data(), 0, l0::NumBlocks(kernel));
  actual.ExpectGuards();
  EXPECT_TRUE(expected == actual) << l0::PrintKernel(kernel);
}

TEST(Custom, SparseProductsHaveTheInterpretersBits) {
  for (const bool sound : {true, false}) {  // not: numbers from -9 to 40 as offsets and columns
    for (const char* schedule :
         {"", " tile 4 vector 4", " tile 16 vector 16", " tile 32 vector 16"}) {
      for (const int64_t width : {1, 7, 16, 37}) {
        ExpectSameBits(Sparse(10, 33, 9, width, schedule), 5, sound);
        ExpectSameBits(Sparse(10, 33, 9, width, schedule, true), 6, sound);
      }
    }
    ExpectSameBits(Sparse(4, 0, 3, 8, " tile 8 vector 8"), 7, sound);
    ExpectSameBits(Sparse(4, 6, 0, 8, " tile 8 vector 8"), 8, sound);
  }
}

}  // namespace
}  // namespace l3c
