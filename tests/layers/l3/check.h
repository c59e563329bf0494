// Helpers of the tests of L3.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "layers/l3/parse.h"
#include "layers/l3/print.h"
#include "layers/l3/verify.h"

namespace l3c::l3 {

// What parsing and verifying `text` reports, rendered; "" when it is accepted.
inline std::string Report(const std::string& text) {
  const support::SourceFile source("test.l3", text);
  support::Diagnostics diagnostics(&source);
  const auto module = Parse(source, diagnostics);
  EXPECT_EQ(module.has_value(), !diagnostics.has_errors());
  if (module) Verify(*module, diagnostics);
  return diagnostics.Render(false);
}

// The module of a text that must be accepted.
inline Module Accept(const std::string& text) {
  const support::SourceFile source("test.l3", text);
  support::Diagnostics diagnostics(&source);
  auto module = Parse(source, diagnostics);
  if (module) Verify(*module, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << diagnostics.Render(false);
  return module ? *std::move(module) : Module{};
}

}  // namespace l3c::l3
