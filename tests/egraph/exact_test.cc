// Exact extraction against brute force on small random graphs, and by known answers.
#include "egraph/extract/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/extract.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/plain.h"
#include "egraph/program.h"
#include "tests/egraph/random_instance.h"

namespace l3c::egraph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Instance RandomInstance(uint32_t seed, uint32_t classes, bool negative) {
  InstanceShape shape;
  shape.classes = classes;
  shape.second_root_one_in = 2;
  shape.price = [=](uint32_t random) {
    return random % 10 * (seed % 2 == 0 ? 1 : 0.37) - (negative ? 4 : 0);
  };
  return RandomInstance(seed, shape);
}

// The least over every assignment of frequencies' levels and e-nodes to classes, by the definition
// in the header: a class is needed at the highest frequency that anything needs it at.
double BruteForce(const Instance& instance, const ExactOptions& options) {
  const NodeGraph& g = instance.graph;
  std::vector<ENodeRef> choice(g.class_count());
  double best = kInfinity;
  const auto measure = [&] {
    std::vector<double> frequency(g.class_count(), 0);
    bool changed = true;
    const auto raise = [&](ClassRef c, double f) {
      if (frequency[c.index] >= f) return;
      frequency[c.index] = f;
      changed = true;
    };
    for (ClassRef root : instance.roots) raise(root, 1);
    for (const Requirement& r : options.requirements) {
      if (!r.node.valid()) raise(r.needs, r.frequency);
    }
    while (changed) {
      changed = false;
      for (uint32_t c = 0; c < g.class_count(); ++c) {
        if (frequency[c] == 0) continue;
        for (ClassRef child : g.NodeChildren(choice[c])) raise(child, frequency[c]);
        for (const Requirement& r : options.requirements) {
          if (r.node == choice[c]) raise(r.needs, std::min(r.frequency, frequency[c]));
        }
      }
    }
    // Acyclic: classes can be taken one after another.
    std::vector<uint8_t> done(g.class_count(), 0);
    size_t left = 0;
    for (double f : frequency) left += f > 0;
    for (bool progress = true; progress;) {
      progress = false;
      for (uint32_t c = 0; c < g.class_count(); ++c) {
        if (done[c] || frequency[c] == 0) continue;
        const auto children = g.NodeChildren(choice[c]);
        if (!std::all_of(children.begin(), children.end(),
                         [&](ClassRef d) { return done[d.index] != 0; })) {
          continue;
        }
        done[c] = 1;
        --left;
        progress = true;
      }
    }
    if (left > 0) return kInfinity;
    double cost = 0;
    std::vector<ENodeRef> reached(g.class_count());
    for (uint32_t c = 0; c < g.class_count(); ++c) {
      if (frequency[c] == 0) continue;
      cost += frequency[c] * instance.prices[choice[c].index];
      reached[c] = choice[c];
    }
    for (const ChoiceBound& bound : options.bounds) {
      double use = 0;
      for (const auto& [n, x] : bound.terms) use += reached[g.NodeClass(n).index] == n ? x : 0;
      if (use > bound.limit) return kInfinity;
    }
    if (options.lazy_bounds && !options.lazy_bounds(reached).empty()) return kInfinity;
    return cost;
  };
  const std::function<void(uint32_t)> choose = [&](uint32_t c) {
    if (c == g.class_count()) {
      best = std::min(best, measure());
      return;
    }
    for (uint32_t i = 0; i < g.NodeCountOf(ClassRef{c}); ++i) {
      choice[c] = ENodeRef{g.FirstNode(ClassRef{c}).index + i};
      choose(c + 1);
    }
  };
  choose(0);
  return best;
}

void ExpectOptimal(const Instance& instance, const ExactOptions& options, const char* what,
                   uint32_t seed) {
  SCOPED_TRACE(std::string(what) + ", seed " + std::to_string(seed));
  const double expected = BruteForce(instance, options);
  const ExactSolution found = SolveExact(instance.graph, instance.prices, instance.roots, options);
  if (!LinearSolver::Available()) {
    if (!found.feasible) return;
    EXPECT_GE(found.cost, expected - 1e-9);
    EXPECT_LE(found.lower_bound, expected + 1e-9);
    return;
  }
  EXPECT_EQ(found.feasible, expected < kInfinity);
  EXPECT_EQ(found.infeasible, !(expected < kInfinity));
  if (!(expected < kInfinity)) return;
  EXPECT_TRUE(found.optimal);
  EXPECT_NEAR(found.cost, expected, 1e-6);
  const ExactSolution again = SolveExact(instance.graph, instance.prices, instance.roots, options);
  EXPECT_EQ(found.choice, again.choice);
}

