#include "egraph/extract/exact.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/cost.h"
#include "egraph/extract/part_solver.h"

namespace l3c::egraph {
namespace {

// Frequencies by levels: each class stands once for every frequency that it may be needed at, most
// frequent first, and the rarer one can be had from the more frequent one for nothing.
class Leveled {
 public:
  Leveled(const NodeGraph& graph, const ExactOptions& options) : graph_(graph) {
    levels_.push_back(1);
    for (const Requirement& r : options.requirements) levels_.push_back(r.frequency);
    std::sort(levels_.begin(), levels_.end(), std::greater<>());
    levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  }

  uint32_t levels() const { return static_cast<uint32_t>(levels_.size()); }
  uint32_t Class(ClassRef c, uint32_t level) const { return c.index * levels() + level; }
  uint32_t Node(ENodeRef n, uint32_t level) const { return n.index * levels() + level; }
  double frequency(uint32_t level) const { return levels_[level]; }

  ChoiceProblem Build(std::span<const double> prices, std::span<const ClassRef> roots,
                      const ExactOptions& options) const {
    ChoiceProblem p = MakeChoiceProblem(graph_, prices, roots, levels_);
    for (const auto& [c, n] : options.forced) {
      for (uint32_t i = 0; i < graph_.NodeCountOf(c); ++i) {
        const ENodeRef other{graph_.FirstNode(c).index + i};
        for (uint32_t level = 0; other != n && level < levels(); ++level) {
          p.nodes[Node(other, level)].alive = false;
        }
      }
    }
    for (const Requirement& r : options.requirements) {
      const auto own = static_cast<uint32_t>(
          std::find(levels_.begin(), levels_.end(), r.frequency) - levels_.begin());
      if (!r.node.valid()) {
        p.required[Class(r.needs, own)] = 1;
        continue;
      }
      for (uint32_t level = 0; level < levels(); ++level) {
        ChoiceNode& node = p.nodes[Node(r.node, level)];
        const uint32_t need = Class(r.needs, std::max(level, own));
        if (std::binary_search(node.children.begin(), node.children.end(), need)) continue;
        const auto at = std::lower_bound(node.needs.begin(), node.needs.end(), need);
        if (at == node.needs.end() || *at != need) node.needs.insert(at, need);
      }
    }
    for (uint32_t c = 0; c < graph_.class_count(); ++c) {
      for (uint32_t level = 1; level < levels(); ++level) {
        ChoiceNode& shared = p.nodes.emplace_back();
        shared.cls = Class(ClassRef{c}, level);
        shared.children = {Class(ClassRef{c}, level - 1)};
        p.class_nodes[shared.cls].push_back(static_cast<uint32_t>(p.nodes.size() - 1));
      }
    }
    for (auto& nodes : p.class_nodes) {
      std::erase_if(nodes, [&](uint32_t n) { return !p.nodes[n].alive; });
    }
    return p;
  }

  // By class of the graph: the choice at the most frequent level it is reached at.
  void Read(const ChoiceProblem& p, std::span<const uint32_t> choice, ExactSolution& s) const {
    s.choice.assign(graph_.class_count(), ENodeRef{});
    s.frequency.assign(graph_.class_count(), 0);
    std::vector<uint8_t> reached(p.class_count(), 0);
    std::vector<uint32_t> todo;
    // Level by level, most frequent first: what is reached there settles the class.
    const auto visit = [&](uint32_t c) {
      if (!std::exchange(reached[c], 1)) todo.push_back(c);
    };
    std::vector<std::vector<uint32_t>> wanted(levels());
    for (uint32_t c = 0; c < p.class_count(); ++c) {
      if (p.required[c]) wanted[c % levels()].push_back(c);
    }
    for (uint32_t level = 0; level < levels(); ++level) {
      for (uint32_t c : wanted[level]) visit(c);
      while (!todo.empty()) {
        const uint32_t c = todo.back();
        todo.pop_back();
        const uint32_t own = c / levels();
        const uint32_t n = choice[c];
        if (s.choice[own].valid() || n == kNone) continue;
        if (n >= graph_.node_count() * levels()) {
          visit(p.nodes[n].children.front());
          continue;
        }
        s.choice[own] = ENodeRef{n / levels()};
        s.frequency[own] = frequency(c % levels());
        for (uint32_t child : p.nodes[n].children) visit(child);
        for (uint32_t need : p.nodes[n].needs) {
          if (need % levels() > level) {
            wanted[need % levels()].push_back(need);
          } else {
            visit(need);
          }
        }
      }
    }
  }

