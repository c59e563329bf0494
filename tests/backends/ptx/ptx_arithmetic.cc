#include "tests/backends/ptx/ptx_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

namespace l3c::testing {
namespace {

struct Type {
  char kind = 'b';  // b, u, s, f
  int bits = 32;
};

std::optional<Type> ParseType(const std::string& text) {
  if (text == "pred") return Type{'p', 1};
  if (text.size() < 2 || std::string("busf").find(text[0]) == std::string::npos)
    return std::nullopt;
  const int bits = std::atoi(text.c_str() + 1);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return std::nullopt;
  return Type{text[0], bits};
}

uint64_t Mask(uint64_t value, int bits) {
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}
int64_t Signed(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}
float ToFloat(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double ToDouble(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

template <typename F>
F Flush(F x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(F{0}, x) : x;
}

// +0 is larger than -0; without .NaN a NaN loses against a number.
template <typename F>
F Extreme(F x, F y, bool largest, bool nan) {
  if (std::isnan(x) || std::isnan(y)) {
    if (nan || (std::isnan(x) && std::isnan(y))) return std::numeric_limits<F>::quiet_NaN();
    return std::isnan(x) ? y : x;
  }
  if (x == y) return std::signbit(x) == largest ? y : x;
  return (x > y) == largest ? x : y;
}

template <typename F>
F DivideTowardZero(F x, F y) {
  const int before = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  volatile F a = x;
  volatile F b = y;
  volatile F quotient = a / b;
  std::fesetround(before);
  return quotient;
}

template <typename F>
F FromBits(uint64_t bits) {
  if constexpr (std::is_same_v<F, float>) return ToFloat(bits);
  if constexpr (std::is_same_v<F, double>) return ToDouble(bits);
}

template <typename F, typename Operation>
PtxFunction OfFloats(bool ftz, Operation operation) {
  return [=](const uint64_t* in) -> std::optional<uint64_t> {
    const auto at = [&](size_t i) {
      const F value = FromBits<F>(in[i]);
      return ftz ? Flush(value) : value;
    };
    const F result = operation(at);
    return Bits(ftz ? Flush(result) : result);
  };
}

template <typename F>
PtxFunction Float(const PtxInstruction& instruction) {
  const std::string& op = instruction.opcode[0];
  const bool ftz = instruction.Has("ftz");
  const bool nan = instruction.Has("NaN");
  const auto of = [&](auto operation) { return OfFloats<F>(ftz, operation); };
  if (op == "neg") return of([](auto at) { return -at(0); });
  if (op == "abs") return of([](auto at) { return std::fabs(at(0)); });
  if (op == "max" || op == "min") {
    if (nan && std::is_same_v<F, double>) return {};
    const bool largest = op == "max";
    return of([=](auto at) { return Extreme(at(0), at(1), largest, nan); });
  }
  const bool nearest = instruction.Has("rn");
  if (op == "add" && nearest) return of([](auto at) { return at(0) + at(1); });
  if (op == "sub" && nearest) return of([](auto at) { return at(0) - at(1); });
  if (op == "mul" && nearest) return of([](auto at) { return at(0) * at(1); });
  if (op == "div" && nearest) return of([](auto at) { return at(0) / at(1); });
  if (op == "div" && instruction.Has("rz")) {
    return of([](auto at) { return DivideTowardZero(at(0), at(1)); });
  }
  if (op == "fma" && nearest) return of([](auto at) { return std::fma(at(0), at(1), at(2)); });
  const bool approximate = instruction.Has("approx") && std::is_same_v<F, float>;
  if (op == "rcp" && (nearest || approximate)) return of([](auto at) { return F{1} / at(0); });
  if (op == "sqrt" && (nearest || approximate)) {
    return of([](auto at) { return std::sqrt(at(0)); });
  }
  const auto in_double = [&](double (*function)(double)) {
    return of([=](auto at) { return static_cast<F>(function(static_cast<double>(at(0)))); });
  };
  if (approximate && op == "ex2") return in_double(std::exp2);
  if (approximate && op == "lg2") return in_double(std::log2);
  if (approximate && op == "sin") return in_double(std::sin);
  return {};
}

template <typename Operation>
PtxFunction OfIntegers(int bits, Operation operation) {
  return [=](const uint64_t* in) -> std::optional<uint64_t> { return Mask(operation(in), bits); };
}

PtxFunction Shift(bool left, bool is_signed, int bits) {
  return OfIntegers(bits, [=](const uint64_t* in) -> uint64_t {
    const uint64_t by = Mask(in[1], 32);
    const auto most = static_cast<uint64_t>(bits);
    if (left) return by >= most ? 0 : in[0] << by;
    if (is_signed) return static_cast<uint64_t>(Signed(in[0], bits) >> std::min(by, most - 1));
    return by >= most ? 0 : Mask(in[0], bits) >> by;
  });
}

// Division by zero, and of the lowest by -1, has no defined result.
PtxFunction Divide(bool quotient, bool is_signed, int bits) {
  return [=](const uint64_t* in) -> std::optional<uint64_t> {
    const uint64_t x = Mask(in[0], bits);
    const uint64_t y = Mask(in[1], bits);
    if (y == 0) return std::nullopt;
    if (!is_signed) return quotient ? x / y : x % y;
    const int64_t a = Signed(x, bits);
    const int64_t b = Signed(y, bits);
    if (b == -1 && x == uint64_t{1} << (bits - 1)) return std::nullopt;
    return Mask(static_cast<uint64_t>(quotient ? a / b : a % b), bits);
  };
}

PtxFunction Multiply(const PtxInstruction& instruction, bool is_signed, int bits) {
  if (instruction.Has("lo")) {
    return OfIntegers(bits, [](const uint64_t* in) { return in[0] * in[1]; });
  }
  const bool wide = instruction.Has("wide");
  if (bits != 32 || (!wide && !instruction.Has("hi"))) return {};
  return [=](const uint64_t* in) -> std::optional<uint64_t> {
    const uint64_t product = is_signed
                                 ? static_cast<uint64_t>(Signed(in[0], 32) * Signed(in[1], 32))
                                 : Mask(in[0], 32) * Mask(in[1], 32);
    return wide ? product : product >> 32;
  };
}

PtxFunction Integer(const PtxInstruction& instruction, Type type) {
  const std::string& op = instruction.opcode[0];
  const bool is_signed = type.kind == 's';
  const int bits = type.bits;
  const auto of = [&](auto operation) { return OfIntegers(bits, operation); };
  if (op == "add") return of([](const uint64_t* in) { return in[0] + in[1]; });
  if (op == "sub") return of([](const uint64_t* in) { return in[0] - in[1]; });
  if (op == "neg") return of([](const uint64_t* in) { return 0 - in[0]; });
  if (op == "and") return of([](const uint64_t* in) { return in[0] & in[1]; });
  if (op == "or") return of([](const uint64_t* in) { return in[0] | in[1]; });
  if (op == "xor") return of([](const uint64_t* in) { return in[0] ^ in[1]; });
  if (op == "not") return of([](const uint64_t* in) { return ~in[0]; });
  if (op == "mad" && instruction.Has("lo")) {
    return of([](const uint64_t* in) { return in[0] * in[1] + in[2]; });
  }
  if (op == "mul") return Multiply(instruction, is_signed, bits);
  if (op == "shl" || op == "shr") return Shift(op == "shl", is_signed, bits);
  if (op == "div" || op == "rem") return Divide(op == "div", is_signed, bits);
  if (op == "shf" && instruction.Has("l") && instruction.Has("wrap")) {
    return of([](const uint64_t* in) {
      const uint64_t both = (Mask(in[1], 32) << 32) | Mask(in[0], 32);
      return (both << (in[2] & 31)) >> 32;
    });
  }
  if (op == "max" || op == "min") {
    const bool largest = op == "max";
    return of([=](const uint64_t* in) {
      const bool less = is_signed ? Signed(in[0], bits) < Signed(in[1], bits)
                                  : Mask(in[0], bits) < Mask(in[1], bits);
      return in[less == largest ? 1 : 0];
    });
  }
  return {};
}

template <typename Get>
PtxFunction Ordered(const std::string& comparison, bool or_unordered, Get get) {
  const auto of = [&](auto compare) -> PtxFunction {
    return [=](const uint64_t* in) -> std::optional<uint64_t> {
      const auto x = get(in[0]);
      const auto y = get(in[1]);
      if (x != x || y != y) return or_unordered;
      return compare(x, y);
    };
  };
  if (comparison == "eq") return of([](auto x, auto y) { return x == y; });
  if (comparison == "ne") return of([](auto x, auto y) { return x != y; });
  if (comparison == "lt" || comparison == "lo") return of([](auto x, auto y) { return x < y; });
  if (comparison == "le" || comparison == "ls") return of([](auto x, auto y) { return x <= y; });
  if (comparison == "gt" || comparison == "hi") return of([](auto x, auto y) { return x > y; });
  if (comparison == "ge" || comparison == "hs") return of([](auto x, auto y) { return x >= y; });
  return {};
}

PtxFunction Compare(std::string comparison, Type type) {
  const int bits = type.bits;
  if (type.kind == 's') {
    return Ordered(comparison, false, [=](uint64_t x) { return Signed(x, bits); });
  }
  if (type.kind != 'f') {
    return Ordered(comparison, false, [=](uint64_t x) { return Mask(x, bits); });
  }
  const auto value = [=](uint64_t x) {
    return bits == 32 ? static_cast<double>(ToFloat(x)) : ToDouble(x);
  };
  if (comparison == "nan" || comparison == "num") {
    const bool nan = comparison == "nan";
    return [=](const uint64_t* in) -> std::optional<uint64_t> {
      return (std::isnan(value(in[0])) || std::isnan(value(in[1]))) == nan;
    };
  }
  const bool or_unordered = comparison.size() == 3 && comparison[2] == 'u';
  return Ordered(or_unordered ? comparison.substr(0, 2) : comparison, or_unordered, value);
}

uint64_t ToInteger(double x, Type from, Type to) {
  if (std::isnan(x)) {
    return from.bits == 64 || to.bits == 64 ? uint64_t{1} << (to.bits - 1) : 0;
  }
  x = std::trunc(x);
  const double high = std::ldexp(1.0, to.kind == 's' ? to.bits - 1 : to.bits);
  const double low = to.kind == 's' ? -high : 0;
  if (x >= high) return Mask(~uint64_t{0} >> (to.kind == 's' ? 65 - to.bits : 64 - to.bits), 64);
  if (x <= low) return Mask(to.kind == 's' ? uint64_t{1} << (to.bits - 1) : 0, to.bits);
  return Mask(x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x),
              to.bits);
}

uint16_t RoundToBf16(float x) {
  if (std::isnan(x)) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

PtxFunction Convert(const PtxInstruction& instruction) {
  const auto& parts = instruction.opcode;
  const bool nearest = instruction.Has("rn");
  if (parts[parts.size() - 2] == "bf16x2" && nearest) {
    return [](const uint64_t* in) -> std::optional<uint64_t> {
      return uint64_t{RoundToBf16(ToFloat(in[0]))} << 16 | RoundToBf16(ToFloat(in[1]));
    };
  }
  const auto to = ParseType(parts[parts.size() - 2]);
  const auto from = ParseType(parts.back());
  if (!to || !from) return {};
  const auto real = [from = *from](uint64_t x) {
    return from.bits == 32 ? static_cast<double>(ToFloat(x)) : ToDouble(x);
  };
  const auto of = [](auto operation) -> PtxFunction {
    return [=](const uint64_t* in) -> std::optional<uint64_t> { return operation(in[0]); };
  };
  if (from->kind == 'f' && to->kind != 'f') {
    if (!instruction.Has("rzi")) return {};
    return of([=](uint64_t x) { return ToInteger(real(x), *from, *to); });
  }
  if (from->kind == 'f') {
    if (instruction.Has("rzi") && to->bits == 64 && from->bits == 64) {
      return of([=](uint64_t x) { return Bits(std::trunc(real(x))); });
    }
    if (to->bits == 64 && from->bits == 32 && parts.size() == 3) {
      return of([=](uint64_t x) { return Bits(real(x)); });
    }
    if (to->bits == 32 && from->bits == 64 && nearest) {
      return of([=](uint64_t x) { return Bits(static_cast<float>(real(x))); });
    }
    return {};
  }
  const bool is_signed = from->kind == 's';
  const int bits = from->bits;
  if (to->kind != 'f') {
    return of([=, wide = to->bits](uint64_t x) {
      return Mask(is_signed ? static_cast<uint64_t>(Signed(x, bits)) : Mask(x, bits), wide);
    });
  }
  if (!nearest) return {};
  if (to->bits == 64) {
    return of([=](uint64_t x) {
      return Bits(is_signed ? static_cast<double>(Signed(x, bits))
                            : static_cast<double>(Mask(x, bits)));
    });
  }
  return of([=](uint64_t x) {
    return Bits(is_signed ? static_cast<float>(Signed(x, bits))
                          : static_cast<float>(Mask(x, bits)));
  });
}

}  // namespace

PtxFunction PtxFunctionOf(const PtxInstruction& instruction) {
  const std::string& op = instruction.opcode[0];
  if (instruction.opcode.size() < 2) return {};
  if (op == "cvt") return Convert(instruction);
  // Generic addresses of global memory are those themselves.
  if (op == "cvta") return OfIntegers(64, [](const uint64_t* in) { return in[0]; });
  const auto type = ParseType(instruction.opcode.back());
  if (!type) return {};
  const int bits = type->bits;
  if (op == "mov") return OfIntegers(bits, [](const uint64_t* in) { return in[0]; });
  if (op == "selp") {
    return OfIntegers(bits, [](const uint64_t* in) { return in[2] != 0 ? in[0] : in[1]; });
  }
  if (op == "setp" && instruction.opcode.size() == 3) return Compare(instruction.opcode[1], *type);
  if (type->kind != 'f') return Integer(instruction, *type);
  return bits == 32 ? Float<float>(instruction) : Float<double>(instruction);
}

}  // namespace l3c::testing
