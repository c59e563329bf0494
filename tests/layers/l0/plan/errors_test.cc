// Golden diagnostics: tests/errors/l0/ROW_CASE.edit, applied to the plan linear.l0 that passes, is
// refused with exactly the text beside it. An edit has a line each of what stands there (' '), goes
// ('-') and comes ('+'), as in a difference without numbers; an empty line begins another place
// further on.
#include "tests/errors/recorded.h"

#include <optional>

#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0 {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Replaces the first lines from `from` on that are like the old ones; where the search goes on.
std::optional<size_t> ApplyPlace(const std::vector<std::string>& place, size_t from,
                                 std::vector<std::string>& text) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const std::string& line : place) {
    if (line[0] != '+') before.push_back(line.substr(1));
    if (line[0] != '-') after.push_back(line.substr(1));
  }
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(),
                                 before.begin(), before.end());
  if (before.empty() || found == text.end()) return std::nullopt;
  const auto rest = text.erase(found, found + static_cast<std::ptrdiff_t>(before.size()));
  const auto begin = text.insert(rest, after.begin(), after.end());
  return static_cast<size_t>(begin - text.begin()) + after.size();
}

std::string Edited(const fs::path& edit) {
  std::vector<std::string> text = Lines(testing::LinearText());
  std::vector<std::string> lines = Lines(recorded::ReadFile(edit));
  lines.emplace_back();
  std::vector<std::string> place;
  size_t from = 0;
  for (const std::string& line : lines) {
    if (!line.empty()) {
      place.push_back(line);
      continue;
    }
    const auto next = ApplyPlace(place, from, text);
    if (!next) {
      ADD_FAILURE() << edit << ": linear.l0 has no such lines";
      return "";
    }
    from = *next;
    place.clear();
  }
  std::string joined;
  for (const std::string& line : text) joined += line + '\n';
  return joined;
}

std::string Diagnose(const std::string& name, const std::string& text) {
  const support::SourceFile source(name, text);
  support::Diagnostics diagnostics(&source);
  const auto plan = ParsePlan(source, diagnostics);
  if (plan) VerifyPlan(*plan, diagnostics);
  return diagnostics.Render(false);
}

TEST(L0Errors, ThePlanThatIsEditedPasses) {
  EXPECT_EQ(Diagnose("linear.l0", testing::LinearText()), "");
}

TEST(L0Errors, EveryEditIsRefusedAsRecorded) {
  for (const fs::path& edit : recorded::Files("l0", ".edit")) {
    fs::path golden = edit;
    golden.replace_extension(".txt");
    recorded::Expect(Diagnose(edit.stem().string() + ".l0", Edited(edit)), golden);
  }
}

TEST(L0Errors, EveryRowOfTheTableIsBrokenTwice) {
  recorded::ExpectRowsBrokenTwice(recorded::Files("l0", ".edit"),
                                  {"kernel", "lifetime", "hazard", "sync", "capacity", "headroom"});
}

}  // namespace
}  // namespace l3c::l0
