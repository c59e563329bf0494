// docs/egg-language.md names every primitive and every command.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "egraph/program.h"

namespace l3c::egraph {
namespace {

std::string Page() {
  std::ifstream in(L3C_SOURCE_DIR "/docs/egg-language.md");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What stands between backticks or in the blocks of code, word by word.
std::set<std::string> CodeWords(const std::string& page) {
  std::set<std::string> words;
  bool code = false;
  std::string word;
  for (size_t i = 0; i < page.size(); ++i) {
    const char c = page[i];
    if (c == '`') {
      while (i + 1 < page.size() && page[i + 1] == '`') ++i;
      code = !code;
    }
    const bool ends = c == '`' || c == ' ' || c == '\n' || c == '(' || c == ')';
    if (!ends && code && !(c == '\\' && page[i + 1] == '|')) word += c;
    if (!ends || word.empty()) continue;
    words.insert(word);
    word.clear();
  }
  return words;
}

// One sort of each kind, so that all primitives of containers are there.
constexpr std::string_view kSortsOfEachKind = R"(
    (sort S)
    (sort V (Vec S)) (sort Is (Vec i64)) (sort T (Set S)) (sort M (MultiSet S))
    (sort MM (MultiSet M)) (sort D (Map i64 S)) (sort P (Pair S S))
    (sort Each (UnstableFn (S) S)) (sort Holds (UnstableFn (S) Unit))
    (sort Many (UnstableFn (S) M)) (sort Two (UnstableFn (S S) S))
    (sort Index (UnstableFn (M S) i64)))";

TEST(Reference, NamesEveryPrimitive) {
  EGraph graph;
  const ProgramResult loaded = LoadProgram(graph, kSortsOfEachKind, "t.egg");
  ASSERT_TRUE(loaded.ok()) << loaded.status.ToString();
  const std::set<std::string> words = CodeWords(Page());
  size_t registered = 0;
  for (const Primitive& primitive : graph.primitives()) {
    EXPECT_TRUE(words.contains(primitive.name)) << primitive.name << " is not in the page";
    ++registered;
  }
  EXPECT_GT(registered, 200u);
}

TEST(Reference, ItsNamesArePrimitivesOrCommands) {
  // Those that look like the primitives of containers.
  EGraph graph;
  const ProgramResult loaded = LoadProgram(graph, kSortsOfEachKind, "t.egg");
  ASSERT_TRUE(loaded.ok());
  for (const std::string& word : CodeWords(Page())) {
    for (const char* prefix : {"vec-", "set-", "multiset-", "map-", "pair-", "bool-"}) {
      if (word.rfind(prefix, 0) == 0 && word != prefix) {
        EXPECT_FALSE(graph.FindPrimitives(word).empty()) << word << " is no primitive";
      }
    }
  }
  for (const char* command : {"sort",         "datatype",
                              "datatype*",    "constructor",
                              "function",     "relation",
                              "ruleset",      "unstable-combined-ruleset",
                              "rule",         "rewrite",
                              "birewrite",    "let",
                              "set",          "union",
                              "delete",       "subsume",
                              "panic",        "run",
                              "run-schedule", "check",
                              "fail",         "extract",
                              "push",         "pop",
                              "print-size",   "print-function",
                              "print-stats",  "include",
                              "input",        "output"}) {
    EXPECT_TRUE(CodeWords(Page()).contains(command)) << command;
    EGraph empty;
    const ProgramResult result = LoadProgram(empty, "(" + std::string(command) + " %)", "t.egg");
    EXPECT_EQ(result.status.message.find("unknown command"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace l3c::egraph
