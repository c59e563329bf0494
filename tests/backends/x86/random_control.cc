#include "tests/backends/x86/random_control.h"

#include <algorithm>
#include <random>
#include <span>

namespace l3c::testing {
namespace {

using l0::ControlInstruction;
using l0::ControlOp;
using l0::Operand;
using l0::Region;
using l0::RegionAccess;

class Generator {
 public:
  Generator(uint32_t seed, int live) : random_(seed), live_(live) {}

  l0::ControlUnit Make() {
    unit_.name = "random";
    MakeRegions();
    const int blocks = Below(9) + 1;
    for (int b = 0; b < blocks; ++b) unit_.blocks.push_back({"b" + std::to_string(b), {}, {}});
    // The way of every block leads on to the next, so all are reached and all end.
    target_.resize(static_cast<size_t>(blocks));
    for (int b = 0; b < blocks; ++b) target_[static_cast<size_t>(b)] = Below(blocks);
    FindDominators();
    values_.resize(static_cast<size_t>(blocks));
    for (int b = 0; b < blocks; ++b) Fill(b, b + 1 == blocks);
    return std::move(unit_);
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }

  void MakeRegions() {
    Region counter;
    counter.name = "counter";
    counter.access = RegionAccess::kReadWrite;
    counter.size = 8;
    counter.values = {Below(12)};
    unit_.regions.push_back(counter);
    const int memories = Below(6) + 1;
    for (int i = 0; i < memories; ++i) {
      Region region;
      region.name = "m" + std::to_string(i);
      region.access = Chance(70) ? RegionAccess::kReadWrite : RegionAccess::kReadOnly;
      region.size = 8 * (Below(6) + 1);
      for (int64_t w = 0; w < region.size / 8; ++w) region.values.push_back(Number());
      memories_.push_back(static_cast<l0::RegionId>(unit_.regions.size()));
      unit_.regions.push_back(region);
    }
    if (Chance(50)) {
      Region signals;
      signals.name = "signals";
      signals.size = 8;
      signals.values = {Chance(50) ? 1 : 0};
      memories_.push_back(static_cast<l0::RegionId>(unit_.regions.size()));
      unit_.regions.push_back(signals);
    }
    for (const RegionAccess access : {RegionAccess::kQueue, RegionAccess::kCompletion}) {
      Region queue;
      queue.name = access == RegionAccess::kQueue ? "work" : "done";
      queue.access = access;
      queue.size = 2;
      unit_.regions.push_back(queue);
    }
  }

  int64_t Number() {
    switch (Below(5)) {
      case 0:
        return Below(3) - 1;
      case 1:
        return Below(200) - 100;
      case 2:
        return static_cast<int32_t>(random_());
      case 3:
        return int64_t{1} << Below(64);
      default:
        return static_cast<int64_t>(uint64_t{random_()} << 32 | random_());
    }
  }

  void FindDominators() {
    const size_t n = target_.size();
    dominators_.assign(n, std::vector<bool>(n, true));
    dominators_[0].assign(n, false);
    dominators_[0][0] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 1; b < n; ++b) {
        std::vector<bool> meet = dominators_[b - 1];
        for (size_t from = 0; from + 1 < n; ++from) {
          if (static_cast<size_t>(target_[from]) != b) continue;
          for (size_t d = 0; d < n; ++d) meet[d] = meet[d] && dominators_[from][d];
        }
        meet[b] = true;
        if (meet != dominators_[b]) changed = true;
        dominators_[b] = meet;
      }
    }
  }

  Operand Any() {
    if (available_.empty() || Chance(25)) return Operand::Imm(Number());
    // Mostly of the newest, so that about so many live.
    const size_t reach = std::min(available_.size(), static_cast<size_t>(live_));
    return Operand::Reg(available_[available_.size() - 1 - random_() % reach]);
  }

  Operand Append(ControlInstruction instruction) {
    instruction.result = unit_.registers++;
    available_.push_back(instruction.result);
    block_->push_back(instruction);
    return Operand::Reg(instruction.result);
  }

  ControlInstruction Access(ControlOp op) {
    ControlInstruction access{.op = op};
    access.region = memories_[static_cast<size_t>(Below(static_cast<int>(memories_.size())))];
    access.width = 1 << Below(4);
    const int64_t places = unit_.regions[access.region].size / access.width;
    if (Chance(60)) {
      access.a = Operand::Imm(access.width * Below(static_cast<int>(places)));
    } else if (Chance(90)) {
      // A computed offset inside: places of a power of two, times the width.
      int64_t mask = 1;
      while (2 * mask <= places) mask *= 2;
      const Operand place = Append({.op = ControlOp::kArith,
                                    .arith = l0::ArithOp::kAnd,
                                    .a = Any(),
                                    .b = Operand::Imm(mask - 1)});
      access.a = Append({.op = ControlOp::kArith,
                         .arith = l0::ArithOp::kMul,
                         .a = place,
                         .b = Operand::Imm(access.width)});
    } else {
      access.a = Any();
      if (access.a.immediate) access.a = Operand::Imm(0);
    }
    return access;
  }

