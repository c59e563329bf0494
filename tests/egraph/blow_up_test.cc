// Rules that blow up stop at their budget, say which budget and which rules it was, and take no
// more than a tenth above what they were allowed. Facts in conflict stop a run with both causes
// named.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "egraph/program.h"
#include "egraph/run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define L3C_SANITIZED 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define L3C_SANITIZED 1
#endif
#endif

namespace l3c::egraph {
namespace {

constexpr char kRules[] = R"(
(datatype T (Leaf i64) (Add T T) (Mul T T))
(rewrite (Add a b) (Add b a) :name "add-commutes")
(rewrite (Add a (Add b c)) (Add (Add a b) c) :name "add-associates")
(rewrite (Mul a b) (Mul b a) :name "mul-commutes")
(rewrite (Mul a (Mul b c)) (Mul (Mul a b) c) :name "mul-associates")
(rewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)) :name "distribute")
)";

// A sum of twelve leaves: 4095 classes and about half a million e-nodes when saturated.
std::string TwelveLeaves() {
  std::string term = "(Leaf 12)";
  for (int i = 11; i >= 1; --i) term = "(Add (Leaf " + std::to_string(i) + ") " + term + ")";
  return "(let root " + term + ")";
}

// c1 = a + b, d1 = a · b, c2 = c1 + d1, d2 = c1 · d1, …: as a tree, 2^13 leaves.
std::string Chains() {
  std::string text = "(let c0 (Leaf 0)) (let d0 (Leaf 1))\n";
  for (int i = 1; i <= 13; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    text += "(let c" + now + " (Add c" + before + " d" + before + "))\n";
    text += "(let d" + now + " (Mul c" + before + " d" + before + "))\n";
  }
  return text;
}

struct Program {
  const char* name;
  std::string (*terms)();
};
void PrintTo(const Program& p, std::ostream* out) { *out << p.name; }

class BlowUp : public ::testing::TestWithParam<Program> {
 protected:
  RunReport Run(const Budget& budget) {
    for (const std::string& text : {std::string(kRules), GetParam().terms()}) {
      const ProgramResult loaded = LoadProgram(graph_, text, "blow_up.egg");
      EXPECT_TRUE(loaded.ok()) << loaded.status.ToString();
    }
    return RunRuleset(graph_, kDefaultRuleset, budget);
  }

  // The report names rules, the heaviest first.
  void ExpectBlame(const RunReport& report) {
    const std::vector<RuleReport> heaviest = report.Heaviest(3);
    ASSERT_FALSE(heaviest.empty());
    const std::string first = graph_.DescribeRule(heaviest[0].rule);
    EXPECT_TRUE(first.find("associates") != first.npos || first.find("distribute") != first.npos ||
                first.find("commutes") != first.npos)
        << first;
    EXPECT_NE(first.find("blow_up.egg:"), first.npos);
    const auto heavier = [&](const RuleReport& rule) {
      return rule.rows > heaviest[0].rows && rule.matches > heaviest[0].matches;
    };
    EXPECT_TRUE(std::none_of(report.rules.begin(), report.rules.end(), heavier)) << first;
  }

  EGraph graph_;
};

TEST_P(BlowUp, StopsAtItsNodes) {
  Budget budget;
  budget.max_nodes = 20'000;
  const RunReport report = Run(budget);
  EXPECT_EQ(report.stop, StopReason::kNodeLimit);
  EXPECT_EQ(StopReasonName(report.stop), "node limit");
  EXPECT_LE(report.rows, budget.max_nodes * 11 / 10);
  EXPECT_TRUE(report.reproducible());
  ExpectBlame(report);
}

TEST_P(BlowUp, StopsAtItsMatches) {
  Budget budget;
  budget.max_matches = 30'000;
  const RunReport report = Run(budget);
  EXPECT_EQ(report.stop, StopReason::kMatchLimit);
  EXPECT_LE(report.matches, budget.max_matches);
  EXPECT_GE(report.matches, budget.max_matches * 9 / 10);
  ExpectBlame(report);
}

TEST_P(BlowUp, StopsAtItsIterations) {
  Budget budget;
  budget.max_iterations = 4;
  const RunReport report = Run(budget);
  EXPECT_EQ(report.stop, StopReason::kIterationLimit);
  EXPECT_EQ(report.iterations, 4u);
  ExpectBlame(report);
}

TEST_P(BlowUp, StopsAtItsBytes) {
  for (const uint64_t megabytes : {2, 8, 16}) {
    graph_ = EGraph();
    Budget budget;
    budget.max_bytes = megabytes << 20;
    const RunReport report = Run(budget);
    EXPECT_EQ(report.stop, StopReason::kByteLimit) << megabytes;
    EXPECT_LE(report.bytes, budget.max_bytes * 11 / 10) << megabytes;
    EXPECT_LE(graph_.Bytes(), budget.max_bytes * 11 / 10) << megabytes;
    ExpectBlame(report);
  }
}

TEST_P(BlowUp, StopsAtItsSeconds) {
  Budget budget;
  budget.max_seconds = 0.25;
  budget.max_nodes = budget.max_matches = uint64_t{1} << 32;
  const auto processor_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  // A machine that others use gives it less than its share, but slower seconds, so the least of
  // three counts. The start counts 20 ms.
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 3 && least > budget.max_seconds * 1.1 + 0.02; ++turn) {
    graph_ = EGraph();
    const double start = processor_seconds();
    const RunReport report = Run(budget);
    least = std::min(least, processor_seconds() - start);
    EXPECT_EQ(report.stop, StopReason::kTimeLimit);
    EXPECT_FALSE(report.reproducible());
    ExpectBlame(report);
  }
