// attn(heads, dim, causal): multi-head attention of a sequence [t, dim] to itself (Vaswani et al.
// 2017). Q, K, V = xWq, xWk, xWv, each split into heads of dim/heads; the heads' softmax(QKᵀ/√d)V,
// side by side, times Wo, plus a bias. With causal, position i sees positions j ≤ i only: the
// others score −inf.
#include <cmath>
#include <limits>
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;

std::optional<Shape> AttentionShape(const Form& form, std::span<const Shape> operands,
                                    std::string* error) {
  const int64_t heads = form.Integer(0);
  const int64_t dim = form.Integer(1);
  if (dim % heads != 0) {
    *error = support::PrintInteger(dim) + " dimensions cannot be split into " +
             support::PrintInteger(heads) + " heads of the same size";
    return std::nullopt;
  }
  if (operands[0].size() != 2 || operands[0].back() != dim) {
    *error = "attn(…, " + support::PrintInteger(dim) + ") takes a sequence [t, " +
             support::PrintInteger(dim) + "], not a sample of shape " +
             tensor::ShapeToString(operands[0]);
    return std::nullopt;
  }
  return operands[0];
}

std::vector<Parameter> AttentionParameters(const Form& form, std::span<const Shape>) {
  const int64_t dim = form.Integer(1);
  const double deviation = 1 / std::sqrt(static_cast<double>(dim));
  std::vector<Parameter> parameters;
  for (const char* role : {"query", "key", "value", "out"}) {
    parameters.push_back({role, {dim, dim}, Init::kNormal, 0, deviation});
  }
  parameters.push_back({"bias", {dim}, Init::kZeros, 0});
  return parameters;
}

NodeId AttentionExpand(Graph& g, const Form& form, std::span<const NodeId> operands,
                       std::span<const NodeId> parameters) {
  const int64_t heads = form.Integer(0);
  const int64_t dim = form.Integer(1);
  const int64_t batch = g.node(operands[0]).shape[0];
  const int64_t length = g.node(operands[0]).shape[1];
  const NodeId rows = g.Reshape(operands[0], {batch * length, dim});
  // [batch·t, dim] → [batch, heads, t, d]
  auto project = [&](NodeId weight) {
    const NodeId split = g.Reshape(g.Matmul(rows, weight), {batch, length, heads, dim / heads});
    return g.Permute(split, {0, 2, 1, 3});
  };
  const NodeId query = project(parameters[0]);
  const NodeId key = project(parameters[1]);
  const NodeId value = project(parameters[2]);
  const double scale = 1 / std::sqrt(static_cast<double>(dim / heads));
  NodeId score = TimesConstant(g, g.Matmul(query, g.Transpose(key)), scale);
  if (form.Bool(2)) {
    const Shape shape = g.node(score).shape;
    const NodeId later = g.Binary(tensor::Op::kCmpLt, Iota(g, {length, length}, 0, DType::kI32),
                                  Iota(g, {length, length}, 1, DType::kI32));
    const NodeId never = FullLike(g, -std::numeric_limits<double>::infinity(), score);
    score = g.Add(tensor::Op::kWhere, {g.Expand(later, shape), never, score});
  }
  const NodeId mixed = g.Permute(g.Matmul(Softmax(g, score), value), {0, 2, 1, 3});
  const NodeId joined = g.Reshape(mixed, {batch * length, dim});
  const NodeId y =
      Add(g, g.Matmul(joined, parameters[3]), g.Expand(parameters[4], {batch * length, dim}));
  return g.Reshape(y, {batch, length, dim});
}

}  // namespace

std::vector<LayerEntry> AttentionLayers() {
  LayerEntry attention;
  attention.form = {
      "attn",
      {Arg::Integer("heads", 1, 4096).Positional(),
       Arg::Integer("dim", 1, int64_t{1} << 20).Positional(), Arg::Flag("causal", false)},
      "every position takes in what it attends to among all, or all before it"};
  attention.begins_line = true;
  attention.is_stage = true;
  attention.shape = AttentionShape;
  attention.parameters = AttentionParameters;
  attention.expand = AttentionExpand;
  attention.reach = [](const Form& form, std::span<const Shape>) {
    return form.Bool(2) ? Reach::kUpTo : Reach::kAll;
  };
  return {attention};
}

}  // namespace l3c::l2
