// The same sequences of IEEE operations as backends/llvm/transcendental.h gives, whose header has
// their errors, so that a value has the same bits on both; or, where approximations are allowed,
// one instruction each.
#include <algorithm>
#include <array>
#include <limits>

#include "backends/ptx/select.h"

namespace l3c::ptx {

using tensor::DType;

namespace {

// (2^f - 1) / f on [-1/2, 1/2].
const std::vector<double> kExp2 = {6.931471825e-01, 2.402264774e-01, 5.550332367e-02,
                                   9.618436918e-03, 1.339887502e-03, 1.535336196e-04};
// log2(1 + t) / t on [√½ - 1, √2 - 1].
const std::vector<double> kLog2 = {
    1.442695022e+00,  -7.213473320e-01, 4.808982313e-01,  -3.606966436e-01, 2.885673940e-01,
    -2.396174073e-01, 2.046006322e-01,  -1.910627782e-01, 1.861748844e-01,  -1.099494100e-01};
// (sin(r) / r - 1) / r² in r², on [0, π²/4].
const std::vector<double> kSin = {-1.66666666666655527e-01, 8.33333333323540287e-03,
                                  -1.98412698130338475e-04, 2.75573152814785442e-06,
                                  -2.50518057548498874e-08, 1.60459772639148790e-10,
                                  -7.34931213108858117e-13};
// The bits of 1/(2π) behind the point, highest first.
constexpr std::array<uint32_t, 7> kOverTwoPi = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770,
                                                0x36d8a566, 0x4f10e410, 0x7f9458ea};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Operand Int(int64_t value) { return Operand::Integer(value); }
Operand Float(double value) { return Operand::F32(static_cast<float>(value)); }
Operand Wide(double value) { return Operand::F64(value); }

}  // namespace

// Horner's rule.
Operand Selector::Polynomial(const Operand& x, const std::vector<double>& coefficients, bool wide) {
  const auto number = [&](double value) { return wide ? Wide(value) : Float(value); };
  Operand sum = number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) {
    sum = Make(wide ? RegClass::kF64 : RegClass::kF32, wide ? "fma.rn.f64" : "fma.rn.f32",
               {sum, x, number(coefficients[i])});
  }
  return sum;
}

Operand Selector::PowerOfTwo(const Operand& n) {
  return F32("mov.b32", {B32("shl.b32", {B32("add.s32", {n, Int(127)}), Int(23)})});
}

Operand Selector::Exp2(const Operand& x) {
  if (options_.approximate) return F32("ex2.approx.f32", {x});
  // The comparisons are false for NaN, which therefore passes through.
  Operand clamped = F32("selp.f32", {Float(129), x, Pred("setp.gt.f32", {x, Float(129)})});
  clamped = F32("selp.f32", {Float(-151), clamped, Pred("setp.lt.f32", {clamped, Float(-151)})});
  // Adding 1.5·2^23 rounds to an integer, which then stands in the low bits.
  constexpr double kMagic = 12582912.0;
  constexpr int64_t kMagicBits = 0x4b400000;
  const Operand shifted = F32("add.rn.f32", {clamped, Float(kMagic)});
  const Operand n = F32("sub.rn.f32", {shifted, Float(kMagic)});
  const Operand f = F32("sub.rn.f32", {clamped, n});
  const Operand p = F32("fma.rn.f32", {Polynomial(f, kExp2, false), f, Float(1)});
  const Operand power = B32("sub.s32", {B32("mov.b32", {shifted}), Int(kMagicBits)});
  const Operand half = B32("shr.s32", {power, Int(1)});
  const Operand rest = B32("sub.s32", {power, half});
  return F32("mul.rn.f32", {F32("mul.rn.f32", {p, PowerOfTwo(half)}), PowerOfTwo(rest)});
}

