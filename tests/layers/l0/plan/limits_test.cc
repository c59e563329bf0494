// Plans that are huge, deep or absurd: an error that says where, in time that grows with the text.
// Sizes here are a tenth of what a file can hold; L3C_FULL=1 takes the whole.
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0 {
namespace {

using testing::LinearText;
using testing::Replace;

int Many() { return std::getenv("L3C_FULL") != nullptr ? 100'000 : 10'000; }

std::string Repeat(int count, const std::function<std::string(const std::string&)>& item) {
  std::string text;
  for (int i = 0; i < count; ++i) text += item(std::to_string(i));
  return text;
}

std::string Errors(const std::string& text) {
  const support::SourceFile source("plan.l0", text);
  support::Diagnostics diagnostics(&source);
  const auto plan = ParsePlan(source, diagnostics);
  if (plan) VerifyPlan(*plan, diagnostics);
  return diagnostics.Render(false);
}

void ExpectError(const std::string& text, const std::string& part) {
  const std::string errors = Errors(text);
  EXPECT_NE(errors.find(part), std::string::npos) << "expected: " << part << "\n"
                                                  << errors.substr(0, 2000);
}

TEST(PlanLimits, ManyDeclarations) {
  const int many = Many();
  const std::string text = LinearText();
  ExpectError(Replace(text, "parameters {",
                      "buffers {\n" +
                          Repeat(many,
                                 [](const std::string& i) {
                                   return "z" + i + " : f32 [1] in scratch at " +
                                          std::to_string(64 * std::stoi(i)) + " size 4 live 0..1\n";
                                 }) +
                          "}\nparameters {"),
              "ends at byte");
  ExpectError(
      Replace(text, "tokens {",
              "tokens {\n" + Repeat(many, [](const std::string& i) { return "t" + i + " : 0\n"; })),
      "neither waited for nor signalled");
  ExpectError(Replace(text, "sequence save on",
                      Repeat(many,
                             [](const std::string& i) {
                               return "sequence q" + i + " on compute_0 { publish test }\n";
                             }) +
                          "sequence save on"),
              many > 65536 ? "more sequences" : "pushed by no control unit");
  ExpectError(Replace(text, "kernel predict(",
                      Repeat(many,
                             [](const std::string& i) {
                               return "kernel k" + i +
                                      "(a: in f32 [1], b: out f32 [1]) { %0 = load a[0]\n"
                                      " store b[0], %0 }\n";
                             }) +
                          "kernel predict("),
              "is never launched");
}

TEST(PlanLimits, LongBodies) {
  const int many = Many();
  const std::string text = LinearText();
  std::string kernel = "kernel spare(a: in f32 [1], b: out f32 [1]) {\n%0 = load a[0]\n";
  for (int i = 0; i < many; ++i) {
    kernel += "%" + std::to_string(i + 1) + " = neg %" + std::to_string(i) + "\n";
  }
  kernel += "store b[0], %" + std::to_string(many) + "\n}\n";
  ExpectError(Replace(text, "kernel predict(", kernel + "kernel predict("), "");
  std::string words, loads;
  for (int i = 0; i < many; ++i) {
    words += "w" + std::to_string(i) + ": 0, ";
    loads += "%" + std::to_string(1000 + i) + " = load.8 many[w" + std::to_string(i) + "]\n";
  }
  std::string control = Replace(
      text, "    queue loader_q",
      "    region many : ro " + std::to_string(8 * many) + " { " + words + "}\n    queue loader_q");
  EXPECT_EQ(Errors(Replace(control, "    block entry {\n", "    block entry {\n" + loads)), "");
  ExpectError(Replace(control, "region many : ro", "region many : rw"), "");
  std::string commands;
  for (int i = 0; i < many; ++i) commands += "    copy v_b -> b\n";
  ExpectError(Replace(text, "    report test", commands + "    report test"), "outside its life");
}

TEST(PlanLimits, DeepNesting) {
  const std::string text = LinearText();
  for (const char* open : {"{", "(", "["}) {
    std::string deep;
    for (int i = 0; i < 1'000'000; ++i) deep += open;
    ExpectError(Replace(text, "pools {", "pools " + deep), "error[");
    ExpectError(Replace(text, "launch predict(x_0", "launch predict(" + deep), "error[");
    ExpectError(Replace(text, "load x[4*i + j]", "load x[" + deep), "error[");
  }
}

TEST(PlanLimits, AbsurdNumbers) {
  const std::pair<const char*, const char*> edits[] = {
      {"256B of 1MB", "99999999999GB of 1MB"},
      {"256B of 1MB", "256B of 99999999999999TB"},
      {"at 192 size 4", "at 9223372036854775807 size 4"},
      {"at 192 size 4", "at 192 size 9223372036854775807"},
      {"at 192 size 4", "at -64 size 4"},
      {"w   : f32 [4]", "w   : f32 [1099511627776, 1099511627776]"},
      {"w   : f32 [4]", "w   : f32 [99999999999999999999]"},
      {"w   : f32 [4]", "w   : f32 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"},
      {"live 2..5", "live 9223372036854775807..2"},
      {"normal(0.0, 0.5), seed 3", "normal(0.0, 1e999), seed 3"},
      {"seed 3, key 11", "seed 99999999999999999999999, key 11"},
      {"batch: 8", "batch: 99999999999999"},
      {"samples 20", "samples 99999999999999"},
      {"free_0  : 1", "free_0  : 99999999999"},
      {"axis i : grid 8 block 2", "axis i : grid 9223372036854775807 block 2"},
      {"axis i : grid 8 block 2", "axis i : grid 8 block 0"},
      {"axis i : grid 8 block 2", "axis i : grid 8 block 2 vector 1000000"},
      {"load x[4*i + j]", "load x[9223372036854775807*i + j]"},
      {"load x[4*i + j]", "load x[4*i + j + 9223372036854775807]"},
      {"load x[4*i + j]", "load x[4*i + j - 9223372036854775807]"},
      {"load.8 limits[steps]", "load.8 limits[9223372036854775807]"},
      {"load.8 limits[steps]", "load.9 limits[steps]"},
      {"region limits : ro 40", "region limits : ro 9223372036854775807"},
      {"queue loader_q : 4", "queue loader_q : 99999999999"},
      {"%0 = load.8", "%4294967296 = load.8"},
  };
  const std::string text = LinearText();
  for (const auto& [from, to] : edits) {
    const std::string edited = Replace(text, from, to);
    ASSERT_NE(edited, text) << from;
    const std::string errors = Errors(edited);
    EXPECT_EQ(errors.find("plan.l0:"), 0u) << to << "\n" << errors;
    EXPECT_NE(errors.find(": error["), std::string::npos) << to << "\n" << errors;
  }
}

}  // namespace
}  // namespace l3c::l0
