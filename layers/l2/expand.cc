#include "layers/l2/expand.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/l2/infer.h"
#include "layers/l2/losses.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l3/domain.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

class Expander {
 public:
  Expander(const Module& module, const Methods& methods, int64_t batch,
           const ForwardOptions& options)
      : spec_(module.spec), methods_(methods), batch_(batch), options_(options) {
    support::Diagnostics diagnostics;
    auto objective = ResolveObjective(spec_, methods.model, diagnostics);
    if (!objective) throw std::logic_error("the module was not verified");
    objective_ = std::move(*objective);
  }

  ForwardGraph Run() {
    const l3::Ref& in = objective_.model->in.front();
    FieldNode(in);
    for (const ObjectiveTerm& term : objective_.terms) {
      if (term.has_loss) FieldNode(term.target);
    }
    result_.mask = g_.AddInput("mask", DType::kF32, {batch_});
    if (DrawsRandomNumbers()) result_.step = g_.AddInput("step", DType::kI64, {});
    ExpandInfer(FieldNode(in));
    ExpandObjective();
    return std::move(result_);
  }

 private:
  bool DrawsRandomNumbers() const {
    const auto& nodes = methods_.infer.nodes;
    return options_.training && std::any_of(nodes.begin() + 1, nodes.end(), [](const auto& node) {
             return EntryOf(node).expand_random != nullptr;
           });
  }

  // A key for what `layer` draws in this step.
  NodeId KeyOf(const std::string& layer) {
    const NodeId step =
        result_.step ? g_.Cast(*result_.step, DType::kU64) : g_.Const(0, DType::kU64);
    return DeriveKey(g_, step, layer + "/" + std::to_string(options_.seed));
  }

  // The graph input of a field, made on first use.
  NodeId FieldNode(const l3::Ref& ref) {
    for (const auto& field : result_.fields) {
      if (field.data == ref.owner && field.field == ref.member) return field.node;
    }
    const l3::Domain& domain = *spec_.DomainOf(ref);
    Shape shape = l3::ExampleShape(domain);
    shape.insert(shape.begin(), batch_);
    // Two data declarations may have fields of one name.
    std::string name = ref.member;
    if (g_.Find(name) || name == "mask" || name == "step") name = ref.owner + "_" + ref.member;
    const NodeId node = g_.AddInput(name, l3::ExampleDType(domain), shape);
    result_.fields.push_back({ref.owner, ref.member, node});
    return node;
  }

  void ExpandInfer(NodeId input) {
    const InferGraph& infer = methods_.infer;
    result_.parameters = Parameters(infer);
    for (const Parameter& p : result_.parameters) {
      result_.parameter_nodes.push_back(g_.AddInput(p.name, DType::kF32, p.shape));
    }
    if (g_.node(input).dtype != DType::kF32) input = g_.Cast(input, DType::kF32);
    values_ = {input};
    const auto ranges = ParameterRanges(infer);
    for (size_t i = 1; i < infer.nodes.size(); ++i) {
      const LayerNode& node = infer.nodes[i];
      const LayerEntry& entry = EntryOf(node);
      std::vector<NodeId> operands;
      for (uint32_t operand : node.inputs) operands.push_back(values_[operand]);
      const auto parameters =
          std::span(result_.parameter_nodes).subspan(ranges[i].first, ranges[i].second);
      if (entry.expand_random && (options_.training || entry.random_in_evaluation)) {
        values_.push_back(
            entry.expand_random(g_, node.form, operands, parameters, KeyOf(node.name)));
      } else {
        values_.push_back(entry.expand(g_, node.form, operands, parameters));
      }
      if (i == infer.output && entry.expand_log) {
        log_output_ = entry.expand_log(g_, node.form, operands, parameters);
      }
      // The value goes by its layer's name, unless the layer hands an operand through.
      const bool made = std::find(operands.begin(), operands.end(), values_[i]) == operands.end();
      if (made && !g_.Find(node.name)) g_.Rename(values_[i], node.name);
    }
    result_.output = values_[infer.output];
  }

