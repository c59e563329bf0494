// check, and what it says when it does not hold.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "egraph/text/loader.h"

namespace l3c::egraph {
namespace {

// A value in a message is cut where it gets longer.
constexpr size_t kMaxShownTerm = 200;

}  // namespace

bool Loader::CheckCommand(uint32_t n) {
  check_began_ = std::chrono::steady_clock::now();
  Query query;
  if (!ReadQuery(n, 1, &query)) return false;
  const std::optional<bool> holds = HasMatchInTime(query);
  if (!holds) {
    return Error(Offset(n),
                 "the " + std::string(StopReasonName(stopped_)) + " passed before this was known",
                 ErrorKind::kResourceBound);
  }
  return *holds ? ProveCheck(n, query) : CheckFailed(n);
}

std::optional<bool> Loader::HasMatchInTime(const Query& query) {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - check_began_;
  Budget left = options_.budget;
  if (std::isfinite(left.max_seconds)) {
    left.max_seconds = std::max(0.0, left.max_seconds - spent.count());
  }
  return HasMatchWithin(graph_, query, /*subsumed_too=*/true, left, &stopped_);
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
  return HasMatchInTime(query);
}

std::optional<bool> Loader::IsPresent(uint32_t expr) {
  Compiler compiler(graph_, doc_);
  Query query;
  if (!compiler.AddPresence(expr) || !compiler.FinishQuery(&query)) return std::nullopt;
  return HasMatchInTime(query);
}

// "; 'EXPR' is TERM" where the expression has no variables, or which part of it is not there.
std::string Loader::ValueInGraph(uint32_t expr) {
  const std::optional<bool> present = IsPresent(expr);
  if (!present) return "";
  if (!*present) {
    // The innermost part that is missing is why all around it are.
    uint32_t missing = expr;
    for (uint32_t i = 0; i < Count(missing); ++i) {
      const uint32_t part = Child(missing, i);
      if (!doc_.IsList(part) || IsPresent(part).value_or(true)) continue;
      missing = part;
      i = 0;
    }
    const bool computed = !graph_.FindFunction(doc_.Text(Child(missing, 0))).valid();
    return "; " + Quoted(missing) + (computed ? " has no value" : " is not in the e-graph");
  }
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
        const uint32_t expr = Child(fact, side);
        const bool global = doc_.IsSymbol(expr) && graph_.FindGlobal(doc_.Text(expr)) != nullptr;
        if (doc_.IsList(expr) || global) message += ValueInGraph(expr);
      }
    }
    return Error(Offset(fact), std::move(message), ErrorKind::kConsistency);
  }
  return Error(Offset(n), "check failed: no match for " + Quoted(n), ErrorKind::kConsistency);
}

}  // namespace l3c::egraph
