#include "layers/l1/interpreter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "layers/l1/flow.h"
#include "layers/l1/init.h"
#include "layers/l1/program_index.h"

namespace l3c::l1 {

using tensor::Array;

Interpreter::Interpreter(const Program& program, uint64_t seed, tensor::Precision precision)
    : program_(program), precision_(precision) {
  for (const Actor& actor : program.actors) {
    for (const StateField& field : actor.state) {
      std::vector<double> values = InitialValues(field, NameForState(actor), seed);
      state_[{actor.name, field.name}] =
          tensor::IsFloat(field.dtype)
              ? Array::Floats(field.dtype, field.shape, std::move(values))
              : Array::Ints(field.dtype, field.shape, {values.begin(), values.end()});
    }
  }
}

std::vector<Array> Interpreter::Inputs(const tensor::Graph& graph,
                                       const std::vector<std::string>& args, const Values& values,
                                       const std::vector<const Actor*>& actors) const {
  std::vector<Array> inputs;
  for (tensor::NodeId id : graph.inputs()) {
    const std::string& name = graph.node(id).name;
    if (std::find(args.begin(), args.end(), name) != args.end()) {
      const auto value = values.find(name);
      if (value == values.end()) throw tensor::ShapeError("nothing is given for '" + name + "'");
      inputs.push_back(value->second);
      continue;
    }
    for (const Actor* actor : actors) {
      if (FindState(*actor, name) == nullptr) continue;
      inputs.push_back(state_.at({actor->name, name}));
      break;
    }
  }
  return inputs;
}

std::map<std::string, Array> Interpreter::Run(const Pipeline& pipeline, const Values& batch) {
  Values values = batch;
  Values results;
  for (const Reference& link : pipeline.links) {
    if (const TensorGraph* graph = FindGraph(program_, link.name)) {
      std::vector<const Actor*> actors;
      for (const auto& [actor, window] : graph->reads) {
        actors.push_back(FindActor(program_, actor));
      }
      std::vector<Array> outputs = tensor::Evaluate(
          graph->graph, Inputs(graph->graph, graph->args, values, actors), precision_);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::string& name = graph->graph.outputs()[i].name;
        values[name] = outputs[i];
        results[name] = std::move(outputs[i]);
      }
    } else if (const auto ref = FindHandler(program_, link.name)) {
      const tensor::Graph& graph_of = ref->handler->graph;
      std::vector<Array> outputs = tensor::Evaluate(
          graph_of, Inputs(graph_of, ref->handler->args, values, {ref->actor}), precision_);
      for (size_t i = 0; i < outputs.size(); ++i) {
        state_[{ref->actor->name, graph_of.outputs()[i].name}] = std::move(outputs[i]);
      }
    }
  }
  return results;
}

// One step with its stages. What is handed to a unit lies in `handed_` until the unit runs; a unit
// that a stage could hand buffers to, and did not, does not run.
class StepRun {
 public:
  using Values = std::map<std::string, Array>;

  StepRun(Interpreter& interpreter, const Values& rows)
      : owner_(interpreter), index_(interpreter.program_), rows_(rows) {}

  Values Run(const Pipeline& pipeline) {
    const std::vector<Reference> links = Flows(owner_.program_, index_).LinksOf(pipeline);
    for (const Reference& link : links) {
      const Stage* stage = index_.FindStage(link.name);
      if (stage == nullptr) continue;
      ForEachStatement(stage->body, [&](const Statement& s) {
        if (s.kind == StatementKind::kForward) targets_.insert(TargetOf(s));
      });
    }
    for (const Reference& link : links) {
      const std::vector<std::string> names = ArgumentsOf(index_, link.name);
      Values arguments;
      if (!Receive(link.name, names, arguments)) continue;
      if (const Stage* stage = index_.FindStage(link.name)) {
        values_ = std::move(arguments);
        RunBody(*stage, stage->body);
      } else if (const TensorGraph* graph = index_.FindGraph(link.name)) {
        std::vector<const Actor*> actors;
        for (const auto& [actor, window] : graph->reads) actors.push_back(index_.FindActor(actor));
        Keep(graph->graph, Evaluate(graph->graph, graph->args, arguments, actors));
      } else {
        const HandlerRef& ref = *index_.FindHandler(link.name);
        std::vector<Array> next =
            Evaluate(ref.handler->graph, ref.handler->args, arguments, {ref.actor});
        for (size_t i = 0; i < next.size(); ++i) {
          owner_.SetState(ref.actor->name, ref.handler->graph.outputs()[i].name,
                          std::move(next[i]));
        }
      }
    }
    return std::move(results_);
  }

