#include <algorithm>
#include <optional>
#include <string>

#include "backends/ptx/select.h"
#include "layers/l0/gpu_launch.h"

namespace l3c::ptx {

using tensor::DType;

namespace {

constexpr int64_t kSlotBytes = 8;  // layers/l0/gpu_launch.cc has as many for a warp's result

}  // namespace

// All threads get the same bits: at each distance both of a pair add the same two values.
void Selector::FoldThreads(const LinearOp& op) {
  const l0::GpuLaunch& launch = *kernel_.launch;
  const DType dtype = DTypeOf(op.dst);
  // Threads along x lie side by side in a warp, and only those of one group need be here.
  const int64_t group = std::min(launch.x, l0::kGpuWarp);
  Operand members = Operand::Integer(-1);
  if (group < l0::kGpuWarp) {
    const Operand first = B32("and.b32", {Special("%laneid"), Operand::Integer(-group)});
    members = B32("shl.b32", {Operand::Integer((int64_t{1} << group) - 1), first});
  }
  Lanes lanes;
  for (const Operand& lane : Get(op.a)) {
    Operand value = lane;
    for (int64_t distance = group / 2; distance > 0; distance /= 2) {
      const Operand other = FromLane(dtype, value, distance, members);
      value = Fold(op.fold, dtype, value, other);
    }
    if (launch.x > l0::kGpuWarp) value = FoldWarps(op.fold, dtype, value);
    lanes.push_back(value);
  }
  Set(op.dst, std::move(lanes));
}

Operand Selector::FromLane(DType dtype, const Operand& x, int64_t distance,
                           const Operand& members) {
  const auto shuffle = [&](const Operand& word) {
    return B32("shfl.sync.bfly.b32",
               {word, Operand::Integer(distance), Operand::Integer(l0::kGpuWarp - 1), members});
  };
  switch (ClassOf(dtype)) {
    case RegClass::kPred:
      return Differs(DType::kU32, shuffle(Bitcast(dtype, DType::kU8, x)), Operand::Integer(0));
    case RegClass::kB32:
      return shuffle(Register(x, dtype));
    case RegClass::kF32:
      return Bitcast(DType::kU32, dtype, shuffle(Bitcast(dtype, DType::kU32, x)));
    default: {
      const Operand bits = Bitcast(dtype, DType::kU64, Register(x, dtype));
      const Operand low = shuffle(B32("cvt.u32.u64", {bits}));
      const Operand high =
          shuffle(B32("cvt.u32.u64", {B64("shr.u64", {bits, Operand::Integer(32)})}));
      const Operand upper = B64("shl.b64", {B64("cvt.u64.u32", {high}), Operand::Integer(32)});
      return Bitcast(DType::kU64, dtype, B64("or.b64", {upper, B64("cvt.u64.u32", {low})}));
    }
  }
}

// Warps are folded in their order along x. Nobody writes a result before all have read the last
// one, if there was any.
Operand Selector::FoldWarps(l0::Fold fold, DType dtype, const Operand& x) {
  const l0::GpuLaunch& launch = *kernel_.launch;
  const int64_t warps = launch.x / l0::kGpuWarp;
  const bool is_bool = dtype == DType::kBool;
  const DType stored = is_bool ? DType::kU8 : dtype;
  const std::string type = tensor::SizeOf(stored) == 8         ? "b64"
                           : ClassOf(stored) == RegClass::kF32 ? "f32"
                                                               : "b32";
  const bool in_a_loop = std::any_of(brackets_.begin(), brackets_.end(),
                                     [](const Bracket& bracket) { return bracket.step != 0; });
  if (shares_ || in_a_loop) Append("bar.sync", {}, {Operand::Integer(0)});
  shares_ = true;
  const Operand value = is_bool ? Bitcast(dtype, stored, x) : Register(x, dtype);
  const Operand shared = B32("mov.u32", {Operand::Name(kShared)});
  const Operand row =
      B32("mad.lo.u32", {Special("%tid.y"), Operand::Integer(warps * kSlotBytes), shared});
  const Operand thread = Special("%tid.x");
  const Operand warp = B32("shr.u32", {thread, Operand::Integer(5)});
  const Operand slot = B32("mad.lo.u32", {warp, Operand::Integer(kSlotBytes), row});
  const Operand lane = B32("and.b32", {thread, Operand::Integer(l0::kGpuWarp - 1)});
  Instruction store;
  store.opcode = "st.shared." + type;
  store.src = {Operand::Address(slot.reg, 0), Bitcast(stored, stored, value)};
  store.guard = Pred("setp.eq.u32", {lane, Operand::Integer(0)}).reg;
  Append(std::move(store));
  Append("bar.sync", {}, {Operand::Integer(0)});
  std::optional<Operand> sum;
  for (int64_t w = 0; w < warps; ++w) {
    Operand part =
        Make(ClassOf(stored), "ld.shared." + type, {Operand::Address(row.reg, w * kSlotBytes)});
    if (is_bool) part = Differs(DType::kU32, part, Operand::Integer(0));
    sum = sum ? Fold(fold, dtype, *sum, part) : part;
  }
  return *sum;
}

}  // namespace l3c::ptx
