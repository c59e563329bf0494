#include "layers/support/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

namespace l3c::support {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

// Longest first, so that the first that fits is the right one.
constexpr std::string_view kPunctuation[] = {
    "<->", "->", "=>", "::", "==", "!=", "<=", ">=", "&&", "||", "..", "#[", "{",
    "}",   "(",  ")",  "[",  "]",  ",",  ":",  ";",  ".",  "@",  "=",  "|",  "+",
    "-",   "*",  "/",  "%",  "<",  ">",  "!",  "&",  "^",  "?",  "~",  "$"};

// Length of the UTF-8 sequence at `text[i]`, or 0 if there is no valid one.
size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto continues = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (first == 0xED && byte(1) > 0x9F) return 0;  // a surrogate
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;  // past U+10FFFF
    return 4;
  }
  return 0;
}

std::string Hex(unsigned char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02X", byte);
  return text;
}

}  // namespace

std::optional<Header> FindHeader(const SourceFile& source) {
  constexpr std::string_view kPrefix = "# l3c ";
  const std::string_view line = source.Line(1);
  if (line.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const size_t space = line.find(' ', kPrefix.size());
  if (space == std::string_view::npos) return std::nullopt;
  Header header;
  header.layer = line.substr(kPrefix.size(), space - kPrefix.size());
  const std::string_view version = line.substr(space + 1);
  if (version.size() < 2 || version[0] != 'v') return std::nullopt;
  const char* end = version.data() + version.size();
  const auto [stop, error] = std::from_chars(version.data() + 1, end, header.version);
  if (error != std::errc() || stop != end) return std::nullopt;
  header.span = {0, static_cast<uint32_t>(line.size())};
  return header;
}

std::string HeaderLine(std::string_view layer) {
  std::string line = "# l3c ";
  line += layer;
  line += " v1\n";
  return line;
}

bool CheckIsText(const SourceFile& source, Diagnostics& diagnostics) {
  const std::string_view text = source.text();
  if (text.size() > SourceFile::kMaxBytes) {
    diagnostics.Error(Kind::kResourceBound, {},
                      "'" + source.name() + "' is larger than " +
                          std::to_string(SourceFile::kMaxBytes >> 20) +
                          " MiB, the bound on a source file");
    return false;
  }
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool blank = byte == '\n' || byte == '\t' || byte == '\r';
    const bool control = (byte < 0x20 && !blank) || byte == 0x7F;
    const size_t length = Utf8Length(text, i);
    if (control || length == 0) {
      const auto at = static_cast<uint32_t>(i);
      diagnostics
          .Error(Kind::kSyntax, {at, at + 1},
                 "not a text file: byte " + Hex(byte) +
                     (control ? " is a control character" : " is not valid UTF-8"))
          .Label("byte " + std::to_string(i) + " of the file");
      return false;
    }
    i += length;
  }
  return true;
}

Lexer::Lexer(const SourceFile& source, Diagnostics& diagnostics)
    : Lexer(source, diagnostics, {0, static_cast<uint32_t>(source.text().size())}) {}

Lexer::Lexer(const SourceFile& source, Diagnostics& diagnostics, Span range)
    : text_(source.text()), diagnostics_(&diagnostics), offset_(range.begin), end_(range.end) {}

void Lexer::SkipBlanks() {
  while (offset_ < end_) {
    const char c = text_[offset_];
    if (c == '\n') {
      line_begins_ = true;
      ++offset_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++offset_;
    } else if ((c == '#' && At(offset_ + 1) != '[') || (c == '/' && At(offset_ + 1) == '/')) {
      while (offset_ < end_ && text_[offset_] != '\n') ++offset_;
    } else {
      return;
    }
  }
}

