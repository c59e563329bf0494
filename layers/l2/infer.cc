#include "layers/l2/infer.h"

#include <algorithm>
#include <utility>

#include "layers/l2/expand.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

InferBuilder::InferBuilder() {
  LayerNode input;
  input.name = "input";
  graph_.nodes.push_back(std::move(input));
}

uint32_t InferBuilder::Add(Form form, std::vector<uint32_t> inputs) {
  int64_t count = 1;
  for (const LayerNode& node : graph_.nodes) count += node.form.name == form.name ? 1 : 0;
  LayerNode node;
  node.name = form.name + std::to_string(count);
  node.form = std::move(form);
  node.inputs = std::move(inputs);
  graph_.nodes.push_back(std::move(node));
  return static_cast<uint32_t>(graph_.nodes.size() - 1);
}

InferGraph InferBuilder::Finish(uint32_t output, InferForm form) {
  graph_.output = output;
  graph_.form = std::move(form);
  return std::move(graph_);
}

const LayerEntry& EntryOf(const LayerNode& node) { return *FindLayer(node.form.name); }

std::optional<std::vector<Shape>> InferShapes(const InferGraph& infer, const Shape& input,
                                              support::Diagnostics& diagnostics) {
  std::vector<Shape> shapes = {input};
  for (size_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    std::vector<Shape> operands;
    for (uint32_t operand : node.inputs) operands.push_back(shapes[operand]);
    std::string error;
    auto shape = EntryOf(node).shape(node.form, operands, &error);
    if (!shape) {
      auto& diagnostic = diagnostics.Error(support::Kind::kConsistency, node.form.span, error);
      if (!node.inputs.empty() && node.inputs.back() > 0) {
        const LayerNode& before = infer.nodes[node.inputs.back()];
        diagnostic.With({before.form.span, "this gives " + tensor::ShapeToString(operands.back())});
      }
      return std::nullopt;
    }
    if (shape->size() + 1 > static_cast<size_t>(tensor::kMaxRank)) {
      diagnostics.Error(support::Kind::kResourceBound, node.form.span, "the rank is too large");
      return std::nullopt;
    }
    shapes.push_back(std::move(*shape));
  }
  return shapes;
}

bool PropagateShapes(InferGraph& infer, const Shape& input, support::Diagnostics& diagnostics) {
  auto shapes = InferShapes(infer, input, diagnostics);
  if (!shapes) return false;
  for (size_t i = 0; i < infer.nodes.size(); ++i) infer.nodes[i].shape = std::move((*shapes)[i]);
  return true;
}

std::vector<Shape> OperandShapes(const InferGraph& infer, const LayerNode& node) {
  std::vector<Shape> shapes;
  for (uint32_t operand : node.inputs) shapes.push_back(infer.nodes[operand].shape);
  return shapes;
}

int64_t Depth(const InferGraph& infer) {
  std::vector<int64_t> depth(infer.nodes.size(), 0);
  for (size_t i = 1; i < infer.nodes.size(); ++i) {
    for (uint32_t operand : infer.nodes[i].inputs) depth[i] = std::max(depth[i], depth[operand]);
    depth[i] += EntryOf(infer.nodes[i]).is_stage ? 1 : 0;
  }
  return depth[infer.output];
}

std::vector<Parameter> Parameters(const InferGraph& infer) {
  std::vector<Parameter> all;
  for (size_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    const LayerEntry& entry = EntryOf(node);
    if (!entry.parameters) continue;
    for (Parameter& p : entry.parameters(node.form, OperandShapes(infer, node))) {
      p.name = node.name + "_" + p.name;
      all.push_back(std::move(p));
    }
  }
  return all;
}

int64_t ParameterCount(const InferGraph& infer) {
  int64_t count = 0;
  for (const Parameter& p : Parameters(infer)) count += tensor::NumElements(p.shape);
  return count;
}

}  // namespace l3c::l2
