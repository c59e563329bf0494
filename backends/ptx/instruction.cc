#include "backends/ptx/instruction.h"

#include <utility>

namespace l3c::ptx {

Operand Operand::Reg(VReg reg) {
  Operand operand;
  operand.reg = reg;
  return operand;
}

Operand Operand::Integer(int64_t value) {
  Operand operand;
  operand.kind = Kind::kInteger;
  operand.integer = value;
  return operand;
}

Operand Operand::F32(float value) {
  Operand operand;
  operand.kind = Kind::kF32;
  operand.number = static_cast<double>(value);
  return operand;
}

Operand Operand::F64(double value) {
  Operand operand;
  operand.kind = Kind::kF64;
  operand.number = value;
  return operand;
}

Operand Operand::Name(std::string name) {
  Operand operand;
  operand.kind = Kind::kName;
  operand.name = std::move(name);
  return operand;
}

Operand Operand::Address(VReg base, int64_t bytes) {
  Operand operand = Reg(base);
  operand.kind = Kind::kAddress;
  operand.integer = bytes;
  return operand;
}

Operand Operand::Address(std::string variable, int64_t bytes) {
  Operand operand = Name(std::move(variable));
  operand.kind = Kind::kAddress;
  operand.integer = bytes;
  return operand;
}

Operand Operand::Vector(std::vector<VReg> regs) {
  Operand operand;
  operand.kind = Kind::kVector;
  operand.vector = std::move(regs);
  return operand;
}

Operand Operand::Label(uint32_t label) {
  Operand operand = Integer(label);
  operand.kind = Kind::kLabel;
  return operand;
}

}  // namespace l3c::ptx
