// The one bounded expression grammar: constraints and custom losses here, filters and bounds of
// `until` at L2.
//
//   expr   = or
//   or     = and { "||" and }
//   and    = cmp { "&&" cmp }
//   cmp    = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//   sum    = term { ("+" | "-") term }
//   term   = unary { ("*" | "/" | "%") unary }
//   unary  = ("-" | "!") unary | atom
//   atom   = number | "true" | "false" | name { "." name } | name "(" args ")" | "(" expr ")"
//   args   = [ arg { "," arg } ],  arg = [ name ":" ] ( expr | "[" integers "]" )
//
// A function is an op of the tensor algebra (exp, where, max of two, …) or a reduction: sum, mean,
// max of one, norm. No loops, no definitions, no recursion.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"

namespace l3c::l3 {

struct Expr {
  enum class Kind : uint8_t { kNumber, kBool, kReference, kUnary, kBinary, kCall, kList };

  Kind kind = Kind::kNumber;
  double number = 0;       // kNumber; kBool: 0 or 1
  bool whole = false;      // kNumber: written without fraction and exponent, printed so
  std::string name;        // reference ("classify.out"), operator ("<=", "-") or function ("exp")
  std::vector<Expr> args;  // operands, arguments, elements
  std::vector<std::string> labels;  // kCall: for each argument its label, or ""
  int height = 1;
  support::Span span;
};

// Equal but for spans.
bool SameExpr(const Expr& a, const Expr& b);

std::optional<Expr> ParseExpr(support::ParserBase& parser);
// Canonical, with no parentheses but those that are needed.
std::string PrintExpr(const Expr& expr);

// Whether its value is a truth: a comparison, a connective, true or false.
bool IsPredicate(const Expr& expr);

// The op of the tensor algebra that a binary operator stands for; of truths, || is add and && mul.
std::string_view AlgebraOp(std::string_view binary);
// Whether a call reads all of its one argument: sum, mean, norm, and max and min of one.
bool IsReduction(const Expr& call);

// Calls `visit` for every reference in it, in the order written.
void ForEachReference(const Expr& expr, const std::function<void(const Expr&)>& visit);

// Functions known and called with the right number of arguments, truths and numbers not mixed.
bool VerifyExpr(const Expr& expr, support::Diagnostics& diagnostics);

}  // namespace l3c::l3
