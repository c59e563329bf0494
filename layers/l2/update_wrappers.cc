// Updates around another one:
//
//   schedule(warmup, decay, inner)  multiplies the learning rate of `inner` at step s = 0, 1, … by
//                                   min((s+1)/warmup, 1) · decay(q),
//                                   q = clamp((s − warmup)/max(total − warmup, 1), 0, 1),
//                                   cosine ½(1+cos πq), linear 1−q, constant 1
//   gradient_clip(max_norm, inner)  g ← g · max_norm / max(‖g‖₂, max_norm), ‖·‖ over all parameters
//   ema(decay, inner)               e ← decay·e + (1−decay)·p after each step; evaluation reads
//                                   e/(1 − decayᵗ) in place of p (Polyak and Juditsky 1992)
#include <algorithm>
#include <numbers>

#include "layers/l2/algebra.h"
#include "layers/l2/update_leaf.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId F64(Graph& g, double value) { return g.Const(value, DType::kF64); }

// clamp((s − warmup)/max(total − warmup, 1), 0, 1)
NodeId DecayProgress(UpdateStep& step, double warmup) {
  Graph& g = *step.graph;
  const double length = std::max(static_cast<double>(step.total_steps) - warmup, 1.0);
  const NodeId since = Apply(g, "sub", {step.completed, F64(g, warmup)});
  const NodeId share = Apply(g, "div", {since, F64(g, length)});
  return Apply(g, "min", {g.Binary(Op::kMax, share, F64(g, 0)), F64(g, 1)});
}

void ExpandSchedule(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const double warmup = static_cast<double>(form.Integer(0));
  const std::string& decay = form.Word(1);
  std::optional<NodeId> factor;
  auto multiply = [&](NodeId by) { factor = factor ? g.Binary(Op::kMul, *factor, by) : by; };
  if (step.factor) factor = step.factor;
  if (warmup > 0) {
    const NodeId next = g.Binary(Op::kAdd, step.completed, F64(g, 1));
    const NodeId share = Apply(g, "div", {next, F64(g, warmup)});
    multiply(Apply(g, "min", {share, F64(g, 1)}));
  }
  if (decay == "cosine") {
    const NodeId angle = g.Binary(Op::kMul, DecayProgress(step, warmup), F64(g, std::numbers::pi));
    const NodeId raised = g.Binary(Op::kAdd, Apply(g, "cos", {angle}), F64(g, 1));
    multiply(g.Binary(Op::kMul, raised, F64(g, 0.5)));
  } else if (decay == "linear") {
    multiply(Apply(g, "sub", {F64(g, 1), DecayProgress(step, warmup)}));
  }
  step.factor = factor;
}

void ExpandClip(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  std::optional<NodeId> sum;
  for (NodeId grad : step.gradients) {
    const NodeId squares = SumAll(g, Apply(g, "square", {grad}));
    sum = sum ? g.Binary(Op::kAdd, *sum, squares) : squares;
  }
  if (!sum) return;
  const NodeId bound = g.Const(form.Real(0), g.node(*sum).dtype);
  const NodeId norm = g.Binary(Op::kMax, g.Unary(Op::kSqrt, *sum), bound);
  const NodeId scale = Apply(g, "div", {bound, norm});
  for (NodeId& grad : step.gradients) grad = Scaled(g, grad, scale);
}

void GatherMean(const Form& form, UpdateStep& step) {
  for (size_t p = 0; p < step.updated.size(); ++p) {
    step.state[0][p] = RunningMean(*step.graph, step.state[0][p], step.updated[p], form.Real(0));
  }
}

// Before the first step there is no mean, and the parameter itself is read.
NodeId MeanOfParameter(const Form& form, const EvaluatedParameter& in) {
  Graph& g = *in.graph;
  // 1 − decayᵗ after t = completed steps.
  const NodeId before = g.Binary(Op::kAdd, in.completed, F64(g, -1));
  const NodeId weight = BiasCorrection(g, before, form.Real(0));
  const NodeId none = g.Binary(Op::kCmpLt, in.completed, F64(g, 1));
  const NodeId safe = g.Add(Op::kWhere, {none, F64(g, 1), weight});
  const NodeId scale = As(g, g.Unary(Op::kRecip, safe), g.node(in.parameter).dtype);
  const NodeId mean = Scaled(g, in.state[0], scale);
  const NodeId everywhere = g.Expand(none, g.node(mean).shape);
  return g.Add(Op::kWhere, {everywhere, in.parameter, mean});
}

std::vector<std::string> NoState(const Form&) { return {}; }

}  // namespace

std::vector<UpdateEntry> UpdateWrappers() {
  UpdateEntry schedule;
  schedule.form = {
      "schedule",
      {Arg::Integer("warmup", 0, int64_t{1} << 40).Or(int64_t{0}),
       Arg::Word("decay", {"cosine", "linear", "constant"}).Or(std::string("constant")),
       Arg::Nested("inner", Family::kUpdate)},
      "raises the learning rate of the inner update over the first steps, then "
      "lowers it until the last"};
  schedule.state = NoState;
  schedule.expand = ExpandSchedule;
  schedule.inner = 2;

  UpdateEntry clip;
  clip.form = {"gradient_clip",
               {Arg::Real("max_norm", 0, 1e30).AboveMin(), Arg::Nested("inner", Family::kUpdate)},
               "scales all gradients down together when their norm is above max_norm"};
  clip.state = NoState;
  clip.expand = ExpandClip;
  clip.inner = 1;

  UpdateEntry ema;
  ema.form = {"ema",
              {Arg::Real("decay", 0, 1).BelowMax(), Arg::Nested("inner", Family::kUpdate)},
              "keeps a running mean of the parameters, which evaluation reads"};
  ema.state = [](const Form&) { return std::vector<std::string>{"ema"}; };
  ema.expand = [](const Form&, UpdateStep&) {};
  ema.after = GatherMean;
  ema.evaluated = MeanOfParameter;
  ema.inner = 1;

  return {schedule, clip, ema};
}

}  // namespace l3c::l2
