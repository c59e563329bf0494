#include "tools/l3c/json_lines.h"

#include <iostream>
#include <utility>

#include "layers/support/diagnostics.h"
#include "nlohmann/json.hpp"

namespace l3c::tools {
namespace {

using nlohmann::ordered_json;

bool in_use = false;
bool ended = false;

void AddPlace(const support::Diagnostics& diagnostics, support::Span span, ordered_json& object) {
  if (diagnostics.source() == nullptr) return;
  object["file"] = diagnostics.source()->name();
  if (!span.known()) return;
  const support::LineColumn place = diagnostics.source()->Position(span.begin);
  object["line"] = place.line;
  object["column"] = place.column;
}

}  // namespace

void UseJsonLines(bool use) { in_use = use; }

void PrintJsonLine(const ordered_json& event) {
  std::cout << event.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  ended = event.contains("event") && event["event"] == "done";
}

void PrintJsonDiagnostic(const ordered_json& members) {
  if (!in_use) return;
  ordered_json event = {{"event", "diagnostic"}};
  event.update(members);
  PrintJsonLine(event);
}

void PrintJsonDiagnostics(const support::Diagnostics& diagnostics) {
  for (const support::Diagnostic& diagnostic : diagnostics.all()) {
    ordered_json members = {{"kind", support::KindName(diagnostic.kind)}};
    AddPlace(diagnostics, diagnostic.span, members);
    members["message"] = diagnostic.message;
    if (!diagnostic.label.empty()) members["label"] = diagnostic.label;
    for (const support::Note& note : diagnostic.notes) {
      ordered_json noted = ordered_json::object();
      if (note.span.known()) AddPlace(diagnostics, note.span, noted);
      noted["message"] = note.message;
      members["notes"].push_back(std::move(noted));
    }
    if (!diagnostic.fix.empty()) members["fix"] = diagnostic.fix;
    PrintJsonDiagnostic(members);
  }
}

void EndJsonLines(bool ok) {
  if (in_use && !ended) PrintJsonLine({{"event", "done"}, {"ok", ok}});
}

}  // namespace l3c::tools
