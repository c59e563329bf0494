// The primitives of the base sorts.
//
// Partial operations (overflow, division by zero, a logarithm of nothing) give nothing: no match in
// a premise, a failed run in an action. Comparisons give Unit or nothing, so they stand alone as
// premises; their `bool-` forms give a bool to compute with.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "egraph/egraph.h"
#include "egraph/f64_text.h"
#include "egraph/utf8.h"

namespace l3c::egraph {
namespace {

using Args = std::span<const Value>;
using Result = std::optional<Value>;

// Longer strings are nothing.
constexpr size_t kMaxString = size_t{1} << 20;

template <typename Op>  // std::optional<int64_t>(int64_t, int64_t)
void I64Binary(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kI64, kI64}, kI64, [op](EGraph& e, Args a) -> Result {
    const std::optional<int64_t> r = op(e.AsI64(a[0]), e.AsI64(a[1]));
    if (!r) return std::nullopt;
    return e.I64(*r);
  });
}

template <typename Op>  // std::optional<int64_t>(int64_t)
void I64Unary(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kI64}, kI64, [op](EGraph& e, Args a) -> Result {
    const std::optional<int64_t> r = op(e.AsI64(a[0]));
    if (!r) return std::nullopt;
    return e.I64(*r);
  });
}

template <typename Op>  // double(double, double)
void F64Binary(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kF64, kF64}, kF64, [op](EGraph& e, Args a) -> Result {
    return e.F64(op(e.AsF64(a[0]), e.AsF64(a[1])));
  });
}

template <typename Op>  // double(double)
void F64Unary(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kF64}, kF64,
                      [op](EGraph& e, Args a) -> Result { return e.F64(op(e.AsF64(a[0]))); });
}

using OptReal = std::optional<double>;

template <typename Op>  // OptReal(double, double)
void F64Partial(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kF64, kF64}, kF64, [op](EGraph& e, Args a) -> Result {
    const OptReal r = op(e.AsF64(a[0]), e.AsF64(a[1]));
    if (!r) return std::nullopt;
    return e.F64(*r);
  });
}

template <typename Op>  // OptReal(double)
void F64UnaryPartial(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kF64}, kF64, [op](EGraph& e, Args a) -> Result {
    const OptReal r = op(e.AsF64(a[0]));
    if (!r) return std::nullopt;
    return e.F64(*r);
  });
}

// `name` as a premise and `bool-name` as a value, on both number sorts.
template <typename Op>  // bool(auto, auto)
void Comparison(EGraph& g, const std::string& name, Op op) {
  g.RegisterPrimitive(name, {kI64, kI64}, kUnit, [op](EGraph& e, Args a) -> Result {
    if (!op(e.AsI64(a[0]), e.AsI64(a[1]))) return std::nullopt;
    return e.Unit();
  });
  g.RegisterPrimitive(name, {kF64, kF64}, kUnit, [op](EGraph& e, Args a) -> Result {
    if (!op(e.AsF64(a[0]), e.AsF64(a[1]))) return std::nullopt;
    return e.Unit();
  });
  const std::string as_bool = "bool-" + name;
  g.RegisterPrimitive(as_bool, {kI64, kI64}, kBool, [op](EGraph& e, Args a) -> Result {
    return e.Bool(op(e.AsI64(a[0]), e.AsI64(a[1])));
  });
  g.RegisterPrimitive(as_bool, {kF64, kF64}, kBool, [op](EGraph& e, Args a) -> Result {
    return e.Bool(op(e.AsF64(a[0]), e.AsF64(a[1])));
  });
}

template <typename Op>  // bool(bool, bool)
void BoolBinary(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kBool, kBool}, kBool, [op](EGraph& e, Args a) -> Result {
    return e.Bool(op(e.AsBool(a[0]), e.AsBool(a[1])));
  });
}

using OptInt = std::optional<int64_t>;

OptInt CheckedAdd(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? OptInt() : OptInt(r);
}
OptInt CheckedSub(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? OptInt() : OptInt(r);
}
OptInt CheckedMul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? OptInt() : OptInt(r);
}
bool Divides(int64_t a, int64_t b) {
  return b != 0 && !(a == std::numeric_limits<int64_t>::min() && b == -1);
}

