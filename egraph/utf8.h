// Text is UTF-8: programs, strings and names, so that what is written can be read everywhere.
#pragma once

#include <cstddef>
#include <string_view>

namespace l3c::egraph {

// The first byte that is no UTF-8 (overlong forms, surrogates and what lies beyond U+10FFFF are
// none); npos where all of it is.
size_t FindInvalidUtf8(std::string_view text);

// Whether the byte goes on with a character that began before it.
inline bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The longest beginning of `text`, which is UTF-8, that has at most `bytes` bytes and ends with a
// whole character.
inline std::string_view WholeCharacters(std::string_view text, size_t bytes) {
  if (bytes >= text.size()) return text;
  while (bytes != 0 && ContinuesCharacter(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

}  // namespace l3c::egraph
