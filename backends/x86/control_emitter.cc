#include "backends/x86/control_emitter.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "backends/x86/assembler.h"
#include "backends/x86/register_allocation.h"
#include "layers/l0/control_interpreter.h"

namespace l3c::x86 {
namespace {

using l0::ArithOp;
using l0::BlockId;
using l0::CmpOp;
using l0::ControlFrame;
using l0::ControlInstruction;
using l0::ControlOp;
using l0::Operand;

constexpr Gpr kValueRegisters[] = {kRdx, kRsi, kRdi, kR8, kR9, kR10, kR11, kR12};
constexpr Gpr kRegionRegisters[] = {kRbx, kRbp, kR13, kR14};
constexpr Gpr kCalleeSaved[] = {kRbx, kRbp, kR12, kR13, kR14, kR15};
// Values that the host's functions may change.
constexpr Gpr kCallerSaved[] = {kRdx, kRsi, kRdi, kR8, kR9, kR10, kR11};
constexpr Gpr kFrame = kR15;

bool Fits32(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

Memory Field(size_t offset) { return {kFrame, static_cast<int32_t>(offset)}; }

Condition ConditionOf(CmpOp op) {
  switch (op) {
    case CmpOp::kEq:
      return Condition::kEqual;
    case CmpOp::kNe:
      return Condition::kNotEqual;
    case CmpOp::kLt:
      return Condition::kLess;
    case CmpOp::kGt:
      return Condition::kGreater;
  }
  return Condition::kEqual;
}

CmpOp Mirrored(CmpOp op) {
  return op == CmpOp::kLt ? CmpOp::kGt : op == CmpOp::kGt ? CmpOp::kLt : op;
}

class Emitter {
 public:
  Emitter(const l0::ControlUnit& unit, const std::string& name, bool listing)
      : unit_(unit),
        a_(listing),
        name_(name),
        allocation_(AllocateRegisters(unit, static_cast<int>(std::size(kValueRegisters)))),
        idle_(l0::IdleLoopBlocks(unit)) {}

  ControlCode Emit() {
    for (const l0::ControlBlock& block : unit_.blocks)
      blocks_.push_back(a_.NewLabel(Local(block.name)));
    exit_ = a_.NewLabel(Inner("exit"));
    ChooseRegions();
    ControlCode code;
    code.slots = allocation_.slots;
    Prologue();
    for (size_t b = 0; b < unit_.blocks.size(); ++b) {
      a_.Bind(blocks_[b]);
      if (idle_[b]) CountTurn(static_cast<BlockId>(b));
      std::vector<int>& counts = code.instructions.emplace_back();
      const auto& instructions = unit_.blocks[b].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        at_ = {static_cast<BlockId>(b), static_cast<int32_t>(i)};
        const int before = a_.instructions();
        Instruction(instructions[i], i + 1 < instructions.size() ? &instructions[i + 1] : nullptr);
        counts.push_back(a_.instructions() - before);
      }
    }
    Epilogue();
    // Parts behind the code may ask for others.
    for (size_t i = 0; i < behind_.size(); ++i) {
      const auto emit = std::move(behind_[i]);
      emit();
    }
    code.bytes = a_.Finish();
    code.assembly = a_.TakeListing();
    return code;
  }

 private:
  struct Site {
    BlockId block = 0;
    int32_t instruction = 0;
  };

  std::string Local(const std::string& block) const { return ".L" + name_ + "_" + block; }
  // No block's name holds a dot.
  std::string Inner(const std::string& part) const { return ".L" + name_ + "." + part; }
  Label NewPart(const std::string& what) {
    return a_.NewLabel(Inner(what + "_" + std::to_string(parts_++)));
  }

  // ---- Frame ---------------------------------------------------------------------------------

  // The stack is a multiple of 16 below the return address and the six saved registers.
  int32_t StackBytes() const { return 8 * (allocation_.slots | 1); }

  void ChooseRegions() {
    std::map<l0::RegionId, int> uses;
    for (const l0::ControlBlock& block : unit_.blocks) {
      for (const ControlInstruction& instruction : block.instructions) {
        if (instruction.op == ControlOp::kLoad || instruction.op == ControlOp::kStore) {
          ++uses[instruction.region];
        }
      }
    }
    std::vector<std::pair<int, l0::RegionId>> order;
    for (const auto& [region, count] : uses) order.emplace_back(-count, region);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size() && i < std::size(kRegionRegisters); ++i) {
      regions_[order[i].second] = kRegionRegisters[i];
    }
  }

