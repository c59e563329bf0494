// What queries and actions share: errors, literals, slots.
#include "egraph/text/compile.h"

#include "egraph/text/suggest.h"
#include "egraph/utf8.h"

namespace l3c::egraph {
namespace {

constexpr size_t kMaxShownName = 80;

}  // namespace

std::string QuotedName(std::string_view name) {
  return "'" + std::string(WholeCharacters(name, kMaxShownName)) + "'";
}

bool Compiler::Error(uint32_t offset, std::string message, ErrorKind kind) {
  error_ = {offset, std::move(message), kind};
  return false;
}

std::string Compiler::SortName(SortId sort) const {
  if (!sort.valid()) return "?";
  return graph_.sort(sort).name;
}

std::string Compiler::Signature(std::string_view name, const std::vector<SortId>& args) const {
  std::string text = "(" + std::string(name);
  for (SortId sort : args) text += " " + SortName(sort);
  return text + ")";
}

std::string Compiler::Unknown(NameKind kind, std::string_view name) const {
  Suggestion suggestion(name);
  if (kind != NameKind::kVariable) {
    for (uint32_t f = 0; f < graph_.function_count(); ++f) {
      suggestion.Offer(graph_.function(FunctionId{f}).name);
    }
  }
  if (kind == NameKind::kCallable) {
    for (const Primitive& primitive : graph_.primitives()) suggestion.Offer(primitive.name);
  }
  if (kind == NameKind::kVariable) {
    for (const auto& [known, value] : names_) suggestion.Offer(known);
    graph_.ForEachGlobal([&](std::string_view known) { suggestion.Offer(known); });
  }
  const std::string what = kind == NameKind::kVariable   ? "variable"
                           : kind == NameKind::kFunction ? "function"
                                                         : "function or primitive";
  return "unknown " + what + " " + QuotedName(name) + suggestion.Text();
}

bool Compiler::CheckNewName(uint32_t expr) {
  const std::string_view name = doc_.Text(expr);
  const std::string shown = QuotedName(name);
  if (graph_.FindFunction(name).valid()) {
    return Error(doc_.node(expr).begin,
                 "variable " + shown + " has the name of a function; give it another");
  }
  const std::string global = "$" + std::string(name.substr(name.starts_with('$') ? 1 : 0));
  if (graph_.FindGlobal(name) != nullptr || graph_.FindGlobal(global) != nullptr) {
    return Error(doc_.node(expr).begin, "variable " + shown +
                                            " has the name of a global, with or without its '$'; "
                                            "give it another");
  }
  return true;
}

std::optional<Compiler::Typed> Compiler::Literal(uint32_t expr) {
  switch (doc_.node(expr).kind) {
    case Document::Kind::kInt:
      return Typed{Operand::Constant(graph_.I64(doc_.Int(expr))), kI64};
    case Document::Kind::kFloat:
      return Typed{Operand::Constant(graph_.F64(doc_.Float(expr))), kF64};
    case Document::Kind::kText:
      return Typed{Operand::Constant(graph_.String(doc_.String(expr))), kString};
    case Document::Kind::kSymbol:
      if (doc_.Text(expr) == "true") return Typed{Operand::Constant(graph_.Bool(true)), kBool};
      if (doc_.Text(expr) == "false") return Typed{Operand::Constant(graph_.Bool(false)), kBool};
      return std::nullopt;
    case Document::Kind::kList:
      if (doc_.node(expr).child_count == 0) return Typed{Operand::Constant(graph_.Unit()), kUnit};
      return std::nullopt;
  }
  return std::nullopt;
}

Compiler::Typed Compiler::NewSlot(SortId sort) {
  slot_sorts_.push_back(sort);
  return {Operand::Slot(static_cast<uint32_t>(slot_sorts_.size() - 1)), sort};
}

}  // namespace l3c::egraph
