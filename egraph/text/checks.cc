// check, and what it says when it does not hold.
#include <optional>
#include <utility>

#include "egraph/text/loader.h"

namespace l3c::egraph {
namespace {

// A value in a message is cut where it gets longer.
constexpr size_t kMaxShownTerm = 200;

}  // namespace

bool Loader::CheckCommand(uint32_t n) {
  Query query;
  if (!ReadQuery(n, 1, &query)) return false;
  StopReason stopped;
  const std::optional<bool> holds =
      HasMatchWithin(graph_, query, /*subsumed_too=*/true, options_.budget, &stopped);
  if (!holds) {
    return Error(Offset(n),
                 "the " + std::string(StopReasonName(stopped)) + " passed before this was known");
  }
  return *holds ? ProveCheck(n, query) : CheckFailed(n);
}

// Whether there is a match of the facts [first, last) of `n`; nothing where they are no query by
// themselves, as when a later fact binds a variable of an earlier one.
std::optional<bool> Loader::Holds(uint32_t n, uint32_t first, uint32_t last) {
  Compiler compiler(graph_, doc_);
  Query query;
  for (uint32_t i = first; i < last; ++i) {
    if (!compiler.AddFact(Child(n, i))) return std::nullopt;
  }
  if (!compiler.FinishQuery(&query)) return std::nullopt;
  StopReason stopped;
  return HasMatchWithin(graph_, query, /*subsumed_too=*/true, options_.budget, &stopped);
}

// "; 'EXPR' is TERM" where the expression has no variables, or that it is not there.
std::string Loader::ValueInGraph(uint32_t expr) {
  Compiler compiler(graph_, doc_);
  Query query;
  if (!compiler.AddPresence(expr) || !compiler.FinishQuery(&query)) return "";
  StopReason stopped;
  const std::optional<bool> there =
      HasMatchWithin(graph_, query, /*subsumed_too=*/true, options_.budget, &stopped);
  if (!there) return "";
  if (!*there) return "; " + Quoted(expr) + " is not in the e-graph";
  // Everything is there already, so evaluating it adds nothing.
  EGraph::Global value;
  const ProgramStatus before = result_.status;
  if (!Evaluate(expr, expr, &value)) {
    graph_.ClearFailure();
    result_.status = before;
    return "";
  }
  const std::optional<std::string> text =
      Terms().Text(value.sort, graph_.Canonical(value.sort, value.value), kMaxShownTerm);
  return "; " + Quoted(expr) + " is " + text.value_or("a class without a term of finite cost");
}

bool Loader::CheckFailed(uint32_t n) {
  // The first fact that does not hold together with those before it.
  for (uint32_t i = 1; i < Count(n); ++i) {
    if (Holds(n, 1, i + 1).value_or(true)) continue;
    const uint32_t fact = Child(n, i);
    std::string message = "check failed: no match for " + Quoted(fact);
    if (i > 1 && Holds(n, i, i + 1).value_or(false)) {
      message += ", which holds alone, together with the facts before it";
    }
    if (doc_.IsSymbol(Child(fact, 0)) && doc_.Text(Child(fact, 0)) == "=") {
      for (uint32_t side = 1; side < Count(fact); ++side) {
        if (doc_.IsList(Child(fact, side))) message += ValueInGraph(Child(fact, side));
      }
    }
    return Error(Offset(fact), std::move(message));
  }
  return Error(Offset(n), "check failed: no match for " + Quoted(n));
}

}  // namespace l3c::egraph
