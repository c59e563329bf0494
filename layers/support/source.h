// Source text and positions in it.
//
// A SourceFile owns the text of one file and knows where its lines begin. A Span is a half-open
// byte range of that text; IR nodes carry spans so that a diagnostic raised by any later pass can
// still point at the line the user wrote. Spans never take part in equality or hashing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::support {

class Diagnostics;

// Half-open byte range [begin, end) of a SourceFile's text. The empty span {0, 0} means "unknown".
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool known() const { return end > begin; }
};

// 1-based line and column; a column counts characters (code points), a tab as one.
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
};

class SourceFile {
 public:
  // Larger files are refused before they are parsed: a plan of a large network is about 1 MB.
  static constexpr size_t kMaxBytes = 8u << 20;

  SourceFile(std::string name, std::string text);

  // Reads `path`, a regular file; on failure reports error[environment] and returns nothing.
  static std::optional<SourceFile> Read(const std::string& path, Diagnostics& diagnostics);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::string_view Slice(Span span) const;
  LineColumn Position(uint32_t offset) const;
  // The line (without its newline) that holds `offset`.
  std::string_view Line(uint32_t line) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
};

}  // namespace l3c::support
