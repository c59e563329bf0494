// Cases that golden files (errors_test.cc) do not show: what is accepted, and modules that were
// built and not parsed.
#include "layers/l3/verify.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/layers/l3/check.h"

namespace l3c::l3 {
namespace {

std::string Model(const std::string& in, const std::string& out, const std::string& properties) {
  return Report("data d { x : " + in + " y : " + out + " }\n" + "model m { in: d.x out: " + out +
                " properties: [" + properties + "] }\n" +
                "loss l { t: divergence(m.out, d.y) }\ngoal: minimize(l)\n");
}

std::string Divergence(const std::string& predicted, const std::string& target) {
  return Report("data d { x : scalar(f32) y : " + target + " }\nmodel m { in: d.x out: " +
                predicted + " }\nloss l { t: divergence(m.out, d.y) }\ngoal: minimize(l)\n");
}

TEST(L3VerifyTest, OutputsThatCanBeFedBack) {
  const std::string tokens = "sequence(scalar(u8), 8)";
  EXPECT_EQ(Model(tokens, "sequence(dist(7), 8)", "causal, autoregressive"), "");
  EXPECT_EQ(Model(tokens, "dist(7)", "autoregressive, depth(2)"), "");
  EXPECT_EQ(Model("sequence(scalar(f32), 8)", "scalar(f32)", "autoregressive"), "");
  EXPECT_EQ(Model("tensor(f32, [4])", "tensor(f32, [4])", "autoregressive"), "");
  EXPECT_NE(Model("sequence(scalar(f32), 8)", "dist(7)", "autoregressive"), "");
  EXPECT_NE(Model("tensor(f32, [4])", "tensor(f32, [5])", "autoregressive"), "");
}

TEST(L3VerifyTest, Symmetries) {
  EXPECT_EQ(Model("tensor(f32, [3, 8, 8])", "dist(7)", "equivariant(d4), equivariant(translation)"),
            "");
  EXPECT_EQ(Model("tensor(f32, [8, 8, 3])", "dist(7)", "equivariant(c4)"), "");
  EXPECT_NE(Model("tensor(f32, [8, 9])", "dist(7)", "equivariant(c4)"), "");
  EXPECT_EQ(Model("table(a: scalar(f32), b: scalar(f32))", "dist(7)", "equivariant(permutation)"),
            "");
  EXPECT_NE(Model("scalar(f32)", "dist(7)", "equivariant(translation)"), "");
  EXPECT_NE(
      Model("tensor(f32, [8])", "dist(7)", "equivariant(reflection), equivariant(reflection)"), "");
}

TEST(L3VerifyTest, ComparableDomains) {
  EXPECT_EQ(Divergence("dist(10)", "scalar(i64)"), "");
  EXPECT_EQ(Divergence("dist(2)", "scalar(bool)"), "");
  EXPECT_NE(Divergence("dist(3)", "scalar(bool)"), "");
  EXPECT_EQ(Divergence("dist(10)", "tensor(f32, [10])"), "");
  EXPECT_NE(Divergence("dist(10)", "tensor(u8, [10])"), "");
  EXPECT_EQ(Divergence("scalar(f32)", "tensor(f32, [1])"), "");
  EXPECT_EQ(Divergence("sequence(dist(9), 5)", "tensor(u8, [5])"), "");
  EXPECT_NE(Divergence("sequence(dist(9), 5)", "tensor(u8, [6])"), "");
  EXPECT_NE(Divergence("dist(10)", "sequence(scalar(u8), 5)"), "");
}

TEST(L3VerifyTest, AnEnvironmentsRewardCanBeMaximized) {
  EXPECT_EQ(Report("data world { state : tensor(f32, [4]) reward : scalar(f32) env(\"w.l1\") }\n"
                   "model policy { in: world.state out: dist(3) }\n"
                   "goal: maximize(world.reward, models: [policy])\n"),
            "");
  EXPECT_NE(Report("data world { state : tensor(f32, [4]) reward : scalar(f32) }\n"
                   "model policy { in: world.state out: dist(3) }\n"
                   "goal: maximize(world.reward)\n"),
            "");
}

TEST(L3VerifyTest, LongCyclesAndSelfReference) {
  EXPECT_NE(Report("model a { in: a.out out: scalar(f32) }\nloss l { t: norm(a.out) }\n"
                   "goal: minimize(l)\n")
                .find("depends on itself"),
            std::string::npos);
  std::string text;
  for (int i = 0; i < 50000; ++i) {
    text += "model m" + std::to_string(i) + " { in: m" + std::to_string((i + 1) % 50000) +
            ".out out: scalar(f32) }\n";
  }
  text += "loss l { t: norm(m0.out) }\ngoal: minimize(l)\n";
  EXPECT_NE(Report(text).find("depends on itself"), std::string::npos);
}

TEST(L3VerifyTest, ModulesBuiltByHandAreCheckedToo) {
  Module module = Accept(
      "data d { x : scalar(f32) y : scalar(f32) }\n"
      "model m { in: d.x out: scalar(f32) }\n"
      "loss l { t: divergence(m.out, d.y) }\ngoal: minimize(l)\n");
  const auto broken = [](const Module& changed) {
    support::Diagnostics diagnostics;
    const bool accepted = Verify(changed, diagnostics);
    EXPECT_NE(accepted, diagnostics.has_errors());
    return diagnostics.has_errors();
  };
  EXPECT_FALSE(broken(module));
  Module edited = module;
  edited.models[0].in[0].member = "z";
  EXPECT_TRUE(broken(edited));
  edited = module;
  edited.models[0].in[0].kind = Ref::Kind::kLoss;
  EXPECT_TRUE(broken(edited));
  edited = module;
  edited.losses[0].terms[0].reads.pop_back();
  EXPECT_TRUE(broken(edited));
  edited = module;
  edited.losses[0].terms[0].weight = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(broken(edited));
  edited = module;
  edited.goal.models = {"nobody"};
  EXPECT_TRUE(broken(edited));
  edited = module;
  edited.data[0].fields[0].domain = Domain::Sequence(Domain::Scalar(tensor::DType::kF32), 0);
  EXPECT_TRUE(broken(edited));
}

TEST(L3VerifyTest, ExampleShapes) {
  using tensor::DType;
  const Domain row = Domain::Table({"a", "b"}, {Domain::Scalar(DType::kU8), Domain::Dist(3)});
  EXPECT_EQ(ExampleShape(row), (tensor::Shape{4}));
  EXPECT_EQ(ExampleDType(row), DType::kF32);
  EXPECT_EQ(ExampleShape(Domain::Sequence(Domain::Tensor(DType::kU8, {2, 3}), 7)),
            (tensor::Shape{7, 2, 3}));
  EXPECT_EQ(NumElements(Domain::Sequence(row, 5)), 20);
}

}  // namespace
}  // namespace l3c::l3
