#include "layers/search/lowering.h"

#include "layers/support/units.h"

namespace l3c::search {

std::optional<Mode> ParseMode(std::string_view text) {
  if (text == "off") return Mode::kOff;
  if (text == "greedy") return Mode::kGreedy;
  if (text == "egraph") return Mode::kEGraph;
  return std::nullopt;
}

std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kOff:
      return "off";
    case Mode::kGreedy:
      return "greedy";
    case Mode::kEGraph:
      return "egraph";
  }
  return {};
}

std::string_view FailureName(const SearchFailure& failure) {
  static constexpr std::string_view kNames[] = {"NoCandidates", "TooManyCandidates", "Timeout"};
  return kNames[failure.index()];
}

void ReportFailure(const SearchFailure& failure, support::Span fallback,
                   support::Diagnostics& diagnostics) {
  using support::Kind;
  auto place = [&](support::Span span) { return span.known() ? span : fallback; };
  if (const auto* none = std::get_if<NoCandidates>(&failure)) {
    diagnostics.Error(Kind::kResourceBound, place(none->where), "NoCandidates: " + none->reason)
        .Fix(none->hint);
  } else if (const auto* many = std::get_if<TooManyCandidates>(&failure)) {
    diagnostics
        .Error(Kind::kResourceBound, place(many->where),
               "TooManyCandidates: " + support::PrintInteger(static_cast<int64_t>(many->count)) +
                   " would have to be scored one by one; " + many->loosest +
                   " is the loosest constraint")
        .Fix(many->hint);
  } else if (const auto* timeout = std::get_if<Timeout>(&failure)) {
    diagnostics
        .Error(Kind::kResourceBound, fallback,
               "Timeout: the budget of " + timeout->resource + " ran out while " + timeout->doing +
                   ": " + support::PrintInteger(static_cast<int64_t>(timeout->spent)) + " of " +
                   support::PrintInteger(static_cast<int64_t>(timeout->budget)) + " spent")
        .Fix(timeout->hint);
  }
}

}  // namespace l3c::search
