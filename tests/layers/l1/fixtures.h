// Programs that several tests of L1 start from.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "layers/l1/lower.h"
#include "layers/l1/text.h"
#include "layers/l1/verify.h"
#include "layers/l2/ir.h"
#include "layers/l2/verify.h"

namespace l3c::l1 {

inline std::string ReadText(const std::string& path) {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Parses and verifies. What is reported goes to `errors`; without it nothing may be.
inline std::optional<Program> ParseText(const std::string& text, std::string* errors = nullptr) {
  const support::SourceFile source("test.l1", text);
  support::Diagnostics diagnostics(&source);
  auto program = ParseProgram(source, diagnostics);
  if (program) Verify(*program, diagnostics);
  if (errors != nullptr) {
    *errors = diagnostics.Render(false);
  } else {
    EXPECT_EQ(diagnostics.Render(false), "");
  }
  return program;
}

inline l2::Module ParseL2(const std::string& text) {
  const support::SourceFile source("test.l2", text);
  support::Diagnostics diagnostics(&source);
  auto module = l2::ParseModule(source, diagnostics);
  if (module) l2::Verify(*module, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "");
  return module.value_or(l2::Module{});
}

// Like the machine that most tests run on, but the same everywhere.
inline System TestHost() {
  const auto program = ParseText(
      "system host {\n"
      "    node ssd_0 { kind: storage }\n"
      "    node ram_0 { kind: memory, capacity: 16GB }\n"
      "    node cpu_0 { kind: compute, isa: x86_64, cores: 2, features: [avx2, fma] }\n"
      "    edges {\n"
      "        ssd_0 -> ram_0 : bandwidth 2GB/s\n"
      "        ram_0 <-> cpu_0 : bandwidth 25GB/s\n"
      "    }\n"
      "}\n");
  return program->system;
}

inline LowerOptions MnistOptions() {
  LowerOptions options;
  options.system = TestHost();
  options.data["mnist"] = {"data/mnist", {{"train", 60000}, {"test", 10000}}};
  return options;
}

}  // namespace l3c::l1
