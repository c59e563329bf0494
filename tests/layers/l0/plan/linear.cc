#include "tests/layers/l0/plan/linear.h"

#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "layers/l0/plan_text.h"

namespace l3c::l0::testing {

std::string LinearText() {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/tests/layers/l0/plan/linear.l0");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Plan Parse(const std::string& text) {
  const support::SourceFile source("plan.l0", text);
  support::Diagnostics diagnostics(&source);
  auto plan = ParsePlan(source, diagnostics);
  EXPECT_TRUE(plan.has_value()) << diagnostics.Render(false);
  return plan ? *std::move(plan) : Plan{};
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace l3c::l0::testing
