#include "layers/l3/expression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "layers/support/printer.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l3 {
namespace {

using support::Kind;
using support::ParserBase;
using support::TokenKind;

// Chains such as a + b + c lean to the left and grow one level a link; this bounds every later
// recursion over the tree.
constexpr int kMaxHeight = ParserBase::kMaxNesting;

struct Level {
  std::vector<std::string_view> operators;
  bool chains;  // a < b < c is refused
};

// From the loosest to the tightest.
const std::array<Level, 5> kLevels = {{{{"||"}, true},
                                       {{"&&"}, true},
                                       {{"<", "<=", ">", ">=", "==", "!="}, false},
                                       {{"+", "-"}, true},
                                       {{"*", "/", "%"}, true}}};
constexpr int kUnaryLevel = 5;
constexpr int kAtomLevel = 6;

int LevelOf(std::string_view binary) {
  for (size_t level = 0; level < kLevels.size(); ++level) {
    const auto& operators = kLevels[level].operators;
    if (std::find(operators.begin(), operators.end(), binary) != operators.end()) {
      return static_cast<int>(level);
    }
  }
  return kAtomLevel;
}

constexpr std::pair<std::string_view, std::string_view> kAlgebraOps[] = {
    {"||", "add"},   {"&&", "mul"},   {"<", "cmplt"},  {"<=", "cmple"}, {">", "cmpgt"},
    {">=", "cmpge"}, {"==", "cmpeq"}, {"!=", "cmpne"}, {"+", "add"},    {"-", "sub"},
    {"*", "mul"},    {"/", "div"},    {"%", "mod"}};

// Reductions of the grammar; the tensor algebra's own ops come on top.
struct Reduction {
  std::string_view name;
  size_t min_args, max_args;
};
constexpr Reduction kReductions[] = {
    {"sum", 1, 1}, {"mean", 1, 1}, {"max", 1, 2}, {"min", 1, 2}, {"norm", 1, 1}};

class ExprParser {
 public:
  explicit ExprParser(ParserBase& parser) : parser_(parser) {}

  std::optional<Expr> Binary(size_t level) {
    if (level == kLevels.size()) return Unary();
    auto left = Binary(level + 1);
    if (!left) return std::nullopt;
    for (bool first = true; AtOneOf(kLevels[level].operators); first = false) {
      if (!first && !kLevels[level].chains) {
        parser_.Error(parser_.Peek().span, "comparisons do not chain").Fix("write a < b && b < c");
        return std::nullopt;
      }
      const std::string op(parser_.Next().text);
      auto right = Binary(level + 1);
      if (!right) return std::nullopt;
      Expr both;
      both.kind = Expr::Kind::kBinary;
      both.name = op;
      both.span = {left->span.begin, right->span.end};
      both.args.push_back(*std::move(left));
      both.args.push_back(*std::move(right));
      left = Grown(std::move(both));
      if (!left) return std::nullopt;
    }
    return left;
  }

 private:
  bool AtOneOf(const std::vector<std::string_view>& operators) {
    return std::any_of(operators.begin(), operators.end(),
                       [&](std::string_view op) { return parser_.At(op); });
  }

  // Sets the height from the arguments' and refuses what is too high.
  std::optional<Expr> Grown(Expr expr) {
    for (const Expr& arg : expr.args) expr.height = std::max(expr.height, arg.height + 1);
    if (expr.height <= kMaxHeight) return expr;
    parser_.Error(
        expr.span,
        "this expression is nested deeper than " + std::to_string(kMaxHeight) + " operations",
        Kind::kResourceBound);
    parser_.Stop();
    return std::nullopt;
  }

  std::optional<Expr> Unary() {
    ParserBase::Nesting nesting(parser_);
    if (!nesting.ok()) return std::nullopt;
    if (!parser_.At("-") && !parser_.At("!")) return Atom();
    Expr expr;
    expr.kind = Expr::Kind::kUnary;
    const uint32_t begin = parser_.Here();
    expr.name = parser_.Next().text;
    auto operand = Unary();
    if (!operand) return std::nullopt;
    expr.args.push_back(*std::move(operand));
    expr.span = parser_.SpanFrom(begin);
    return Grown(std::move(expr));
  }

