// symmetric(net, group, axis): the mean of one network over all actions of a group on its input,
// (1/|G|) Σ net(g·x), with one set of weights. Acting on x only reorders the sum, so the result is
// the same for all g·x, whatever the network is (the Reynolds operator; Murphy, Srinivasan, Rao,
// Ribeiro: Janossy pooling, 2019, use it on networks).
//
//   reflection   the sample, and it reversed along `axis`
//   c4           the four quarter turns of a square image [n, n] or [n, n, channels]
//   d4           those, and those of the image mirrored along axis 1
#include "layers/l2/infer_methods.h"
#include "layers/l2/symmetry.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

constexpr int64_t kMaxLayers = 4096;

std::optional<uint32_t> Lower(InferLowering& to, InferForm& call, uint32_t input) {
  const Form form = call.written[0];
  const std::vector<Form> actions = ActionsOf(form.Word(0), form.Integer(1));
  InferBuilder& builder = to.builder();
  auto act = [&](Form action) {
    action.span = form.span;
    return builder.Add(std::move(action), {input});
  };
  const uint32_t first_input = act(actions[0]);
  const uint32_t first = static_cast<uint32_t>(builder.size());
  const auto output = to.Lower(call.items[0], first_input);
  if (!output) return std::nullopt;
  const uint32_t end = static_cast<uint32_t>(builder.size());
  const int64_t layers = static_cast<int64_t>((end - first) * actions.size());
  if (layers > kMaxLayers) {
    to.diagnostics()
        .Error(support::Kind::kResourceBound, form.span,
               "for every action, this takes " + support::PrintInteger(layers) + " layers")
        .Label("at most " + support::PrintInteger(kMaxLayers));
    return std::nullopt;
  }
  std::vector<uint32_t> ends = {*output};
  for (size_t i = 1; i < actions.size(); ++i) {
    const uint32_t at = act(actions[i]);
    ends.push_back(to.Repeat(first, end, *output, first_input, at));
  }
  return to.Join("mean_of_actions", {{"group", form.args[0]}, {"axis", form.args[1]}},
                 std::move(ends), form.span);
}

}  // namespace

InferEntry SymmetricMethod() {
  InferEntry symmetric;
  symmetric.form = {
      "symmetric",
      {Arg::Word("group", {"reflection", "c4", "d4"}), Arg::Integer("axis", 0, 7).Or(int64_t{0})},
      "the mean of a network over reflections or quarter turns of its input"};
  symmetric.parts = {{"net", false}};
  symmetric.lower = Lower;
  return symmetric;
}

}  // namespace l3c::l2
