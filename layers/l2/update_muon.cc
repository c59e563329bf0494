// muon(lr, ns_steps, momentum)   m ← momentum·m + g;  u = g + momentum·m
//   matrices [r, c] (a tensor of higher rank: all axes but the last are r):
//       p ← p − lr·√max(1, c/r)·O(u)
//       O turns every singular value towards 1: X₀ = u/(‖u‖₂ + 1e-7), then ns_steps times
//       A = XXᵀ, X ← aX + (bA + cA²)X with a, b, c = 3.4445, −4.7750, 2.0315, on the transpose
//       where r > c                               (Jordan et al. 2024; Newton-Schulz iteration)
//   others (biases, gains): the same step, of root mean square 1: p ← p − lr·u·√n/(‖u‖₂ + 1e-7)
//
// Parameters are [in, out] here, so out/in, c/r, is what the original writes for its [out, in].
#include <cmath>

#include "layers/l2/algebra.h"
#include "layers/l2/update_leaf.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr double kA = 3.4445;
constexpr double kB = -4.7750;
constexpr double kC = 2.0315;
constexpr double kTiny = 1e-7;

// u / (‖u‖₂ + tiny)
NodeId Normalised(Graph& g, NodeId u) {
  const NodeId norm = g.Unary(Op::kSqrt, SumAll(g, Apply(g, "square", {u})));
  const NodeId bounded = g.Binary(Op::kAdd, norm, g.Const(kTiny, g.node(u).dtype));
  return Scaled(g, u, g.Unary(Op::kRecip, bounded));
}

NodeId Orthogonalised(Graph& g, NodeId u, int64_t steps) {
  const Shape shape = g.node(u).shape;
  const bool tall = shape[0] > shape[1];
  NodeId x = Normalised(g, tall ? g.Transpose(u) : u);
  for (int64_t i = 0; i < steps; ++i) {
    const NodeId a = g.Matmul(x, g.Transpose(x));
    const NodeId polynomial = Add(g, TimesConstant(g, a, kB), TimesConstant(g, g.Matmul(a, a), kC));
    x = Add(g, TimesConstant(g, x, kA), g.Matmul(polynomial, x));
  }
  return tall ? g.Transpose(x) : x;
}

NodeId Direction(Graph& g, NodeId u, int64_t steps) {
  const Shape shape = g.node(u).shape;
  if (shape.size() < 2) {
    const double n = static_cast<double>(tensor::NumElements(shape));
    return TimesConstant(g, Normalised(g, u), std::sqrt(n));
  }
  const int64_t columns = shape.back();
  const int64_t rows = tensor::NumElements(shape) / columns;
  const NodeId matrix = shape.size() == 2 ? u : g.Reshape(u, {rows, columns});
  const double stretch =
      std::sqrt(std::max(1.0, static_cast<double>(columns) / static_cast<double>(rows)));
  const NodeId turned = TimesConstant(g, Orthogonalised(g, matrix, steps), stretch);
  return shape.size() == 2 ? turned : g.Reshape(turned, shape);
}

void Expand(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const NodeId rate = LearningRate(step, form.Real(0));
  const double momentum = form.Real(2);
  for (size_t p = 0; p < step.parameters.size(); ++p) {
    const NodeId grad = step.gradients[p];
    const NodeId m = Add(g, TimesScalar(g, step.state[0][p], momentum), grad);
    step.state[0][p] = m;
    const NodeId ahead = Add(g, grad, TimesScalar(g, m, momentum));
    const NodeId move =
        Scaled(g, Direction(g, ahead, form.Integer(1)), ForParameter(step, p, rate));
    step.updated.push_back(Sub(g, step.parameters[p], move));
  }
}

}  // namespace

UpdateEntry MuonUpdate() {
  UpdateEntry muon;
  muon.form = {"muon",
               {Arg::Real("lr", 0, 1e6), Arg::Integer("ns_steps", 1, 16).Or(int64_t{5}),
                Arg::Real("momentum", 0, 1).BelowMax().Or(0.95)},
               "steps along momentum whose singular values have been brought to about 1"};
  muon.state = [](const Form&) { return std::vector<std::string>{"momentum"}; };
  muon.expand = Expand;
  return muon;
}

}  // namespace l3c::l2