 private:
  const NodeGraph& graph_;
  std::vector<double> levels_;
};

// What makes no sense among the options; empty where all does.
std::string Check(const ExactOptions& options) {
  for (const Requirement& r : options.requirements) {
    if (!r.needs.valid()) return "a requirement of a class without e-nodes";
    if (!(r.frequency > 0 && r.frequency <= 1)) {
      return "a requirement's frequency of " + std::to_string(r.frequency) + ", not in (0, 1]";
    }
  }
  return "";
}

}  // namespace

ExactSolution SolveExact(const NodeGraph& graph, std::span<const double> prices,
                         std::span<const ClassRef> roots, const ExactOptions& options) {
  ExactSolution solution;
  solution.choice.assign(graph.class_count(), ENodeRef{});
  solution.frequency.assign(graph.class_count(), 0);
  solution.error = Check(options);
  if (!solution.error.empty()) return solution;
  const auto invalid = [](ClassRef c) { return !c.valid(); };
  if (std::any_of(roots.begin(), roots.end(), invalid)) {
    solution.infeasible = true;
    return solution;
  }
  const Leveled leveled(graph, options);
  const ChoiceProblem whole = leveled.Build(prices, roots, options);
  for (const auto& nodes : whole.class_nodes) {
    solution.classes += !nodes.empty();
    solution.nodes += nodes.size();
  }

  const PartSolver::Limits limits{options.max_branch_nodes, options.max_search_work,
                                  TimeLimit(options.time_kind, options.max_seconds)};
  PartSolver solver(limits);
  const auto in_levels = [&](const ChoiceBound& bound) {
    NodeBound own{{}, bound.limit};
    for (const auto& [n, x] : bound.terms) {
      for (uint32_t level = 0; level < leveled.levels(); ++level) {
        own.terms.emplace_back(leveled.Node(n, level), x);
      }
    }
    return own;
  };
  std::vector<NodeBound> bounds;
  for (const ChoiceBound& bound : options.bounds) bounds.push_back(in_levels(bound));
  PartSolver::LazyNodeBounds lazy;
  if (options.lazy_bounds) {
    lazy = [&](std::span<const uint32_t> choice) {
      ExactSolution read;
      leveled.Read(whole, choice, read);
      std::vector<NodeBound> violated;
      for (const ChoiceBound& bound : options.lazy_bounds(read.choice)) {
        violated.push_back(in_levels(bound));
      }
      return violated;
    };
  }
  solver.SetBounds(std::move(bounds), std::move(lazy));
  const ChoiceAnswer answer = solver.Solve(whole);

  const PartSolver::Counts& counts = solver.counts();
  solution.out_of_time = counts.out_of_time;
  solution.out_of_work = counts.out_of_work;
  std::tie(solution.reduced_classes, solution.reduced_nodes) = solver.reduced_size();
  solution.parts = counts.parts;
  solution.branch_nodes = counts.branch_nodes;
  solution.cycle_cuts = counts.cycle_cuts;
  solution.lazy_bounds = counts.lazy_bounds;
  solution.feasible = answer.feasible;
  solution.infeasible = answer.infeasible;
  if (!answer.feasible) {
    solution.lower_bound = answer.infeasible ? kInfinity : answer.bound;
    return solution;
  }
  leveled.Read(whole, answer.choice, solution);
  solution.cost = 0;
  for (uint32_t c = 0; c < solution.choice.size(); ++c) {
    const ENodeRef n = solution.choice[c];
    if (n.valid()) solution.cost += prices[n.index] * solution.frequency[c];
  }
  solution.lower_bound = std::min(answer.bound, solution.cost);
  const double difference = solution.cost - solution.lower_bound;
  solution.optimal = answer.cost - answer.bound <= 2e-6 * std::max(std::abs(answer.cost), 1e-300);
  solution.gap = solution.optimal || difference == 0
                     ? 0
                     : difference / std::max(std::abs(solution.cost), 1e-300);
  if (solution.optimal) solution.lower_bound = solution.cost;
  return solution;
}

}  // namespace l3c::egraph
