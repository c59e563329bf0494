#include "egraph/extract/plain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/local_search.h"
#include "egraph/extract/pass.h"

namespace l3c::egraph {
namespace {

// Of the local search; more finds little more.
constexpr uint64_t kStepsPerNode = 1000;

// Finite where both are: shared parts can be counted more often than a number can hold.
double TreeSum(double a, double b) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (!std::isfinite(a) || !std::isfinite(b)) return a + b;
  return std::clamp(a + b, -kLargest, kLargest);
}

std::vector<double> SearchPrices(std::span<const double> prices) {
  std::vector<double> result(prices.begin(), prices.end());
  for (double& price : result) {
    if (!(price < std::numeric_limits<double>::infinity())) {
      price = std::numeric_limits<double>::infinity();
    }
    price = std::max(0.0, price);
  }
  return result;
}

}  // namespace

PlainExtraction MeasureChoice(const NodeGraph& graph, std::span<const double> prices,
                              std::span<const ClassRef> roots, std::span<const ENodeRef> choice) {
  PlainExtraction result;
  std::vector<ENodeRef> kept(graph.class_count());
  std::vector<uint8_t> done(graph.class_count(), 0);
  std::vector<double> tree(graph.class_count(), 0);
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // class, next child
  double dag_cost = 0, tree_cost = 0;
  const auto enter = [&](ClassRef c) {
    if (!c.valid() || !choice[c.index].valid()) return false;
    kept[c.index] = choice[c.index];
    stack.emplace_back(c.index, 0);
    return true;
  };
  for (ClassRef root : roots) {
    if (!root.valid()) return result;
    if (!done[root.index] && !enter(root)) return result;
    while (!stack.empty()) {
      auto& [c, next] = stack.back();
      const std::span<const ClassRef> children = graph.NodeChildren(kept[c]);
      if (next < children.size()) {
        const ClassRef child = children[next++];
        if (child.valid() && done[child.index]) continue;
        // Entered and not done: below itself.
        if ((child.valid() && kept[child.index].valid()) || !enter(child)) return result;
        continue;
      }
      tree[c] = prices[kept[c].index];
      for (ClassRef child : children) tree[c] = TreeSum(tree[c], tree[child.index]);
      done[c] = 1;
      result.order.push_back(ClassRef{c});
      stack.pop_back();
    }
    tree_cost = TreeSum(tree_cost, tree[root.index]);
  }
  for (ENodeRef n : kept) {
    if (n.valid()) dag_cost += prices[n.index];
  }
  result.feasible = true;
  result.choice = std::move(kept);
  result.dag_cost = dag_cost;
  result.tree_cost = tree_cost;
  return result;
}

PlainExtraction PlainTree(const NodeGraph& graph, std::span<const double> prices,
                          std::span<const ClassRef> roots) {
  const UserIndex users(graph);
  const std::vector<double> search_prices = SearchPrices(prices);
  Pass pass(graph, users);
  uint64_t work = 0;
  pass.Run(Pass::Sharing::kTree, {search_prices, {}, {}}, &work);
  return MeasureChoice(graph, prices, roots, pass.choice());
}

PlainExtraction PlainGreedyDag(const NodeGraph& graph, std::span<const double> prices,
                               std::span<const ClassRef> roots, uint64_t max_work,
                               const TimeLimit& time) {
  PlainExtraction tree = PlainTree(graph, prices, roots);
  if (!tree.feasible) return tree;
  ChoiceProblem problem = MakeChoiceProblem(graph, prices, roots);
  ReducedChoice reduced = Reduce(problem, Reductions::kAll, {.max_work = max_work, .time = time});
  std::vector<uint32_t> choice = std::move(reduced.decided);
  uint64_t work = reduced.work;
  for (const ChoicePart& part : Split(problem)) {
    std::vector<double> costs;
    for (const ChoiceNode& n : part.problem.nodes) costs.push_back(n.cost);
    LocalSearch search(part.problem, costs, time);
    if (!search.Start()) return tree;
    const auto left = [&] {
      const uint64_t done = work + search.work();
      return std::min(max_work - std::min(max_work, done), kStepsPerNode * costs.size());
    };
    search.Descend(left());
    search.Kick(left());
    work += search.work();
    const std::vector<uint32_t> own = search.Choice();
    for (uint32_t c = 0; c < own.size(); ++c) {
      if (own[c] != kNone) choice[part.classes[c]] = part.nodes[own[c]];
    }
  }
  std::vector<ENodeRef> nodes(graph.class_count());
  for (uint32_t c = 0; c < nodes.size(); ++c) {
    if (choice[c] != kNone) nodes[c] = ENodeRef{choice[c]};
  }
  PlainExtraction found = MeasureChoice(graph, prices, roots, nodes);
  PlainExtraction& best = found.feasible && found.dag_cost <= tree.dag_cost ? found : tree;
  best.work = work;
  return std::move(best);
}

}  // namespace l3c::egraph
