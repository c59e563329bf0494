// Text of tables: cells, and the numbers in them.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

namespace l3c::runtime {

inline std::string_view StripBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Stripped; as many as there are separators and one.
inline std::vector<std::string_view> SplitCells(std::string_view text,
                                                std::string_view separators) {
  std::vector<std::string_view> cells;
  for (;;) {
    const size_t at = text.find_first_of(separators);
    cells.push_back(StripBlanks(text.substr(0, at)));
    if (at == std::string_view::npos) return cells;
    text.remove_prefix(at + 1);
  }
}

// The whole text is a number of this type.
template <class T>
bool ParseCell(std::string_view text, T* value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && stop == text.data() + text.size();
}

}  // namespace l3c::runtime
