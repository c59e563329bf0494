#include "layers/l2/updates.h"

#include <cmath>
#include <numbers>
#include <stdexcept>
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

NodeId F64(Graph& g, double value) { return g.Const(value, DType::kF64); }

// a f32 tensor times an f32 scalar node.
NodeId Scaled(Graph& g, NodeId a, NodeId scalar) { return Apply(g, "scale", {a, scalar}); }
NodeId Scaled(Graph& g, NodeId a, double scalar) { return Scaled(g, a, g.Const(scalar)); }

// The learning rate of this step, f64.
NodeId LearningRate(UpdateStep& step, double base) {
  Graph& g = *step.graph;
  const NodeId rate = F64(g, base);
  return step.factor ? g.Binary(Op::kMul, rate, *step.factor) : rate;
}

void ExpandSgd(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const NodeId rate = g.Cast(LearningRate(step, form.Real(0)), DType::kF32);
  const double momentum = form.Real(1);
  for (size_t p = 0; p < step.parameters.size(); ++p) {
    NodeId direction = step.gradients[p];
    if (momentum != 0) {
      direction = g.Binary(Op::kAdd, Scaled(g, step.state[0][p], momentum), direction);
      step.state[0][p] = direction;
    }
    step.updated.push_back(Apply(g, "sub", {step.parameters[p], Scaled(g, direction, rate)}));
  }
}

// 1 − βᵗ in f64, t = completed + 1.
NodeId BiasCorrection(UpdateStep& step, double beta) {
  Graph& g = *step.graph;
  if (beta == 0) return F64(g, 1);
  const NodeId t = g.Binary(Op::kAdd, step.completed, F64(g, 1));
  const NodeId power = g.Unary(Op::kExp2, g.Binary(Op::kMul, t, F64(g, std::log2(beta))));
  return Apply(g, "sub", {F64(g, 1), power});
}

void ExpandAdam(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const double beta1 = form.Real(1);
  const double beta2 = form.Real(2);
  const double epsilon = form.Real(3);
  const NodeId rate64 =
      Apply(g, "div", {LearningRate(step, form.Real(0)), BiasCorrection(step, beta1)});
  const NodeId rate = g.Cast(rate64, DType::kF32);
  const NodeId spread64 = g.Unary(Op::kRecip, g.Unary(Op::kSqrt, BiasCorrection(step, beta2)));
  const NodeId spread = g.Cast(spread64, DType::kF32);
  for (size_t p = 0; p < step.parameters.size(); ++p) {
    const NodeId grad = step.gradients[p];
    const NodeId m =
        g.Binary(Op::kAdd, Scaled(g, step.state[0][p], beta1), Scaled(g, grad, 1 - beta1));
    const NodeId v = g.Binary(Op::kAdd, Scaled(g, step.state[1][p], beta2),
                              Scaled(g, Apply(g, "square", {grad}), 1 - beta2));
    step.state[0][p] = m;
    step.state[1][p] = v;
    const NodeId root = Scaled(g, g.Unary(Op::kSqrt, v), spread);
    const NodeId shape_epsilon = g.Full(epsilon, Shape(g.node(v).shape));
    const NodeId denominator = g.Binary(Op::kAdd, root, shape_epsilon);
    const NodeId move = Apply(g, "div", {Scaled(g, m, rate), denominator});
    step.updated.push_back(Apply(g, "sub", {step.parameters[p], move}));
  }
}

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
  const double max_norm = form.Real(0);
  std::optional<NodeId> sum;
  for (NodeId grad : step.gradients) {
    NodeId squares = Apply(g, "square", {grad});
    std::vector<int64_t> axes;
    for (size_t i = 0; i < g.node(grad).shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    if (!axes.empty()) squares = g.ReduceSum(squares, axes);
    sum = sum ? g.Binary(Op::kAdd, *sum, squares) : squares;
  }
  if (!sum) return;
  const NodeId bound = g.Const(max_norm);
  const NodeId norm = g.Binary(Op::kMax, g.Unary(Op::kSqrt, *sum), bound);
  const NodeId scale = Apply(g, "div", {bound, norm});
  for (NodeId& grad : step.gradients) grad = Scaled(g, grad, scale);
}

