// Control units to machine code of x86-64, by an emitter of our own: one pass, no library.
//
// A unit is a function of layers/l0/control_code.h. Four region pointers, the frame and eight
// values have registers; more values than that go to the stack. Each operation is one to three
// instructions; what is rarer or longer (the host's queues, the hash, a computed offset's check,
// the ways out) is one call or jump to a part behind the code. While no value is on the stack,
// nothing is pushed or spilled in the code itself.
//
//   rax, rcx                       scratch
//   rdx rsi rdi r8 r9 r10 r11 r12  values
//   rbx rbp r13 r14                the regions used most
//   r15                            the frame
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "layers/l0/control.h"
#include "layers/l0/control_code.h"

namespace l3c::x86 {

struct ControlCode {
  std::vector<std::byte> bytes;  // position independent; entered at the first
  std::string assembly;          // with `listing`: for GNU as, in Intel's syntax
  int slots = 0;                 // values that found no register
  // How many instructions each operation is, by block.
  std::vector<std::vector<int>> instructions;
};

// Of a unit that VerifyControl accepts. `name`: of the function in the listing.
ControlCode EmitControl(const l0::ControlUnit& unit, const std::string& name, bool listing);

// Code that can be run, for as long as the object lives. Null when the system gives no memory for
// it.
class LoadedControl {
 public:
  explicit LoadedControl(const ControlCode& code);
  ~LoadedControl();
  LoadedControl(const LoadedControl&) = delete;
  LoadedControl& operator=(const LoadedControl&) = delete;

  l0::ControlFn function() const { return function_; }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
  l0::ControlFn function_ = nullptr;
};

}  // namespace l3c::x86
