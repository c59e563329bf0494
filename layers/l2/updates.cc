#include "layers/l2/updates.h"

#include <algorithm>
#include <cmath>
#include <map>
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

NodeId LearningRate(const UpdateStep& step, double base) {
  Graph& g = *step.graph;
  const NodeId rate = g.Const(base, DType::kF64);
  return step.factor ? g.Binary(Op::kMul, rate, *step.factor) : rate;
}

NodeId BiasCorrection(Graph& g, NodeId completed, double beta) {
  if (beta == 0) return g.Const(1, DType::kF64);
  const NodeId number = g.Binary(Op::kAdd, completed, g.Const(1, DType::kF64));
  const NodeId exponent = g.Binary(Op::kMul, number, g.Const(std::log2(beta), DType::kF64));
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

bool SameLink(const Form& a, const Form& b) {
  if (a.name != b.name) return false;
  const std::optional<size_t> inner = FindUpdate(a.name)->inner;
  if (!inner) return SameForm(a, b);
  Form with = a;
  with.args[*inner] = b.args[*inner];
  return SameForm(with, b);
}

std::string StateName(const std::string& parameter, const Form& link, const std::string& role,
                      const UpdatePlace& place) {
  const auto owner = place.role_owners.find(role);
  const bool plain = owner == place.role_owners.end() || owner->second == link.name;
  return parameter + "_" + (plain ? role : link.name + "_" + role);
}

namespace {

// The graph of one step: gradients change from the outermost link inwards, the leaf moves the
// parameters, and what is left is done from the innermost link outwards.
class UpdateExpander {
 public:
  UpdateExpander(const Form& update, const std::vector<Parameter>& parameters, int64_t total_steps,
                 DType dtype, const UpdatePlace& place)
      : parameters_(parameters), dtype_(dtype), place_(place) {
    step_.graph = &g_;
    step_.total_steps = total_steps;
    for (const Form* form : UpdateChain(update)) {
      chain_.push_back({form, FindUpdate(form->name), {}, {}, {}});
    }
  }

  UpdateGraph Run() {
    AddParameters();
    for (Link& link : chain_) AddState(link);
    const NodeId counter = g_.AddInput(place_.step, DType::kI64, {});
    step_.completed = g_.Cast(counter, DType::kF64);
    AddHistory();
    for (Link& link : chain_) {
      step_.state = std::move(link.state);
      link.entry->expand(*link.form, step_);
      link.state = std::move(step_.state);
    }
    Finish();
    AddOutputs(counter);
    return std::move(result_);
  }

 private:
  struct Link {
    const Form* form;
    const UpdateEntry* entry;
    std::vector<std::string> roles;
    std::vector<size_t> of;  // whose state it keeps, into parameters_
    std::vector<std::vector<NodeId>> state;
  };

  bool Frozen(size_t p) const { return !place_.frozen.empty() && place_.frozen[p]; }

  void AddParameters() {
    // What stays as it is matters only to what is done after.
    const bool gathers = std::any_of(chain_.begin(), chain_.end(),
                                     [](const Link& link) { return link.entry->after != nullptr; });
    inputs_.resize(parameters_.size());
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (Frozen(p) && !gathers) continue;
      inputs_[p] = g_.AddInput(parameters_[p].name, dtype_, parameters_[p].shape);
      if (Frozen(p)) continue;
      moved_.push_back(p);
      step_.parameters.push_back(inputs_[p]);
    }
    for (size_t p : moved_) {
      step_.gradients.push_back(
          g_.AddInput(parameters_[p].name + "_grad", dtype_, parameters_[p].shape));
    }
  }

  void AddState(Link& link) {
    link.roles = link.entry->state(*link.form);
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (!Frozen(p) || link.entry->after) link.of.push_back(p);
    }
    for (const std::string& role : link.roles) {
      std::vector<NodeId>& nodes = link.state.emplace_back();
      for (size_t p : link.of) {
        const std::string name = StateName(parameters_[p].name, *link.form, role, place_);
        result_.state.push_back({name, parameters_[p].shape, dtype_});
        nodes.push_back(g_.AddInput(name, dtype_, parameters_[p].shape));
      }
    }
  }

  void AddHistory() {
    if (place_.history.empty() || !chain_.back().entry->counts_history) {
      step_.history.assign(moved_.size(), step_.completed);
      return;
    }
    std::map<std::vector<std::string>, NodeId> sums;
    for (size_t p : moved_) {
      auto [sum, fresh] = sums.try_emplace(place_.history[p], step_.completed);
      if (fresh && !sum->first.empty()) {
        std::optional<NodeId> total;
        for (const std::string& name : sum->first) {
          const auto known = g_.Find(name);
          const NodeId count = known ? *known : g_.AddInput(name, DType::kI64, {});
          total = total ? g_.Binary(Op::kAdd, *total, count) : count;
        }
        sum->second = g_.Cast(*total, DType::kF64);
      }
      step_.history.push_back(sum->second);
    }
  }

  void Finish() {
    std::vector<NodeId> updated;  // of all parameters
    for (size_t p = 0, m = 0; p < parameters_.size(); ++p) {
      updated.push_back(Frozen(p) ? inputs_[p] : step_.updated[m++]);
    }
    const std::vector<NodeId> moved = std::exchange(step_.updated, std::move(updated));
    for (size_t i = chain_.size(); i-- > 0;) {
      if (!chain_[i].entry->after) continue;
      step_.state = std::move(chain_[i].state);
      chain_[i].entry->after(*chain_[i].form, step_);
      chain_[i].state = std::move(step_.state);
    }
    step_.updated = moved;
  }

  void AddOutputs(NodeId counter) {
    for (size_t m = 0; m < moved_.size(); ++m) {
      g_.AddOutput(parameters_[moved_[m]].name, step_.updated[m]);
    }
    for (const Link& link : chain_) {
      for (size_t i = 0; i < link.roles.size(); ++i) {
        for (size_t n = 0; n < link.of.size(); ++n) {
          const std::string& parameter = parameters_[link.of[n]].name;
          g_.AddOutput(StateName(parameter, *link.form, link.roles[i], place_), link.state[i][n]);
        }
      }
    }
    const NodeId one = g_.Const(1, DType::kI64);
    g_.AddOutput(place_.step, g_.Binary(Op::kAdd, counter, one));
    for (const std::string& name : place_.counters) {
      const auto known = g_.Find(name);
      const NodeId count = known ? *known : g_.AddInput(name, DType::kI64, {});
      result_.state.push_back({name, {}, DType::kI64});
      g_.AddOutput(name, g_.Binary(Op::kAdd, count, one));
    }
  }

  const std::vector<Parameter>& parameters_;
  const DType dtype_;
  const UpdatePlace& place_;
  UpdateGraph result_;
  Graph& g_ = result_.graph;
  UpdateStep step_;
  std::vector<Link> chain_;
  std::vector<NodeId> inputs_;  // by parameter
  std::vector<size_t> moved_;   // those that are not frozen
};

}  // namespace

UpdateGraph ExpandUpdate(const Form& update, const std::vector<Parameter>& parameters,
                         int64_t total_steps, DType dtype, const UpdatePlace& place) {
  return UpdateExpander(update, parameters, total_steps, dtype, place).Run();
}

const Form* EvaluationUpdate(const Form& update) {
  for (const Form* form : UpdateChain(update)) {
    if (FindUpdate(form->name)->evaluated) return form;
  }
  return nullptr;
}

}  // namespace l3c::l2
