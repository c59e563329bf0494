#include "layers/l1/tensor_body.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "layers/support/lexer.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::l1 {

using support::Kind;
using support::Name;
using tensor::Argument;
using tensor::NodeId;

std::vector<std::string> DTypeNames() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(tensor::DType::kF64); ++i) {
    names.emplace_back(tensor::DTypeName(static_cast<tensor::DType>(i)));
  }
  return names;
}

TensorBody::TensorBody(const support::SourceFile& source, support::Diagnostics& diagnostics,
                       Span body, tensor::Graph& graph)
    : ParserBase(source, diagnostics, body), graph_(graph) {
  // What the lexer reports here it reports again when the body is parsed.
  support::Diagnostics ignored(&source);
  support::Lexer lexer(source, ignored, body);
  bool let = false;
  for (support::Token token = lexer.Next(); token.kind != support::TokenKind::kEnd;
       token = lexer.Next()) {
    if (let && token.kind == support::TokenKind::kWord) lets_.emplace(token.text);
    let = token.IsWord("let");
  }
}

void TensorBody::ParseCompute(const std::vector<Name>& outputs,
                              std::vector<std::pair<std::string, support::EscapeHatch>>& kernels) {
  bool returned = false;
  while (!AtEnd()) {
    bool ok = false;
    const uint32_t at = Here();
    if (AtWord("let")) {
      ok = ParseLet();
    } else if (support::AtEscapeHatch(*this)) {
      ok = ParseKernelOfLet(kernels);
    } else if (AtWord("return")) {
      if (returned) Error(Peek().span, "a tensor graph returns once");
      returned = true;
      ok = ParseReturn(outputs);
    } else {
      ErrorExpected("'let' or 'return'");
      Next();
    }
    if (!ok) SkipToField(0, at);
  }
  if (!returned && !stopped()) ErrorExpected("'return'");
}

// The annotation and the let behind it.
bool TensorBody::ParseKernelOfLet(
    std::vector<std::pair<std::string, support::EscapeHatch>>& kernels) {
  auto hatch = support::ParseEscapeHatch(*this, "l1");
  if (!hatch) return false;
  if (!AtWord("let")) {
    ErrorExpected("'let' after an annotation");
    return false;
  }
  const std::string name(Peek(1).text);
  if (!ParseLet()) return false;
  if (graph_.node(*graph_.Find(name)).inputs.empty()) {
    Error(hatch->span, "'" + name + "' is made of nothing, so no kernel computes it",
          Kind::kSafety);
    return false;
  }
  *hatch = WithAbsolutePath(*std::move(hatch),
                            std::filesystem::path(source().name()).parent_path().string());
  kernels.emplace_back(name, *std::move(hatch));
  return true;
}

support::EscapeHatch WithAbsolutePath(support::EscapeHatch hatch, const std::string& folder) {
  const size_t end = hatch.args.starts_with('"') ? hatch.args.find('"', 1) : std::string::npos;
  if (end == std::string::npos) return hatch;
  std::error_code unknown;
  const std::filesystem::path path = std::filesystem::path(folder) / hatch.args.substr(1, end - 1);
  const std::filesystem::path absolute = std::filesystem::absolute(path, unknown);
  if (!unknown) hatch.args.replace(1, end - 1, absolute.lexically_normal().string());
  return hatch;
}

void TensorBody::ParseHandler(const Actor& actor) {
  while (!AtEnd()) {
    bool ok = false;
    const uint32_t at = Here();
    if (AtWord("let")) {
      ok = ParseLet();
    } else if (AtName() && Peek(1).Is("=")) {
      ok = ParseAssignment(actor);
    } else {
      ErrorExpected("'let' or an assignment to a state field");
      Next();
    }
    if (!ok) SkipToField(0, at);
  }
}

std::optional<NodeId> TensorBody::ParseValue() {
  const auto value = ParseExpression("");
  if (value && !AtEnd()) {
    ErrorExpected("the end of the expression");
    return std::nullopt;
  }
  return value;
}

bool TensorBody::ParseLet() {
  Next();
  const auto name = ExpectName("the name of a value");
  if (!name || !Expect("=")) return false;
  failed_.insert(name->text);
  if (const auto before = graph_.Find(name->text)) {
    Error(name->span, "'" + name->text + "' is bound already", Kind::kConsistency)
        .With({graph_.node(*before).span, "it is bound here"});
    return false;
  }
  const uint32_t begin = Here();
  binding_ = name->text;
  if (AtName() && !Peek(1).Is("(") && !AtWord("inf") && !AtWord("nan")) {
    Error(Peek().span, "a let binds a number or the result of an op, not another name")
        .Label("use '" + std::string(Peek().text) + "' itself");
    return false;
  }
  if (!AtName() || !Peek(1).Is("(")) {
    const auto number = ExpectReal("a number or a tensor op");
    if (!number) return false;
    tensor::Attributes attr;
    attr.scalar = *number;
    graph_.Add(tensor::Op::kConst, {}, attr, name->text, SpanFrom(begin));
    return true;
  }
  return ParseExpression(name->text).has_value();
}

bool TensorBody::ParseReturn(const std::vector<Name>& outputs) {
  const uint32_t begin = Here();
  binding_.clear();
  Next();
  std::vector<NodeId> values;
  const bool ok = ParseList("(", ")", [&] {
    const std::string name =
        values.size() < outputs.size() ? IfFree(outputs[values.size()].text) : "";
    const auto value = ParseExpression(name);
    if (value) values.push_back(*value);
    return value.has_value();
  });
  if (!ok) return false;
  if (values.size() != outputs.size()) {
    Error(SpanFrom(begin),
          "the graph has " + std::to_string(outputs.size()) + " outputs, but returns " +
              std::to_string(values.size()) + " values",
          Kind::kSafety);
    return false;
  }
  if (!graph_.outputs().empty()) return false;  // a second return, already reported
  for (size_t i = 0; i < values.size(); ++i) graph_.AddOutput(outputs[i].text, values[i]);
  return true;
}

