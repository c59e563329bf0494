// ptxas, where there is one: NVIDIA's own opinion of a PTX text. Found on PATH, or in bin/ of
// CUDA_HOME or CUDA_PATH.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace l3c::testing {

struct Assembled {
  std::string errors;  // "": it assembles
  int registers = 0;   // of a thread
  int spilled = 0;     // bytes, stores and loads together
};

std::optional<std::string> FindPtxas();

// The text has a .target; `arch` is that.
Assembled Assemble(const std::string& ptxas, const std::string& text, std::string_view arch);

}  // namespace l3c::testing
