#include "layers/support/printer.h"

#include <algorithm>

namespace l3c::support {

void Printer::Line(std::string_view text) {
  if (!text.empty()) text_.append(static_cast<size_t>(indent_) * 4, ' ');
  text_ += text;
  text_ += '\n';
}

void Printer::Open(std::string_view text) {
  Line(text);
  ++indent_;
}

void Printer::Close(std::string_view text) {
  --indent_;
  Line(text);
}

void Printer::Between(std::string_view text) {
  Close(text);
  ++indent_;
}

void Printer::Rows(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    Line(line);
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

}  // namespace l3c::support
