#include "tools/l3c/egraph_errors.h"

#include <algorithm>
#include <iostream>
#include <string_view>
#include <utility>

#include "layers/support/source.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

support::Kind KindOf(egraph::ErrorKind kind) {
  switch (kind) {
    case egraph::ErrorKind::kSyntax:
      return support::Kind::kSyntax;
    case egraph::ErrorKind::kSafety:
      return support::Kind::kSafety;
    case egraph::ErrorKind::kConsistency:
      return support::Kind::kConsistency;
    case egraph::ErrorKind::kResourceBound:
      return support::Kind::kResourceBound;
    case egraph::ErrorKind::kEnvironment:
      return support::Kind::kEnvironment;
  }
  return support::Kind::kSyntax;
}

// `begin` and `end` are of the text as it was read, with the byte order mark that it may begin
// with.
void Report(const std::string& file, const std::string& text, support::Kind kind, uint32_t begin,
            uint32_t end, const std::string& message, const Options& options) {
  const support::SourceFile source(file, text);
  const auto mark = static_cast<uint32_t>(text.size() - source.text().size());
  const auto size = static_cast<uint32_t>(source.text().size());
  support::Span span{std::max(begin, mark) - mark, std::max(end, mark) - mark};
  // At the very end, the last character is shown.
  if (span.end > size) span.end = size;
  if (span.begin >= span.end) span = {size == 0 ? 0 : std::min(span.begin, size - 1), span.end};
  if (span.begin == span.end && span.end < size) ++span.end;
  support::Diagnostics diagnostics(&source);
  diagnostics.Error(kind, span, message);
  std::cerr << (options.sarif ? diagnostics.RenderSarif() : diagnostics.Render(options.color));
  PrintJsonDiagnostics(diagnostics);
}

}  // namespace

std::string ErrorLine(const egraph::ProgramStatus& status) {
  return status.file + ":" + std::to_string(status.line) + ":" + std::to_string(status.column) +
         ": error[" + std::string(egraph::ErrorKindName(status.kind)) + "]: " + status.message;
}

void ReportError(const egraph::ProgramStatus& status, const std::string& text,
                 const Options& options) {
  Report(status.file, status.included == nullptr ? text : *status.included, KindOf(status.kind),
         status.begin, status.end, status.message, options);
}

void ReportError(const egraph::SerializedResult& read, const std::string& text,
                 const Options& options) {
  // Lines of larger files are not counted by whoever shows them; the parser's words have the place.
  if (!read.offset || text.size() > support::SourceFile::kMaxBytes) {
    Refuse(read.file, KindOf(read.kind), read.message, options);
    return;
  }
  constexpr std::string_view kPlaced = ": ";
  const size_t place = read.message.find(kPlaced);
  const std::string message =
      place == std::string::npos ? read.message : read.message.substr(place + kPlaced.size());
  Report(read.file, text, KindOf(read.kind), *read.offset, *read.offset + 1, message, options);
}

bool Refuse(const std::string& path, support::Kind kind, const std::string& message,
            const Options& options) {
  const support::SourceFile source(path, "");
  support::Diagnostics diagnostics(&source);
  diagnostics.Error(kind, {}, message);
  std::cerr << (options.sarif ? diagnostics.RenderSarif() : diagnostics.Render(options.color));
  PrintJsonDiagnostics(diagnostics);
  return false;
}

}  // namespace l3c::tools
