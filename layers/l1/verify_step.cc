// What runs in one step of a pipeline: every link gets its buffers, once, and none is lost.
#include <algorithm>
#include <set>

#include "layers/l1/verifier.h"

namespace l3c::l1 {

using support::Kind;

void Verifier::CheckSteps() {
  for (const Stage& stage : program_.stages) {
    std::map<std::string, const Statement*> before;
    std::vector<std::string> entered;
    CheckForwardedOnce(stage.body, before, entered);
  }
  std::set<std::string> run;  // pipelines that are steps, or a part of one
  for (const Reference& reference : program_.schedule.pipelines) {
    const Pipeline& pipeline = *index_.FindPipeline(reference.name);
    if (!flows_.IsRun(pipeline)) continue;
    const std::vector<Reference> links = flows_.LinksOf(pipeline);
    CheckStep(pipeline, links);
    run.insert(pipeline.name);
    for (const Reference& link : links) run.insert("link " + link.name);
  }
  if (program_.schedule.phases.empty()) return;
  for (const Reference& reference : program_.schedule.pipelines) {
    const Pipeline& pipeline = *index_.FindPipeline(reference.name);
    if (run.contains(pipeline.name) || pipeline.links.empty()) continue;
    if (run.contains("link " + pipeline.links.front().name)) continue;
    Error(Kind::kLiveness, reference.span,
          "pipeline '" + pipeline.name +
              "' is scheduled, but no phase runs it and nothing that "
              "runs feeds it")
        .With({pipeline.span, "the pipeline is declared here"});
  }
}

// On one path a receiver gets one set of buffers. `before`: whom the path has forwarded to.
void Verifier::CheckForwardedOnce(const std::vector<Statement>& body,
                                  std::map<std::string, const Statement*>& before,
                                  std::vector<std::string>& entered) {
  for (const Statement& s : body) {
    if (s.kind == StatementKind::kForward) {
      const auto [it, fresh] = before.emplace(TargetOf(s), &s);
      if (fresh) {
        entered.push_back(it->first);
      } else {
        Error(Kind::kSafety, s.span,
              "'" + TargetOf(s) + "' gets a second set of buffers in one step")
            .With({it->second->span, "the first is forwarded here"});
      }
    }
    if (s.kind != StatementKind::kIf) continue;
    // The branches exclude one another; behind the `if`, either may have been taken.
    const size_t outside = entered.size();
    CheckForwardedOnce(s.then_body, before, entered);
    std::vector<std::pair<std::string, const Statement*>> taken;
    for (size_t i = outside; i < entered.size(); ++i) {
      taken.emplace_back(entered[i], before[entered[i]]);
      before.erase(entered[i]);
    }
    entered.resize(outside);
    CheckForwardedOnce(s.else_body, before, entered);
    for (const auto& [target, forward] : taken) {
      if (before.emplace(target, forward).second) entered.push_back(target);
    }
  }
}

void Verifier::CheckStep(const Pipeline& pipeline, const std::vector<Reference>& links) {
  std::map<std::string_view, size_t> position;
  for (size_t i = 0; i < links.size(); ++i) position.emplace(links[i].name, i);
  std::map<std::string, const Stage*> feeder;
  const Reference* source = nullptr;
  for (size_t i = 0; i < links.size(); ++i) {
    const Stage* stage = index_.FindStage(links[i].name);
    if (i == 0 && (stage == nullptr || !stage->samples)) {
      Error(Kind::kSafety, links[i].span,
            "pipeline '" + pipeline.name + "' runs, but '" + links[i].name +
                "' at its beginning draws no batches and nothing feeds it")
          .Fix("begin with a stage that has sample: epoch_shuffle(…)");
      return;
    }
    if (stage == nullptr) continue;
    if (stage->samples) {
      if (source != nullptr) {
        Error(Kind::kConsistency, links[i].span,
              "pipeline '" + pipeline.name + "' draws batches twice in one step")
            .With({source->span, "the first source is here"})
            .Fix("let one stage read all fields, and forward them to several receivers");
      }
      source = &links[i];
    }
    std::set<std::string> targets;
    ForEachStatement(stage->body, [&](const Statement& s) {
      if (s.kind != StatementKind::kForward || !targets.insert(TargetOf(s)).second) return;
      const auto at = position.find(TargetOf(s));
      if (at == position.end() || at->second < i) {
        Error(Kind::kSafety, s.span,
              "stage '" + stage->name + "' forwards to '" + TargetOf(s) + "', which " +
                  (at == position.end() ? "pipeline '" + pipeline.name + "' does not lead to"
                                        : "comes before it in pipeline '" + pipeline.name + "'"))
            .With({pipeline.span, "the pipeline is declared here"})
            .Fix("make it a link behind '" + stage->name + "'");
        return;
      }
      const auto [other, fresh] = feeder.emplace(TargetOf(s), stage);
      if (fresh || other->second == stage) return;
      Error(Kind::kSafety, s.span,
            "'" + TargetOf(s) + "' gets a second set of buffers in one step of pipeline '" +
                pipeline.name + "'")
          .With({other->second->span, "'" + other->second->name + "' forwards to it too"});
    });
  }
}

// A metric adds up one real of every step that draws from its split.
void Verifier::CheckMetrics() {
  std::set<std::pair<std::string, std::string>> computed;  // split, graph
  for (const Reference& reference : program_.schedule.pipelines) {
    const Pipeline& pipeline = *index_.FindPipeline(reference.name);
    if (!flows_.IsRun(pipeline)) continue;
    const std::vector<Reference> links = flows_.LinksOf(pipeline);
    const Stage* source = links.empty() ? nullptr : index_.FindStage(links.front().name);
    if (source == nullptr) continue;  // reported by CheckStep
    for (const Reference& link : links) computed.insert({source->sampling.split, link.name});
  }
  for (const Metric& metric : program_.schedule.metrics) {
    const TensorGraph& graph = *index_.FindGraph(metric.graph);
    if (!computed.contains({metric.split, metric.graph})) {
      Error(Kind::kSafety, metric.span,
            "metric '" + metric.name + "' is of split '" + metric.split + "', but nothing that " +
                "runs computes '" + metric.graph + "' on batches of it")
          .With({graph.span, "tensor graph '" + metric.graph + "' is declared here"})
          .Fix("name the split that the stage before '" + metric.graph + "' samples");
    }
    const std::set<std::string_view> summed = {metric.numerator, metric.denominator};
    for (const tensor::Output& output : graph.graph.outputs()) {
      if (!summed.contains(output.name)) continue;
      const tensor::Node& node = graph.graph.node(output.node);
      if (node.dtype == tensor::DType::kF32 && tensor::NumElements(node.shape) == 1) continue;
      Error(Kind::kConsistency, metric.span,
            "metric '" + metric.name + "' adds up one f32 a step, but '" + output.name + "' is " +
                Text({node.dtype, node.shape}))
          .With({graph.span, "it is an output of tensor graph '" + graph.name + "'"})
          .Fix(node.dtype == tensor::DType::kF32 ? "reduce it with tensor_reduce_sum"
                                                 : "cast it with tensor_cast(…, f32)");
    }
  }
}

}  // namespace l3c::l1