Operand Selector::Log2(const Operand& x) {
  if (options_.approximate) return F32("lg2.approx.f32", {x});
  const Operand small = Pred("setp.lt.f32", {x, Float(0x1p-126)});
  const Operand scaled = F32("selp.f32", {F32("mul.rn.f32", {x, Float(0x1p23)}), x, small});
  const Operand bits = B32("mov.b32", {scaled});
  constexpr int64_t kSqrtHalf = 0x3f3504f3;
  const Operand exponent = B32("shr.s32", {B32("sub.s32", {bits, Int(kSqrtHalf)}), Int(23)});
  const Operand m = F32("mov.b32", {B32("sub.s32", {bits, B32("shl.b32", {exponent, Int(23)})})});
  Operand e = F32("cvt.rn.f32.s32", {exponent});
  e = F32("selp.f32", {F32("sub.rn.f32", {e, Float(23)}), e, small});
  const Operand t = F32("sub.rn.f32", {m, Float(1)});
  const Operand result = F32("fma.rn.f32", {Polynomial(t, kLog2, false), t, e});
  // Not (0 < x < inf): inf and NaN stay, zero gives -inf, the rest NaN.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Operand other = F32("selp.f32", {Float(nan), x, Pred("setp.lt.f32", {x, Float(0)})});
  other = F32("selp.f32", {Float(-kInfinity), other, Pred("setp.eq.f32", {x, Float(0)})});
  const Operand ordinary = Pred(
      "and.pred", {Pred("setp.gt.f32", {x, Float(0)}), Pred("setp.lt.f32", {x, Float(kInfinity)})});
  return F32("selp.f32", {result, other, ordinary});
}

Operand Selector::SinOfRest(const Operand& r, const Operand& parity) {
  const Operand z = F64("mul.rn.f64", {r, r});
  const Operand p = F64("mul.rn.f64", {Polynomial(z, kSin, true), z});
  const Operand sine = F64("fma.rn.f64", {p, r, r});
  const Operand sign = B64("shl.b64", {parity, Int(63)});
  const Operand bits = B64("xor.b64", {B64("mov.b64", {sine}), sign});
  return F32("cvt.rn.f32.f64", {F64("mov.b64", {bits})});
}

Operand Selector::Sin(const Operand& value) {
  if (options_.approximate) return F32("sin.approx.f32", {value});
  const Operand x = Register(value, DType::kF32);
  const Operand d = F64("cvt.f64.f32", {x});
  // 1.5·2^52: the integer nearest to x/π stands in the low bits.
  constexpr double kMagic = 6755399441055744.0;
  const Operand turns = F64("mul.rn.f64", {d, Wide(0.31830988618379067154)});
  const Operand shifted = F64("add.rn.f64", {turns, Wide(kMagic)});
  const Operand n = F64("sub.rn.f64", {shifted, Wide(kMagic)});
  // π in parts of 24 and 53 bits: n·high is exact for |n| < 2^29.
  constexpr double kPiHigh = 3.1415927410125732;
  constexpr double kPiLow = -8.742278000372485e-08;
  Operand r = F64("sub.rn.f64", {d, F64("mul.rn.f64", {n, Wide(kPiHigh)})});
  r = F64("sub.rn.f64", {r, F64("mul.rn.f64", {n, Wide(kPiLow)})});
  const Operand fast = SinOfRest(r, B64("mov.b64", {shifted}));
  // -0 has lost its sign in x - 0·π.
  const Operand result = F32("selp.f32", {x, fast, Pred("setp.eq.f32", {x, Float(0)})});
  const uint32_t done = NewLabel();
  const Operand magnitude = F32("abs.f32", {x});
  Branch(done, Pred("setp.geu.f32", {magnitude, Float(0x1p28)}), true);
  Move(DType::kF32, result, LargeSin(x));
  PlaceLabel(done);
  return result;
}

