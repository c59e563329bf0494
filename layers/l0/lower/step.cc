#include "layers/l0/lower/step.h"

#include <algorithm>
#include <map>
#include <set>

#include "layers/l1/flow.h"
#include "layers/l1/program_index.h"

namespace l3c::l0::lower {

using support::Kind;
using tensor::Graph;
using tensor::NodeId;

std::vector<StateRef> AllState(const l1::Program& program) {
  std::vector<StateRef> all;
  for (uint32_t a = 0; a < program.actors.size(); ++a) {
    const l1::Actor& actor = program.actors[a];
    for (uint32_t f = 0; f < actor.state.size(); ++f) {
      all.push_back({actor.name + "." + actor.state[f].name, a, f});
    }
  }
  return all;
}

namespace {

// What a stage's buffer holds: rows of a field as they were read, or a value.
struct Content {
  bool filled = false;
  std::string field;  // of the sampled data; l1::kValidField for the mask; "": a value
  NodeId value = 0;
  bool operator==(const Content&) const = default;
};

// Contents handed over. They are, and what is made of them counts, only where `guard`, a bool, is
// true; without a guard always.
struct Delivery {
  std::optional<NodeId> guard;
  std::vector<Content> contents;
};

class Merger {
 public:
  Merger(const l1::Program& program, const l1::Pipeline& pipeline,
         const std::vector<std::pair<std::string, std::string>>& reports,
         support::Diagnostics& diagnostics)
      : program_(program), pipeline_(pipeline), reports_(reports), diagnostics_(diagnostics) {
    const std::vector<StateRef> all = AllState(program);
    for (uint32_t s = 0; s < all.size(); ++s) {
      state_index_[all[s].name] = s;
      homes_.push_back(l1::HomeOf(program.system, program.actors[all[s].actor]));
    }
  }

  std::optional<Step> Run() {
    step_.name = pipeline_.name;
    const l1::ProgramIndex index(program_);
    for (const l1::Reference& link : l1::Flows(program_, index).LinksOf(pipeline_)) {
      if (const l1::Stage* stage = index.FindStage(link.name)) {
        if (!RunStage(*stage, link)) return std::nullopt;
      } else if (const l1::TensorGraph* graph = index.FindGraph(link.name)) {
        if (!RunGraph(*graph, link)) return std::nullopt;
      } else if (const l1::HandlerRef* handler = index.FindHandler(link.name)) {
        if (!RunHandler(*handler, link)) return std::nullopt;
      } else {
        diagnostics_.Error(Kind::kSafety, link.span,
                           "'" + link.name + "' is no stage, tensor graph or handler");
        return std::nullopt;
      }
    }
    for (const auto& [state, node] : current_) {
      if (!changed_.contains(state)) continue;
      merged_.AddOutput("state " + std::to_string(state), node);
      step_.outputs.push_back({StepOutput::Kind::kState, node, state, {}});
    }
    std::vector<NodeId> ids;
    Settle();
    step_.graph = tensor::ExpandDerived(merged_, ids);
    // What an op is made of lies where its value does.
    for (NodeId id = 0; id < merged_.size(); ++id) {
      while (step_.memory.size() <= ids[id]) step_.memory.push_back(memory_[id]);
    }
    step_.memory.resize(step_.graph.size(), here_);
    for (StepInput& input : step_.inputs) input.node = ids[input.node];
    for (StepOutput& output : step_.outputs) output.node = ids[output.node];
    for (OwnKernel& own : step_.own) {
      own.node = ids[own.node];
      for (NodeId& operand : own.operands) operand = ids[operand];
    }
    return std::move(step_);
  }

 private:
  // What a body may name, and whom it has handed buffers to.
  struct Body {
    const l1::Stage* stage = nullptr;
    std::map<std::string, Content> buffers;
    std::map<std::string, NodeId> values;  // bound by let
    std::map<std::string, Delivery> sent;  // by receiver
  };

  // What has been added since the last call lies in the memory that was worked in.
  void Settle() { memory_.resize(merged_.size(), here_); }
  void WorkOn(uint32_t node) {
    Settle();
    here_ = l1::MemoryOf(program_.system, node);
  }
  NodeId AddInput(const std::string& name, tensor::DType dtype, const tensor::Shape& shape,
                  support::Span span, uint32_t memory) {
    Settle();
    memory_.push_back(memory);
    return merged_.AddInput(InputName(name), dtype, shape, span);
  }

