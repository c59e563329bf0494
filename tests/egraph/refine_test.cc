// Refinement on small random graphs without cycles, against brute force.
#include "egraph/extract/refine.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "egraph/egraph.h"

namespace l3c::egraph {
namespace {

class ArgumentCosts : public CostModel {
 public:
  const CostSchema& schema() const override { return schema_; }
  CostVector NodeCost(const EGraphView& view, ENodeRef n) const override {
    CostVector cost;
    return cost.Set(0, static_cast<double>(view.graph().AsI64(view.NodeArgs(n)[0])),
                    Evidence::kAnalytical);
  }

 private:
  CostSchema schema_{{{"time", "s"}}};
};

// Classes whose e-nodes have only later classes as children. The cost is the first argument.
struct RandomGraph {
  EGraph graph;
  std::vector<Value> classes;

  RandomGraph(uint32_t seed, uint32_t count, bool cyclic = false) {
    std::mt19937 random(seed);
    const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    const SortId t = graph.DeclareSort("T");
    const FunctionId name = graph.DeclareConstructor("Class", {kI64}, t, {1, false});
    const FunctionId leaf = graph.DeclareConstructor("Leaf", {kI64, kI64}, t);
    const FunctionId two = graph.DeclareConstructor("Two", {kI64, kI64, t, t}, t);
    for (uint32_t c = 0; c < count; ++c) classes.push_back(graph.Add(name, {graph.I64(c)}));
    for (uint32_t c = 0; c < count; ++c) {
      for (uint32_t i = 0, n = 1 + pick(3); i < n; ++i) {
        const Value cost = graph.I64(pick(10));
        const Value tag = graph.I64(c * 10 + i);
        if (c + 2 >= count || pick(4) == 0) {
          graph.Union(classes[c], graph.Add(leaf, {cost, tag}));
          continue;
        }
        const Value a = classes[c + 1 + pick(count - c - 1)];
        const Value b = classes[c + 1 + pick(count - c - 1)];
        graph.Union(classes[c], graph.Add(two, {cost, tag, a, b}));
      }
    }
    if (cyclic) {
      graph.Union(classes[count - 1],
                  graph.Add(two, {graph.I64(1), graph.I64(-1), classes[0], classes[0]}));
    }
    graph.Rebuild();
  }
};

// The least cost of all choices below `root`, a class taken once.
double BruteForce(const EGraphView& view, const Extractor& extractor, ClassRef root) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<uint8_t> reached(view.class_count());
  std::vector<uint32_t> open = {root.index};
  reached[root.index] = 1;
  // Takes the first open class, tries each of its e-nodes.
  const auto visit = [&](const auto& self, double cost) -> void {
    if (cost >= best) return;
    if (open.empty()) {
      best = cost;
      return;
    }
    const uint32_t c = open.back();
    open.pop_back();
    const uint32_t first = view.FirstNode(ClassRef{c}).index;
    for (uint32_t n = first; n < first + view.NodeCountOf(ClassRef{c}); ++n) {
      std::vector<uint32_t> added;
      for (ClassRef child : view.NodeChildren(ENodeRef{n})) {
        if (reached[child.index]) continue;
        reached[child.index] = 1;
        added.push_back(child.index);
        open.push_back(child.index);
      }
      const std::vector<uint32_t> before = open;
      self(self, cost + extractor.NodeObjective(ENodeRef{n}));
      open = before;
      for (uint32_t a : added) {
        reached[a] = 0;
        std::erase(open, a);
      }
    }
    open.push_back(c);
  };
  visit(visit, 0);
  return best;
}

double Recount(const Extractor& extractor, const Extraction& e) {
  double total = 0;
  for (ClassRef c : e.order) total += extractor.NodeObjective(e.Chosen(c));
  return total;
}

TEST(Refine, NeverWorseThanItsStartAndOftenTheOptimum) {
  int optimal = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    RandomGraph random(seed, 12);
    const EGraphView view(random.graph);
    const ArgumentCosts costs;
    const Extractor extractor(view, costs, Objective::Single(0));
    const std::vector<ClassRef> roots = {view.ClassOf(random.classes[0])};
    const Extraction start = extractor.Tree(roots);
    Refiner refiner(extractor);
    ASSERT_TRUE(refiner.acyclic());
    refiner.Start(start, start.choice);
    EXPECT_DOUBLE_EQ(refiner.total(), start.dag_cost);
    refiner.Improve(1'000'000);
    const Extraction refined = refiner.Result(roots);
    EXPECT_LE(refined.dag_cost, start.dag_cost);
    EXPECT_DOUBLE_EQ(refined.dag_cost, Recount(extractor, refined));
    EXPECT_NEAR(refined.dag_cost, refiner.total(), 1e-9);
    const double best = BruteForce(view, extractor, roots[0]);
    EXPECT_GE(refined.dag_cost, best);
    optimal += refined.dag_cost == best;
  }
  EXPECT_GE(optimal, 57);
}

