// Extraction against brute force on small random graphs.
#include "egraph/extract/extract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>

#include "egraph/extract/pareto.h"
#include "egraph/program.h"

namespace l3c::egraph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A graph of `classes` classes with up to three e-nodes each and random children, so with shared
// classes, cycles and classes without finite terms. The cost of an e-node is its first argument.
struct RandomGraph {
  EGraph graph;
  std::vector<Value> classes;

  RandomGraph(uint32_t seed, uint32_t count, bool acyclic) {
    std::mt19937 random(seed);
    const auto pick = [&](uint32_t n) { return random() % n; };
    const SortId t = graph.DeclareSort("T");
    const FunctionId seed_node = graph.DeclareConstructor("Class", {kI64}, t, {1, false});
    const FunctionId leaf = graph.DeclareConstructor("Leaf", {kI64, kI64}, t);
    const FunctionId one = graph.DeclareConstructor("One", {kI64, kI64, t}, t);
    const FunctionId two = graph.DeclareConstructor("Two", {kI64, kI64, t, t}, t);
    for (uint32_t c = 0; c < count; ++c) classes.push_back(graph.Add(seed_node, {graph.I64(c)}));
    for (uint32_t c = 0; c < count; ++c) {
      const uint32_t nodes = 1 + pick(3);
      for (uint32_t i = 0; i < nodes; ++i) {
        const Value cost = graph.I64(pick(10));
        const Value tag = graph.I64(c * 10 + i);
        const uint32_t low = acyclic ? c + 1 : 0;
        const uint32_t kind = low >= count ? 0 : pick(acyclic ? 8 : 4);
        const auto child = [&] { return classes[low + pick(count - low)]; };
        Value made;
        if (kind == 0) {
          made = graph.Add(leaf, {cost, tag});
        } else if (kind % 2 == 1) {
          const Value a = child();
          made = graph.Add(one, {cost, tag, a});
        } else {
          const Value a = child();
          const Value b = child();
          made = graph.Add(two, {cost, tag, a, b});
        }
        graph.Union(classes[c], made);
      }
    }
    graph.Rebuild();
  }
};

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

// Every acyclic choice for what the roots reach: the least DAG cost and the least tree cost.
struct BruteForce {
  const EGraphView& view;
  const Extractor& extractor;
  std::vector<ClassRef> roots;
  double best_dag = kInfinity;
  double best_tree = kInfinity;
  uint64_t visited = 0;
  std::vector<ENodeRef> choice;

  void Run() {
    choice.assign(view.class_count(), ENodeRef{});
    std::vector<uint32_t> todo;
    for (ClassRef r : roots) todo.push_back(r.index);
    Choose(todo, 0);
  }
  void Choose(const std::vector<uint32_t>& todo, double dag) {
    if (++visited > 300000) return;
    size_t i = 0;
    while (i < todo.size() && choice[todo[i]].valid()) ++i;
    if (i == todo.size()) {
      const double tree = Tree();
      if (tree < kInfinity) {
        best_dag = std::min(best_dag, dag);
        best_tree = std::min(best_tree, tree);
      }
      return;
    }
    const uint32_t c = todo[i];
    for (uint32_t k = 0; k < view.NodeCountOf(ClassRef{c}); ++k) {
      const ENodeRef n{view.FirstNode(ClassRef{c}).index + k};
      const auto children = view.NodeChildren(n);
      if (std::any_of(children.begin(), children.end(), [](ClassRef x) { return !x.valid(); })) {
        continue;
      }
      choice[c] = n;
      std::vector<uint32_t> more(todo.begin() + static_cast<ptrdiff_t>(i) + 1, todo.end());
      for (ClassRef child : children) more.push_back(child.index);
      Choose(more, dag + extractor.NodeObjective(n));
      choice[c] = ENodeRef{};
    }
  }
  double Tree() const {
    std::vector<int> state(view.class_count(), 0);
    std::vector<double> cost(view.class_count(), 0);
    std::function<bool(uint32_t)> visit = [&](uint32_t c) {
      if (state[c] == 1) return false;
      if (state[c] == 2) return true;
      state[c] = 1;
      cost[c] = extractor.NodeObjective(choice[c]);
      for (ClassRef child : view.NodeChildren(choice[c])) {
        if (!visit(child.index)) return false;
        cost[c] += cost[child.index];
      }
      state[c] = 2;
      return true;
    };
    double sum = 0;
    for (ClassRef r : roots) {
      if (!visit(r.index)) return kInfinity;
      sum += cost[r.index];
    }
    return sum;
  }
};