  void ExpandObjective() {
    rows_ = g_.ReduceSum(result_.mask, {0});
    std::optional<NodeId> total;
    size_t choice = 0;
    for (const ObjectiveTerm& term : objective_.terms) {
      NodeId value = term.has_loss        ? ExpandLoss(term, methods_.losses[choice++].form)
                     : term.of_parameters ? ParameterNorm(term.term->p)
                                          : OutputNorm(term.term->p);
      if (term.weight != 1) value = g_.Binary(Op::kMul, value, g_.Const(term.weight));
      total = total ? g_.Binary(Op::kAdd, *total, value) : value;
    }
    result_.loss = *total;
    g_.AddOutput("loss", result_.loss);
    const NodeId sum = g_.Binary(Op::kMul, result_.loss, rows_);
    g_.AddOutput("loss_sum", sum);
    g_.AddOutput("rows", rows_);
    result_.metrics.insert(result_.metrics.begin(), {"loss", sum, rows_});
    g_.AddOutput("output", result_.output);
  }

  LossOperands Operands(const ObjectiveTerm& term) {
    LossOperands operands;
    operands.output = result_.output;
    operands.log_output = log_output_;
    operands.target = FieldNode(term.target);
    operands.target_is_label = term.target_kind == TargetKind::kLabel;
    operands.classes = ClassesOf(objective_.model->out);
    return operands;
  }

  NodeId ExpandLoss(const ObjectiveTerm& term, const Form& form) {
    const LossOperands operands = Operands(term);
    const LossRows rows = FindLoss(form.name)->expand(g_, form, operands);
    if (operands.target_is_label) AddAccuracy(operands);
    return MeanOverRows(rows);
  }

  // Σ mask·loss / Σ mask. Rows that pad the batch are cut out, not multiplied by zero: what they
  // hold may be anything, and 0·NaN is NaN.
  NodeId MeanOverRows(const LossRows& rows) {
    const NodeId zero = g_.Full(0, {batch_});
    NodeId padding = g_.Unary(*tensor::FindOp("not"), g_.Binary(Op::kCmpNe, result_.mask, zero));
    if (!rows.kept) {
      const NodeId kept = g_.Add(Op::kWhere, {padding, zero, rows.loss});
      return Apply(g_, "div", {g_.ReduceSum(kept, {0}), rows_});
    }
    const NodeId weight = g_.Binary(Op::kMul, result_.mask, *rows.kept);
    padding = g_.Unary(*tensor::FindOp("not"), g_.Binary(Op::kCmpNe, weight, zero));
    const NodeId kept = g_.Add(Op::kWhere, {padding, zero, rows.loss});
    // With every row ignored the loss is 0.
    const NodeId count = g_.Binary(Op::kMax, g_.ReduceSum(weight, {0}), g_.Const(1));
    return Apply(g_, "div", {g_.ReduceSum(kept, {0}), count});
  }

  // Rows whose most probable class, the lowest among equals, is the label.
  void AddAccuracy(const LossOperands& in) {
    if (result_.metrics.size() > 0) return;
    const int64_t n = in.classes;
    const Shape shape = g_.node(in.output).shape;
    const Shape positions(shape.begin(), shape.end() - 1);
    const NodeId top = SpreadLast(g_, MaxLast(g_, in.output), shape);
    const NodeId index =
        Iota(g_, Shape(shape), static_cast<int64_t>(shape.size()) - 1, DType::kI32);
    const NodeId below = g_.Binary(Op::kCmpNe, in.output, top);
    const NodeId none = g_.Full(static_cast<double>(-n), Shape(shape), DType::kI32);
    // The greatest of −index is the lowest index; a row of NaN has none and is never right.
    const NodeId negated = g_.Add(Op::kWhere, {below, none, g_.Unary(Op::kNeg, index)});
    const NodeId guess = g_.Unary(Op::kNeg, MaxLast(g_, negated));
    NodeId label = in.target;
    if (g_.node(label).shape != positions) label = g_.Reshape(label, positions);
    label = As(g_, label, DType::kI32);
    const NodeId wrong = g_.Binary(Op::kCmpNe, guess, label);
    NodeId counted = result_.mask;
    if (positions.size() > 1) {
      // Every position counts its share of a row.
      Shape column(positions.size(), 1);
      column[0] = batch_;
      const double share = static_cast<double>(batch_) / static_cast<double>(tensor::NumElements(positions));
      counted = TimesConstant(g_, g_.Expand(g_.Reshape(counted, column), positions), share);
    }
    const NodeId right = g_.Add(Op::kWhere, {wrong, FullLike(g_, 0, counted), counted});
    const NodeId sum = SumAll(g_, right);
    g_.AddOutput("correct", sum);
    result_.metrics.push_back({"accuracy", sum, rows_});
  }

