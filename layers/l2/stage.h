// The kinds of stage and of readout that networks are searched over, the numbers that
// rewrites/lower_l3_l2.egg calls them by, and the layers that each is made of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
};
inline constexpr size_t kStageKinds = 6;
enum class Readout : uint8_t {
  kFlat,    // linear over all elements
  kMean,    // pool(avg) over all positions, linear
  kEach,    // linear over the channels of every position
  kUnfold,  // linear over all elements, positions(n)
};
inline constexpr size_t kReadouts = 4;

std::string_view StageKindName(StageKind kind);  // "dense", "pointwise", …
std::string_view ReadoutName(Readout readout);   // "flat", …
// Their numbers in the rules.
constexpr int64_t NumberOf(StageKind kind) { return static_cast<int64_t>(kind); }
constexpr int64_t NumberOf(Readout readout) {
  return static_cast<int64_t>(kStageKinds) + static_cast<int64_t>(readout);
}

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

// Its layers in order; an absent norm or activation has none. Attention's are inside a residual.
std::vector<Form> StageForms(StageKind kind, const Extent& in, int64_t width,
                             const std::optional<Form>& norm, const std::optional<Form>& activation,
                             bool causal);
// The layers that give `outputs` elements, `out_rows` positions of them where they have positions.
std::vector<Form> ReadoutForms(Readout readout, const Extent& in, int64_t outputs,
                               int64_t out_rows);
// Those that make vectors of tokens.
std::vector<Form> EmbedForms(int64_t vocabulary, int64_t length, int64_t width, bool positions);

}  // namespace l3c::l2
