#include "layers/l0/control_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "layers/support/units.h"

namespace l3c::l0 {
namespace {

using support::Kind;
using support::Name;
using support::ParserBase;
using support::Span;

constexpr std::array<std::string_view, 7> kArithNames = {"add", "sub", "mul", "and",
                                                         "or",  "shl", "shr"};
constexpr std::array<std::string_view, 4> kCmpNames = {"eq", "ne", "lt", "gt"};
// Far above what any unit needs; bounds the interpreter's register file.
constexpr int64_t kMaxRegister = 1 << 20;
// A longer list of words takes a line for each.
constexpr size_t kMaxLine = 90;

std::string PrintOperand(const Operand& operand, const std::vector<std::string>& sequences) {
  if (!operand.immediate) return "%" + support::PrintInteger(operand.value);
  if (operand.sequence) return "@" + sequences[static_cast<size_t>(operand.value)];
  return support::PrintInteger(operand.value);
}

void PrintRegion(const Region& region, support::Printer& out) {
  if (region.access == RegionAccess::kQueue || region.access == RegionAccess::kCompletion) {
    out.Line("queue " + region.name + " : " + support::PrintInteger(region.size) +
             (region.access == RegionAccess::kQueue ? " -> " : " <- ") + region.stream);
    return;
  }
  std::string line = "region " + region.name;
  line += region.access == RegionAccess::kReadOnly ? " : ro " : " : rw ";
  line += support::PrintInteger(region.size);
  if (region.values.empty()) return out.Line(line);
  std::vector<std::string> words;
  for (size_t i = 0; i < region.values.size(); ++i) {
    words.push_back((i < region.names.size() ? region.names[i] + ": " : "") +
                    support::PrintInteger(region.values[i]));
  }
  const std::string flat = line + " { " + support::Join(words) + " }";
  if (flat.size() <= kMaxLine) return out.Line(flat);
  out.Open(line + " {");
  for (size_t i = 0; i < words.size(); ++i) out.Line(words[i] + (i + 1 < words.size() ? "," : ""));
  out.Close("}");
}

// A whole word that has a name goes by it.
std::string PrintOffset(const Region& region, const ControlInstruction& instruction,
                        const std::vector<std::string>& sequences) {
  const Operand& offset = instruction.a;
  const auto word = static_cast<uint64_t>(offset.value) / 8;
  if (offset.immediate && !offset.sequence && instruction.width == 8 && offset.value % 8 == 0 &&
      offset.value >= 0 && word < region.names.size()) {
    return region.names[word];
  }
  return PrintOperand(offset, sequences);
}

std::string PrintInstruction(const ControlUnit& unit, const ControlInstruction& instruction,
                             const std::vector<std::string>& sequences) {
  const auto operand = [&](const Operand& o) { return PrintOperand(o, sequences); };
  const std::string result = "%" + std::to_string(instruction.result) + " = ";
  const auto region = [&] { return unit.regions[instruction.region].name; };
  const auto block = [&](BlockId id) { return unit.blocks[id].name; };
  const auto place = [&] {
    return "." + std::to_string(instruction.width) + " " + region() + "[" +
           PrintOffset(unit.regions[instruction.region], instruction, sequences) + "]";
  };
  const auto both = [&] { return " " + operand(instruction.a) + ", " + operand(instruction.b); };
  switch (instruction.op) {
    case ControlOp::kLoad:
      return result + "load" + place();
    case ControlOp::kStore:
      return "store" + place() + ", " + operand(instruction.b);
    case ControlOp::kHash:
      return result + "hash " + operand(instruction.a);
    case ControlOp::kArith:
      return result + "arith." + std::string(ArithOpName(instruction.arith)) + both();
    case ControlOp::kCmp:
      return result + "cmp." + std::string(CmpOpName(instruction.cmp)) + both();
    case ControlOp::kBranch:
      return "branch " + operand(instruction.a) + " ? " + block(instruction.target) + " : " +
             block(instruction.otherwise);
    case ControlOp::kJump:
      return "jump " + block(instruction.target);
    case ControlOp::kQueuePush:
      return "queue_push " + region() + ", " + operand(instruction.a);
    case ControlOp::kQueuePop:
      return result + "queue_pop " + region();
    case ControlOp::kTerminate:
      return "terminate";
  }
  return {};
}

class Parser {
 public:
  Parser(ParserBase& base, const std::vector<std::string>& sequences,
         const std::vector<std::string>& streams)
      : p_(base), sequences_(sequences), streams_(streams) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      sequence_ids_.emplace(sequences[i], static_cast<uint32_t>(i));
    }
  }