// x = m·2^e, m of 24 bits: the fraction of x / 2π is that of m times the bits of 1/(2π) from the
// e-th on. 96 of those give 64 bits of it, 2F in units of π (Payne and Hanek, "Radian reduction for
// trigonometric functions", 1983).
Operand Selector::LargeSin(const Operand& x) {
  const Operand bits = B32("mov.b32", {x});
  const Operand exponent = B32("and.b32", {B32("shr.u32", {bits, Int(23)}), Int(255)});
  const Operand e = B32("sub.s32", {exponent, Int(150)});
  const Operand m = B32("or.b32", {B32("and.b32", {bits, Int(0x7fffff)}), Int(0x800000)});
  const Operand word = B32("shr.u32", {e, Int(5)});
  std::vector<Operand> words;  // four from the e-th bit's on
  for (size_t i = 0; i < 4; ++i) {
    Operand w = Int(kOverTwoPi[i]);
    for (int64_t skip = 1; skip < 4; ++skip) {
      w = B32("selp.b32", {Int(kOverTwoPi[i + static_cast<size_t>(skip)]), w,
                           Pred("setp.eq.u32", {word, Int(skip)})});
    }
    words.push_back(w);
  }
  std::vector<Operand> h;
  for (size_t i = 0; i < 3; ++i) {
    h.push_back(B32("shf.l.wrap.b32", {words[i + 1], words[i], e}));
  }
  const Operand low = B64("shr.u64", {B64("mul.wide.u32", {m, h[2]}), Int(32)});
  const Operand middle = B64("add.s64", {B64("mul.wide.u32", {m, h[1]}), low});
  const Operand high =
      B64("shl.b64", {B64("cvt.u64.u32", {B32("mul.lo.s32", {m, h[0]})}), Int(32)});
  const Operand fraction = B64("add.s64", {middle, high});
  // The half turn nearest to it, and what is left in units of 2^-64 π.
  const Operand rounded = B64("add.s64", {fraction, Int(int64_t{1} << 62)});
  const Operand parity = B64("shr.u64", {rounded, Int(63)});
  const Operand rest = B64("shl.b64", {fraction, Int(1)});
  const Operand r =
      F64("mul.rn.f64", {F64("cvt.rn.f64.s64", {rest}), Wide(0x1.921fb54442d18p+1 * 0x1p-64)});
  const Operand sine = SinOfRest(r, parity);
  const Operand sign = B32("and.b32", {bits, Int(INT64_C(0x80000000))});
  const Operand odd = F32("mov.b32", {B32("xor.b32", {B32("mov.b32", {sine}), sign})});
  // inf and NaN.
  const Operand none = F32("sub.rn.f32", {x, x});
  return F32("selp.f32", {none, odd, Pred("setp.eq.u32", {exponent, Int(255)})});
}

// In f64 each quotient, rounded towards zero, leaves an exact rest; 52 bits of it at a time.
Operand Selector::FloatModulo(const Operand& value, const Operand& divisor) {
  const Operand x = Register(value, DType::kF32);
  const Operand y = F64("abs.f64", {F64("cvt.f64.f32", {Register(divisor, DType::kF32)})});
  const Operand rest = F64("abs.f64", {F64("cvt.f64.f32", {x})});
  const Operand finite = Pred("and.pred", {Pred("setp.lt.f64", {rest, Wide(kInfinity)}),
                                           Pred("setp.gt.f64", {y, Wide(0)})});
  const uint32_t loop = NewLabel();
  const uint32_t done = NewLabel();
  Branch(done, finite, true);
  PlaceLabel(loop);
  Branch(done, Pred("setp.ge.f64", {rest, y}), true);
  const Operand times = F64("cvt.rzi.f64.f64", {F64("div.rz.f64", {rest, y})});
  Append("fma.rn.f64", {rest}, {F64("neg.f64", {times}), y, rest});
  Append("bra", {}, {Operand::Label(loop)});
  PlaceLabel(done);
  const Operand magnitude = B32("mov.b32", {F32("cvt.rn.f32.f64", {rest})});
  const Operand sign = B32("and.b32", {B32("mov.b32", {x}), Int(INT64_C(0x80000000))});
  const Operand signed_rest = F32("mov.b32", {B32("or.b32", {magnitude, sign})});
  // x mod 0, inf mod y and what has a NaN.
  const Operand ordered = Pred("and.pred", {finite, Pred("setp.num.f64", {rest, y})});
  return F32("selp.f32", {signed_rest, Float(std::numeric_limits<double>::quiet_NaN()), ordered});
}

