// Text of plans: the same bytes there and back, and errors that point at the line.
#include "layers/l0/plan_text.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "layers/support/diagnostics.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0 {
namespace {

using testing::LinearText;
using testing::Parse;
using testing::Replace;

TEST(PlanText, RoundTripsToTheSameBytes) {
  const std::string text = LinearText();
  EXPECT_EQ(PrintPlan(Parse(text)), text);
}

TEST(PlanText, PrintsCanonically) {
  std::string text = LinearText();
  text = Replace(text, "init {", "// how it begins\ninit {   # at random\n");
  text = Replace(text, "1MB", "1000kB");
  text = Replace(text, "cursor[step]", "cursor[8]");
  text = Replace(text, "seed 3,", "seed    0x3 ,");
  EXPECT_EQ(PrintPlan(Parse(text)), LinearText());
}

// A kernel from a file takes the place of the one it stands before, and errors point at the
// annotation.
TEST(PlanText, TakesAKernelFromAFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("l3c-kernel-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string text = LinearText();
  const size_t begin = text.find("kernel loss(");
  ASSERT_NE(begin, std::string::npos);
  const std::string kernel = text.substr(begin, text.find("\n}\n", begin) + 3 - begin);
  const auto parse = [&](const std::string& annotation, const std::string& file,
                         std::string* errors) {
    std::ofstream(folder / "fast.uop") << file;
    std::string annotated = text;
    annotated.insert(begin, annotation + "\n");
    const support::SourceFile source((folder / "plan.l0").string(), annotated);
    support::Diagnostics diagnostics(&source);
    auto plan = ParsePlan(source, diagnostics);
    *errors = diagnostics.Render(false);
    return plan;
  };
  const std::string good = "#[l0::kernel(\"fast.uop\")]";
  std::string errors;
  // The same sum, four squares at a time; of another name.
  const std::string fast = Replace(kernel, "kernel loss(", "kernel mine(");
  auto plan = parse(good, Replace(fast, "axis i : reduce 8", "axis i : reduce 8 tile 4"), &errors);
  ASSERT_TRUE(plan) << errors;
  const std::string printed = PrintPlan(*plan);
  EXPECT_NE(printed.find("kernel loss("), std::string::npos);
  EXPECT_NE(printed, text);
  EXPECT_NE(printed.find("reduce 8 tile 4"), std::string::npos);
  EXPECT_EQ(PrintPlan(Parse(printed)), printed);  // complete by itself

  const auto refused = [&](const std::string& annotation, const std::string& file,
                           const std::string& words) {
    EXPECT_FALSE(parse(annotation, file, &errors));
    EXPECT_NE(errors.find(words), std::string::npos) << errors;
    EXPECT_NE(errors.find("#[l0::"), std::string::npos) << errors;  // the line of the annotation
  };
  refused(good, Replace(kernel, "l: out f32 [1]", "l: out f32 [2]"),
          "'l' of the kernel of 'fast.uop' is out f32 [2]; 'l' is declared out f32 [1]");
  refused(good, Replace(kernel, "store n[0]", "store n[1]"), "fast.uop:");
  refused(good, "sequence x on y {}", "fast.uop:1:1");
  refused(good, kernel + kernel, "one kernel");
  refused(good, Replace(kernel, "%4 = reduce_add %3", "%4 = reduce_all %3"), "fast.uop:");
  refused("#[l0::kernel(\"none.uop\")]", kernel, "none.uop");
  refused("#[l0::kernel(\"fast.ptx\")]", kernel, "is no file of a kernel");
  refused("#[l0::kernel(fast)]", kernel, "in quotes");
  refused("#[l0::speed(\"fast.uop\")]", kernel, "no directive of l0");
  std::filesystem::remove_all(folder);
}

// What the linear plan has no example of.
TEST(PlanText, RoundTripsTheRareForms) {
  Plan plan = Parse(LinearText());
  plan.buffers[0].dtype = DType::kI64;
  plan.buffers[4].last_use = kWholeRun;
  plan.buffers[7].shape = {};
  plan.init[0] = {0, InitKind::kUniform, -1e-300, 1.0 / 3, UINT64_MAX, UINT64_MAX - 1, {}};
  plan.init[1] = {1, InitKind::kConstant, -0.0, 0, 0, 0, {}};
  plan.sources[0].path = "a \"quoted\" \\ path";
  plan.sources[0].fields[1].dtype = DType::kI64;
  plan.sources[0].fields[1].classes = 10;
  plan.samplers[0].samples = 0;
  plan.samplers[0].window = 4;
  plan.samplers[0].stride = 2;
  plan.samplers[0].shards = 3;
  plan.samplers[1].drop_last = true;
  plan.samplers[1].kind = SampleKind::kReplay;
  plan.samplers[1].buffer = 64;
  plan.samplers[1].recent = true;
  plan.streams.push_back({"host", StreamKind::kHost, "cpu_0", {}});
  Sequence extra;
  extra.name = "extra";
  Command copy;
  copy.kind = CommandKind::kCopy;
  copy.args = {0, 2};
  Command load;
  load.kind = CommandKind::kLoad;
  load.fields = {{"y", 9}};
  extra.commands = {copy, load};
  plan.sequences.push_back(extra);
  ControlUnit unit;
  unit.name = "extra_unit";
  unit.registers = 3;
  Region memory;
  memory.name = "memory";
  memory.access = RegionAccess::kReadWrite;
  memory.size = 64;
  memory.values = {1, -2, INT64_MAX};
  unit.regions = {memory};
  ControlInstruction hash{.op = ControlOp::kHash, .result = 0, .a = Operand::Imm(-7)};
  ControlInstruction load4{.op = ControlOp::kLoad, .result = 1, .width = 4, .a = Operand::Reg(0)};
  ControlInstruction store1{
      .op = ControlOp::kStore, .width = 1, .a = Operand::Imm(3), .b = Operand::Reg(1)};
  ControlInstruction shift{.op = ControlOp::kArith,
                           .result = 2,
                           .arith = ArithOp::kShr,
                           .a = Operand::Reg(1),
                           .b = Operand::Imm(3)};
  unit.blocks = {{"only", {hash, load4, store1, shift, {.op = ControlOp::kTerminate}}, {}}};
  plan.control.push_back(unit);

  const std::string text = PrintPlan(plan);
  const Plan again = Parse(text);
  EXPECT_EQ(PrintPlan(again), text);
  EXPECT_EQ(again.init[0].a, -1e-300);
  EXPECT_EQ(again.init[0].seed, UINT64_MAX);
  EXPECT_TRUE(std::signbit(again.init[1].a));
  EXPECT_EQ(again.sources[0].path, plan.sources[0].path);
  EXPECT_EQ(again.sequences.back().commands[0].args, copy.args);
  EXPECT_EQ(again.control.back().registers, 3u);
}

struct BadText {
  std::string what, from, to, expected;
};

void PrintTo(const BadText& bad, std::ostream* out) { *out << bad.what; }

class PlanTextErrors : public ::testing::TestWithParam<BadText> {};

TEST_P(PlanTextErrors, PointAtTheMistake) {
  const std::string text = Replace(LinearText(), GetParam().from, GetParam().to);
  ASSERT_TRUE(text != LinearText());
  const support::SourceFile source("bad.l0", text);
  support::Diagnostics diagnostics(&source);
  EXPECT_FALSE(ParsePlan(source, diagnostics).has_value());
  const std::string rendered = diagnostics.Render(false);
  EXPECT_NE(rendered.find(GetParam().expected), std::string::npos) << rendered;
  EXPECT_NE(rendered.find("bad.l0:"), std::string::npos) << rendered;
}

INSTANTIATE_TEST_SUITE_P(
    All, PlanTextErrors,
    ::testing::Values(
        BadText{"layer", "# l3c l0 v1", "# l3c l1 v1", "l1"},
        BadText{"declaration", "tokens {", "tokns {", "did you mean 'tokens'?"},
        BadText{"pool", "in scratch at 0 ", "in scrach at 0 ", "did you mean 'scratch'?"},
        BadText{"buffer", "launch error(p, y_0", "launch error(p, y0", "did you mean 'y_0'?"},
        BadText{"kernel", "launch predict(", "launch predikt(", "did you mean 'predict'?"},
        BadText{"token", "wait free_0", "wait fre_0", "did you mean 'free_0'?"},
        BadText{"stream", "train_0 on compute_0", "train_0 on compute",
                "did you mean 'compute_0'?"},
        BadText{"sampler", "load train {", "load trian {", "unknown sampler 'trian'"},
        BadText{"source", ": points.train", ": point.train", "did you mean 'points'?"},
        BadText{"sequence", "@load_train_0", "@load_trian_0", "did you mean 'load_train_0'?"},
        BadText{"region", "load.8 limits[steps]", "load.8 limit[steps]", "did you mean 'limits'?"},
        BadText{"word", "limits[steps]", "limits[step]", "did you mean 'steps'?"},
        BadText{"block", "? stop : step_1", "? stop : step_9", "unknown block 'step_9'"},
        BadText{"arith", "arith.shl", "arith.sl", "did you mean 'shl'?"},
        BadText{"command", "publish test", "publsh test", "did you mean 'publish'?"},
        BadText{"dtype", "w   : f32 [4]", "w   : f31 [4]", "did you mean 'f32'?"},
        BadText{"twice", "b   : f32 [1]", "w   : f32 [1]", "buffer 'w' is declared twice"},
        BadText{"arity", "launch predict(x_0, w, b -> p)", "launch predict(x_0, w -> p)",
                "reads 3 and writes 1 buffers, not 2 and 1"},
        BadText{"arrow", "launch predict(x_0, w, b -> p)", "launch predict(x_0, w, b, p)",
                "expected '->'"},
        BadText{"seed", "seed 3,", "seed 99999999999999999999,", "below 2^64"},
        BadText{"rank", "m_0 : f32 [8] ", "m_0 : f32 [8,1,1,1,1,1,1,1,1] ", "at most 8 axes"},
        BadText{"access", "region limits : ro", "region limits : r", "expected 'ro' or 'rw'"},
        BadText{"unclosed", "    block finish {\n        terminate\n    }\n}\n",
                "    block finish {", "expected"}),
    [](const auto& param_info) { return param_info.param.what; });

TEST(PlanText, SurvivesAnyTruncation) {
  const std::string text = LinearText();
  for (size_t length = 0; length < text.size(); length += 97) {
    const support::SourceFile source("cut.l0", text.substr(0, length));
    support::Diagnostics diagnostics(&source);
    const auto plan = ParsePlan(source, diagnostics);
    EXPECT_EQ(plan.has_value(), !diagnostics.has_errors()) << length;
  }
}

TEST(PlanText, SurvivesGarbage) {
  std::string nested = "plan p\n";
  for (int i = 0; i < 10000; ++i) nested += "control c { block b {";
  for (const std::string& text : {nested, std::string(10 << 20, 'x'), std::string("plan\0p", 6),
                                  std::string("plan p pools { pools { pools {")}) {
    const support::SourceFile source("garbage.l0", text);
    support::Diagnostics diagnostics(&source);
    EXPECT_FALSE(ParsePlan(source, diagnostics).has_value());
    EXPECT_TRUE(diagnostics.has_errors());
  }
}

}  // namespace
}  // namespace l3c::l0