uint32_t Lexer::NumberEnd() const {
  uint32_t at = offset_;
  if (At(at) == '0' && (At(at + 1) == 'x' || At(at + 1) == 'X') && IsHexDigit(At(at + 2))) {
    at += 2;
    while (IsWordPart(At(at))) ++at;
    return at;
  }
  while (IsDigit(At(at))) ++at;
  if (At(at) == '.' && IsDigit(At(at + 1))) {
    ++at;
    while (IsDigit(At(at))) ++at;
  }
  if (At(at) == 'e' || At(at) == 'E') {
    const bool sign = At(at + 1) == '+' || At(at + 1) == '-';
    const uint32_t digits = at + (sign ? 2 : 1);
    if (IsDigit(At(digits))) {
      at = digits;
      while (IsDigit(At(at))) ++at;
    }
  }
  const uint32_t suffix = at;
  while (IsWordPart(At(at))) ++at;
  // `/s` belongs to the number after a unit of bytes only: 2GB/s, but not a/s or 2/s.
  if (at > suffix && At(at - 1) == 'B' && At(at) == '/' && At(at + 1) == 's' &&
      !IsWordPart(At(at + 2))) {
    at += 2;
  }
  return at;
}

Token Lexer::ReadString(Token token) {
  uint32_t at = token.span.begin + 1;
  while (at < end_ && text_[at] != '"' && text_[at] != '\n') {
    if (text_[at] == '\\' && at + 1 < end_ && text_[at + 1] != '\n') {
      const char escaped = text_[at + 1];
      if (escaped != '"' && escaped != '\\' && escaped != 'n' && escaped != 't') {
        diagnostics_->Error(Kind::kSyntax, {at, at + 2}, "unknown escape in a string")
            .Label("expected \\\", \\\\, \\n or \\t");
      }
      ++at;
    }
    ++at;
  }
  token.kind = TokenKind::kString;
  if (at < end_ && text_[at] == '"') {
    token.span.end = at + 1;
  } else {
    token.span.end = at;
    diagnostics_->Error(Kind::kSyntax, {token.span.begin, at}, "a string is not closed on its line")
        .Label("expected '\"' before the end of the line");
  }
  offset_ = token.span.end;
  token.text = text_.substr(token.span.begin, token.span.end - token.span.begin);
  return token;
}

Token Lexer::Next() {
  for (;;) {
    SkipBlanks();
    Token token;
    token.first_on_line = line_begins_;
    token.span = {offset_, offset_};
    if (offset_ >= end_) {
      token.text = text_.substr(std::min<size_t>(offset_, text_.size()), 0);
      return token;
    }
    line_begins_ = false;
    const char c = text_[offset_];
    if (c == '"') return ReadString(token);

    if (IsWordStart(c)) {
      token.kind = TokenKind::kWord;
      token.span.end = offset_ + 1;
      while (IsWordPart(At(token.span.end))) ++token.span.end;
    } else if (IsDigit(c)) {
      token.kind = TokenKind::kNumber;
      token.span.end = NumberEnd();
    } else {
      const std::string_view rest = text_.substr(offset_, end_ - offset_);
      for (const std::string_view spelling : kPunctuation) {
        if (rest.substr(0, spelling.size()) == spelling) {
          token.kind = TokenKind::kPunctuation;
          token.span.end = offset_ + static_cast<uint32_t>(spelling.size());
          break;
        }
      }
    }
    if (token.kind != TokenKind::kEnd) {
      offset_ = token.span.end;
      if (token.span.end - token.span.begin > kMaxWordBytes) {
        diagnostics_->Error(Kind::kResourceBound, token.span,
                            std::string(token.kind == TokenKind::kWord ? "a name" : "a number") +
                                " is longer than " + std::to_string(kMaxWordBytes) + " bytes");
        token.span.end = token.span.begin + kMaxWordBytes;
      }
      token.text = text_.substr(token.span.begin, token.span.end - token.span.begin);
      return token;
    }
    // A run of characters that begin no token is one error.
    uint32_t stop = offset_;
    do {
      stop += static_cast<uint32_t>(std::max<size_t>(1, Utf8Length(text_, stop)));
    } while (stop < end_ && (static_cast<unsigned char>(text_[stop]) >= 0x80));
    stop = std::min(stop, end_);
    Token skipped;
    skipped.kind = TokenKind::kPunctuation;
    skipped.text = text_.substr(offset_, stop - offset_);
    diagnostics_->Error(Kind::kSyntax, {offset_, stop}, "unexpected " + Describe(skipped))
        .Label("no token begins so");
    // Enough has been said about this file: read the rest as empty.
    const bool enough = diagnostics_->all().size() >= Diagnostics::kMaxReported;
    offset_ = enough ? end_ : stop;
  }
}

}  // namespace l3c::support
