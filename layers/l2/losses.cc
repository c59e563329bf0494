#include "layers/l2/losses.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId Apply(Graph& g, std::string_view name, std::vector<NodeId> operands) {
  return g.Add(*tensor::FindOp(name), std::move(operands));
}

NodeId TimesConstant(Graph& g, NodeId a, double value) {
  return g.Binary(Op::kMul, a, g.Full(value, Shape(g.node(a).shape)));
}

NodeId AsF32(Graph& g, NodeId a) {
  return g.node(a).dtype == DType::kF32 ? a : g.Cast(a, DType::kF32);
}

// [batch, …] → [batch], summed.
NodeId SumRows(Graph& g, NodeId a) {
  std::vector<int64_t> axes;
  for (size_t i = 1; i < g.node(a).shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? a : g.ReduceSum(a, axes);
}

// Elements of one row.
double RowElements(const Graph& g, NodeId a) {
  const Shape& shape = g.node(a).shape;
  double elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= static_cast<double>(shape[i]);
  return elements;
}

NodeId LogOutput(Graph& g, const LossOperands& in) {
  return in.log_output ? *in.log_output : Apply(g, "log", {in.output});
}

// Label as i32 [batch].
NodeId LabelIndex(Graph& g, NodeId target) {
  const int64_t batch = g.node(target).shape[0];
  NodeId label = target;
  if (g.node(label).shape != Shape{batch}) label = g.Reshape(label, {batch});
  return g.node(label).dtype == DType::kI32 ? label : g.Cast(label, DType::kI32);
}

// true at [row, label of row]; i32 labels outside the classes are true nowhere.
NodeId IsNotLabel(Graph& g, NodeId label, int64_t classes) {
  const int64_t batch = g.node(label).shape[0];
  tensor::Attributes iota;
  iota.ints = {batch, classes};
  iota.axis = 1;
  iota.dtype = DType::kI32;
  const NodeId index = g.Add(Op::kIota, {}, iota);
  const NodeId wide = g.Expand(g.Reshape(label, {batch, 1}), {batch, classes});
  return g.Binary(Op::kCmpNe, index, wide);
}

LossRows ExpandCe(Graph& g, const Form& form, const LossOperands& in) {
  const double smoothing = form.Real(0);
  const int64_t ignored = form.Integer(1);
  const NodeId log_p = LogOutput(g, in);
  LossRows rows;
  if (!in.target_is_label) {
    const NodeId target = AsF32(g, in.target);
    // A target of zero counts nothing even where log p is −inf.
    const Shape shape = g.node(log_p).shape;
    const NodeId is_zero = Apply(g, "not", {g.Binary(Op::kCmpNe, target, g.Full(0, Shape(shape)))});
    const NodeId product = g.Binary(Op::kMul, target, log_p);
    const NodeId kept = g.Add(Op::kWhere, {is_zero, g.Full(0, Shape(shape)), product});
    rows.loss = g.Unary(Op::kNeg, SumRows(g, kept));
  } else {
    const NodeId label = LabelIndex(g, in.target);
    const NodeId other = IsNotLabel(g, label, in.classes);
    const Shape shape = g.node(log_p).shape;
    const NodeId picked = g.Add(Op::kWhere, {other, g.Full(0, Shape(shape)), log_p});
    rows.loss = g.Unary(Op::kNeg, SumRows(g, picked));
    if (ignored >= 0) {
      const Shape batch = g.node(label).shape;
      const NodeId differs = g.Binary(
          Op::kCmpNe, label, g.Full(static_cast<double>(ignored), Shape(batch), DType::kI32));
      rows.kept = g.Cast(differs, DType::kF32);
    }
  }
  if (smoothing > 0) {
    const NodeId even = g.Unary(Op::kNeg, SumRows(g, log_p));
    rows.loss = g.Binary(Op::kAdd, TimesConstant(g, rows.loss, 1 - smoothing),
                         TimesConstant(g, even, smoothing / RowElements(g, log_p)));
  }
  return rows;
}

LossRows ExpandKl(Graph& g, const Form&, const LossOperands& in) {
  const NodeId target = AsF32(g, in.target);
  const NodeId log_p = LogOutput(g, in);
  const Shape shape = g.node(log_p).shape;
  const NodeId is_zero = Apply(g, "not", {g.Binary(Op::kCmpNe, target, g.Full(0, Shape(shape)))});
  const NodeId safe = g.Add(Op::kWhere, {is_zero, g.Full(1, Shape(shape)), target});
  const NodeId gap = Apply(g, "sub", {Apply(g, "log", {safe}), log_p});
  const NodeId product = g.Binary(Op::kMul, target, gap);
  return {SumRows(g, g.Add(Op::kWhere, {is_zero, g.Full(0, Shape(shape)), product})), {}};
}

// The target in the output's shape and as f32, output − target.
NodeId Gap(Graph& g, const LossOperands& in) {
  const Shape shape = g.node(in.output).shape;
  NodeId target = AsF32(g, in.target);
  if (g.node(target).shape != shape) target = g.Reshape(target, shape);
  return Apply(g, "sub", {in.output, target});
}

LossRows ExpandMse(Graph& g, const Form&, const LossOperands& in) {
  const NodeId squares = Apply(g, "square", {Gap(g, in)});
  const double elements = RowElements(g, squares);
  const NodeId sum = SumRows(g, squares);
  return {elements == 1 ? sum : TimesConstant(g, sum, 1 / elements), {}};
}

LossRows ExpandMae(Graph& g, const Form&, const LossOperands& in) {
  const NodeId sizes = Apply(g, "abs", {Gap(g, in)});
  const double elements = RowElements(g, sizes);
  const NodeId sum = SumRows(g, sizes);
  return {elements == 1 ? sum : TimesConstant(g, sum, 1 / elements), {}};
}

std::vector<LossEntry> BuiltinLosses() {
  auto is_distribution = [](TargetKind t) { return t == TargetKind::kDistribution; };
  auto is_tensor = [](TargetKind t) { return t == TargetKind::kTensor; };
  return {
      {{"ce",
        {Arg::Real("label_smoothing", 0, 1).Or(0.0),
         Arg::Integer("ignore_index", -1, int64_t{1} << 30).Or(int64_t{-1})},
        "cross-entropy: minus the log of the probability given to the label"},
       [](TargetKind t) { return t == TargetKind::kLabel || t == TargetKind::kDistribution; },
       ExpandCe},
      {{"kl", {}, "Kullback-Leibler divergence of the output from a target distribution"},
       is_distribution,
       ExpandKl},
      {{"mse", {}, "mean squared difference"}, is_tensor, ExpandMse},
      {{"mae", {}, "mean absolute difference"}, is_tensor, ExpandMae},
  };
}

std::vector<LossEntry>& Table() {
  static std::vector<LossEntry> table = [] {
    std::vector<LossEntry> all = BuiltinLosses();
    for (LossEntry& entry : ContrastiveLosses()) all.push_back(std::move(entry));
    // Pointers into the table are handed out, so that registering must not move it.
    all.reserve(256);
    return all;
  }();
  return table;
}

}  // namespace

const std::vector<LossEntry>& AllLosses() { return Table(); }

const LossEntry* FindLoss(std::string_view name) {
  for (const LossEntry& entry : Table()) {
    if (entry.form.name == name) return &entry;
  }
  return nullptr;
}

void RegisterLoss(LossEntry entry) {
  if (FindLoss(entry.form.name) != nullptr || IsReservedName(Family::kLoss, entry.form.name) ||
      Table().size() == Table().capacity()) {
    throw std::invalid_argument("loss '" + entry.form.name + "' cannot be registered");
  }
  Table().push_back(std::move(entry));
}

Form DefaultLoss(TargetKind target) {
  for (const LossEntry& entry : Table()) {
    if (entry.accepts(target)) return MakeForm(entry.form, {});
  }
  throw std::logic_error("no loss accepts the target");
}

}  // namespace l3c::l2
