#include "backends/ptx/select.h"

#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "layers/l0/gpu_launch.h"

namespace l3c::ptx {

using l0::kNoReg;
using l0::Reg;
using l0::UOp;

RegClass Selector::ClassOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return RegClass::kPred;
    case DType::kI64:
    case DType::kU64:
      return RegClass::kB64;
    case DType::kF32:
      return RegClass::kF32;
    case DType::kF64:
      return RegClass::kF64;
    default:
      return RegClass::kB32;
  }
}

VReg Selector::New(RegClass reg_class) {
  function_.registers.push_back(reg_class);
  return static_cast<VReg>(function_.registers.size() - 1);
}

void Selector::Append(std::string opcode, std::vector<Operand> dst, std::vector<Operand> src) {
  Instruction instruction;
  instruction.opcode = std::move(opcode);
  instruction.dst = std::move(dst);
  instruction.src = std::move(src);
  Append(std::move(instruction));
}

Operand Selector::Make(RegClass reg_class, std::string opcode, std::vector<Operand> src) {
  const Operand result = Operand::Reg(New(reg_class));
  Append(std::move(opcode), {result}, std::move(src));
  return result;
}

void Selector::Move(DType dtype, const Operand& to, const Operand& from) {
  static constexpr const char* kMoves[kRegClasses] = {"mov.pred", "mov.b32", "mov.b64", "mov.f32",
                                                      "mov.f64"};
  if (from.kind == Operand::Kind::kReg && from.reg == to.reg) return;
  Append(kMoves[static_cast<size_t>(ClassOf(dtype))], {to}, {from});
}

Operand Selector::Register(const Operand& operand, DType dtype) {
  if (operand.kind == Operand::Kind::kReg) return operand;
  const Operand reg = Operand::Reg(New(ClassOf(dtype)));
  Move(dtype, reg, operand);
  return reg;
}

void Selector::Branch(uint32_t label, const Operand& predicate, bool unless) {
  Instruction branch;
  branch.opcode = "bra";
  branch.src = {Operand::Label(label)};
  branch.guard = predicate.reg;
  branch.unless = unless;
  Append(std::move(branch));
}

void Selector::Set(Reg reg, Lanes lanes) {
  if (!kernel_.registers[reg].reassigned) {
    values_[reg] = std::move(lanes);
    return;
  }
  const DType dtype = DTypeOf(reg);
  if (values_[reg].empty()) {
    for (size_t l = 0; l < LanesOf(reg); ++l) {
      values_[reg].push_back(Operand::Reg(New(ClassOf(dtype))));
    }
  }
  for (size_t l = 0; l < lanes.size(); ++l) Move(dtype, values_[reg][l], lanes[l]);
}

void Selector::Fail(std::string message) {
  if (!status_.ok()) return;
  status_ = absl::UnimplementedError(absl::StrCat("kernel ", kernel_.name, ": ", message));
}

absl::StatusOr<Function> Selector::Run() {
  Begin();
  for (const LinearOp& op : kernel_.ops) {
    EmitOp(op);
    if (!status_.ok()) return status_;
  }
  Append("ret", {}, {});
  return std::move(function_);
}

void Selector::Begin() {
  const l0::GpuLaunch& launch = *kernel_.launch;
  function_.name = kernel_.name;
  function_.threads[0] = launch.x;
  function_.threads[1] = launch.y;
  function_.threads[2] = launch.z;
  function_.shared = launch.shared;
  values_.resize(kernel_.registers.size());
  multiple_.assign(kernel_.registers.size(), 1);
  addresses_.emplace_back();
  for (size_t p = 0; p < kernel_.params.size(); ++p) {
    function_.params.push_back(absl::StrCat(kernel_.name, "_param_", p));
    const Operand generic = B64("ld.param.u64", {Operand::Address(function_.params.back(), 0)});
    params_.push_back(B64("cvta.to.global.u64", {generic}));
  }
  Operand block = Special("%ctaid.x");
  if (launch.z > 1) {
    block = B32("mad.lo.u32", {block, Operand::Integer(launch.z), Special("%tid.z")});
  }
  SetNarrow(kernel_.block_begin, block);
  SetNarrow(kernel_.thread_x, Special("%tid.x"));
  SetNarrow(kernel_.thread_y, Special("%tid.y"));
}

