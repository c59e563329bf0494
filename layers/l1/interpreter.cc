#include "layers/l1/interpreter.h"

#include <algorithm>
#include <utility>

#include "layers/l1/init.h"

namespace l3c::l1 {

using tensor::Array;

Interpreter::Interpreter(const Program& program, uint64_t seed, tensor::Precision precision)
    : program_(program), precision_(precision) {
  for (const Actor& actor : program.actors) {
    for (const StateField& field : actor.state) {
      std::vector<double> values = InitialValues(field, actor.name, seed);
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
      values = batch;
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

}  // namespace l3c::l1
