#include "backends/x86/assembler.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace l3c::x86 {
namespace {

constexpr std::array<const char*, 16> kNames = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                "r12", "r13", "r14", "r15"};
constexpr std::array<const char*, 8> kNarrow4 = {"eax", "ecx", "edx", "ebx",
                                                 "esp", "ebp", "esi", "edi"};
constexpr std::array<const char*, 8> kNarrow2 = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
constexpr std::array<const char*, 8> kNarrow1 = {"al",  "cl",  "dl",  "bl",
                                                 "spl", "bpl", "sil", "dil"};

bool FitsByte(int64_t value) { return value >= -128 && value <= 127; }

const char* NameOf(Binary op) {
  switch (op) {
    case Binary::kAdd:
      return "add";
    case Binary::kOr:
      return "or";
    case Binary::kAnd:
      return "and";
    case Binary::kSub:
      return "sub";
    case Binary::kXor:
      return "xor";
    case Binary::kCmp:
      return "cmp";
  }
  return "";
}

const char* NameOf(Shift op) {
  return op == Shift::kRor ? "ror" : op == Shift::kShl ? "shl" : "shr";
}

const char* NameOf(Condition condition) {
  switch (condition) {
    case Condition::kAboveOrEqual:
      return "ae";
    case Condition::kEqual:
      return "e";
    case Condition::kNotEqual:
      return "ne";
    case Condition::kSign:
      return "s";
    case Condition::kLess:
      return "l";
    case Condition::kGreater:
      return "g";
  }
  return "";
}

const char* SizeOf(int width) {
  return width == 1   ? "byte ptr "
         : width == 2 ? "word ptr "
         : width == 4 ? "dword ptr "
                      : "qword ptr ";
}

}  // namespace

std::string Assembler::Name(Gpr reg, int width) {
  if (width == 8) return kNames[reg];
  if (reg >= kR8) {
    return std::string(kNames[reg]) + (width == 4 ? "d" : width == 2 ? "w" : "b");
  }
  return width == 4 ? kNarrow4[reg] : width == 2 ? kNarrow2[reg] : kNarrow1[reg];
}

std::string Assembler::Name(Memory memory) const {
  if (memory.constant >= 0) return "[rip + .Lconst" + std::to_string(memory.constant) + "]";
  if (memory.displacement == 0) return "[" + Name(memory.base) + "]";
  return "[" + Name(memory.base) + (memory.displacement < 0 ? " - " : " + ") +
         std::to_string(std::abs(int64_t{memory.displacement})) + "]";
}

void Assembler::Line(const std::string& text) {
  ++instructions_;
  if (listing_) text_ += "\t" + text + "\n";
}

void Assembler::Comment(const std::string& text) {
  if (listing_) text_ += "\t# " + text + "\n";
}

Label Assembler::NewLabel(std::string name) {
  label_places_.push_back(-1);
  label_names_.push_back(std::move(name));
  return static_cast<Label>(label_places_.size() - 1);
}

void Assembler::Bind(Label label) {
  label_places_[static_cast<size_t>(label)] = static_cast<int64_t>(code_.size());
  if (listing_) text_ += label_names_[static_cast<size_t>(label)] + ":\n";
}

Memory Assembler::Constant(int64_t value) {
  const auto found = std::find(constants_.begin(), constants_.end(), value);
  Memory memory;
  memory.constant = static_cast<int>(found - constants_.begin());
  if (found == constants_.end()) constants_.push_back(value);
  return memory;
}

void Assembler::Bytes(int64_t value, int count) {
  for (int i = 0; i < count; ++i) Byte(static_cast<int>(value >> (8 * i) & 0xff));
}

void Assembler::Opcode(int opcode) {
  if (opcode > 0xff) Byte(0x0f);
  Byte(opcode & 0xff);
}

void Assembler::Encode(int opcode, int reg, Gpr rm, bool wide, bool byte_register) {
  const int rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) | (rm >= 8 ? 1 : 0);
  if (rex != 0x40 || byte_register) Byte(rex);
  Opcode(opcode);
  Byte(0xc0 | (reg & 7) << 3 | (rm & 7));
}

