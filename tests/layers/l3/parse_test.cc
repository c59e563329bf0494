#include "layers/l3/parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "layers/l3/print.h"
#include "tests/layers/l3/check.h"
#include "tests/layers/l3/every_form.h"

namespace l3c::l3 {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(L3ParseTest, TheSpecificationsProgramIsAcceptedAndKeepsItsForm) {
  const std::string text = ReadFile(std::string(L3C_SOURCE_DIR) + "/examples/mnist/mnist.l3");
  ASSERT_FALSE(text.empty());
  const Module module = Accept(text);
  ASSERT_EQ(module.data.size(), 1u);
  EXPECT_EQ(module.data[0].fields[0].domain, Domain::Tensor(tensor::DType::kF32, {28, 28}));
  const Model& classify = module.models.at(0);
  EXPECT_EQ(PrintRef(classify.in.at(0)), "mnist.images");
  EXPECT_EQ(classify.out, Domain::Dist(10));
  EXPECT_EQ(classify.depth(), 3);
  EXPECT_EQ(classify.width(), 512);
  EXPECT_EQ(classify.param_budget(), 500000);
  EXPECT_EQ(classify.latency_budget(), std::nullopt);
  const Loss& objective = module.losses.at(0);
  EXPECT_EQ(objective.terms[0].kind, LossKind::kDivergence);
  EXPECT_EQ(objective.terms[1].reads[0].kind, Ref::Kind::kParams);
  EXPECT_EQ(objective.terms[1].p, 1);
  EXPECT_EQ(objective.terms[1].weight, 1e-4);
  EXPECT_EQ(module.goal.targets[0].kind, Ref::Kind::kLoss);
  EXPECT_EQ(Print(module), "# l3c l3 v1\n\n" + text);
}

TEST(L3ParseTest, EveryFormIsReadAndPrintedCanonically) {
  const Module module = Accept(kEveryForm);
  const std::string once = Print(module);
  EXPECT_EQ(Print(Accept(once)), once);
  EXPECT_EQ(module.hints.at("encode").size(), 1u);
  EXPECT_EQ(module.hints.count("people.photo"), 1u);
  EXPECT_EQ(module.hints.count("fit.hinge"), 1u);
  EXPECT_EQ(module.hints.count("goal"), 1u);
  EXPECT_EQ(module.models[0].latency_budget(), 0.01);
  EXPECT_EQ(module.FindData("world")->environment, "gridworld.l1");
  const Term& bound = *module.losses[0].FindTerm("bound");
  ASSERT_EQ(bound.reads.size(), 1u);
  EXPECT_EQ(PrintRef(bound.reads[0]), "encode.out");
  EXPECT_EQ(PrintRef(module.losses[0].FindTerm("apart")->reads[1]), "encode(people.other)");
  EXPECT_EQ(module.goal.turns[1].kind, Goal::Kind::kMaximize);
}

TEST(L3ParseTest, DefaultsAreFilledIn) {
  const Module module = Accept(
      "data d { x : scalar(f32) y : scalar(f32) }\n"
      "model m { out: scalar(f32) in: d.x }\n"
      "loss l { t: divergence(target: d.y, predicted: m.out) s: norm(m.params) }\n"
      "goal: minimize(l)\n");
  EXPECT_EQ(Print(module),
            "# l3c l3 v1\n\n"
            "data d {\n"
            "    x : scalar(f32)\n"
            "    y : scalar(f32)\n"
            "}\n\n"
            "model m {\n"
            "    in:  d.x\n"
            "    out: scalar(f32)\n"
            "    properties: []\n"
            "}\n\n"
            "loss l {\n"
            "    t: divergence(m.out, d.y), weight: 1.0\n"
            "    s: norm(m.params, p=2),    weight: 1.0\n"
            "    combine: weighted_sum\n"
            "}\n\n"
            "goal: minimize(l)\n");
}

TEST(L3ParseTest, OrderOfDeclarationsIsFree) {
  Accept(
      "goal: pareto([l.t, l.s])\n"
      "loss l { t: divergence(m.out, d.y) s: norm(m.params, 1) }\n"
      "model m { in: d.x out: dist(3) }\n"
      "data d { x : scalar(f32) y : scalar(u8) }\n");
}

TEST(L3ParseTest, SeveralErrorsAreFoundInOnePass) {
  const std::string report = Report(
      "data d {\n    x : tensr(f32, [2])\n    y : scalar(f16)\n}\n"
      "model m {\n    in: d.x\n    out dist(3)\n}\n"
      "lss l {\n}\n"
      "goal: minimise(l)\n");
  EXPECT_NE(report.find("did you mean 'tensor'?"), std::string::npos) << report;
  EXPECT_NE(report.find("unknown element type 'f16'"), std::string::npos) << report;
  EXPECT_NE(report.find("expected ':', found 'dist'"), std::string::npos) << report;
  EXPECT_NE(report.find("did you mean 'loss'?"), std::string::npos) << report;
  EXPECT_NE(report.find("did you mean 'minimize'?"), std::string::npos) << report;
}

TEST(L3ParseTest, AnExtensionTakesItsOwnDeclarations) {
  const support::SourceFile source("test.l2",
                                   "data d { x : scalar(f32) }\n"
                                   "methods for m {\n    sample: 3\n}\n"
                                   "model m { in: d.x out: scalar(f32) }\n"
                                   "loss l { t: norm(m.out, 2) }\n"
                                   "goal: minimize(l)\n"
                                   "methods for n {\n    ???\n}\n");
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  Module module;
  std::string names;
  Extension extension;
  extension.keywords = {"methods"};
  extension.parse = [&](support::ParserBase& p, const Module& so_far) {
    EXPECT_EQ(so_far.data.size(), 1u);
    if (!p.ExpectWord("methods") || !p.ExpectWord("for")) return false;
    names += p.ExpectName("a model")->text;
    return p.Expect("{") && p.ExpectWord("sample") && p.Expect(":") &&
           p.ExpectInteger("n").has_value() && p.Expect("}");
  };
  EXPECT_FALSE(ParseDeclarations(parser, module, extension));
  EXPECT_EQ(names, "mn");
  ASSERT_EQ(diagnostics.all().size(), 1u) << diagnostics.Render(false);
  EXPECT_EQ(diagnostics.all()[0].message, "expected 'sample', found '?'");
  EXPECT_EQ(module.models.size(), 1u);

  support::Printer out;
  PrintDeclarations(Accept("data d { x : scalar(f32) } model m { in: d.x out: scalar(f32) }\n"
                           "loss l { t: norm(m.out, 2) } goal: minimize(l)"),
                    out);
  EXPECT_EQ(out.text().substr(0, 9), "data d {\n");
}

}  // namespace
}  // namespace l3c::l3