  std::optional<ControlUnit> Parse() {
    const size_t errors = p_.diagnostics().all().size();
    uint32_t begin = p_.Here();
    p_.Next();  // control
    auto name = p_.ExpectName("the name of a control unit");
    if (!name || !p_.Expect("{")) return std::nullopt;
    unit_.name = name->text;
    const int inside = p_.bracket_depth();
    while (!p_.At("}") && !p_.AtEnd()) {
      const uint32_t field = p_.Here();
      if (!ParseField()) p_.SkipToField(inside, field);
    }
    p_.Expect("}");
    ResolveTargets();
    unit_.span = p_.SpanFrom(begin);
    unit_.registers = registers_;
    if (p_.diagnostics().all().size() > errors || p_.stopped()) return std::nullopt;
    return std::move(unit_);
  }

 private:
  struct Target {
    size_t block, instruction;
    bool otherwise;
    Name name;
  };

  bool ParseField() {
    if (p_.AtWord("region")) return ParseRegion();
    if (p_.AtWord("queue")) return ParseQueue();
    if (p_.AtWord("block")) return ParseBlock();
    p_.ErrorExpected("'region', 'queue' or 'block'");
    return false;
  }

  bool AddRegion(Region region, const Name& name) {
    const auto id = static_cast<uint32_t>(unit_.regions.size());
    if (auto [it, added] = region_ids_.emplace(name.text, id); !added) {
      p_.Error(name.span, "region '" + name.text + "' is declared twice", Kind::kConsistency)
          .With({unit_.regions[it->second].span, "'" + name.text + "' is declared here"});
      return false;
    }
    region.name = name.text;
    region.span = name.span;
    unit_.regions.push_back(std::move(region));
    return true;
  }

  bool ParseRegion() {
    p_.Next();
    auto name = p_.ExpectName("the name of a region");
    if (!name || !p_.Expect(":")) return false;
    Region region;
    if (p_.AcceptWord("rw")) {
      region.access = RegionAccess::kReadWrite;
    } else if (!p_.AcceptWord("ro")) {
      p_.ErrorExpected("'ro' or 'rw'");
      return false;
    }
    auto size = p_.ExpectInteger("the size of a region in bytes", 0, int64_t{1} << 30);
    if (!size) return false;
    region.size = *size;
    std::map<std::string, int64_t, std::less<>> words;  // their numbers, by name
    if (p_.At("{")) {
      const bool read = p_.ParseList("{", "}", [&] {
        const uint32_t begin = p_.Here();
        if (auto label = p_.AcceptLabel()) {
          const auto number = static_cast<int64_t>(words.size());
          if (region.names.size() != region.values.size() ||
              !words.emplace(label->text, number).second) {
            p_.Error(label->span, "the words of a region have names of their own, all or none");
            return false;
          }
          region.names.push_back(label->text);
        }
        auto word = p_.ExpectInteger("a word", -INT64_MAX);
        if (!word) return false;
        region.values.push_back(*word);
        if (region.names.empty() || region.names.size() == region.values.size()) return true;
        p_.Error(p_.SpanFrom(begin), "the words of a region have names, all or none");
        return false;
      });
      if (!read) return false;
    }
    if (!AddRegion(std::move(region), *name)) return false;
    words_.resize(unit_.regions.size());
    words_.back() = std::move(words);
    return true;
  }

  bool ParseQueue() {
    p_.Next();
    auto name = p_.ExpectName("the name of a queue");
    if (!name || !p_.Expect(":")) return false;
    auto capacity = p_.ExpectInteger("the capacity of a queue in descriptors", 1, 1 << 20);
    if (!capacity) return false;
    Region region;
    region.size = *capacity;
    if (p_.Accept("->")) {
      region.access = RegionAccess::kQueue;
    } else if (p_.At("<") && p_.Peek(1).Is("-")) {
      p_.Next();
      p_.Next();
      region.access = RegionAccess::kCompletion;
    } else {
      p_.ErrorExpected("'->' or '<-' and a stream");
      return false;
    }
    auto stream = p_.ExpectName("a stream");
    if (!stream) return false;
    if (std::find(streams_.begin(), streams_.end(), stream->text) == streams_.end()) {
      p_.ErrorUnknown("stream", *stream, streams_, Kind::kSafety);
      return false;
    }
    region.stream = stream->text;
    return AddRegion(std::move(region), *name);
  }