  bool RunStage(const l1::Stage& stage, const l1::Reference& link) {
    WorkOn(stage.node);
    if (stage.samples) step_.sampling = stage.sampling;
    std::vector<std::string> names;
    for (const l1::BufferParam& param : stage.params) names.push_back(param.name);
    const auto given = Receive(stage.name, names, link);
    if (!given) return false;
    Body body;
    body.stage = &stage;
    for (size_t i = 0; i < names.size(); ++i) {
      body.buffers[names[i]] = given->contents[i];
    }
    RunBody(stage.body, body);
    for (auto& [target, delivery] : body.sent) {
      for (const Content& content : delivery.contents) {
        if (content.filled) continue;
        diagnostics_.Error(Kind::kSafety, link.span,
                           "stage '" + stage.name + "' forwards a buffer that nothing has filled");
        return false;
      }
      delivery.guard = And(given->guard, delivery.guard);
      forwarded_[target] = std::move(delivery);
    }
    return true;
  }

  void RunBody(const std::vector<l1::Statement>& statements, Body& body) {
    for (const l1::Statement& s : statements) {
      switch (s.kind) {
        case l1::StatementKind::kAlloc:
          body.buffers[s.buffer] = {};
          types_[{body.stage, s.buffer}] = {s.dtype, s.shape};
          regions_[{body.stage, s.buffer}] = s.region;
          break;
        case l1::StatementKind::kLet:
          body.values[s.buffer] = Expression(s, body);
          break;
        case l1::StatementKind::kRead:
          body.buffers[s.buffer] = {true, s.field, 0};
          staged_.try_emplace(s.field, regions_.at({body.stage, s.buffer}));
          break;
        case l1::StatementKind::kDecode: {
          const l1::TensorType& type = types_.at({body.stage, s.buffer});
          NodeId value = merged_.Cast(ValueOf(body, s.source), type.dtype);
          if (s.scale != 1) {
            value = merged_.Add(tensor::Op::kMul,
                                {value, merged_.Full(s.scale, type.shape, type.dtype)});
          }
          body.buffers[s.buffer] = {true, "", value};
          break;
        }
        case l1::StatementKind::kCopy: {
          const auto from = body.buffers.find(s.source);
          if (from != body.buffers.end()) {
            const Content content = from->second;
            body.buffers[s.buffer] = content;
          } else {
            body.buffers[s.buffer] = {true, "", ValueOf(body, s.source)};
          }
          break;
        }
        case l1::StatementKind::kIf:
          RunIf(s, body);
          break;
        case l1::StatementKind::kForward: {
          Delivery delivery;
          for (const std::string& b : s.buffers) delivery.contents.push_back(body.buffers[b]);
          body.sent[l1::TargetOf(s)] = std::move(delivery);
          break;
        }
        case l1::StatementKind::kDrop:
          break;
      }
    }
  }

  // Both branches are computed and the condition selects: what is not to be has no effect, since
  // state keeps its value and what is reported is zero where a guard is false.
  void RunIf(const l1::Statement& s, Body& body) {
    const NodeId condition = Expression(s, body);
    const NodeId otherwise = Not(condition);
    Body then_body = body, else_body = body;
    then_body.sent.clear();
    else_body.sent.clear();
    RunBody(s.then_body, then_body);
    RunBody(s.else_body, else_body);
    for (auto& [name, content] : body.buffers) {
      content = Select(condition, then_body.buffers[name], else_body.buffers[name],
                       types_.at({body.stage, name}), name);
    }
    for (auto& [target, delivery] : then_body.sent) {
      const auto other = else_body.sent.find(target);
      if (other == else_body.sent.end()) {
        delivery.guard = And(condition, delivery.guard);
      } else {
        delivery = Select(condition, otherwise, delivery, other->second, target);
      }
      body.sent[target] = std::move(delivery);
    }
    for (auto& [target, delivery] : else_body.sent) {
      if (then_body.sent.contains(target)) continue;
      delivery.guard = And(otherwise, delivery.guard);
      body.sent[target] = std::move(delivery);
    }
  }

