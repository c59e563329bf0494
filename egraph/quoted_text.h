// A string as a literal of the text language.
#pragma once

#include <string>
#include <string_view>

namespace l3c::egraph {

// In quotes, with those in it escaped.
inline std::string QuotedText(std::string_view s) {
  std::string text = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

}  // namespace l3c::egraph
