#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "backends/ptx/select.h"

namespace l3c::ptx {

using tensor::DType;

namespace {

bool IsSigned(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }
bool IsWide(DType dtype) { return tensor::SizeOf(dtype) == 8; }

// ".f32", ".s64", ".u32": how an instruction takes the register of a dtype.
std::string TypeOf(DType dtype) {
  if (tensor::IsFloat(dtype)) return IsWide(dtype) ? ".f64" : ".f32";
  return absl::StrCat(IsSigned(dtype) ? ".s" : ".u", IsWide(dtype) ? "64" : "32");
}

// The smallest and largest value of an integer dtype, as the bits of an immediate.
int64_t Lowest(DType dtype) {
  if (dtype == DType::kI32) return INT32_MIN;
  return dtype == DType::kI64 ? INT64_MIN : 0;
}
int64_t Highest(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return UINT8_MAX;
    case DType::kI32:
      return INT32_MAX;
    case DType::kU32:
      return UINT32_MAX;
    default:
      return INT64_MAX;
  }
}

}  // namespace

Operand Selector::Constant(DType dtype, double number, int64_t integer) {
  switch (dtype) {
    case DType::kBool:
      return Pred("mov.pred", {Operand::Integer(integer != 0 ? 1 : 0)});
    case DType::kF32:
      return Operand::F32(static_cast<float>(number));
    case DType::kF64:
      return Operand::F64(number);
    case DType::kU8:
      return Operand::Integer(integer & 255);
    case DType::kI32:
      return Operand::Integer(static_cast<int32_t>(integer));
    case DType::kU32:
      return Operand::Integer(static_cast<uint32_t>(integer));
    default:
      return Operand::Integer(integer);
  }
}

Operand Selector::Sum(DType dtype, const Operand& x, const Operand& y) {
  if (dtype == DType::kBool) return Pred("or.pred", {x, y});
  const RegClass c = ClassOf(dtype);
  if (tensor::IsFloat(dtype)) return Make(c, "add.rn" + TypeOf(dtype), {x, y});
  const Operand sum = Make(c, IsWide(dtype) ? "add.s64" : "add.s32", {x, y});
  return dtype == DType::kU8 ? Byte(sum) : sum;
}

Operand Selector::Product(DType dtype, const Operand& x, const Operand& y) {
  if (dtype == DType::kBool) return Pred("and.pred", {x, y});
  const RegClass c = ClassOf(dtype);
  if (tensor::IsFloat(dtype)) return Make(c, "mul.rn" + TypeOf(dtype), {x, y});
  const Operand product = Make(c, IsWide(dtype) ? "mul.lo.s64" : "mul.lo.s32", {x, y});
  return dtype == DType::kU8 ? Byte(product) : product;
}

Operand Selector::Maximum(DType dtype, const Operand& x, const Operand& y) {
  if (dtype == DType::kBool) return Pred("or.pred", {x, y});
  if (dtype == DType::kF32) return F32("max.NaN.f32", {x, y});
  if (dtype != DType::kF64) return Make(ClassOf(dtype), "max" + TypeOf(dtype), {x, y});
  // There is no max.NaN of f64; the sum of a NaN and anything is one.
  const Operand either = F64("add.rn.f64", {x, y});
  const Operand unordered = Pred("setp.nan.f64", {x, y});
  return F64("selp.f64", {either, F64("max.f64", {x, y}), unordered});
}

Operand Selector::Minus(DType dtype, const Operand& x) {
  if (tensor::IsFloat(dtype)) return Make(ClassOf(dtype), "neg" + TypeOf(dtype), {x});
  const Operand minus = Make(ClassOf(dtype), IsWide(dtype) ? "neg.s64" : "neg.s32", {x});
  return dtype == DType::kU8 ? Byte(minus) : minus;
}

Operand Selector::Modulo(DType dtype, const Operand& x, const Operand& y) {
  if (dtype == DType::kF32) return FloatModulo(x, y);
  if (dtype == DType::kF64) {
    Fail("mod of f64 has no PTX here");
    return x;
  }
  if (y.kind == Operand::Kind::kInteger && y.integer > 0) {
    return Make(ClassOf(dtype), "rem" + TypeOf(dtype), {x, y});
  }
  // x mod 0 is 0, and so is x mod -1.
  const std::string type = TypeOf(dtype);
  const RegClass c = ClassOf(dtype);
  const Operand one = Operand::Integer(1);
  Operand safe = Make(c, "selp" + std::string(IsWide(dtype) ? ".b64" : ".b32"),
                      {one, y, Pred("setp.eq" + type, {y, Operand::Integer(0)})});
  if (IsSigned(dtype)) {
    safe = Make(c, "selp" + std::string(IsWide(dtype) ? ".b64" : ".b32"),
                {one, safe, Pred("setp.eq" + type, {safe, Operand::Integer(-1)})});
  }
  return Make(c, "rem" + type, {x, safe});
}

Operand Selector::Reciprocal(DType dtype, const Operand& x) {
  if (dtype == DType::kF64) return F64("rcp.rn.f64", {x});
  return F32(options_.approximate ? "rcp.approx.f32" : "rcp.rn.f32", {x});
}

Operand Selector::SquareRoot(DType dtype, const Operand& x) {
  if (dtype == DType::kF64) return F64("sqrt.rn.f64", {x});
  return F32(options_.approximate ? "sqrt.approx.f32" : "sqrt.rn.f32", {x});
}

Operand Selector::Less(DType dtype, const Operand& x, const Operand& y) {
  if (dtype == DType::kBool) return Pred("and.pred", {Pred("not.pred", {x}), y});
  return Pred("setp.lt" + TypeOf(dtype), {x, y});
}

