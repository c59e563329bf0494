#include "layers/l1/flow.h"

#include <algorithm>

namespace l3c::l1 {

std::vector<std::string> ArgumentsOf(const ProgramIndex& index, const std::string& unit) {
  if (const Stage* stage = index.FindStage(unit)) {
    std::vector<std::string> names;
    for (const BufferParam& param : stage->params) names.push_back(param.name);
    return names;
  }
  if (const TensorGraph* graph = index.FindGraph(unit)) return graph->args;
  const HandlerRef* handler = index.FindHandler(unit);
  return handler != nullptr ? handler->handler->args : std::vector<std::string>{};
}

Flows::Flows(const Program& program, const ProgramIndex& index) : index_(index) {
  for (const Phase& phase : program.schedule.phases) {
    trained_.insert(phase.pipeline);
    run_.insert({phase.pipeline, phase.eval});
  }
  phases_ = !program.schedule.phases.empty();
  std::set<std::string> seen;
  for (const Reference& reference : program.schedule.pipelines) {
    const Pipeline* pipeline = index.FindPipeline(reference.name);
    if (pipeline == nullptr || pipeline->links.empty() || run_.contains(pipeline->name)) continue;
    if (!seen.insert(pipeline->name).second) continue;
    const std::string& first = pipeline->links.front().name;
    const Stage* stage = index.FindStage(first);
    if (stage != nullptr && stage->samples) continue;
    const size_t number = continuing_.size();
    continuing_.push_back(pipeline);
    by_link_[first].push_back(number);
    const std::vector<std::string> arguments = ArgumentsOf(index, first);
    if (!arguments.empty()) by_argument_[arguments.front()].push_back(number);
  }
}

bool Flows::IsRun(const Pipeline& pipeline) const {
  if (phases_) return run_.contains(pipeline.name);
  const Stage* stage =
      pipeline.links.empty() ? nullptr : index_.FindStage(pipeline.links.front().name);
  return stage != nullptr && stage->samples;
}

std::vector<Reference> Flows::WithMessages(const std::vector<Reference>& links) const {
  std::set<std::string> listed;
  for (const Reference& link : links) listed.insert(link.name);
  std::vector<Reference> all;
  for (const Reference& link : links) {
    all.push_back(link);
    const Stage* stage = index_.FindStage(link.name);
    if (stage == nullptr) continue;
    ForEachStatement(stage->body, [&](const Statement& s) {
      if (s.kind != StatementKind::kForward || s.handler.empty()) return;
      if (listed.insert(TargetOf(s)).second) all.push_back({TargetOf(s), s.span});
    });
  }
  return all;
}

std::vector<Reference> Flows::LinksOf(const Pipeline& pipeline) const {
  std::vector<Reference> links = pipeline.links;
  if (phases_ && !trained_.contains(pipeline.name)) return WithMessages(links);
  std::set<size_t> ready;
  std::set<size_t> taken;
  const TensorGraph* graph = nullptr;  // the last so far
  const auto feed = [&](const std::string& unit) {
    const auto found = by_link_.find(unit);
    if (found != by_link_.end()) ready.insert(found->second.begin(), found->second.end());
  };
  for (size_t next = 0;;) {
    for (; next < links.size(); ++next) {
      if (const TensorGraph* here = index_.FindGraph(links[next].name)) graph = here;
      const Stage* stage = index_.FindStage(links[next].name);
      if (stage == nullptr) continue;
      ForEachStatement(stage->body, [&](const Statement& s) {
        if (s.kind == StatementKind::kForward) feed(TargetOf(s));
      });
    }
    if (graph != nullptr) {
      std::set<std::string_view> outputs;
      for (const tensor::Output& output : graph->graph.outputs()) outputs.insert(output.name);
      for (const std::string_view output : outputs) {
        const auto found = by_argument_.find(std::string(output));
        if (found == by_argument_.end()) continue;
        for (size_t number : found->second) {
          const auto arguments = ArgumentsOf(index_, continuing_[number]->links.front().name);
          const bool all = std::all_of(arguments.begin(), arguments.end(),
                                       [&](const auto& name) { return outputs.contains(name); });
          if (all) ready.insert(number);
        }
      }
    }
    std::erase_if(ready, [&](size_t number) {
      return taken.contains(number) || continuing_[number] == &pipeline;
    });
    if (ready.empty()) return WithMessages(links);
    const size_t number = *ready.begin();
    taken.insert(number);
    const Pipeline& continued = *continuing_[number];
    links.insert(links.end(), continued.links.begin(), continued.links.end());
  }
}

void AddDefaultPhases(Program& program) {
  if (!program.schedule.phases.empty()) return;
  const ProgramIndex index(program);
  const Flows flows(program, index);
  std::vector<Phase> phases;
  for (const Reference& reference : program.schedule.pipelines) {
    const Pipeline* pipeline = index.FindPipeline(reference.name);
    if (pipeline == nullptr || !flows.IsRun(*pipeline)) continue;
    const std::vector<Reference> links = flows.LinksOf(*pipeline);
    const bool trains = std::any_of(links.begin(), links.end(), [&](const Reference& link) {
      return index.FindHandler(link.name) != nullptr;
    });
    if (!trains) continue;
    Phase phase;
    phase.name = pipeline->name;
    phase.pipeline = pipeline->name;
    phase.epochs = 1;
    phase.span = reference.span;
    phases.push_back(std::move(phase));
  }
  program.schedule.phases = std::move(phases);
}

}  // namespace l3c::l1
