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
#include "egraph/proof_text.h"
#include "tests/egraph/random_program.h"

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
    // Numbers that are kept as text.
    R"((datatype T (Q Rational) (Z BigInt) (R BigRat) (Twice T) (Half T))
(rule ((= e (Twice (Q x)))) ((union e (Q (+ x x)))))
(rule ((= e (Half (Q x)))) ((union e (Q (/ x (rational 2 1))))))
(rule ((= e (Twice (Z x)))) ((union e (Z (+ x x)))))
(rule ((= e (Twice (R x)))) ((union e (R (+ x x)))))
(Twice (Half (Q (rational 3 4)))) (Twice (Twice (Z (from-string "123456789012345678901234567890"))))
(Twice (R (bigrat (from-string "1") (from-string "3"))))
(run 3))",
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

// All rows of all tables, with ids as they are.
std::vector<uint32_t> Dump(const EGraph& graph) {
  std::vector<uint32_t> all{static_cast<uint32_t>(graph.ClassCount())};
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    graph.ForEachRow(FunctionId{f}, [&](const Row& row) {
      for (uint32_t i = 0; i < row.size(); ++i) all.push_back(row.arg(i).bits);
      all.push_back(row.output().bits);
      all.push_back(row.rule().index * 2 + row.subsumed());
    });
  }
  return all;
}

// What does not depend on how classes are numbered: without proofs, the matches of a rule are
// applied in blocks, action by action, and new classes are numbered in that order.
std::vector<size_t> Sizes(const EGraph& graph) {
  std::vector<size_t> sizes{graph.ClassCount(), graph.RowCount()};
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    sizes.push_back(graph.LiveRows(FunctionId{f}));
  }
  return sizes;
}

TEST(Proof, TheGraphIsTheSameWithAndWithout) {
  for (const char* text : kTexts) {
    EGraph without, with, with_all;
    with.EnableProofs();
    with_all.EnableProofs({.redundant = true});
    Load(without, text);
    Load(with, text);
    Load(with_all, text);
    EXPECT_EQ(Dump(without), Dump(with)) << text;
    EXPECT_EQ(Dump(without), Dump(with_all)) << text;
    EXPECT_EQ(without.proof_log(), nullptr);
    EXPECT_GE(with_all.proof_log()->Bytes(), with.proof_log()->Bytes());
  }
}

// Random programs of relations, functions, deletions and unions (random_program.h).
TEST(Proof, OfRandomPrograms) {
  Budget budget;
  budget.max_nodes = 400;
  budget.max_matches = 4000;
  int proofs = 0;
  int compared = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram with(seed), without(seed);
    EGraph graph, plain;
    graph.EnableProofs({.redundant = seed % 2 == 1});
    ASSERT_TRUE(LoadProgram(graph, with.text(), "random.egg").ok());
    ASSERT_TRUE(LoadProgram(plain, without.text(), "random.egg").ok());
    RunRuleset(graph, graph.FindRuleset("start"), budget);
    RunRuleset(plain, plain.FindRuleset("start"), budget);
    bool whole = true;  // a run that a limit cuts short depends on the order of matches
    for (int round = 0; round < 4; ++round) {
      const RunReport a = RunSchedule(graph, with.NextSchedule(graph), budget);
      const RunReport b = RunSchedule(plain, without.NextSchedule(plain), budget);
      whole &= !a.cut_short() && !b.cut_short();
      if (!whole) continue;
      compared += 1;
      ASSERT_EQ(Sizes(graph), Sizes(plain)) << with.text();
      ASSERT_EQ(a.matches, b.matches) << with.text();
      ASSERT_EQ(a.applied, b.applied) << with.text();
    }
    if (graph.failure()) continue;
    proofs += CheckPairs(graph, 30, seed);
    if (seed % 6 == 0) proofs += CheckRows(graph);
    if (HasFailure()) FAIL() << with.text();
  }
  EXPECT_GT(proofs, 500);
  EXPECT_GT(compared, 60);
}

// Undoing: what was concluded between push and pop is forgotten, what is concluded anew is proven
// anew.
TEST(Proof, AfterPop) {
  EGraph graph;
  graph.EnableProofs();
  Load(graph, R"((datatype T (A) (B) (C) (F T))
(let a (A)) (let b (B)) (let c (C))
(F a) (F b) (F c)
(push)
(union a b)
(run 1)
(check (= (F a) (F b)))
(pop)
(rewrite (F x) x)
(union b c)
(run 2))");
  CheckPairs(graph, 60, 3);
  EXPECT_GT(CheckRows(graph), 3);
  const Value a = graph.FindGlobal("a")->value, b = graph.FindGlobal("b")->value;
  EXPECT_FALSE(Explainer(graph).Explain(a, b).has_value());
}

// Every change of what a proof says must be refused. Left out are the two that change nothing:
// which of several statements, or of several steps, shows that a term is there.
class Mutator {
 public:
  Mutator(EGraph& graph, const Proof& proof, Value a, Value b)
      : graph_(graph), checker_(graph), proof_(proof), a_(a), b_(b) {}

