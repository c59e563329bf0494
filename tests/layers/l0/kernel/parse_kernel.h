// One kernel from text, for tests of kernels.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/kernel_verify.h"

namespace l3c::testing {

inline l0::Kernel ParseOne(const std::string& text) {
  const support::SourceFile source("test.l0", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  std::optional<l0::Kernel> kernel = l0::ParseKernel(parser);
  EXPECT_TRUE(kernel.has_value()) << diagnostics.Render(false);
  if (!kernel) return {};
  EXPECT_TRUE(l0::VerifyKernel(*kernel, diagnostics)) << diagnostics.Render(false);
  return *kernel;
}

}  // namespace l3c::testing
