// Choosing one e-node per class, for several roots at once.
//
// Tree cost counts a shared class once per use, DAG cost once. The tree optimum is exact and cheap;
// the DAG optimum is NP-hard, and here it is approached: start from the better of several
// bottom-up passes, then improve moves that open a class for everybody, force a loser, or swap one
// e-node, as long as the total falls. A choice is never cyclic: every pass finalises a class only
// after the children of its e-node.
//
//   Extractor extractor(view, costs, Objective::Single(kTime));
//   Extraction best = extractor.GreedyDag(roots);
//   for (const Alternative& a : extractor.Alternatives(best, c)) …
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "egraph/extract/cost.h"
#include "egraph/extract/exact.h"
#include "egraph/extract/pass.h"
#include "egraph/view.h"

namespace l3c::egraph {

// E-nodes that must be taken where their class is reached (`--force`).
using Forced = std::map<ClassRef, ENodeRef>;

enum class ExtractMethod : uint8_t { kTree, kGreedyDag, kExact };

struct ExtractOptions {
  Forced forced;
  // Of kGreedyDag: bound on the work of local improvement, in e-nodes looked at; the bottom-up
  // passes always run.
  uint64_t max_work = 20'000'000;
  // Of kExact. Where both force a class, `forced` above holds.
  ExactOptions exact;
};

struct Extraction {
  ExtractMethod method = ExtractMethod::kTree;
  std::vector<ClassRef> roots;
  Forced forced;
  bool feasible = false;  // every root has a term of finite cost
  // The roots that have none, when not feasible.
  std::vector<ClassRef> infeasible_roots;
  // By class index: the e-node taken, invalid where the class is not reachable from the roots.
  std::vector<ENodeRef> choice;
  // Classes reached, children before parents.
  std::vector<ClassRef> order;
  double dag_cost = 0;  // objective, every class reached counted once
  // Objective, summed over the roots, shared classes counted at every use; stops at the largest
  // number.
  double tree_cost = 0;
  CostVector cost;    // the vector behind dag_cost
  uint64_t work = 0;  // e-nodes looked at; of kExact branches
  bool work_exhausted = false;

  ENodeRef Chosen(ClassRef c) const { return choice[c.index]; }
};

// One way to have a class.
struct Alternative {
  ENodeRef node;
  bool feasible = false;  // false: it is forbidden, or would need itself
  bool reached = false;   // the choice with it still needs the class, and so takes it
  double difference = 0;  // objective of the best choice found with it, minus the winner's
  CostVector cost;        // the whole choice's vector, so that the deciding component shows
};

class Extractor {
 public:
  // Costs every e-node once. `view` and `costs` must outlive the extractor.
  Extractor(const EGraphView& view, const CostModel& costs, const Objective& objective);

  Extraction Tree(std::span<const ClassRef> roots, const ExtractOptions& options = {}) const;
  // As SolveExact() (exact.h) finds it under `options.exact`; `details`, if given, gets its bound
  // and what it took. Requirements weigh costs by frequency: dag_cost and cost are weighted sums
  // then, tree_cost is not.
  Extraction Exact(std::span<const ClassRef> roots, const ExtractOptions& options = {},
                   ExactSolution* details = nullptr) const;
  // dag_cost is at most that of Tree() on the same roots and options.
  Extraction GreedyDag(std::span<const ClassRef> roots, const ExtractOptions& options = {}) const;
  Extraction Extract(ExtractMethod method, std::span<const ClassRef> roots,
                     const ExtractOptions& options = {}) const;

  // The e-nodes of `c`, the winner first, then by cost difference, the infeasible ones last.
  // `options` as the winner was extracted with; each difference is that of Extract() with the
  // e-node forced besides, so forcing a loser yields exactly what is shown here. A negative one
  // means that the heuristics had missed it, or a limit of kExact.
  std::vector<Alternative> Alternatives(const Extraction& winner, ClassRef c,
                                        const ExtractOptions& options = {}) const;

  // Objective and vector of one e-node.
  double NodeObjective(ENodeRef n) const { return scalars_[n.index]; }
  const CostVector& NodeCost(ENodeRef n) const { return vectors_[n.index]; }

  const EGraphView& view() const { return *view_; }

 private:
  Extraction Finish(ExtractMethod method, std::span<const ClassRef> roots,
                    const ExtractOptions& options, std::span<const ENodeRef> choice) const;
  std::vector<ENodeRef> ForcedByClass(const ExtractOptions& options) const;

  const EGraphView* view_;
  UserIndex users_;
  std::vector<CostVector> vectors_;  // by e-node
  std::vector<double> scalars_;
};

// The chosen term of `c` as text, `(Add (Num 1) (Var "x"))`; shared subterms are repeated, up to
// `max_bytes`, where it ends in "…".
std::string TermText(const EGraphView& view, const Extraction& extraction, ClassRef c,
                     size_t max_bytes = 1 << 16);

}  // namespace l3c::egraph