  // aᵉ of a ≥ 0, zero below the least normal number: there a slope may be infinite, as that of a
  // root at zero, and is cut to zero. NaN is kept.
  NodeId PowerOfPositive(NodeId a, double e) {
    const Shape shape = g_.node(a).shape;
    const NodeId none =
        g_.Binary(Op::kCmpLt, a, g_.Full(std::numeric_limits<float>::min(), Shape(shape)));
    const NodeId safe = g_.Add(Op::kWhere, {none, g_.Full(1, Shape(shape)), a});
    const NodeId power = e == 0.5
                             ? g_.Unary(Op::kSqrt, safe)
                             : g_.Unary(Op::kExp2, g_.Binary(Op::kMul, g_.Unary(Op::kLog2, safe),
                                                             g_.Full(e, Shape(shape))));
    return g_.Add(Op::kWhere, {none, g_.Full(0, Shape(shape)), power});
  }

  // (Σ|x|ᵖ)^(1/p) from Σ|x|ᵖ.
  NodeId Root(NodeId sum, double p) { return p == 1 ? sum : PowerOfPositive(sum, 1 / p); }

  NodeId Power(NodeId a, double p) {
    if (p == 2) return g_.Unary(*tensor::FindOp("square"), a);
    const NodeId size = g_.Unary(*tensor::FindOp("abs"), a);
    return p == 1 ? size : PowerOfPositive(size, p);
  }

  NodeId ParameterNorm(double p) {
    std::optional<NodeId> sum;
    for (NodeId parameter : result_.parameter_nodes) {
      const NodeId part = SumAll(g_, Power(parameter, p));
      sum = sum ? g_.Binary(Op::kAdd, *sum, part) : part;
    }
    return sum ? Root(*sum, p) : g_.Const(0);
  }

  NodeId OutputNorm(double p) {
    const NodeId powers = Power(result_.output, p);
    std::vector<int64_t> axes;
    for (size_t i = 1; i < g_.node(powers).shape.size(); ++i) {
      axes.push_back(static_cast<int64_t>(i));
    }
    const NodeId sum = axes.empty() ? powers : g_.ReduceSum(powers, axes);
    return MeanOverRows({Root(sum, p), {}});
  }

  const l3::Module& spec_;
  const Methods& methods_;
  const int64_t batch_;
  const ForwardOptions options_;
  Objective objective_;
  ForwardGraph result_;
  Graph& g_ = result_.graph;
  std::vector<NodeId> values_;  // by node of the network
  std::optional<NodeId> log_output_;
  NodeId rows_ = 0;  // Σ mask
};

}  // namespace

ForwardGraph ExpandForward(const Module& module, const Methods& methods, int64_t batch,
                           const ForwardOptions& options) {
  return Expander(module, methods, batch, options).Run();
}

int64_t TotalSteps(const Methods& methods, int64_t rows) {
  const int64_t batch = BatchOf(methods.sample);
  const int64_t per_epoch = DropsLast(methods.sample) ? rows / batch : (rows + batch - 1) / batch;
  int64_t total = 0;
  for (const Phase& phase : methods.phases) {
    total += phase.steps > 0 ? phase.steps : phase.epochs * per_epoch;
  }
  return std::max<int64_t>(total, 1);
}

}  // namespace l3c::l2
