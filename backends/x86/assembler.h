// The few instructions of x86-64 that control units become, as bytes and, if asked for, as text.
//
// Registers are numbered as in their encoding. Jumps and calls go to labels, 64-bit constants to a
// pool behind the code; everything is relative to the code's own place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace l3c::x86 {

enum Gpr : uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};

// [base + displacement], or a constant of the pool.
struct Memory {
  Gpr base = kRax;
  int32_t displacement = 0;
  int constant = -1;
};

enum class Condition : uint8_t {  // as encoded
  kAboveOrEqual = 3,
  kEqual = 4,
  kNotEqual = 5,
  kSign = 8,
  kLess = 12,
  kGreater = 15,
};

// Operations with two operands: destination op= source. The value is the opcode of `op r, r/m`.
enum class Binary : uint8_t {
  kAdd = 0x03,
  kOr = 0x0b,
  kAnd = 0x23,
  kSub = 0x2b,
  kXor = 0x33,
  kCmp = 0x3b
};
enum class Shift : uint8_t { kRor = 1, kShl = 4, kShr = 5 };  // the opcode's extension

using Label = int;

class Assembler {
 public:
  explicit Assembler(bool listing) : listing_(listing) {}

  Label NewLabel(std::string name);
  void Bind(Label label);
  Memory Constant(int64_t value);
  // Text of its own line, in the listing only.
  void Comment(const std::string& text);

  void Move(Gpr to, Gpr from);
  void Move(Gpr to, int64_t value);               // in the shortest form
  void Load(Gpr to, Memory from, int width = 8);  // narrow ones are filled with zeros
  void Store(Memory to, Gpr from, int width = 8);
  void StoreImmediate(Memory to, int32_t value, int width = 8);
  void Address(Gpr to, Memory of);
  void Op(Binary op, Gpr to, Gpr from);
  void Op(Binary op, Gpr to, Memory from);
  void Op(Binary op, Gpr to, int32_t value);
  void CompareImmediate(Memory with, int32_t value);
  void OrInto(Memory to, Gpr from);
  void Multiply(Gpr to, Gpr by);
  void Multiply(Gpr to, Memory by);
  void Multiply(Gpr to, Gpr of, int32_t by);
  void Multiply(Gpr to, Memory of, int32_t by);
  void Negate(Gpr of);
  void Decrement(Memory of);
  void ShiftBy(Shift op, Gpr of, int amount);
  void ShiftByCl(Shift op, Gpr of);
  void Test(Gpr of);
  void SetAl(Condition condition);
  void ZeroExtendAl(Gpr to);
  void Push(Gpr of);
  void Pop(Gpr to);
  void Call(Label to);
  void CallThrough(Memory pointer);
  void Jump(Label to);
  void JumpIf(Condition condition, Label to);
  void Return();

  int instructions() const { return instructions_; }  // so far

  // Fills in jumps and appends the constants. Once.
  std::vector<std::byte> Finish();
  std::string TakeListing() { return std::move(text_); }

 private:
  void Byte(int value) { code_.push_back(static_cast<std::byte>(value)); }
  void Bytes(int64_t value, int count);
  // Prefixes, opcode (two bytes when above 0xff: 0x0f before), and the operand r/m with `reg`.
  void Encode(int opcode, int reg, Gpr rm, bool wide, bool byte_register = false);
  void Encode(int opcode, int reg, Memory rm, bool wide, bool byte_register = false,
              int immediate_bytes = 0);
  void Opcode(int opcode);
  void Line(const std::string& text);
  void Refer(Label label);
  static std::string Name(Gpr reg, int width = 8);
  std::string Name(Memory memory) const;

  struct Fixup {
    size_t at;   // of the four bytes
    int target;  // label, or constant
    int behind;  // bytes of the instruction that follow them
    bool constant;
  };

  const bool listing_;
  std::vector<std::byte> code_;
  std::vector<int64_t> label_places_;
  std::vector<std::string> label_names_;
  std::vector<int64_t> constants_;
  std::vector<Fixup> fixups_;
  std::string text_;
  int instructions_ = 0;
};

}  // namespace l3c::x86
