// The kinds of stage and of readout that networks are searched over, the numbers that
// rewrites/lower_l3_l2.egg calls them by, and the layers that each is made of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/ir.h"

namespace l3c::l2 {

enum class StageKind : uint8_t {
  kDense,      // linear over all elements; norm; activation
  kPointwise,  // linear over the channels of every position; norm; activation
  kAttention,  // x + attn(norm(x))
  kLine,       // conv of kernel 3 over a sequence; norm; activation
  kHalving,    // conv of kernel 3 over an image; norm; activation; pool(max, 2)
  kPlane,      // the same without the pool
  kRecurrent,  // recurrent(linear of element and state; norm; tanh) over a sequence: its last state
  kMixture,    // mixture of four dense stages, gate: linear; softmax
  kResidual,   // x + (norm; linear; activation)
};
inline constexpr size_t kStageKinds = 9;
enum class Readout : uint8_t {
  kFlat,    // linear over all elements
  kMean,    // pool(avg) over all positions, linear
  kEach,    // linear over the channels of every position
  kUnfold,  // linear over all elements, positions(n)
};
inline constexpr size_t kReadouts = 4;

std::string_view StageKindName(StageKind kind);  // "dense", "pointwise", …
std::string_view ReadoutName(Readout readout);   // "flat", …
// Their numbers in the rules. The readouts stand after the first six kinds.
inline constexpr int64_t kFirstReadout = 6;
constexpr int64_t NumberOf(StageKind kind) {
  const int64_t k = static_cast<int64_t>(kind);
  return k < kFirstReadout ? k : k + static_cast<int64_t>(kReadouts);
}
constexpr int64_t NumberOf(Readout readout) {
  return kFirstReadout + static_cast<int64_t>(readout);
}
constexpr StageKind StageKindOf(int64_t number) {
  return static_cast<StageKind>(number < kFirstReadout ? number
                                                       : number - static_cast<int64_t>(kReadouts));
}

// Whether the width, the activation of a stage of the kind can be chosen. A stage that adds to its
// input is as wide as that.
constexpr bool HasWidth(StageKind kind) {
  return kind != StageKind::kAttention && kind != StageKind::kResidual;
}
constexpr bool HasActivation(StageKind kind) {
  return kind != StageKind::kAttention && kind != StageKind::kRecurrent;
}
// The longest sequence that a recurrence is unrolled over.
inline constexpr int64_t kMaxUnrolled = 256;

// A sample between stages: flat (1, 1, n), a sequence (t, 1, channels), an image.
struct Extent {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t channels = 1;

  int64_t positions() const { return rows * columns; }
  int64_t elements() const { return positions() * channels; }
  Shape shape() const;
  auto operator<=>(const Extent&) const = default;
};

// What a stage of so many channels makes of a sample; the rules say where it may stand.
Extent After(StageKind kind, const Extent& in, int64_t width);

// The stage as it is written; an absent norm or activation has none.
std::vector<InferForm> StageItems(StageKind kind, const Extent& in, int64_t width,
                                  const std::optional<Form>& norm,
                                  const std::optional<Form>& activation, bool causal);
// The mean of a network over the actions of a group (infer_symmetric.cc).
InferForm Symmetric(InferForm network, const std::string& group, int64_t axis);
// A layer, layers in a row.
InferForm LayerItem(Form layer);
InferForm Sequential(std::vector<InferForm> items);
InferForm Sequential(const std::vector<Form>& layers);
// The layers that give `outputs` elements, `out_rows` positions of them where they have positions.
std::vector<Form> ReadoutForms(Readout readout, const Extent& in, int64_t outputs,
                               int64_t out_rows);
// Those that make vectors of tokens.
std::vector<Form> EmbedForms(int64_t vocabulary, int64_t length, int64_t width, bool positions);

}  // namespace l3c::l2