TEST(Exact, RandomGraphs) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    ExpectOptimal(RandomInstance(seed, 5 + seed % 6, false), {}, "plain", seed);
  }
}

TEST(Exact, NegativeCosts) {
  for (uint32_t seed = 1000; seed < 1200; ++seed) {
    ExpectOptimal(RandomInstance(seed, 5 + seed % 5, true), {}, "negative", seed);
  }
}

TEST(Exact, RequirementsAtTheirFrequency) {
  for (uint32_t seed = 2000; seed < 2200; ++seed) {
    const Instance instance = RandomInstance(seed, 5 + seed % 5, false);
    std::mt19937 random(seed);
    const auto classes = static_cast<uint32_t>(instance.graph.class_count());
    const auto nodes = static_cast<uint32_t>(instance.graph.node_count());
    ExactOptions options;
    constexpr double kFrequencies[] = {1, 0.5, 0.125};
    for (uint32_t i = 0; i < 3; ++i) {
      options.requirements.push_back({ENodeRef{static_cast<uint32_t>(random() % nodes)},
                                      ClassRef{static_cast<uint32_t>(random() % classes)},
                                      kFrequencies[random() % 3]});
    }
    if (seed % 3 == 0) {
      options.requirements.push_back(
          {ENodeRef{}, ClassRef{static_cast<uint32_t>(random() % classes)}, 0.125});
    }
    ExpectOptimal(instance, options, "requirements", seed);
  }
}

TEST(Exact, ResourceBounds) {
  for (uint32_t seed = 3000; seed < 3200; ++seed) {
    const Instance instance = RandomInstance(seed, 5 + seed % 5, false);
    std::mt19937 random(seed);
    ChoiceBound bound;
    for (uint32_t n = 0; n < instance.graph.node_count(); ++n) {
      bound.terms.emplace_back(ENodeRef{n}, static_cast<double>(random() % 5));
    }
    bound.limit = static_cast<double>(2 + random() % 12);
    ExactOptions options;
    options.bounds.push_back(bound);
    ExpectOptimal(instance, options, "bounds", seed);
    // The same, said only when it is violated.
    ExactOptions lazy;
    lazy.lazy_bounds = [&](std::span<const ENodeRef> choice) {
      double use = 0;
      for (ENodeRef n : choice) use += n.valid() ? bound.terms[n.index].second : 0;
      return use > bound.limit ? std::vector<ChoiceBound>{bound} : std::vector<ChoiceBound>{};
    };
    ExpectOptimal(instance, lazy, "lazy bounds", seed);
  }
}

// Too large for brute force: with the reductions and without them.
TEST(Exact, ReductionsKeepTheOptimum) {
  if (!LinearSolver::Available()) GTEST_SKIP() << "built without Cbc";
  for (uint32_t seed = 4000; seed < 4040; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance = RandomInstance(seed, 25, false);
    const ExactSolution reduced = SolveExact(instance.graph, instance.prices, instance.roots);
    ExactOptions whole;
    whole.lazy_bounds = [](std::span<const ENodeRef>) { return std::vector<ChoiceBound>(); };
    const ExactSolution unreduced =
        SolveExact(instance.graph, instance.prices, instance.roots, whole);
    ASSERT_EQ(reduced.feasible, unreduced.feasible);
    if (!reduced.feasible) continue;
    EXPECT_TRUE(reduced.optimal);
    EXPECT_TRUE(unreduced.optimal);
    EXPECT_NEAR(reduced.cost, unreduced.cost, 1e-6);
    EXPECT_LE(reduced.cost - 1e-6,
              PlainGreedyDag(instance.graph, instance.prices, instance.roots, 1'000'000).dag_cost);
    // The choice is one: measured on its own it costs what is said.
    EXPECT_DOUBLE_EQ(
        MeasureChoice(instance.graph, instance.prices, instance.roots, reduced.choice).dag_cost,
        reduced.cost);
  }
}