  Content Select(NodeId condition, const Content& a, const Content& b, const l1::TensorType& type,
                 const std::string& name) {
    if (a == b) return a;
    if (!a.filled || !b.filled) return {};
    return {true, "", Select(condition, ValueOf(a, type, name), ValueOf(b, type, name))};
  }

  Delivery Select(NodeId condition, NodeId otherwise, const Delivery& a, const Delivery& b,
                  const std::string& target) {
    Delivery both;
    if (a.guard || b.guard) both.guard = Or(*And(condition, a.guard), *And(otherwise, b.guard));
    const std::vector<l1::TensorType> types = TypesOf(target);
    for (size_t i = 0; i < a.contents.size(); ++i) {
      both.contents.push_back(
          Select(condition, a.contents[i], b.contents[i], types[i], "forwarded"));
    }
    return both;
  }

  NodeId Select(NodeId condition, NodeId a, NodeId b) {
    const tensor::Shape shape = merged_.node(a).shape;
    if (!shape.empty()) condition = merged_.Expand(condition, shape);
    return merged_.Add(tensor::Op::kWhere, {condition, a, b});
  }

  NodeId Not(NodeId a) {
    return merged_.Add(tensor::Op::kCmpNe, {a, merged_.Const(1, tensor::DType::kBool)});
  }
  NodeId Or(NodeId a, NodeId b) { return merged_.Add(tensor::Op::kAdd, {a, b}); }
  std::optional<NodeId> And(std::optional<NodeId> a, std::optional<NodeId> b) {
    if (!a || !b) return a ? a : b;
    return merged_.Add(tensor::Op::kMul, {*a, *b});
  }

  std::vector<l1::TensorType> TypesOf(const std::string& unit) const {
    std::vector<l1::TensorType> types;
    const auto add = [&](const Graph& graph, const std::vector<std::string>& args) {
      for (const std::string& arg : args) {
        const tensor::Node& node = graph.node(*graph.Find(arg));
        types.push_back({node.dtype, node.shape});
      }
    };
    if (const l1::Stage* stage = l1::FindStage(program_, unit)) {
      for (const l1::BufferParam& param : stage->params)
        types.push_back({param.dtype, param.shape});
    } else if (const l1::TensorGraph* graph = l1::FindGraph(program_, unit)) {
      add(graph->graph, graph->args);
    } else if (const auto handler = l1::FindHandler(program_, unit)) {
      add(handler->handler->graph, handler->handler->args);
    }
    return types;
  }

  NodeId Expression(const l1::Statement& s, const Body& body) {
    std::vector<NodeId> values(s.value.size(), 0);
    for (NodeId id : s.value.inputs()) values[id] = ValueOf(body, s.value.node(id).name);
    Inline(s.value, body.stage->name, values);
    return values[s.value.outputs()[0].node];
  }

  // Of a buffer, of what a let has bound, or of state that a window grants.
  NodeId ValueOf(const Body& body, const std::string& name) {
    const auto bound = body.values.find(name);
    if (bound != body.values.end()) return bound->second;
    const auto buffer = body.buffers.find(name);
    if (buffer != body.buffers.end()) {
      return ValueOf(buffer->second, types_.at({body.stage, name}), name);
    }
    const auto owner = *l1::FindWindowField(program_, body.stage->reads, name);
    return State(state_index_.at(owner.actor->name + "." + name), *owner.field);
  }

  NodeId ValueOf(const Content& content, const l1::TensorType& type, const std::string& name) {
    return content.field.empty() ? content.value : Field(content, type, name);
  }