  void Run() {
    for (uint32_t s = 0; s < proof_.steps.size(); ++s) {
      Conclusions(s);
      Premises(s);
      Order(s);
    }
    for (uint32_t p = 0; p < proof_.applications.size(); ++p) Application(p);
    for (uint32_t t = 0; t < proof_.terms.size(); ++t) Term(t);
  }
  int tried() const { return tried_; }

 private:
  void Refused(const Proof& changed, const std::string& what) {
    ++tried_;
    EXPECT_NE(checker_.CheckEqual(changed, a_, b_), std::nullopt)
        << what << "\n"
        << PrintProof(graph_, proof_) << "\n"
        << PrintProof(graph_, changed);
  }
  // Another term of the sort of `t`.
  std::optional<uint32_t> Other(uint32_t t) const {
    for (uint32_t i = 1; i < proof_.terms.size(); ++i) {
      const uint32_t other = (t + i) % static_cast<uint32_t>(proof_.terms.size());
      const Proof::Term& term = proof_.terms[other];
      const bool value = term.kind != Proof::Term::Kind::kCall ||
                         graph_.function(term.function).kind == FunctionKind::kConstructor;
      if (term.sort == proof_.terms[t].sort && value) return other;
    }
    return std::nullopt;
  }
  void Conclusions(uint32_t s) {
    for (uint32_t Proof::Step::* side : {&Proof::Step::lhs, &Proof::Step::rhs}) {
      const std::optional<uint32_t> other = Other(proof_.steps[s].*side);
      if (!other) continue;
      Proof changed = proof_;
      changed.steps[s].*side = *other;
      Refused(changed, "conclusion of step " + std::to_string(s + 1));
    }
    Proof changed = proof_;
    changed.steps[s].kind = proof_.steps[s].kind == Proof::Step::Kind::kGivenTerm
                                ? Proof::Step::Kind::kGivenFact
                                : Proof::Step::Kind::kGivenTerm;
    changed.steps[s].source = 0;
    changed.steps[s].premises.clear();
    Refused(changed, "kind of step " + std::to_string(s + 1));
  }
  bool Speaks(Proof::Ref ref, uint32_t term) const {
    const Proof::Step& step = proof_.steps[ref.step];
    return (ref.reversed ? step.rhs : step.lhs) == term;
  }
  void Premises(uint32_t s) {
    const Proof::Step& step = proof_.steps[s];
    for (size_t i = 0; i < step.premises.size(); ++i) {
      Proof changed = proof_;
      changed.steps[s].premises.erase(changed.steps[s].premises.begin() +
                                      static_cast<ptrdiff_t>(i));
      Refused(changed, "premise dropped");
      for (uint32_t other = 0; other < s; ++other) {
        changed = proof_;
        Proof::Ref& ref = changed.steps[s].premises[i];
        if (other == ref.step) continue;
        ref.step = other;
        if (step.kind == Proof::Step::Kind::kThere && Speaks(ref, step.lhs)) continue;
        Refused(changed, "premise of step " + std::to_string(s + 1));
        if (other > 6) break;
      }
      const Proof::Step& used = proof_.steps[step.premises[i].step];
      if (used.lhs == used.rhs) continue;
      changed = proof_;
      changed.steps[s].premises[i].reversed ^= true;
      Refused(changed, "direction of a premise");
    }
  }
  // A step trades places with one that it uses.
  void Order(uint32_t s) {
    for (const Proof::Ref& used : proof_.steps[s].premises) {
      Proof changed = proof_;
      std::swap(changed.steps[s], changed.steps[used.step]);
      const auto trade = [&](Proof::Ref& r) {
        r.step = r.step == s ? used.step : r.step == used.step ? s : r.step;
      };
      for (Proof::Step& step : changed.steps) {
        for (Proof::Ref& r : step.premises) trade(r);
      }
      for (Proof::Application& app : changed.applications) {
        for (Proof::Ref& r : app.premises) trade(r);
      }
      for (uint32_t& goal : changed.goals) {
        goal = goal == s ? used.step : goal == used.step ? s : goal;
      }
      Refused(changed,
              "order of steps " + std::to_string(used.step + 1) + ", " + std::to_string(s + 1));
    }
  }
  void Application(uint32_t p) {
    const Proof::Application& app = proof_.applications[p];
    const auto subjects = static_cast<uint32_t>(
        app.kind == Proof::Application::Kind::kRule        ? graph_.rule_count()
        : app.kind == Proof::Application::Kind::kStatement ? graph_.proof_log()->statements().size()
                                                           : graph_.function_count());
    // Several statements may state the same.
    const bool statement = app.kind == Proof::Application::Kind::kStatement;
    for (uint32_t subject = statement ? subjects : 0; subject <= subjects; ++subject) {
      if (subject == app.subject) continue;
      Proof changed = proof_;
      changed.applications[p].subject = subject;
      Refused(changed, "rule");
    }
    for (size_t i = 0; i < app.slots.size(); ++i) {
      const std::optional<uint32_t> other = Other(app.slots[i]);
      if (!other) continue;
      Proof changed = proof_;
      changed.applications[p].slots[i] = *other;
      Refused(changed, "substitution");
    }
    for (size_t i = 0; i < app.premises.size(); ++i) {
      Proof changed = proof_;
      auto& premises = changed.applications[p].premises;
      premises.erase(premises.begin() + static_cast<ptrdiff_t>(i));
      Refused(changed, "premise of a rule dropped");
      if (app.premises[i].step == Proof::kNone) continue;
      changed = proof_;
      changed.applications[p].premises[i].step = Proof::kNone;
      Refused(changed, "premise of a rule left open");
      changed = proof_;
      uint32_t& step = changed.applications[p].premises[i].step;
      step = step == 0 ? 1 : step - 1;
      if (step < proof_.steps.size()) Refused(changed, "premise of a rule");
    }
  }
  void Term(uint32_t t) {
    const Proof::Term& term = proof_.terms[t];
    Proof changed = proof_;
    if (term.kind == Proof::Term::Kind::kLiteral && term.sort == kI64) {
      changed.terms[t].literal = std::get<int64_t>(term.literal) + 1;
      Refused(changed, "literal");
    }
    if (term.kind != Proof::Term::Kind::kCall || term.args.empty()) return;
    const std::optional<uint32_t> other = Other(term.args[0]);
    if (!other) return;
    changed.terms[t].args[0] = *other;
    Refused(changed, "argument of a term");
  }