// All that matters is tiny beside a price that no good choice pays; with a search that finds
// little, it is up to the bounds.
TEST(Exact, TolerancesAreRelative) {
  if (!LinearSolver::Available()) GTEST_SKIP() << "built without Cbc";
  for (uint32_t seed = 5000; seed < 5200; ++seed) {
    SCOPED_TRACE(seed);
    Instance instance = RandomInstance(seed, 9, false);
    for (size_t n = 0; n < instance.prices.size(); ++n) {
      instance.prices[n] = n % 7 == 3 ? 1 : instance.prices[n] * 1e-8;
    }
    const double expected = BruteForce(instance, {});
    if (!(expected < kInfinity)) continue;
    ExactOptions options;
    options.max_search_work = 0;
    const ExactSolution found =
        SolveExact(instance.graph, instance.prices, instance.roots, options);
    EXPECT_TRUE(found.optimal);
    EXPECT_LE(std::abs(found.cost - expected), 1e-6 * expected);
  }
}

// Seven summands in any order: each sum of a part of them, by each way to cut that in two. A
// relaxation shares the small sums among all larger ones, and without path cuts is far below the
// six additions that it takes; with them it is not.
TEST(Exact, SumsInAnyOrder) {
  if (!LinearSolver::Available()) GTEST_SKIP() << "built without Cbc";
  constexpr uint32_t kSummands = 7;
  Instance instance;
  const auto of = [](uint32_t part) { return ClassRef{part - 1}; };
  for (uint32_t part = 1; part < 1u << kSummands; ++part) {
    instance.graph.AddClass();
    if ((part & (part - 1)) == 0) instance.graph.AddNode({});
    for (uint32_t left = (part - 1) & part; left > (part ^ left); left = (left - 1) & part) {
      instance.graph.AddNode(std::vector<ClassRef>{of(left), of(part ^ left)});
    }
  }
  instance.prices.assign(instance.graph.node_count(), 1.5);
  instance.roots = {of((1u << kSummands) - 1)};
  ExactOptions options;
  options.max_branch_nodes = 0;
  const ExactSolution found = SolveExact(instance.graph, instance.prices, instance.roots, options);
  EXPECT_TRUE(found.optimal);
  EXPECT_DOUBLE_EQ(found.cost, 1.5 * (2 * kSummands - 1));
}

TEST(Exact, FrequenciesAreChecked) {
  const Instance instance = RandomInstance(1, 6, false);
  for (double frequency : {0.0, -0.5, 2.0, kInfinity, std::nan("")}) {
    ExactOptions options;
    options.requirements.push_back({ENodeRef{}, ClassRef{3}, 0.5});
    options.requirements.push_back({ENodeRef{}, ClassRef{2}, frequency});
    const ExactSolution found =
        SolveExact(instance.graph, instance.prices, instance.roots, options);
    EXPECT_NE(found.error.find("frequency"), std::string::npos) << found.error;
    EXPECT_FALSE(found.feasible || found.infeasible || found.optimal);
  }
  ExactOptions nothing;
  nothing.requirements.push_back({ENodeRef{}, ClassRef{}});
  EXPECT_FALSE(SolveExact(instance.graph, instance.prices, instance.roots, nothing).error.empty());
}

TEST(Exact, NoTermAndInvalidRoots) {
  PlainNodeGraph graph;
  const ClassRef a = graph.AddClass();
  graph.AddNode(std::vector<ClassRef>{ClassRef{1}});
  const ClassRef b = graph.AddClass();
  graph.AddNode(std::vector<ClassRef>{a});
  const double prices[] = {1, 1};
  EXPECT_TRUE(SolveExact(graph, prices, std::vector<ClassRef>{a}).infeasible);
  EXPECT_TRUE(SolveExact(graph, prices, std::vector<ClassRef>{b, ClassRef{}}).infeasible);
  const ExactSolution none = SolveExact(graph, prices, {});
  EXPECT_TRUE(none.optimal);
  EXPECT_EQ(none.cost, 0);
}

// --- Known answers.

// A program whose constructors carry their own costs; the class of each name is a global.
struct Written {
  EGraph graph;
  std::optional<EGraphView> view;
  DeclaredCosts costs;
  std::optional<Extractor> extractor;