std::optional<Operand> Selector::Narrow(Reg reg) const {
  const auto found = narrow_.find(reg);
  if (found != narrow_.end()) return found->second;
  if (values_[reg].size() != 1 || values_[reg][0].kind != Operand::Kind::kInteger) {
    return std::nullopt;
  }
  const int64_t value = values_[reg][0].integer;
  if (value < 0 || value > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return values_[reg][0];
}

void Selector::SetNarrow(Reg reg, const Operand& low) {
  narrow_[reg] = low;
  Set(reg, {B64("cvt.u64.u32", {low})});
}

// ---- Control -----------------------------------------------------------------------------------

void Selector::OpenRange(const LinearOp& op) {
  const Operand low = op.a == kNoReg ? Operand::Integer(op.low) : Lane(op.a, 0);
  const Operand high = op.b == kNoReg ? Operand::Integer(op.high) : Lane(op.b, 0);
  Bracket range;
  range.counter = Operand::Reg(New(RegClass::kB64));
  range.limit = high;
  range.head = NewLabel();
  range.after = NewLabel();
  range.step = op.step;
  Append("mov.b64", {range.counter}, {low});
  const bool runs = op.a == kNoReg && op.b == kNoReg && op.low < op.high;
  if (!runs) Branch(range.after, Pred("setp.ge.s64", {range.counter, high}), false);
  PlaceLabel(range.head);
  values_[op.dst] = {range.counter};
  multiple_[op.dst] = std::gcd(op.a == kNoReg ? op.low : multiple_[op.a], op.step);
  brackets_.push_back(range);
  addresses_.emplace_back();
}

void Selector::CloseRange() {
  const Bracket range = brackets_.back();
  brackets_.pop_back();
  addresses_.pop_back();
  Append("add.s64", {range.counter}, {range.counter, Operand::Integer(range.step)});
  Branch(range.head, Pred("setp.lt.s64", {range.counter, range.limit}), false);
  PlaceLabel(range.after);
}

void Selector::OpenIf(const LinearOp& op) {
  Bracket bracket;
  bracket.after = NewLabel();
  Branch(bracket.after, Register(Lane(op.a, 0), DType::kBool), true);
  brackets_.push_back(bracket);
  addresses_.emplace_back();
}

void Selector::CloseIf() {
  PlaceLabel(brackets_.back().after);
  brackets_.pop_back();
  addresses_.pop_back();
}

void Selector::EmitIndex(const LinearOp& op) {
  const std::optional<Operand> narrow = op.a == kNoReg ? std::nullopt : Narrow(op.a);
  if (narrow && op.divide > 1 && op.divide <= std::numeric_limits<int32_t>::max() &&
      op.b == kNoReg && op.offset == 0 && op.stride == 0 && LanesOf(op.dst) == 1) {
    return SetNarrow(op.dst, B32("div.u32", {*narrow, Operand::Integer(op.divide)}));
  }
  Lanes lanes;
  for (size_t l = 0; l < LanesOf(op.dst); ++l) {
    const int64_t offset = op.offset + op.stride * static_cast<int64_t>(l);
    std::optional<Operand> sum;
    if (op.a != kNoReg) {
      sum = Lane(op.a, l);
      if (op.divide != 1) sum = B64("div.s64", {*sum, Operand::Integer(op.divide)});
    }
    if (op.b != kNoReg && op.scale != 0) {
      const Operand& b = Lane(op.b, l);
      if (op.scale != 1 && !sum) {
        sum = B64("mul.lo.s64", {b, Operand::Integer(op.scale)});
      } else if (op.scale != 1) {
        sum = B64("mad.lo.s64", {b, Operand::Integer(op.scale), *sum});
      } else {
        sum = sum ? B64("add.s64", {*sum, b}) : b;
      }
    }
    if (!sum) {
      sum = Operand::Integer(offset);
    } else if (offset != 0) {
      sum = B64("add.s64", {*sum, Operand::Integer(offset)});
    }
    lanes.push_back(*sum);
  }
  if (lanes.size() == 1) multiple_[op.dst] = MultipleOf(op);
  Set(op.dst, std::move(lanes));
}

void Selector::EmitOp(const LinearOp& op) {
  const auto each = [&](const auto& make) {
    Lanes lanes;
    for (size_t l = 0; l < LanesOf(op.dst); ++l) lanes.push_back(make(l));
    Set(op.dst, std::move(lanes));
  };
  const auto a = [&](size_t l) -> const Operand& { return Lane(op.a, l); };
  const auto b = [&](size_t l) -> const Operand& { return Lane(op.b, l); };
  const DType dtype = op.dst == kNoReg ? DType::kI64 : DTypeOf(op.dst);
  switch (op.op) {
    case UOp::kRange:
      return OpenRange(op);
    case UOp::kEnd:
      return CloseRange();
    case UOp::kIf:
      return OpenIf(op);
    case UOp::kEndIf:
      return CloseIf();
    case UOp::kIndex:
      return EmitIndex(op);
    case UOp::kLoad:
      return EmitLoad(op);
    case UOp::kStore:
      return EmitStore(op);
    case UOp::kConst:
      if (dtype == DType::kI64) multiple_[op.dst] = op.integer;
      return each([&](size_t) { return Constant(dtype, op.number, op.integer); });
    case UOp::kVectorize:
      return each([&](size_t) {
        if (!kernel_.registers[op.a].reassigned) return a(0);
        const Operand copy = Operand::Reg(New(ClassOf(dtype)));
        Move(dtype, copy, a(0));
        return copy;
      });
    case UOp::kReduce:
      return op.across ? FoldThreads(op) : FoldLanes(op);
    case UOp::kAdd:
      return each([&](size_t l) { return Sum(dtype, a(l), b(l)); });
    case UOp::kMul:
      return each([&](size_t l) { return Product(dtype, a(l), b(l)); });
    case UOp::kMulAcc:
      return MulAcc(op);
    case UOp::kMax:
      return each([&](size_t l) { return Maximum(dtype, a(l), b(l)); });
    case UOp::kMod: {
      const std::optional<Operand> x = dtype == DType::kI64 ? Narrow(op.a) : std::nullopt;
      const std::optional<Operand> y = dtype == DType::kI64 ? Narrow(op.b) : std::nullopt;
      if (x && y && y->kind == Operand::Kind::kInteger && y->integer > 0) {
        return SetNarrow(op.dst, B32("rem.u32", {*x, *y}));
      }
      return each([&](size_t l) { return Modulo(dtype, a(l), b(l)); });
    }
    case UOp::kNeg:
      return each([&](size_t l) { return Minus(dtype, a(l)); });
    case UOp::kReciprocal:
      return each([&](size_t l) { return Reciprocal(dtype, a(l)); });
    case UOp::kSqrt:
      return each([&](size_t l) { return SquareRoot(dtype, a(l)); });
    case UOp::kExp2:
    case UOp::kLog2:
    case UOp::kSin:
      if (dtype != DType::kF32) return Fail("exp2, log2 and sin of f64 have no PTX here");
      return each([&](size_t l) {
        return op.op == UOp::kExp2 ? Exp2(a(l)) : op.op == UOp::kLog2 ? Log2(a(l)) : Sin(a(l));
      });
    case UOp::kCmpLt:
      return each([&](size_t l) { return Less(DTypeOf(op.a), a(l), b(l)); });
    case UOp::kCmpNe:
      return each([&](size_t l) { return Differs(DTypeOf(op.a), a(l), b(l)); });
    case UOp::kWhere:
      if (op.a == kNoReg) {
        return each([&](size_t l) { return Lane(l < op.active ? op.b : op.c, l); });
      }
      return each([&](size_t l) { return Where(dtype, a(l), b(l), Lane(op.c, l)); });
    case UOp::kCast:
      return each([&](size_t l) { return Cast(DTypeOf(op.a), dtype, a(l)); });
    case UOp::kBitcast:
      return each([&](size_t l) { return Bitcast(DTypeOf(op.a), dtype, a(l)); });
    case UOp::kGep:
      return each([&](size_t l) {
        return Lane(op.a + static_cast<Reg>(l), static_cast<size_t>(op.integer));
      });
    case UOp::kCustom:
      return each([&](size_t l) {
        if (DTypeOf(op.a) == DType::kF32) return Bf16Pair(a(l), b(l));
        if (DTypeOf(op.a) == DType::kU32) return Bf16Dot(Operand::F32(0), a(l), b(l));
        return Philox(a(l), b(l));
      });
    case UOp::kBarrier:
      return Append("bar.sync", {}, {Operand::Integer(0)});
    case UOp::kWmma:
      return Fail("WMMA has no PTX here");
  }
}

absl::StatusOr<Function> Select(const l0::LinearKernel& kernel, const SelectOptions& options) {
  return Selector(kernel, options).Run();
}

}  // namespace l3c::ptx
