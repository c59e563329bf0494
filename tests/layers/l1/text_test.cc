// L1 as text: what is accepted, how it is printed, that printing loses nothing.
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "layers/l1/text.h"
#include "layers/l1/verify.h"

namespace l3c::l1 {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string LinearText() {
  return ReadFile(std::string(L3C_SOURCE_DIR) + "/tests/layers/l1/programs/linear.l1");
}

// Parses and verifies; what is reported goes to `errors`.
std::optional<Program> Parse(const std::string& text, std::string* errors = nullptr) {
  const support::SourceFile source("test.l1", text);
  support::Diagnostics diagnostics(&source);
  auto program = ParseProgram(source, diagnostics);
  if (program) Verify(*program, diagnostics);
  if (errors != nullptr) *errors = diagnostics.Render(false);
  if (errors == nullptr) {
    EXPECT_EQ(diagnostics.Render(false), "");
  }
  return program;
}

TEST(L1TextTest, PrintsWhatItParsed) {
  const auto program = Parse(LinearText());
  ASSERT_TRUE(program);
  const std::string text = PrintProgram(*program);
  const auto again = Parse(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(PrintProgram(*again), text);
}

}  // namespace
}  // namespace l3c::l1
