// What stands in a built program: its tables, and what it asks of a CPU.
#include "tools/program/program.h"

#include <random>

#include "gtest/gtest.h"
#include "tools/program/cpu_features.h"

namespace l3c::program {
namespace {

Program Example() {
  Program program;
  program.version = "0.1.0";
  program.file = "/spec.l3";
  program.features = "+avx2,+fma";
  program.digest = std::string(64, 'a');
  program.data = {{"mnist", "/data/mnist"}};
  program.texts = {Deflate(0, "a specification"), Deflate(3, std::string(10'000, 'x'))};
  program.kernels = {0, 640};
  program.control = {1280};
  program.plan.name = "example";
  program.plan.kernels.resize(2);
  program.plan.kernels[1].name = "dense";
  program.plan.control.resize(1);
  return program;
}

TEST(Program, ReadsWhatWasWritten) {
  const std::optional<Program> read = Read(Write(Example()));
  ASSERT_TRUE(read);
  EXPECT_EQ(Write(*read), Write(Example()));
  EXPECT_EQ(read->data.at("mnist"), "/data/mnist");
  EXPECT_EQ(read->kernels, Example().kernels);
  EXPECT_EQ(read->plan.kernels[1].name, "dense");
  EXPECT_EQ(Inflate(read->texts[0]), "a specification");
  EXPECT_EQ(Inflate(read->texts[1]), std::string(10'000, 'x'));
  EXPECT_LT(read->texts[1].deflated.size(), 100u);
}

TEST(Program, RefusesOtherBytes) {
  const std::string bytes = Write(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Read(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(Read(bytes + "x"));
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const std::optional<Program> read = Read(damaged);
    if (!read) continue;
    for (const Program::Text& text : read->texts) (void)Inflate(text);
  }
  Program wrong = Example();
  wrong.kernels.pop_back();
  EXPECT_FALSE(Read(Write(wrong))) << "a kernel has no code";
}

TEST(CpuFeatures, ReadsWhatIsAskedFor) {
  EXPECT_EQ(RequiredFeatures("+avx2,-avx512f,+fma"), (std::vector<std::string>{"avx2", "fma"}));
  EXPECT_TRUE(RequiredFeatures("").empty());
}

TEST(CpuFeatures, AgreesWithTheCompiler) {
  EXPECT_TRUE(HasFeature("sse2"));
  EXPECT_FALSE(HasFeature("no_such"));
#define L3C_EXPECT_AGREEMENT(name) \
  EXPECT_EQ(HasFeature(name), __builtin_cpu_supports(name) != 0) << name
  L3C_EXPECT_AGREEMENT("sse4.2");
  L3C_EXPECT_AGREEMENT("avx");
  L3C_EXPECT_AGREEMENT("avx2");
  L3C_EXPECT_AGREEMENT("fma");
  L3C_EXPECT_AGREEMENT("bmi2");
  L3C_EXPECT_AGREEMENT("avx512f");
  L3C_EXPECT_AGREEMENT("avx512bw");
  L3C_EXPECT_AGREEMENT("avx512vnni");
  L3C_EXPECT_AGREEMENT("fma4");
#undef L3C_EXPECT_AGREEMENT
  for (const std::string& name : RequiredFeatures(FeaturesHere())) EXPECT_TRUE(HasFeature(name));
}

TEST(CpuFeatures, LevelsAreOfKnownFeatures) {
  size_t before = 0;
  for (const char* level : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    const std::vector<std::string> names = RequiredFeatures(FeaturesOfLevel(level));
    EXPECT_GT(names.size(), before) << level;
    before = names.size();
    for (const std::string& name : names) EXPECT_TRUE(IsKnownFeature(name)) << name;
  }
  EXPECT_TRUE(FeaturesOfLevel("x86-64-v9").empty());
}

}  // namespace
}  // namespace l3c::program
