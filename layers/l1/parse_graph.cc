// The heads of tensor graphs; bodies are left for the second pass.
#include "layers/l1/program_parser.h"

namespace l3c::l1 {

bool ProgramParser::ParseArgs(std::vector<RawArg>& args) {
  std::map<std::string, Span> seen;
  return ParseList("(", ")", [&] {
    const auto name = ExpectName("an argument");
    if (!name) return false;
    RawArg arg{*name, std::nullopt};
    if (Accept(":")) {
      arg.type = ParseDomain();
      if (!arg.type) return false;
    }
    if (Declare(seen, *name, "argument")) args.push_back(std::move(arg));
    return true;
  });
}

// `{ … }` unread; nothing when it is not closed.
std::optional<Span> ProgramParser::TakeBody() {
  if (!At("{")) {
    ErrorExpected("'{'");
    return std::nullopt;
  }
  Next();
  const int inside = bracket_depth();
  const uint32_t begin = Here();
  SkipPastClose(inside);
  const Span body = SpanFrom(begin);
  if (body.end <= begin || bracket_depth() >= inside) {
    ErrorExpected("'}'");
    return std::nullopt;
  }
  return Span{begin, body.end - 1};
}

void ProgramParser::ParseGraph() {
  Next();
  const auto name = ExpectName("the name of the tensor graph");
  if (!name || !ExpectWord("on")) return SkipToDeclaration(Keywords());
  TensorGraph graph;
  graph.name = name->text;
  graph.span = name->span;
  const auto node = ExpectNode("a compute node");
  if (!node) return SkipToDeclaration(Keywords());
  graph.node = *node;
  RawGraph raw;
  bool compute = false;
  const bool ok = Block([&] {
    if (AcceptWord("reads")) return ParseReads(raw.reads);
    if (AcceptWord("fn")) {
      if (!ExpectWord("compute") || !ParseArgs(raw.args) || !Expect("->")) return false;
      std::map<std::string, Span> outputs;
      const bool list = ParseList("(", ")", [&] {
        const auto output = ExpectName("the name of an output");
        if (output && Declare(outputs, *output, "output")) raw.outputs.push_back(*output);
        return output.has_value();
      });
      if (!list) return false;
      const auto body = TakeBody();
      if (!body) return false;
      if (compute) Error(*body, "a tensor graph has one compute");
      raw.body = *body;
      compute = true;
      return true;
    }
    ErrorExpected("'reads', 'fn compute' or '}'");
    Next();
    return false;
  });
  if (!ok) SkipToDeclaration(Keywords());
  // It may be what an error before this one has spoilt.
  if (!compute && !diagnostics().has_errors()) {
    Error(name->span, "tensor graph '" + name->text + "' has no compute")
        .Fix("add fn compute(…) -> (…) { … }");
  }
  for (const auto& [actor, window] : raw.reads) graph.reads.emplace_back(actor.text, window.text);
  for (const RawArg& arg : raw.args) graph.args.push_back(arg.name.text);
  if (!Declare(units_, *name, "tensor graph")) return;
  program_.graphs.push_back(std::move(graph));
  graphs_.push_back(std::move(raw));
}

}  // namespace l3c::l1
