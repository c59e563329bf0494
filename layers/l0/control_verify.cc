#include "layers/l0/control_verify.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace l3c::l0 {
namespace {

using support::Diagnostic;
using support::Diagnostics;
using support::Kind;
using support::Span;

bool IsQueue(const Region& region) {
  return region.access == RegionAccess::kQueue || region.access == RegionAccess::kCompletion;
}

bool EndsBlock(ControlOp op) {
  return op == ControlOp::kBranch || op == ControlOp::kJump || op == ControlOp::kTerminate;
}

std::vector<BlockId> Successors(const ControlBlock& block) {
  const ControlInstruction& last = block.instructions.back();
  if (last.op == ControlOp::kJump) return {last.target};
  if (last.op == ControlOp::kBranch) return {last.target, last.otherwise};
  return {};
}

using Definitions = std::map<Register, const ControlInstruction*>;

Definitions FindDefinitions(const ControlUnit& unit) {
  Definitions definitions;
  for (const ControlBlock& block : unit.blocks) {
    for (const ControlInstruction& instruction : block.instructions) {
      if (HasResult(instruction.op)) definitions.emplace(instruction.result, &instruction);
    }
  }
  return definitions;
}

// The sequence of a pushed descriptor, when its form shows it (see kSequenceBits).
std::optional<SequenceId> SequenceOf(const Operand& descriptor, const Definitions& definitions) {
  if (descriptor.immediate) {
    if (!descriptor.sequence) return std::nullopt;
    return static_cast<SequenceId>(descriptor.value);
  }
  const auto defined = [&](const Operand& operand) -> const ControlInstruction* {
    if (operand.immediate) return nullptr;
    auto found = definitions.find(static_cast<Register>(operand.value));
    return found == definitions.end() ? nullptr : found->second;
  };
  const ControlInstruction* sum = defined(descriptor);
  if (sum == nullptr || sum->op != ControlOp::kArith) return std::nullopt;
  if (sum->arith != ArithOp::kOr && sum->arith != ArithOp::kAdd) return std::nullopt;
  const bool first = sum->a.immediate && sum->a.sequence;
  const Operand& sequence = first ? sum->a : sum->b;
  const ControlInstruction* argument = defined(first ? sum->b : sum->a);
  if (!sequence.immediate || !sequence.sequence || argument == nullptr) return std::nullopt;
  if (argument->op != ControlOp::kArith || argument->arith != ArithOp::kShl) return std::nullopt;
  if (!argument->b.immediate || argument->b.value < kSequenceBits || argument->b.value > 63) {
    return std::nullopt;
  }
  return static_cast<SequenceId>(sequence.value);
}

class Verifier {
 public:
  Verifier(const ControlUnit& unit, const Plan& plan, Diagnostics& diagnostics)
      : unit_(unit), plan_(plan), diagnostics_(diagnostics) {}

  bool Verify() {
    const size_t before = diagnostics_.all().size();
    CheckRegions();
    CheckBlocks();
    // The rest reads the graph of blocks, which is only there when the above holds.
    if (diagnostics_.all().size() == before) {
      definitions_ = FindDefinitions(unit_);
      CheckFlow();
      CheckSingleAssignment();
      CheckPushes();
    }
    return diagnostics_.all().size() == before;
  }

 private:
  Diagnostic& Error(Kind kind, Span span, const std::string& message) {
    return diagnostics_.Error(kind, span.known() ? span : unit_.span,
                              "control unit '" + unit_.name + "': " + message);
  }

