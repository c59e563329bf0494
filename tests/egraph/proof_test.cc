// Proofs: everything that is equal has one, the checker accepts it, and accepts nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "egraph/explain.h"
#include "egraph/program.h"
#include "egraph/proof_checker.h"

namespace l3c::egraph {
namespace {

void Load(EGraph& graph, const std::string& text, uint64_t max_nodes = 100000) {
  ProgramOptions options;
  options.budget.max_nodes = max_nodes;
  const ProgramResult result = LoadProgram(graph, text, "test.egg", options);
  ASSERT_TRUE(result.ok()) << result.status.ToString() << "\n" << text;
}

// A pseudo-random sample of pairs of ids of all sorts: equal ones have a proof that checks, others
// have none. Gives the number of proofs.
int CheckPairs(EGraph& graph, int pairs, uint32_t seed) {
  Explainer explainer(graph);
  ProofChecker checker(graph);
  const auto ids = static_cast<uint32_t>(graph.proof_log()->class_nodes().size());
  if (ids == 0) return 0;
  std::mt19937 random(seed);
  std::map<uint32_t, std::vector<uint32_t>> classes;
  for (uint32_t id = 0; id < ids; ++id) classes[graph.Find(Value{id}).bits].push_back(id);
  int proofs = 0;
  for (int i = 0; i < pairs; ++i) {
    const Value a{static_cast<uint32_t>(random() % ids)};
    const std::vector<uint32_t>& same = classes[graph.Find(a).bits];
    const Value b = i % 4 == 0 ? Value{static_cast<uint32_t>(random() % ids)}
                               : Value{same[random() % same.size()]};
    const std::optional<Proof> proof = explainer.Explain(a, b);
    const bool equal = graph.Find(a) == graph.Find(b);
    EXPECT_EQ(proof.has_value(), equal) << a.bits << " " << b.bits << ": " << explainer.gap();
    if (!proof) continue;
    ++proofs;
    EXPECT_EQ(checker.CheckEqual(*proof, a, b), std::nullopt) << a.bits << " " << b.bits;
  }
  return proofs;
}

constexpr const char* kMath = R"((datatype Math (Num i64) (Var String) (Add Math Math) (Mul Math Math))
(let expr1 (Mul (Num 2) (Add (Var "x") (Num 3))))
(let expr2 (Add (Num 6) (Mul (Num 2) (Var "x"))))
(rewrite (Add a b) (Add b a))
(rewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)))
(rewrite (Add (Num a) (Num b)) (Num (+ a b)))
(rewrite (Mul (Num a) (Num b)) (Num (* a b)))
(run 10)
)";

TEST(Proof, OfTwoExpressions) {
  for (bool redundant : {false, true}) {
    EGraph graph;
    graph.EnableProofs({redundant});
    Load(graph, kMath);
    EXPECT_GT(CheckPairs(graph, 400, 1), 300);
  }
}

}  // namespace
}  // namespace l3c::egraph