Operand Selector::Differs(DType dtype, const Operand& x, const Operand& y) {
  if (dtype == DType::kBool) return Pred("xor.pred", {x, y});
  if (tensor::IsFloat(dtype)) return Pred("setp.neu" + TypeOf(dtype), {x, y});
  return Pred("setp.ne" + TypeOf(dtype), {x, y});
}

Operand Selector::Where(DType dtype, const Operand& condition, const Operand& x, const Operand& y) {
  static constexpr const char* kSelects[kRegClasses] = {"", "selp.b32", "selp.b64", "selp.f32",
                                                        "selp.f64"};
  const RegClass c = ClassOf(dtype);
  if (dtype == DType::kBool) {
    const Operand yes = Pred("and.pred", {condition, x});
    const Operand no = Pred("and.pred", {Pred("not.pred", {condition}), y});
    return Pred("or.pred", {yes, no});
  }
  return Make(c, kSelects[static_cast<size_t>(c)], {x, y, condition});
}

Operand Selector::Cast(DType from, DType to, const Operand& x) {
  if (from == to) return x;
  const RegClass c = ClassOf(to);
  if (from == DType::kBool) {
    return Where(to, x, Constant(to, 1, 1), Constant(to, 0, 0));
  }
  if (to == DType::kBool) return Differs(from, x, Constant(from, 0, 0));
  if (tensor::IsFloat(to)) {
    if (to == DType::kF64 && from == DType::kF32) return F64("cvt.f64.f32", {x});
    return Make(c, "cvt.rn" + TypeOf(to) + TypeOf(from), {Register(x, from)});
  }
  if (!tensor::IsFloat(from)) return CastInteger(from, to, x);
  // Saturates. Where the ISA makes a NaN something else than zero, it is put right.
  Operand integer = Make(c, "cvt.rzi" + TypeOf(to) + TypeOf(from), {Register(x, from)});
  if (to == DType::kU8) integer = B32("min.u32", {integer, Operand::Integer(UINT8_MAX)});
  if (from == DType::kF32 && !IsWide(to)) return integer;
  const Operand unordered = Pred("setp.nan" + TypeOf(from), {x, x});
  return Where(to, unordered, Operand::Integer(0), integer);
}

Operand Selector::CastInteger(DType from, DType to, const Operand& x) {
  // Clamps in the type that it comes from, then changes the width.
  Operand value = Register(x, from);
  const RegClass c = ClassOf(from);
  if (IsSigned(from)) {
    if (Lowest(to) > Lowest(from)) {
      value = Make(c, "max" + TypeOf(from), {value, Operand::Integer(Lowest(to))});
    }
    if (to != DType::kU64 && Highest(to) < Highest(from)) {
      value = Make(c, "min" + TypeOf(from), {value, Operand::Integer(Highest(to))});
    }
  } else if (to != DType::kU64 && (from == DType::kU64 || Highest(to) < Highest(from))) {
    value = Make(c, "min" + TypeOf(from), {value, Operand::Integer(Highest(to))});
  }
  if (IsWide(from) == IsWide(to)) return value;
  if (IsWide(from)) return B32("cvt.u32.u64", {value});
  return B64(IsSigned(from) ? "cvt.s64.s32" : "cvt.u64.u32", {value});
}

Operand Selector::Bitcast(DType from, DType to, const Operand& x) {
  if (from == to) return x;
  if (from == DType::kBool) {
    return B32("selp.b32", {Operand::Integer(1), Operand::Integer(0), x});
  }
  if (ClassOf(from) == ClassOf(to)) return x;
  return Make(ClassOf(to), IsWide(to) ? "mov.b64" : "mov.b32", {Register(x, from)});
}

Operand Selector::Fold(l0::Fold fold, DType dtype, const Operand& x, const Operand& y) {
  return fold == l0::Fold::kAdd ? Sum(dtype, x, y) : Maximum(dtype, x, y);
}

void Selector::MulAcc(const LinearOp& op) {
  const DType dtype = DTypeOf(op.dst);
  const bool pairs = !tensor::IsFloat(DTypeOf(op.a));
  const bool in_place = kernel_.registers[op.dst].reassigned && op.dst == op.c && !pairs;
  const std::string opcode = "fma.rn" + TypeOf(dtype);
  Lanes lanes;
  for (size_t l = 0; l < LanesOf(op.dst); ++l) {
    const Operand& x = Lane(op.a, l);
    const Operand& y = Lane(op.b, l);
    const Operand& sum = Lane(op.c, l);
    if (in_place) {
      Append(opcode, {sum}, {x, y, sum});
    } else {
      lanes.push_back(pairs ? Bf16Dot(sum, x, y) : Make(ClassOf(dtype), opcode, {x, y, sum}));
    }
  }
  if (!in_place) Set(op.dst, std::move(lanes));
}

void Selector::FoldLanes(const LinearOp& op) {
  Lanes lanes = Get(op.a);
  if (op.integer > 0) {  // groups of neighbours, each by half
    if (op.b != l0::kNoReg) {
      const Lanes more = Get(op.b);
      lanes.insert(lanes.end(), more.begin(), more.end());
    }
    const size_t half = static_cast<size_t>(op.integer) / 2;
    Lanes folded;
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (l % (2 * half) >= half) continue;
      folded.push_back(Fold(op.fold, DTypeOf(op.dst), lanes[l], lanes[l + half]));
    }
    return Set(op.dst, std::move(folded));
  }
  while (lanes.size() > 1) {
    const size_t half = lanes.size() / 2;
    for (size_t l = 0; l < half; ++l) {
      lanes[l] = Fold(op.fold, DTypeOf(op.dst), lanes[l], lanes[l + half]);
    }
    lanes.resize(half);
  }
  Set(op.dst, std::move(lanes));
}

}  // namespace l3c::ptx
