// Building and reading the network's DAG.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/ir.h"
#include "layers/l2/layers.h"
#include "layers/support/diagnostics.h"

namespace l3c::l2 {

// Appends nodes and names them by their entry and a count: linear1, linear2, norm1, …
class InferBuilder {
 public:
  InferBuilder();
  uint32_t input() const { return 0; }
  uint32_t Add(Form form, std::vector<uint32_t> inputs,
               std::optional<uint32_t> lender = std::nullopt);
  // The node of that name made so far.
  std::optional<uint32_t> Find(std::string_view name) const;
  size_t size() const { return graph_.nodes.size(); }
  const LayerNode& node(uint32_t id) const { return graph_.nodes[id]; }
  // Ends the graph.
  InferGraph Finish(uint32_t output, InferForm form);

 private:
  InferGraph graph_;
};

// The entry of a node other than the input.
const LayerEntry& EntryOf(const LayerNode& node);

// The node's learned parameters by role, its own or those it borrows.
std::vector<Parameter> ParametersOf(const InferGraph& infer, uint32_t node);
// Where each node's parameters stand in Parameters(infer): its own, or those it borrows.
std::vector<std::pair<size_t, size_t>> ParameterRanges(const InferGraph& infer);

// Every node's sample shape, given the input's. Nothing after reporting the first that fits not.
std::optional<std::vector<Shape>> InferShapes(const InferGraph& infer, const Shape& input,
                                              support::Diagnostics& diagnostics);

// Shapes of a node's operands, from the shapes that the graph holds.
std::vector<Shape> OperandShapes(const InferGraph& infer, const LayerNode& node);
// What the entry's `reach` says of the node.
Reach ReachOf(const InferGraph& infer, const LayerNode& node);

// The first node through which a position of the first axis can see a later one.
std::optional<uint32_t> FirstAcausal(const InferGraph& infer);

// The most stages (layers that contract) on a path from input to output: what depth(n) bounds.
int64_t Depth(const InferGraph& infer);

}  // namespace l3c::l2
