// CUSTOM: operations beyond the closed set, each declared in a file of its own (custom_NAME.cc) and
// registered by one line of custom_op.cc. Parsing, printing, checks, the interpreter, the cost
// model and linear code know an op by what is declared here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/linear_code.h"

namespace l3c::l0 {

// A number of any dtype, as the interpreter keeps it: integers in 64 bits (u64: as its bits), f32
// as the double of the same value.
union Number {
  double f;
  int64_t i;
};

// What one evaluation is given.
struct CustomArguments {
  std::span<const Number> operands;
  std::span<const void* const> memory;           // a buffer for each parameter that is read
  std::span<const tensor::Shape* const> shapes;  // of those
  bool widen = false;                            // floats are kept and computed in double
};

// Where linear code is made. Nothing of what is appended in a loop may be used behind it.
struct CustomSite {
  LinearCode& code;
  std::span<const uint32_t> memory;  // `param` of loads
  std::span<const tensor::Shape* const> shapes;
  std::span<const Reg> operands;  // of one lane or of `lanes`
  // Of each operand that counts by one from lane to lane: its first lane; else kNoReg.
  std::span<const Reg> first_lane;
  int64_t lanes = 1;
  uint16_t active = 0;  // as in LinearOp
};

// Elements of a parameter that a launch may read: [begin, end).
struct CustomRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct CustomOp {
  std::string_view name;  // printed `NAME %a, %b`, or `NAME %a, %b of p, q`
  std::vector<DType> operands;
  DType result = DType::kF32;
  // Of the parameters that it reads, as a whole or in part, whatever its operands are. They are
  // `in`: nothing that the kernel writes can be among them.
  std::vector<DType> memory;
  // The operands that are the same in all lanes.
  std::vector<bool> uniform;
  // Why it cannot read parameters of these shapes, or "".
  std::string (*refuses)(std::span<const tensor::Shape* const>) = nullptr;
  // Its footprint, by parameter: nothing else is read.
  std::vector<CustomRange> (*footprint)(std::span<const tensor::Shape* const>) = nullptr;
  // Arithmetic of one evaluation; bytes are those of the footprint.
  KernelWork (*work)(std::span<const tensor::Shape* const>) = nullptr;
  Number (*evaluate)(const CustomArguments&) = nullptr;
  // In terms of other linear ops; without it backends have a rule of their own.
  Reg (*linearize)(const CustomSite&) = nullptr;
};

std::span<const CustomOp> CustomOps();                // in the order of the table
const CustomOp* FindCustomOp(std::string_view name);  // nullptr: there is none
// Shapes of the parameters that it reads.
std::vector<const tensor::Shape*> CustomShapes(const Kernel& kernel, const Uop& uop);

// ---- The table --------------------------------------------------------------------------------

CustomOp PhiloxOp();
CustomOp Bf16PairOp();
CustomOp Bf16DotOp();
CustomOp CsrDotOp();

}  // namespace l3c::l0