  std::optional<Expr> Atom() {
    const uint32_t begin = parser_.Here();
    Expr expr;
    if (parser_.Accept("(")) {
      auto inner = Binary(0);
      if (!inner || !parser_.Expect(")")) return std::nullopt;
      return inner;
    }
    if (parser_.AtNumber()) {
      expr.whole = support::IsPlainInteger(parser_.Peek().text);
      const auto number = parser_.ExpectReal("a number");
      if (!number) return std::nullopt;
      expr.number = *number;
      // Larger whole numbers are not exact as doubles and print as reals.
      expr.whole = expr.whole && expr.number < 9007199254740992.0;
      expr.span = parser_.SpanFrom(begin);
      return expr;
    }
    if (parser_.AtWord("true") || parser_.AtWord("false")) {
      expr.kind = Expr::Kind::kBool;
      expr.number = parser_.Next().text == "true" ? 1 : 0;
      expr.span = parser_.SpanFrom(begin);
      return expr;
    }
    const auto name = parser_.ExpectName("an expression");
    if (!name) return std::nullopt;
    expr.name = name->text;
    if (parser_.At("(")) return Call(std::move(expr), begin);
    expr.kind = Expr::Kind::kReference;
    while (parser_.Accept(".")) {
      const auto member = parser_.ExpectName("a name after '.'");
      if (!member) return std::nullopt;
      expr.name += "." + member->text;
    }
    expr.span = parser_.SpanFrom(begin);
    return expr;
  }

  std::optional<Expr> Call(Expr expr, uint32_t begin) {
    expr.kind = Expr::Kind::kCall;
    const bool args = parser_.ParseList("(", ")", [&] {
      std::string label;
      if (parser_.AtName() && parser_.Peek(1).Is(":")) label = parser_.AcceptLabel()->text;
      auto arg = parser_.At("[") ? List() : Binary(0);
      if (!arg) return false;
      expr.labels.push_back(std::move(label));
      expr.args.push_back(*std::move(arg));
      return true;
    });
    if (!args) return std::nullopt;
    expr.span = parser_.SpanFrom(begin);
    return Grown(std::move(expr));
  }

  std::optional<Expr> List() {
    Expr list;
    list.kind = Expr::Kind::kList;
    const uint32_t begin = parser_.Here();
    const bool items = parser_.ParseList("[", "]", [&] {
      auto item = Binary(0);
      if (item) list.args.push_back(*std::move(item));
      return item.has_value();
    });
    if (!items) return std::nullopt;
    list.span = parser_.SpanFrom(begin);
    return Grown(std::move(list));
  }

  ParserBase& parser_;
};

int LevelOf(const Expr& expr) {
  if (expr.kind == Expr::Kind::kBinary) return LevelOf(expr.name);
  return expr.kind == Expr::Kind::kUnary ? kUnaryLevel : kAtomLevel;
}

// `expr` where an operand of at least `level` is wanted.
std::string Operand(const Expr& expr, int level) {
  std::string text = PrintExpr(expr);
  return LevelOf(expr) < level ? "(" + text + ")" : text;
}

enum class Type { kNumber, kTruth };

class Checker {
 public:
  explicit Checker(support::Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  bool ok() const { return ok_; }

  Type Check(const Expr& expr) {
    switch (expr.kind) {
      case Expr::Kind::kNumber:
        if (!std::isfinite(expr.number)) {
          Refuse(Kind::kResourceBound, expr, "a number of an expression must be finite");
        }
        return Type::kNumber;
      case Expr::Kind::kBool:
        return Type::kTruth;
      case Expr::Kind::kReference:
        return Type::kNumber;
      case Expr::Kind::kUnary: {
        const Type wanted = expr.name == "!" ? Type::kTruth : Type::kNumber;
        Want(expr.args[0], wanted, "'" + expr.name + "'");
        return wanted;
      }
      case Expr::Kind::kBinary: {
        const int level = LevelOf(expr.name);
        const Type wanted = level <= 1 ? Type::kTruth : Type::kNumber;
        for (const Expr& arg : expr.args) Want(arg, wanted, "'" + expr.name + "'");
        return level <= 2 ? Type::kTruth : Type::kNumber;
      }
      case Expr::Kind::kList:
        for (const Expr& item : expr.args) Want(item, Type::kNumber, "a list");
        return Type::kNumber;
      case Expr::Kind::kCall:
        return CheckCall(expr);
    }
    return Type::kNumber;
  }

 private:
  support::Diagnostic& Refuse(Kind kind, const Expr& expr, std::string message) {
    ok_ = false;
    return diagnostics_.Error(kind, expr.span, std::move(message));
  }

  void Want(const Expr& expr, Type type, const std::string& where) {
    if (Check(expr) == type) return;
    Refuse(Kind::kConsistency, expr,
           type == Type::kTruth ? where + " wants a comparison or a truth, not a number"
                                : where + " wants a number, not a truth");
  }

  Type CheckCall(const Expr& call) {
    size_t positional = 0;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (call.labels[i].empty() && call.args[i].kind != Expr::Kind::kList) ++positional;
    }
    const auto reduction = std::find_if(std::begin(kReductions), std::end(kReductions),
                                        [&](const Reduction& r) { return r.name == call.name; });
    size_t min_args = 0, max_args = 0;
    Type result = Type::kNumber;
    bool first_is_truth = false;
    if (reduction != std::end(kReductions)) {
      min_args = reduction->min_args;
      max_args = reduction->max_args;
    } else if (const auto op = tensor::FindOp(call.name)) {
      const tensor::OpDef& definition = tensor::Definition(*op);
      if (definition.op_class == tensor::OpClass::kLeaf) {
        Refuse(Kind::kSafety, call, "'" + call.name + "' cannot stand in an expression");
        return Type::kNumber;
      }
      min_args = max_args = static_cast<size_t>(definition.arity);
      if (*op == tensor::Op::kCmpLt || *op == tensor::Op::kCmpNe) result = Type::kTruth;
      first_is_truth = *op == tensor::Op::kWhere;
    } else {
      Unknown(call);
      return Type::kNumber;
    }
    if (positional < min_args || positional > max_args) {
      std::string wanted = std::to_string(min_args);
      if (max_args != min_args) wanted += " or " + std::to_string(max_args);
      Refuse(Kind::kSafety, call,
             "'" + call.name + "' takes " + wanted +
                 (max_args == 1 ? " argument, not " : " arguments, not ") +
                 std::to_string(positional));
      return result;
    }
    for (size_t i = 0; i < call.args.size(); ++i) {
      const bool truth = first_is_truth && i == 0;
      Want(call.args[i], truth ? Type::kTruth : Type::kNumber, "'" + call.name + "'");
    }
    return result;
  }