// Word index mod 4 of Philox4x32-10 at counter (index / 4, 0, 0) under the key's two halves, its
// top 24 bits as a number in [0, 1).
Operand Selector::Philox(const Operand& key, const Operand& index) {
  const auto low = [&](const Operand& x) { return B32("cvt.u32.u64", {x}); };
  const auto high = [&](const Operand& x) { return low(B64("shr.u64", {x, Int(32)})); };
  const Operand i = Register(index, DType::kI64);
  const Operand k = Register(key, DType::kU64);
  const Operand block = B64("shr.u64", {i, Int(2)});
  const Operand zero = Register(Int(0), DType::kU32);
  Operand x[4] = {low(block), high(block), zero, zero};
  Operand keys[2] = {low(k), high(k)};
  for (int round = 0; round < 10; ++round) {
    constexpr int64_t kFirst = 0xD2511F53;
    constexpr int64_t kSecond = 0xCD9E8D57;
    const auto mixed = [&](const Operand& product, const Operand& word, const Operand& by) {
      return B32("xor.b32", {B32("xor.b32", {product, word}), by});
    };
    const Operand next[4] = {mixed(B32("mul.hi.u32", {x[2], Int(kSecond)}), x[1], keys[0]),
                             B32("mul.lo.u32", {x[2], Int(kSecond)}),
                             mixed(B32("mul.hi.u32", {x[0], Int(kFirst)}), x[3], keys[1]),
                             B32("mul.lo.u32", {x[0], Int(kFirst)})};
    std::copy(std::begin(next), std::end(next), std::begin(x));
    keys[0] = B32("add.s32", {keys[0], Int(INT64_C(0x9E3779B9))});
    keys[1] = B32("add.s32", {keys[1], Int(INT64_C(0xBB67AE85))});
  }
  const Operand lane = B32("and.b32", {low(i), Int(3)});
  Operand word = x[3];
  for (int w = 3; w-- > 0;) {
    word = B32("selp.b32", {x[w], word, Pred("setp.eq.u32", {lane, Int(w)})});
  }
  const Operand uniform = F32("cvt.rn.f32.u32", {B32("shr.u32", {word, Int(8)})});
  return F32("mul.rn.f32", {uniform, Float(1.0 / 16777216.0)});
}

// Denormals count as zeros: multiplying by one with .ftz makes them so.
Operand Selector::Bf16Pair(const Operand& low, const Operand& high) {
  const auto flushed = [&](const Operand& x) { return F32("mul.rn.ftz.f32", {x, Float(1)}); };
  const Operand second = flushed(high);
  return B32("cvt.rn.bf16x2.f32", {second, flushed(low)});
}

// sum + high·high, rounded, + low·low, rounded (layers/tensor/bf16.h).
Operand Selector::Bf16Dot(const Operand& sum, const Operand& a, const Operand& b) {
  const auto upper = [&](const Operand& x) {
    return F32("mov.b32", {B32("and.b32", {x, Int(INT64_C(0xffff0000))})});
  };
  const auto lower = [&](const Operand& x) {
    return F32("mov.b32", {B32("shl.b32", {x, Int(16)})});
  };
  const Operand first = F32("fma.rn.ftz.f32", {upper(a), upper(b), sum});
  return F32("fma.rn.ftz.f32", {lower(a), lower(b), first});
}

}  // namespace l3c::ptx
