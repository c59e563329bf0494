#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "backends/ptx/select.h"

namespace l3c::ptx {

using l0::kNoReg;
using tensor::DType;

namespace {

constexpr size_t kMaxAccessBytes = 16;
constexpr size_t kMaxAccessLanes = 4;

// The type of an element in memory.
const char* MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return "u8";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI64:
    case DType::kU64:
      return "b64";
    default:
      return "b32";
  }
}

}  // namespace

int64_t Selector::MultipleOf(const LinearOp& op) const {
  int64_t multiple = std::abs(op.offset);
  if (op.a != kNoReg) multiple = std::gcd(multiple, op.divide == 1 ? multiple_[op.a] : 1);
  if (op.b != kNoReg) {
    // Large products only matter by their power of two, which wraps along.
    const int64_t product = static_cast<int64_t>(static_cast<uint64_t>(multiple_[op.b]) *
                                                 static_cast<uint64_t>(op.scale));
    multiple = std::gcd(multiple, product);
  }
  return multiple;
}

int64_t Selector::AlignmentOf(const LinearOp& op) const {
  int64_t multiple = std::gcd(op.a == kNoReg ? 0 : multiple_[op.a], op.offset);
  if (multiple == 0) multiple = kMaxAccessLanes;
  return multiple & -multiple;
}

Operand Selector::Scaled(uint32_t param, const Operand& index, size_t size) {
  const Operand& base = params_[param];
  if (index.kind == Operand::Kind::kInteger) {
    const int64_t bytes = index.integer * static_cast<int64_t>(size);
    return B64("add.s64", {base, Operand::Integer(bytes)});
  }
  for (const auto& scope : addresses_) {
    const auto found = scope.find({param, index.reg});
    if (found != scope.end()) return Operand::Reg(found->second);
  }
  Operand bytes = index;
  if (size > 1) {
    bytes = B64("shl.b64", {index, Operand::Integer(std::countr_zero(size))});
  }
  const Operand address = B64("add.s64", {base, bytes});
  addresses_.back()[{param, index.reg}] = address.reg;
  return address;
}

Operand Selector::AddressOf(const LinearOp& op, size_t lane, size_t size) {
  const bool each_lane = op.a != kNoReg && LanesOf(op.a) > 1;
  int64_t elements = op.offset;
  if (!each_lane) elements += static_cast<int64_t>(lane);
  Operand base = params_[op.param];
  if (op.a != kNoReg) {
    const Operand& index = Lane(op.a, lane);
    if (index.kind == Operand::Kind::kInteger) {
      elements += index.integer;
    } else {
      base = Scaled(op.param, index, size);
    }
  }
  const int64_t bytes = elements * static_cast<int64_t>(size);
  if (bytes >= std::numeric_limits<int32_t>::min() &&
      bytes <= std::numeric_limits<int32_t>::max()) {
    return Operand::Address(base.reg, bytes);
  }
  return Operand::Address(B64("add.s64", {base, Operand::Integer(bytes)}).reg, 0);
}

size_t Selector::Width(const LinearOp& op, size_t lane, size_t end, size_t size) const {
  if (op.a != kNoReg && LanesOf(op.a) > 1) return 1;
  if (op.c != kNoReg && LanesOf(op.c) > 1) return 1;
  const auto alignment = static_cast<size_t>(AlignmentOf(op));
  size_t width = 1;
  while (2 * width * size <= kMaxAccessBytes && 2 * width <= kMaxAccessLanes &&
         lane + 2 * width <= end && alignment % (2 * width) == 0 && lane % (2 * width) == 0) {
    width *= 2;
  }
  return width;
}

void Selector::EmitLoad(const LinearOp& op) {
  const DType dtype = DTypeOf(op.dst);
  const size_t size = tensor::SizeOf(dtype);
  const size_t count = LanesOf(op.dst);
  const size_t end = op.active == 0 ? count : op.active;
  // A bool is a byte in memory and a predicate here.
  const DType loaded = dtype == DType::kBool ? DType::kU8 : dtype;
  const Operand zero = Constant(loaded, 0, 0);
  Lanes lanes;
  for (size_t lane = 0; lane < end;) {
    const size_t width = Width(op, lane, end, size);
    std::vector<VReg> regs;
    for (size_t l = 0; l < width; ++l) regs.push_back(New(ClassOf(loaded)));
    Instruction load;
    load.opcode = absl::StrCat("ld.global.", width > 1 ? absl::StrCat("v", width, ".") : "",
                               MemoryType(dtype));
    load.dst = {width > 1 ? Operand::Vector(regs) : Operand::Reg(regs[0])};
    load.src = {AddressOf(op, lane, size)};
    if (op.c != kNoReg) {
      load.guard = Register(Lane(op.c, lane), DType::kBool).reg;
      for (VReg reg : regs) Move(loaded, Operand::Reg(reg), zero);
    }
    Append(std::move(load));
    for (VReg reg : regs) lanes.push_back(Operand::Reg(reg));
    lane += width;
  }
  lanes.resize(count, zero);
  if (dtype == DType::kBool) {
    for (Operand& lane : lanes) lane = Pred("setp.ne.u32", {lane, Operand::Integer(0)});
  }
  Set(op.dst, std::move(lanes));
}

void Selector::EmitStore(const LinearOp& op) {
  const DType dtype = DTypeOf(op.b);
  const size_t size = tensor::SizeOf(dtype);
  const size_t end = op.active == 0 ? LanesOf(op.b) : op.active;
  for (size_t lane = 0; lane < end;) {
    const size_t width = Width(op, lane, end, size);
    std::vector<Operand> values;
    for (size_t l = lane; l < lane + width; ++l) {
      const Operand& value = Lane(op.b, l);
      values.push_back(dtype == DType::kBool ? Bitcast(dtype, DType::kU8, value)
                                             : Register(value, dtype));
    }
    Instruction store;
    store.opcode = absl::StrCat("st.global.", width > 1 ? absl::StrCat("v", width, ".") : "",
                                MemoryType(dtype));
    store.src = {AddressOf(op, lane, size)};
    if (width > 1) {
      std::vector<VReg> regs;
      for (const Operand& value : values) regs.push_back(value.reg);
      store.src.push_back(Operand::Vector(std::move(regs)));
    } else {
      store.src.push_back(values[0]);
    }
    if (op.c != kNoReg) store.guard = Register(Lane(op.c, lane), DType::kBool).reg;
    Append(std::move(store));
    lane += width;
  }
}

}  // namespace l3c::ptx
