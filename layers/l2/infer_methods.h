// How networks are put together. sequential and residual are brackets around items; the others are
// calls with networks as arguments, one InferEntry each:
//
//   recurrent(cell, steps: n | until(pred))   one network again and again, with one set of weights
//   mixture(experts, gate)                    several networks side by side, weighed by another
//   graph(nodes, edges)                       one network at every node of a graph
//   diffusion_chain(steps, noise, denoiser)   a network that undoes noise
//   symmetric(net, group, axis)               the mean of a network over a group's actions
//
// All are sugar: LowerInfer writes them into the one DAG of layers (ir.h), a recurrence unrolled to
// its fixed depth. What joins the parts are entries of layers.h that cannot be written
// (layer_join.cc).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l2 {

// Writes parts of a call into the graph.
class InferLowering {
 public:
  InferLowering(InferBuilder& builder, support::Diagnostics& diagnostics)
      : builder_(builder), diagnostics_(diagnostics) {}

  InferBuilder& builder() { return builder_; }
  support::Diagnostics& diagnostics() { return diagnostics_; }

  // The node that `form`, applied to `input`, ends in; nothing after an error. Sets `node` of every
  // layer's form.
  std::optional<uint32_t> Lower(InferForm& form, uint32_t input);
  // A layer that only sugar makes.
  uint32_t Join(std::string_view name, std::vector<std::pair<std::string, Value>> args,
                std::vector<uint32_t> inputs, Span span);
  // Nodes [first, end) once more, with the same parameters and `replaced` in place of `input`;
  // gives what has become of `output`.
  uint32_t Repeat(uint32_t first, uint32_t end, uint32_t output, uint32_t input, uint32_t replaced);

 private:
  std::optional<uint32_t> LowerLayer(InferForm& form, uint32_t input);

  InferBuilder& builder_;
  support::Diagnostics& diagnostics_;
};

struct InferPart {
  std::string label;
  bool list = false;  // `[infer, …]`, at least two
};

struct InferEntry {
  Entry form;                    // the arguments that are no networks
  std::vector<InferPart> parts;  // printed before them
  // `call.written[0]` has the arguments; `call.items` the networks, those of a list in a row.
  std::function<std::optional<uint32_t>(InferLowering&, InferForm& call, uint32_t input)> lower;
};

const std::deque<InferEntry>& AllInferMethods();
const InferEntry* FindInferMethod(std::string_view name);

InferEntry RecurrentMethod();  // infer_recurrent.cc
InferEntry MixtureMethod();    // infer_mixture.cc
InferEntry GraphMethod();      // infer_graph.cc
InferEntry DiffusionMethod();  // infer_diffusion.cc
InferEntry SymmetricMethod();  // infer_symmetric.cc

}  // namespace l3c::l2
