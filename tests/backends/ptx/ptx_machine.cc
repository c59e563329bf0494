#include "tests/backends/ptx/ptx_machine.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/backends/ptx/ptx_arithmetic.h"
#include "tests/backends/ptx/ptx_memory.h"

namespace l3c::testing {
namespace {

constexpr int64_t kWarp = 32;
constexpr uint64_t kGlobal = uint64_t{1} << 40;
constexpr uint64_t kApart = uint64_t{1} << 36;  // from one buffer to the next
constexpr uint64_t kSharedBase = 1 << 20;

enum class State : uint8_t { kRuns, kAtBarrier, kAtShuffle, kEnded };

// What an instruction is, looked up once.
struct Decoded {
  enum class Kind : uint8_t { kBranch, kReturn, kBarrier, kShuffle, kAccess, kCompute, kUnknown };
  Kind kind = Kind::kUnknown;
  PtxFunction function;
};

Decoded Decode(const PtxInstruction& instruction) {
  using Kind = Decoded::Kind;
  const std::string& op = instruction.opcode[0];
  const auto is = [&](Kind kind) { return Decoded{kind, {}}; };
  if (op == "bra") return is(Kind::kBranch);
  if (op == "ret") return is(Kind::kReturn);
  if (op == "bar" && instruction.Has("sync")) return is(Kind::kBarrier);
  if (op == "shfl" && instruction.Has("sync") && instruction.Has("bfly")) {
    return is(Kind::kShuffle);
  }
  if (op == "ld" || op == "st") return is(Kind::kAccess);
  Decoded decoded{Kind::kCompute, PtxFunctionOf(instruction)};
  if (!decoded.function) decoded.kind = Kind::kUnknown;
  return decoded;
}

struct Thread {
  std::vector<uint64_t> registers;
  std::vector<uint8_t> written;
  size_t at = 0;
  State state = State::kRuns;
  int64_t epoch = 0;
};

class Machine {
 public:
  Machine(const PtxModule& module, std::span<const PtxBuffer> buffers, const PtxLimits& limits)
      : module_(module), limits_(limits) {
    for (size_t b = 0; b < buffers.size(); ++b) {
      global_.Add(Address(b), buffers[b].data, buffers[b].bytes, buffers[b].written,
                  module.params[b]);
    }
    shared_bytes_.resize(static_cast<size_t>(module.shared_bytes));
    for (const PtxInstruction& instruction : module.instructions) {
      decoded_.push_back(Decode(instruction));
    }
  }

  std::optional<std::string> Run(int64_t grid) {
    for (block_ = 0; block_ < grid && !fault_; ++block_) RunBlock();
    return fault_;
  }

 private:
  static uint64_t Address(size_t buffer) { return kGlobal + buffer * kApart; }

  void Fail(const std::string& message) {
    if (fault_) return;
    fault_ = "thread " + std::to_string(thread_) + " of block " + std::to_string(block_);
    const size_t at = threads_[static_cast<size_t>(thread_)].at;
    if (at < module_.instructions.size()) {
      const PtxInstruction& instruction = module_.instructions[at];
      *fault_ += ", line " + std::to_string(instruction.line) + " (" + instruction.text + ")";
    }
    *fault_ += ": " + message;
  }

  void RunBlock() {
    shared_ = {};
    shared_.Add(kSharedBase, shared_bytes_.data(), shared_bytes_.size(), false, "shared memory");
    const int64_t count = module_.threads[0] * module_.threads[1] * module_.threads[2];
    threads_.assign(static_cast<size_t>(count), {});
    for (Thread& thread : threads_) {
      thread.registers.resize(module_.registers.size());
      thread.written.resize(module_.registers.size());
    }
    steps_ = 0;
    while (!fault_) {
      bool ran = false;
      for (thread_ = 0; thread_ < count && !fault_; ++thread_) {
        Thread& thread = threads_[static_cast<size_t>(thread_)];
        ran |= thread.state == State::kRuns;
        while (thread.state == State::kRuns && !fault_) Step(thread);
      }
      if (fault_) return;
      const bool ended = std::all_of(threads_.begin(), threads_.end(),
                                     [](const Thread& t) { return t.state == State::kEnded; });
      if (ended) return;
      if (!MeetAtShuffles() && !MeetAtBarrier() && !ran) {
        ReportStuck();
      }
    }
  }

  // ---- Meetings ------------------------------------------------------------------------------

