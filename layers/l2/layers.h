// The layers: for each its form, its learned parameters, its shape rule and its meaning in tensor
// algebra. Everything else (differentiation, fusion, cost, code) follows from the expansion, so a
// layer is one LayerEntry and its tests.
#pragma once

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
  int operand_count = 1;
  // Cannot be written: only sugar makes it (the join of a residual).
  bool hidden = false;
  // What `act(NAME)` may name.
  bool is_activation = false;
  // Counts against depth(n): a stage of composition with a contraction of its own.
  bool is_stage = false;
};

const LayerEntry* FindLayer(std::string_view name);
const std::vector<LayerEntry>& AllLayers();  // in registration order
// Adds a layer; its name must be new (std::invalid_argument). Call before modules are parsed.
void RegisterLayer(LayerEntry entry);

// The families, one file each.
std::vector<LayerEntry> LinearLayers();      // layer_linear.cc: linear
std::vector<LayerEntry> NormLayers();        // layer_norm.cc: norm(layer | rms)
std::vector<LayerEntry> ActivationLayers();  // layer_activation.cc: relu gelu silu swish
std::vector<LayerEntry> PositionsLayers();   // layer_positions.cc: positions
std::vector<LayerEntry> SoftmaxLayers();     // layer_softmax.cc: softmax
std::vector<LayerEntry> JoinLayers();        // layer_join.cc: the join of a residual

}  // namespace l3c::l2
