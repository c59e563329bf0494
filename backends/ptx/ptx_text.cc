#include "backends/ptx/ptx_text.h"

#include <array>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/ptx/registers.h"

namespace l3c::ptx {
namespace {

struct ClassText {
  const char* prefix;
  const char* type;
};
constexpr std::array<ClassText, kRegClasses> kClasses = {
    {{"%p", ".pred"}, {"%r", ".b32"}, {"%rd", ".b64"}, {"%f", ".f32"}, {"%fd", ".f64"}}};

class TextWriter {
 public:
  explicit TextWriter(const Function& function)
      : function_(function), numbering_(NumberRegisters(function)) {}

  std::string Write(std::string_view target, std::string_view isa) {
    absl::StrAppend(&out_, ".version ", std::string(isa), "\n.target ", std::string(target),
                    "\n.address_size 64\n\n");
    absl::StrAppend(&out_, ".visible .entry ", function_.name, "(");
    const char* separator = "\n";
    for (const std::string& param : function_.params) {
      absl::StrAppend(&out_, separator, "    .param .u64 ", param);
      separator = ",\n";
    }
    absl::StrAppend(&out_, "\n)\n.reqntid ", function_.threads[0], ", ", function_.threads[1], ", ",
                    function_.threads[2], "\n{\n");
    for (size_t c = 0; c < kClasses.size(); ++c) {
      if (numbering_.count[c] == 0) continue;
      // %p<n> declares %p0 … %p(n-1).
      absl::StrAppend(&out_, "    .reg ", kClasses[c].type, " ", kClasses[c].prefix, "<",
                      numbering_.count[c] + 1, ">;\n");
    }
    if (function_.shared > 0) {
      absl::StrAppend(&out_, "    .shared .align 16 .b8 ", kShared, "[", function_.shared, "];\n");
    }
    out_ += '\n';
    for (const Instruction& instruction : function_.body) WriteInstruction(instruction);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  std::string Register(VReg reg) const {
    return absl::StrCat(kClasses[static_cast<size_t>(function_.registers[reg])].prefix,
                        numbering_.number[reg]);
  }

  std::string Text(const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::kReg:
        return Register(operand.reg);
      case Operand::Kind::kInteger:
        return absl::StrCat(operand.integer);
      case Operand::Kind::kF32:
        return absl::StrFormat("0f%08X",
                               std::bit_cast<uint32_t>(static_cast<float>(operand.number)));
      case Operand::Kind::kF64:
        return absl::StrFormat("0d%016X", std::bit_cast<uint64_t>(operand.number));
      case Operand::Kind::kName:
        return operand.name;
      case Operand::Kind::kAddress: {
        const std::string base = operand.name.empty() ? Register(operand.reg) : operand.name;
        if (operand.integer == 0) return absl::StrCat("[", base, "]");
        return absl::StrCat("[", base, "+", operand.integer, "]");
      }
      case Operand::Kind::kVector: {
        std::string text = "{";
        for (VReg reg : operand.vector) {
          absl::StrAppend(&text, text.size() > 1 ? ", " : "", Register(reg));
        }
        return text + "}";
      }
      case Operand::Kind::kLabel:
        return absl::StrCat("$L", operand.integer);
    }
    return "";
  }

  void WriteInstruction(const Instruction& instruction) {
    if (instruction.opcode.empty()) {
      absl::StrAppend(&out_, Text(instruction.src[0]), ":\n");
      return;
    }
    out_ += "    ";
    if (instruction.guard >= 0) {
      absl::StrAppend(&out_, instruction.unless ? "@!" : "@",
                      Register(static_cast<VReg>(instruction.guard)), " ");
    }
    out_ += instruction.opcode;
    const char* separator = " ";
    for (const auto* operands : {&instruction.dst, &instruction.src}) {
      for (const Operand& operand : *operands) {
        absl::StrAppend(&out_, separator, Text(operand));
        separator = ", ";
      }
    }
    out_ += ";\n";
  }

  const Function& function_;
  const Numbering numbering_;
  std::string out_;
};

}  // namespace

std::string PrintModule(const Function& function, std::string_view target, std::string_view isa) {
  return TextWriter(function).Write(target, isa);
}

}  // namespace l3c::ptx