  explicit Written(const std::string& text) {
    const ProgramResult result = LoadProgram(graph, text, "known.egg");
    EXPECT_TRUE(result.ok()) << result.status.ToString();
    graph.Rebuild();
    view.emplace(graph);
    extractor.emplace(*view, costs, Objective::Single(0));
  }
  ClassRef Class(const std::string& name) const {
    return view->ClassOf(graph.FindGlobal(name)->value);
  }
  ENodeRef Node(const std::string& name, const std::string& constructor) const {
    const ClassRef c = Class(name);
    for (uint32_t i = 0; i < view->NodeCountOf(c); ++i) {
      const ENodeRef n{view->FirstNode(c).index + i};
      if (view->function(n).name == constructor) return n;
    }
    return ENodeRef{};
  }
  std::string Chosen(const Extraction& e, const std::string& name) const {
    const ENodeRef n = e.Chosen(Class(name));
    return n.valid() ? view->function(n).name : "";
  }
};

// A weight with a layout that is dearer for the backward pass alone and cheaper for the whole step.
TEST(ExactKnown, LayoutThatServesBothPasses) {
  Written w(R"(
    (sort S)
    (constructor Rows () S :cost 0) (constructor Panels () S :cost 0)
    (constructor ForwardRows (S) S :cost 46) (constructor ForwardPanels (S) S :cost 16)
    (constructor BackwardRows (S) S :cost 33) (constructor OnePassPanels (S) S :cost 40)
    (constructor Update (S) S :cost 10) (constructor Out (S i64) S :cost 0)
    (constructor Step (S S) S :cost 0)
    (let in_rows (Rows)) (let in_panels (Panels))
    (let forward (ForwardRows in_rows)) (union forward (ForwardPanels in_panels))
    (let one_pass (OnePassPanels in_panels))
    (let gradient (BackwardRows in_rows)) (union gradient (Out one_pass 0))
    (let out_panels (Out one_pass 1))
    (let out_rows (Update gradient))
    (let step (Step forward gradient))
  )");
  ExtractOptions options;
  options.exact.requirements = {{w.Node("in_rows", "Rows"), w.Class("out_rows")},
                                {w.Node("in_panels", "Panels"), w.Class("out_panels")}};
  const std::vector<ClassRef> roots{w.Class("step")};
  ExactSolution details;
  const Extraction best = w.extractor->Exact(roots, options, &details);
  ASSERT_TRUE(best.feasible);
  EXPECT_EQ(best.dag_cost, 56);
  EXPECT_EQ(w.Chosen(best, "forward"), "ForwardPanels");
  EXPECT_EQ(w.Chosen(best, "gradient"), "Out");
  EXPECT_EQ(w.Chosen(best, "in_rows"), "");
  EXPECT_EQ(w.Chosen(best, "out_panels"), "Out");
  EXPECT_EQ(details.optimal, LinearSolver::Available());
  // By its own class alone the backward pass would take the rows.
  const Extraction alone = w.extractor->Tree(std::vector<ClassRef>{w.Class("gradient")});
  EXPECT_EQ(w.Chosen(alone, "gradient"), "BackwardRows");
}

// x is in memory. relu is cheaper computed again by both readers than stored; gelu read by ten is
// stored once.
TEST(ExactKnown, ComputedInlineOrStored) {
  std::string text = R"(
    (sort S)
    (constructor X () S :cost 0)
    (constructor Load (S i64) S :cost 10) (constructor Inline (S i64) S :cost 10)
    (constructor Store (S) S :cost 20)
    (constructor Gelu (S i64) S :cost 45) (constructor StoreGelu (S) S :cost 55)
    (constructor None () S :cost 0) (constructor Kernel (S S) S :cost 0)
    (let x (X)) (let relu (Store x)) (let gelu (StoreGelu x)))";
  const auto kernels = [&](const std::string& name, const std::string& value,
                           const std::string& inline_op, int count) {
    text += "(let " + name + "0 (None))";
    for (int k = 1; k <= count; ++k) {
      const std::string number = std::to_string(k);
      text += "(let in_" + name + number + " (Load " + value + " " + number + "))";
      text += "(union in_" + name + number + " (" + inline_op + " x " + number + "))";
      text += "(let " + name + number + " (Kernel in_" + name + number + " " + name +
              std::to_string(k - 1) + "))";
    }
  };
  kernels("r", "relu", "Inline", 2);
  kernels("g", "gelu", "Gelu", 10);
  Written w(text);
  const Extraction relu = w.extractor->Exact(std::vector<ClassRef>{w.Class("r2")});
  EXPECT_EQ(relu.dag_cost, 20);
  EXPECT_EQ(w.Chosen(relu, "relu"), "");
  const Extraction gelu = w.extractor->Exact(std::vector<ClassRef>{w.Class("g10")});
  EXPECT_EQ(gelu.dag_cost, 155);
  EXPECT_EQ(w.Chosen(gelu, "gelu"), "StoreGelu");
}

