// What annotations of a method ask of its placement: `#[l1::on(NODE)]` and `#[l0::kernel("FILE")]`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l2/ir.h"
#include "layers/search/lowering.h"
#include "layers/support/escape_hatch.h"

namespace l3c::l1 {

// `#[l0::kernel("FILE")]` before a layer.
struct LayerKernel {
  std::string layer, where;
  support::EscapeHatch hatch;
};

// A node that something is asked to be on.
struct Pin {
  std::string node, where;
  Span span;
};

struct Annotations {
  // Of a data declaration or a field, where it lies; of a model or a layer, where it is computed. A
  // step is one tensor graph, so all of a method's layers lie on one node.
  std::optional<Pin> data, model;
  std::vector<LayerKernel> kernels;
};

// `folder`: that files are relative to. Nothing where an annotation asks for what cannot be done,
// and then `failure` says so.
std::optional<Annotations> ReadAnnotations(const l2::Module& module, const System& system,
                                           const std::string& folder,
                                           search::NoCandidates& failure);

// The annotation for the value of a layer in a graph: made of what its own values are made of.
// Those, and its parameters, are named after it.
support::EscapeHatch OfLayer(const tensor::Graph& graph, const LayerKernel& kernel);

}  // namespace l3c::l1