  bool MeetAtBarrier() {
    const size_t at = threads_[0].at;
    for (const Thread& thread : threads_) {
      if (thread.state != State::kAtBarrier || thread.at != at) return false;
    }
    for (Thread& thread : threads_) {
      thread.state = State::kRuns;
      ++thread.at;
      ++thread.epoch;
    }
    return true;
  }

  bool MeetAtShuffles() {
    bool any = false;
    for (size_t first = 0; first < threads_.size(); ++first) {
      if (threads_[first].state != State::kAtShuffle) continue;
      const PtxInstruction& shuffle = module_.instructions[threads_[first].at];
      thread_ = static_cast<int64_t>(first);
      const auto members = static_cast<uint32_t>(Value(threads_[first], shuffle.operands[4]));
      const size_t warp = first / kWarp * kWarp;
      std::vector<size_t> all;
      bool here = true;
      for (size_t lane = 0; lane < kWarp; ++lane) {
        if ((members >> lane & 1) == 0) continue;
        const size_t t = warp + lane;
        if (t >= threads_.size()) return Fail("a member of the shuffle does not exist"), true;
        here &= threads_[t].state == State::kAtShuffle && threads_[t].at == threads_[first].at;
        all.push_back(t);
      }
      if (!here) continue;
      Exchange(shuffle, all, members);
      any = true;
    }
    return any;
  }

  void Exchange(const PtxInstruction& shuffle, const std::vector<size_t>& all, uint32_t members) {
    std::vector<uint64_t> results;
    for (size_t t : all) {
      Thread& thread = threads_[t];
      thread_ = static_cast<int64_t>(t);
      if (static_cast<uint32_t>(Value(thread, shuffle.operands[4])) != members) {
        return Fail("the members of the shuffle do not agree on who they are");
      }
      const uint64_t by = Value(thread, shuffle.operands[2]) & 31;
      const uint64_t bound = Value(thread, shuffle.operands[3]);
      const uint64_t segment = bound >> 8 & 31;
      const uint64_t lane = t % kWarp;
      const uint64_t last = (lane & segment) | (bound & 31 & ~segment);
      uint64_t from = lane ^ by;
      if (from > last) from = lane;
      if ((members >> from & 1) == 0) return Fail("reads from a lane that is no member");
      Thread& other = threads_[t / kWarp * kWarp + from];
      results.push_back(Value(other, shuffle.operands[1]));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      Thread& thread = threads_[all[i]];
      Set(thread, shuffle.operands[0].reg, results[i]);
      thread.state = State::kRuns;
      ++thread.at;
    }
  }

  void ReportStuck() {
    for (size_t t = 0; t < threads_.size(); ++t) {
      if (threads_[t].state == State::kEnded) continue;
      thread_ = static_cast<int64_t>(t);
      return Fail(threads_[t].state == State::kAtBarrier
                      ? "waits at a barrier that not all threads of the block reach"
                      : "waits at a shuffle that not all its members reach");
    }
  }

  // ---- Operands ------------------------------------------------------------------------------

  uint64_t Value(const Thread& thread, const PtxOperand& operand) {
    switch (operand.kind) {
      case PtxOperand::Kind::kReg:
        return Register(thread, operand.reg);
      case PtxOperand::Kind::kInteger:
        return operand.bits;
      default:
        return Special(operand.name);
    }
  }

  uint64_t Register(const Thread& thread, uint32_t reg) {
    if (!thread.written[reg]) {
      Fail("reads register " + module_.registers[reg].name + ", which nothing has written");
    }
    return thread.registers[reg];
  }

  uint64_t Special(const std::string& name) {
    const auto [x, y, z] = module_.threads;
    if (name == "%tid.x") return static_cast<uint64_t>(thread_ % x);
    if (name == "%tid.y") return static_cast<uint64_t>(thread_ / x % y);
    if (name == "%tid.z") return static_cast<uint64_t>(thread_ / x / y);
    if (name == "%ctaid.x") return static_cast<uint64_t>(block_);
    if (name == "%laneid") return static_cast<uint64_t>(thread_ % kWarp);
    const auto shared = module_.shared.find(name);
    if (shared != module_.shared.end()) {
      return kSharedBase + static_cast<uint64_t>(shared->second.offset);
    }
    Fail("does not know '" + name + "'");
    return 0;
  }

