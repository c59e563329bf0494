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

constexpr const char* kMath =
    R"((datatype Math (Num i64) (Var String) (Add Math Math) (Mul Math Math))
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

// Every fact of every relation and function, and every e-node, as they are at the end.
int CheckRows(EGraph& graph) {
  Explainer explainer(graph);
  ProofChecker checker(graph);
  int proofs = 0;
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    const Function& function = graph.function(FunctionId{f});
    graph.ForEachRow(FunctionId{f}, [&](const Row& row) {
      Query query;
      Atom atom{FunctionId{f}, {}};
      std::vector<Value> slots;
      for (uint32_t i = 0; i <= row.size(); ++i) {
        atom.columns.push_back(Operand::Slot(i));
        query.slot_sorts.push_back(i < row.size() ? function.inputs[i] : function.output);
        slots.push_back(i < row.size() ? row.arg(i) : row.output());
      }
      query.atoms.push_back(std::move(atom));
      const std::optional<Proof> proof = explainer.ExplainMatch(query, slots);
      EXPECT_TRUE(proof.has_value()) << function.name << ": " << explainer.gap();
      if (!proof) return;
      ++proofs;
      EXPECT_EQ(checker.Check(*proof), std::nullopt) << function.name;
    });
  }
  return proofs;
}

constexpr const char* kTexts[] = {
    // Premises over relations and functions, merges, literals computed by primitives.
    R"((datatype Math (Num i64) (Var String) (Add Math Math) (Mul Math Math))
(function lo (Math) i64 :merge (max old new))
(function hi (Math) i64 :merge (min old new))
(relation positive (Math))
(rule ((= e (Num n))) ((set (lo e) n) (set (hi e) n)))
(rule ((= e (Add a b)) (= x (lo a)) (= y (lo b))) ((set (lo e) (+ x y))))
(rule ((= e (Mul a b)) (= x (lo a)) (= y (lo b)) (> x 0) (> y 0)) ((set (lo e) (* x y))))
(rule ((= x (lo e)) (> x 0)) ((positive e)))
(rule ((= e (Add a b)) (= x (hi a)) (= y (hi b))) ((set (hi e) (+ x y))))
(rewrite (Mul a (Num 1)) a)
(rewrite (Add a b) (Add b a))
(rewrite (Mul a b) (Mul b a))
(rewrite (Mul a b) a :when ((= b (Num 1)) (positive a)))
(rule ((= e (Mul a b)) (= (lo a) 2) (positive b)) ((union e (Add b b))))
(let e (Mul (Add (Num 1) (Num 1)) (Mul (Num 1) (Add (Num 3) (Var "x")))))
(set (lo (Var "x")) -2)
(union (Var "x") (Num 4))
(run 6))",
    // Paths: relations over relations.
    R"((relation edge (i64 i64)) (relation path (i64 i64))
(rule ((edge a b)) ((path a b)))
(rule ((path a b) (edge b c)) ((path a c)))
(edge 1 2) (edge 2 3) (edge 3 4) (edge 4 2)
(run 6))",
    // Classes as values of functions, congruence through them, deletion, subsumption.
    R"((datatype T (A) (B) (C) (F T) (G T T))
(function best (T) T :merge (G old new))
(function same (T) T :no-merge)
(rewrite (F x) (G x x) :subsume)
(rewrite (G x y) (G y x))
(rule ((= e (G x x))) ((set (best e) x)))
(rule ((= e (F x))) ((set (best x) e) (delete (F x))))
(set (best (A)) (B)) (set (best (A)) (C)) (F (F (A))) (F (B))
(set (same (A)) (B))
(run 4)
(union (A) (B))
(union (F (C)) (F (A)))
(run 3))",
    // Several actions, lets, unions of made terms, a set that joins classes.
    R"((datatype L (Nil) (Cons i64 L) (Append L L) (Rev L))
(relation seen (L))
(rule ((= e (Append (Nil) l))) ((union e l) (seen l)))
(rule ((= e (Append (Cons h t) l))) ((let r (Append t l)) (let c (Cons h r)) (union c e) (seen c)))
(rule ((= e (Rev (Cons h t)))) ((union e (Append (Rev t) (Cons h (Nil))))))
(rewrite (Rev (Nil)) (Nil))
(let three (Cons 1 (Cons 2 (Cons 3 (Nil)))))
(Rev three) (Rev (Rev three))
(run 20)
(check (= (Rev (Rev three)) three)))",
    // Containers of classes.
    R"((datatype* (E (X i64) (Sum Es) (All Xs) (Two P) (Bag Ms) (Dict D) (Neg E))
  (sort Es (Vec E)) (sort Xs (Set E)) (sort P (Pair E i64)) (sort Ms (MultiSet E)) (sort D (Map E E)))
(rewrite (Neg (Neg x)) x)
(rule ((= e (Sum v)) (= 2 (vec-length v))) ((union e (Sum (vec-of (vec-get v 1) (vec-get v 0))))))
(rule ((= e (All s)) (set-contains s (X 1))) ((union e (All (set-insert s (X 2))))))
(Sum (vec-of (X 1) (Neg (Neg (X 2)))))
(Sum (vec-of (X 1) (X 2)))
(All (set-of (X 1) (Neg (Neg (X 1))) (X 3)))
(All (set-of (X 1) (X 3)))
(Two (pair (Neg (Neg (X 1))) 7)) (Two (pair (X 1) 7))
(Bag (multiset-of (X 1) (X 1) (X 2))) (Bag (multiset-of (X 1) (Neg (Neg (X 1))) (X 2)))
(Dict (map-insert (map-empty) (X 1) (Neg (Neg (X 2))))) (Dict (map-insert (map-empty) (X 1) (X 2)))
(run 5)
(check (= (All (set-of (X 1) (X 3))) (All (set-of (X 1) (Neg (Neg (X 1))) (X 3)))))
(check (= (Bag (multiset-of (X 1) (X 1) (X 2))) (Bag (multiset-of (X 1) (Neg (Neg (X 1))) (X 2)))))
(union (X 1) (X 3))
(check (= (All (set-of (X 1) (X 3))) (All (set-of (X 3)))))
(run 2))",
    // Reading functions in actions, globals in rules, reads.
    R"((datatype T (A) (B) (F T) (W T i64))
(function n (T) i64 :merge (+ old new))
(let a (A)) (let b (B))
(set (n a) 3) (set (n b) 4) (set (n b) 5)
(rule ((= x (F a))) ((union x b) (W x (n b))) :naive)
(rule ((= x (F y)) (= y b)) ((union x (W y (+ 1 2)))))
(F a) (F b)
(run 3)
(union a b)
(run 2))",
};

TEST(Proof, OfEveryRowAndPair) {
  int proofs = 0;
  for (const char* text : kTexts) {
    for (bool redundant : {false, true}) {
      SCOPED_TRACE(std::string(text).substr(0, 100));
      EGraph graph;
      graph.EnableProofs({redundant});
      Load(graph, text);
      proofs += CheckPairs(graph, 200, 2);
      proofs += CheckRows(graph);
    }
  }
  EXPECT_GT(proofs, 500);
}

}  // namespace
}  // namespace l3c::egraph