TEST(Refine, LocalMovesEndWhereNoSwapHelps) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    RandomGraph random(seed, 12);
    const EGraphView view(random.graph);
    const ArgumentCosts costs;
    const Extractor extractor(view, costs, Objective::Single(0));
    const std::vector<ClassRef> roots = {view.ClassOf(random.classes[0])};
    Refiner refiner(extractor);
    // From the first e-node of each class.
    Extraction start;
    start.roots = roots;
    for (uint32_t c = 0; c < view.class_count(); ++c) {
      start.choice.push_back(view.FirstNode(ClassRef{c}));
    }
    refiner.Start(start, start.choice);
    const double before = refiner.total();
    refiner.Descend(1'000'000);
    const Extraction found = refiner.Result(roots);
    EXPECT_LE(found.dag_cost, before);
    EXPECT_DOUBLE_EQ(found.dag_cost, Recount(extractor, found));
    EXPECT_GE(found.dag_cost, BruteForce(view, extractor, roots[0]));
    const Refiner::Saved saved = refiner.Save();
    for (ClassRef c : found.order) {
      for (uint32_t i = 0; i < view.NodeCountOf(c); ++i) {
        Extraction other = found;
        other.choice[c.index] = ENodeRef{view.FirstNode(c).index + i};
        std::vector<ENodeRef> base;
        for (const uint32_t n : saved.choice) base.push_back(ENodeRef{n});
        refiner.Start(other, base);
        EXPECT_GE(refiner.total(), found.dag_cost - 1e-9);
      }
    }
  }
}

// What was tried in vain and is not tried again would be in vain again.
TEST(Refine, LeavesNoSwapThatHelps) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    RandomGraph random(seed, 120);
    const EGraphView view(random.graph);
    const ArgumentCosts costs;
    const Extractor extractor(view, costs, Objective::Single(0));
    const std::vector<ClassRef> roots = {view.ClassOf(random.classes[0]),
                                         view.ClassOf(random.classes[1])};
    const Extraction start = extractor.Tree(roots);
    Refiner refiner(extractor);
    refiner.Start(start, start.choice);
    refiner.Improve(10'000'000);
    std::vector<ENodeRef> base;
    for (const uint32_t n : refiner.Save().choice) base.push_back(ENodeRef{n});
    Refiner anew(extractor);
    anew.Start(refiner.Result(roots), base);
    anew.Improve(10'000'000, /*again=*/false);
    EXPECT_NEAR(anew.total(), refiner.total(), 1e-9) << seed;
  }
}

// A root over `count` pieces that share nothing, each with a choice of three. Taking another e-node
// for good concerns one piece alone, so the work grows as the graph does.
TEST(Refine, WorkFollowsWhatChanges) {
  const auto work = [](uint32_t count) {
    EGraph graph;
    const SortId t = graph.DeclareSort("T");
    const FunctionId leaf = graph.DeclareConstructor("Leaf", {kI64, kI64}, t);
    const FunctionId one = graph.DeclareConstructor("One", {kI64, kI64, t}, t);
    const FunctionId two = graph.DeclareConstructor("Two", {kI64, kI64, t, t}, t);
    std::optional<Value> root;
    for (uint32_t i = 0; i < count; ++i) {
      const Value tag = graph.I64(i);
      const Value under = graph.Add(leaf, {graph.I64(5), tag});
      graph.Union(under, graph.Add(leaf, {graph.I64(6), tag}));
      const Value piece = graph.Add(one, {graph.I64(2), tag, under});
      graph.Union(piece, graph.Add(one, {graph.I64(3), tag, under}));
      root = root ? graph.Add(two, {graph.I64(0), tag, *root, piece}) : piece;
    }
    graph.Rebuild();
    const EGraphView view(graph);
    const ArgumentCosts costs;
    const Extractor extractor(view, costs, Objective::Single(0));
    const std::vector<ClassRef> roots = {view.ClassOf(*root)};
    const Extraction start = extractor.Tree(roots);
    Refiner refiner(extractor);
    refiner.Start(start, start.choice);
    refiner.Improve(1'000'000'000);
    return refiner.work();
  };
  EXPECT_LT(work(800), 3 * work(400));
}

TEST(Refine, WhatIsFixedStays) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomGraph random(seed, 12);
    const EGraphView view(random.graph);
    const ArgumentCosts costs;
    const Extractor extractor(view, costs, Objective::Single(0));
    const std::vector<ClassRef> roots = {view.ClassOf(random.classes[0])};
    const Extraction start = extractor.Tree(roots);
    Refiner refiner(extractor);
    refiner.Start(start, start.choice);
    refiner.Improve(1'000'000);
    const Refiner::Saved saved = refiner.Save();
    for (uint32_t n = 0; n < view.node_count(); ++n) {
      refiner.Restore(saved);
      ASSERT_TRUE(refiner.Fix(ENodeRef{n}, 100'000, true));
      const std::vector<ClassRef> wanted = {roots[0], view.NodeClass(ENodeRef{n})};
      const Extraction forced = refiner.Result(wanted);
      EXPECT_EQ(forced.Chosen(wanted[1]).index, n);
      EXPECT_GE(forced.dag_cost, saved.total - 1e-9);
      // The same again gives the same.
      refiner.Restore(saved);
      refiner.Fix(ENodeRef{n}, 100'000, true);
      EXPECT_EQ(refiner.Result(wanted).dag_cost, forced.dag_cost);
    }
  }
}

TEST(Refine, KnowsACycle) {
  RandomGraph random(3, 10, /*cyclic=*/true);
  const EGraphView view(random.graph);
  const ArgumentCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  EXPECT_FALSE(Refiner(extractor).acyclic());
}

}  // namespace
}  // namespace l3c::egraph
