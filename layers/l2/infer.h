// Building and reading the network's DAG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l2/ir.h"
#include "layers/l2/layers.h"
#include "layers/support/diagnostics.h"

namespace l3c::l2 {

// Appends nodes and names them by their entry and a count: linear1, linear2, norm1, …
class InferBuilder {
 public:
  InferBuilder();
  uint32_t input() const { return 0; }
  uint32_t Add(Form form, std::vector<uint32_t> inputs);
  // Ends the graph.
  InferGraph Finish(uint32_t output, InferForm form);

 private:
  InferGraph graph_;
};

// The entry of a node other than the input.
const LayerEntry& EntryOf(const LayerNode& node);

// Every node's sample shape, given the input's. Nothing after reporting the first that fits not.
std::optional<std::vector<Shape>> InferShapes(const InferGraph& infer, const Shape& input,
                                              support::Diagnostics& diagnostics);

// Shapes of a node's operands, from the shapes that the graph holds.
std::vector<Shape> OperandShapes(const InferGraph& infer, const LayerNode& node);

// The most stages (layers that contract) on a path from input to output: what depth(n) bounds.
int64_t Depth(const InferGraph& infer);

}  // namespace l3c::l2
