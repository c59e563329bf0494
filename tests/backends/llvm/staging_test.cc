// Staged values under hand-written schedules, against the interpreter: each place where a copy may
// be made, ragged tiles and blocks, several reduce axes, guards, and values that are computed.
#include <gtest/gtest.h>

#include <string>

#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

using testing::ExpectAgreement;
using testing::ParseOne;

// y[i, j] = Σ_k x[i, k] · w[k, j] for 13 × 21 × 37.
std::string Product(const std::string& i, const std::string& j, const std::string& a_staged,
                    const std::string& b_staged, bool i_first = false) {
  const std::string rows = " axis i : " + i + "\n";
  const std::string columns = " axis j : " + j + "\n";
  return "kernel product(x: in f32 [13, 21], w: in f32 [21, 37], y: out f32 [13, 37]) {\n" +
         (i_first ? rows + columns : columns + rows) +
         " axis k : reduce 21\n %0 = load x[21*i + k]" + a_staged + "\n %1 = load w[37*k + j]" +
         b_staged + "\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[37*i + j], %3\n}";
}

TEST(StagedCode, TilesOfColumns) {
  for (const char* j : {"grid 37 block 16 tile 16 vector 16", "grid 37 block 32 tile 16 vector 8",
                        "loop 37 tile 32 vector 16", "loop 37",
                        "grid 37 block 37 tile 64 vector 16", "grid 37 block 5 tile 2"}) {
    for (const char* i : {"loop 13 tile 6", "loop 13"}) {
      ExpectAgreement(ParseOne(Product(i, j, "", " staged")));
    }
  }
  ExpectAgreement(ParseOne(
      Product("grid 13 block 6 tile 3", "grid 37 block 16 tile 16 vector 16", "", " staged")));
}

TEST(StagedCode, BlocksOfRows) {
  for (const char* i : {"grid 13 block 6 tile 3", "grid 13 block 5 tile 2", "loop 13 tile 4",
                        "grid 13 block 8 tile 6", "grid 13 block 2 tile 6", "loop 13"}) {
    for (const char* b : {"", " staged"}) {
      ExpectAgreement(ParseOne(Product(i, "grid 37 block 37 tile 16 vector 16", " staged", b)));
    }
  }
  // Rows outermost: those of x for a tile, all columns of w for a block.
  ExpectAgreement(ParseOne(
      Product("grid 13 block 6 tile 3", "loop 37 tile 32 vector 16", " staged", " staged", true)));
}

// Rows that a grid axis counts in blocks are copied at the beginning of each, for all columns:
// whole tiles and ragged ones, of x as it lies and transposed, alone and beside panels of w.
TEST(StagedCode, BlocksOfRowsForAllColumns) {
  for (const char* x : {"60*b + 15*i + k", "b + 5*i + 20*k"}) {
    for (const char* tile : {"1", "3", "4", "6"}) {
      for (const char* w : {"", " staged"}) {
        ExpectAgreement(ParseOne(
            "kernel product(x: in f32 [300], w: in f32 [15, 37], y: out f32 [5, 4, 37]) {\n"
            " axis b : grid 5 block " +
            std::string(*w == 0 ? "1" : "2") +
            "\n axis j : loop 37 tile 16 vector 16\n axis i : loop 4 tile " + std::string(tile) +
            "\n axis k : reduce 15\n %0 = load x[" + x + "] staged\n %1 = load w[37*k + j]" + w +
            "\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[148*b + 37*i + j], %3\n}"));
      }
    }
  }
}

// wᵀ is read along its rows and turned on the way.
TEST(StagedCode, TransposedColumns) {
  for (const char* k : {"21", "35", "16"}) {
    for (const char* j : {"grid 37 block 32 tile 32 vector 16", "loop 37 tile 8 vector 8"}) {
      ExpectAgreement(ParseOne(
          "kernel product(x: in f32 [13, " + std::string(k) + "], w: in f32 [37, " + k +
          "], y: out f32 [13, 37]) {\n axis j : " + j +
          "\n axis i : loop 13 tile 6\n axis k : reduce " + k + "\n %0 = load x[" + k +
          "*i + k]\n %1 = load w[k + " + k +
          "*j] staged\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[37*i + j], %3\n}"));
    }
  }
}