#ifndef L3C_SANITIZED
  EXPECT_LE(least, budget.max_seconds * 1.1 + 0.02);
#endif
}

#ifndef L3C_SANITIZED
// The peak of a process that runs the program within `max_bytes`, in bytes; 0: that only loads it.
uint64_t PeakMemory(const Program& program, uint64_t max_bytes, uint32_t threads = 1) {
  const pid_t child = fork();
  if (child == 0) {
    EGraph graph;
    bool ok = LoadProgram(graph, kRules, "rules").ok() &&
              LoadProgram(graph, program.terms(), "terms").ok();
    if (max_bytes != 0) {
      Budget budget;
      budget.max_bytes = max_bytes;
      budget.max_nodes = budget.max_matches = uint64_t{1} << 32;
      budget.threads = threads;
      ok = ok && RunRuleset(graph, kDefaultRuleset, budget).stop == StopReason::kByteLimit;
    }
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

TEST_P(BlowUp, TheProcessStaysWithinItsBytes) {
  constexpr uint64_t kBytes = uint64_t{32} << 20;
  const uint64_t base = PeakMemory(GetParam(), 0);
  for (const uint32_t threads : {1u, 2u, 4u}) {
    const uint64_t peak = PeakMemory(GetParam(), kBytes, threads);
    EXPECT_LE(peak - std::min(base, peak), kBytes * 11 / 10) << threads << " threads";
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(Rules, BlowUp,
                         ::testing::Values(Program{"TwelveLeaves", TwelveLeaves},
                                           Program{"Chains", Chains}),
                         [](const ::testing::TestParamInfo<Program>& p) { return p.param.name; });

// --- Facts in conflict

TEST(Conflict, NamesBothRules) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, R"((datatype T (A) (B))
(function color (T) String :no-merge)
(rule ((= e (A))) ((set (color e) "red")) :name "a is red")
(rule ((= e (B))) ((set (color e) "blue")) :name "b is blue")
(A) (B)
(run 1)
(union (A) (B))
(run 1))",
                                           "colors.egg");
  ASSERT_FALSE(result.ok());
  const std::string& message = *graph.failure();
  for (const char* part :
       {"a is red", "colors.egg:3", "\"red\"", "b is blue", "colors.egg:4", "\"blue\"", "color"}) {
    EXPECT_NE(message.find(part), message.npos) << part << " in " << message;
  }
  EXPECT_EQ(result.status.line, 7u);  // the union
}

// Values that are classes, arguments that are containers, a merge that gives nothing: all terms,
// and both rules.
TEST(Conflict, IsSaidInTerms) {
  EGraph graph;
  const ProgramResult classes = LoadProgram(graph, R"((datatype* (T (A) (B i64) (F Ts))
  (sort Ts (Vec T)))
(function next (T Ts) T :no-merge)
(relation start (T))
(rule ((start x)) ((set (next x (vec-of x (B 1))) (B 2))) :name "up")
(rule ((start x)) ((set (next x (vec-of x (B 1))) (F (vec-of x)))) :name "down")
(start (A))
(run 1))",
                                            "next.egg");
  EXPECT_EQ(classes.status.message,
            "conflicting values for (next (A) (vec-of (A) (B 1))): (B 2) from rule 'up' "
            "(next.egg:5), (F (vec-of (A))) from rule 'down' (next.egg:6)");
  EGraph merge;
  const ProgramResult nothing = LoadProgram(merge, R"((datatype T (A))
(function part (T) i64 :merge (/ old new))
(relation start (T))
(rule ((start x)) ((set (part x) 1)) :name "one")
(rule ((start x)) ((set (part x) 0)) :name "none")
(start (A))
(run 1))",
                                            "part.egg");
  EXPECT_NE(nothing.status.message.find("(part (A)): 1 from rule 'one' (part.egg:4), 0 from rule "
                                        "'none' (part.egg:5)"),
            std::string::npos)
      << nothing.status.message;
}

TEST(Conflict, NamesAFactOfTheInputAndARule) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, R"((function size (i64) i64 :no-merge)
(relation item (i64))
(rule ((item x)) ((set (size x) (* x x))) :name "squares")
(set (size 3) 10)
(item 3)
(run 1))",
                                           "sizes.egg");
  ASSERT_FALSE(result.ok());
  const std::string& message = *graph.failure();
  for (const char* part : {"squares", "sizes.egg:3", "9", "10", "the input", "size"}) {
    EXPECT_NE(message.find(part), message.npos) << part << " in " << message;
  }
}

TEST(Conflict, APanicNamesItsRule) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, R"((datatype T (A) (B))
(rule ((= (A) (B))) ((panic "a is not b")) :name "apart")
(union (A) (B))
(run 1))",
                                           "panic.egg");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(graph.failure()->find("apart"), std::string::npos) << *graph.failure();
  EXPECT_NE(graph.failure()->find("a is not b"), std::string::npos);
}

}  // namespace
}  // namespace l3c::egraph
