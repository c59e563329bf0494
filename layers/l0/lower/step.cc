#include "layers/l0/lower/step.h"

#include <map>

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

// What a stage's buffer holds.
struct BufferContent {
  bool filled = false;
  std::string field;  // of the sampled data; l1::kValidField for the mask
};

class Merger {
 public:
  Merger(const l1::Program& program, const l1::Pipeline& pipeline,
         const std::vector<std::pair<std::string, std::string>>& reports,
         support::Diagnostics& diagnostics)
      : program_(program), pipeline_(pipeline), reports_(reports), diagnostics_(diagnostics) {
    const std::vector<StateRef> all = AllState(program);
    for (uint32_t s = 0; s < all.size(); ++s) state_index_[all[s].name] = s;
  }

  std::optional<Step> Run() {
    step_.name = pipeline_.name;
    for (const l1::Reference& link : pipeline_.links) {
      if (const l1::Stage* stage = l1::FindStage(program_, link.name)) {
        if (!RunStage(*stage, link)) return std::nullopt;
      } else if (const l1::TensorGraph* graph = l1::FindGraph(program_, link.name)) {
        if (!RunGraph(*graph, link)) return std::nullopt;
      } else if (auto handler = l1::FindHandler(program_, link.name)) {
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
    step_.graph = tensor::ExpandDerived(merged_, ids);
    for (StepInput& input : step_.inputs) input.node = ids[input.node];
    for (StepOutput& output : step_.outputs) output.node = ids[output.node];
    return std::move(step_);
  }

 private:
  bool RunStage(const l1::Stage& stage, const l1::Reference& link) {
    std::map<std::string, BufferContent> buffers;
    if (stage.samples) step_.sampling = stage.sampling;
    const std::vector<BufferContent> given = forwarded_[stage.name];
    for (size_t i = 0; i < stage.params.size() && i < given.size(); ++i) {
      buffers[stage.params[i].name] = given[i];
    }
    for (const l1::Statement& s : stage.body) {
      switch (s.kind) {
        case l1::StatementKind::kAlloc:
          buffers[s.buffer] = {};
          break;
        case l1::StatementKind::kRead:
          buffers[s.buffer] = {true, s.field};
          break;
        case l1::StatementKind::kCopy:
          buffers[s.buffer] = buffers[s.source];
          break;
        case l1::StatementKind::kForward: {
          std::vector<BufferContent>& handed = forwarded_[s.target];
          handed.clear();
          for (const std::string& b : s.buffers) handed.push_back(buffers[b]);
        } break;
        case l1::StatementKind::kDrop:
          break;
      }
    }
    for (const auto& [target, handed] : forwarded_) {
      for (const BufferContent& content : handed) {
        if (content.filled) continue;
        diagnostics_.Error(Kind::kSafety, link.span,
                           "stage '" + stage.name + "' forwards a buffer that nothing has filled");
        return false;
      }
    }
    return true;
  }

  // Appends the nodes of `graph` but its inputs, whose values `values` already holds.
  void Inline(const Graph& graph, const std::string& prefix, std::vector<NodeId>& values) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const tensor::Node& node = graph.node(id);
      if (node.op == tensor::Op::kInput) continue;
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) inputs.push_back(values[input]);
      std::string name = node.name;
      if (!name.empty() && merged_.Find(name)) name = prefix + "." + name;
      if (!name.empty() && merged_.Find(name)) name.clear();
      values[id] = merged_.Add(node.op, std::move(inputs), node.attr, name, node.span);
    }
  }

  NodeId State(uint32_t state, const l1::StateField& field) {
    auto it = current_.find(state);
    if (it != current_.end()) return it->second;
    const NodeId node =
        merged_.AddInput(InputName(field.name), field.dtype, field.shape, field.span);
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
    std::vector<NodeId> values(graph.graph.size(), 0);
    const std::vector<BufferContent>& given = forwarded_[graph.name];
    for (size_t i = 0; i < graph.args.size(); ++i) {
      const NodeId id = *graph.graph.Find(graph.args[i]);
      if (i >= given.size()) {
        diagnostics_.Error(
            Kind::kSafety, link.span,
            "nothing is forwarded to argument '" + graph.args[i] + "' of '" + graph.name + "'");
        return false;
      }
      const tensor::Node& node = graph.graph.node(id);
      values[id] = Field(given[i], node);
    }
    for (NodeId id : graph.graph.inputs()) {
      const std::string& name = graph.graph.node(id).name;
      bool is_arg = false;
      for (const std::string& arg : graph.args) is_arg |= arg == name;
      if (is_arg) continue;
      if (!WindowField(graph, name, values[id])) {
        diagnostics_.Error(Kind::kSafety, link.span,
                           "no window that '" + graph.name + "' reads has a field '" + name + "'");
        return false;
      }
    }
    Inline(graph.graph, graph.name, values);
    outputs_.clear();
    for (const tensor::Output& output : graph.graph.outputs()) {
      outputs_[output.name] = values[output.node];
      for (const auto& [owner, name] : reports_) {
        if (owner != graph.name || name != output.name) continue;
        merged_.AddOutput("report " + name, values[output.node]);
        step_.outputs.push_back({StepOutput::Kind::kReport, values[output.node], 0, name});
      }
    }
    return true;
  }

  NodeId Field(const BufferContent& content, const tensor::Node& node) {
    auto it = fields_.find(content.field);
    if (it != fields_.end()) return it->second;
    const NodeId id = merged_.AddInput(InputName(node.name), node.dtype, node.shape, node.span);
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
    const Graph& graph = ref.handler->graph;
    std::vector<NodeId> values(graph.size(), 0);
    for (NodeId id : graph.inputs()) {
      const std::string& name = graph.node(id).name;
      bool is_arg = false;
      for (const std::string& arg : ref.handler->args) is_arg |= arg == name;
      if (is_arg) {
        auto it = outputs_.find(name);
        if (it == outputs_.end()) {
          diagnostics_.Error(Kind::kSafety, link.span,
                             "no output of the graph before it is named '" + name +
                                 "', an argument of '" + link.name + "'");
          return false;
        }
        values[id] = it->second;
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
    for (const tensor::Output& output : graph.outputs()) {
      auto it = state_index_.find(ref.actor->name + "." + output.name);
      if (it == state_index_.end()) {
        diagnostics_.Error(Kind::kSafety, link.span,
                           "'" + output.name + "' is no state of actor '" + ref.actor->name + "'");
        return false;
      }
      current_[it->second] = values[output.node];
      changed_[it->second] = true;
    }
    return true;
  }

  const l1::Program& program_;
  const l1::Pipeline& pipeline_;
  const std::vector<std::pair<std::string, std::string>>& reports_;
  support::Diagnostics& diagnostics_;
  std::map<std::string, uint32_t> state_index_;
  Graph merged_;
  Step step_;
  std::map<std::string, std::vector<BufferContent>> forwarded_;  // by receiver
  std::map<std::string, NodeId> fields_;                         // of the sampled data
  std::map<uint32_t, NodeId> current_;                           // value of each state field so far
  std::map<uint32_t, bool> changed_;
  std::map<std::string, NodeId> outputs_;  // of the last graph
};

}  // namespace

std::optional<Step> MergeStep(const l1::Program& program, const l1::Pipeline& pipeline,
                              const std::vector<std::pair<std::string, std::string>>& reports,
                              support::Diagnostics& diagnostics) {
  return Merger(program, pipeline, reports, diagnostics).Run();
}

}  // namespace l3c::l0::lower
