// Graphs whose forms the rules of rewrites/weighted_mean.egg and convolution.egg know: a layer and
// its gradients.
#pragma once

#include <string>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l2/layers.h"
#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"
#include "layers/tensor/differentiate.h"

namespace l3c::l0::lower {

// y = layer(x), and the gradients of Σ y² by x and by the parameters. `x`: with the batch.
inline tensor::Graph LayerAndGradients(const std::string& text, const tensor::Shape& x,
                                       bool with_output = true) {
  const support::SourceFile source("layer", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  const l2::Form form = *l2::ParseForm(parser, l2::Family::kLayer);
  const l2::LayerEntry& entry = *l2::FindLayer(form.name);
  const std::vector<tensor::Shape> sample = {{x.begin() + 1, x.end()}};
  tensor::Graph g;
  std::vector<tensor::NodeId> wrt = {g.AddInput("x", tensor::DType::kF32, x)};
  std::vector<tensor::NodeId> parameters;
  for (const l2::Parameter& p : entry.parameters(form, sample)) {
    parameters.push_back(g.AddInput("s_" + p.name, tensor::DType::kF32, p.shape));
    wrt.push_back(parameters.back());
  }
  const std::vector<tensor::NodeId> operands = {wrt[0]};
  const tensor::NodeId y = entry.expand(g, form, operands, parameters);
  const tensor::NodeId square = g.Binary(tensor::Op::kMul, y, y);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < g.node(y).shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  const tensor::NodeId loss = g.ReduceSum(square, axes);
  if (with_output) g.AddOutput("y", y);
  const tensor::Gradients gradients = tensor::Differentiate(g, loss, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) {
    const std::string& name = g.node(gradients.wrt[i]).name;
    g.AddOutput(i == 0 ? "dx" : name, gradients.nodes[i]);
  }
  return g;
}

}  // namespace l3c::l0::lower
