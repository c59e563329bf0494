// A workload of symbolic calculus whose table sizes after each step are published: any engine that
// matches all rules, applies all matches and restores congruence must count the same e-nodes.
#include <gtest/gtest.h>

#include <string>

#include "egraph/program.h"

namespace l3c::egraph {
namespace {

constexpr char kLanguage[] = R"(
(datatype Term
  (D Term Term) (I Term Term)
  (Plus Term Term) (Minus Term Term) (Times Term Term) (Over Term Term) (Power Term Term)
  (Log Term) (Root Term) (Sine Term) (Cosine Term)
  (Num i64) (Sym String))
)";

constexpr char kRules[] = R"(
; commutative and associative
(rewrite (Plus x y) (Plus y x))
(rewrite (Times x y) (Times y x))
(rewrite (Plus x (Plus y z)) (Plus (Plus x y) z))
(rewrite (Times x (Times y z)) (Times (Times x y) z))
; neutral and absorbing elements, cancellation
(rewrite (Minus x y) (Plus x (Times (Num -1) y)))
(rewrite (Plus x (Num 0)) x)
(rewrite (Times x (Num 0)) (Num 0))
(rewrite (Times x (Num 1)) x)
(rewrite (Minus x x) (Num 0))
; distribution, both ways
(rewrite (Times x (Plus y z)) (Plus (Times x y) (Times x z)))
(rewrite (Plus (Times x y) (Times x z)) (Times x (Plus y z)))
; powers
(rewrite (Times (Power x y) (Power x z)) (Power x (Plus y z)))
(rewrite (Power x (Num 1)) x)
(rewrite (Power x (Num 2)) (Times x x))
; derivatives
(rewrite (D v (Plus x y)) (Plus (D v x) (D v y)))
(rewrite (D v (Times x y)) (Plus (Times x (D v y)) (Times y (D v x))))
(rewrite (D v (Sine v)) (Cosine v))
(rewrite (D v (Cosine v)) (Times (Num -1) (Sine v)))
; integrals
(rewrite (I (Num 1) v) v)
(rewrite (I (Cosine v) v) (Sine v))
(rewrite (I (Sine v) v) (Times (Num -1) (Cosine v)))
(rewrite (I (Plus f g) v) (Plus (I f v) (I g v)))
(rewrite (I (Minus f g) v) (Minus (I f v) (I g v)))
(rewrite (I (Times x y) v) (Minus (Times x (I y v)) (I (Times (D v x) (I y v)) v)))
)";

constexpr char kTerms[] = R"(
(I (Log (Sym "x")) (Sym "x"))
(I (Plus (Sym "x") (Cosine (Sym "x"))) (Sym "x"))
(I (Times (Cosine (Sym "x")) (Sym "x")) (Sym "x"))
(D (Sym "x") (Plus (Num 1) (Times (Num 2) (Sym "x"))))
(D (Sym "x") (Minus (Power (Sym "x") (Num 3)) (Times (Num 7) (Power (Sym "x") (Num 2)))))
(Plus (Times (Sym "y") (Plus (Sym "x") (Sym "y")))
      (Minus (Plus (Sym "x") (Num 2)) (Plus (Sym "x") (Sym "x"))))
(Over (Num 1)
      (Minus (Over (Plus (Num 1) (Root (Sym "five"))) (Num 2))
             (Over (Minus (Num 1) (Root (Sym "five"))) (Num 2))))
)";

TEST(MathBenchmark, CountsEveryStep) {
  EGraph graph;
  for (const char* text : {kLanguage, kRules, kTerms}) {
    const ProgramResult result = LoadProgram(graph, text, "math.egg");
    ASSERT_TRUE(result.ok()) << result.status.ToString();
  }
  const size_t expected[] = {35, 69, 118, 208, 389, 784, 1576, 3160, 8113, 28303, 136446};
  for (size_t step = 0; step < std::size(expected); ++step) {
    if (step != 0) RunSchedule(graph, Schedule::Run(kDefaultRuleset));
    EXPECT_EQ(graph.NodeCount(), expected[step]) << "step " << step;
  }
}

}  // namespace
}  // namespace l3c::egraph
