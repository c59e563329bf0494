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
  bool process = false;
  const bool ok = Block([&] {
    if (AcceptWord("sample")) {
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
      return ParseProcess(stage);
    }
    ErrorExpected("'sample', 'fn process' or '}'");
    Next();
    return false;
  });
  if (!ok) SkipToDeclaration(Keywords());
  if (!process) {
    Error(name->span, "stage '" + name->text + "' has no process").Fix("add fn process() -> …");
  }
  if (Declare(units_, *name, "stage")) program_.stages.push_back(std::move(stage));
}

const BoundData* ProgramParser::ResolveData(const Name& name) {
  const BoundData* data = FindData(program_, name.text);
  if (data == nullptr) {
    std::vector<std::string> candidates;
    for (const BoundData& d : program_.data) candidates.push_back(d.name);
    ErrorUnknown("data", name, candidates, Kind::kSafety);
  }
  return data;
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
  return true;
}

// An exit of a process, as the signature and the body spell it: `forward(t, a, b)`, `Drop(a)`.
std::optional<Statement> ProgramParser::ParseExit() {
  Statement s;
  const uint32_t begin = Here();
  if (AcceptWord("forward")) {
    s.kind = StatementKind::kForward;
    bool first = true;
    const bool ok = ParseList("(", ")", [&] {
      if (!first) {
        const auto buffer = ExpectName("a buffer");
        if (buffer) s.buffers.push_back(buffer->text);
        return buffer.has_value();
      }
      first = false;
      const auto target = ExpectName("a stage, a tensor graph or an actor's message");
      if (!target) return false;
      s.target = target->text;
      if (!Accept(".")) return true;
      const auto message = ExpectName("a message of the actor");
      if (message) s.handler = message->text;
      return message.has_value();
    });
    if (!ok) return std::nullopt;
  } else if (AcceptWord("Drop")) {
    s.kind = StatementKind::kDrop;
    if (!Expect("(")) return std::nullopt;
    const auto buffer = ExpectName("a buffer");
    if (!buffer || !Expect(")")) return std::nullopt;
    s.buffer = buffer->text;
  } else {
    ErrorExpected("'forward' or 'Drop'");
    return std::nullopt;
  }
  s.span = SpanFrom(begin);
  return s;
}

bool ProgramParser::ParseProcess(Stage& stage) {
  if (!ExpectWord("process")) return false;
  std::map<std::string, Span> names;
  const bool params_ok = ParseList("(", ")", [&] {
    const auto name = ExpectName("a buffer");
    if (!name || !Expect(":") || !ExpectWord("buf") || !Expect("<")) return false;
    BufferParam param;
    param.name = name->text;
    param.span = name->span;
    const auto region = ExpectNode("the node whose memory holds the buffer");
    if (!region || !Expect(">")) return false;
    param.region = *region;
    const auto domain = ParseDomain();
    if (!domain) return false;
    param.dtype = domain->dtype;
    param.shape = domain->shape;
    if (Declare(names, *name, "buffer")) stage.params.push_back(std::move(param));
    return true;
  });
  if (!params_ok || !Expect("->")) return false;
  std::vector<Statement> exits;
  const uint32_t signature = Here();
  do {
    const auto exit = ParseExit();
    if (!exit) return false;
    exits.push_back(*exit);
  } while (Accept(",") || Accept("|"));
  const Span signature_span = SpanFrom(signature);
  std::vector<Statement> body_exits;
  const bool ok = Block([&] {
    auto statement = ParseStatement(names);
    if (!statement) return false;
    const bool exit =
        statement->kind == StatementKind::kForward || statement->kind == StatementKind::kDrop;
    if (exit) body_exits.push_back(*statement);
    stage.body.push_back(std::move(*statement));
    return true;
  });
  if (ok) CheckSignature(exits, body_exits, signature_span);
  return ok;
}