void Assembler::Encode(int opcode, int reg, Memory rm, bool wide, bool byte_register,
                       int immediate_bytes) {
  const bool pool = rm.constant >= 0;
  const int rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) | (!pool && rm.base >= 8 ? 1 : 0);
  if (rex != 0x40 || byte_register) Byte(rex);
  Opcode(opcode);
  const int field = (reg & 7) << 3;
  if (pool) {
    Byte(field | 5);
    fixups_.push_back({code_.size(), rm.constant, immediate_bytes, true});
    Bytes(0, 4);
    return;
  }
  const int base = rm.base & 7;
  // rbp and r13 have no form without a displacement; rsp and r12 need the second byte.
  const bool none = rm.displacement == 0 && base != 5;
  const bool small = FitsByte(rm.displacement);
  Byte((none ? 0 : small ? 0x40 : 0x80) | field | base);
  if (base == 4) Byte(0x24);
  if (!none) Bytes(rm.displacement, small ? 1 : 4);
}

void Assembler::Move(Gpr to, Gpr from) {
  Encode(0x8b, to, from, true);
  Line("mov " + Name(to) + ", " + Name(from));
}

void Assembler::Move(Gpr to, int64_t value) {
  if (value >= 0 && value <= std::numeric_limits<uint32_t>::max()) {
    if (to >= kR8) Byte(0x41);
    Byte(0xb8 | (to & 7));
    Bytes(value, 4);
    Line("mov " + Name(to, 4) + ", " + std::to_string(value));
  } else if (value >= std::numeric_limits<int32_t>::min() && value < 0) {
    Encode(0xc7, 0, to, true);
    Bytes(value, 4);
    Line("mov " + Name(to) + ", " + std::to_string(value));
  } else {
    Byte(0x48 | (to >= kR8 ? 1 : 0));
    Byte(0xb8 | (to & 7));
    Bytes(value, 8);
    Line("movabs " + Name(to) + ", " + std::to_string(value));
  }
}

void Assembler::Load(Gpr to, Memory from, int width) {
  if (width == 8) {
    Encode(0x8b, to, from, true);
    Line("mov " + Name(to) + ", " + Name(from));
  } else if (width == 4) {
    Encode(0x8b, to, from, false);
    Line("mov " + Name(to, 4) + ", " + Name(from));
  } else {
    Encode(width == 2 ? 0x1b7 : 0x1b6, to, from, false);
    Line("movzx " + Name(to, 4) + ", " + SizeOf(width) + Name(from));
  }
}

void Assembler::Store(Memory to, Gpr from, int width) {
  if (width == 2) Byte(0x66);
  Encode(width == 1 ? 0x88 : 0x89, from, to, width == 8, /*byte_register=*/width == 1);
  Line("mov " + Name(to) + ", " + Name(from, width));
}

void Assembler::StoreImmediate(Memory to, int32_t value, int width) {
  if (width == 2) Byte(0x66);
  const int bytes = std::min(width, 4);
  Encode(width == 1 ? 0xc6 : 0xc7, 0, to, width == 8, false, bytes);
  Bytes(value, bytes);
  const int64_t shown = width == 1   ? static_cast<int8_t>(value)
                        : width == 2 ? static_cast<int16_t>(value)
                                     : value;
  Line("mov " + std::string(SizeOf(width)) + Name(to) + ", " + std::to_string(shown));
}

void Assembler::Address(Gpr to, Memory of) {
  Encode(0x8d, to, of, true);
  Line("lea " + Name(to) + ", " + Name(of));
}

void Assembler::Op(Binary op, Gpr to, Gpr from) {
  Encode(static_cast<int>(op), to, from, true);
  Line(std::string(NameOf(op)) + " " + Name(to) + ", " + Name(from));
}

void Assembler::Op(Binary op, Gpr to, Memory from) {
  Encode(static_cast<int>(op), to, from, true);
  Line(std::string(NameOf(op)) + " " + Name(to) + ", " + Name(from));
}

void Assembler::Op(Binary op, Gpr to, int32_t value) {
  const bool small = FitsByte(value);
  Encode(small ? 0x83 : 0x81, static_cast<int>(op) >> 3, to, true);
  Bytes(value, small ? 1 : 4);
  Line(std::string(NameOf(op)) + " " + Name(to) + ", " + std::to_string(value));
}

void Assembler::CompareImmediate(Memory with, int32_t value) {
  const bool small = FitsByte(value);
  Encode(small ? 0x83 : 0x81, 7, with, true, false, small ? 1 : 4);
  Bytes(value, small ? 1 : 4);
  Line("cmp qword ptr " + Name(with) + ", " + std::to_string(value));
}

void Assembler::OrInto(Memory to, Gpr from) {
  Encode(0x09, from, to, true);
  Line("or " + Name(to) + ", " + Name(from));
}

void Assembler::Multiply(Gpr to, Gpr by) {
  Encode(0x1af, to, by, true);
  Line("imul " + Name(to) + ", " + Name(by));
}

