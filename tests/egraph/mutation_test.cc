// Programs with random damage: whatever is left must be read, run and refused without a crash, and
// the same damage must give the same outcome.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "egraph/program.h"

namespace l3c::egraph {
namespace {

constexpr const char* kPrograms[] = {
    R"((datatype Math (Num i64) (Add Math Math :cost 2) (Mul Math Math) (Var String))
(ruleset simplify)
(rewrite (Add a b) (Add b a))
(rewrite (Mul a (Num 1)) a :ruleset simplify :name "one" :numerics reassoc)
(rewrite (Add (Num a) (Num b)) (Num (+ a b)) :when ((< a 10) (!= a b)))
(birewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)))
(let e (Mul (Add (Num 2) (Num 3)) (Add (Var "x") (Num 1))))
(union e (Var "y"))
(run 2)
(run-schedule (repeat 2 (saturate (run simplify)) (run)))
(check (= e (Var "y")))
(fail (check (= e (Num 6))))
(extract e)
(push 1) (pop 1)
(print-size Add))",
    R"((sort V)
(constructor Leaf (i64 f64 bool) V :unextractable)
(constructor Node (V V) V)
(function lo (V) i64 :merge (min old new))
(function top (i64 i64) f64 :merge (+ old (* 0.5 new)))
(function same (V) String :no-merge)
(relation edge (i64 i64))
(rule ((edge a b) (edge b c) (= d (- c a))) ((edge a c) (set (top a c) (to-f64 d))))
(rule ((= e (Node a b)) (= x (lo a)) (guard (bool-< x 7))) ((set (lo e) (+ x 1)) (subsume (Node b a))))
(rule ((= e (Leaf n f true))) ((set (lo e) n) (let m (Node e e)) (union m (Node m e))))
(edge 1 2) (edge 2 3) (edge 3 1)
(set (same (Leaf 1 -2.5 true)) "text")
(delete (edge 1 2))
(run 3 :until (edge 3 3))
(check (edge 1 3) (= 1 (select (or false true) 1 2)))
(print-size))",
};

std::vector<std::string> Tokens(const std::string& text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (std::isalnum(static_cast<unsigned char>(text[i]))) {
      while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
             text[end] != '(' && text[end] != ')') {
        ++end;
      }
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

TEST(Mutation, DamagedProgramsAreRefusedOrRun) {
  ProgramOptions options;
  options.budget.max_nodes = 300;
  options.budget.max_matches = 3000;
  options.budget.max_iterations = 20;
  std::mt19937 random(3);
  int fine = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::vector<std::string> tokens = Tokens(kPrograms[random() % std::size(kPrograms)]);
    const uint32_t changes = 1 + random() % 4;
    for (uint32_t c = 0; c < changes; ++c) {
      const size_t at = random() % tokens.size();
      const size_t other = random() % tokens.size();
      switch (random() % 5) {
        case 0:
          tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at));
          break;
        case 1:
          tokens[at] = tokens[other];
          break;
        case 2:
          std::swap(tokens[at], tokens[other]);
          break;
        case 3:
          tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(at), tokens[other]);
          break;
        default: {
          constexpr const char* kOdd[] = {"()",    "-9223372036854775808",
                                          "0",     "_",
                                          "\"",    ":when",
                                          "old",   "=",
                                          "1e308", "true",
                                          "9",     "\\"};
          tokens[at] = kOdd[random() % std::size(kOdd)];
        }
      }
    }
    std::string text;
    for (const std::string& t : tokens) text += t;
    std::string outcome[2];
    for (std::string& o : outcome) {
      EGraph graph;
      const ProgramResult result = LoadProgram(graph, text, "m.egg", options);
      o = result.status.ToString() + result.output();
      (result.ok() ? fine : refused) += 1;
    }
    ASSERT_EQ(outcome[0], outcome[1]) << text;
  }
  EXPECT_GT(fine, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace l3c::egraph