void ProgramParser::CheckSignature(const std::vector<Statement>& promised,
                                   const std::vector<Statement>& done, Span span) {
  const auto same = [](const Statement& a, const Statement& b) {
    return a.kind == b.kind && a.buffer == b.buffer && a.target == b.target &&
           a.handler == b.handler && a.buffers == b.buffers;
  };
  if (std::equal(promised.begin(), promised.end(), done.begin(), done.end(), same)) return;
  auto& error =
      Error(span, "the signature does not list what the body forwards and drops", Kind::kSafety);
  for (size_t i = 0; i < done.size(); ++i) {
    if (i >= promised.size() || !same(promised[i], done[i])) {
      error.With({done[i].span, "the signature lacks this, or has it elsewhere"});
      break;
    }
  }
}

std::optional<Statement> ProgramParser::ParseStatement(std::map<std::string, Span>& names) {
  Statement s;
  const uint32_t begin = Here();
  const auto known = [&](const Name& name) {
    if (names.contains(name.text)) return true;
    std::vector<std::string> candidates;
    for (const auto& [candidate, span] : names) candidates.push_back(candidate);
    ErrorUnknown("buffer", name, candidates, Kind::kSafety);
    return false;
  };
  if (AcceptWord("let")) {
    const auto name = ExpectName("the name of a buffer");
    if (!name || !Expect("=") || !ExpectWord("alloc") || !Expect("(")) return std::nullopt;
    const auto region = ExpectNode("the node whose memory holds the buffer");
    if (!region || !Expect(",")) return std::nullopt;
    const auto domain = ParseDomain();
    if (!domain || !Expect(")")) return std::nullopt;
    s.kind = StatementKind::kAlloc;
    s.buffer = name->text;
    s.region = *region;
    s.dtype = domain->dtype;
    s.shape = domain->shape;
    if (!Declare(names, *name, "buffer")) return std::nullopt;
  } else if (AcceptWord("read")) {
    s.kind = StatementKind::kRead;
    if (!Expect("(")) return std::nullopt;
    const auto buffer = ExpectName("a buffer");
    if (!buffer || !known(*buffer) || !Expect(",")) return std::nullopt;
    const auto data = ExpectName("data");
    if (!data) return std::nullopt;
    const BoundData* bound = ResolveData(*data);
    if (bound == nullptr || !Expect(".")) return std::nullopt;
    const auto field = ExpectName("a field of the data");
    if (!field || !Expect(")")) return std::nullopt;
    if (field->text != kValidField && FindField(*bound, field->text) == nullptr) {
      std::vector<std::string> candidates;
      for (const BoundField& f : bound->fields) candidates.push_back(f.name);
      candidates.emplace_back(kValidField);
      ErrorUnknown("field", *field, candidates, Kind::kSafety)
          .With({bound->span, "data '" + bound->name + "' is declared here"});
      return std::nullopt;
    }
    s.buffer = buffer->text;
    s.data = data->text;
    s.field = field->text;
  } else if (AcceptWord("copy")) {
    s.kind = StatementKind::kCopy;
    if (!Expect("(")) return std::nullopt;
    const auto to = ExpectName("the buffer to copy to");
    if (!to || !known(*to) || !Expect(",")) return std::nullopt;
    const auto from = ExpectName("the buffer to copy from");
    if (!from || !known(*from) || !Expect(")")) return std::nullopt;
    s.buffer = to->text;
    s.source = from->text;
  } else if (AtWord("forward") || AtWord("Drop")) {
    auto exit = ParseExit();
    if (!exit) return std::nullopt;
    std::vector<std::string> used = exit->buffers;
    if (exit->kind == StatementKind::kDrop) used.push_back(exit->buffer);
    for (const std::string& buffer : used) {
      if (!known({buffer, exit->span})) return std::nullopt;
    }
    return exit;
  } else {
    ErrorExpected("a statement: let, read, copy, forward or Drop");
    Next();
    return std::nullopt;
  }
  s.span = SpanFrom(begin);
  return s;
}

}  // namespace l3c::l1