void ExpectAcyclic(const EGraphView& view, const Extraction& e) {
  std::set<uint32_t> done;
  for (ClassRef c : e.order) {
    for (ClassRef child : view.NodeChildren(e.Chosen(c))) {
      EXPECT_TRUE(done.count(child.index)) << "a child must come before its parent";
    }
    done.insert(c.index);
  }
  for (ClassRef root : e.roots) EXPECT_TRUE(done.count(root.index));
}

TEST(Extract, AgreesWithBruteForceOnRandomGraphs) {
  const ArgumentCosts costs;
  int optimal = 0, finite = 0, complete = 0;
  double greedy_sum = 0, best_sum = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const RandomGraph g(seed, 4 + seed % 9, seed % 2 == 0);
    const EGraphView view(g.graph);
    const Extractor extractor(view, costs, Objective::Single(0));
    std::vector<ClassRef> roots{view.ClassOf(g.classes[0])};
    if (seed % 3 == 0) roots.push_back(view.ClassOf(g.classes[1]));
    BruteForce brute{view, extractor, roots};
    brute.Run();
    const Extraction tree = extractor.Tree(roots);
    const Extraction dag = extractor.GreedyDag(roots);
    ASSERT_EQ(tree.feasible, dag.feasible);
    if (!tree.feasible) {
      EXPECT_EQ(brute.best_tree, kInfinity) << seed;
      continue;
    }
    ++finite;
    ExpectAcyclic(view, tree);
    ExpectAcyclic(view, dag);
    EXPECT_LE(dag.dag_cost, tree.dag_cost) << seed;
    if (brute.visited > 300000) continue;
    ++complete;
    EXPECT_EQ(tree.tree_cost, brute.best_tree) << seed;
    EXPECT_GE(dag.dag_cost, brute.best_dag) << seed;
    optimal += dag.dag_cost == brute.best_dag;
    greedy_sum += dag.dag_cost;
    best_sum += brute.best_dag;
  }
  EXPECT_GT(finite, 200);
  EXPECT_GT(complete, 200);
  // A heuristic may miss the optimum, but seldom and by little.
  EXPECT_GE(optimal, complete * 97 / 100) << complete;
  EXPECT_LE(greedy_sum, best_sum * 1.005);
}

// A view of a graph that has changed since names other classes by the same numbers.
TEST(Extract, AStaleViewIsSaid) {
  EGraph graph;
  const SortId t = graph.DeclareSort("T");
  const FunctionId leaf = graph.DeclareConstructor("Leaf", {kI64}, t);
  const Value a = graph.Add(leaf, {graph.I64(1)});
  const Value b = graph.Add(leaf, {graph.I64(2)});
  const EGraphView view(graph);
  const ENodeRef node = view.FindNode(leaf, std::vector<Value>{graph.I64(1)});
  EXPECT_EQ(view.NodeText(node), "(Leaf 1)");
  graph.I64(int64_t{1} << 40);  // a literal is no change
  EXPECT_TRUE(view.ClassOf(a).valid());
  graph.Union(a, b);
  graph.Rebuild();
  EXPECT_THROW(view.ClassOf(a), std::logic_error);
  EXPECT_THROW(view.FindNode(leaf, std::vector<Value>{graph.I64(1)}), std::logic_error);
  EXPECT_THROW(view.NodeText(node), std::logic_error);
  EXPECT_THROW(view.graph(), std::logic_error);
  EXPECT_EQ(EGraphView(graph).class_count(), 1u);
}

