// Hostile input: each file gets a clear error, soon.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "tests/layers/l3/check.h"
#include "tests/layers/l3/every_form.h"

namespace l3c::l3 {
namespace {

// Generous: the machines that run tests are slow and shared.
constexpr auto kSoon = std::chrono::seconds(10);

std::string Refused(const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string report = Report(text);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  EXPECT_FALSE(report.empty());
  EXPECT_LT(report.size(), 40000u);
  return report;
}

TEST(L3LimitsTest, TenMegabytesOfGarbage) {
  std::mt19937 random(1);
  std::string binary(10'000'000, '\0');
  for (char& c : binary) c = static_cast<char>(random());
  EXPECT_NE(Refused(binary).find("larger than 8 MiB"), std::string::npos);
  binary.resize(8'000'000);
  EXPECT_NE(Refused(binary).find("not a text file"), std::string::npos);
}

TEST(L3LimitsTest, MegabytesOfTokens) {
  const std::string pieces[] = {"data ", "model ", "{ ", "} ", ": ",    "x ", "12 ", "( ", ") ",
                                "\n",    "loss ",  "` ", "é ", "goal ", ", ", "\"",  "#["};
  std::mt19937 random(2);
  std::string text;
  while (text.size() < 8'000'000) text += pieces[random() % std::size(pieces)];
  Refused(text);
  Refused(std::string(8'000'000, '`'));
  Refused(std::string(8'000'000, 'x'));
  Refused(std::string(8'000'000, '9'));
  std::string fields = "data d {\n";
  while (fields.size() < 8'000'000) fields += "x :\n";
  Refused(fields);
}

TEST(L3LimitsTest, NestedBrackets) {
  for (const char* open : {"(", "[", "{", "#["}) {
    std::string nested;
    for (int i = 0; i < 10000; ++i) nested += open;
    EXPECT_NE(Refused(nested).find("nested deeper than 256"), std::string::npos);
    EXPECT_NE(Refused("data d {\n x : " + nested).find("error"), std::string::npos);
    Refused("loss l { t: constraint(" + nested);
  }
  std::string domain, reference;
  for (int i = 0; i < 10000; ++i) domain += "sequence(", reference += "m(";
  EXPECT_NE(Refused("data d { x : " + domain).find("nested deeper than 256"), std::string::npos);
  EXPECT_NE(Refused("model m { in: " + reference).find("nested deeper than 256"),
            std::string::npos);
}

TEST(L3LimitsTest, EveryTruncationIsRefusedOrWhole) {
  const std::string text = kEveryForm;
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    const std::string report = Report(text.substr(0, size));
    EXPECT_FALSE(report.empty()) << size;
  }
  EXPECT_EQ(Report(text), "");
}

TEST(L3LimitsTest, NoEditOfOneByteCrashes) {
  std::mt19937 random(3);
  const std::string text = kEveryForm;
  for (int i = 0; i < 10000; ++i) {
    std::string edited = text;
    const size_t at = random() % edited.size();
    switch (random() % 3) {
      case 0:
        edited[at] = static_cast<char>(random());
        break;
      case 1:
        edited.erase(at, 1 + random() % 8);
        break;
      default:
        edited.insert(at, edited.substr(random() % edited.size(), random() % 16));
    }
    Report(edited);
  }
}

TEST(L3LimitsTest, ManyDeclarationsAreLinear) {
  std::string text = "data d { x : scalar(f32) }\n", inputs = "d.x";
  for (int i = 0; i < 60000; ++i) {
    const std::string name = "m" + std::to_string(i);
    text += "model " + name + " { in: " + inputs + " out: scalar(f32) }\n";
    inputs = name + ".out";
  }
  text += "loss l { t: norm(" + inputs + ") }\ngoal: minimize(l)\n";
  const auto begin = std::chrono::steady_clock::now();
  Accept(text);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
}

}  // namespace
}  // namespace l3c::l3