bool TensorBody::ParseAssignment(const Actor& actor) {
  binding_.clear();
  const support::Token word = Next();
  const Name name{std::string(word.text), word.span};
  Next();  // '='
  const StateField* field = FindState(actor, name.text);
  if (field == nullptr) {
    std::vector<std::string> candidates;
    for (const StateField& f : actor.state) candidates.push_back(f.name);
    ErrorUnknown("state field", name, candidates, Kind::kSafety);
    return false;
  }
  if (const auto before = assigned_.find(name.text); before != assigned_.end()) {
    Error(name.span, "'" + name.text + "' is assigned twice", Kind::kConsistency)
        .With({before->second, "it is assigned here"});
    return false;
  }
  const auto value = ParseExpression(IfFree(name.text + "_next"));
  if (!value) return false;
  assigned_.emplace(name.text, name.span);
  const tensor::Node& node = graph_.node(*value);
  if (node.dtype != field->dtype || node.shape != field->shape) {
    Error(SpanFrom(name.span.begin),
          "'" + name.text + "' is " + tensor::TypeToString(field->dtype, field->shape) +
              ", but the value is " + tensor::TypeToString(node.dtype, node.shape),
          Kind::kConsistency)
        .With({field->span, "'" + name.text + "' is declared here"});
    return false;
  }
  graph_.AddOutput(name.text, *value);
  return true;
}

std::string TensorBody::IfFree(const std::string& name) const {
  return graph_.Find(name) || lets_.contains(name) ? "" : name;
}

std::optional<NodeId> TensorBody::ParseExpression(const std::string& name) {
  if (AtName() && Peek(1).Is("(")) return ParseApplication(name);
  if (AtName() && !AtWord("inf") && !AtWord("nan")) {
    const support::Token word = Next();
    return ResolveName({std::string(word.text), word.span});
  }
  const uint32_t begin = Here();
  const auto number = ExpectReal("a value: a name, a number or a tensor op");
  if (!number) return std::nullopt;
  return graph_.AddLiteral(*number, tensor::DType::kF32, SpanFrom(begin));
}

std::optional<NodeId> TensorBody::ResolveName(const Name& name) {
  if (const auto assigned = assigned_.find(name.text); assigned != assigned_.end()) {
    Error(name.span, "'" + name.text + "' is read after it is assigned", Kind::kSafety)
        .With({assigned->second,
               "it is assigned here; a read sees the state as the message "
               "found it"})
        .Fix("bind the new value with let, use that, and assign at the end");
    return std::nullopt;
  }
  if (const auto node = graph_.Find(name.text)) return node;
  if (failed_.contains(name.text) && name.text != binding_) return std::nullopt;
  if (lets_.contains(name.text)) {
    Error(name.span, "'" + name.text + "' is used before it is bound: a tensor graph has no cycle",
          Kind::kResourceBound);
    return std::nullopt;
  }
  std::vector<std::string> candidates;
  for (const tensor::Node& node : graph_.nodes()) {
    if (!node.name.empty()) candidates.push_back(node.name);
  }
  ErrorUnknown("value", name, candidates, Kind::kSafety);
  return std::nullopt;
}

std::optional<NodeId> TensorBody::ParseApplication(const std::string& name) {
  const uint32_t begin = Here();
  const support::Token op = Next();
  const std::string spelling(op.text);
  const auto known = tensor::FindOp(spelling);
  if (!known || tensor::Definition(*known).l1_name != spelling) {
    ErrorUnknown("tensor op", {spelling, op.span}, tensor::OpSpellings(), Kind::kSafety);
    SkipPastClose(bracket_depth() + 1);
    return std::nullopt;
  }
  std::vector<Argument> arguments;
  const bool ok = ParseList("(", ")", [&] {
    auto argument = ParseArgument();
    if (argument) arguments.push_back(std::move(*argument));
    return argument.has_value();
  });
  if (!ok) return std::nullopt;
  try {
    return tensor::BuildApplication(graph_, spelling, arguments, name, SpanFrom(begin));
  } catch (const tensor::ShapeError& error) {
    Error(SpanFrom(begin), error.what(), Kind::kConsistency);
    return std::nullopt;
  }
}

std::optional<Argument> TensorBody::ParseArgument() {
  std::string keyword;
  if (AtName() && Peek(1).Is(":")) {
    keyword = Next().text;
    Next();
  }
  std::optional<Argument> argument;
  if (At("[")) {
    std::vector<Argument> items;
    const bool ok = ParseList("[", "]", [&] {
      auto item = ParseArgument();
      if (item) items.push_back(std::move(*item));
      return item.has_value();
    });
    if (!ok) return std::nullopt;
    argument = Argument::List(std::move(items));
  } else if (AtName() && !Peek(1).Is("(") && tensor::ParseDType(Peek().text) &&
             !graph_.Find(Peek().text)) {
    argument = Argument::Type(*tensor::ParseDType(Next().text));
  } else if (AtName() && !AtWord("inf") && !AtWord("nan")) {
    const auto node = ParseExpression("");
    if (!node) return std::nullopt;
    argument = Argument::Node(*node);
  } else {
    const auto number = ExpectReal("an argument: a name, a number, a list or a tensor op");
    if (!number) return std::nullopt;
    argument = Argument::Number(*number);
  }
  return keyword.empty() ? argument : std::move(*argument).Named(keyword);
}

}  // namespace l3c::l1
