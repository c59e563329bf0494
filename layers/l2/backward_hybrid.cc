// hybrid(primary, aux, blend): w·primary + (1 − w)·aux, where w is ½ (constant) or rises from 0 to
// 1 over all steps, as q (linear) or ½(1 − cos πq) (cosine), q = step/total: the auxiliary method
// begins, the primary one finishes.
#include <numbers>

#include "layers/l2/algebra.h"
#include "layers/l2/backward.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;

// The share of the primary method, f32 [].
NodeId Share(BackwardGraph& to, const std::string& blend) {
  Graph& g = to.graph();
  if (blend == "constant") return g.Const(0.5);
  const double total = static_cast<double>(to.total_steps());
  const NodeId q = Mul(g, to.completed(), g.Const(1 / total, DType::kF64));
  if (blend == "linear") return g.Cast(q, DType::kF32);
  const NodeId angle = Mul(g, q, g.Const(std::numbers::pi, DType::kF64));
  const NodeId fall = Mul(g, Apply(g, "cos", {angle}), g.Const(-0.5, DType::kF64));
  return g.Cast(Add(g, fall, g.Const(0.5, DType::kF64)), DType::kF32);
}

std::vector<NodeId> Direct(BackwardGraph& to, const BackwardCall& call) {
  std::vector<std::vector<NodeId>> directions(2);
  // The first ones keep up with the graph while the second are found.
  const BackwardGraph::Pin pin(to, directions[0]);
  for (size_t i = 0; i < 2; ++i) {
    BackwardCall inner = call;
    inner.form = &call.form->Inner(i);
    directions[i] = FindBackward(inner.form->name)->direct(to, inner);
  }
  Graph& g = to.graph();
  const NodeId share = Share(to, call.form->Word(2));
  const NodeId rest = Sub(g, g.Const(1), share);
  std::vector<NodeId> blend;
  for (size_t p = 0; p < directions[0].size(); ++p) {
    blend.push_back(Add(g, Scaled(g, directions[0][p], share), Scaled(g, directions[1][p], rest)));
  }
  to.Settle({&blend});
  return blend;
}

}  // namespace

BackwardEntry HybridBackward() {
  BackwardEntry hybrid;
  hybrid.form = {"hybrid",
                 {Arg::Nested("primary", Family::kBackward), Arg::Nested("aux", Family::kBackward),
                  Arg::Word("blend", {"constant", "linear", "cosine"}).Or(std::string("constant"))},
                 "a blend of two methods"};
  hybrid.draws = true;
  hybrid.check = [](const Form& form, const Module&, const Methods&,
                    support::Diagnostics& diagnostics) {
    for (size_t i : {0, 1}) {
      if (form.Inner(i).name != "hybrid") continue;
      diagnostics.Error(support::Kind::kConsistency, form.Inner(i).span, "a hybrid inside a hybrid")
          .Fix("blend two methods that are none");
    }
  };
  hybrid.direct = Direct;
  return hybrid;
}

}  // namespace l3c::l2
