// mixture(experts: [e₁, …, eₖ], gate: g): Σ gᵢ(x)·eᵢ(x). The gate ends in a distribution over the
// experts (Jacobs et al. 1991); all experts see every row.
#include "layers/l2/infer_methods.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
namespace {

std::optional<uint32_t> Lower(InferLowering& to, InferForm& call, uint32_t input) {
  std::vector<uint32_t> operands(call.items.size());
  const size_t gate = call.items.size() - 1;
  for (size_t i = 0; i < call.items.size(); ++i) {
    const auto end = to.Lower(call.items[i], input);
    if (!end) return std::nullopt;
    operands[i == gate ? 0 : i + 1] = *end;
  }
  const LayerNode& last = to.builder().node(operands[0]);
  if (operands[0] == input || EntryOf(last).expand_log == nullptr) {
    to.diagnostics()
        .Error(support::Kind::kConsistency, call.items[gate].span,
               "the gate of a mixture weighs its experts, but this gives no distribution")
        .Fix("end the gate with 'softmax'");
    return std::nullopt;
  }
  return to.Join("mix", {}, std::move(operands), call.span);
}

}  // namespace

InferEntry MixtureMethod() {
  InferEntry mixture;
  mixture.form = {"mixture", {}, "networks side by side, weighed by a gate"};
  mixture.parts = {{"experts", true}, {"gate", false}};
  mixture.lower = Lower;
  return mixture;
}

}  // namespace l3c::l2
