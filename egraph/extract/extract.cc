#include "egraph/extract/extract.h"

#include <algorithm>
#include <utility>

#include "egraph/extract/cost.h"
#include "egraph/extract/dag.h"
#include "egraph/extract/plain.h"

namespace l3c::egraph {
Extractor::Extractor(const EGraphView& view, const CostModel& costs, const Objective& objective)
    : view_(&view), users_(view) {
  vectors_.reserve(view.node_count());
  scalars_.reserve(view.node_count());
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    vectors_.push_back(costs.NodeCost(view, ENodeRef{n}));
    const double scalar = objective(vectors_.back());
    scalars_.push_back(scalar >= 0 ? scalar : kInfinity);
  }
}

Extraction Extractor::Finish(ExtractMethod method, std::span<const ClassRef> roots,
                             const ExtractOptions& options,
                             std::span<const ENodeRef> choice) const {
  Extraction result;
  result.method = method;
  result.roots.assign(roots.begin(), roots.end());
  result.forced = options.forced;
  for (ClassRef root : roots) {
    if (!root.valid() || !choice[root.index].valid()) result.infeasible_roots.push_back(root);
  }
  PlainExtraction measured = MeasureChoice(*view_, scalars_, roots, choice);
  result.feasible = measured.feasible;
  result.dag_cost = measured.dag_cost;
  result.tree_cost = measured.tree_cost;
  result.order = std::move(measured.order);
  result.choice = std::move(measured.choice);
  result.choice.resize(view_->class_count());
  for (ENodeRef n : result.choice) {
    if (n.valid()) result.cost += vectors_[n.index];
  }
  return result;
}

std::vector<ENodeRef> Extractor::ForcedByClass(const ExtractOptions& options) const {
  std::vector<ENodeRef> forced;
  if (options.forced.empty()) return forced;
  forced.assign(view_->class_count(), ENodeRef{});
  for (const auto& [c, n] : options.forced) forced[c.index] = n;
  return forced;
}

Extraction Extractor::Tree(std::span<const ClassRef> roots, const ExtractOptions& options) const {
  uint64_t work = 0;
  Pass pass(*view_, users_);
  const std::vector<ENodeRef> forced = ForcedByClass(options);
  pass.Run(Pass::Sharing::kTree, {scalars_, forced, {}}, &work);
  Extraction result = Finish(ExtractMethod::kTree, roots, options, pass.choice());
  result.work = work;
  return result;
}

Extraction Extractor::GreedyDag(std::span<const ClassRef> roots,
                                const ExtractOptions& options) const {
  const std::vector<ENodeRef> forced = ForcedByClass(options);
  DagSearch search(*view_, users_, scalars_, roots, forced, options.max_work);
  search.Run();
  Extraction result = Finish(ExtractMethod::kGreedyDag, roots, options, search.choice());
  result.work = search.work();
  result.work_exhausted = search.exhausted();
  return result;
}

Extraction Extractor::Exact(std::span<const ClassRef> roots, const ExtractOptions& options,
                            ExactSolution* details) const {
  ExactOptions all = options.exact;
  for (const auto& [c, n] : options.forced) all.forced.insert_or_assign(c, n);
  ExactSolution solution = SolveExact(*view_, scalars_, roots, all);
  Extraction result = Finish(ExtractMethod::kExact, roots, options, solution.choice);
  if (solution.feasible && !all.requirements.empty()) {
    // What is chosen because of requirements only stands below no root.
    const double tree_cost = result.tree_cost;
    std::vector<ClassRef> chosen(roots.begin(), roots.end());
    for (uint32_t c = 0; c < solution.choice.size(); ++c) {
      if (solution.choice[c].valid()) chosen.push_back(ClassRef{c});
    }
    result = Finish(ExtractMethod::kExact, chosen, options, solution.choice);
    result.roots.assign(roots.begin(), roots.end());
    result.tree_cost = tree_cost;
    result.dag_cost = 0;
    result.cost = CostVector();
    for (uint32_t c = 0; c < solution.choice.size(); ++c) {
      if (!solution.choice[c].valid()) continue;
      CostVector cost = vectors_[solution.choice[c].index];
      for (double& x : cost.value) x *= solution.frequency[c];
      result.dag_cost += scalars_[solution.choice[c].index] * solution.frequency[c];
      result.cost += cost;
    }
  }
  result.forced = all.forced;
  result.work = solution.branch_nodes;
  result.work_exhausted = solution.out_of_work || solution.out_of_time;
  if (details != nullptr) *details = std::move(solution);
  return result;
}

Extraction Extractor::Extract(ExtractMethod method, std::span<const ClassRef> roots,
                              const ExtractOptions& options) const {
  switch (method) {
    case ExtractMethod::kTree:
      return Tree(roots, options);
    case ExtractMethod::kGreedyDag:
      return GreedyDag(roots, options);
    case ExtractMethod::kExact:
      return Exact(roots, options);
  }
  return {};
}

std::vector<Alternative> Extractor::Alternatives(const Extraction& winner, ClassRef c,
                                                 const ExtractOptions& options) const {
  std::vector<Alternative> alternatives;
  const double base = winner.method == ExtractMethod::kTree ? winner.tree_cost : winner.dag_cost;
  for (uint32_t i = 0; i < view_->NodeCountOf(c); ++i) {
    Alternative a;
    a.node = ENodeRef{view_->FirstNode(c).index + i};
    if (a.node == winner.Chosen(c)) {
      a.feasible = a.reached = true;
      a.cost = winner.cost;
    } else {
      ExtractOptions forced = options;
      forced.forced = winner.forced;
      forced.forced.insert_or_assign(c, a.node);
      const Extraction other = Extract(winner.method, winner.roots, forced);
      a.feasible = other.feasible && scalars_[a.node.index] < kInfinity;
      a.reached = other.feasible && other.Chosen(c).valid();
      a.difference =
          (winner.method == ExtractMethod::kTree ? other.tree_cost : other.dag_cost) - base;
      a.cost = other.cost;
    }
    alternatives.push_back(a);
  }
  std::stable_sort(alternatives.begin(), alternatives.end(),
                   [&](const Alternative& a, const Alternative& b) {
                     const bool a_wins = a.node == winner.Chosen(c);
                     const bool b_wins = b.node == winner.Chosen(c);
                     if (a_wins != b_wins) return a_wins;
                     if (a.feasible != b.feasible) return a.feasible;
                     return a.feasible && a.difference < b.difference;
                   });
  return alternatives;
}

std::string TermText(const EGraphView& view, const Extraction& extraction, ClassRef c,
                     size_t max_bytes) {
  std::string text;
  struct Open {
    ENodeRef node;
    uint32_t arg, child;
  };
  std::vector<Open> stack;
  const auto open = [&](ClassRef k) {
    const ENodeRef n = extraction.Chosen(k);
    text += '(';
    text += view.function(n).name;
    stack.push_back({n, 0, 0});
  };
  open(c);
  while (!stack.empty()) {
    if (text.size() > max_bytes) return text + "…";
    Open& top = stack.back();
    const Function& f = view.function(top.node);
    if (top.arg == f.inputs.size()) {
      text += ')';
      stack.pop_back();
      continue;
    }
    const uint32_t i = top.arg++;
    text += ' ';
    if (view.graph().sort(f.inputs[i]).is_equality) {
      open(view.NodeChildren(top.node)[top.child++]);
    } else {
      text += view.graph().DescribeValue(f.inputs[i], view.NodeArgs(top.node)[i]);
    }
  }
  return text;
}

}  // namespace l3c::egraph