  bool ParseBlock() {
    p_.Next();
    auto name = p_.ExpectName("the name of a block");
    if (!name) return false;
    const auto id = static_cast<uint32_t>(unit_.blocks.size());
    if (auto [it, added] = block_ids_.emplace(name->text, id); !added) {
      p_.Error(name->span, "block '" + name->text + "' is declared twice", Kind::kConsistency)
          .With({unit_.blocks[it->second].span, "'" + name->text + "' is declared here"});
      return false;
    }
    if (!p_.Expect("{")) return false;
    unit_.blocks.push_back({name->text, {}, name->span});
    const int inside = p_.bracket_depth();
    while (!p_.At("}") && !p_.AtEnd()) {
      const uint32_t field = p_.Here();
      ControlInstruction instruction;
      if (ParseInstruction(instruction)) {
        instruction.span = p_.SpanFrom(field);
        unit_.blocks.back().instructions.push_back(std::move(instruction));
      } else {
        p_.SkipToField(inside, field);
      }
    }
    return p_.Expect("}");
  }

  std::optional<Register> ParseRegister() {
    if (!p_.Expect("%")) return std::nullopt;
    auto number = p_.ExpectInteger("the number of a register", 0, kMaxRegister);
    if (!number) return std::nullopt;
    registers_ = std::max(registers_, static_cast<uint32_t>(*number) + 1);
    return static_cast<Register>(*number);
  }

  bool ParseOperand(Operand& operand) {
    if (p_.At("%")) {
      auto number = ParseRegister();
      if (!number) return false;
      operand = Operand::Reg(*number);
      return true;
    }
    if (p_.Accept("@")) {
      auto name = p_.ExpectName("a sequence");
      if (!name) return false;
      auto found = sequence_ids_.find(name->text);
      if (found == sequence_ids_.end()) {
        p_.ErrorUnknown("sequence", *name, sequences_, Kind::kSafety);
        return false;
      }
      operand = Operand::Sequence(found->second);
      return true;
    }
    auto value = p_.ExpectInteger("a register, a number or a sequence", -INT64_MAX);
    if (!value) return false;
    operand = Operand::Imm(*value);
    return true;
  }

  bool ParseRegionName(ControlInstruction& instruction) {
    auto name = p_.ExpectName("a region");
    if (!name) return false;
    if (auto found = region_ids_.find(name->text); found != region_ids_.end()) {
      instruction.region = found->second;
      return true;
    }
    std::vector<std::string> names;
    for (const Region& region : unit_.regions) names.push_back(region.name);
    p_.ErrorUnknown("region", *name, names, Kind::kSafety);
    return false;
  }

  // .8 limits[16]
  bool ParsePlace(ControlInstruction& instruction) {
    if (!p_.Expect(".")) return false;
    auto width = p_.ExpectInteger("a width of 1, 2, 4 or 8 bytes", 1, 8);
    if (!width) return false;
    instruction.width = static_cast<int>(*width);
    return ParseRegionName(instruction) && p_.Expect("[") && ParseOffset(instruction) &&
           p_.Expect("]");
  }

  bool ParseOffset(ControlInstruction& instruction) {
    if (!p_.AtName()) return ParseOperand(instruction.a);
    auto name = p_.ExpectName("a word of the region");
    words_.resize(unit_.regions.size());
    const auto& words = words_[instruction.region];
    const auto found = words.find(name->text);
    if (found == words.end()) {
      p_.ErrorUnknown("word", *name, unit_.regions[instruction.region].names, Kind::kSafety);
      return false;
    }
    instruction.a = Operand::Imm(8 * found->second);
    return true;
  }

  bool ParseBoth(ControlInstruction& instruction) {
    return ParseOperand(instruction.a) && p_.Expect(",") && ParseOperand(instruction.b);
  }

  bool ParseTarget(bool otherwise) {
    auto name = p_.ExpectName("a block");
    if (!name) return false;
    const ControlBlock& block = unit_.blocks.back();
    targets_.push_back({unit_.blocks.size() - 1, block.instructions.size(), otherwise, *name});
    return true;
  }

  // The op's suffix: `.add`. Names are those of one of the tables above.
  template <size_t N>
  std::optional<size_t> ParseSuffix(std::string_view what,
                                    const std::array<std::string_view, N>& names) {
    if (!p_.Expect(".")) return std::nullopt;
    auto name = p_.ExpectName(what);
    if (!name) return std::nullopt;
    auto found = std::find(names.begin(), names.end(), name->text);
    if (found == names.end()) {
      p_.ErrorUnknown(what, *name, std::vector<std::string>(names.begin(), names.end()));
      return std::nullopt;
    }
    return static_cast<size_t>(found - names.begin());
  }

