#include "layers/support/token.h"

namespace l3c::support {
namespace {

constexpr size_t kMaxDescribed = 40;

}  // namespace

std::string Describe(const Token& token) {
  std::string text(token.text.substr(0, kMaxDescribed));
  if (token.text.size() > kMaxDescribed) {
    // Never cut inside a UTF-8 sequence.
    size_t cut = kMaxDescribed;
    while (cut > 0 && (static_cast<unsigned char>(token.text[cut]) & 0xC0) == 0x80) --cut;
    text.resize(cut);
    text += "…";
  }
  switch (token.kind) {
    case TokenKind::kEnd:
      return "end of file";
    case TokenKind::kString:
      return "string " + text;
    case TokenKind::kNumber:
      return "number '" + text + "'";
    case TokenKind::kWord:
    case TokenKind::kPunctuation:
      return "'" + text + "'";
  }
  return text;
}

std::string Unquote(std::string_view quoted) {
  std::string value;
  if (quoted.size() < 2) return value;
  quoted = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\' || i + 1 == quoted.size()) {
      value += quoted[i];
      continue;
    }
    const char escaped = quoted[++i];
    value += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
  }
  return value;
}

std::string Quote(std::string_view value) {
  std::string quoted = "\"";
  for (char c : value) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        quoted += c;
    }
  }
  quoted += '"';
  return quoted;
}

}  // namespace l3c::support