  static Memory RegionPointer(l0::RegionId region) {
    return Field(offsetof(ControlFrame, regions) + sizeof(std::byte*) * region);
  }

  void Prologue() {
    for (Gpr reg : kCalleeSaved) a_.Push(reg);
    a_.Op(Binary::kSub, kRsp, StackBytes());
    a_.Move(kFrame, kRdi);
    for (const auto& [region, reg] : regions_) a_.Load(reg, RegionPointer(region));
  }

  void Epilogue() {
    a_.Bind(exit_);
    a_.Op(Binary::kAdd, kRsp, StackBytes());
    for (size_t i = std::size(kCalleeSaved); i-- > 0;) a_.Pop(kCalleeSaved[i]);
    a_.Return();
  }

  void NoteSite(Site site) {
    a_.StoreImmediate(Field(offsetof(ControlFrame, block)), static_cast<int32_t>(site.block));
    a_.StoreImmediate(Field(offsetof(ControlFrame, instruction)), site.instruction);
  }

  void CountTurn(BlockId block) {
    const Label out = NewPart("idle");
    a_.Decrement(Field(offsetof(ControlFrame, fuel)));
    a_.JumpIf(Condition::kSign, out);
    behind_.push_back([this, out, block] {
      a_.Bind(out);
      NoteSite({block, 0});
      a_.StoreImmediate(Field(offsetof(ControlFrame, end)),
                        static_cast<int32_t>(l0::ControlEnd::kIdle));
      a_.Jump(exit_);
    });
  }

  // ---- Values --------------------------------------------------------------------------------

  std::optional<Gpr> RegisterOf(const Operand& operand) const {
    if (operand.immediate) return std::nullopt;
    const ValuePlace& place = allocation_.places[static_cast<size_t>(operand.value)];
    if (place.reg < 0) return std::nullopt;
    return kValueRegisters[place.reg];
  }
  Memory SlotOf(size_t value) const { return {kRsp, 8 * allocation_.places[value].slot}; }
  // The memory that holds an operand without a register: a slot, or a constant of the pool.
  Memory MemoryOf(const Operand& operand) {
    return operand.immediate ? a_.Constant(operand.value)
                             : SlotOf(static_cast<size_t>(operand.value));
  }

  void MoveTo(Gpr to, const Operand& operand) {
    if (operand.immediate) return a_.Move(to, operand.value);
    const auto reg = RegisterOf(operand);
    if (!reg) return a_.Load(to, MemoryOf(operand));
    if (*reg != to) a_.Move(to, *reg);
  }

  // The register to compute a result in, and what stores it where it lives.
  Gpr Target(l0::Register value) const {
    const ValuePlace& place = allocation_.places[value];
    return place.reg >= 0 ? kValueRegisters[place.reg] : kRax;
  }
  void Done(l0::Register value) {
    if (allocation_.places[value].reg < 0) a_.Store(SlotOf(value), kRax);
  }

  void Apply(Binary op, Gpr to, const Operand& operand) {
    if (operand.immediate && Fits32(operand.value)) {
      a_.Op(op, to, static_cast<int32_t>(operand.value));
    } else if (const auto reg = RegisterOf(operand)) {
      a_.Op(op, to, *reg);
    } else {
      a_.Op(op, to, MemoryOf(operand));
    }
  }

  // ---- Operations ----------------------------------------------------------------------------

  void Instruction(const ControlInstruction& i, const ControlInstruction* next) {
    switch (i.op) {
      case ControlOp::kLoad:
        return Load(i);
      case ControlOp::kStore:
        return Store(i);
      case ControlOp::kHash:
        return Hash(i);
      case ControlOp::kArith:
        return Arith(i);
      case ControlOp::kCmp:
        return Compare(i, next);
      case ControlOp::kBranch:
        return Branch(i);
      case ControlOp::kJump:
        if (!Follows(i.target)) a_.Jump(blocks_[i.target]);
        return;
      case ControlOp::kQueuePush:
        return PushTo(i);
      case ControlOp::kQueuePop:
        return PopFrom(i);
      case ControlOp::kTerminate:
        NoteSite(at_);
        return a_.Jump(exit_);
    }
  }

  bool Follows(BlockId block) const { return block == at_.block + 1; }

  // The region's base, in a register: its own, or rax.
  Gpr BaseOf(l0::RegionId region) {
    if (const auto found = regions_.find(region); found != regions_.end()) return found->second;
    a_.Load(kRax, RegionPointer(region));
    return kRax;
  }

