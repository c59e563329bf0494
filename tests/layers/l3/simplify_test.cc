#include "layers/l3/simplify.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/layers/l3/check.h"

namespace l3c::l3 {
namespace {

Module Spec(const std::string& terms, const std::string& goal = "minimize(l)") {
  return Accept(
      "data d { x : tensor(f32, []) y : scalar(u8) }\n"
      "model m { in: d.x out: dist(3) }\nloss l { " +
      terms + " }\ngoal: " + goal + "\n");
}

std::string Terms(const Module& module) {
  std::string text;
  for (const Term& term : module.losses[0].terms) {
    text += term.name + "=" + std::to_string(term.weight) + " ";
  }
  return text;
}

TEST(L3SimplifyTest, EqualTermsBecomeOne) {
  const Module simple =
      Simplify(Spec("a: divergence(m.out, d.y), weight: 0.5 b: norm(m.params, p=1), weight: 1.0\n"
                    "c: divergence(m.out, d.y), weight: 0.25 e: norm(m.params, p=2), weight: 1.0"));
  EXPECT_EQ(Terms(simple), "a=0.750000 b=1.000000 e=1.000000 ");
  EXPECT_EQ(Report(Print(simple)), "");
}

TEST(L3SimplifyTest, InexactSumsAndNamedTermsStay) {
  EXPECT_EQ(Terms(Simplify(Spec("a: norm(m.params), weight: 0.1 b: norm(m.params), weight: 0.7"))),
            "a=0.100000 b=0.700000 ");
  EXPECT_EQ(Terms(Simplify(Spec("a: norm(m.params), weight: 1.0 b: norm(m.params), weight: 1.0",
                                "pareto([l, l.b])"))),
            "a=1.000000 b=1.000000 ");
  EXPECT_EQ(Terms(Simplify(Spec("a: norm(m.params), weight: 1.0\n#[l2::loss(x)]\n"
                                "b: norm(m.params), weight: 1.0"))),
            "a=1.000000 b=1.000000 ");
}

TEST(L3SimplifyTest, DomainsBecomeCanonical) {
  const Module simple = Simplify(Spec("a: norm(m.params)"));
  EXPECT_EQ(PrintDomain(simple.data[0].fields[0].domain), "scalar(f32)");
  EXPECT_EQ(Print(Simplify(simple)), Print(simple));
}

}  // namespace
}  // namespace l3c::l3
