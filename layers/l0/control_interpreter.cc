#include "layers/l0/control_interpreter.h"

#include <algorithm>
#include <atomic>

namespace l3c::l0 {
namespace {

template <class T>
int64_t LoadAs(std::byte* place) {
  std::atomic_ref<T> word(*reinterpret_cast<T*>(place));
  return static_cast<int64_t>(word.load(std::memory_order_relaxed));
}

template <class T>
void StoreAs(std::byte* place, int64_t value) {
  std::atomic_ref<T> word(*reinterpret_cast<T*>(place));
  word.store(static_cast<T>(value), std::memory_order_relaxed);
}

int64_t LoadWord(std::byte* place, int width) {
  switch (width) {
    case 1:
      return LoadAs<uint8_t>(place);
    case 2:
      return LoadAs<uint16_t>(place);
    case 4:
      return LoadAs<uint32_t>(place);
    default:
      return LoadAs<int64_t>(place);
  }
}

void StoreWord(std::byte* place, int width, int64_t value) {
  switch (width) {
    case 1:
      return StoreAs<uint8_t>(place, value);
    case 2:
      return StoreAs<uint16_t>(place, value);
    case 4:
      return StoreAs<uint32_t>(place, value);
    default:
      return StoreAs<int64_t>(place, value);
  }
}

int64_t Hash(int64_t value) {
  uint64_t x = static_cast<uint64_t>(value) + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<int64_t>(x ^ (x >> 31));
}

int64_t Arith(ArithOp op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case ArithOp::kAdd:
      return static_cast<int64_t>(x + y);
    case ArithOp::kSub:
      return static_cast<int64_t>(x - y);
    case ArithOp::kMul:
      return static_cast<int64_t>(x * y);
    case ArithOp::kAnd:
      return static_cast<int64_t>(x & y);
    case ArithOp::kOr:
      return static_cast<int64_t>(x | y);
    case ArithOp::kShl:
      return static_cast<int64_t>(x << (y & 63));
    case ArithOp::kShr:
      return static_cast<int64_t>(x >> (y & 63));
  }
  return 0;
}

}  // namespace

bool IsSignals(const Region& region) {
  return region.access == RegionAccess::kReadOnly && region.name == "signals";
}

std::vector<int64_t> InitialWords(const Region& region) {
  if (region.access == RegionAccess::kQueue || region.access == RegionAccess::kCompletion)
    return {};
  std::vector<int64_t> words(static_cast<size_t>(region.size / 8), 0);
  std::copy(region.values.begin(), region.values.end(), words.begin());
  return words;
}

ControlOutcome RunControl(const ControlUnit& unit, std::span<const RegionBytes> regions,
                          ControlHost& host) {
  std::vector<int64_t> registers(unit.registers, 0);
  const auto value = [&](const Operand& operand) {
    return operand.immediate ? operand.value : registers[static_cast<size_t>(operand.value)];
  };
  bool stop_seen = false;
  BlockId block = 0;
  uint32_t at = 0;
  int64_t idle = 0;
  for (;;) {
    const ControlInstruction& instruction = unit.blocks[block].instructions[at];
    const auto end = [&](ControlEnd how) { return ControlOutcome{how, block, at, stop_seen}; };
    if (++idle > kMaxIdleInstructions) return end(ControlEnd::kIdle);
    ++at;
    switch (instruction.op) {
      case ControlOp::kLoad:
      case ControlOp::kStore: {
        const RegionBytes bytes = regions[instruction.region];
        const auto offset = static_cast<uint64_t>(value(instruction.a));
        const auto width = static_cast<uint64_t>(instruction.width);
        if (offset % width != 0 || bytes.size() < width || offset > bytes.size() - width) {
          --at;
          return end(ControlEnd::kOutOfBounds);
        }
        if (instruction.op == ControlOp::kLoad) {
          const int64_t loaded = LoadWord(bytes.data() + offset, instruction.width);
          registers[instruction.result] = loaded;
          if (loaded != 0 && IsSignals(unit.regions[instruction.region])) stop_seen = true;
        } else {
          StoreWord(bytes.data() + offset, instruction.width, value(instruction.b));
        }
        break;
      }
      case ControlOp::kHash:
        registers[instruction.result] = Hash(value(instruction.a));
        break;
      case ControlOp::kArith:
        registers[instruction.result] =
            Arith(instruction.arith, value(instruction.a), value(instruction.b));
        break;
      case ControlOp::kCmp:
        registers[instruction.result] =
            Holds(instruction.cmp, value(instruction.a), value(instruction.b)) ? 1 : 0;
        break;
      case ControlOp::kBranch:
        block = value(instruction.a) != 0 ? instruction.target : instruction.otherwise;
        at = 0;
        break;
      case ControlOp::kJump:
        block = instruction.target;
        at = 0;
        break;
      case ControlOp::kQueuePush:
        if (!host.Push(instruction.region, value(instruction.a))) {
          --at;
          return end(ControlEnd::kStopped);
        }
        idle = 0;
        break;
      case ControlOp::kQueuePop: {
        const std::optional<int64_t> entry = host.Pop(instruction.region);
        if (!entry) {
          --at;
          return end(ControlEnd::kStopped);
        }
        registers[instruction.result] = *entry;
        idle = 0;
        break;
      }
      case ControlOp::kTerminate:
        --at;
        return end(ControlEnd::kTerminated);
    }
  }
}

}  // namespace l3c::l0
