// SARIF 2.1.0, the OASIS interchange format of static analysis results.
#include <string>

#include <nlohmann/json.hpp>

#include "layers/support/diagnostics.h"

namespace l3c::support {
namespace {

using Json = nlohmann::ordered_json;

constexpr Kind kKinds[] = {Kind::kSyntax,   Kind::kSafety,        Kind::kConsistency,
                           Kind::kLiveness, Kind::kResourceBound, Kind::kEnvironment};

const char* Description(Kind kind) {
  switch (kind) {
    case Kind::kSyntax:
      return "The text does not have the form the language asks for";
    case Kind::kSafety:
      return "A reference does not resolve or a type does not match";
    case Kind::kConsistency:
      return "Declared constraints contradict each other or the structure";
    case Kind::kLiveness:
      return "A resource is produced and never consumed";
    case Kind::kResourceBound:
      return "Memory, compute, time or space is unbounded or exceeded";
    case Kind::kEnvironment:
      return "A file, a device or the system is not as needed";
  }
  return "";
}

Json Location(const SourceFile& source, Span span) {
  Json location;
  location["artifactLocation"]["uri"] = source.name();
  if (span.known()) {
    const LineColumn begin = source.Position(span.begin), end = source.Position(span.end);
    location["region"] = {{"startLine", begin.line},  {"startColumn", begin.column},
                          {"endLine", end.line},      {"endColumn", end.column},
                          {"byteOffset", span.begin}, {"byteLength", span.end - span.begin}};
  }
  return {{"physicalLocation", location}};
}

}  // namespace

std::string Diagnostics::RenderSarif() const {
  Json rules = Json::array();
  for (Kind kind : kKinds) {
    rules.push_back({{"id", KindName(kind)}, {"shortDescription", {{"text", Description(kind)}}}});
  }
  Json results = Json::array();
  for (const Diagnostic& diagnostic : all_) {
    Json result;
    result["ruleId"] = KindName(diagnostic.kind);
    result["ruleIndex"] = static_cast<int>(diagnostic.kind);
    result["level"] = "error";
    result["message"]["text"] = diagnostic.message;
    if (source_ != nullptr) {
      result["locations"] = Json::array({Location(*source_, diagnostic.span)});
    }
    if (!diagnostic.notes.empty()) {
      Json related = Json::array();
      for (const Note& note : diagnostic.notes) {
        Json place = source_ != nullptr ? Location(*source_, note.span) : Json::object();
        place["message"]["text"] = note.message;
        related.push_back(std::move(place));
      }
      result["relatedLocations"] = std::move(related);
    }
    if (!diagnostic.label.empty()) result["properties"]["label"] = diagnostic.label;
    if (!diagnostic.fix.empty()) result["properties"]["fix"] = diagnostic.fix;
    results.push_back(std::move(result));
  }
  Json run;
  run["tool"]["driver"] = {{"name", "l3c"}, {"rules", std::move(rules)}};
  run["columnKind"] = "unicodeCodePoints";
  run["results"] = std::move(results);
  if (suppressed_ > 0) run["properties"]["suppressed"] = suppressed_;
  const Json document = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                         {"version", "2.1.0"},
                         {"runs", Json::array({std::move(run)})}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace l3c::support
