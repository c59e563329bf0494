#include "rewrites/rewrites.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace l3c::rewrites {
namespace {

std::set<std::string, std::less<>>& LeftOut() {
  static auto* names = new std::set<std::string, std::less<>>();
  return *names;
}

// A file without some of its rules.
struct Shortened {
  std::string text;
  RuleFile file;
};
std::map<std::string, Shortened, std::less<>>& TheShortened() {
  static auto* files = new std::map<std::string, Shortened, std::less<>>();
  return *files;
}

// The form at the top level of `text` that holds `:name "RULE"`: its first place and the one behind
// its last. Empty when there is none.
std::pair<size_t, size_t> FindRule(std::string_view text, std::string_view rule) {
  const std::string wanted = ":name \"" + std::string(rule) + "\"";
  size_t begin = 0;
  int depth = 0;
  bool here = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (depth > 0 && text.substr(i).starts_with(wanted)) here = true;
    switch (text[i]) {
      case ';':
        i = std::min(text.find('\n', i), text.size());
        break;
      case '"':
        i = std::min(text.find('"', i + 1), text.size());
        break;
      case '(':
        if (depth++ == 0) begin = i;
        break;
      case ')':
        if (--depth == 0 && here) return {begin, i + 1};
        break;
      default:
        break;
    }
  }
  return {0, 0};
}

bool LeaveOutRule(const RuleFile& file, std::string_view rule) {
  const auto [begin, end] = FindRule(file.text, rule);
  if (begin == end) return false;
  std::string text(file.text);
  // The other rules keep their lines, which explanations cite.
  for (size_t i = begin; i < end; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
  Shortened& shortened = TheShortened()[std::string(file.name)];
  const RuleFile same = file;  // it may be the one that is replaced
  shortened.text = std::move(text);
  shortened.file = {same.name, same.path, shortened.text};
  return true;
}

}  // namespace

std::vector<std::string> RuleNames(const RuleFile& file) {
  constexpr std::string_view kName = ":name \"";
  std::vector<std::string> names;
  for (size_t at = 0; at < file.text.size(); ++at) {
    if (file.text[at] == ';') {
      at = std::min(file.text.find('\n', at), file.text.size());
    } else if (file.text.substr(at).starts_with(kName)) {
      const size_t begin = at + kName.size();
      at = std::min(file.text.find('"', begin), file.text.size());
      names.emplace_back(file.text.substr(begin, at - begin));
    }
  }
  return names;
}

bool LeaveOut(std::string_view name) {
  // Once is enough, of a file and of its rules.
  const size_t slash = name.find('/');
  if (LeftOut().contains(name) || LeftOut().contains(name.substr(0, slash))) return true;
  const RuleFile* file = Find(name.substr(0, slash));
  if (file == nullptr) return false;
  if (slash != std::string_view::npos && !LeaveOutRule(*file, name.substr(slash + 1))) return false;
  LeftOut().emplace(name);
  return true;
}

const RuleFile* Find(std::string_view name) {
  if (LeftOut().contains(name)) return nullptr;
  if (const auto found = TheShortened().find(name); found != TheShortened().end()) {
    return &found->second.file;
  }
  for (const RuleFile& file : All()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace l3c::rewrites