// A convolution of one channel, padded by one, with its rows staged.
TEST(StagedCode, GuardsAndSeveralReduceAxes) {
  for (const char* j :
       {"loop 20 tile 16 vector 16", "grid 20 block 8 tile 8 vector 8", "loop 20"}) {
    ExpectAgreement(ParseOne(
        "kernel convolve(x: in f32 [20], w: in f32 [5, 4, 3], y: out f32 [20, 5]) {\n axis j : " +
        std::string(j) +
        "\n axis o : loop 5 tile 2\n axis c : reduce 4 tile 3\n axis k : reduce 3\n"
        " %0 = load x[j + k - 1] if 0 <= j + k - 1 < 20\n %1 = range c\n %2 = cast %1 to f32\n"
        " %3 = mul %0, %2 staged\n %4 = load w[12*o + 3*c + k]\n %5 = mul %3, %4\n"
        " %6 = reduce_add %5 over c, k\n store y[5*j + o], %6\n}"));
  }
}

// Factors are rounded to bfloat16 once a tile, not once a product.
TEST(StagedCode, ComputedValues) {
  for (const char* staged : {"", " staged"}) {
    ExpectAgreement(ParseOne(
        "kernel pairs(x: in f32 [12, 40], w: in f32 [40, 24], y: out f32 [12, 24]) {\n"
        " axis j : grid 24 block 16 tile 16 vector 16\n axis i : loop 12 tile 5\n"
        " axis k : reduce 20\n %0 = load x[40*i + k]\n %1 = load x[40*i + k + 20]\n"
        " %2 = bf16_pair %0, %1" +
        std::string(staged) +
        "\n %3 = load w[24*k + j]\n %4 = load w[24*k + j + 480]\n %5 = bf16_pair %3, %4 staged\n"
        " %6 = bf16_dot %2, %5\n %7 = reduce_add %6 over k\n store y[24*i + j], %7\n}"));
  }
}

// Its sum need not run inside the loop that makes a copy for a tile worth while.
TEST(StagedCode, SumsOutsideOfTheInnerLoop) {
  ExpectAgreement(
      ParseOne(R"(kernel sums(x: in f32 [9, 11], z: in f32 [11, 6], y: out f32 [11, 6]) {
    axis i : grid 11 block 4 tile 2
    axis j : loop 6
    axis k : reduce 9
    %0 = load x[11*k + i] staged
    %1 = reduce_add %0 over k
    %2 = load z[6*i + j]
    %3 = mul %1, %2
    store y[6*i + j], %3
})"));
}

TEST(StagedCode, EveryTypeOfNumber) {
  for (const char* type : {"u8", "i32", "u32", "i64", "u64", "f64", "bool"}) {
    ExpectAgreement(ParseOne("kernel add(x: in " + std::string(type) + " [7, 19], y: out " + type +
                             " [3, 19]) {\n axis j : loop 19 tile 8 vector 8\n axis i : loop 3\n"
                             " axis k : reduce 7\n %0 = load x[19*k + j] staged\n"
                             " %1 = reduce_max %0 over k\n store y[19*i + j], %1\n}"));
  }
}

TEST(StagedCode, NothingToCopy) {
  ExpectAgreement(ParseOne(R"(kernel none(x: in f32 [0, 19], y: out f32 [3, 19]) {
    axis j : loop 19 tile 8 vector 8
    axis i : loop 3
    axis k : reduce 0
    %0 = load x[19*k + j] staged
    %1 = reduce_add %0 over k
    store y[19*i + j], %1
})"));
}

}  // namespace
}  // namespace l3c