  void CheckRegions() {
    if (unit_.regions.size() > kMaxControlRegions) {
      Error(Kind::kResourceBound, unit_.span,
            "more than " + std::to_string(kMaxControlRegions) + " regions");
      return;
    }
    std::map<std::string, const Region*> names;
    std::map<std::pair<std::string, RegionAccess>, const Region*> ends;
    for (const Region& region : unit_.regions) {
      const std::string name = "region '" + region.name + "'";
      if (!names.emplace(region.name, &region).second) {
        Error(Kind::kConsistency, region.span, name + " is declared twice");
      }
      if (IsQueue(region)) {
        if (region.size < 1) {
          Error(Kind::kResourceBound, region.span, name + " has room for no descriptor");
        }
        const bool known = std::any_of(plan_.streams.begin(), plan_.streams.end(),
                                       [&](const Stream& s) { return s.name == region.stream; });
        if (!known) {
          Error(Kind::kSafety, region.span,
                name + " leads to stream '" + region.stream + "', which does not exist");
        }
        if (!ends.emplace(std::pair(region.stream, region.access), &region).second) {
          Error(Kind::kConsistency, region.span,
                name + " is a second queue of its direction on stream '" + region.stream + "'");
        }
        continue;
      }
      const auto bytes = static_cast<int64_t>(region.values.size()) * 8;
      if (region.size < 0 || region.size % 8 != 0) {
        Error(Kind::kSafety, region.span, name + " is not a whole number of 8-byte words");
      } else if (bytes > region.size) {
        Error(Kind::kSafety, region.span,
              name + " has " + std::to_string(region.size) + " bytes and " + std::to_string(bytes) +
                  " bytes of initial values");
      }
      std::set<std::string> words(region.names.begin(), region.names.end());
      if (!region.names.empty() && words.size() != region.values.size()) {
        Error(Kind::kConsistency, region.span,
              "the words of " + name + " have names of their own, all or none");
      }
      if (region.name == "signals" &&
          (region.access != RegionAccess::kReadOnly || region.size != 8)) {
        Error(Kind::kConsistency, region.span,
              "region 'signals' belongs to the host and must be 'ro 8'");
      }
    }
  }

  void CheckBlocks() {
    if (unit_.blocks.empty()) {
      Error(Kind::kLiveness, unit_.span, "there is no block");
      return;
    }
    if (unit_.blocks.size() > kMaxControlBlocks) {
      Error(Kind::kResourceBound, unit_.span,
            "more than " + std::to_string(kMaxControlBlocks) + " blocks");
      return;
    }
    std::set<std::string> names;
    for (const ControlBlock& block : unit_.blocks) {
      if (!names.insert(block.name).second) {
        Error(Kind::kConsistency, block.span, "block '" + block.name + "' is declared twice");
      }
      if (block.instructions.empty() || !EndsBlock(block.instructions.back().op)) {
        Error(Kind::kLiveness, block.span,
              "block '" + block.name + "' does not end in branch, jump or terminate");
      }
      for (size_t i = 0; i < block.instructions.size(); ++i) {
        const ControlInstruction& instruction = block.instructions[i];
        if (EndsBlock(instruction.op) && i + 1 < block.instructions.size()) {
          Error(Kind::kLiveness, instruction.span,
                "block '" + block.name + "' goes on after its end");
        }
        CheckInstruction(instruction);
      }
    }
  }

  void CheckInstruction(const ControlInstruction& instruction) {
    const Span span = instruction.span;
    if (HasResult(instruction.op) && instruction.result >= unit_.registers) {
      Error(Kind::kSafety, span,
            "register %" + std::to_string(instruction.result) + " is out of range");
    }
    for (const Operand& operand : Reads(instruction)) {
      const bool in_range = operand.immediate
                                ? !operand.sequence || InRange(operand.value, plan_.sequences)
                                : operand.value >= 0 && operand.value < unit_.registers;
      if (!in_range) {
        Error(Kind::kSafety, span,
              (operand.immediate ? "sequence " : "register ") + std::to_string(operand.value) +
                  " is out of range");
      }
    }
    if (instruction.op == ControlOp::kBranch || instruction.op == ControlOp::kJump) {
      const bool both = instruction.op == ControlOp::kBranch;
      if (instruction.target >= unit_.blocks.size() ||
          (both && instruction.otherwise >= unit_.blocks.size())) {
        Error(Kind::kSafety, span, "a branch leads to a block that does not exist");
      }
    }
    CheckAccess(instruction);
  }

  template <class T>
  static bool InRange(int64_t id, const std::vector<T>& all) {
    return id >= 0 && static_cast<uint64_t>(id) < all.size();
  }

