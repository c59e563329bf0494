// PTX before it is text: instructions over virtual registers.
//
// Opcodes, their types and modifiers are those of the PTX ISA (NVIDIA, "Parallel Thread Execution
// ISA", version 8.6), spelled as there: "fma.rn.f32".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace l3c::ptx {

enum class RegClass : uint8_t { kPred, kB32, kB64, kF32, kF64 };
inline constexpr int kRegClasses = 5;

using VReg = uint32_t;

struct Operand {
  enum class Kind : uint8_t {
    kReg,
    kInteger,
    kF32,
    kF64,
    kName,     // a special register, or a variable's address
    kAddress,  // register or variable, + integer bytes
    kVector,   // several registers, of one access
    kLabel,
  };
  Kind kind = Kind::kReg;
  VReg reg = 0;
  int64_t integer = 0;
  double number = 0;
  std::string name;  // kName; kAddress of a variable, else ""
  std::vector<VReg> vector;

  static Operand Reg(VReg reg);
  static Operand Integer(int64_t value);
  static Operand F32(float value);
  static Operand F64(double value);
  static Operand Name(std::string name);
  static Operand Address(VReg base, int64_t bytes);
  static Operand Address(std::string variable, int64_t bytes);
  static Operand Vector(std::vector<VReg> regs);
  static Operand Label(uint32_t label);
};

struct Instruction {
  std::string opcode;  // "": the label stands here
  std::vector<Operand> dst;
  std::vector<Operand> src;
  int64_t guard = -1;   // a predicate; -1: none
  bool unless = false;  // runs where the predicate is false
};

// An .entry. Its parameters are pointers to global memory.
struct Function {
  std::string name;
  std::vector<std::string> params;
  int64_t threads[3] = {1, 1, 1};
  int64_t shared = 0;  // bytes of the variable kShared
  std::vector<RegClass> registers;
  std::vector<Instruction> body;
};
inline constexpr const char* kShared = "shared_memory";

}  // namespace l3c::ptx