  void Set(Thread& thread, uint32_t reg, uint64_t value) {
    thread.registers[reg] = value;
    thread.written[reg] = true;
  }

  // ---- Instructions --------------------------------------------------------------------------

  void Step(Thread& thread) {
    if (thread.at >= module_.instructions.size()) {
      thread.state = State::kEnded;
      return;
    }
    if (++steps_ > limits_.steps) return Fail("has not ended after so many steps");
    const PtxInstruction& instruction = module_.instructions[thread.at];
    if (instruction.guard && (Register(thread, *instruction.guard) != 0) == instruction.unless) {
      ++thread.at;
      return;
    }
    switch (decoded_[thread.at].kind) {
      case Decoded::Kind::kBranch:
        thread.at = instruction.operands[0].target;
        return;
      case Decoded::Kind::kReturn:
        thread.state = State::kEnded;
        return;
      case Decoded::Kind::kBarrier:
        thread.state = State::kAtBarrier;
        return;
      case Decoded::Kind::kShuffle:
        thread.state = State::kAtShuffle;
        return;
      case Decoded::Kind::kAccess:
        Access(thread, instruction);
        break;
      case Decoded::Kind::kCompute:
        Compute(thread, instruction);
        break;
      case Decoded::Kind::kUnknown:
        Fail("an instruction that is not known here");
    }
    if (!fault_) ++thread.at;
  }

  void Compute(Thread& thread, const PtxInstruction& instruction) {
    uint64_t in[4] = {};
    const size_t count = instruction.operands.size() - 1;
    for (size_t i = 0; i < count && i < 4; ++i) in[i] = Value(thread, instruction.operands[i + 1]);
    if (fault_) return;
    const auto result = decoded_[thread.at].function(in);
    if (!result) return Fail("the result for these operands is not defined");
    Set(thread, instruction.operands[0].reg, *result);
  }

  void Access(Thread& thread, const PtxInstruction& instruction) {
    const bool load = instruction.opcode[0] == "ld";
    const PtxOperand& place = instruction.operands[load ? 1 : 0];
    const PtxOperand& value = instruction.operands[load ? 0 : 1];
    if (instruction.Has("param")) {
      const auto param = std::find(module_.params.begin(), module_.params.end(), place.name);
      if (param == module_.params.end() || place.offset != 0) return Fail("no such parameter");
      return Set(thread, value.reg, Address(static_cast<size_t>(param - module_.params.begin())));
    }
    const bool global = instruction.Has("global");
    if (!global && !instruction.Has("shared")) return Fail("this state space is not known here");
    const std::string& type = instruction.opcode.back();
    const size_t size = static_cast<size_t>(std::atoi(type.c_str() + 1)) / 8;
    const std::vector<uint32_t> regs =
        value.kind == PtxOperand::Kind::kVector ? value.vector : std::vector<uint32_t>{value.reg};
    const bool immediate = value.kind == PtxOperand::Kind::kInteger;
    uint64_t address = place.name.empty() ? Register(thread, place.reg) : Special(place.name);
    address += static_cast<uint64_t>(place.offset);
    if (fault_) return;
    if (address % (size * regs.size()) != 0) {
      return Fail("a misaligned access of " + std::to_string(size * regs.size()) + " bytes");
    }
    const PtxAccessor who{block_, thread_, thread.epoch};
    PtxMemory& memory = global ? global_ : shared_;
    for (size_t i = 0; i < regs.size() && !fault_; ++i) {
      uint64_t bits = 0;
      std::optional<std::string> fault;
      if (load) {
        fault = memory.Read(address + i * size, size, who, &bits);
        if (!fault) Set(thread, regs[i], bits);
      } else {
        bits = immediate ? value.bits : Register(thread, regs[i]);
        if (!fault_) fault = memory.Write(address + i * size, size, who, bits);
      }
      if (fault) Fail(*fault);
    }
  }

  const PtxModule& module_;
  const PtxLimits limits_;
  PtxMemory global_;
  PtxMemory shared_;
  std::vector<std::byte> shared_bytes_;
  std::vector<Decoded> decoded_;
  std::vector<Thread> threads_;
  int64_t block_ = 0;
  int64_t thread_ = 0;
  int64_t steps_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> RunPtx(const PtxModule& module, std::span<const PtxBuffer> buffers,
                                  int64_t grid, const PtxLimits& limits) {
  return Machine(module, buffers, limits).Run(grid);
}

}  // namespace l3c::testing
