// The k cheapest terms, by tree and by DAG cost, against enumeration of all.
#include "egraph/extract/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "egraph/extract/linear_solver.h"
#include "tests/egraph/random_instance.h"

namespace l3c::egraph {
namespace {

// Prices of at least 1, so that the terms below a cost are finitely many even on cycles.
Instance RandomInstance(uint32_t seed, uint32_t classes) {
  InstanceShape shape;
  shape.classes = classes;
  shape.max_children = 2;
  shape.up_one_in = 5;
  shape.second_root_one_in = 3;
  shape.price = [](uint32_t random) { return 1.0 + random % 4; };
  return RandomInstance(seed, shape);
}

// Costs of all terms of `c` up to `most`, one entry a term.
std::vector<double> AllTerms(const Instance& instance, ClassRef c, double most) {
  std::vector<double> costs;
  for (uint32_t i = 0; i < instance.graph.NodeCountOf(c); ++i) {
    const ENodeRef n{instance.graph.FirstNode(c).index + i};
    std::vector<double> partial{instance.prices[n.index]};
    for (ClassRef child : instance.graph.NodeChildren(n)) {
      std::vector<double> next;
      for (double so_far : partial) {
        if (so_far >= most) continue;
        for (double x : AllTerms(instance, child, most - so_far)) next.push_back(so_far + x);
      }
      partial = std::move(next);
    }
    for (double x : partial) {
      if (x <= most) costs.push_back(x);
    }
  }
  return costs;
}

TEST(TopK, TreesAreTheCheapestTerms) {
  constexpr double kMost = 9;
  constexpr size_t kCount = 12;
  size_t compared = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Instance instance = RandomInstance(seed, 6);
    std::vector<double> expected{0};
    for (ClassRef root : instance.roots) {
      std::vector<double> next;
      for (double a : expected) {
        for (double b : AllTerms(instance, root, kMost)) next.push_back(a + b);
      }
      expected = std::move(next);
    }
    std::sort(expected.begin(), expected.end());
    const TopTrees top(instance.graph, instance.prices, instance.roots, kCount);
    std::set<std::string> seen;
    for (size_t i = 0; i < top.size(); ++i) {
      // Of what costs more than kMost, the enumeration may have missed some.
      if (top.cost(i) > kMost) break;
      ASSERT_LT(i, expected.size()) << seed;
      EXPECT_EQ(top.cost(i), expected[i]) << seed << ", term " << i;
      std::string text;
      const std::function<double(uint32_t)> walk = [&](uint32_t t) {
        text += "(" + std::to_string(top.term(t).node.index);
        double cost = instance.prices[top.term(t).node.index];
        for (uint32_t child : top.Children(t)) cost += walk(child);
        text += ")";
        return cost;
      };
      double cost = 0;
      for (uint32_t t : top.Roots(i)) cost += walk(t);
      EXPECT_EQ(cost, top.cost(i));
      EXPECT_TRUE(seen.insert(text).second) << seed << ": " << text << " twice";
      ++compared;
    }
    for (size_t i = 0; i < std::min(kCount, expected.size()); ++i) {
      if (expected[i] <= kMost) {
        EXPECT_LT(i, top.size()) << seed;
      }
    }
  }
  EXPECT_GT(compared, 100u);
}

// x, x·1, (x·1)·1, …: a class that holds a product of itself.
TEST(TopK, TreesOfACycle) {
  Instance instance;
  instance.graph.AddClass();
  instance.graph.AddNode({});
  instance.graph.AddNode(std::vector<ClassRef>{ClassRef{0}, ClassRef{1}});
  instance.graph.AddClass();
  instance.graph.AddNode({});
  instance.prices = {2, 0, 0};
  const TopTrees top(instance.graph, instance.prices, instance.roots, 5);
  ASSERT_EQ(top.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(top.cost(i), 2);
  const TopTrees cut_off(instance.graph, instance.prices, instance.roots, 5, 4);
  EXPECT_TRUE(cut_off.work_exhausted());
  EXPECT_LT(cut_off.size(), 5u);
}

// An e-node with very many children has as many successors, each of which differs at one of them.
TEST(TopK, TreesOfAWideNode) {
  constexpr uint32_t kWidth = 20'000;
  Instance instance;
  std::vector<ClassRef> children;
  for (uint32_t c = 0; c < kWidth; ++c) children.push_back(ClassRef{c + 1});
  instance.graph.AddClass();
  instance.graph.AddNode(children);
  instance.prices = {0};
  for (uint32_t c = 0; c < kWidth; ++c) {
    instance.graph.AddClass();
    instance.graph.AddNode({});
    instance.graph.AddNode({});
    instance.prices.insert(instance.prices.end(), {1, 2});
  }
  const TopTrees top(instance.graph, instance.prices, instance.roots, 30, 2'000'000);
  ASSERT_EQ(top.size(), 30u);
  EXPECT_EQ(top.cost(0), kWidth);
  for (size_t i = 1; i < top.size(); ++i) EXPECT_EQ(top.cost(i), kWidth + 1);
  EXPECT_FALSE(top.work_exhausted());
  EXPECT_TRUE(
      TopTrees(instance.graph, instance.prices, instance.roots, 30, 200'000).work_exhausted());
}

TEST(TopK, DagsAreTheCheapestChoices) {
  if (!LinearSolver::Available()) GTEST_SKIP() << "built without COIN-OR Cbc";
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Instance instance = RandomInstance(seed, 6);
    const NodeGraph& g = instance.graph;
    // Every choice, cut down to what it reaches.
    std::set<std::pair<double, std::vector<uint32_t>>> all;
    std::vector<ENodeRef> choice(g.class_count());
    const std::function<void(uint32_t)> choose = [&](uint32_t c) {
      if (c == g.class_count()) {
        const PlainExtraction x = MeasureChoice(g, instance.prices, instance.roots, choice);
        if (!x.feasible) return;
        std::vector<uint32_t> nodes;
        for (ENodeRef n : x.choice) nodes.push_back(n.index);
        all.emplace(x.dag_cost, nodes);
        return;
      }
      for (uint32_t i = 0; i < g.NodeCountOf(ClassRef{c}); ++i) {
        choice[c] = ENodeRef{g.FirstNode(ClassRef{c}).index + i};
        choose(c + 1);
      }
    };
    choose(0);
    const std::vector<TopDag> top = TopDags(g, instance.prices, instance.roots, 4);
    ASSERT_EQ(top.size(), std::min<size_t>(4, all.size())) << seed;
    auto expected = all.begin();
    std::set<std::vector<uint32_t>> seen;
    for (const TopDag& t : top) {
      EXPECT_TRUE(t.proven);
      EXPECT_NEAR(t.extraction.dag_cost, (expected++)->first, 1e-9) << seed;
      std::vector<uint32_t> nodes;
      for (ENodeRef n : t.extraction.choice) nodes.push_back(n.index);
      EXPECT_TRUE(seen.insert(nodes).second) << seed;
    }
  }
}

}  // namespace
}  // namespace l3c::egraph
