#include "tools/l3c/relocate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "layers/support/lexer.h"
#include "layers/support/printer.h"

namespace l3c::tools {
namespace {

using support::Diagnostic;
using support::Diagnostics;
using support::SourceFile;
using support::Span;
using support::Token;

class Words {
 public:
  explicit Words(const SourceFile& source) {
    Diagnostics unread;
    support::Lexer lexer(source, unread);
    for (Token token = lexer.Next(); token.kind != support::TokenKind::kEnd; token = lexer.Next()) {
      tokens_.push_back(token);
    }
  }

  std::vector<Token> Within(Span span) const {
    std::vector<Token> inside;
    for (const Token& token : tokens_) {
      if (token.span.begin >= span.begin && token.span.end <= span.end) inside.push_back(token);
    }
    return inside;
  }

  // Every place that has these words.
  std::vector<Span> Find(const std::vector<Token>& words) const {
    std::vector<Span> places;
    for (size_t i = 0; i + words.size() <= tokens_.size(); ++i) {
      bool same = true;
      for (size_t w = 0; w < words.size() && same; ++w) {
        same = SameWord(tokens_[i + w], words[w]);
      }
      if (!same) continue;
      places.push_back({tokens_[i].span.begin, tokens_[i + words.size() - 1].span.end});
    }
    return places;
  }

 private:
  // A lowering makes the paths of files absolute: "/home/me/fast.uop" was "fast.uop".
  static bool SameWord(const Token& here, const Token& word) {
    if (here.text == word.text) return true;
    if (here.kind != support::TokenKind::kString || word.kind != support::TokenKind::kString) {
      return false;
    }
    const std::string shorter = support::Unquote(here.text), longer = support::Unquote(word.text);
    return longer.starts_with("/") && longer.ends_with("/" + shorter);
  }

  std::vector<Token> tokens_;
};

// Longer pieces of text are whole parts of a program: they are not the fault of one place.
constexpr size_t kMostWords = 64;

// An annotation of L2 as it was, without the operands that its lowering has added: `, of: […]`.
std::vector<Token> AsWritten(const std::vector<Token>& words) {
  std::vector<Token> written;
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i].Is(",") && words[i + 1].text == "of" && words[i + 2].Is(":")) break;
    written.push_back(words[i]);
  }
  if (written.size() + 2 < words.size()) {
    written.insert(written.end(), words.end() - 2, words.end());  // `)` and `]`
  }
  return written;
}

std::optional<Span> PlaceOf(Span span, const Words& made, const Words& written) {
  if (!span.known()) return std::nullopt;
  const std::vector<Token> words = made.Within(span);
  if (words.empty() || words.size() > kMostWords) return std::nullopt;
  std::vector<Span> there = written.Find(words);
  if (there.empty() && words.front().Is("#[")) there = written.Find(AsWritten(words));
  if (there.empty()) return std::nullopt;
  const std::vector<Span> here = made.Find(words);
  if (here.size() == there.size()) {
    const auto at = std::find_if(here.begin(), here.end(), [&](Span place) {
      return place.begin == words.front().span.begin;
    });
    return there[static_cast<size_t>(at - here.begin())];
  }
  // A number stands in too many places; a name is first where it is declared.
  const bool number = words.size() == 1 && words[0].kind == support::TokenKind::kNumber;
  return number ? std::nullopt : std::optional(there.front());
}

}  // namespace

Diagnostics Relocate(const Diagnostics& errors, const SourceFile& made, const SourceFile& written,
                     std::string_view layer) {
  const Words made_words(made), written_words(written);
  Diagnostics moved(&written);
  for (const Diagnostic& error : errors.all()) {
    const std::optional<Span> place = PlaceOf(error.span, made_words, written_words);
    Diagnostic& copy = moved.Error(error.kind, place.value_or(Span{}), error.message);
    copy.label = error.label;
    copy.fix = error.fix;
    for (const support::Note& note : error.notes) {
      copy.notes.push_back(
          {PlaceOf(note.span, made_words, written_words).value_or(Span{}), note.message});
    }
    if (!place && error.span.known()) {
      std::string line(made.Line(made.Position(error.span.begin).line));
      line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
      copy.notes.push_back({{},
                            "in the ." + std::string(layer) + " text that it becomes (l3c lower " +
                                written.name() + " --to " + std::string(layer) +
                                "): " + line.substr(0, 100)});
    }
  }
  return moved;
}

}  // namespace l3c::tools
