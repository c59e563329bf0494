// Join plans, indexes and what a search finds, against enumeration.
#include "egraph/match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "egraph/plan.h"
#include "egraph/program.h"
#include "egraph/run.h"
#include "egraph/search.h"

namespace l3c::egraph {
namespace {

using Kind = JoinPlan::Step::Kind;

// --- Indexes

TEST(JoinIndex, FindsWhatIsThereNewestFirst) {
  std::mt19937 random(3);
  for (const uint64_t mask : {1u, 2u, 4u, 3u, 5u, 6u}) {
    for (const uint32_t spread : {5u, 1000u, 4000000u}) {
      Table table(2);
      JoinIndex index(3, mask);
      for (int round = 0; round < 12; ++round) {
        for (int i = 0; i < 20 << (round / 2); ++i) {
          const uint32_t args[] = {static_cast<uint32_t>(random() % spread),
                                   static_cast<uint32_t>(random() % spread)};
          table.FindOrAppend(args, static_cast<uint32_t>(random() % spread), kInitial);
        }
        for (int i = 0; i < 10; ++i) {
          const uint32_t row = random() % table.row_count();
          if (table.IsLive(row)) table.Kill(row);
        }
        if (round == 8) table.Compact();
        index.Refresh(table);
        for (int probe = 0; probe < 30; ++probe) {
          const uint32_t sample = random() % table.row_count();
          std::vector<uint32_t> key;
          for (uint32_t c = 0; c < 3; ++c) {
            if ((mask >> c & 1) != 0) key.push_back(table.Get(sample, c));
          }
          const auto has_key = [&](uint32_t row) {
            size_t k = 0;
            for (uint32_t c = 0; c < 3; ++c) {
              if ((mask >> c & 1) != 0 && table.Get(row, c) != key[k++]) return false;
            }
            return true;
          };
          std::vector<uint32_t> expected;
          for (uint32_t row = table.row_count(); row-- > 0;) {
            if (table.IsLive(row) && has_key(row)) expected.push_back(row);
          }
          std::vector<uint32_t> found;
          for (uint32_t row = index.Newest(table, key.data()); row != JoinIndex::kEnd;
               row = index.Next(row)) {
            if (table.IsLive(row)) found.push_back(row);
          }
          const JoinIndex::Run run = index.Sorted(table, key.data());
          for (uint32_t i = 0; i < run.count; ++i) {
            const uint32_t* entry = run.first + size_t{i} * index.Width();
            if (!table.IsLive(*entry)) {
              EXPECT_TRUE(index.MayBeStale(table));
              continue;
            }
            found.push_back(*entry);
            for (uint32_t c = 0; c < 3; ++c) {
              if (index.Offset(c) != 0) {
                EXPECT_EQ(entry[index.Offset(c)], table.Get(*entry, c));
              }
            }
          }
          ASSERT_EQ(found, expected) << "mask " << mask << " round " << round;
        }
      }
    }
  }
}

// --- Plans

struct Edges {
  EGraph graph;
  FunctionId edge = graph.DeclareRelation("edge", {kI64, kI64});
  FunctionId mark = graph.DeclareRelation("mark", {kI64});
  JoinIndexes indexes;

