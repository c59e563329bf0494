// The local search, on random graphs with cycles and gains: what it says is what it has.
#include "egraph/extract/local_search.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "egraph/extract/exact.h"
#include "egraph/extract/implications.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/plain.h"
#include "tests/egraph/random_instance.h"

namespace l3c::egraph {
namespace {

Instance RandomInstance(uint32_t seed, uint32_t classes, bool gains) {
  InstanceShape shape;
  shape.classes = classes;
  shape.max_nodes = 4;
  shape.reach = 20;
  shape.price = [=](uint32_t random) { return random % 20 - (gains ? 6.0 : 0.0); };
  return RandomInstance(seed, shape);
}

TEST(LocalSearch, TheTotalIsThatOfTheChoice) {
  size_t searched = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Instance instance = RandomInstance(seed, 60, seed % 2 == 1);
    ChoiceProblem problem = MakeChoiceProblem(instance.graph, instance.prices, instance.roots);
    if (!Reduce(problem, Reductions::kFeasibility).feasible) continue;
    std::vector<double> costs;
    for (const ChoiceNode& n : problem.nodes) costs.push_back(n.cost);
    LocalSearch search(problem, costs);
    ASSERT_TRUE(search.Start());
    for (int round = 0; round < 4; ++round) {
      const double before = search.total();
      if (round == 1) search.Descend(100'000);
      if (round > 1) search.Kick(20'000);
      EXPECT_LE(search.total(), before + 1e-6) << seed;
      std::vector<ENodeRef> choice;
      for (uint32_t n : search.Choice()) {
        choice.push_back(n == kNone ? ENodeRef{} : ENodeRef{n});
      }
      // Feasible means acyclic.
      const PlainExtraction x =
          MeasureChoice(instance.graph, instance.prices, instance.roots, choice);
      ASSERT_TRUE(x.feasible) << seed;
      EXPECT_NEAR(x.dag_cost, search.total(), 1e-6) << seed;
    }
    LocalSearch again(problem, costs);
    ASSERT_TRUE(again.StartFrom(search.Choice()));
    EXPECT_NEAR(again.total(), search.total(), 1e-6);
    ++searched;
  }
  EXPECT_GT(searched, 20u);
}

TEST(LocalSearch, IsRarelyFarFromTheOptimum) {
  if (!LinearSolver::Available()) GTEST_SKIP() << "built without COIN-OR Cbc";
  double optimum = 0, found = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Instance instance = RandomInstance(seed, 60, /*gains=*/false);
    const ExactSolution exact = SolveExact(instance.graph, instance.prices, instance.roots);
    if (!exact.feasible) continue;
    ASSERT_TRUE(exact.optimal) << seed;
    const PlainExtraction fast =
        PlainGreedyDag(instance.graph, instance.prices, instance.roots, 10'000'000);
    const PlainExtraction tree = PlainTree(instance.graph, instance.prices, instance.roots);
    EXPECT_GE(fast.dag_cost, exact.cost - 1e-6) << seed;
    EXPECT_LE(fast.dag_cost, tree.dag_cost) << seed;
    optimum += exact.cost;
    found += fast.dag_cost;
  }
  EXPECT_LE(found, optimum * 1.01);
}

// Of the whole extraction, and not of each of its steps.
TEST(PlainGreedyDag, KeepsToItsWork) {
  const Instance instance = RandomInstance(3, 400, /*gains=*/false);
  // A move under way is carried through.
  constexpr uint64_t kMove = 60'000;
  for (uint64_t max_work : {10'000u, 100'000u, 300'000u, 600'000u}) {
    const PlainExtraction found =
        PlainGreedyDag(instance.graph, instance.prices, instance.roots, max_work);
    ASSERT_TRUE(found.feasible);
    EXPECT_LE(found.work, max_work + kMove);
  }
}

// Each class holds the next one twice: 2^1200 leaves, and no better choice.
TEST(PlainTree, CostsBeyondANumber) {
  constexpr uint32_t kDepth = 1200;
  Instance instance;
  for (uint32_t c = 0; c < kDepth; ++c) {
    instance.graph.AddClass();
    instance.graph.AddNode(std::vector<ClassRef>(2, ClassRef{c + 1}));
  }
  instance.graph.AddClass();
  instance.graph.AddNode({});
  instance.prices.assign(kDepth + 1, 1);
  const PlainExtraction tree = PlainTree(instance.graph, instance.prices, instance.roots);
  ASSERT_TRUE(tree.feasible);
  EXPECT_EQ(tree.dag_cost, kDepth + 1);
  EXPECT_EQ(tree.tree_cost, std::numeric_limits<double>::max());
  EXPECT_EQ(PlainGreedyDag(instance.graph, instance.prices, instance.roots, 1000).dag_cost,
            kDepth + 1);
}

TEST(Implications, HoldInEveryTerm) {
  size_t held = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Instance instance = RandomInstance(seed, 12, /*gains=*/false);
    ChoiceProblem problem = MakeChoiceProblem(instance.graph, instance.prices, instance.roots);
    if (!Reduce(problem, Reductions::kFeasibility).feasible) continue;
    const Implications implications(problem);
    ASSERT_TRUE(implications.available());
    std::mt19937 random(seed);
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<ENodeRef> choice(instance.graph.class_count());
      for (uint32_t c = 0; c < choice.size(); ++c) {
        const std::vector<uint32_t>& nodes = problem.class_nodes[c];
        if (!nodes.empty()) choice[c] = ENodeRef{nodes[random() % nodes.size()]};
      }
      for (uint32_t c = 0; c < choice.size(); ++c) {
        if (problem.class_nodes[c].empty()) continue;
        const PlainExtraction x = MeasureChoice(instance.graph, instance.prices,
                                                std::vector<ClassRef>{ClassRef{c}}, choice);
        if (!x.feasible) continue;
        for (uint32_t d = 0; d < choice.size(); ++d) {
          if (!implications.below().Has(c, d)) continue;
          EXPECT_TRUE(x.choice[d].valid()) << seed << ": " << d << " in every term of " << c;
          held += c != d;
        }
      }
    }
  }
  EXPECT_GT(held, 100u);
}

}  // namespace
}  // namespace l3c::egraph