void RegisterI64(EGraph& g) {
  I64Binary(g, "+", CheckedAdd);
  I64Binary(g, "-", CheckedSub);
  I64Binary(g, "*", CheckedMul);
  I64Binary(g, "/", [](int64_t a, int64_t b) { return Divides(a, b) ? OptInt(a / b) : OptInt(); });
  I64Binary(g, "%", [](int64_t a, int64_t b) { return Divides(a, b) ? OptInt(a % b) : OptInt(); });
  I64Binary(g, "min", [](int64_t a, int64_t b) { return OptInt(std::min(a, b)); });
  I64Binary(g, "max", [](int64_t a, int64_t b) { return OptInt(std::max(a, b)); });
  I64Binary(g, "&", [](int64_t a, int64_t b) { return OptInt(a & b); });
  I64Binary(g, "|", [](int64_t a, int64_t b) { return OptInt(a | b); });
  I64Binary(g, "^", [](int64_t a, int64_t b) { return OptInt(a ^ b); });
  I64Binary(g, "<<", [](int64_t a, int64_t b) {
    return b < 0 || b > 63 ? OptInt() : OptInt(static_cast<int64_t>(static_cast<uint64_t>(a) << b));
  });
  I64Binary(g, ">>",
            [](int64_t a, int64_t b) { return b < 0 || b > 63 ? OptInt() : OptInt(a >> b); });
  I64Unary(g, "abs", [](int64_t a) { return a < 0 ? CheckedSub(0, a) : OptInt(a); });
  I64Unary(g, "-", [](int64_t a) { return CheckedSub(0, a); });
  I64Unary(g, "not-i64", [](int64_t a) { return OptInt(~a); });
  I64Unary(g, "log2", [](int64_t a) {
    return a <= 0 ? OptInt() : OptInt(std::bit_width(static_cast<uint64_t>(a)) - 1);
  });
  g.RegisterPrimitive("to-f64", {kI64}, kF64, [](EGraph& e, Args a) -> Result {
    return e.F64(static_cast<double>(e.AsI64(a[0])));
  });
}

void RegisterF64(EGraph& g) {
  F64Binary(g, "+", [](double a, double b) { return a + b; });
  F64Binary(g, "-", [](double a, double b) { return a - b; });
  F64Binary(g, "*", [](double a, double b) { return a * b; });
  F64Partial(g, "/", [](double a, double b) { return b == 0 ? OptReal() : OptReal(a / b); });
  F64Partial(g, "%",
             [](double a, double b) { return b == 0 ? OptReal() : OptReal(std::fmod(a, b)); });
  F64Binary(g, "^", [](double a, double b) { return std::pow(a, b); });
  F64Binary(g, "min", [](double a, double b) { return std::min(a, b); });
  F64Binary(g, "max", [](double a, double b) { return std::max(a, b); });
  F64Unary(g, "abs", [](double a) { return std::fabs(a); });
  F64Unary(g, "neg", [](double a) { return -a; });
  F64UnaryPartial(g, "sqrt", [](double a) { return a >= 0 ? OptReal(std::sqrt(a)) : OptReal(); });
  F64Unary(g, "exp", [](double a) { return std::exp(a); });
  F64UnaryPartial(g, "log", [](double a) { return a > 0 ? OptReal(std::log(a)) : OptReal(); });
  F64Unary(g, "log2", [](double a) { return std::log2(a); });
  F64Unary(g, "ceil", [](double a) { return std::ceil(a); });
  F64Unary(g, "floor", [](double a) { return std::floor(a); });
  g.RegisterPrimitive("to-i64", {kF64}, kI64, [](EGraph& e, Args a) -> Result {
    const double d = std::trunc(e.AsF64(a[0]));
    // 2^63 is the first double out of range; NaN fails both comparisons.
    if (!(d >= -0x1p63 && d < 0x1p63)) return std::nullopt;
    return e.I64(static_cast<int64_t>(d));
  });
}