  // The address of a computed offset into rax, after its check; `extra` into rcx as well.
  void CheckedAddress(const ControlInstruction& i, std::optional<Operand> extra) {
    MoveTo(kRax, i.a);
    const Label check = NewPart("check");
    a_.Call(check);
    behind_.push_back([this, check, i, extra, site = at_] {
      const Label outside = NewPart("outside");
      const int64_t places = unit_.regions[i.region].size / i.width;
      a_.Bind(check);
      a_.Move(kRcx, kRax);
      // A multiple of the width becomes a count of places; other offsets a very large number.
      if (i.width > 1)
        a_.ShiftBy(Shift::kRor, kRcx, std::countr_zero(static_cast<unsigned>(i.width)));
      if (Fits32(places)) {
        a_.Op(Binary::kCmp, kRcx, static_cast<int32_t>(places));
      } else {
        a_.Op(Binary::kCmp, kRcx, a_.Constant(places));
      }
      a_.JumpIf(Condition::kAboveOrEqual, outside);
      if (const auto found = regions_.find(i.region); found != regions_.end()) {
        a_.Op(Binary::kAdd, kRax, found->second);
      } else {
        a_.Op(Binary::kAdd, kRax, RegionPointer(i.region));
      }
      if (extra && extra->immediate) a_.Move(kRcx, extra->value);
      // One return address lies above the slots here.
      if (extra && !extra->immediate) {
        Memory slot = SlotOf(static_cast<size_t>(extra->value));
        slot.displacement += 8;
        a_.Load(kRcx, slot);
      }
      if (l0::IsSignals(unit_.regions[i.region])) {
        a_.Load(kRax, {kRax, 0}, i.width);
        NoteSignal(kRax);
      }
      a_.Return();
      a_.Bind(outside);
      NoteSite(site);
      a_.StoreImmediate(Field(offsetof(ControlFrame, end)),
                        static_cast<int32_t>(l0::ControlEnd::kOutOfBounds));
      a_.Op(Binary::kAdd, kRsp, 8);
      a_.Jump(exit_);
    });
  }

  void Load(const ControlInstruction& i) {
    const Gpr to = Target(i.result);
    const bool signals = l0::IsSignals(unit_.regions[i.region]);
    if (i.a.immediate) {
      a_.Load(to, Place(i), i.width);
      if (signals) NoteSignal(to);
    } else if (!signals) {
      CheckedAddress(i, std::nullopt);
      a_.Load(to, {kRax, 0}, i.width);
    } else {
      // The check loads as well, into rax.
      CheckedAddress(i, std::nullopt);
      if (to != kRax) a_.Move(to, kRax);
    }
    Done(i.result);
  }

  void NoteSignal(Gpr value) { a_.OrInto(Field(offsetof(ControlFrame, stop_seen)), value); }

  // A place at an offset that was checked before the run.
  Memory Place(const ControlInstruction& i) {
    const Gpr base = BaseOf(i.region);
    if (Fits32(i.a.value)) return {base, static_cast<int32_t>(i.a.value)};
    if (base != kRax) a_.Move(kRax, base);
    a_.Op(Binary::kAdd, kRax, a_.Constant(i.a.value));
    return {kRax, 0};
  }

  void Store(const ControlInstruction& i) {
    const auto value = RegisterOf(i.b);
    // What a narrow store keeps of an immediate always fits.
    const bool small = i.b.immediate && (i.width < 8 || Fits32(i.b.value));
    if (!i.a.immediate) {
      CheckedAddress(i, value || small ? std::nullopt : std::optional(i.b));
      if (small) return a_.StoreImmediate({kRax, 0}, static_cast<int32_t>(i.b.value), i.width);
      return a_.Store({kRax, 0}, value.value_or(kRcx), i.width);
    }
    const Memory place = Place(i);
    if (small) return a_.StoreImmediate(place, static_cast<int32_t>(i.b.value), i.width);
    if (!value) MoveTo(kRcx, i.b);
    a_.Store(place, value.value_or(kRcx), i.width);
  }

  void Hash(const ControlInstruction& i) {
    MoveTo(kRax, i.a);
    if (!hash_) {
      hash_ = NewPart("hash");
      behind_.push_back([this] { HashPart(); });
    }
    a_.Call(*hash_);
    if (allocation_.places[i.result].reg < 0) return Done(i.result);
    a_.Move(Target(i.result), kRax);
  }