std::vector<UpdateEntry> BuiltinUpdates() {
  UpdateEntry sgd;
  sgd.form = {"sgd",
              {Arg::Real("lr", 0, 1e6), Arg::Real("momentum", 0, 1).BelowMax().Or(0.0)},
              "steps against the gradient, or against a decaying sum of gradients"};
  sgd.state = [](const Form& form) {
    return form.Real(1) != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  };
  sgd.expand = ExpandSgd;

  UpdateEntry adam;
  adam.form = {"adam",
               {Arg::Real("lr", 0, 1e6), Arg::Real("beta1", 0, 1).BelowMax().Or(0.9),
                Arg::Real("beta2", 0, 1).BelowMax().Or(0.999), Arg::Real("eps", 0, 1).Or(1e-8)},
               "steps by the mean gradient over the root of its mean square"};
  adam.state = [](const Form&) { return std::vector<std::string>{"m", "v"}; };
  adam.expand = ExpandAdam;

  UpdateEntry schedule;
  schedule.form = {
      "schedule",
      {Arg::Integer("warmup", 0, int64_t{1} << 40).Or(int64_t{0}),
       Arg::Word("decay", {"cosine", "linear", "constant"}).Or(std::string("constant")),
       Arg::Nested("inner", Family::kUpdate)},
      "raises the learning rate of the inner update over the first steps, then "
      "lowers it until the last"};
  schedule.state = [](const Form&) { return std::vector<std::string>{}; };
  schedule.expand = ExpandSchedule;
  schedule.inner = 2;

  UpdateEntry clip;
  clip.form = {"gradient_clip",
               {Arg::Real("max_norm", 0, 1e30).AboveMin(), Arg::Nested("inner", Family::kUpdate)},
               "scales all gradients down together when their norm is above max_norm"};
  clip.state = [](const Form&) { return std::vector<std::string>{}; };
  clip.expand = ExpandClip;
  clip.inner = 1;

  return {sgd, adam, schedule, clip};
}

std::vector<UpdateEntry>& Table() {
  static std::vector<UpdateEntry> table = [] {
    std::vector<UpdateEntry> all = BuiltinUpdates();
    // Pointers into the table are handed out, so that registering must not move it.
    all.reserve(256);
    return all;
  }();
  return table;
}

}  // namespace

const std::vector<UpdateEntry>& AllUpdates() { return Table(); }

const UpdateEntry* FindUpdate(std::string_view name) {
  for (const UpdateEntry& entry : Table()) {
    if (entry.form.name == name) return &entry;
  }
  return nullptr;
}

void RegisterUpdate(UpdateEntry entry) {
  if (FindUpdate(entry.form.name) != nullptr || IsReservedName(Family::kUpdate, entry.form.name) ||
      Table().size() == Table().capacity()) {
    throw std::invalid_argument("update '" + entry.form.name + "' cannot be registered");
  }
  Table().push_back(std::move(entry));
}

std::vector<const Form*> UpdateChain(const Form& update) {
  std::vector<const Form*> chain;
  const Form* form = &update;
  for (;;) {
    chain.push_back(form);
    const UpdateEntry* entry = FindUpdate(form->name);
    if (!entry->inner) return chain;
    form = &form->Inner(*entry->inner);
  }
}

UpdateGraph ExpandUpdate(const Form& update, const std::vector<Parameter>& parameters,
                         int64_t total_steps) {
  UpdateGraph result;
  Graph& g = result.graph;
  UpdateStep step;
  step.graph = &g;
  step.total_steps = total_steps;
  for (const Parameter& p : parameters) {
    step.parameters.push_back(g.AddInput(p.name, DType::kF32, p.shape));
  }
  for (const Parameter& p : parameters) {
    step.gradients.push_back(g.AddInput(p.name + "_grad", DType::kF32, p.shape));
  }
  struct Layer {
    const Form* form;
    const UpdateEntry* entry;
    std::vector<std::string> roles;
    std::vector<std::vector<NodeId>> state;
  };
  std::vector<Layer> layers;
  for (const Form* form : UpdateChain(update)) {
    Layer layer{form, FindUpdate(form->name), {}, {}};
    layer.roles = layer.entry->state(*form);
    for (const std::string& role : layer.roles) {
      std::vector<NodeId>& nodes = layer.state.emplace_back();
      for (const Parameter& p : parameters) {
        const std::string name = p.name + "_" + role;
        result.state.push_back({name, p.shape, DType::kF32});
        nodes.push_back(g.AddInput(name, DType::kF32, p.shape));
      }
    }
    layers.push_back(std::move(layer));
  }
  const NodeId counter = g.AddInput("step", DType::kI64, {});
  step.completed = g.Cast(counter, DType::kF64);
  for (Layer& layer : layers) {
    step.state = std::move(layer.state);
    layer.entry->expand(*layer.form, step);
    layer.state = std::move(step.state);
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    g.AddOutput(parameters[p].name, step.updated[p]);
  }
  for (const Layer& layer : layers) {
    for (size_t i = 0; i < layer.roles.size(); ++i) {
      for (size_t p = 0; p < parameters.size(); ++p) {
        g.AddOutput(parameters[p].name + "_" + layer.roles[i], layer.state[i][p]);
      }
    }
  }
  g.AddOutput("step", g.Binary(Op::kAdd, counter, g.Const(1, DType::kI64)));
  return result;
}

}  // namespace l3c::l2