  void Unknown(const Expr& call) {
    std::vector<std::string> known;
    for (const Reduction& reduction : kReductions) known.emplace_back(reduction.name);
    for (tensor::Op op : tensor::AllOps()) known.push_back(tensor::Definition(op).name);
    auto& error = Refuse(Kind::kSafety, call, "unknown function '" + call.name + "'");
    const std::string closest = support::ClosestMatch(call.name, known);
    if (!closest.empty()) error.Fix("did you mean '" + closest + "'?");
  }

  support::Diagnostics& diagnostics_;
  bool ok_ = true;
};

}  // namespace

bool SameExpr(const Expr& a, const Expr& b) {
  return a.kind == b.kind && a.number == b.number && a.whole == b.whole && a.name == b.name &&
         a.labels == b.labels &&
         std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(), SameExpr);
}

std::optional<Expr> ParseExpr(ParserBase& parser) { return ExprParser(parser).Binary(0); }

std::string PrintExpr(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kNumber:
      return expr.whole ? support::PrintInteger(static_cast<int64_t>(expr.number))
                        : support::PrintReal(expr.number);
    case Expr::Kind::kBool:
      return expr.number != 0 ? "true" : "false";
    case Expr::Kind::kReference:
      return expr.name;
    case Expr::Kind::kUnary:
      return expr.name + Operand(expr.args[0], kUnaryLevel);
    case Expr::Kind::kBinary: {
      const int level = LevelOf(expr.name);
      // Everything leans to the left; comparisons do not chain on either side.
      const bool chains = kLevels[static_cast<size_t>(level)].chains;
      return Operand(expr.args[0], chains ? level : level + 1) + " " + expr.name + " " +
             Operand(expr.args[1], level + 1);
    }
    case Expr::Kind::kCall:
    case Expr::Kind::kList: {
      std::vector<std::string> args;
      for (size_t i = 0; i < expr.args.size(); ++i) {
        const bool labelled = expr.kind == Expr::Kind::kCall && !expr.labels[i].empty();
        args.push_back((labelled ? expr.labels[i] + ": " : "") + PrintExpr(expr.args[i]));
      }
      const bool call = expr.kind == Expr::Kind::kCall;
      return (call ? expr.name + "(" : "[") + support::Join(args) + (call ? ")" : "]");
    }
  }
  return "";
}

std::string_view AlgebraOp(std::string_view binary) {
  return std::find_if(std::begin(kAlgebraOps), std::end(kAlgebraOps),
                      [&](const auto& entry) { return entry.first == binary; })
      ->second;
}

bool IsReduction(const Expr& call) {
  return call.args.size() == 1 &&
         std::any_of(std::begin(kReductions), std::end(kReductions),
                     [&](const Reduction& reduction) { return reduction.name == call.name; });
}

bool IsPredicate(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kBool:
      return true;
    case Expr::Kind::kUnary:
      return expr.name == "!";
    case Expr::Kind::kBinary:
      return LevelOf(expr.name) <= 2;
    case Expr::Kind::kCall:
      return expr.name == "cmplt" || expr.name == "cmpne";
    default:
      return false;
  }
}

void ForEachReference(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  if (expr.kind == Expr::Kind::kReference) visit(expr);
  for (const Expr& arg : expr.args) ForEachReference(arg, visit);
}

bool VerifyExpr(const Expr& expr, support::Diagnostics& diagnostics) {
  Checker checker(diagnostics);
  checker.Check(expr);
  return checker.ok();
}

}  // namespace l3c::l3
