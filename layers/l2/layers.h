// The layers: for each its form, its learned parameters, its shape rule and its meaning in tensor
// algebra. Everything else (differentiation, fusion, cost, code) follows from the expansion, so a
// layer is one LayerEntry and its tests.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/l2/ir.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// What position t of a result is computed from. Positions are the indices along all axes but the
// last, which holds the channels; along the only axis of a result that has one.
enum class Reach : uint8_t {
  kItself,  // position t alone, alike everywhere
  kPlace,   // position t alone, and where it is
  kUpTo,    // the positions up to t
  kNear,    // those around t, alike everywhere; zeros beyond the edges
  kAll,     // all positions, alike wherever they stand
  kWhole,   // all positions, and the result has none
  kOther,
};

struct LayerEntry {
  Entry form;
  // The printer begins a line of `sequential [ … ]` with it.
  bool begins_line = false;
  // Shape of one sample's result, or nothing and a sentence in `error`. Called with the operands'
  // sample shapes.
  std::function<std::optional<Shape>(const Form&, std::span<const Shape>, std::string* error)>
      shape;
  // Learned parameters by role ("weight"); empty for none. The shapes have passed `shape`.
  std::function<std::vector<Parameter>(const Form&, std::span<const Shape>)> parameters;
  // Appends the meaning to `graph`. Operands are [batch, …sample shape]; so is the result.
  std::function<tensor::NodeId(tensor::Graph& graph, const Form&,
                               std::span<const tensor::NodeId> operands,
                               std::span<const tensor::NodeId> parameters)>
      expand;
  // Entries whose result is a probability distribution: its logarithm, computed without the
  // underflow of log(result). Null for all others.
  std::function<tensor::NodeId(tensor::Graph& graph, const Form&,
                               std::span<const tensor::NodeId> operands,
                               std::span<const tensor::NodeId> parameters)>
      expand_log;
  // Entries that draw random numbers in training: their meaning there, with a key (u64 []) of
  // their own for each step. Null: `expand`.
  std::function<tensor::NodeId(tensor::Graph& graph, const Form&,
                               std::span<const tensor::NodeId> operands,
                               std::span<const tensor::NodeId> parameters, tensor::NodeId key)>
      expand_random;
  // Entries that are flat almost everywhere: the same values with the slope of a surrogate
  // ("identity", "clipped": backward_straight_through.cc). Null for all others.
  std::function<tensor::NodeId(tensor::Graph& graph, const Form&,
                               std::span<const tensor::NodeId> operands, const std::string& kind)>
      expand_surrogate;
  // Entries that read the parameters of another layer, which their first argument names, and have
  // none of their own: the shape rule in place of `shape`.
  std::function<std::optional<Shape>(const Form&, std::span<const Shape> operands,
                                     std::span<const Parameter> borrowed, std::string* error)>
      borrowed_shape;
  // What causality and symmetries follow from. Null: kOther.
  std::function<Reach(const Form&, std::span<const Shape>)> reach;
  // The random numbers are part of what it is: drawn in evaluation too, always the same there.
  bool random_in_evaluation = false;
  static constexpr int kAnyNumber = -1;
  int operand_count = 1;
  // Cannot be written: only sugar makes it (the join of a residual).
  bool hidden = false;
  // What `act(NAME)` may name.
  bool is_activation = false;
  // Counts against depth(n): a stage of composition with a contraction of its own.
  bool is_stage = false;
};

const LayerEntry* FindLayer(std::string_view name);
const std::deque<LayerEntry>& AllLayers();  // in registration order
// `shared(NAME)`: a second use of a layer, resolved when the graph is built.
inline constexpr std::string_view kShared = "shared";
// Adds a layer; its name must be new (std::invalid_argument). Call before modules are parsed.
void RegisterLayer(LayerEntry entry);

// The families, one file each.
std::vector<LayerEntry> LinearLayers();      // layer_linear.cc: linear
std::vector<LayerEntry> ConvLayers();        // layer_conv.cc: conv
std::vector<LayerEntry> AttentionLayers();   // layer_attention.cc: attn
const std::vector<Entry>& NormKinds();       // what norm(…) may be
std::vector<LayerEntry> NormLayers();        // layer_norm.cc: norm(layer | rms | group(n))
std::vector<LayerEntry> ActivationLayers();  // layer_activation.cc: relu gelu silu swish …
std::vector<LayerEntry> EmbedLayers();       // layer_embed.cc: embed position
std::vector<LayerEntry> PositionsLayers();   // layer_positions.cc: positions
std::vector<LayerEntry> PoolLayers();        // layer_pool.cc: pool
std::vector<LayerEntry> DropoutLayers();     // layer_dropout.cc: dropout
std::vector<LayerEntry> SoftmaxLayers();     // layer_softmax.cc: softmax
std::vector<LayerEntry> SymmetricLayers();   // layer_symmetric.cc: the parts of symmetric(…)
std::vector<LayerEntry> TiedLayers();        // layer_tied.cc: tied shared
std::vector<LayerEntry> JoinLayers();        // layer_join.cc: the join of a residual

}  // namespace l3c::l2