TEST(Extract, SharedKernelPaysOnlyJointly) {
  // Four values, each from a kernel of its own at 10 or from one output of a common kernel at 25.
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, R"(
    (datatype Kernel (Common :cost 25))
    (datatype Stored (Own i64 :cost 10) (Out Kernel i64 :cost 0))
    (let r0 (Own 0)) (let r1 (Own 1)) (let r2 (Own 2)) (let r3 (Own 3))
    (union r0 (Out (Common) 0)) (union r1 (Out (Common) 1))
    (union r2 (Out (Common) 2)) (union r3 (Out (Common) 3)))",
                          "t.egg")
                  .ok());
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  std::vector<ClassRef> roots;
  for (const char* name : {"r0", "r1", "r2", "r3"}) {
    roots.push_back(view.ClassOf(graph.FindGlobal(name)->value));
  }
  const Extraction all = extractor.GreedyDag(roots);
  EXPECT_EQ(all.dag_cost, 25);
  EXPECT_EQ(extractor.Tree(roots).dag_cost, 40);
  // For two of them the common kernel is not worth it.
  EXPECT_EQ(extractor.GreedyDag(std::span(roots).first(2)).dag_cost, 20);

  // Forcing one root away from it yields what the list of alternatives said.
  const std::vector<Alternative> alternatives = extractor.Alternatives(all, roots[2]);
  ASSERT_EQ(alternatives.size(), 2u);
  EXPECT_EQ(alternatives[0].node, all.Chosen(roots[2]));
  EXPECT_EQ(alternatives[1].difference, 10);
  ExtractOptions forced;
  forced.forced[roots[2]] = alternatives[1].node;
  const Extraction other = extractor.GreedyDag(roots, forced);
  EXPECT_EQ(other.dag_cost, 35);
  EXPECT_EQ(other.Chosen(roots[2]), alternatives[1].node);
}

TEST(Extract, ForbiddenNodesAndInfeasibleRoots) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, R"(
    (datatype T (A) (B) (F T))
    (let a (A)) (let b (F a))
    (union a (F a)))",
                          "t.egg")
                  .ok());
  const EGraphView view(graph);
  class NoLeaves : public CostModel {
   public:
    const CostSchema& schema() const override { return schema_; }
    CostVector NodeCost(const EGraphView& v, ENodeRef n) const override {
      if (v.function(n).name == "A") return CostVector::Forbidden();
      return CostVector{}.Set(0, 1, Evidence::kMeasured);
    }
    CostSchema schema_{{{"time", "s"}}};
  };
  const NoLeaves costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const ClassRef root = view.ClassOf(graph.FindGlobal("a")->value);
  for (ExtractMethod method : {ExtractMethod::kTree, ExtractMethod::kGreedyDag}) {
    const Extraction e = extractor.Extract(method, std::span(&root, 1));
    EXPECT_FALSE(e.feasible);
    EXPECT_EQ(e.infeasible_roots, std::vector<ClassRef>{root});
  }
}

TEST(Extract, EvidenceOfASumIsItsWorst) {
  CostVector a, b;
  a.Set(0, 1, Evidence::kMeasured).Set(1, 5, Evidence::kInterpolated);
  b.Set(0, 2, Evidence::kAnalytical);
  a += b;
  EXPECT_EQ(a.value[0], 3);
  EXPECT_EQ(a.evidence[0], Evidence::kAnalytical);
  EXPECT_EQ(a.evidence[1], Evidence::kInterpolated);
}

// All terms of an acyclic class, as cost vectors.
std::vector<ParetoCost> AllTerms(const EGraphView& view, ClassRef c, const ParetoOptions& o) {
  std::vector<ParetoCost> terms;
  for (uint32_t k = 0; k < view.NodeCountOf(c); ++k) {
    const ENodeRef n{view.FirstNode(c).index + k};
    std::vector<ParetoCost> partial{o.node_cost(view, n)};
    for (ClassRef child : view.NodeChildren(n)) {
      std::vector<ParetoCost> next;
      for (const ParetoCost& below : AllTerms(view, child, o)) {
        for (ParetoCost sum : partial) {
          for (size_t i = 0; i < o.components; ++i) sum[i] += below[i];
          next.push_back(sum);
        }
      }
      partial = std::move(next);
    }
    terms.insert(terms.end(), partial.begin(), partial.end());
  }
  return terms;
}