  // splitmix64's finaliser of rax.
  void HashPart() {
    const auto mix = [this](int shift) {
      a_.Move(kRcx, kRax);
      a_.ShiftBy(Shift::kShr, kRcx, shift);
      a_.Op(Binary::kXor, kRax, kRcx);
    };
    a_.Bind(*hash_);
    a_.Op(Binary::kAdd, kRax, a_.Constant(static_cast<int64_t>(0x9E3779B97F4A7C15u)));
    mix(30);
    a_.Multiply(kRax, a_.Constant(static_cast<int64_t>(0xBF58476D1CE4E5B9u)));
    mix(27);
    a_.Multiply(kRax, a_.Constant(static_cast<int64_t>(0x94D049BB133111EBu)));
    mix(31);
    a_.Return();
  }

  void Arith(const ControlInstruction& i) {
    const Gpr to = Target(i.result);
    Operand x = i.a, y = i.b;
    switch (i.arith) {
      case ArithOp::kShl:
      case ArithOp::kShr: {
        const Shift op = i.arith == ArithOp::kShl ? Shift::kShl : Shift::kShr;
        if (y.immediate) {
          MoveTo(to, x);
          a_.ShiftBy(op, to, static_cast<int>(y.value & 63));
        } else {
          MoveTo(kRcx, y);
          MoveTo(to, x);
          a_.ShiftByCl(op, to);
        }
        break;
      }
      case ArithOp::kMul:
        if (x.immediate || RegisterOf(y) == to) std::swap(x, y);
        if (y.immediate && Fits32(y.value) && !x.immediate) {
          if (const auto reg = RegisterOf(x)) {
            a_.Multiply(to, *reg, static_cast<int32_t>(y.value));
          } else {
            a_.Multiply(to, MemoryOf(x), static_cast<int32_t>(y.value));
          }
          break;
        }
        MoveTo(to, x);
        if (const auto reg = RegisterOf(y)) {
          a_.Multiply(to, *reg);
        } else {
          a_.Multiply(to, MemoryOf(y));
        }
        break;
      case ArithOp::kSub:
        if (RegisterOf(y) == to && !(RegisterOf(x) == to)) {
          a_.Negate(to);
          Apply(Binary::kAdd, to, x);
          break;
        }
        MoveTo(to, x);
        Apply(Binary::kSub, to, y);
        break;
      case ArithOp::kAdd:
      case ArithOp::kAnd:
      case ArithOp::kOr: {
        if (x.immediate || RegisterOf(y) == to) std::swap(x, y);
        MoveTo(to, x);
        Apply(i.arith == ArithOp::kAdd   ? Binary::kAdd
              : i.arith == ArithOp::kAnd ? Binary::kAnd
                                         : Binary::kOr,
              to, y);
        break;
      }
    }
    Done(i.result);
  }

  // Sets the flags; the condition under which the comparison holds.
  Condition SetFlags(const ControlInstruction& i) {
    Operand x = i.a, y = i.b;
    CmpOp op = i.cmp;
    if (x.immediate && !y.immediate) {
      std::swap(x, y);
      op = Mirrored(op);
    }
    if (const auto reg = RegisterOf(x)) {
      Apply(Binary::kCmp, *reg, y);
    } else if (!x.immediate && y.immediate && Fits32(y.value)) {
      a_.CompareImmediate(MemoryOf(x), static_cast<int32_t>(y.value));
    } else {
      MoveTo(kRax, x);
      Apply(Binary::kCmp, kRax, y);
    }
    return ConditionOf(op);
  }

  void Compare(const ControlInstruction& i, const ControlInstruction* next) {
    if (i.a.immediate && i.b.immediate) {
      a_.Move(Target(i.result), int64_t{Holds(i.cmp, i.a.value, i.b.value)});
      return Done(i.result);
    }
    const Condition condition = SetFlags(i);
    // A branch that alone reads the result takes the flags.
    if (next != nullptr && next->op == ControlOp::kBranch && !next->a.immediate &&
        next->a.value == i.result && allocation_.uses[i.result] == 1) {
      flags_ = condition;
      return;
    }
    a_.SetAl(condition);
    a_.ZeroExtendAl(Target(i.result));
    Done(i.result);
  }

