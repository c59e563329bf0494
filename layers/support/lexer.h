// The lexer of the four layers' text.
//
// Comments run from `//`, or from `#` where no `[` follows, to the end of the line. The first line
// may be the comment `# l3c LAYER v1`, which names the layer of the file; see FindHeader.
//
// A lexer is a cursor: it reads one token at a time, holds no table of them, and can be copied to
// look ahead or to come back. A character that begins no token is reported once and skipped.
#pragma once

#include <optional>
#include <string_view>

#include "layers/support/diagnostics.h"
#include "layers/support/source.h"
#include "layers/support/token.h"

namespace l3c::support {

// The first line `# l3c l2 v1` of a file: layer "l2", version 1.
struct Header {
  std::string_view layer;
  int version = 0;
  Span span;
};
std::optional<Header> FindHeader(const SourceFile& source);
// The line as the printers write it, with its newline: "# l3c l2 v1\n".
std::string HeaderLine(std::string_view layer);

// Reports a file that is too large, holds a NUL or other control byte, or is not UTF-8; true when
// the text may be lexed.
bool CheckIsText(const SourceFile& source, Diagnostics& diagnostics);

class Lexer {
 public:
  // A longer name or number is reported and cut, so that messages which quote it stay readable.
  static constexpr uint32_t kMaxWordBytes = 256;

  // Reads the whole file, or the given range of it.
  Lexer(const SourceFile& source, Diagnostics& diagnostics);
  Lexer(const SourceFile& source, Diagnostics& diagnostics, Span range);

  // Past the end it returns kEnd again and again.
  Token Next();
  uint32_t offset() const { return offset_; }

 private:
  void SkipBlanks();
  uint32_t NumberEnd() const;
  Token ReadString(Token token);
  char At(uint32_t offset) const { return offset < end_ ? text_[offset] : '\0'; }

  std::string_view text_;
  Diagnostics* diagnostics_;
  uint32_t offset_ = 0;
  uint32_t end_ = 0;
  bool line_begins_ = true;
};

}  // namespace l3c::support