void RegisterBool(EGraph& g) {
  BoolBinary(g, "and", [](bool a, bool b) { return a && b; });
  BoolBinary(g, "xor", [](bool a, bool b) { return a != b; });
  BoolBinary(g, "=>", [](bool a, bool b) { return !a || b; });
  g.RegisterPrimitive("not", {kBool}, kBool,
                      [](EGraph& e, Args a) -> Result { return e.Bool(!e.AsBool(a[0])); });
  g.RegisterPrimitive(
      "or", {kBool}, kBool,
      [](EGraph& e, Args a) -> Result {
        return e.Bool(std::any_of(a.begin(), a.end(), [&e](Value v) { return e.AsBool(v); }));
      },
      1);
  // A bool as a premise.
  g.RegisterPrimitive("guard", {kBool}, kUnit, [](EGraph& e, Args a) -> Result {
    if (!e.AsBool(a[0])) return std::nullopt;
    return e.Unit();
  });
  g.RegisterPrimitive("select", {kBool, kAnySort, kAnySort}, kAnySort,
                      [](EGraph& e, Args a) -> Result { return e.AsBool(a[0]) ? a[1] : a[2]; });
}

void RegisterString(EGraph& g) {
  g.RegisterPrimitive(
      "+", {kString}, kString,
      [](EGraph& e, Args a) -> Result {
        std::string all;
        for (Value v : a) {
          all += e.AsString(v);
          if (all.size() > kMaxString) return std::nullopt;
        }
        if (e.PoolIsFull()) return std::nullopt;
        return e.String(all);
      },
      1);
  g.RegisterPrimitive("replace", {kString, kString, kString}, kString,
                      [](EGraph& e, Args a) -> Result {
                        const std::string &text = e.AsString(a[0]), &from = e.AsString(a[1]),
                                          &to = e.AsString(a[2]);
                        // Nothing stands before and after every character.
                        std::string all;
                        for (size_t at = 0; at <= text.size() && all.size() <= kMaxString;) {
                          if (text.compare(at, from.size(), from) == 0) {
                            all += to;
                            if (!from.empty()) {
                              at += from.size();
                              continue;
                            }
                          }
                          // A character as a whole.
                          do {
                            if (at < text.size()) all += text[at];
                            ++at;
                          } while (at < text.size() && ContinuesCharacter(text[at]));
                        }
                        if (all.size() > kMaxString || e.PoolIsFull()) return std::nullopt;
                        return e.String(all);
                      });
  // Occurrences that do not overlap.
  g.RegisterPrimitive("count-matches", {kString, kString}, kI64, [](EGraph& e, Args a) -> Result {
    const std::string &text = e.AsString(a[0]), &what = e.AsString(a[1]);
    if (what.empty()) {
      return e.I64(1 + std::count_if(text.begin(), text.end(),
                                     [](char c) { return !ContinuesCharacter(c); }));
    }
    int64_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos;
         at = text.find(what, at + what.size())) {
      ++count;
    }
    return e.I64(count);
  });
}

}  // namespace

void RegisterBuiltinPrimitives(EGraph& g) {
  RegisterI64(g);
  RegisterF64(g);
  RegisterBool(g);
  Comparison(g, "<", [](auto a, auto b) { return a < b; });
  Comparison(g, ">", [](auto a, auto b) { return a > b; });
  Comparison(g, "<=", [](auto a, auto b) { return a <= b; });
  Comparison(g, ">=", [](auto a, auto b) { return a >= b; });
  // Values of a sort are equal when their bits are: literals are interned, classes canonical.
  g.RegisterPrimitive("!=", {kAnySort, kAnySort}, kUnit, [](EGraph& e, Args a) -> Result {
    if (a[0] == a[1]) return std::nullopt;
    return e.Unit();
  });
  g.RegisterPrimitive("bool-=", {kAnySort, kAnySort}, kBool,
                      [](EGraph& e, Args a) -> Result { return e.Bool(a[0] == a[1]); });
  g.RegisterPrimitive("bool-!=", {kAnySort, kAnySort}, kBool,
                      [](EGraph& e, Args a) -> Result { return e.Bool(a[0] != a[1]); });
  RegisterString(g);
  g.RegisterPrimitive("to-string", {kF64}, kString, [](EGraph& e, Args a) -> Result {
    return e.String(F64ToString(e.AsF64(a[0])));
  });
  for (SortId sort : {kI64, kBool, kString}) {
    g.RegisterPrimitive("to-string", {sort}, kString, [sort](EGraph& e, Args a) -> Result {
      return sort == kString ? a[0] : e.String(e.DescribeValue(sort, a[0]));
    });
  }
}

}  // namespace l3c::egraph