  void Branch(const ControlInstruction& i) {
    if (i.a.immediate) {
      const BlockId to = i.a.value != 0 ? i.target : i.otherwise;
      if (!Follows(to)) a_.Jump(blocks_[to]);
      return;
    }
    Condition condition = Condition::kNotEqual;
    if (flags_) {
      condition = *flags_;
      flags_.reset();
    } else if (const auto reg = RegisterOf(i.a)) {
      a_.Test(*reg);
    } else {
      a_.CompareImmediate(MemoryOf(i.a), 0);
    }
    a_.JumpIf(condition, blocks_[i.target]);
    if (!Follows(i.otherwise)) a_.Jump(blocks_[i.otherwise]);
  }

  // ---- Queues --------------------------------------------------------------------------------

  // A part that notes the place and the queue and goes on to what all pushes (or pops) share.
  Label QueuePart(const ControlInstruction& i, const char* what, Label shared) {
    const Label part = NewPart(what);
    behind_.push_back([this, part, shared, region = i.region, site = at_] {
      a_.Bind(part);
      a_.Move(kRcx, int64_t{region});
      NoteSite(site);
      a_.Jump(shared);
    });
    return part;
  }

  void PushTo(const ControlInstruction& i) {
    if (!push_) {
      push_ = NewPart("push");
      behind_.push_back([this] { HostPart(*push_, offsetof(ControlFrame, push), false); });
    }
    MoveTo(kRax, i.a);
    a_.Call(QueuePart(i, "push_to", *push_));
  }

  void PopFrom(const ControlInstruction& i) {
    if (!pop_) {
      pop_ = NewPart("pop");
      behind_.push_back([this] { HostPart(*pop_, offsetof(ControlFrame, pop), true); });
    }
    a_.Call(QueuePart(i, "pop_from", *pop_));
    if (allocation_.places[i.result].reg < 0) return Done(i.result);
    a_.Move(Target(i.result), kRax);
  }

  // rcx: the queue; rax: the descriptor to push, or where the popped one arrives.
  void HostPart(Label label, size_t function, bool pops) {
    const Label stopped = NewPart("stopped");
    a_.Bind(label);
    for (Gpr reg : kCallerSaved) a_.Push(reg);
    a_.Load(kRdi, Field(offsetof(ControlFrame, host)));
    a_.Move(kRsi, kRcx);
    if (pops) {
      a_.Address(kRdx, Field(offsetof(ControlFrame, popped)));
    } else {
      a_.Move(kRdx, kRax);
    }
    a_.CallThrough(Field(function));
    a_.StoreImmediate(Field(offsetof(ControlFrame, fuel)), static_cast<int32_t>(l0::kMaxIdleTurns));
    for (size_t i = std::size(kCallerSaved); i-- > 0;) a_.Pop(kCallerSaved[i]);
    a_.Test(kRax);
    a_.JumpIf(Condition::kEqual, stopped);
    if (pops) a_.Load(kRax, Field(offsetof(ControlFrame, popped)));
    a_.Return();
    a_.Bind(stopped);
    a_.StoreImmediate(Field(offsetof(ControlFrame, end)),
                      static_cast<int32_t>(l0::ControlEnd::kStopped));
    a_.Op(Binary::kAdd, kRsp, 8);
    a_.Jump(exit_);
  }

  const l0::ControlUnit& unit_;
  Assembler a_;
  const std::string name_;
  const Allocation allocation_;
  const std::vector<bool> idle_;
  std::vector<Label> blocks_;
  Label exit_ = 0;
  std::optional<Label> push_, pop_, hash_;
  std::map<l0::RegionId, Gpr> regions_;
  std::vector<std::function<void()>> behind_;
  std::optional<Condition> flags_;  // of the comparison just before a branch
  Site at_;
  int parts_ = 0;
};

}  // namespace

ControlCode EmitControl(const l0::ControlUnit& unit, const std::string& name, bool listing) {
  ControlCode code = Emitter(unit, name, listing).Emit();
  if (listing) {
    code.assembly =
        "\t.intel_syntax noprefix\n\t.text\n\t.globl " + name + "\n" + name + ":\n" + code.assembly;
  }
  return code;
}

LoadedControl::LoadedControl(const ControlCode& code) : size_(code.bytes.size()) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = memory;
  std::memcpy(memory, code.bytes.data(), size_);
  if (mprotect(memory, size_, PROT_READ | PROT_EXEC) != 0) return;
  function_ = reinterpret_cast<l0::ControlFn>(memory);
}

LoadedControl::~LoadedControl() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

}  // namespace l3c::x86