  // What a link gets: what a stage has handed over to it, or, where none has, the outputs of the
  // graphs before it under the names of the arguments.
  std::optional<Delivery> Receive(const std::string& unit,
                                  const std::vector<std::string>& arguments,
                                  const l1::Reference& link) {
    const std::vector<l1::TensorType> types = TypesOf(unit);
    if (const l1::Stage* stage = l1::FindStage(program_, unit)) {
      for (size_t i = 0; i < arguments.size(); ++i) types_[{stage, arguments[i]}] = types[i];
    }
    const auto given = forwarded_.find(unit);
    const bool handed = given != forwarded_.end();
    if (handed) {
      Delivery delivery = std::move(given->second);
      forwarded_.erase(given);
      if (delivery.contents.size() == arguments.size()) return delivery;
    } else {
      Delivery delivery;
      std::set<NodeId> guards;  // each once: most arguments come from one graph
      for (const std::string& name : arguments) {
        const auto output = outputs_.find(name);
        if (output == outputs_.end()) break;
        delivery.contents.push_back({true, "", output->second.value});
        const std::optional<NodeId>& guard = output->second.guard;
        if (guard && guards.insert(*guard).second) delivery.guard = And(delivery.guard, guard);
      }
      if (delivery.contents.size() == arguments.size()) return delivery;
    }
    for (const std::string& name : arguments) {
      if (!handed && outputs_.contains(name)) continue;
      diagnostics_.Error(Kind::kSafety, link.span,
                         "nothing is forwarded to argument '" + name + "' of '" + unit +
                             "', and no graph before it has an output of that name");
      break;
    }
    return std::nullopt;
  }

  using Kernels = std::vector<std::pair<std::string, support::EscapeHatch>>;

