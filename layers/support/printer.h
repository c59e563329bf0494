// Canonical text: indentation by four, blocks, and rows aligned in columns.
//
//   Printer out;
//   out.Open("data mnist {");
//   out.Rows({{"images", " : ", "tensor(u8, [1])"}, …});
//   out.Close("}");
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace l3c::support {

class Printer {
 public:
  // One line at the present indentation; an empty one has no blanks.
  void Line(std::string_view text = {});
  // A line, then deeper; shallower, then a line.
  void Open(std::string_view text);
  void Close(std::string_view text);
  // A line between two blocks, as `} else {`.
  void Between(std::string_view text);
  // Each row is one line; every cell but a row's last is padded to the widest of its column.
  void Rows(const std::vector<std::vector<std::string>>& rows);
  // Text as it is, without indentation or newline.
  void Raw(std::string_view text) { text_ += text; }

  int indent() const { return indent_; }
  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  int indent_ = 0;
};

// "a, b, c"
std::string Join(const std::vector<std::string>& parts, std::string_view separator = ", ");

}  // namespace l3c::support