  Edges() {
    for (int i = 0; i < 1000; ++i) {
      graph.Insert(edge, {graph.I64(i % 100), graph.I64(i / 10)});
    }
    for (int i = 0; i < 5; ++i) graph.Insert(mark, {graph.I64(i)});
  }
  Operand Unit() const { return Operand::Constant(graph.Unit()); }
};

std::vector<std::pair<Kind, uint32_t>> Steps(const JoinPlan& plan) {
  std::vector<std::pair<Kind, uint32_t>> steps;
  for (const JoinPlan::Step& step : plan.steps) steps.emplace_back(step.kind, step.atom);
  return steps;
}

TEST(Planner, BeginsWithTheFewestRowsAndNeverMultiplies) {
  Edges e;
  // edge(x, y), edge(y, z), mark(x)
  Query query;
  query.slot_sorts.assign(3, kI64);
  query.atoms = {{e.edge, {Operand::Slot(0), Operand::Slot(1), e.Unit()}},
                 {e.edge, {Operand::Slot(1), Operand::Slot(2), e.Unit()}},
                 {e.mark, {Operand::Slot(0), e.Unit()}}};
  const uint32_t rows[] = {1000, 1000, 5};
  const JoinPlan plan = Planner(e.graph, e.indexes).Plan(query, rows, 0);
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(plan.steps[0].atom, 2u);
  EXPECT_EQ(plan.steps[1].atom, 0u);  // joined with mark; edge(y, z) shares nothing with it yet
  EXPECT_EQ(plan.steps[1].kind, Kind::kProbe);
  EXPECT_EQ(plan.steps[2].atom, 1u);
}

TEST(Planner, LooksUpWhereAllArgumentsAreBound) {
  Edges e;
  // edge(x, y), edge(y, x)
  Query query;
  query.slot_sorts.assign(2, kI64);
  query.atoms = {{e.edge, {Operand::Slot(0), Operand::Slot(1), e.Unit()}},
                 {e.edge, {Operand::Slot(1), Operand::Slot(0), e.Unit()}}};
  const uint32_t rows[] = {1000, 10};
  EXPECT_EQ(Steps(Planner(e.graph, e.indexes).Plan(query, rows, 1)),
            (std::vector<std::pair<Kind, uint32_t>>{{Kind::kScanBack, 1}, {Kind::kLookup, 0}}));
}

TEST(Planner, BuildsNoIndexToMeetNewRowsOnce) {
  Edges e;
  // edge(7, y)
  Query query;
  query.slot_sorts.assign(1, kI64);
  query.atoms = {{e.edge, {Operand::Constant(e.graph.I64(7)), Operand::Slot(0), e.Unit()}}};
  const uint32_t rows[] = {10};
  EXPECT_EQ(Planner(e.graph, e.indexes).Plan(query, rows, 0).steps[0].kind, Kind::kScanBack);
  EXPECT_EQ(e.indexes.Bytes(), 0u);
}

TEST(Forest, PlansThatBeginAlikeShareTheirBeginning) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, R"(
    (relation a (i64 i64)) (relation b (i64)) (relation c (i64))
    (a 1 2) (b 2) (c 2)
    (rule ((a x y) (b y)) ((c x)) :name "first")
    (rule ((a u v) (c v)) ((b u)) :name "second")
    (rule ((a x y) (b x)) ((c x)) :name "third")
  )",
                          "t.egg")
                  .ok());
  JoinIndexes indexes;
  JoinForest forest;
  const uint32_t one_row[] = {1, 1};
  const JoinForest::Rows rows[] = {{0, 1}, {0, 1}};
  for (uint32_t r = 2; r < 5; ++r) {
    const Query& query = graph.rule(RuleId{r}).query;
    forest.Add(graph, indexes, query, Planner(graph, indexes).Plan(query, one_row, 0), rows, {},
               JoinForest::kNoLimit);
  }
  ASSERT_EQ(forest.trees().size(), 1u);
  EXPECT_EQ(forest.trees()[0].leaf_count, 3u);
  EXPECT_EQ(forest.node_count(), 4u);  // one scan of a; three lookups
}

// --- What a search finds