 private:
  bool Receive(const std::string& unit, const std::vector<std::string>& names, Values& arguments) {
    if (targets_.contains(unit)) {
      const auto handed = handed_.find(unit);
      if (handed == handed_.end()) return DoesNotRun(unit);
      for (size_t i = 0; i < names.size(); ++i) arguments[names[i]] = handed->second[i];
      handed_.erase(handed);
      return true;
    }
    for (const std::string& name : names) {
      const auto output = outputs_.find(name);
      if (output == outputs_.end()) throw tensor::ShapeError("nothing is given for '" + name + "'");
      if (!output->second) return DoesNotRun(unit);
      arguments[name] = *output->second;
    }
    return true;
  }

  // Neither does what takes the outputs of a graph that does not run.
  bool DoesNotRun(const std::string& unit) {
    const TensorGraph* graph = index_.FindGraph(unit);
    if (graph == nullptr) return false;
    for (const tensor::Output& output : graph->graph.outputs()) outputs_[output.name].reset();
    return false;
  }

  std::vector<Array> Evaluate(const tensor::Graph& graph, const std::vector<std::string>& args,
                              const Values& arguments, const std::vector<const Actor*>& actors) {
    return tensor::Evaluate(graph, owner_.Inputs(graph, args, arguments, actors),
                            owner_.precision_);
  }

  void Keep(const tensor::Graph& graph, std::vector<Array> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = graph.outputs()[i].name;
      outputs_[name] = outputs[i];
      results_[name] = std::move(outputs[i]);
    }
  }

  const Array& ValueOf(const Stage& stage, const std::string& name) const {
    const auto value = values_.find(name);
    if (value != values_.end()) return value->second;
    return owner_.State(index_.FindWindowField(stage.reads, name)->actor->name, name);
  }

  Array Expression(const Stage& stage, const Statement& s) const {
    std::vector<Array> inputs;
    for (tensor::NodeId id : s.value.inputs()) {
      inputs.push_back(ValueOf(stage, s.value.node(id).name));
    }
    return tensor::Evaluate(s.value, inputs, owner_.precision_).front();
  }

  // The elements of `from` in the type of `s.buffer`, times the scale.
  Array Decoded(const Stage& stage, const Statement& s) const {
    const Array& from = ValueOf(stage, s.source);
    tensor::Graph graph;
    const tensor::NodeId input = graph.AddInput("from", from.dtype, from.shape);
    const tensor::NodeId cast = graph.Cast(input, types_.at(s.buffer).dtype);
    const tensor::NodeId scale = graph.Full(s.scale, from.shape, types_.at(s.buffer).dtype);
    graph.AddOutput("to", s.scale == 1 ? cast : graph.Binary(tensor::Op::kMul, cast, scale));
    return tensor::Evaluate(graph, std::vector<Array>{from}, owner_.precision_).front();
  }

  void RunBody(const Stage& stage, const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      switch (s.kind) {
        case StatementKind::kAlloc:
          types_[s.buffer] = {s.dtype, s.shape};
          break;
        case StatementKind::kLet:
          values_[s.buffer] = Expression(stage, s);
          break;
        case StatementKind::kRead: {
          const auto rows = rows_.find(s.field);
          if (rows == rows_.end()) {
            throw tensor::ShapeError("no rows are given for field '" + s.field + "'");
          }
          values_[s.buffer] = rows->second;
          break;
        }
        case StatementKind::kDecode:
          values_[s.buffer] = Decoded(stage, s);
          break;
        case StatementKind::kCopy: {
          Array copy = ValueOf(stage, s.source);
          values_[s.buffer] = std::move(copy);
          break;
        }
        case StatementKind::kIf:
          RunBody(stage, Expression(stage, s).ints[0] != 0 ? s.then_body : s.else_body);
          break;
        case StatementKind::kForward: {
          std::vector<Array>& handed = handed_[TargetOf(s)];
          handed.clear();
          for (const std::string& buffer : s.buffers) handed.push_back(values_.at(buffer));
          break;
        }
        case StatementKind::kDrop:
          break;
      }
    }
  }

  Interpreter& owner_;
  const ProgramIndex index_;
  const Values& rows_;
  std::set<std::string> targets_;  // of any forward
  std::map<std::string, std::vector<Array>> handed_;
  Values values_;                                        // of the stage at hand
  std::map<std::string, TensorType> types_;              // of its buffers
  std::map<std::string, std::optional<Array>> outputs_;  // of graphs; nothing if one did not run
  Values results_;
};

std::map<std::string, Array> Interpreter::RunRows(const Pipeline& pipeline, const Values& rows) {
  return StepRun(*this, rows).Run(pipeline);
}

}  // namespace l3c::l1