  void Step() {
    switch (Below(10)) {
      case 0:
      case 1:
        Append(Access(ControlOp::kLoad));
        return;
      case 2: {
        ControlInstruction store = Access(ControlOp::kStore);
        if (unit_.regions[store.region].access != RegionAccess::kReadWrite) return;
        store.b = Any();
        block_->push_back(store);
        return;
      }
      case 3:
        Append({.op = ControlOp::kHash, .a = Any()});
        return;
      case 4:
        Append({.op = ControlOp::kCmp,
                .cmp = static_cast<l0::CmpOp>(Below(4)),
                .a = Any(),
                .b = Any()});
        return;
      case 5:
        if (Chance(40)) {
          block_->push_back({.op = ControlOp::kQueuePush, .region = Queue(0), .a = Any()});
        } else if (Chance(40)) {
          Append({.op = ControlOp::kQueuePop, .region = Queue(1)});
        }
        return;
      default:
        Append({.op = ControlOp::kArith,
                .arith = static_cast<l0::ArithOp>(Below(7)),
                .a = Any(),
                .b = Any()});
    }
  }

  l0::RegionId Queue(size_t which) const {
    return static_cast<l0::RegionId>(unit_.regions.size() - 2 + which);
  }

  void Fill(int b, bool last) {
    const auto block = static_cast<size_t>(b);
    block_ = &unit_.blocks[block].instructions;
    available_.clear();
    for (size_t d = 0; d < block; ++d) {
      if (!dominators_[block][d]) continue;
      available_.insert(available_.end(), values_[d].begin(), values_[d].end());
    }
    const size_t before = available_.size();
    const int steps = Below(12);
    for (int i = 0; i < steps; ++i) Step();
    if (last) {
      block_->push_back({.op = ControlOp::kTerminate});
    } else {
      const auto next = static_cast<l0::BlockId>(b + 1);
      ControlInstruction branch{.op = ControlOp::kBranch, .a = Any()};
      branch.target = static_cast<l0::BlockId>(target_[block]);
      branch.otherwise = next;
      if (target_[block] <= b) {
        const Operand left = Append({.op = ControlOp::kLoad, .region = 0, .a = Operand::Imm(0)});
        const Operand fewer = Append(
            {.op = ControlOp::kArith, .arith = l0::ArithOp::kSub, .a = left, .b = Operand::Imm(1)});
        block_->push_back({.op = ControlOp::kStore, .region = 0, .a = Operand::Imm(0), .b = fewer});
        branch.a = Append(
            {.op = ControlOp::kCmp, .cmp = l0::CmpOp::kGt, .a = fewer, .b = Operand::Imm(0)});
      } else if (branch.target == next && Chance(50)) {
        branch = {.op = ControlOp::kJump, .target = next};
      }
      block_->push_back(branch);
    }
    values_[block].assign(available_.begin() + static_cast<ptrdiff_t>(before), available_.end());
  }

  std::mt19937 random_;
  const int live_;
  l0::ControlUnit unit_;
  std::vector<l0::RegionId> memories_;
  std::vector<int> target_;                        // of the branch at each block's end
  std::vector<std::vector<bool>> dominators_;      // dominators_[b][d]: d dominates b
  std::vector<std::vector<l0::Register>> values_;  // that each block makes
  std::vector<l0::Register> available_;
  std::vector<ControlInstruction>* block_ = nullptr;
};

class TracingHost : public l0::ControlHost {
 public:
  TracingHost(ControlTrace& trace, size_t stop_after) : trace_(trace), left_(stop_after) {}

  bool Push(l0::RegionId queue, int64_t descriptor) override {
    Note(queue, descriptor);
    return left_-- > 0;
  }
  std::optional<int64_t> Pop(l0::RegionId queue) override {
    Note(queue, -1);
    if (left_-- == 0) return std::nullopt;
    return static_cast<int64_t>(0x123456789abcdef * (trace_.queue_operations.size() + 1));
  }

 private:
  void Note(l0::RegionId queue, int64_t descriptor) {
    trace_.queue_operations.push_back(queue);
    trace_.queue_operations.push_back(descriptor);
    for (const auto& words : trace_.regions) {
      trace_.queue_operations.insert(trace_.queue_operations.end(), words.begin(), words.end());
    }
  }

  ControlTrace& trace_;
  size_t left_;
};

}  // namespace

l0::ControlUnit RandomControl(uint32_t seed, int live) { return Generator(seed, live).Make(); }

ControlTrace RunTraced(const l0::ControlUnit& unit, l0::ControlFn code, size_t stop_after) {
  ControlTrace trace;
  for (const Region& region : unit.regions) trace.regions.push_back(l0::InitialWords(region));
  std::vector<l0::RegionBytes> bytes;
  for (auto& words : trace.regions) bytes.push_back(std::as_writable_bytes(std::span(words)));
  TracingHost host(trace, stop_after);
  trace.outcome =
      code != nullptr ? l0::RunControlCode(code, bytes, host) : l0::RunControl(unit, bytes, host);
  return trace;
}

}  // namespace l3c::testing