TEST(Pareto, AgreesWithEnumeration) {
  ParetoOptions options;
  options.components = 2;
  options.node_cost = [](const EGraphView& view, ENodeRef n) {
    ParetoCost c{};
    c[0] = static_cast<double>(view.graph().AsI64(view.NodeArgs(n)[0]));
    c[1] = static_cast<double>((view.graph().AsI64(view.NodeArgs(n)[1]) * 7) % 11);
    return c;
  };
  int compared = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const RandomGraph g(seed, 3 + seed % 5, true);
    const EGraphView view(g.graph);
    const ClassRef root = view.ClassOf(g.classes[0]);
    ParetoOptions o = options;
    if (CountTerms(view, root) > 3000) continue;
    ++compared;
    const std::vector<ParetoCost> all = AllTerms(view, root, o);
    ASSERT_EQ(CountTerms(view, root), static_cast<double>(all.size())) << seed;
    o.k = 1 + seed % 3;
    o.upper_bounds[1] = seed % 4 == 0 ? 12 : kInfinity;
    const ParetoResult result = ParetoExtract(view, root, o);
    ASSERT_TRUE(result.acyclic);
    // The k-skyband of all terms within the bounds, as a multiset of costs.
    std::vector<std::pair<double, double>> within, expected, got;
    for (const ParetoCost& c : all) {
      if (c[1] <= o.upper_bounds[1]) within.emplace_back(c[0], c[1]);
    }
    std::sort(within.begin(), within.end());
    for (size_t i = 0; i < within.size(); ++i) {
      size_t better = 0;
      for (size_t j = 0; j < i; ++j) better += within[j].second <= within[i].second;
      if (better < o.k) expected.push_back(within[i]);
    }
    for (const ParetoTerm& t : result.terms) {
      got.emplace_back(t.cost[0], t.cost[1]);
      ParetoCost sum{};
      for (ENodeRef n : t.nodes) {
        const ParetoCost c = o.node_cost(view, n);
        sum[0] += c[0];
        sum[1] += c[1];
      }
      EXPECT_EQ(sum, t.cost);
    }
    EXPECT_EQ(got, expected) << seed;
  }
  EXPECT_GT(compared, 200);
}

TEST(Pareto, ChainsOfWidthsAreCountedNotEnumerated) {
  // depth 40, 9 widths at each level: 9^39 networks, polynomially many e-nodes.
  EGraph graph;
  const SortId net = graph.DeclareSort("Net");
  const FunctionId input = graph.DeclareConstructor("Input", {}, net);
  const FunctionId layer = graph.DeclareConstructor("Layer", {net, kI64}, net);
  const FunctionId slot = graph.DeclareConstructor("Slot", {kI64, kI64}, net, {1, false});
  std::vector<Value> previous{graph.Add(input, {})};
  for (int depth = 1; depth <= 40; ++depth) {
    std::vector<Value> level;
    for (int w = 0; w < (depth == 40 ? 1 : 9); ++w) {
      const Value c = graph.Add(slot, {graph.I64(depth), graph.I64(w)});
      for (Value p : previous) graph.Union(c, graph.Add(layer, {p, graph.I64(w)}));
      level.push_back(c);
    }
    previous = level;
  }
  graph.Rebuild();
  const EGraphView view(graph);
  const ClassRef root = view.ClassOf(previous[0]);
  EXPECT_NEAR(CountTerms(view, root) / std::pow(9.0, 39), 1, 1e-9);
  ParetoOptions o;
  o.components = 2;
  o.node_cost = [&](const EGraphView& v, ENodeRef n) {
    ParetoCost c{};
    if (v.NodeFunction(n) == input) return c;
    const auto w = static_cast<double>(v.graph().AsI64(v.NodeArgs(n)[1]));
    c[0] = 8 - w;
    c[1] = w * w;
    return c;
  };
  o.upper_bounds[1] = 200;
  o.k = 3;
  const ParetoResult result = ParetoExtract(view, root, o);
  EXPECT_FALSE(result.work_exhausted);
  EXPECT_FALSE(result.terms.empty());
  EXPECT_GT(result.over_bound[1], 0u);
  EXPECT_GT(result.dominated, 0u);
  for (const ParetoTerm& t : result.terms) {
    EXPECT_LE(t.cost[1], 200);
    EXPECT_EQ(t.nodes.size(), 41u);
  }
  o.max_work = 1000;
  const ParetoResult cut = ParetoExtract(view, root, o);
  EXPECT_TRUE(cut.work_exhausted);
  EXPECT_FALSE(cut.terms.empty());
}

TEST(Pareto, CyclesAreSaid) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, "(datatype T (A) (F T)) (union (A) (F (A)))", "t.egg").ok());
  const EGraphView view(graph);
  const ClassRef root{0};
  ParetoOptions o;
  o.node_cost = [](const EGraphView&, ENodeRef) { return ParetoCost{1}; };
  EXPECT_FALSE(ParetoExtract(view, root, o).acyclic);
  EXPECT_EQ(CountTerms(view, root), kInfinity);
}

}  // namespace
}  // namespace l3c::egraph