struct RandomAtom {
  int relation;
  std::vector<int> args;  // a variable, or ~constant
};
struct RandomRule {
  std::vector<RandomAtom> body;
  int less_left = -1, less_right = -1;  // variables
  RandomAtom head;
};
constexpr int kRelations = 4;
constexpr int kValues = 6;
constexpr int kVariables = 4;
constexpr int kArity[kRelations] = {1, 2, 2, 3};
using Facts = std::array<std::set<std::vector<int>>, kRelations>;

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    for (int r = 0; r < kRelations; ++r) {
      for (int i = 0; i < 5; ++i) {
        std::vector<int> fact;
        for (int a = 0; a < kArity[r]; ++a) fact.push_back(Pick(kValues));
        facts_[r].insert(fact);
      }
    }
    for (int i = 0; i < 4; ++i) rules_.push_back(MakeRule());
  }

  std::string Text(bool naive) const {
    std::string text;
    for (int r = 0; r < kRelations; ++r) {
      text += "(relation r" + std::to_string(r) + " (";
      for (int a = 0; a < kArity[r]; ++a) text += "i64 ";
      text += "))\n";
    }
    for (int r = 0; r < kRelations; ++r) {
      for (const std::vector<int>& fact : facts_[r]) {
        text += "(r" + std::to_string(r);
        for (int v : fact) text += " " + std::to_string(v);
        text += ")\n";
      }
    }
    for (const RandomRule& rule : rules_) {
      text += "(rule (";
      for (const RandomAtom& atom : rule.body) text += AtomText(atom);
      if (rule.less_left >= 0) {
        text +=
            "(< v" + std::to_string(rule.less_left) + " v" + std::to_string(rule.less_right) + ")";
      }
      text += ") (" + AtomText(rule.head) + ")" + (naive ? " :naive" : "") + ")\n";
    }
    return text;
  }

  // All facts that follow in `steps` steps, by trying all values of all variables.
  Facts Enumerate(int steps) const {
    Facts facts = facts_;
    for (int step = 0; step < steps; ++step) {
      const Facts before = facts;
      for (const RandomRule& rule : rules_) {
        std::vector<int> value(kVariables, 0);
        for (int code = 0; code < kValues * kValues * kValues * kValues; ++code) {
          int rest = code;
          for (int& v : value) {
            v = rest % kValues;
            rest /= kValues;
          }
          const auto fact = [&](const RandomAtom& atom) {
            std::vector<int> row;
            for (int a : atom.args) row.push_back(a >= 0 ? value[a] : ~a);
            return row;
          };
          bool holds = rule.less_left < 0 || value[rule.less_left] < value[rule.less_right];
          for (const RandomAtom& atom : rule.body) {
            holds = holds && before[atom.relation].count(fact(atom)) != 0;
          }
          if (holds) facts[rule.head.relation].insert(fact(rule.head));
        }
      }
    }
    return facts;
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % n); }
  static std::string AtomText(const RandomAtom& atom) {
    std::string text = "(r" + std::to_string(atom.relation);
    for (int a : atom.args) {
      text += a >= 0 ? " v" + std::to_string(a) : " " + std::to_string(~a);
    }
    return text + ")";
  }
  RandomRule MakeRule() {
    RandomRule rule;
    std::vector<int> bound;
    const int atoms = 1 + Pick(3);
    for (int i = 0; i < atoms; ++i) {
      RandomAtom atom{Pick(kRelations), {}};
      for (int a = 0; a < kArity[atom.relation]; ++a) {
        const int v = Pick(6) == 0 ? ~Pick(kValues) : Pick(kVariables);
        atom.args.push_back(v);
        if (v >= 0) bound.push_back(v);
      }
      rule.body.push_back(atom);
    }
    if (bound.size() > 1 && Pick(2) == 0) {
      rule.less_left = bound[Pick(static_cast<int>(bound.size()))];
      rule.less_right = bound[Pick(static_cast<int>(bound.size()))];
    }
    rule.head.relation = Pick(kRelations);
    for (int a = 0; a < kArity[rule.head.relation]; ++a) {
      rule.head.args.push_back(bound.empty() ? ~Pick(kValues)
                                             : bound[Pick(static_cast<int>(bound.size()))]);
    }
    return rule;
  }

  std::mt19937 random_;
  Facts facts_;
  std::vector<RandomRule> rules_;
};

Facts Read(const EGraph& graph) {
  Facts facts;
  for (int r = 0; r < kRelations; ++r) {
    graph.ForEachRow(graph.FindFunction("r" + std::to_string(r)), [&](const Row& row) {
      std::vector<int> fact;
      for (uint32_t i = 0; i < row.size(); ++i) {
        fact.push_back(static_cast<int>(graph.AsI64(row.arg(i))));
      }
      facts[r].insert(fact);
    });
  }
  return facts;
}

TEST(Search, FindsWhatEnumerationFinds) {
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    const RandomProgram program(seed);
    for (const bool naive : {false, true}) {
      EGraph graph;
      ASSERT_TRUE(LoadProgram(graph, program.Text(naive), "t.egg").ok()) << program.Text(naive);
      for (int step = 1; step <= 4; ++step) {
        RunSchedule(graph, Schedule::Run(kDefaultRuleset));
        ASSERT_EQ(Read(graph), program.Enumerate(step))
            << "seed " << seed << " step " << step << "\n"
            << program.Text(naive);
      }
    }
  }
}

TEST(Search, SemiNaiveFindsEveryMatchOnce) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, R"(
    (relation e (i64 i64)) (relation p (i64 i64 i64))
    (rule ((e x y) (e y z)) ((p x y z)))
    (e 1 1) (e 1 2) (e 2 1)
  )",
                          "t.egg")
                  .ok());
  // 1-1-1, 1-1-2, 1-2-1, 2-1-1, 2-1-2
  EXPECT_EQ(RunSchedule(graph, Schedule::Run(kDefaultRuleset)).matches, 5u);
  EXPECT_EQ(RunSchedule(graph, Schedule::Run(kDefaultRuleset)).matches, 0u);
  ASSERT_TRUE(LoadProgram(graph, "(e 2 3)", "t.egg").ok());
  // 1-2-3 only: 2-3 begins nothing
  EXPECT_EQ(RunSchedule(graph, Schedule::Run(kDefaultRuleset)).matches, 1u);
}

}  // namespace
}  // namespace l3c::egraph
