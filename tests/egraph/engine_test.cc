// The engine through its C++ interface: congruence, semi-naive evaluation against an engine without
// cleverness, budgets, provenance, determinism.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "egraph/egraph.h"
#include "egraph/program.h"
#include "egraph/run.h"
#include "egraph/view.h"
#include "tests/egraph/naive.h"

namespace l3c::egraph {
namespace {

TEST(EGraph, BaseValuesAreInterned) {
  EGraph g;
  for (int64_t i : {int64_t{0}, int64_t{-1}, int64_t{1} << 29, (int64_t{1} << 30) - 1,
                    int64_t{1} << 30, -(int64_t{1} << 30), -(int64_t{1} << 30) - 1,
                    std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(g.AsI64(g.I64(i)), i);
    EXPECT_EQ(g.I64(i), g.I64(i));
  }
  EXPECT_EQ(g.F64(0.5), g.F64(0.5));
  EXPECT_NE(g.F64(0.0), g.F64(-0.0));
  EXPECT_EQ(g.F64(std::nan("1")), g.F64(-std::nan("2")));
  EXPECT_EQ(g.AsString(g.String("abc")), "abc");
  EXPECT_EQ(g.String("abc"), g.String("abc"));
  EXPECT_NE(g.String("abc"), g.String("abd"));
}

TEST(EGraph, CongruenceClosesChains) {
  // f^n(a), f^n(b): one union at the leaves makes all levels equal, in one rebuild.
  EGraph g;
  const SortId t = g.DeclareSort("T");
  const FunctionId leaf = g.DeclareConstructor("Leaf", {kI64}, t);
  const FunctionId f = g.DeclareConstructor("F", {t}, t);
  const Value a = g.Add(leaf, {g.I64(0)});
  const Value b = g.Add(leaf, {g.I64(1)});
  Value x = a, y = b;
  for (int i = 0; i < 2000; ++i) {
    x = g.Add(f, {x});
    y = g.Add(f, {y});
  }
  EXPECT_NE(g.Find(x), g.Find(y));
  g.Union(a, b);
  EXPECT_TRUE(g.Rebuild());
  EXPECT_EQ(g.Find(x), g.Find(y));
  EXPECT_EQ(g.LiveRows(f), 2000u);
  EXPECT_EQ(g.NodeCount(), 2002u);
  // And f(a) = a makes them one class.
  g.Union(g.Add(f, {a}), a);
  g.Rebuild();
  EXPECT_EQ(g.Find(x), g.Find(a));
  EXPECT_EQ(g.LiveRows(f), 1u);
  EXPECT_EQ(g.ClassCount(), 1u);
}

TEST(EGraph, CongruenceClimbsAgainstRowOrder) {
  // Two chains whose parents were added before their children: every level waits for the one below.
  EGraph g;
  const SortId t = g.DeclareSort("T");
  const FunctionId name = g.DeclareConstructor("Name", {kI64}, t);
  const FunctionId f = g.DeclareConstructor("F", {t}, t);
  const int n = 20000;
  std::vector<Value> x, y;
  for (int i = 0; i <= n; ++i) {
    x.push_back(g.Add(name, {g.I64(i)}));
    y.push_back(g.Add(name, {g.I64(-1 - i)}));
  }
  for (int i = 0; i < n; ++i) {
    g.Union(x[i], g.Add(f, {x[i + 1]}));
    g.Union(y[i], g.Add(f, {y[i + 1]}));
  }
  EXPECT_TRUE(g.Rebuild());
  EXPECT_NE(g.Find(x[0]), g.Find(y[0]));
  g.Union(x[n], y[n]);
  EXPECT_TRUE(g.Rebuild());
  EXPECT_EQ(g.Find(x[0]), g.Find(y[0]));
  EXPECT_EQ(g.LiveRows(f), static_cast<size_t>(n));
}

TEST(EGraph, RowsCanBeSetRemovedAndRead) {
  EGraph g;
  const SortId t = g.DeclareSort("T");
  const FunctionId leaf = g.DeclareConstructor("Leaf", {kI64}, t);
  const FunctionId size = g.DeclareFunction("size", {t}, kI64, Merge::Max());
  const FunctionId seen = g.DeclareRelation("seen", {t});
  const Value a = g.Add(leaf, {g.I64(0)});
  const Value b = g.Add(leaf, {g.I64(1)});
  g.Set(size, {a}, g.I64(3));
  g.Set(size, {a}, g.I64(2));
  g.Set(size, {b}, g.I64(7));
  EXPECT_EQ(g.Lookup(size, {a}), g.I64(3));
  g.Insert(seen, {a});
  EXPECT_TRUE(g.Lookup(seen, {a}).has_value());
  EXPECT_FALSE(g.Lookup(seen, {b}).has_value());
  g.Union(a, b);
  g.Rebuild();
  EXPECT_EQ(g.Lookup(size, {b}), g.I64(7));
  EXPECT_TRUE(g.Lookup(seen, {b}).has_value());
  EXPECT_EQ(g.LiveRows(size), 1u);
  const Value args[] = {a};
  g.Remove(seen, args);
  EXPECT_FALSE(g.Lookup(seen, {b}).has_value());
}

TEST(EGraph, ManyRandomRowsStayFindable) {
  // Appends, removals and unions against a map.
  EGraph g;
  const SortId t = g.DeclareSort("T");
  const FunctionId leaf = g.DeclareConstructor("Leaf", {kI64}, t);
  const FunctionId r = g.DeclareRelation("R", {t, t, kI64});
  std::mt19937 random(7);
  std::vector<Value> leaves;
  for (int i = 0; i < 200; ++i) leaves.push_back(g.Add(leaf, {g.I64(i)}));
  std::set<std::vector<uint32_t>> expected;
  for (int step = 0; step < 60000; ++step) {
    const Value a = leaves[random() % leaves.size()];
    const Value b = leaves[random() % leaves.size()];
    const Value n = g.I64(random() % 5);
    const std::vector<uint32_t> key{g.Find(a).bits, g.Find(b).bits, n.bits};
    if (random() % 4 == 0) {
      const Value args[] = {a, b, n};
      g.Remove(r, args);
      expected.erase(key);
    } else {
      g.Insert(r, {a, b, n});
      expected.insert(key);
    }
    if (step % 600 == 599) {
      g.Union(leaves[random() % leaves.size()], leaves[random() % leaves.size()]);
      ASSERT_TRUE(g.Rebuild());
      std::set<std::vector<uint32_t>> canonical;
      for (const auto& k : expected) {
        canonical.insert({g.Find(Value{k[0]}).bits, g.Find(Value{k[1]}).bits, k[2]});
      }
      expected = std::move(canonical);
      ASSERT_EQ(g.LiveRows(r), expected.size());
    }
  }
  std::set<std::vector<uint32_t>> got;
  g.ForEachRow(
      r, [&](const Row& row) { got.insert({row.arg(0).bits, row.arg(1).bits, row.arg(2).bits}); });
  EXPECT_EQ(got, expected);
}

// --- Random programs

struct RandomProgram {
  EGraph graph;
  SortId t;
  std::vector<FunctionId> constructors;  // by arity 0, 0, 1, 1, 2, 2
  FunctionId relation;

  explicit RandomProgram(std::mt19937& random) {
    t = graph.DeclareSort("T");
    const std::vector<SortId> none, one{t}, two{t, t};
    int i = 0;
    for (const auto& inputs : {none, none, one, one, two, two}) {
      constructors.push_back(graph.DeclareConstructor("F" + std::to_string(i++), inputs, t));
    }
    relation = graph.DeclareRelation("R", two);
    std::string rules;
    for (int r = 0; r < 4; ++r) rules += RandomRule(random);
    const ProgramResult result = LoadProgram(graph, rules, "random.egg");
    EXPECT_TRUE(result.ok()) << result.status.ToString() << "\n" << rules;
  }

  static std::string Pattern(std::mt19937& random, int depth, std::vector<std::string>* variables) {
    const uint32_t kind = random() % (depth == 0 ? 1 : 3);
    if (kind == 0) {
      if (variables->empty() || (variables->size() < 3 && random() % 2 == 0)) {
        variables->push_back("v" + std::to_string(variables->size()));
        return variables->back();
      }
      return (*variables)[random() % variables->size()];
    }
    return Call(random, depth, variables);
  }
  static std::string Call(std::mt19937& random, int depth, std::vector<std::string>* variables) {
    const int f = 2 + static_cast<int>(random() % 4);
    std::string text = "(F" + std::to_string(f);
    for (int a = 0; a < (f < 4 ? 1 : 2); ++a) text += " " + Pattern(random, depth - 1, variables);
    return text + ")";
  }
  static std::string Term(std::mt19937& random, int depth, const std::vector<std::string>& vars) {
    if (depth == 0 || random() % 3 == 0) {
      if (random() % 4 == 0) return "(F" + std::to_string(random() % 2) + ")";
      return vars[random() % vars.size()];
    }
    const int f = 2 + static_cast<int>(random() % 4);
    std::string text = "(F" + std::to_string(f);
    for (int a = 0; a < (f < 4 ? 1 : 2); ++a) text += " " + Term(random, depth - 1, vars);
    return text + ")";
  }
  static std::string RandomRule(std::mt19937& random) {
    std::vector<std::string> variables;
    switch (random() % 3) {
      case 0: {
        std::string left = Call(random, 2, &variables);
        if (variables.empty()) variables.push_back("v0");
        return "(rewrite " + left + " " + Term(random, 1, variables) + ")\n";
      }
      case 1: {
        const std::string first = Call(random, 1, &variables);
        return "(rule ((= e " + first + ") (R " + variables[0] + " w)) ((R w " + variables[0] +
               ") (R e w)))\n";
      }
      default: {
        const std::string first = Call(random, 1, &variables);
        const std::string second = Call(random, 1, &variables);
        return "(rule ((= e " + first + ") (= f " + second + ") (R e f)) ((union e f)))\n";
      }
    }
  }
};

TEST(SemiNaive, FindsWhatTryingEverythingFinds) {
  int grown = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    RandomProgram p(random);
    NaiveEngine naive(p.graph);
    std::vector<Value> ours;
    std::vector<uint32_t> theirs;
    for (int i = 0; i < 8; ++i) {
      const uint32_t kind = i < 2 ? static_cast<uint32_t>(i) : random() % 6;
      const FunctionId f = p.constructors[kind];
      std::vector<Value> args;
      std::vector<uint32_t> other_args;
      for (size_t a = 0; a < p.graph.function(f).inputs.size(); ++a) {
        const size_t pick = random() % ours.size();
        args.push_back(ours[pick]);
        other_args.push_back(theirs[pick]);
      }
      ours.push_back(p.graph.Add(f, args));
      theirs.push_back(naive.Add(f, other_args));
    }
    for (int i = 0; i < 3; ++i) {
      const size_t a = random() % ours.size(), b = random() % ours.size();
      p.graph.Insert(p.relation, {ours[a], ours[b]});
      naive.Add(p.relation, {theirs[a], theirs[b]});
    }
    for (int step = 0; step < 4; ++step) {
      const size_t before = p.graph.RowCount();
      if (before > 250) break;
      RunSchedule(p.graph, Schedule::Run(kDefaultRuleset));
      naive.Step();
      std::vector<size_t> sizes;
      for (uint32_t f = 0; f < p.graph.function_count(); ++f) {
        sizes.push_back(p.graph.LiveRows(FunctionId{f}));
      }
      ASSERT_EQ(sizes, naive.Sizes()) << "seed " << seed << " step " << step;
      std::vector<size_t> groups;
      for (Value v : ours) {
        size_t first = 0;
        while (p.graph.Find(ours[first]) != p.graph.Find(v)) ++first;
        groups.push_back(first);
      }
      ASSERT_EQ(groups, naive.Partition(theirs)) << "seed " << seed << " step " << step;
      grown += p.graph.RowCount() != before;
    }
  }
  EXPECT_GT(grown, 100);
}

// --- Budgets

constexpr std::string_view kExploding = R"(
  (datatype T (N i64) (Add T T))
  (rewrite (Add a b) (Add b a) :name "commute")
  (rewrite (Add a (Add b c)) (Add (Add a b) c) :name "associate")
  (let e (Add (N 1) (Add (N 2) (Add (N 3) (Add (N 4) (Add (N 5) (Add (N 6) (Add (N 7)
         (Add (N 8) (Add (N 9) (Add (N 10) (Add (N 11) (N 12))))))))))))))";

RunReport Explode(const Budget& budget, EGraph* graph) {
  const ProgramResult loaded = LoadProgram(*graph, kExploding, "ac.egg");
  EXPECT_TRUE(loaded.ok()) << loaded.status.ToString();
  return RunRuleset(*graph, kDefaultRuleset, budget);
}

TEST(Budgets, StopWhereTheySay) {
  {
    EGraph g;
    Budget b;
    b.max_nodes = 5000;
    const RunReport r = Explode(b, &g);
    EXPECT_EQ(r.stop, StopReason::kNodeLimit);
    EXPECT_TRUE(r.cut_short());
    EXPECT_TRUE(r.reproducible());
    // One match adds two rows at most; congruence only takes away.
    EXPECT_LE(r.rows, 5001u);
    EXPECT_FALSE(g.NeedsRebuild());
    ASSERT_EQ(r.rules.size(), 2u);
    EXPECT_EQ(g.rule(r.rules[0].rule).name, "commute");
    EXPECT_GT(r.rules[1].applied, 0u);
  }
  {
    EGraph g;
    Budget b;
    b.max_matches = 3000;
    const RunReport r = Explode(b, &g);
    EXPECT_EQ(r.stop, StopReason::kMatchLimit);
    EXPECT_EQ(r.matches, 3000u);
  }
  {
    EGraph g;
    Budget b;
    b.max_iterations = 3;
    const RunReport r = Explode(b, &g);
    EXPECT_EQ(r.stop, StopReason::kIterationLimit);
    EXPECT_EQ(r.iterations, 3u);
  }
  {
    EGraph g;
    Budget b;
    b.max_bytes = 1 << 20;
    const RunReport r = Explode(b, &g);
    EXPECT_EQ(r.stop, StopReason::kByteLimit);
    EXPECT_LE(r.bytes, (1u << 20) * 3 / 2);
  }
  {
    EGraph g;
    Budget b;
    b.max_nodes = 100'000'000;
    b.max_seconds = 0.02;
    const RunReport r = Explode(b, &g);
    EXPECT_EQ(r.stop, StopReason::kTimeLimit);
    EXPECT_FALSE(r.reproducible());
  }
}

// Rules that match nothing: only the rows that they look at say how much they do.
TEST(Budgets, WorkIsCountedWhereNothingMatches) {
  std::string text =
      "(relation r (i64 i64)) (relation s (i64))"
      "(rule ((r a x) (r b x) (< (+ a b) 0)) ((s a)) :name \"pairs\")"
      "(rule ((r a x) (< a 0)) ((s a)) :name \"rows\")";
  for (int i = 0; i < 1000; ++i) text += "(r " + std::to_string(i) + " 0)";
  const auto run = [&](uint64_t max_work) {
    EGraph g;
    EXPECT_TRUE(LoadProgram(g, text, "work.egg").ok());
    Budget budget;
    budget.max_work = max_work;
    return RunRuleset(g, kDefaultRuleset, budget);
  };
  const RunReport all = run(100'000'000);
  EXPECT_EQ(all.stop, StopReason::kSaturated);
  // Each row beside every row, and at each pair two primitives.
  EXPECT_GE(all.work, 3'000'000u);
  EXPECT_LE(all.work, 3'100'000u);
  EXPECT_EQ(run(all.work).stop, StopReason::kSaturated);
  for (const uint64_t limit : {all.work - 1, uint64_t{100'000}, uint64_t{1}}) {
    const RunReport cut = run(limit);
    EXPECT_EQ(cut.stop, StopReason::kWorkLimit);
    EXPECT_TRUE(cut.reproducible());
    EXPECT_LE(cut.work, limit);
    uint64_t shared_out = 0;
    for (const RuleReport& rule : cut.rules) shared_out += rule.work;
    EXPECT_EQ(shared_out, cut.work);
    ASSERT_FALSE(cut.rules.empty());
    EXPECT_GT(cut.Heaviest(1)[0].work, 0u);
  }
  EGraph g;
  EXPECT_TRUE(LoadProgram(g, text, "work.egg").ok());
  Budget budget;
  budget.max_work = 1'000'000;
  const RunReport cut = RunRuleset(g, kDefaultRuleset, budget);
  EXPECT_EQ(g.rule(cut.Heaviest(1)[0].rule).name, "pairs");
  EXPECT_EQ(g.history(cut.Heaviest(1)[0].rule).stopped_by, StopReason::kWorkLimit);
}

TEST(Budgets, NoNumberOfSecondsIsNoLimit) {
  for (const double seconds : {std::nan(""), 1e300, std::numeric_limits<double>::infinity()}) {
    EGraph g;
    ASSERT_TRUE(LoadProgram(g, "(relation r (i64)) (r 1) (rule ((r x)) ((r 2)))", "t.egg").ok());
    Budget budget;
    budget.max_seconds = seconds;
    EXPECT_EQ(RunRuleset(g, kDefaultRuleset, budget).stop, StopReason::kSaturated);
  }
  EGraph g;
  ASSERT_TRUE(LoadProgram(g, "(relation r (i64)) (r 1) (rule ((r x)) ((r 2)))", "t.egg").ok());
  Budget budget;
  budget.max_seconds = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(RunRuleset(g, kDefaultRuleset, budget).stop, StopReason::kTimeLimit);
}

TEST(Budgets, AStoppedRunGoesOnWhereItWas) {
  constexpr std::string_view kText = R"(
    (relation n (i64)) (relation m (i64))
    (rule ((n x) (< x 300)) ((n (+ x 1))))
    (rule ((n x)) ((m x)))
    (n 0))";
  EGraph whole, parts;
  ASSERT_TRUE(LoadProgram(whole, kText, "t.egg").ok());
  ASSERT_TRUE(LoadProgram(parts, kText, "t.egg").ok());
  EXPECT_EQ(RunRuleset(whole, kDefaultRuleset).stop, StopReason::kSaturated);
  int pieces = 0;
  Budget b;
  b.max_nodes = 7;
  while (RunRuleset(parts, kDefaultRuleset, b).stop != StopReason::kSaturated) {
    b.max_nodes += 10;
    ASSERT_LT(++pieces, 1000);
  }
  EXPECT_GT(pieces, 10);
  EXPECT_EQ(parts.LiveRows(parts.FindFunction("m")), whole.LiveRows(whole.FindFunction("m")));
  EXPECT_EQ(parts.RowCount(), whole.RowCount());
}

// --- Provenance and determinism

TEST(Provenance, NodesAndUnionsNameTheirRule) {
  EGraph g;
  ASSERT_TRUE(LoadProgram(g, R"((datatype T (A) (B) (C) (D))
(rewrite (A) (B) :name "a to b")
(rewrite (B) (C) :name "b to c")
(rule ((= x (C)) (= y (D))) ((union x y)) :name "c is d")
(let a (A)) (D)
(run 5))",
                          "p.egg")
                  .ok());
  const Value a = g.FindGlobal("a")->value;
  std::vector<std::string> names;
  for (RuleId r : g.RulesOf(a)) names.push_back(g.rule(r).name);
  EXPECT_EQ(names, (std::vector<std::string>{"initial", "a to b", "b to c", "c is d"}));
  const EGraphView view(g);
  const ENodeRef c = view.FindNode(g.FindFunction("C"), {});
  ASSERT_TRUE(c.valid());
  EXPECT_EQ(g.DescribeRule(view.NodeRule(c)), "rule 'b to c' (p.egg:3)");
  EXPECT_EQ(view.NodeText(c), "(C)");
  EXPECT_EQ(view.NodeRule(view.FindNode(g.FindFunction("D"), {})), kInitial);
}

TEST(Determinism, CopiesAndRepeatsAgree) {
  Budget b;
  b.max_nodes = 3000;
  EGraph first;
  ASSERT_TRUE(LoadProgram(first, kExploding, "ac.egg").ok());
  EGraph copy = first;
  EGraph second;
  const RunReport r1 = RunRuleset(first, kDefaultRuleset, b);
  const RunReport r2 = Explode(b, &second);
  const RunReport r3 = RunRuleset(copy, kDefaultRuleset, b);
  for (const auto& [g, r] : {std::pair(&second, &r2), std::pair(&copy, &r3)}) {
    EXPECT_EQ(r->matches, r1.matches);
    EXPECT_EQ(r->rows, r1.rows);
    for (uint32_t f = 0; f < first.function_count(); ++f) {
      std::vector<uint32_t> mine, theirs;
      first.ForEachRow(FunctionId{f}, [&](const Row& row) { mine.push_back(row.output().bits); });
      g->ForEachRow(FunctionId{f}, [&](const Row& row) { theirs.push_back(row.output().bits); });
      EXPECT_EQ(mine, theirs);
    }
  }
}

}  // namespace
}  // namespace l3c::egraph
