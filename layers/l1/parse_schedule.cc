// Pipelines and the schedule.
#include <algorithm>

#include "layers/l1/program_parser.h"

namespace l3c::l1 {

void ProgramParser::ParsePipeline() {
  Next();
  const auto name = ExpectName("the name of the pipeline");
  if (!name || !Expect("{")) return SkipToDeclaration(Keywords());
  Pipeline pipeline;
  pipeline.name = name->text;
  pipeline.span = name->span;
  do {
    if (!ParseReference(pipeline.links, "a stage, a tensor graph or an actor's message")) {
      return SkipToDeclaration(Keywords());
    }
  } while (Accept("->"));
  if (!Expect("}")) return SkipToDeclaration(Keywords());
  if (Declare(pipelines_, *name, "pipeline")) program_.pipelines.push_back(std::move(pipeline));
}

void ProgramParser::ParseSchedule() {
  const uint32_t begin = Here();
  Next();
  if (schedule_seen_) {
    Error(SpanFrom(begin), "there is a schedule already", Kind::kConsistency)
        .With({program_.schedule.span, "the first is here"});
    return SkipToDeclaration(Keywords());
  }
  schedule_seen_ = true;
  Schedule& schedule = program_.schedule;
  schedule.span = SpanFrom(begin);
  std::set<std::string> seen;
  const bool ok = Block([&] {
    const auto field = ExpectName("a field of the schedule");
    if (!field) {
      Next();
      return false;
    }
    if (!seen.insert(field->text).second) {
      Error(field->span, "'" + field->text + "' is given twice");
      return false;
    }
    return ParseScheduleField(*field, schedule);
  });
  if (!ok) SkipToDeclaration(Keywords());
  for (const char* needed : {"pipelines", "pipeline_depth"}) {
    if (ok && !seen.contains(needed)) {
      Error(schedule.span, "the schedule lacks '" + std::string(needed) + "'");
    }
  }
}

bool ProgramParser::ParseScheduleField(const Name& field, Schedule& schedule) {
  if (field.text == "pipelines" || field.text == "actors") {
    auto& list = field.text == "actors" ? schedule.actors : schedule.pipelines;
    return Expect(":") && ParseList("[", "]", [&] { return ParseReference(list, "a name"); });
  }
  if (field.text == "pipeline_depth") {
    if (!Expect(":")) return false;
    const auto depth = ExpectInteger("the pipeline depth", 1, 64);
    if (depth) schedule.pipeline_depth = *depth;
    return depth.has_value();
  }
  if (field.text == "seed") {
    if (!Expect(":")) return false;
    const auto seed = ExpectInteger("the seed", 0);
    if (seed) schedule.seed = static_cast<uint64_t>(*seed);
    return seed.has_value();
  }
  if (field.text == "phases") {
    Accept(":");
    return ParseList("[", "]", [&] { return ParsePhase(schedule); });
  }
  if (field.text == "metrics") {
    Accept(":");
    return ParseList("[", "]", [&] { return ParseMetric(schedule); });
  }
  ErrorUnknown("field of the schedule", field,
               {"pipelines", "actors", "pipeline_depth", "seed", "phases", "metrics"});
  return false;
}

// `NAME(label: value, …)`; `value` parses what follows one label.
bool ProgramParser::ParseLabelled(std::string_view what, Name& name, std::set<std::string>& seen,
                                  const std::vector<std::string>& labels,
                                  const std::function<bool(const std::string&)>& value) {
  const auto word = ExpectName(what);
  if (!word) return false;
  name = *word;
  return ParseList("(", ")", [&] {
    const auto label = ExpectName("an argument");
    if (!label || !Expect(":")) return false;
    if (std::find(labels.begin(), labels.end(), label->text) == labels.end()) {
      ErrorUnknown("argument", *label, labels);
      return false;
    }
    if (!seen.insert(label->text).second) {
      Error(label->span, "'" + label->text + "' is given twice");
      return false;
    }
    return value(label->text);
  });
}

bool ProgramParser::ParsePhase(Schedule& schedule) {
  Phase phase;
  Name name;
  std::set<std::string> seen;
  std::vector<Name> used;
  const bool ok =
      ParseLabelled("the name of a phase", name, seen,
                    {"pipeline", "epochs", "steps", "eval", "eval_every", "checkpoint_every"},
                    [&](const std::string& label) {
                      if (label == "pipeline" || label == "eval") {
                        const auto pipeline = ExpectName("a pipeline");
                        if (!pipeline) return false;
                        (label == "eval" ? phase.eval : phase.pipeline) = pipeline->text;
                        used.push_back(*pipeline);
                        return true;
                      }
                      const auto count = ExpectInteger("a count", 1, int64_t{1} << 40);
                      if (!count) return false;
                      (label == "epochs"       ? phase.epochs
                       : label == "steps"      ? phase.steps
                       : label == "eval_every" ? phase.eval_every
                                               : phase.checkpoint_every) = *count;
                      return true;
                    });
  if (!ok) return false;
  phase.name = name.text;
  phase.span = name.span;
  if (phase.pipeline.empty() || (phase.epochs > 0) == (phase.steps > 0)) {
    Error(name.span, "a phase needs a pipeline and either epochs or steps");
    return true;
  }
  for (const Name& pipeline : used) phase_pipelines_.push_back(pipeline);
  schedule.phases.push_back(std::move(phase));
  return true;
}

bool ProgramParser::ParseMetric(Schedule& schedule) {
  Metric metric;
  Name name, graph, numerator, denominator;
  std::set<std::string> seen;
  const bool ok =
      ParseLabelled("the name of a metric", name, seen,
                    {"split", "graph", "numerator", "denominator"}, [&](const std::string& label) {
                      const auto word = ExpectName("a name");
                      if (!word) return false;
                      if (label == "split") metric.split = word->text;
                      if (label == "graph") graph = *word;
                      if (label == "numerator") numerator = *word;
                      if (label == "denominator") denominator = *word;
                      return true;
                    });
  if (!ok) return false;
  metric.name = name.text;
  metric.span = name.span;
  if (seen.size() != 4) {
    Error(name.span, "a metric needs split, graph, numerator and denominator");
    return true;
  }
  metric.graph = graph.text;
  metric.numerator = numerator.text;
  metric.denominator = denominator.text;
  metrics_.push_back({graph, numerator, denominator});
  schedule.metrics.push_back(std::move(metric));
  return true;
}

}  // namespace l3c::l1
