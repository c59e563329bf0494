// Building the text of a status. (Abseil's own StrCat takes no std::string_view where Abseil was
// built for an older language standard, as distributions do.)
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "layers/support/units.h"

namespace l3c::runtime {

inline void AppendPart(std::string& text, std::string_view part) { text += part; }
inline void AppendPart(std::string& text, double part) { text += support::PrintReal(part); }
template <std::integral T>
void AppendPart(std::string& text, T part) {
  text += std::to_string(part);
}

// Message("line ", 3, ": bad") == "line 3: bad"
template <class... Parts>
std::string Message(const Parts&... parts) {
  std::string text;
  (AppendPart(text, parts), ...);
  return text;
}

}  // namespace l3c::runtime