  void CheckAccess(const ControlInstruction& instruction) {
    const ControlOp op = instruction.op;
    const bool memory = op == ControlOp::kLoad || op == ControlOp::kStore;
    if (!memory && op != ControlOp::kQueuePush && op != ControlOp::kQueuePop) return;
    if (instruction.region >= unit_.regions.size()) {
      Error(Kind::kSafety, instruction.span, "a region that does not exist");
      return;
    }
    const Region& region = unit_.regions[instruction.region];
    const auto complain = [&](Kind kind, const std::string& message) {
      Error(kind, instruction.span, message)
          .With({region.span, "region '" + region.name + "' is declared here"});
    };
    if (!memory) {
      if (op == ControlOp::kQueuePush && region.access != RegionAccess::kQueue) {
        complain(Kind::kSafety, "'" + region.name + "' is no queue to push to");
      }
      if (op == ControlOp::kQueuePop && region.access != RegionAccess::kCompletion) {
        complain(Kind::kSafety, "'" + region.name + "' is no queue to pop from");
      }
      return;
    }
    if (IsQueue(region)) {
      complain(Kind::kSafety, "queue '" + region.name + "' is used as memory");
      return;
    }
    if (op == ControlOp::kStore && region.access == RegionAccess::kReadOnly) {
      complain(Kind::kSafety, "a store to region '" + region.name + "', which is read-only");
    }
    const int64_t width = instruction.width;
    if (width != 1 && width != 2 && width != 4 && width != 8) {
      Error(Kind::kSafety, instruction.span,
            "an access of " + std::to_string(width) + " bytes; 1, 2, 4 or 8 are possible");
    } else if (instruction.a.immediate) {
      const int64_t offset = instruction.a.value;
      if (offset < 0 || offset > region.size - width) {
        const int64_t end = offset > INT64_MAX - width ? INT64_MAX : offset + width;
        complain(Kind::kSafety, "bytes " + std::to_string(offset) + " to " + std::to_string(end) +
                                    " lie outside region '" + region.name + "' of " +
                                    std::to_string(region.size) + " bytes");
      } else if (offset % width != 0) {
        complain(Kind::kSafety, "offset " + std::to_string(offset) + " is not a multiple of " +
                                    std::to_string(width));
      }
    }
  }

