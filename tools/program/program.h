// What `l3c build` puts into a program beside its code: the tables that the runtime works from, and
// what the program needs to act like `l3c run`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l0/plan.h"

namespace l3c::program {

struct Program {
  std::string version;                      // of l3c
  std::string file;                         // the program it was built from, absolute
  std::string features;                     // that its code takes for granted: "+avx2,+fma"
  std::string digest;                       // runtime::PlanDigest of the plan
  std::map<std::string, std::string> data;  // where the data lay when it was built, absolute
  // The text of each layer, compressed: for the run's folder, and for other lengths and seeds.
  struct Text {
    uint8_t layer = 0;
    uint64_t size = 0;
    std::string deflated;
  };
  std::vector<Text> texts;
  // Where the function of each kernel, and of each control unit, begins in the code.
  std::vector<uint64_t> kernels;
  std::vector<uint64_t> control;
  l0::Plan plan;  // without the bodies of kernels
};

std::string Write(const Program& program);
// Nothing when the bytes are no program's.
std::optional<Program> Read(std::string_view bytes);

Program::Text Deflate(uint8_t layer, std::string_view text);
// Nothing when it is damaged.
std::optional<std::string> Inflate(const Program::Text& text);

}  // namespace l3c::program
