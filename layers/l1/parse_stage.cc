// Stages: sampling and bodies.
#include <algorithm>

#include "layers/l1/program_parser.h"

namespace l3c::l1 {

void ProgramParser::ParseStage() {
  Next();
  const auto name = ExpectName("the name of the stage");
  if (!name || !ExpectWord("on")) return SkipToDeclaration(Keywords());
  Stage stage;
  stage.name = name->text;
  stage.span = name->span;
  const auto node = ExpectNode("a compute node");
  if (!node) return SkipToDeclaration(Keywords());
  stage.node = *node;
  RawStage raw;
  bool process = false;
  const bool ok = Block([&] {
    if (AtWord("sample")) {
      const Span word = Next().span;
      if (stage.samples) {
        Error(word, "a stage samples once");
        return false;
      }
      if (!Expect(":")) return false;
      stage.samples = true;
      return ParseSampling(stage.sampling);
    }
    if (AcceptWord("fn")) {
      if (process) {
        Error(SpanFrom(Here()), "a stage has one process");
        return false;
      }
      process = true;
      return ParseProcess(stage, raw);
    }
    if (AcceptWord("reads")) return ParseReads(raw.reads);
    ErrorExpected("'sample', 'reads', 'fn process' or '}'");
    Next();
    return false;
  });
  if (!ok) SkipToDeclaration(Keywords());
  if (!process) {
    Error(name->span, "stage '" + name->text + "' has no process").Fix("add fn process() -> …");
  }
  for (const auto& [actor, window] : raw.reads) stage.reads.emplace_back(actor.text, window.text);
  if (!Declare(units_, *name, "stage")) return;
  program_.stages.push_back(std::move(stage));
  stages_.push_back(std::move(raw));
}

const BoundData* ProgramParser::ResolveData(const Name& name) {
  const auto data = data_numbers_.find(name.text);
  if (data != data_numbers_.end()) return &program_.data[data->second];
  std::vector<std::string> candidates;
  for (const BoundData& d : program_.data) candidates.push_back(d.name);
  ErrorUnknown("data", name, candidates, Kind::kSafety);
  return nullptr;
}

bool ProgramParser::ParseSampling(Sampling& sampling) {
  const auto kind = ExpectName("epoch_shuffle, sequential or replay");
  if (!kind) return false;
  sampling.span = kind->span;
  if (kind->text == "epoch_shuffle") {
    sampling.kind = SampleKind::kEpochShuffle;
  } else if (kind->text == "sequential") {
    sampling.kind = SampleKind::kSequential;
  } else if (kind->text == "replay") {
    sampling.kind = SampleKind::kReplay;
  } else {
    ErrorUnknown("way to sample", *kind, {"epoch_shuffle", "sequential", "replay"});
    return false;
  }
  bool first = true;
  std::set<std::string> seen;
  const bool ok = ParseList("(", ")", [&] {
    if (first) {
      first = false;
      const auto name = ExpectName("the data to sample");
      if (!name || ResolveData(*name) == nullptr) return false;
      sampling.data = name->text;
      return true;
    }
    const auto label = ExpectName("split, rows, batch or drop_last");
    if (!label || !Expect(":")) return false;
    if (!seen.insert(label->text).second) {
      Error(label->span, "'" + label->text + "' is given twice");
      return false;
    }
    if (label->text == "split") {
      const auto split = ExpectName("train or test");
      if (split) sampling.split = split->text;
      return split.has_value();
    }
    if (label->text == "rows") {
      const auto rows = ExpectInteger("the number of rows", 1, int64_t{1} << 31);
      if (rows) sampling.rows = *rows;
      return rows.has_value();
    }
    if (label->text == "batch") {
      const auto batch = ExpectInteger("the batch size", 1, 1 << 24);
      if (batch) sampling.batch = *batch;
      return batch.has_value();
    }
    if (label->text == "drop_last") {
      const auto drop = ExpectBool("drop_last");
      if (drop) sampling.drop_last = *drop;
      return drop.has_value();
    }
    if (label->text == "recent") {
      const auto recent = ExpectBool("recent");
      if (recent) sampling.recent = *recent;
      return recent.has_value();
    }
    int64_t* count = label->text == "window"   ? &sampling.window
                     : label->text == "stride" ? &sampling.stride
                     : label->text == "shards" ? &sampling.shards
                     : label->text == "buffer" ? &sampling.buffer
                                               : nullptr;
    if (count != nullptr) {
      const auto number = ExpectInteger("a number of rows", 1, int64_t{1} << 31);
      if (number) *count = *number;
      return number.has_value();
    }
    ErrorUnknown(
        "argument", *label,
        {"split", "rows", "batch", "drop_last", "window", "stride", "shards", "buffer", "recent"});
    return false;
  });
  if (!ok) return false;
  sampling.span = {sampling.span.begin, SpanFrom(sampling.span.begin).end};
  if (sampling.data.empty() || sampling.split.empty() || !seen.contains("batch")) {
    Error(sampling.span, "sampling needs the data, split: and batch:");
    return false;
  }
  if ((sampling.kind == SampleKind::kReplay) != (sampling.buffer > 0)) {
    Error(sampling.span, "replay, and only replay, has a buffer:");
    return false;
  }
  if (sampling.batch % sampling.shards != 0) {
    Error(sampling.span, "a batch of " + std::to_string(sampling.batch) +
                             " cannot take evenly of " + std::to_string(sampling.shards) +
                             " shards");
    return false;
  }
  return true;
}

}  // namespace l3c::l1
