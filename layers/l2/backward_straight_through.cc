// straight_through(estimator): reverse autodiff in which a flat layer (sign) has the slope of
// something else (Bengio, Léonard, Courville 2013):
//   identity   slope 1 everywhere
//   clipped    slope 1 where |x| ≤ 1, else 0
// The forward pass is unchanged: layers.h, LayerEntry::expand_surrogate.
#include "layers/l2/backward.h"
#include "layers/l2/infer.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {

BackwardEntry StraightThroughBackward() {
  BackwardEntry entry;
  entry.form = {"straight_through",
                {Arg::Word("estimator", {"identity", "clipped"}).Or(std::string("clipped"))},
                "gradients that pass through flat layers"};
  entry.takes_surrogates = true;
  entry.check = [](const Form& form, const Module&, const Methods& methods,
                   support::Diagnostics& diagnostics) {
    for (size_t i = 1; i < methods.infer.nodes.size(); ++i) {
      if (EntryOf(methods.infer.nodes[i]).expand_surrogate) return;
    }
    diagnostics
        .Error(support::Kind::kConsistency, form.span,
               "the network has no flat layer, such as sign, for a gradient to pass through")
        .Fix("write autodiff(mode: reverse)");
  };
  entry.direct = [](BackwardGraph& to, const BackwardCall& call) {
    std::vector<tensor::NodeId> wrt;
    for (size_t p : call.parameters) wrt.push_back(to.parameter(p));
    return to.Differentiate(to.loss(), wrt);
  };
  return entry;
}

}  // namespace l3c::l2
