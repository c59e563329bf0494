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

uint32_t InferBuilder::Add(Form form, std::vector<uint32_t> inputs,
                           std::optional<uint32_t> lender) {
  int64_t count = 1;
  for (const LayerNode& node : graph_.nodes) count += node.form.name == form.name ? 1 : 0;
  LayerNode node;
  node.name = form.name + std::to_string(count);
  node.form = std::move(form);
  node.inputs = std::move(inputs);
  node.lender = lender;
  graph_.nodes.push_back(std::move(node));
  return static_cast<uint32_t>(graph_.nodes.size() - 1);
}

std::optional<uint32_t> InferBuilder::Find(std::string_view name) const {
  for (uint32_t i = 1; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].name == name) return i;
  }
  return std::nullopt;
}

InferGraph InferBuilder::Finish(uint32_t output, InferForm form) {
  graph_.output = output;
  graph_.form = std::move(form);
  return std::move(graph_);
}

const LayerEntry& EntryOf(const LayerNode& node) { return *FindLayer(node.form.name); }

namespace {

// Parameters of a node, given the shapes of all nodes before it.
std::vector<Parameter> ParametersAt(const InferGraph& infer, uint32_t id,
                                    const std::vector<Shape>& shapes) {
  const LayerNode* node = &infer.nodes[id];
  if (node->lender) node = &infer.nodes[*node->lender];
  const LayerEntry& entry = EntryOf(*node);
  if (!entry.parameters) return {};
  std::vector<Shape> operands;
  for (uint32_t operand : node->inputs) operands.push_back(shapes[operand]);
  return entry.parameters(node->form, operands);
}

std::optional<Shape> ShapeOf(const InferGraph& infer, uint32_t id, std::span<const Shape> operands,
                             const std::vector<Shape>& shapes, std::string* error) {
  const LayerNode& node = infer.nodes[id];
  const LayerEntry& entry = EntryOf(node);
  if (!node.lender) return entry.shape(node.form, operands, error);
  const LayerNode& lender = infer.nodes[*node.lender];
  const std::vector<Parameter> borrowed = ParametersAt(infer, id, shapes);
  if (entry.borrowed_shape) {
    if (!borrowed.empty()) return entry.borrowed_shape(node.form, operands, borrowed, error);
    *error = "'" + lender.name + "' has no parameters to share";
    return std::nullopt;
  }
  auto shape = entry.shape(node.form, operands, error);
  if (!shape || !entry.parameters) return shape;
  const std::vector<Parameter> needed = entry.parameters(node.form, operands);
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i].shape == borrowed[i].shape) continue;
    *error = "'" + lender.name + "' has a " + borrowed[i].name + " of shape " +
             tensor::ShapeToString(borrowed[i].shape) + "; here it would be " +
             tensor::ShapeToString(needed[i].shape);
    return std::nullopt;
  }
  return shape;
}

std::vector<Shape> KnownShapes(const InferGraph& infer) {
  std::vector<Shape> shapes;
  for (const LayerNode& node : infer.nodes) shapes.push_back(node.shape);
  return shapes;
}

}  // namespace

std::vector<Parameter> ParametersOf(const InferGraph& infer, uint32_t node) {
  return ParametersAt(infer, node, KnownShapes(infer));
}

std::vector<std::pair<size_t, size_t>> ParameterRanges(const InferGraph& infer) {
  const std::vector<Shape> shapes = KnownShapes(infer);
  std::vector<std::pair<size_t, size_t>> ranges(infer.nodes.size(), {0, 0});
  size_t next = 0;
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    if (infer.nodes[i].lender) {
      ranges[i] = ranges[*infer.nodes[i].lender];
      continue;
    }
    ranges[i] = {next, ParametersAt(infer, i, shapes).size()};
    next += ranges[i].second;
  }
  return ranges;
}

std::optional<std::vector<Shape>> InferShapes(const InferGraph& infer, const Shape& input,
                                              support::Diagnostics& diagnostics) {
  std::vector<Shape> shapes = {input};
  for (size_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    std::vector<Shape> operands;
    for (uint32_t operand : node.inputs) operands.push_back(shapes[operand]);
    std::string error;
    auto shape = ShapeOf(infer, static_cast<uint32_t>(i), operands, shapes, &error);
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

Reach ReachOf(const InferGraph& infer, const LayerNode& node) {
  const LayerEntry& entry = EntryOf(node);
  return entry.reach ? entry.reach(node.form, OperandShapes(infer, node)) : Reach::kOther;
}

std::optional<uint32_t> FirstAcausal(const InferGraph& infer) {
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    const Reach reach = ReachOf(infer, node);
    if (reach == Reach::kItself || reach == Reach::kPlace || reach == Reach::kUpTo) continue;
    return i;
  }
  return std::nullopt;
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
  const std::vector<Shape> shapes = KnownShapes(infer);
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    if (node.lender) continue;
    for (Parameter& p : ParametersAt(infer, i, shapes)) {
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
