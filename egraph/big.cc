#include "egraph/big.h"

#include <gmpxx.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "egraph/egraph.h"

namespace l3c::egraph {
namespace {

using Args = std::span<const Value>;
using Result = std::optional<Value>;
using OptInt = std::optional<mpz_class>;
using OptRat = std::optional<mpq_class>;

mpz_class Int(EGraph& e, Value v) { return mpz_class(e.AsString(v), 10); }
mpq_class Rat(EGraph& e, Value v) { return mpq_class(e.AsString(v), 10); }

size_t Bits(const mpz_class& z) { return mpz_sizeinbase(z.get_mpz_t(), 2); }

Result Intern(EGraph& e, const OptInt& z) {
  if (!z || Bits(*z) > kMaxBigBits || e.PoolIsFull()) return std::nullopt;
  return e.String(z->get_str(10));
}

mpz_class FromI64(int64_t i) {
  const uint64_t magnitude = i < 0 ? 0 - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
  mpz_class z;
  mpz_import(z.get_mpz_t(), 1, 1, sizeof magnitude, 0, 0, &magnitude);
  return i < 0 ? mpz_class(-z) : z;
}

std::optional<int64_t> ToI64(const mpz_class& z) {
  if (z < FromI64(std::numeric_limits<int64_t>::min()) ||
      z > FromI64(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  uint64_t magnitude = 0;
  mpz_export(&magnitude, nullptr, 1, sizeof magnitude, 0, 0, z.get_mpz_t());
  return static_cast<int64_t>(z < 0 ? 0 - magnitude : magnitude);
}

// Whether a fraction in lowest terms is one of `sort`: BigRat, or Rational, whose numerator and
// denominator are i64.
bool FitsFraction(SortId sort, const mpq_class& q) {
  if (sort == kRational) return ToI64(q.get_num()) && ToI64(q.get_den());
  return Bits(q.get_num()) <= kMaxBigBits && Bits(q.get_den()) <= kMaxBigBits;
}

Result Intern(EGraph& e, SortId sort, OptRat q) {
  if (!q) return std::nullopt;
  q->canonicalize();
  if (!FitsFraction(sort, *q) || e.PoolIsFull()) return std::nullopt;
  return e.String(q->get_str(10));
}

template <typename Op>  // OptInt(const mpz_class&, const mpz_class&)
void IntBinary(EGraph& g, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {kBigInt, kBigInt}, kBigInt, [op](EGraph& e, Args a) -> Result {
    return Intern(e, OptInt(op(Int(e, a[0]), Int(e, a[1]))));
  });
}

template <typename Op>  // OptRat(const mpq_class&, const mpq_class&)
void RatBinary(EGraph& g, SortId sort, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {sort, sort}, sort, [op, sort](EGraph& e, Args a) -> Result {
    return Intern(e, sort, OptRat(op(Rat(e, a[0]), Rat(e, a[1]))));
  });
}

template <typename Op>  // OptRat(const mpq_class&)
void RatUnary(EGraph& g, SortId sort, std::string_view name, Op op) {
  g.RegisterPrimitive(name, {sort}, sort, [op, sort](EGraph& e, Args a) -> Result {
    return Intern(e, sort, OptRat(op(Rat(e, a[0]))));
  });
}

template <typename Op>  // bool(auto, auto)
void Comparison(EGraph& g, const std::string& name, Op op) {
  g.RegisterPrimitive(name, {kBigInt, kBigInt}, kUnit, [op](EGraph& e, Args a) -> Result {
    if (!op(Int(e, a[0]), Int(e, a[1]))) return std::nullopt;
    return e.Unit();
  });
  g.RegisterPrimitive("bool-" + name, {kBigInt, kBigInt}, kBool, [op](EGraph& e, Args a) -> Result {
    return e.Bool(op(Int(e, a[0]), Int(e, a[1])));
  });
  for (SortId sort : {kBigRat, kRational}) {
    g.RegisterPrimitive(name, {sort, sort}, kUnit, [op](EGraph& e, Args a) -> Result {
      if (!op(Rat(e, a[0]), Rat(e, a[1]))) return std::nullopt;
      return e.Unit();
    });
    g.RegisterPrimitive("bool-" + name, {sort, sort}, kBool, [op](EGraph& e, Args a) -> Result {
      return e.Bool(op(Rat(e, a[0]), Rat(e, a[1])));
    });
  }
}

// The shift in an argument, where the result can be within bounds.
std::optional<mp_bitcnt_t> Shift(EGraph& e, Value v) {
  const int64_t bits = e.AsI64(v);
  if (bits < 0 || static_cast<uint64_t>(bits) > kMaxBigBits) return std::nullopt;
  return static_cast<mp_bitcnt_t>(bits);
}

void RegisterBigInt(EGraph& g) {
  g.RegisterPrimitive("bigint", {kI64}, kBigInt, [](EGraph& e, Args a) -> Result {
    return Intern(e, OptInt(FromI64(e.AsI64(a[0]))));
  });
  g.RegisterPrimitive("from-string", {kString}, kBigInt, [](EGraph& e, Args a) -> Result {
    std::string text = e.AsString(a[0]);
    if (text.starts_with('+')) text.erase(0, 1);
    const size_t digits = text.starts_with('-') ? 1 : 0;
    // Four bits a digit bounds the size before anything is computed.
    if (text.size() == digits || text.size() * 4 > kMaxBigBits ||
        text.find_first_not_of("0123456789", digits) != std::string::npos) {
      return std::nullopt;
    }
    return Intern(e, OptInt(mpz_class(text, 10)));
  });
  g.RegisterPrimitive("to-string", {kBigInt}, kString,
                      [](EGraph&, Args a) -> Result { return a[0]; });
  using Z = const mpz_class&;
  IntBinary(g, "+", [](Z a, Z b) { return mpz_class(a + b); });
  IntBinary(g, "-", [](Z a, Z b) { return mpz_class(a - b); });
  IntBinary(g, "*", [](Z a, Z b) { return mpz_class(a * b); });
  IntBinary(g, "/", [](Z a, Z b) { return b == 0 ? OptInt() : OptInt(a / b); });
  IntBinary(g, "%", [](Z a, Z b) { return b == 0 ? OptInt() : OptInt(a % b); });
  IntBinary(g, "&", [](Z a, Z b) { return mpz_class(a & b); });
  IntBinary(g, "|", [](Z a, Z b) { return mpz_class(a | b); });
  IntBinary(g, "^", [](Z a, Z b) { return mpz_class(a ^ b); });
  IntBinary(g, "min", [](Z a, Z b) { return a < b ? a : b; });
  IntBinary(g, "max", [](Z a, Z b) { return a > b ? a : b; });
  g.RegisterPrimitive("<<", {kBigInt, kI64}, kBigInt, [](EGraph& e, Args a) -> Result {
    const auto bits = Shift(e, a[1]);
    return bits ? Intern(e, OptInt(Int(e, a[0]) << *bits)) : Result();
  });
  g.RegisterPrimitive(">>", {kBigInt, kI64}, kBigInt, [](EGraph& e, Args a) -> Result {
    const auto bits = Shift(e, a[1]);
    return bits ? Intern(e, OptInt(Int(e, a[0]) >> *bits)) : Result();
  });
  g.RegisterPrimitive("not-Z", {kBigInt}, kBigInt,
                      [](EGraph& e, Args a) -> Result { return Intern(e, OptInt(~Int(e, a[0]))); });
  g.RegisterPrimitive("bits", {kBigInt}, kBigInt, [](EGraph& e, Args a) -> Result {
    const mpz_class z = Int(e, a[0]);
    return Intern(e, OptInt(FromI64(z == 0 ? 0 : static_cast<int64_t>(Bits(z)))));
  });
}

// base^exponent, the exponent a whole number.
OptRat Power(const mpq_class& base, const mpq_class& exponent) {
  if (exponent.get_den() != 1) return std::nullopt;
  const std::optional<int64_t> n = ToI64(exponent.get_num());
  if (base == 0) {
    if (exponent < 0) return std::nullopt;
    return mpq_class(exponent == 0 ? 1 : 0);
  }
  if (base == 1) return base;
  if (!n || *n == std::numeric_limits<int64_t>::min()) return std::nullopt;
  const uint64_t times = static_cast<uint64_t>(*n < 0 ? -*n : *n);
  const size_t bits = std::max(Bits(base.get_num()), Bits(base.get_den()));
  if (times > kMaxBigBits || (bits - 1) * times > kMaxBigBits) return std::nullopt;
  mpq_class power;
  mpz_pow_ui(power.get_num_mpz_t(), base.get_num_mpz_t(), times);
  mpz_pow_ui(power.get_den_mpz_t(), base.get_den_mpz_t(), times);
  if (*n < 0) power = 1 / power;
  return power;
}

OptRat Fraction(const mpz_class& numerator, const mpz_class& denominator) {
  if (denominator == 0) return std::nullopt;
  mpq_class q(numerator, denominator);
  q.canonicalize();
  return q;
}

// What makes fractions of big numbers, and takes them apart.
void RegisterBigRat(EGraph& g) {
  g.RegisterPrimitive("bigrat", {kBigInt, kBigInt}, kBigRat, [](EGraph& e, Args a) -> Result {
    return Intern(e, kBigRat, Fraction(Int(e, a[0]), Int(e, a[1])));
  });
  g.RegisterPrimitive("numer", {kBigRat}, kBigInt, [](EGraph& e, Args a) -> Result {
    return Intern(e, OptInt(Rat(e, a[0]).get_num()));
  });
  g.RegisterPrimitive("denom", {kBigRat}, kBigInt, [](EGraph& e, Args a) -> Result {
    return Intern(e, OptInt(Rat(e, a[0]).get_den()));
  });
}

// The same for fractions of i64.
void RegisterRational(EGraph& g) {
  g.RegisterPrimitive("rational", {kI64, kI64}, kRational, [](EGraph& e, Args a) -> Result {
    return Intern(e, kRational, Fraction(FromI64(e.AsI64(a[0])), FromI64(e.AsI64(a[1]))));
  });
  g.RegisterPrimitive("numer", {kRational}, kI64, [](EGraph& e, Args a) -> Result {
    return e.I64(ToI64(Rat(e, a[0]).get_num()).value_or(0));
  });
  g.RegisterPrimitive("denom", {kRational}, kI64, [](EGraph& e, Args a) -> Result {
    return e.I64(ToI64(Rat(e, a[0]).get_den()).value_or(1));
  });
}

void RegisterFractions(EGraph& g, SortId sort) {
  g.RegisterPrimitive("to-f64", {sort}, kF64,
                      [](EGraph& e, Args a) -> Result { return e.F64(Rat(e, a[0]).get_d()); });
  g.RegisterPrimitive("to-i64", {sort}, kI64, [](EGraph& e, Args a) -> Result {
    const mpq_class q = Rat(e, a[0]);
    const std::optional<int64_t> i = ToI64(q.get_num());
    if (q.get_den() != 1 || !i) return std::nullopt;
    return e.I64(*i);
  });
  using Q = const mpq_class&;
  const auto floor = [](Q q) {
    mpz_class z;
    mpz_fdiv_q(z.get_mpz_t(), q.get_num_mpz_t(), q.get_den_mpz_t());
    return mpq_class(z);
  };
  const auto ceil = [](Q q) {
    mpz_class z;
    mpz_cdiv_q(z.get_mpz_t(), q.get_num_mpz_t(), q.get_den_mpz_t());
    return mpq_class(z);
  };
  RatBinary(g, sort, "+", [](Q a, Q b) { return mpq_class(a + b); });
  RatBinary(g, sort, "-", [](Q a, Q b) { return mpq_class(a - b); });
  RatBinary(g, sort, "*", [](Q a, Q b) { return mpq_class(a * b); });
  RatBinary(g, sort, "/", [](Q a, Q b) { return b == 0 ? OptRat() : OptRat(a / b); });
  RatBinary(g, sort, "min", [](Q a, Q b) { return a < b ? a : b; });
  RatBinary(g, sort, "max", [](Q a, Q b) { return a > b ? a : b; });
  RatBinary(g, sort, "pow", Power);
  RatUnary(g, sort, "neg", [](Q a) { return mpq_class(-a); });
  RatUnary(g, sort, "abs", [](Q a) { return mpq_class(abs(a)); });
  RatUnary(g, sort, "floor", floor);
  RatUnary(g, sort, "ceil", ceil);
  // Halves go away from zero.
  RatUnary(g, sort, "round", [floor, ceil](Q a) {
    const mpq_class half(1, 2);
    return a < 0 ? ceil(a - half) : floor(a + half);
  });
  // Roots and logarithms where they are fractions.
  RatUnary(g, sort, "sqrt", [](Q a) -> OptRat {
    if (a <= 0 || !mpz_perfect_square_p(a.get_num_mpz_t()) ||
        !mpz_perfect_square_p(a.get_den_mpz_t())) {
      return std::nullopt;
    }
    return mpq_class(sqrt(a.get_num()), sqrt(a.get_den()));
  });
  RatUnary(g, sort, "cbrt", [](Q a) -> OptRat {
    mpq_class root;
    if (mpz_root(root.get_num_mpz_t(), a.get_num_mpz_t(), 3) == 0 ||
        mpz_root(root.get_den_mpz_t(), a.get_den_mpz_t(), 3) == 0) {
      return std::nullopt;
    }
    return root;
  });
  RatUnary(g, sort, "log", [](Q a) { return a == 1 ? OptRat(mpq_class(0)) : OptRat(); });
}

}  // namespace

void RegisterBigPrimitives(EGraph& g) {
  RegisterBigInt(g);
  RegisterBigRat(g);
  RegisterRational(g);
  RegisterFractions(g, kBigRat);
  RegisterFractions(g, kRational);
  Comparison(g, "<", [](const auto& a, const auto& b) { return a < b; });
  Comparison(g, ">", [](const auto& a, const auto& b) { return a > b; });
  Comparison(g, "<=", [](const auto& a, const auto& b) { return a <= b; });
  Comparison(g, ">=", [](const auto& a, const auto& b) { return a >= b; });
}

bool IsBigText(SortId sort, std::string_view text) {
  if (sort != kBigInt && sort != kBigRat && sort != kRational) return false;
  const std::string given(text);
  // Reading is lenient and a denominator may be 0, so what was read must come out as it went in.
  if (given.find_first_not_of("-0123456789/") != std::string::npos) return false;
  if (sort == kBigInt) {
    mpz_class z;
    return z.set_str(given, 10) == 0 && Bits(z) <= kMaxBigBits && z.get_str(10) == given;
  }
  mpq_class q;
  if (q.set_str(given, 10) != 0 || q.get_den() == 0) return false;
  q.canonicalize();
  return FitsFraction(sort, q) && q.get_str(10) == given;
}

std::string DescribeBig(const EGraph& graph, SortId sort, Value value) {
  const std::string& text = graph.AsString(value);
  if (sort == kBigInt) return "(from-string \"" + text + "\")";
  const size_t slash = text.find('/');
  const std::string denominator = slash == std::string::npos ? "1" : text.substr(slash + 1);
  if (sort == kRational) return "(rational " + text.substr(0, slash) + " " + denominator + ")";
  return "(bigrat (from-string \"" + text.substr(0, slash) + "\") (from-string \"" + denominator +
         "\"))";
}

}  // namespace l3c::egraph
