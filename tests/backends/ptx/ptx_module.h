// Reads PTX text, as the PTX ISA describes it: one module with one .entry, the directives and the
// forms of operands that compute kernels are made of. It knows nothing of who wrote the text.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::testing {

struct PtxOperand {
  enum class Kind : uint8_t { kReg, kInteger, kName, kAddress, kVector, kLabel };
  Kind kind = Kind::kReg;
  uint32_t reg = 0;    // kReg; kAddress with a register
  uint64_t bits = 0;   // kInteger: also of 0f… and 0d…
  int64_t offset = 0;  // kAddress
  std::string name;    // kName, kLabel; kAddress of a variable
  std::vector<uint32_t> vector;
  size_t target = 0;  // kLabel: index of the instruction
};

struct PtxInstruction {
  std::vector<std::string> opcode;  // "ld", "global", "f32"
  std::vector<PtxOperand> operands;
  std::optional<uint32_t> guard;
  bool unless = false;
  int line = 0;
  std::string text;

  bool Has(std::string_view part) const;
};

struct PtxRegister {
  std::string name;
  std::string type;  // "pred", "b32", …
};

struct PtxVariable {
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct PtxModule {
  std::string version;
  std::string target;
  std::string entry;
  std::vector<std::string> params;             // .u64 each
  std::array<int64_t, 3> threads = {1, 1, 1};  // .reqntid
  std::map<std::string, PtxVariable> shared;
  int64_t shared_bytes = 0;
  std::vector<PtxRegister> registers;
  std::vector<PtxInstruction> instructions;
};

// Throws std::runtime_error, "line N: …".
PtxModule ParsePtx(std::string_view text);

}  // namespace l3c::testing
