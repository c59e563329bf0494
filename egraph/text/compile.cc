// What queries and actions share: errors, literals, slots.
#include "egraph/text/compile.h"

namespace l3c::egraph {

bool Compiler::Error(uint32_t offset, std::string message) {
  error_ = {offset, std::move(message)};
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

std::string Compiler::Unknown(std::string_view what, std::string_view name) const {
  return "unknown " + std::string(what) + " '" + std::string(name.substr(0, 80)) + "'";
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