  EGraph& graph_;
  ProofChecker checker_;
  const Proof& proof_;
  const Value a_, b_;
  int tried_ = 0;
};

// Terms that no explainer makes: containers of a wrong length, numbers that are none.
TEST(Proof, MalformedTermsAreRefused) {
  EGraph graph;
  graph.EnableProofs();
  Load(graph,
       "(sort M (Map i64 i64)) (sort P (Pair i64 i64)) (datatype T (D M) (E P) (R Rational))"
       "(D (map-insert (map-empty) 1 2)) (E (pair 1 2)) (R (rational 1 2))");
  const auto check = [&](const char* sort, std::vector<uint32_t> args, const char* text) {
    Proof proof;
    for (int64_t i : {1, 2, 3}) {
      Proof::Term literal;
      literal.sort = kI64;
      literal.literal = i;
      proof.terms.push_back(literal);
    }
    Proof::Term term;
    term.sort = graph.FindSort(sort);
    if (text != nullptr) {
      term.literal = std::string(text);
    } else {
      term.kind = Proof::Term::Kind::kContainer;
      term.args = std::move(args);
    }
    proof.terms.push_back(term);
    return ProofChecker(graph).Check(proof).value_or("accepted");
  };
  EXPECT_EQ(check("M", {0, 1}, nullptr), "the proof shows nothing");
  EXPECT_EQ(check("M", {0, 1, 2}, nullptr), "term 4: a key without a value");
  EXPECT_EQ(check("P", {0, 1}, nullptr), "the proof shows nothing");
  for (const std::vector<uint32_t>& args : {std::vector<uint32_t>{}, {0}, {0, 1, 2}}) {
    EXPECT_EQ(check("P", args, nullptr), "term 4: no pair");
  }
  for (const char* fine : {"0", "-1/2", "7"}) {
    EXPECT_EQ(check("Rational", {}, fine), "the proof shows nothing") << fine;
    EXPECT_EQ(check("BigRat", {}, fine), "the proof shows nothing") << fine;
  }
  for (const char* bad :
       {"", "1/0", "2/4", "1/1", "-", "/", "x", "1/-2", " 1", "9223372036854775808"}) {
    EXPECT_EQ(check("Rational", {}, bad), "term 4: a literal of another sort") << bad;
  }
  EXPECT_EQ(check("BigInt", {}, "1/2"), "term 4: a literal of another sort");
  EXPECT_EQ(check("BigInt", {}, "9223372036854775808"), "the proof shows nothing");
}

TEST(Proof, EveryMutationIsRefused) {
  int tried = 0;
  for (const char* text : kTexts) {
    EGraph graph;
    graph.EnableProofs();
    Load(graph, text);
    Explainer explainer(graph);
    const auto ids = static_cast<uint32_t>(graph.proof_log()->class_nodes().size());
    std::mt19937 random(5);
    for (int i = 0; i < 40; ++i) {
      if (ids == 0) break;
      const Value a{static_cast<uint32_t>(random() % ids)};
      const Value b{static_cast<uint32_t>(random() % ids)};
      const std::optional<Proof> proof = explainer.Explain(a, b);
      if (!proof || proof->steps.size() > 30) continue;
      Mutator mutator(graph, *proof, a, b);
      mutator.Run();
      tried += mutator.tried();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(tried, 3000);
}

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
