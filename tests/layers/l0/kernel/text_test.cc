#include "layers/l0/kernel_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

using testing::ParseOne;

// Every form, printed as the printer prints it.
constexpr const char* kCanonical =
    R"(kernel everything(x: in f32 [128, 784], t: in f32 [1000, 64], r: in i32 [128], y: out f32 [128, 256], z: inout f32 [1000, 64], s: out f32 []) {
    origin "h1", "a \"quoted\" name"
    axis i : grid 128 block 12 tile 6
    axis j : loop 256 tile 64 vector 16
    axis k : reduce 784 tile 4
    axis l : reduce 3
    %0 = load x[784*i + k - 1] if 0 <= i + k - 1 < 28, -3 <= -2*k + 5 < 9
    %1 = load r[i]
    %2 = load t[64*%1 of 1000 + l + 2]
    %3 = const f32 -inf
    %4 = const f32 nan
    %5 = const f32 0.1
    %6 = const i64 lowest
    %7 = const bool 1
    %8 = const f32 -0.0
    %9 = range i
    %10 = cast %9 to f32
    %11 = bitcast %10 to u32
    %12 = reciprocal %10
    %13 = cmplt %12, %5
    %14 = where %13, %3, %4
    %15 = reduce_add %0 over k
    %16 = reduce_max %2 over k, l
    %17 = add %15, %16
    store y[256*i + j], %17
    store z[-64*%1 of 1000 + 5] += %17 if 0 <= i < 100
    store s[0], %5
}
)";

l0::Kernel Parse(const std::string& text) {
  const support::SourceFile source("test.l0", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  auto kernel = l0::ParseKernel(parser);
  EXPECT_TRUE(kernel.has_value()) << diagnostics.Render(false);
  return kernel.value_or(l0::Kernel{});
}

std::string ErrorOf(const std::string& text) {
  const support::SourceFile source("test.l0", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  EXPECT_FALSE(l0::ParseKernel(parser).has_value());
  return diagnostics.Render(false);
}

TEST(KernelText, PrintsWhatItParsed) { EXPECT_EQ(l0::PrintKernel(Parse(kCanonical)), kCanonical); }

TEST(KernelText, FieldsArriveWhereTheyBelong) {
  const l0::Kernel kernel = Parse(kCanonical);
  ASSERT_EQ(kernel.axes.size(), 4u);
  EXPECT_EQ(kernel.axes[0].kind, l0::AxisKind::kGrid);
  EXPECT_EQ(kernel.axes[0].block, 12);
  EXPECT_EQ(kernel.axes[1].vector, 16);
  ASSERT_EQ(kernel.uops.size(), 21u);
  const l0::Uop& load = kernel.uops[0];
  EXPECT_EQ(load.index, (l0::Affine{-1, {{0, 784}, {2, 1}}}));
  ASSERT_EQ(load.guards.size(), 2u);
  EXPECT_EQ(load.guards[1], (l0::Guard{{5, {{2, -2}}}, -3, 9}));
  const l0::Uop& gather = kernel.uops[2];
  EXPECT_EQ(gather.dynamic_stride, 64);
  EXPECT_EQ(gather.dynamic_extent, 1000);
  EXPECT_EQ(gather.src, (std::vector<l0::UopId>{1}));
  EXPECT_EQ(kernel.uops[6].integer, std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(std::signbit(kernel.uops[8].number));
  EXPECT_EQ(kernel.uops[16].axes, (std::vector<l0::AxisId>{2, 3}));
  EXPECT_TRUE(kernel.uops[19].accumulate);
  EXPECT_EQ(kernel.uops[19].dynamic_stride, -64);
  EXPECT_EQ(kernel.uops[19].src, (std::vector<l0::UopId>{17, 1}));
}

TEST(KernelText, ConstantsKeepTheirBits) {
  for (double value : {0.1, 1.0 / 3, 3e-4, 1e300, 5e-324, 0.10000000149011612, -1234.5}) {
    l0::Kernel kernel = Parse(kCanonical);
    kernel.uops[5].number = value;
    EXPECT_EQ(Parse(l0::PrintKernel(kernel)).uops[5].number, value);
  }
}

TEST(KernelText, ErrorsPointAtTheCause) {
  const std::string head = "kernel k(x: in f32 [8], y: out f32 [8]) {\n axis i : loop 8\n";
  EXPECT_NE(ErrorOf(head + " %0 = load x[j]\n}").find("unknown axis 'j'"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " %0 = load z[i]\n}").find("unknown parameter 'z'"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " %1 = load x[i]\n}").find("this one is %0"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " store y[i], %0\n}").find("%0 is not defined"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " %0 = add %0, %0\n}").find("%0 is not defined"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " %0 = ad x\n}").find("unknown operation 'ad'"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " axis i : loop 3\n}").find("declared twice"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " %0 = load x[i + i]\n}").find("two terms"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " %0 = const f99 1\n}").find("unknown dtype 'f99'"), std::string::npos);
  EXPECT_NE(ErrorOf("kernel k(x: by f32 [8]) {\n}").find("an access"), std::string::npos);
  EXPECT_NE(ErrorOf(head).find("expected"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " axis l : grid 8\n}").find("block"), std::string::npos);
  EXPECT_NE(ErrorOf(head + " axis l : loop 8 tile 99999\n}").find("resource-bound"),
            std::string::npos);
}

TEST(KernelText, TooLargeAKernelIsRefused) {
  std::string text = "kernel k(y: out f32 [1]) {\n";
  for (int i = 0; i < 5000; ++i) text += " %" + std::to_string(i) + " = const f32 1\n";
  EXPECT_NE(ErrorOf(text + "}").find("at most 4096 operations"), std::string::npos);
}

TEST(KernelText, GarbageNeverCrashes) {
  const std::string text = kCanonical;
  for (size_t cut = 0; cut < text.size(); cut += 3) {
    for (const char* insert : {"", "%", "[", "}", "9999999999999999999", "\xff"}) {
      const support::SourceFile source("test.l0", text.substr(0, cut) + insert);
      support::Diagnostics diagnostics(&source);
      support::ParserBase parser(source, diagnostics);
      const bool parsed = l0::ParseKernel(parser).has_value();
      EXPECT_EQ(parsed, !diagnostics.has_errors()) << source.text();
    }
  }
}

}  // namespace
}  // namespace l3c
