#include "layers/l0/kernel_verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "layers/l0/kernel_text.h"

namespace l3c {
namespace {

using l0::UOp;

std::string Verify(const l0::Kernel& kernel) {
  support::Diagnostics diagnostics;
  const bool ok = l0::VerifyKernel(kernel, diagnostics);
  EXPECT_EQ(ok, !diagnostics.has_errors());
  return diagnostics.Render(false);
}

l0::Kernel Parse(const std::string& text) {
  const support::SourceFile source("test.l0", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  auto kernel = l0::ParseKernel(parser);
  EXPECT_TRUE(kernel.has_value()) << diagnostics.Render(false);
  return kernel.value_or(l0::Kernel{});
}

std::string VerifyText(const std::string& text) { return Verify(Parse(text)); }

constexpr const char* kLinear = R"(
kernel linear(x: in f32 [128, 784], w: in f32 [784, 256], y: out f32 [128, 256]) {
    axis i : grid 128 block 12 tile 6
    axis j : loop 256 tile 64 vector 16
    axis k : reduce 784
    %0 = load x[784*i + k]
    %1 = load w[256*k + j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    store y[256*i + j], %3
})";

// Changes one thing in a sound kernel; the message must hold `expected` and the kind.
void ExpectRejected(const std::function<void(l0::Kernel&)>& change, const std::string& kind,
                    const std::string& expected) {
  l0::Kernel kernel = Parse(kLinear);
  change(kernel);
  const std::string message = Verify(kernel);
  EXPECT_NE(message.find("error[" + kind + "]"), std::string::npos) << message;
  EXPECT_NE(message.find(expected), std::string::npos) << message;
}

TEST(KernelVerify, AcceptsASoundKernel) { EXPECT_EQ(VerifyText(kLinear), ""); }

TEST(KernelVerify, RejectsEachCorruption) {
  using K = l0::Kernel;
  ExpectRejected([](K& k) { k.uops[2].src[1] = 7; }, "safety", "comes after its use");
  ExpectRejected([](K& k) { k.uops[2].src.pop_back(); }, "safety", "takes 2 operands, not 1");
  ExpectRejected([](K& k) { k.uops[2].src[0] = 2; }, "safety", "comes after its use");
  ExpectRejected([](K& k) { k.uops[0].param = 9; }, "safety", "no such parameter");
  ExpectRejected([](K& k) { k.uops[0].index.terms[0].first = 30; }, "safety", "malformed index");
  ExpectRejected([](K& k) { std::swap(k.uops[0].index.terms[0], k.uops[0].index.terms[1]); },
                 "safety", "malformed index");
  ExpectRejected([](K& k) { k.uops[0].index.constant = 1; }, "safety",
                 "load x: index 100352 is outside its 100352 elements");
  ExpectRejected([](K& k) { k.uops[0].index.constant = -1; }, "safety", "index -1 is outside");
  ExpectRejected([](K& k) { k.uops[4].index.constant = 1; }, "safety", "store y: index 32768");
  ExpectRejected([](K& k) { k.uops[0].index.terms[0].second = int64_t{1} << 58; }, "safety",
                 "does not fit");
  ExpectRejected([](K& k) { k.uops[0].dtype = l0::DType::kF64; }, "safety", "its dtype is f64");
  ExpectRejected(
      [](K& k) {
        k.params[1].dtype = l0::DType::kF64;
        k.uops[1].dtype = l0::DType::kF64;
      },
      "safety", "operands are f32 and f64");
  ExpectRejected([](K& k) { k.uops[2].op = UOp::kMulAcc; }, "safety", "belongs to linear code");
  ExpectRejected([](K& k) { k.uops[2].op = UOp::kWmma; }, "safety", "wmma is not supported");
  ExpectRejected([](K& k) { k.uops[3].axes.clear(); }, "safety", "binds no axis");
  ExpectRejected([](K& k) { k.uops[3].axes = {1}; }, "consistency", "not a reduce axis");
  ExpectRejected([](K& k) { k.uops[4].src[0] = 2; }, "safety",
                 "depends on reduce axis 'k' outside any reduction");
  ExpectRejected([](K& k) { k.axes[1].vector = 48; }, "resource-bound", "power of two of lanes");
  ExpectRejected([](K& k) { k.axes[1].tile = 8; }, "consistency", "do not divide its tile");
  ExpectRejected([](K& k) { k.axes[0].tile = 4096; }, "resource-bound", "tile out of range");
  ExpectRejected([](K& k) { k.axes[0].tile = k.axes[1].tile = 256; }, "resource-bound",
                 "registers a tile");
  ExpectRejected([](K& k) { k.axes[0].block = 0; }, "resource-bound", "block out of range");
  ExpectRejected([](K& k) { k.axes[1].block = 2; }, "consistency", "not a grid axis");
  ExpectRejected([](K& k) { k.axes[0].extent = -1; }, "resource-bound", "extent out of range");
  ExpectRejected([](K& k) { std::swap(k.axes[0], k.axes[1]); }, "consistency",
                 "stands after a loop or reduce axis");
  ExpectRejected([](K& k) { k.axes[1].name = "i"; }, "consistency", "declared twice");
  ExpectRejected([](K& k) { k.params[1].name = "x"; }, "consistency", "declared twice");
  ExpectRejected([](K& k) { k.axes[0].tile = k.axes[0].vector = 4; }, "consistency",
                 "two axes with lanes");
  ExpectRejected([](K& k) { k.params[2].access = l0::Access::kIn; }, "safety", "which is in");
  ExpectRejected([](K& k) { k.params[0].access = l0::Access::kOut; }, "safety", "which is out");
  ExpectRejected([](K& k) { k.params[0].access = l0::Access::kInOut; }, "consistency",
                 "never stored to");
  ExpectRejected([](K& k) { k.uops.pop_back(); }, "consistency", "stores nothing");
  ExpectRejected([](K& k) { k.uops[4].accumulate = true; }, "safety", "no contents yet");
  ExpectRejected([](K& k) { k.uops[4].index.terms = {{1, 1}}; }, "safety",
                 "blocks of axis 'i' write the same elements");
  ExpectRejected([](K& k) { k.uops[4].index.terms[0].second = 255; }, "safety",
                 "blocks of axis 'i' write the same elements");
  ExpectRejected([](K& k) { k.params[2].shape = {-1}; }, "consistency", "negative extent");
  ExpectRejected([](K& k) { k.params[2].shape = {1 << 30, 1 << 30}; }, "resource-bound",
                 "too large");
}

// Sums along lanes that have lanes of another axis: nothing but what is summed has both.
TEST(KernelVerify, PackedSumsAreMadeOneByOne) {
  const auto kernel = [](const std::string& k, const std::string& factor) {
    return "kernel dot(x: in f32 [128, 784], w: in f32 [256, 784], s: in f32 [256], "
           "y: out f32 [128, 256]) {\n axis i : grid 128 block 12 tile 6\n"
           " axis j : loop 256 tile 8 vector 8\n axis k : reduce 784 " +
           k + "\n %0 = load x[784*i + k]\n %1 = load w[784*j + k]\n %2 = load s[j]\n" + factor +
           " %4 = reduce_add %3 over k\n %5 = mul %4, %2\n store y[256*i + j], %5\n}";
  };
  const std::string product = " %3 = mul %0, %1\n";
  EXPECT_EQ(VerifyText(kernel("tile 16 vector 16", product)), "");
  const auto reject = [&](const std::string& text, const std::string& expected) {
    const std::string message = VerifyText(text);
    EXPECT_NE(message.find("error[consistency]"), std::string::npos) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  reject(kernel("tile 4 vector 4", product), "sums those of 'k', of which there are fewer");
  reject(kernel("tile 16 vector 16", " %3 = mul %0, %2\n"), "depends on the former alone");
}

TEST(KernelVerify, StagedValuesAreReadAgainAndFit) {
  using K = l0::Kernel;
  const auto columns_first = [](K& k) {  // w for a tile of columns, for all rows
    std::swap(k.axes[0], k.axes[1]);
    k.axes[0].kind = l0::AxisKind::kGrid;
    k.axes[0].block = 64;
    k.uops[0].index.terms = {{1, 784}, {2, 1}};
    k.uops[1].index.terms = {{0, 1}, {2, 256}};
    k.uops[4].index.terms = {{0, 1}, {1, 256}};
    k.uops[1].staged = true;
  };
  K sound = Parse(kLinear);
  columns_first(sound);
  EXPECT_EQ(Verify(sound), "");
  const auto reject = [&](const std::function<void(K&)>& change, const std::string& kind,
                          const std::string& expected) {
    ExpectRejected([&](K& k) { columns_first(k), change(k); }, kind, expected);
  };
  reject([](K& k) { k.uops[3].staged = true; }, "consistency", "reduce may not be staged");
  reject([](K& k) { k.uops[4].staged = true; }, "consistency", "a store has no value to keep");
  reject([](K& k) { k.uops[2].staged = true; }, "consistency", "has a tile as well");
  reject([](K& k) { k.axes[0].vector = 1, k.axes[2].tile = k.axes[2].vector = 16; }, "consistency",
         "lanes along the sum");
  reject(
      [](K& k) {
        k.axes[2].extent = 4096;
        k.params[0].shape = {128, 4096};
        k.params[1].shape = {4096, 256};
        k.uops[0].index.terms[0].second = 4096;
      },
      "consistency", "takes more than 786432 bytes");
  // All rows of x for the block as well.
  reject(
      [](K& k) {
        k.uops[0].staged = true;
        k.axes[0].tile = k.axes[0].block = k.axes[1].block = 128;
      },
      "resource-bound", "more than 786432 bytes together");
}

TEST(KernelVerify, SumsInTilesLieAsTilesAreRead) {
  using K = l0::Kernel;
  const std::string text = R"(
kernel products(x: in u32 [128, 40], w: in u32 [40, 256], y: out f32 [128, 256]) {
    axis i : grid 128 block 32 tile 32
    axis j : loop 256 tile 32 vector 16
    axis k : reduce 40 tile 16
    %0 = load x[40*i + k]
    %1 = load w[256*k + j]
    %2 = bf16_dot %0, %1
    %3 = reduce_add %2 over k in tiles
    store y[256*i + j], %3
})";
  EXPECT_EQ(VerifyText(text), "");
  EXPECT_NE(l0::PrintKernel(Parse(text)).find("over k in tiles\n"), std::string::npos);
  const auto reject = [&](const std::function<void(K&)>& change, const std::string& expected) {
    K kernel = Parse(text);
    change(kernel);
    const std::string message = Verify(kernel);
    EXPECT_NE(message.find("may not be summed in tiles: " + expected), std::string::npos)
        << expected << "\n"
        << message;
  };
  reject([](K& k) { k.uops[3].fold = l0::Fold::kMax; }, "it is no sum");
  reject([](K& k) { k.axes[1].vector = 8; }, "one factor has 16 lanes");
  reject([](K& k) { k.axes[2].tile = 8; }, "'k' takes a tile of 16");
  reject([](K& k) { k.uops[0].index.terms = {{0, 1}, {2, 128}}; }, "neighbours of the factors");
  reject([](K& k) { k.uops[1].index.terms = {{1, 1}}; }, "neighbours of the factors");
  reject([](K& k) { k.axes[0].tile = k.axes[0].block = 64; }, "that takes more than 6 tiles");
  reject([](K& k) { k.uops[0].guards = {{{0, {{2, 1}}}, 0, 39}}; }, "a factor is not loaded");
}

TEST(KernelVerify, GuardsBoundTheIndex) {
  // A 3×3 window on a padded image: row y+d-1 and column x+e-1 stay inside by their guards.
  const auto conv = [](const std::string& guard) {
    return "kernel conv(a: in f32 [28, 28], y: out f32 [28, 28]) {\n axis y : grid 28 block 4\n"
           " axis x : loop 28 tile 16 vector 16\n axis d : reduce 3\n axis e : reduce 3\n"
           " %0 = load a[28*y + x + 28*d + e - 29] if " +
           guard + "\n %1 = reduce_add %0 over d, e\n store y[28*y + x], %1\n}";
  };
  EXPECT_EQ(VerifyText(conv("0 <= y + d - 1 < 28, 0 <= x + e - 1 < 28")), "");
  EXPECT_NE(VerifyText(conv("0 <= y + d - 1 < 28")).find("outside"), std::string::npos);
  EXPECT_NE(VerifyText(conv("0 <= y + d - 1 < 29, 0 <= x + e - 1 < 28")).find("outside"),
            std::string::npos);
}

TEST(KernelVerify, GathersAreBoundByTheirRows) {
  const auto gather = [](const std::string& rows) {
    return "kernel gather(t: in f32 [10, 4], r: in i64 [6], y: out f32 [6, 4]) {\n"
           " axis i : grid 6 block 1\n axis c : loop 4\n %0 = load r[i]\n %1 = load t[4*%0 of " +
           rows + " + c]\n store y[4*i + c], %1\n}";
  };
  EXPECT_EQ(VerifyText(gather("10")), "");
  EXPECT_NE(VerifyText(gather("11")).find("outside its 40 elements"), std::string::npos);
}

TEST(KernelVerify, UpdatesInPlaceReadWhereTheyStore) {
  const auto update = [](const std::string& index, const std::string& more) {
    return "kernel update(p: inout f32 [64]) {\n axis i : grid 32 block 8\n %0 = load p[" + index +
           "]\n %1 = neg %0\n store p[i], %1\n" + more + "}";
  };
  EXPECT_EQ(VerifyText(update("i", "")), "");
  EXPECT_NE(VerifyText(update("i + 1", "")).find("another place"), std::string::npos);
  EXPECT_NE(VerifyText(update("i", " %2 = load p[i]\n")).find("before it is read"),
            std::string::npos);
}

TEST(KernelVerify, ScatterAddsKeepTheirOrder) {
  const auto scatter = [](const std::string& schedule) {
    return "kernel scatter(r: in i32 [100], d: in f32 [100, 64], t: out f32 [10, 64]) {\n"
           " axis c : grid 64 block 16 tile 16 vector 16\n axis v : loop 10\n axis i : loop 100" +
           schedule +
           "\n %0 = const f32 0\n store t[c + 64*v], %0\n %1 = load r[i]\n"
           " %2 = load d[c + 64*i]\n store t[64*%1 of 10 + c] += %2\n}";
  };
  EXPECT_EQ(VerifyText(scatter("")), "");
  EXPECT_NE(VerifyText(scatter(" tile 2")).find("adds up along axis 'i' in order"),
            std::string::npos);
}

TEST(KernelVerify, TwoStoresOfOneBlockMayShareAParameter) {
  const std::string text =
      "kernel halves(x: in f32 [8, 4], y: out f32 [8, 8]) {\n axis i : grid 8 block 2\n"
      " axis j : loop 4\n %0 = load x[4*i + j]\n store y[8*i + j], %0\n store y[8*i + j + ";
  EXPECT_EQ(VerifyText(text + "4], %0\n}"), "");
  // The second store of a row reaches into the next row, and so into the next block.
  EXPECT_NE(VerifyText("kernel halves(x: in f32 [8, 4], y: out f32 [70]) {\n"
                       " axis i : grid 8 block 2\n axis j : loop 4\n %0 = load x[4*i + j]\n"
                       " store y[8*i + j], %0\n store y[8*i + j + 6], %0\n}")
                .find("write the same elements"),
            std::string::npos);
}

TEST(KernelVerify, EmptyKernelsAreSound) {
  EXPECT_EQ(VerifyText("kernel none(x: in f32 [0], y: out f32 [0]) {\n axis i : grid 0 block 1\n"
                       " %0 = load x[i]\n store y[i], %0\n}"),
            "");
}

}  // namespace
}  // namespace l3c
