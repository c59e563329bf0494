// The process of a stage: its parameters, its signature and its body.
#include <algorithm>

#include "layers/l1/program_parser.h"

namespace l3c::l1 {

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

bool ProgramParser::Declare(StageScope& scope, const Name& name, bool buffer) {
  if (!Declare(scope.declared, name, buffer ? "buffer" : "value")) return false;
  (buffer ? scope.buffers : scope.values).insert(name.text);
  scope.entered.push_back(name.text);
  return true;
}

bool ProgramParser::KnownBuffer(const StageScope& scope, const Name& name) {
  if (scope.buffers.contains(name.text)) return true;
  ErrorUnknown("buffer", name, {scope.buffers.begin(), scope.buffers.end()}, Kind::kSafety);
  return false;
}

// `x: buf<ram_0> tensor(f32, [128, 784])`; without the type it is that of what is forwarded.
bool ProgramParser::ParseParam(Stage& stage, RawStage& raw, StageScope& scope) {
  const auto name = ExpectName("a buffer");
  if (!name || !Expect(":") || !ExpectWord("buf") || !Expect("<")) return false;
  BufferParam param;
  param.name = name->text;
  param.span = name->span;
  const auto region = ExpectNode("the node whose memory holds the buffer");
  if (!region || !Expect(">")) return false;
  param.region = *region;
  const bool typed = !At(",") && !At(")");
  if (typed) {
    const auto domain = ParseDomain();
    if (!domain) return false;
    param.dtype = domain->dtype;
    param.shape = domain->shape;
  }
  if (!Declare(scope, *name, true)) return true;
  if (!typed) raw.untyped.push_back(stage.params.size());
  stage.params.push_back(std::move(param));
  return true;
}

bool ProgramParser::ParseExits(std::vector<Statement>& exits) {
  do {
    auto exit = ParseExit();
    if (!exit) return false;
    exits.push_back(std::move(*exit));
  } while (Accept(",") || Accept("|"));
  return true;
}

bool ProgramParser::ParseProcess(Stage& stage, RawStage& raw) {
  if (!ExpectWord("process")) return false;
  StageScope scope;
  if (!ParseList("(", ")", [&] { return ParseParam(stage, raw, scope); }) || !Expect("->")) {
    return false;
  }
  std::vector<Statement> exits;
  const uint32_t signature = Here();
  if (!ParseExits(exits)) return false;
  const Span signature_span = SpanFrom(signature);
  const size_t errors = diagnostics().all().size();
  if (!ParseBody(stage.body, scope)) return false;
  if (diagnostics().all().size() > errors) return true;  // the body is not as it was meant
  std::vector<Statement> done;
  ForEachStatement(stage.body, [&](const Statement& s) {
    if (s.kind == StatementKind::kForward || s.kind == StatementKind::kDrop) done.push_back(s);
  });
  CheckSignature(exits, done, signature_span);
  return true;
}

// What the body declares is out of sight behind it.
bool ProgramParser::ParseBody(std::vector<Statement>& body, StageScope& scope) {
  const size_t before = scope.entered.size();
  const bool ok = Block([&] {
    auto statement = ParseStatement(scope);
    if (!statement) return false;
    body.push_back(std::move(*statement));
    return true;
  });
  for (; scope.entered.size() > before; scope.entered.pop_back()) {
    scope.buffers.erase(scope.entered.back());
    scope.values.erase(scope.entered.back());
  }
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

std::optional<Statement> ProgramParser::ParseStatement(StageScope& scope) {
  Statement s;
  const uint32_t begin = Here();
  bool ok = false;
  if (AtWord("let")) {
    ok = ParseLetStatement(s, scope);
  } else if (AtWord("read")) {
    ok = ParseReadStatement(s, scope);
  } else if (AtWord("decode") || AtWord("copy")) {
    ok = ParseMoveStatement(s, scope);
  } else if (AtWord("if")) {
    ok = ParseIfStatement(s, scope);
  } else if (AtWord("forward") || AtWord("Drop")) {
    auto exit = ParseExit();
    if (!exit) return std::nullopt;
    for (const std::string& buffer : exit->buffers) {
      if (!KnownBuffer(scope, {buffer, exit->span})) return std::nullopt;
    }
    if (exit->kind == StatementKind::kDrop && !KnownBuffer(scope, {exit->buffer, exit->span})) {
      return std::nullopt;
    }
    return exit;
  } else {
    ErrorExpected("a statement: let, read, decode, copy, if, forward or Drop");
    Next();
  }
  if (!ok) return std::nullopt;
  if (s.kind != StatementKind::kIf) s.span = SpanFrom(begin);
  return s;
}

// `let x = alloc(region, domain)`, or `let v = tensor_…(…)` for conditions.
bool ProgramParser::ParseLetStatement(Statement& s, StageScope& scope) {
  Next();
  const auto name = ExpectName("the name of a buffer");
  if (!name || !Expect("=")) return false;
  s.buffer = name->text;
  if (!AtWord("alloc")) {
    if (AtName() && !Peek(1).Is("(")) {
      ErrorExpected("'alloc' or a tensor op");
      return false;
    }
    const auto value = TakeExpression("'alloc' or a tensor op");
    if (!value) return false;
    s.kind = StatementKind::kLet;
    s.value_span = *value;
    return Declare(scope, *name, false);
  }
  Next();
  if (!Expect("(")) return false;
  const auto region = ExpectNode("the node whose memory holds the buffer");
  if (!region || !Expect(",")) return false;
  const auto domain = ParseDomain();
  if (!domain || !Expect(")")) return false;
  s.kind = StatementKind::kAlloc;
  s.region = *region;
  s.dtype = domain->dtype;
  s.shape = domain->shape;
  return Declare(scope, *name, true);
}

bool ProgramParser::ParseReadStatement(Statement& s, StageScope& scope) {
  Next();
  s.kind = StatementKind::kRead;
  if (!Expect("(")) return false;
  const auto buffer = ExpectName("a buffer");
  if (!buffer || !KnownBuffer(scope, *buffer) || !Expect(",")) return false;
  const auto data = ExpectName("data");
  if (!data) return false;
  const BoundData* bound = ResolveData(*data);
  if (bound == nullptr || !Expect(".")) return false;
  const auto field = ExpectName("a field of the data");
  if (!field || !Expect(")")) return false;
  if (field->text != kValidField && FindField(*bound, field->text) == nullptr) {
    std::vector<std::string> candidates;
    for (const BoundField& f : bound->fields) candidates.push_back(f.name);
    candidates.emplace_back(kValidField);
    ErrorUnknown("field", *field, candidates, Kind::kSafety)
        .With({bound->span, "data '" + bound->name + "' is declared here"});
    return false;
  }
  s.buffer = buffer->text;
  s.data = data->text;
  s.field = field->text;
  return true;
}

// `decode(to, from)`, `decode(to, from, scale: 0.5)`, `copy(to, from)`. What is copied may be state
// that a window grants, which is known when all actors are.
bool ProgramParser::ParseMoveStatement(Statement& s, StageScope& scope) {
  const bool decode = Next().IsWord("decode");
  s.kind = decode ? StatementKind::kDecode : StatementKind::kCopy;
  const std::string verb = decode ? "decode" : "copy";
  if (!Expect("(")) return false;
  const auto to = ExpectName("the buffer to " + verb + " to");
  if (!to || !KnownBuffer(scope, *to) || !Expect(",")) return false;
  const auto from = ExpectName("the buffer to " + verb + " from");
  if (!from) return false;
  if (decode && !KnownBuffer(scope, *from)) return false;
  s.buffer = to->text;
  s.source = from->text;
  s.value_span = from->span;
  if (decode && Accept(",")) {
    if (!ExpectWord("scale") || !Expect(":")) return false;
    const auto scale = ExpectReal("what every element is multiplied by");
    if (!scale) return false;
    s.scale = *scale;
  }
  return Expect(")");
}

bool ProgramParser::ParseIfStatement(Statement& s, StageScope& scope) {
  const uint32_t begin = Here();
  Next();
  s.kind = StatementKind::kIf;
  const auto condition = TakeExpression("a condition: a value or a tensor op");
  if (!condition) return false;
  s.value_span = *condition;
  s.span = SpanFrom(begin);
  if (!ParseBody(s.then_body, scope)) return false;
  return !AcceptWord("else") || ParseBody(s.else_body, scope);
}

std::optional<Span> ProgramParser::TakeExpression(std::string_view what) {
  const uint32_t begin = Here();
  if (!AtName()) {
    ErrorExpected(what);
    return std::nullopt;
  }
  Next();
  if (!At("(")) return SpanFrom(begin);
  Next();
  const int inside = bracket_depth();
  SkipPastClose(inside);
  if (bracket_depth() >= inside) {
    ErrorExpected("')'");
    return std::nullopt;
  }
  return SpanFrom(begin);
}

}  // namespace l3c::l1
