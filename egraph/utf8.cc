#include "egraph/utf8.h"

#include <cstdint>

namespace l3c::egraph {

size_t FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) {
      ++at;
      continue;
    }
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() - at < length) return at;
    uint32_t code = first & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
      if (!ContinuesCharacter(text[at + i])) return at;
      code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
    }
    const uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace l3c::egraph