  // Appends the nodes of `graph` but its inputs, whose values `values` already holds.
  bool Inline(const Graph& graph, const std::string& prefix, std::vector<NodeId>& values,
              const Kernels& kernels = {}) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const tensor::Node& node = graph.node(id);
      if (node.op == tensor::Op::kInput) continue;
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) inputs.push_back(values[input]);
      std::string name = node.name;
      if (!name.empty() && merged_.Find(name)) name = prefix + "." + name;
      if (!name.empty() && merged_.Find(name)) name.clear();
      const auto own = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const auto& k) { return k.first == node.name; });
      if (own != kernels.end()) {
        if (!Own(graph, id, values, own->second, values[id])) return false;
        continue;
      }
      values[id] = merged_.Add(node.op, std::move(inputs), node.attr, name, node.span);
    }
    return true;
  }

  // A value of a kernel of the user's: an input, with what it means beside it.
  bool Own(const Graph& graph, NodeId id, const std::vector<NodeId>& values,
           const support::EscapeHatch& hatch, NodeId& value) {
    const tensor::Node& node = graph.node(id);
    const auto refuse = [&](const std::string& why, const std::string& fix) {
      diagnostics_.Error(Kind::kSafety, hatch.span, "'" + node.name + "' " + why).Fix(fix);
      return false;
    };
    OwnKernel own;
    own.name = node.name;
    own.hatch = hatch;
    // From what: the operands of its op, or the values that `of: [a, b]` names.
    std::vector<NodeId> from = node.inputs;
    if (const auto names = TakeOf(own.hatch.args)) {
      from.clear();
      for (const std::string& name : *names) {
        const auto found = graph.Find(name);
        if (!found || *found >= id) return refuse("is not made of '" + name + "'", "see its let");
        from.push_back(*found);
      }
    }
    std::map<NodeId, NodeId> meaning;  // of nodes of `graph`
    for (NodeId operand : from) {
      const tensor::Node& of = graph.node(operand);
      if (of.op == tensor::Op::kConst) continue;
      const NodeId merged = values[operand];
      const auto known = std::find(own.operands.begin(), own.operands.end(), merged);
      const auto at = static_cast<size_t>(known - own.operands.begin());
      if (known == own.operands.end()) {
        own.operands.push_back(merged);
        own.meaning.AddInput(of.name, of.dtype, of.shape, of.span);
      }
      meaning[operand] = own.meaning.inputs()[at];
    }
    if (own.operands.empty() || own.operands.size() > OwnKernel::kMaxOperands) {
      return refuse("is made of " + std::to_string(own.operands.size()) + " values",
                    "a kernel of one's own takes one to three");
    }
    std::vector<bool> needed(id + 1);
    needed[id] = true;
    for (NodeId n = id + 1; n-- > 0;) {
      if (!needed[n] || meaning.contains(n)) continue;
      for (NodeId input : graph.node(n).inputs) needed[input] = true;
    }
    for (NodeId n = 0; n <= id; ++n) {
      if (!needed[n] || meaning.contains(n)) continue;
      const tensor::Node& part = graph.node(n);
      if (part.op == tensor::Op::kInput) {
        return refuse("is made of '" + part.name + "' as well", "name it: of: [" + part.name + "]");
      }
      std::vector<NodeId> inputs;
      for (NodeId input : part.inputs) inputs.push_back(meaning.at(input));
      meaning[n] = own.meaning.Add(part.op, inputs, part.attr, part.name, part.span);
    }
    own.meaning.AddOutput(node.name, meaning.at(id));
    value = merged_.AddInput(InputName(node.name), node.dtype, node.shape, node.span);
    own.node = value;
    step_.own.push_back(std::move(own));
    return true;
  }

  // Takes `, of: [a, b]` from the end of an annotation's arguments; nothing where there is none.
  static std::optional<std::vector<std::string>> TakeOf(std::string& args) {
    constexpr std::string_view kOf = ", of: [";
    const size_t at = args.rfind(kOf);
    if (at == std::string::npos || !args.ends_with(']')) return std::nullopt;
    std::vector<std::string> names(1);
    for (const char c : args.substr(at + kOf.size(), args.size() - 1 - at - kOf.size())) {
      if (c == ',') {
        names.emplace_back();
      } else if (c != ' ') {
        names.back() += c;
      }
    }
    args.resize(at);
    return names;
  }

  NodeId State(uint32_t state, const l1::StateField& field) {
    auto it = current_.find(state);
    if (it != current_.end()) return it->second;
    const NodeId node = AddInput(field.name, field.dtype, field.shape, field.span, homes_[state]);
    step_.inputs.push_back({StepInput::Kind::kState, node, {}, state});
    current_[state] = node;
    return node;
  }

  std::string InputName(const std::string& wanted) const {
    std::string name = wanted;
    while (merged_.Find(name)) name += "_";
    return name;
  }

  bool RunGraph(const l1::TensorGraph& graph, const l1::Reference& link) {
    WorkOn(graph.node);
    std::vector<NodeId> values(graph.graph.size(), 0);
    const auto given = Receive(graph.name, graph.args, link);
    if (!given) return false;
    for (size_t i = 0; i < graph.args.size(); ++i) {
      const NodeId id = *graph.graph.Find(graph.args[i]);
      const tensor::Node& node = graph.graph.node(id);
      values[id] = ValueOf(given->contents[i], {node.dtype, node.shape}, node.name);
    }
    const std::set<std::string_view> args(graph.args.begin(), graph.args.end());
    for (NodeId id : graph.graph.inputs()) {
      const std::string& name = graph.graph.node(id).name;
      if (args.contains(name)) continue;
      if (!WindowField(graph, name, values[id])) {
        diagnostics_.Error(Kind::kSafety, link.span,
                           "no window that '" + graph.name + "' reads has a field '" + name + "'");
        return false;
      }
    }
    if (!Inline(graph.graph, graph.name, values, graph.kernels)) return false;
    for (const tensor::Output& output : graph.graph.outputs()) {
      outputs_[output.name] = {values[output.node], given->guard};
      for (const auto& [owner, name] : reports_) {
        if (owner != graph.name || name != output.name) continue;
        NodeId value = values[output.node];
        if (given->guard) {
          const tensor::Node& node = merged_.node(value);
          value = Select(*given->guard, value, merged_.Full(0, node.shape, node.dtype));
        }
        merged_.AddOutput("report " + name, value);
        step_.outputs.push_back({StepOutput::Kind::kReport, value, 0, name});
      }
    }
    return true;
  }

  NodeId Field(const Content& content, const l1::TensorType& type, const std::string& name) {
    auto it = fields_.find(content.field);
    if (it != fields_.end()) return it->second;
    const NodeId id = AddInput(name, type.dtype, type.shape, {}, staged_.at(content.field));
    const bool mask = content.field == l1::kValidField;
    step_.inputs.push_back(
        {mask ? StepInput::Kind::kMask : StepInput::Kind::kField, id, content.field, 0});
    fields_[content.field] = id;
    return id;
  }

  bool WindowField(const l1::TensorGraph& graph, const std::string& name, NodeId& value) {
    for (const auto& [actor_name, window_name] : graph.reads) {
      const l1::Actor* actor = l1::FindActor(program_, actor_name);
      const l1::Window* window = actor ? l1::FindWindow(*actor, window_name) : nullptr;
      if (!window) continue;
      for (const std::string& field : window->fields) {
        if (field != name) continue;
        const l1::StateField* state = l1::FindState(*actor, field);
        if (!state) return false;
        value = State(state_index_.at(actor_name + "." + field), *state);
        return true;
      }
    }
    return false;
  }

  bool RunHandler(const l1::HandlerRef& ref, const l1::Reference& link) {
    WorkOn(ref.actor->node);
    const Graph& graph = ref.handler->graph;
    const auto given = Receive(link.name, ref.handler->args, link);
    if (!given) return false;
    std::vector<NodeId> values(graph.size(), 0);
    std::map<std::string_view, NodeId> arguments;
    for (size_t i = 0; i < ref.handler->args.size(); ++i) {
      const std::string& name = ref.handler->args[i];
      const tensor::Node& node = graph.node(*graph.Find(name));
      arguments[name] = ValueOf(given->contents[i], {node.dtype, node.shape}, name);
    }
    for (NodeId id : graph.inputs()) {
      const std::string& name = graph.node(id).name;
      if (const auto argument = arguments.find(name); argument != arguments.end()) {
        values[id] = argument->second;
        continue;
      }
      const l1::StateField* field = l1::FindState(*ref.actor, name);
      if (!field) {
        diagnostics_.Error(Kind::kSafety, link.span,
                           "'" + name + "' is no state of actor '" + ref.actor->name + "'");
        return false;
      }
      values[id] = State(state_index_.at(ref.actor->name + "." + name), *field);
    }
    Inline(graph, ref.handler->message, values);
    // A message sees the state as it found it: nothing changes before all is computed.
    std::vector<std::pair<uint32_t, NodeId>> next;
    for (const tensor::Output& output : graph.outputs()) {
      auto it = state_index_.find(ref.actor->name + "." + output.name);
      if (it == state_index_.end()) {
        diagnostics_.Error(Kind::kSafety, link.span,
                           "'" + output.name + "' is no state of actor '" + ref.actor->name + "'");
        return false;
      }
      NodeId value = values[output.node];
      if (given->guard) {
        const l1::StateField& field = *l1::FindState(*ref.actor, output.name);
        value = Select(*given->guard, value, State(it->second, field));
      }
      next.emplace_back(it->second, value);
    }
    for (const auto& [state, value] : next) {
      current_[state] = value;
      changed_[state] = true;
    }
    return true;
  }

  const l1::Program& program_;
  const l1::Pipeline& pipeline_;
  const std::vector<std::pair<std::string, std::string>>& reports_;
  support::Diagnostics& diagnostics_;
  std::map<std::string, uint32_t> state_index_;
  std::vector<uint32_t> homes_;  // by state: the memory that it lies in
  uint32_t here_ = 0;            // the memory that is worked in
  Graph merged_;
  std::vector<uint32_t> memory_;  // of the nodes of `merged_`
  Step step_;
  std::map<std::pair<const l1::Stage*, std::string>, l1::TensorType> types_;  // of buffers
  std::map<std::string, Delivery> forwarded_;                                 // by receiver
  std::map<std::pair<const l1::Stage*, std::string>, uint32_t> regions_;      // of buffers
  std::map<std::string, NodeId> fields_;                                      // of the sampled data
  std::map<std::string, uint32_t> staged_;  // by field: the memory that it is read into
  std::map<uint32_t, NodeId> current_;      // value of each state field so far
  std::map<uint32_t, bool> changed_;
  struct GraphOutput {
    NodeId value = 0;
    std::optional<NodeId> guard;
  };
  std::map<std::string, GraphOutput> outputs_;  // of the graphs so far; of one name the last
};

}  // namespace

std::optional<Step> MergeStep(const l1::Program& program, const l1::Pipeline& pipeline,
                              const std::vector<std::pair<std::string, std::string>>& reports,
                              support::Diagnostics& diagnostics) {
  return Merger(program, pipeline, reports, diagnostics).Run();
}

}  // namespace l3c::l0::lower
