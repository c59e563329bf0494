// Reading s-expressions.
//
// A document owns the flat list of its expressions; lists name their children by index. Reading is
// iterative and nesting is bounded, so that passes over the result may recurse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/error_kind.h"

namespace l3c::egraph {

class Document {
 public:
  // Deeper nesting is an error.
  static constexpr size_t kMaxDepth = 1000;

  enum class Kind : uint8_t { kList, kSymbol, kInt, kFloat, kText };
  struct Node {
    Kind kind = Kind::kSymbol;
    uint32_t begin = 0;  // bytes [begin, end) of the text
    uint32_t end = 0;
    uint32_t first_child = 0;  // lists: children() of the document
    uint32_t child_count = 0;
    uint32_t literal = 0;  // numbers and strings: index into ints_, floats_, strings_
  };
  struct Position {
    uint32_t line, column;  // 1-based; columns in characters
  };

  // Reads all of `text`, which must outlive the document. False on an error; see error().
  bool Read(std::string_view text);
  const std::string& error() const { return error_; }
  ErrorKind error_kind() const { return error_kind_; }
  uint32_t error_offset() const { return error_offset_; }

  const std::vector<uint32_t>& top_level() const { return top_level_; }
  const Node& node(uint32_t n) const { return nodes_[n]; }
  uint32_t child(uint32_t list, uint32_t i) const {
    return children_[nodes_[list].first_child + i];
  }
  std::string_view Text(uint32_t n) const {
    return text_.substr(nodes_[n].begin, nodes_[n].end - nodes_[n].begin);
  }
  int64_t Int(uint32_t n) const { return ints_[nodes_[n].literal]; }
  double Float(uint32_t n) const { return floats_[nodes_[n].literal]; }
  const std::string& String(uint32_t n) const { return strings_[nodes_[n].literal]; }
  bool IsList(uint32_t n) const { return nodes_[n].kind == Kind::kList; }
  bool IsSymbol(uint32_t n) const { return nodes_[n].kind == Kind::kSymbol; }
  Position PositionOf(uint32_t offset) const;
  // Where the word, string or parenthesis that begins at `offset` ends.
  uint32_t EndOf(uint32_t offset) const;

 private:
  bool Error(size_t offset, std::string message, ErrorKind kind = ErrorKind::kSyntax);
  bool ReadString(size_t& at);
  bool ReadToken(size_t& at);

  std::string_view text_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> children_;
  std::vector<uint32_t> top_level_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  std::vector<std::string> strings_;
  std::vector<uint32_t> line_starts_;
  // Of the text before each block of kBlock bytes: bytes that go on with a character. Lines may be
  // as long as the text, and every rule asks for its place.
  static constexpr uint32_t kBlock = 1024;
  uint32_t ContinuationsBefore(uint32_t offset) const;
  std::vector<uint32_t> continuations_;
  std::string error_;
  ErrorKind error_kind_ = ErrorKind::kSyntax;
  uint32_t error_offset_ = 0;
};

}  // namespace l3c::egraph
