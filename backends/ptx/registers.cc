#include "backends/ptx/registers.h"

#include <algorithm>
#include <string_view>

namespace l3c::ptx {
namespace {

template <typename Visit>
void EachRegister(const Operand& operand, const Visit& visit) {
  switch (operand.kind) {
    case Operand::Kind::kReg:
      return visit(operand.reg);
    case Operand::Kind::kAddress:
      if (operand.name.empty()) visit(operand.reg);
      return;
    case Operand::Kind::kVector:
      std::for_each(operand.vector.begin(), operand.vector.end(), visit);
      return;
    default:
      return;
  }
}

template <typename Visit>
void EachRead(const Instruction& instruction, const Visit& visit) {
  for (const Operand& operand : instruction.src) EachRegister(operand, visit);
  if (instruction.guard >= 0) visit(static_cast<VReg>(instruction.guard));
}

bool HasEffect(const Instruction& instruction) {
  return instruction.dst.empty() || std::string_view(instruction.opcode).starts_with("shfl");
}

}  // namespace

void RemoveDead(Function& function) {
  std::vector<Instruction>& body = function.body;
  std::vector<bool> kept(body.size(), false);
  std::vector<bool> read(function.registers.size(), false);
  // A loop's counter is read before it is written: until nothing is added.
  for (bool more = true; more;) {
    more = false;
    for (size_t i = body.size(); i-- > 0;) {
      if (kept[i]) continue;
      bool needed = HasEffect(body[i]);
      for (const Operand& dst : body[i].dst) {
        EachRegister(dst, [&](VReg reg) { needed |= read[reg]; });
      }
      if (!needed) continue;
      kept[i] = true;
      more = true;
      EachRead(body[i], [&](VReg reg) { read[reg] = true; });
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    if (!kept[i]) continue;
    if (next != i) body[next] = std::move(body[i]);
    ++next;
  }
  body.resize(next);
}

Numbering NumberRegisters(const Function& function) {
  Numbering numbering;
  numbering.number.assign(function.registers.size(), 0);
  std::vector<bool> seen(function.registers.size(), false);
  const auto number = [&](VReg reg) {
    if (seen[reg]) return;
    seen[reg] = true;
    numbering.number[reg] = ++numbering.count[static_cast<size_t>(function.registers[reg])];
  };
  for (const Instruction& instruction : function.body) {
    for (const Operand& dst : instruction.dst) EachRegister(dst, number);
    EachRead(instruction, number);
  }
  return numbering;
}

}  // namespace l3c::ptx