void Assembler::Multiply(Gpr to, Memory by) {
  Encode(0x1af, to, by, true);
  Line("imul " + Name(to) + ", " + Name(by));
}

void Assembler::Multiply(Gpr to, Gpr of, int32_t by) {
  const bool small = FitsByte(by);
  Encode(small ? 0x6b : 0x69, to, of, true);
  Bytes(by, small ? 1 : 4);
  Line("imul " + Name(to) + ", " + Name(of) + ", " + std::to_string(by));
}

void Assembler::Multiply(Gpr to, Memory of, int32_t by) {
  const bool small = FitsByte(by);
  Encode(small ? 0x6b : 0x69, to, of, true, false, small ? 1 : 4);
  Bytes(by, small ? 1 : 4);
  Line("imul " + Name(to) + ", " + Name(of) + ", " + std::to_string(by));
}

void Assembler::Negate(Gpr of) {
  Encode(0xf7, 3, of, true);
  Line("neg " + Name(of));
}

void Assembler::Decrement(Memory of) {
  Encode(0xff, 1, of, true);
  Line("dec qword ptr " + Name(of));
}

void Assembler::ShiftBy(Shift op, Gpr of, int amount) {
  Encode(0xc1, static_cast<int>(op), of, true);
  Byte(amount);
  Line(std::string(NameOf(op)) + " " + Name(of) + ", " + std::to_string(amount));
}

void Assembler::ShiftByCl(Shift op, Gpr of) {
  Encode(0xd3, static_cast<int>(op), of, true);
  Line(std::string(NameOf(op)) + " " + Name(of) + ", cl");
}

void Assembler::Test(Gpr of) {
  Encode(0x85, of, of, true);
  Line("test " + Name(of) + ", " + Name(of));
}

void Assembler::SetAl(Condition condition) {
  Opcode(0x190 | static_cast<int>(condition));
  Byte(0xc0);
  Line(std::string("set") + NameOf(condition) + " al");
}

void Assembler::ZeroExtendAl(Gpr to) {
  Encode(0x1b6, to, kRax, false);
  Line("movzx " + Name(to, 4) + ", al");
}

void Assembler::Push(Gpr of) {
  if (of >= kR8) Byte(0x41);
  Byte(0x50 | (of & 7));
  Line("push " + Name(of));
}

void Assembler::Pop(Gpr to) {
  if (to >= kR8) Byte(0x41);
  Byte(0x58 | (to & 7));
  Line("pop " + Name(to));
}

void Assembler::Refer(Label label) {
  fixups_.push_back({code_.size(), label, 0, false});
  Bytes(0, 4);
}

void Assembler::Call(Label to) {
  Byte(0xe8);
  Refer(to);
  Line("call " + label_names_[static_cast<size_t>(to)]);
}

void Assembler::CallThrough(Memory pointer) {
  Encode(0xff, 2, pointer, false);
  Line("call qword ptr " + Name(pointer));
}

void Assembler::Jump(Label to) {
  Byte(0xe9);
  Refer(to);
  Line("jmp " + label_names_[static_cast<size_t>(to)]);
}

void Assembler::JumpIf(Condition condition, Label to) {
  Opcode(0x180 | static_cast<int>(condition));
  Refer(to);
  Line(std::string("j") + NameOf(condition) + " " + label_names_[static_cast<size_t>(to)]);
}

void Assembler::Return() {
  Byte(0xc3);
  Line("ret");
}

std::vector<std::byte> Assembler::Finish() {
  while (code_.size() % 8 != 0) Byte(0xcc);
  const auto pool = static_cast<int64_t>(code_.size());
  if (listing_ && !constants_.empty()) text_ += "\t.balign 8, 0xcc\n";
  for (size_t c = 0; c < constants_.size(); ++c) {
    Bytes(constants_[c], 8);
    if (listing_) {
      text_ += ".Lconst" + std::to_string(c) + ":\n\t.quad " + std::to_string(constants_[c]) + "\n";
    }
  }
  for (const Fixup& fixup : fixups_) {
    const int64_t target =
        fixup.constant ? pool + 8 * fixup.target : label_places_[static_cast<size_t>(fixup.target)];
    const auto distance =
        static_cast<int32_t>(target - static_cast<int64_t>(fixup.at) - 4 - fixup.behind);
    std::memcpy(code_.data() + fixup.at, &distance, sizeof distance);
  }
  return std::move(code_);
}

}  // namespace l3c::x86