// Two readers of one weight, one writer: both layouts are written. What only evaluation reads
// weighs as often as evaluation runs.
TEST(ExactKnown, TiedWeightsAndReadersAtOtherFrequencies) {
  Written w(R"(
    (sort S)
    (constructor Rows () S :cost 0) (constructor Panels () S :cost 0)
    (constructor EmbedRows (S) S :cost 2) (constructor EmbedPanels (S) S :cost 9)
    (constructor OutputRows (S) S :cost 30) (constructor OutputPanels (S) S :cost 10)
    (constructor Write () S :cost 5) (constructor Relayout (S) S :cost 4)
    (constructor Transposed (S) S :cost 6)
    (constructor Step (S S) S :cost 0)
    (let in_rows (Rows)) (let in_panels (Panels))
    (let embed (EmbedRows in_rows)) (union embed (EmbedPanels in_panels))
    (let output (OutputRows in_rows)) (union output (OutputPanels in_panels))
    (let out_panels (Write)) (let out_rows (Relayout out_panels))
    (let transposed (Transposed out_rows))
    (let step (Step embed output))
  )");
  ExtractOptions options;
  options.exact.requirements = {{w.Node("in_rows", "Rows"), w.Class("out_rows")},
                                {w.Node("in_panels", "Panels"), w.Class("out_panels")}};
  const std::vector<ClassRef> roots{w.Class("step")};
  const Extraction both = w.extractor->Exact(roots, options);
  EXPECT_EQ(both.dag_cost, 21);
  EXPECT_EQ(w.Chosen(both, "embed"), "EmbedRows");
  EXPECT_EQ(w.Chosen(both, "output"), "OutputPanels");
  EXPECT_EQ(w.Chosen(both, "out_rows"), "Relayout");
  options.exact.requirements.push_back({ENodeRef{}, w.Class("transposed"), 0.5});
  ExactSolution details;
  const Extraction evaluated = w.extractor->Exact(roots, options, &details);
  // out_rows is there in every step already.
  EXPECT_EQ(evaluated.dag_cost, 21 + 0.5 * 6);
  EXPECT_EQ(details.frequency[w.Class("transposed").index], 0.5);
  EXPECT_EQ(details.frequency[w.Class("out_rows").index], 1);
}

// What the caller asks of exact extraction holds for its alternatives too.
TEST(ExactKnown, AlternativesKeepTheCallersOptions) {
  Written w(R"(
    (sort S)
    (constructor Large () S :cost 1) (constructor Small () S :cost 2)
    (constructor Fast (S) S :cost 1) (constructor Slow (S) S :cost 3)
    (let x (Large)) (union x (Small))
    (let y (Fast x)) (union y (Slow x))
  )");
  const std::vector<ClassRef> roots{w.Class("y")};
  ExtractOptions options;
  options.exact.bounds.push_back({{{w.Node("x", "Large"), 8.0}}, 4});
  const Extraction winner = w.extractor->Extract(ExtractMethod::kExact, roots, options);
  EXPECT_EQ(winner.dag_cost, 3);
  EXPECT_EQ(w.Chosen(winner, "x"), "Small");
  const std::vector<Alternative> alternatives =
      w.extractor->Alternatives(winner, w.Class("y"), options);
  ASSERT_EQ(alternatives.size(), 2u);
  EXPECT_EQ(alternatives[1].node, w.Node("y", "Slow"));
  EXPECT_EQ(alternatives[1].difference, 2);
  // One forces Fast, the other Slow: the extraction's own word holds, and is what is reported.
  options.exact.forced = {{roots[0], w.Node("y", "Fast")}};
  options.forced = {{roots[0], w.Node("y", "Slow")}};
  const Extraction slow = w.extractor->Extract(ExtractMethod::kExact, roots, options);
  EXPECT_EQ(w.Chosen(slow, "y"), "Slow");
  EXPECT_EQ(slow.forced.at(roots[0]), w.Node("y", "Slow"));
}

}  // namespace
}  // namespace l3c::egraph
