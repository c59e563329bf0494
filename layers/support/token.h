// Tokens shared by the languages of all four layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "layers/support/source.h"

namespace l3c::support {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,         // [A-Za-z_][A-Za-z0-9_]*: names and keywords (keywords are not reserved)
  kNumber,       // digits, fraction, exponent, unit: 500K  3e-4  2GB/s  10ms  0x4000; never a sign
  kString,       // "…" on one line, escapes \" \\ \n \t
  kPunctuation,  // longest first: <-> -> => :: == != <= >= && || .. #[ and single characters
};

// `text` views the source file and is as long-lived as it is.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool first_on_line = false;  // only blanks precede it on its line
  Span span;
  std::string_view text;  // a string's text includes its quotes and escapes

  bool Is(std::string_view punctuation) const {
    return kind == TokenKind::kPunctuation && text == punctuation;
  }
  bool IsWord(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
};

// A token as a message names it: `'->'`, `"end of file"`, `number '12'`; long texts are cut.
std::string Describe(const Token& token);

// The value of a string token's text, and the text of a value. Quote(Unquote(t)) is canonical.
std::string Unquote(std::string_view quoted);
std::string Quote(std::string_view value);

// A name the user wrote, and where.
struct Name {
  std::string text;
  Span span;
};

}  // namespace l3c::support
