// Modules for the tests of L2.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "layers/l2/form.h"
#include "layers/l2/ir.h"
#include "layers/l2/verify.h"
#include "layers/l3/parse.h"
#include "layers/l3/verify.h"
#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"
#include "layers/support/source.h"

namespace l3c::l2::testing {

// The specification of the documentation, in canonical form.
inline constexpr std::string_view kMnistSpec = R"(data mnist {
    images : tensor(f32, [28, 28])
    labels : tensor(u8, [1])
}

model classify {
    in:  mnist.images
    out: dist(10)
    properties: [depth(3), width(512), param_budget(500K)]
}

loss objective {
    ce:     divergence(classify.out, mnist.labels), weight: 1.0
    sparse: norm(classify.params, p=1),             weight: 1e-4
    combine: weighted_sum
}

goal: minimize(objective)
)";

// Its method, as the documentation writes it.
inline constexpr std::string_view kMnistMethods = R"(
methods for classify {
    sample:   epoch_shuffle(batch: 128)

    infer: sequential [
        linear(784, 256), norm(layer), gelu,
        linear(256, 256), norm(layer), gelu,
        linear(256, 10),  softmax
    ]

    backward: autodiff(mode: reverse)
    update:   schedule(warmup: 1000, decay: cosine,
                       inner: adam(lr: 3e-4))
}
)";

// A regression of one number from four, with the given methods.
inline std::string RegressionSpec(std::string_view methods) {
  return std::string(R"(data d {
    x : tensor(f32, [4])
    y : scalar(f32)
}

model m {
    in:  d.x
    out: scalar(f32)
    properties: []
}

loss l {
    fit: divergence(m.out, d.y), weight: 1.0
    combine: weighted_sum
}

goal: minimize(l)
)") + std::string(methods);
}

// Parses and verifies; what was reported becomes a failure of the test.
inline Module Read(std::string_view text) {
  support::SourceFile source("test.l2", std::string(text));
  support::Diagnostics diagnostics(&source);
  auto module = ParseModule(source, diagnostics);
  if (module) Verify(*module, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << diagnostics.Render(false);
  return module ? std::move(*module) : Module();
}

// The same of a specification.
inline l3::Module ReadSpec(std::string_view text) {
  support::SourceFile source("spec.l3", std::string(text));
  support::Diagnostics diagnostics(&source);
  auto module = l3::Parse(source, diagnostics);
  if (module) l3::Verify(*module, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << diagnostics.Render(false);
  return module ? std::move(*module) : l3::Module();
}

// The same of one form.
inline Form ReadForm(const std::string& text, Family family) {
  support::SourceFile source("form", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  auto form = ParseForm(parser, family);
  EXPECT_TRUE(form.has_value()) << diagnostics.Render(false);
  return form.value_or(Form{});
}

// Everything that parsing and verifying report.
inline std::string Errors(std::string_view text, std::string name = "test.l2") {
  support::SourceFile source(std::move(name), std::string(text));
  support::Diagnostics diagnostics(&source);
  auto module = ParseModule(source, diagnostics);
  if (module) Verify(*module, diagnostics);
  return diagnostics.Render(false);
}

}  // namespace l3c::l2::testing
