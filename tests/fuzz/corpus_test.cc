// The fuzzers' corpora, replayed without a fuzzer: every file as it is, and with random damage,
// always the same. A file is there for what it covers, or because it once broke something.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace l3c::egraph {
namespace {

std::vector<std::string> Corpus(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(L3C_SOURCE_DIR) / "tests/fuzz/corpus" / name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

// Pieces cut out, doubled, moved from another file, and bytes changed.
std::string Damaged(const std::vector<std::string>& corpus, std::mt19937& random) {
  std::string text = corpus[random() % corpus.size()];
  for (uint32_t change = 1 + random() % 4; change != 0 && !text.empty(); --change) {
    const size_t at = random() % text.size();
    const size_t length = std::min<size_t>(1 + random() % 24, text.size() - at);
    switch (random() % 4) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2: {
        const std::string& other = corpus[random() % corpus.size()];
        if (!other.empty()) text.insert(at, other.substr(random() % other.size(), length));
        break;
      }
      default:
        text[at] = static_cast<char>(random());
    }
  }
  return text;
}

TEST(FuzzCorpus, Programs) {
  const std::vector<std::string> corpus = Corpus("language");
  ASSERT_GE(corpus.size(), 8u);
  for (const std::string& text : corpus) FuzzLanguage(text);
  std::mt19937 random(11);
  for (int round = 0; round < 6000; ++round) FuzzLanguage(Damaged(corpus, random));
}

TEST(FuzzCorpus, SerializedGraphs) {
  const std::vector<std::string> corpus = Corpus("json");
  ASSERT_GE(corpus.size(), 4u);
  for (const std::string& text : corpus) FuzzJson(text);
  std::mt19937 random(12);
  for (int round = 0; round < 25000; ++round) FuzzJson(Damaged(corpus, random));
}

}  // namespace
}  // namespace l3c::egraph
