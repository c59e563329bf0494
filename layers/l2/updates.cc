#include "layers/l2/updates.h"

#include <cmath>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/l2/registry.h"
#include "layers/l2/update_leaf.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

// A new update is a line here and a file of its own.
Registry<UpdateEntry>& Table() {
  static Registry<UpdateEntry> table(
      Family::kUpdate,
      {{SgdUpdate()}, {AdamUpdate()}, {MuonUpdate()}, {LionUpdate()}, UpdateWrappers()});
  return table;
}

}  // namespace

const std::deque<UpdateEntry>& AllUpdates() { return Table().all(); }
const UpdateEntry* FindUpdate(std::string_view name) { return Table().Find(name); }
void RegisterUpdate(UpdateEntry entry) { Table().Add(std::move(entry)); }

NodeId LearningRate(const UpdateStep& step, double base) {
  Graph& g = *step.graph;
  const NodeId rate = g.Const(base, DType::kF64);
  return step.factor ? g.Binary(Op::kMul, rate, *step.factor) : rate;
}

NodeId StepNumber(const UpdateStep& step) {
  Graph& g = *step.graph;
  return g.Binary(Op::kAdd, step.completed, g.Const(1, DType::kF64));
}

NodeId BiasCorrection(const UpdateStep& step, double beta) {
  Graph& g = *step.graph;
  if (beta == 0) return g.Const(1, DType::kF64);
  const NodeId exponent =
      g.Binary(Op::kMul, StepNumber(step), g.Const(std::log2(beta), DType::kF64));
  return Apply(g, "sub", {g.Const(1, DType::kF64), g.Unary(Op::kExp2, exponent)});
}

NodeId ForParameter(const UpdateStep& step, size_t p, NodeId scalar) {
  // Once for all parameters of a dtype: the cast of a scalar is made when it is first asked for.
  Graph& g = *step.graph;
  const DType dtype = g.node(step.parameters[p]).dtype;
  if (g.node(scalar).dtype == dtype) return scalar;
  for (NodeId id = scalar + 1; id < g.size(); ++id) {
    const tensor::Node& node = g.node(id);
    if (node.op == Op::kCast && node.dtype == dtype && node.inputs[0] == scalar) return id;
  }
  return g.Cast(scalar, dtype);
}

NodeId TimesScalar(Graph& g, NodeId a, double value) {
  return Scaled(g, a, g.Const(value, g.node(a).dtype));
}

NodeId RunningMean(Graph& g, NodeId mean, NodeId value, double decay) {
  return Add(g, TimesScalar(g, mean, decay), TimesScalar(g, value, 1 - decay));
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
                         int64_t total_steps, DType dtype) {
  UpdateGraph result;
  Graph& g = result.graph;
  UpdateStep step;
  step.graph = &g;
  step.total_steps = total_steps;
  for (const Parameter& p : parameters) {
    step.parameters.push_back(g.AddInput(p.name, dtype, p.shape));
  }
  for (const Parameter& p : parameters) {
    step.gradients.push_back(g.AddInput(p.name + "_grad", dtype, p.shape));
  }
  struct Link {
    const Form* form;
    const UpdateEntry* entry;
    std::vector<std::string> roles;
    std::vector<std::vector<NodeId>> state;
  };
  std::vector<Link> chain;
  for (const Form* form : UpdateChain(update)) {
    Link link{form, FindUpdate(form->name), {}, {}};
    link.roles = link.entry->state(*form);
    for (const std::string& role : link.roles) {
      std::vector<NodeId>& nodes = link.state.emplace_back();
      for (const Parameter& p : parameters) {
        const std::string name = p.name + "_" + role;
        result.state.push_back({name, p.shape, dtype});
        nodes.push_back(g.AddInput(name, dtype, p.shape));
      }
    }
    chain.push_back(std::move(link));
  }
  const NodeId counter = g.AddInput("step", DType::kI64, {});
  step.completed = g.Cast(counter, DType::kF64);
  for (Link& link : chain) {
    step.state = std::move(link.state);
    link.entry->expand(*link.form, step);
    link.state = std::move(step.state);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    if (!chain[i].entry->after) continue;
    step.state = std::move(chain[i].state);
    chain[i].entry->after(*chain[i].form, step);
    chain[i].state = std::move(step.state);
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    g.AddOutput(parameters[p].name, step.updated[p]);
  }
  for (const Link& link : chain) {
    for (size_t i = 0; i < link.roles.size(); ++i) {
      for (size_t p = 0; p < parameters.size(); ++p) {
        g.AddOutput(parameters[p].name + "_" + link.roles[i], link.state[i][p]);
      }
    }
  }
  g.AddOutput("step", g.Binary(Op::kAdd, counter, g.Const(1, DType::kI64)));
  return result;
}

const Form* EvaluationUpdate(const Form& update) {
  for (const Form* form : UpdateChain(update)) {
    if (FindUpdate(form->name)->evaluated) return form;
  }
  return nullptr;
}

}  // namespace l3c::l2
