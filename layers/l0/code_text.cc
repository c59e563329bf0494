#include "layers/l0/code_text.h"

#include <charconv>
#include <cstdio>

#include "layers/support/token.h"

namespace l3c::l0 {
namespace {

constexpr size_t kDigits = 16;

std::string HexText(uint64_t digest) {
  char text[kDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

}  // namespace

void PrintCode(const KernelCode& code, const std::string& kernel, support::Printer& out) {
  const std::string head = "code " + kernel + " : ";
  if (code.form == KernelCode::Form::kObject) {
    out.Line(head + "object " + code.symbol + " at " + support::Quote(code.path) + " of " +
             support::Quote(HexText(code.digest)));
    return;
  }
  out.Open(head + "llvm " + code.symbol + " {");
  for (size_t at = 0; at < code.text.size();) {
    const size_t end = std::min(code.text.find('\n', at), code.text.size());
    out.Line(support::Quote(code.text.substr(at, end - at)));
    at = end + 1;
  }
  out.Close("}");
}

std::optional<KernelCode> ParseCode(support::ParserBase& p) {
  const uint32_t begin = p.Here();
  KernelCode code;
  if (p.AcceptWord("object")) {
    code.form = KernelCode::Form::kObject;
  } else if (!p.AcceptWord("llvm")) {
    p.ErrorExpected("the form of the code (llvm, object)");
    return std::nullopt;
  }
  const std::optional<support::Name> symbol = p.ExpectName("the symbol of the code");
  if (!symbol) return std::nullopt;
  code.symbol = symbol->text;
  if (code.form == KernelCode::Form::kLlvm) {
    if (!p.Expect("{")) return std::nullopt;
    while (!p.At("}")) {
      const std::optional<std::string> line = p.ExpectString("a line of the module");
      if (!line) return std::nullopt;
      code.text += *line + "\n";
    }
    p.Next();
    code.span = p.SpanFrom(begin);
    return code;
  }
  if (!p.ExpectWord("at")) return std::nullopt;
  const std::optional<std::string> path = p.ExpectString("the shared object's file");
  if (!path || !p.ExpectWord("of")) return std::nullopt;
  code.path = *path;
  const support::Span at = p.Peek().span;
  const std::optional<std::string> digest = p.ExpectString("the digest of the file");
  if (!digest) return std::nullopt;
  const char* end = digest->data() + digest->size();
  const auto read = std::from_chars(digest->data(), end, code.digest, 16);
  if (digest->size() != kDigits || read.ec != std::errc() || read.ptr != end) {
    p.Error(at, "a digest has sixteen hexadecimal digits");
    return std::nullopt;
  }
  code.span = p.SpanFrom(begin);
  return code;
}

}  // namespace l3c::l0