  // Every block can be reached, and from every block an end can be.
  void CheckFlow() {
    const size_t n = unit_.blocks.size();
    predecessors_.assign(n, {});
    for (size_t b = 0; b < n; ++b) {
      for (BlockId next : Successors(unit_.blocks[b])) {
        predecessors_[next].push_back(static_cast<BlockId>(b));
      }
    }
    std::vector<bool> reached(n, false);
    std::vector<BlockId> work = {0};
    reached[0] = true;
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (BlockId next : Successors(unit_.blocks[block])) {
        if (!reached[next]) {
          reached[next] = true;
          work.push_back(next);
        }
      }
    }
    std::vector<bool> ends(n, false);
    for (size_t b = 0; b < n; ++b) {
      if (unit_.blocks[b].instructions.back().op != ControlOp::kTerminate) continue;
      ends[b] = true;
      work.push_back(static_cast<BlockId>(b));
    }
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (BlockId before : predecessors_[block]) {
        if (!ends[before]) {
          ends[before] = true;
          work.push_back(before);
        }
      }
    }
    for (size_t b = 0; b < n; ++b) {
      const ControlBlock& block = unit_.blocks[b];
      if (!reached[b]) {
        Error(Kind::kLiveness, block.span, "block '" + block.name + "' is never reached");
      } else if (!ends[b]) {
        Error(Kind::kLiveness, block.span,
              "from block '" + block.name + "' no path leads to terminate");
      }
    }
  }

  // Each register is defined once, and its definition dominates every use.
  void CheckSingleAssignment() {
    const size_t n = unit_.blocks.size();
    std::vector<std::optional<std::pair<BlockId, size_t>>> defined(unit_.registers);
    for (size_t b = 0; b < n; ++b) {
      const auto& instructions = unit_.blocks[b].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        if (!HasResult(instructions[i].op)) continue;
        auto& place = defined[instructions[i].result];
        if (place) {
          Error(Kind::kSafety, instructions[i].span,
                "register %" + std::to_string(instructions[i].result) + " is assigned twice")
              .With({unit_.blocks[place->first].instructions[place->second].span,
                     "the first assignment is here"});
        } else {
          place = {static_cast<BlockId>(b), i};
        }
      }
    }
    const std::vector<Bits> dominators = Dominators();
    for (size_t b = 0; b < n; ++b) {
      const auto& instructions = unit_.blocks[b].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        for (const Operand& operand : Reads(instructions[i])) {
          if (operand.immediate) continue;
          const auto& place = defined[static_cast<size_t>(operand.value)];
          const bool before =
              place && (place->first == b ? place->second < i : Has(dominators[b], place->first));
          if (!before) {
            Error(Kind::kSafety, instructions[i].span,
                  "register %" + std::to_string(operand.value) +
                      " is not assigned on every path that leads here");
          }
        }
      }
    }
  }

  using Bits = std::vector<uint64_t>;
  static bool Has(const Bits& bits, size_t i) { return bits[i / 64] >> (i % 64) & 1; }

  // Bit d of dominators[b]: every path from the entry to b passes through d. By iteration to a
  // fixpoint, in an order in which blocks follow those that lead to them, but for loops.
  std::vector<Bits> Dominators() const {
    const size_t n = unit_.blocks.size(), words = (n + 63) / 64;
    std::vector<Bits> dominators(n, Bits(words, ~uint64_t{0}));
    dominators[0].assign(words, 0);
    dominators[0][0] = 1;
    const std::vector<BlockId> order = ReversePostOrder();
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId b : order) {
        if (b == 0) continue;
        Bits meet(words, ~uint64_t{0});
        for (BlockId before : predecessors_[b]) {
          for (size_t w = 0; w < words; ++w) meet[w] &= dominators[before][w];
        }
        meet[b / 64] |= uint64_t{1} << (b % 64);
        if (meet != dominators[b]) {
          dominators[b] = std::move(meet);
          changed = true;
        }
      }
    }
    return dominators;
  }

  std::vector<BlockId> ReversePostOrder() const {
    std::vector<BlockId> order;
    std::vector<bool> seen(unit_.blocks.size(), false);
    std::vector<std::pair<BlockId, size_t>> path = {{0, 0}};  // a block, successors visited
    seen[0] = true;
    while (!path.empty()) {
      auto& [block, visited] = path.back();
      const std::vector<BlockId> next = Successors(unit_.blocks[block]);
      if (visited == next.size()) {
        order.push_back(block);
        path.pop_back();
        continue;
      }
      const BlockId to = next[visited++];
      if (!seen[to]) {
        seen[to] = true;
        path.emplace_back(to, 0);
      }
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  // A descriptor names a sequence of the queue's own stream; completions have a queue to go to.
  void CheckPushes() {
    for (const ControlBlock& block : unit_.blocks) {
      for (const ControlInstruction& instruction : block.instructions) {
        if (instruction.op != ControlOp::kQueuePush) continue;
        const auto id = SequenceOf(instruction.a, definitions_);
        if (!id) {
          Error(Kind::kSafety, instruction.span, "the pushed descriptor names no sequence")
              .Label("expected @sequence, alone or joined to an argument shifted by 16");
          continue;
        }
        const Sequence& sequence = plan_.sequences[*id];
        const std::string& stream = plan_.streams[sequence.stream].name;
        const Region& queue = unit_.regions[instruction.region];
        if (stream != queue.stream) {
          Error(Kind::kSafety, instruction.span,
                "sequence '" + sequence.name + "' of stream '" + stream +
                    "' is pushed to a queue of stream '" + queue.stream + "'");
        }
        const bool completes = std::any_of(
            sequence.commands.begin(), sequence.commands.end(),
            [](const Command& command) { return command.kind == CommandKind::kComplete; });
        const bool heard =
            std::any_of(unit_.regions.begin(), unit_.regions.end(), [&](const Region& region) {
              return region.access == RegionAccess::kCompletion && region.stream == stream;
            });
        if (completes && !heard) {
          Error(Kind::kLiveness, instruction.span,
                "sequence '" + sequence.name + "' completes, but no queue comes from stream '" +
                    stream + "'");
        }
      }
    }
  }

  const ControlUnit& unit_;
  const Plan& plan_;
  Diagnostics& diagnostics_;
  Definitions definitions_;
  std::vector<std::vector<BlockId>> predecessors_;
};

}  // namespace

bool VerifyControl(const ControlUnit& unit, const Plan& plan, Diagnostics& diagnostics) {
  return Verifier(unit, plan, diagnostics).Verify();
}

std::vector<SequenceId> PushedSequences(const ControlUnit& unit) {
  const Definitions definitions = FindDefinitions(unit);
  std::set<SequenceId> pushed;
  for (const ControlBlock& block : unit.blocks) {
    for (const ControlInstruction& instruction : block.instructions) {
      if (instruction.op != ControlOp::kQueuePush) continue;
      if (auto id = SequenceOf(instruction.a, definitions)) pushed.insert(*id);
    }
  }
  return {pushed.begin(), pushed.end()};
}

}  // namespace l3c::l0