  bool ParseInstruction(ControlInstruction& instruction) {
    if (p_.At("%")) {
      auto result = ParseRegister();
      if (!result || !p_.Expect("=")) return false;
      instruction.result = *result;
      return ParseValue(instruction);
    }
    auto name = p_.ExpectName("an instruction");
    if (!name) return false;
    if (name->text == "store") {
      instruction.op = ControlOp::kStore;
      return ParsePlace(instruction) && p_.Expect(",") && ParseOperand(instruction.b);
    }
    if (name->text == "branch") {
      instruction.op = ControlOp::kBranch;
      return ParseOperand(instruction.a) && p_.Expect("?") && ParseTarget(false) &&
             p_.Expect(":") && ParseTarget(true);
    }
    if (name->text == "jump") {
      instruction.op = ControlOp::kJump;
      return ParseTarget(false);
    }
    if (name->text == "queue_push") {
      instruction.op = ControlOp::kQueuePush;
      return ParseRegionName(instruction) && p_.Expect(",") && ParseOperand(instruction.a);
    }
    if (name->text == "terminate") {
      instruction.op = ControlOp::kTerminate;
      return true;
    }
    p_.ErrorUnknown("instruction", *name, {"store", "branch", "jump", "queue_push", "terminate"});
    return false;
  }

  bool ParseValue(ControlInstruction& instruction) {
    auto name = p_.ExpectName("an instruction with a result");
    if (!name) return false;
    if (name->text == "load") {
      instruction.op = ControlOp::kLoad;
      return ParsePlace(instruction);
    }
    if (name->text == "hash") {
      instruction.op = ControlOp::kHash;
      return ParseOperand(instruction.a);
    }
    if (name->text == "arith") {
      instruction.op = ControlOp::kArith;
      auto op = ParseSuffix("arithmetic operation", kArithNames);
      if (!op) return false;
      instruction.arith = static_cast<ArithOp>(*op);
      return ParseBoth(instruction);
    }
    if (name->text == "cmp") {
      instruction.op = ControlOp::kCmp;
      auto op = ParseSuffix("comparison", kCmpNames);
      if (!op) return false;
      instruction.cmp = static_cast<CmpOp>(*op);
      return ParseBoth(instruction);
    }
    if (name->text == "queue_pop") {
      instruction.op = ControlOp::kQueuePop;
      return ParseRegionName(instruction);
    }
    p_.ErrorUnknown("instruction with a result", *name,
                    {"load", "hash", "arith", "cmp", "queue_pop"});
    return false;
  }

  // Branches may lead to blocks further down, so their names are looked up at the end.
  void ResolveTargets() {
    for (const Target& target : targets_) {
      // The instruction was dropped if something after the target did not parse.
      auto& instructions = unit_.blocks[target.block].instructions;
      if (target.instruction >= instructions.size()) continue;
      auto found = block_ids_.find(target.name.text);
      if (found == block_ids_.end()) {
        std::vector<std::string> names;
        for (const ControlBlock& block : unit_.blocks) names.push_back(block.name);
        p_.ErrorUnknown("block", target.name, names, Kind::kSafety);
        if (p_.stopped()) return;
        continue;
      }
      ControlInstruction& instruction = instructions[target.instruction];
      (target.otherwise ? instruction.otherwise : instruction.target) = found->second;
    }
  }

  ParserBase& p_;
  const std::vector<std::string>& sequences_;
  const std::vector<std::string>& streams_;
  std::map<std::string, uint32_t, std::less<>> sequence_ids_, region_ids_, block_ids_;
  ControlUnit unit_;
  std::vector<std::map<std::string, int64_t, std::less<>>> words_;  // by region; as long as asked
  uint32_t registers_ = 0;
  std::vector<Target> targets_;
};

}  // namespace

std::string_view ArithOpName(ArithOp op) { return kArithNames[static_cast<size_t>(op)]; }
std::string_view CmpOpName(CmpOp op) { return kCmpNames[static_cast<size_t>(op)]; }

void PrintControl(const ControlUnit& unit, const std::vector<std::string>& sequences,
                  support::Printer& out) {
  out.Open("control " + unit.name + " {");
  for (const Region& region : unit.regions) PrintRegion(region, out);
  for (const ControlBlock& block : unit.blocks) {
    out.Open("block " + block.name + " {");
    for (const ControlInstruction& instruction : block.instructions) {
      out.Line(PrintInstruction(unit, instruction, sequences));
    }
    out.Close("}");
  }
  out.Close("}");
}

std::optional<ControlUnit> ParseControl(ParserBase& parser,
                                        const std::vector<std::string>& sequences,
                                        const std::vector<std::string>& streams) {
  return Parser(parser, sequences, streams).Parse();
}

}  // namespace l3c::l0
