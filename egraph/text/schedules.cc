// Runs and schedules.
#include "egraph/text/loader.h"

#include <utility>

#include "egraph/text/suggest.h"

namespace l3c::egraph {

bool Loader::FinishRun(uint32_t n, const Schedule& schedule) {
  result_.reports.push_back(RunSchedule(graph_, schedule, options_.budget));
  if (result_.reports.back().stop != StopReason::kFailed) return true;
  return Error(Offset(n), graph_.failure().value_or("the run failed"), ErrorKind::kConsistency);
}

bool Loader::ReadQuery(uint32_t n, uint32_t first, Query* query) {
  Compiler compiler(graph_, doc_);
  for (uint32_t i = first; i < Count(n); ++i) {
    if (!compiler.AddFact(Child(n, i))) return Error(compiler.error());
  }
  return compiler.FinishQuery(query) || Error(compiler.error());
}

std::optional<Schedule> Loader::ReadRun(uint32_t n, SchedulerId scheduler, uint32_t first) {
  RulesetId ruleset = kDefaultRuleset;
  uint64_t times = 1;
  uint32_t i = first;
  if (i < Count(n) && doc_.IsSymbol(Child(n, i)) && !IsOption(Child(n, i))) {
    const std::optional<RulesetId> named = ReadRuleset(Child(n, i++));
    if (!named) return std::nullopt;
    ruleset = *named;
  }
  if (i < Count(n) && doc_.node(Child(n, i)).kind == Document::Kind::kInt) {
    if (doc_.Int(Child(n, i)) < 0) {
      Error(Offset(Child(n, i)), "a count is not negative");
      return std::nullopt;
    }
    times = static_cast<uint64_t>(doc_.Int(Child(n, i++)));
  }
  Schedule step = Schedule::Run(ruleset, scheduler);
  if (i < Count(n)) {
    if (!IsOption(Child(n, i)) || doc_.Text(Child(n, i)) != ":until") {
      Error(Offset(Child(n, i)), "unexpected " + Quoted(Child(n, i)));
      return std::nullopt;
    }
    Query until;
    if (!ReadQuery(n, i + 1, &until)) return std::nullopt;
    step = std::move(step).Until(std::move(until));
  }
  return times == 1 ? std::move(step) : Schedule::Repeat(times, std::move(step));
}

std::optional<Schedule> Loader::ReadRunWith(uint32_t n) {
  if (Count(n) < 2 || !doc_.IsSymbol(Child(n, 1))) {
    Error(Offset(n), "expected (run-with SCHEDULER [RULESET] [N] [:until FACT...])");
    return std::nullopt;
  }
  const SchedulerId scheduler = graph_.FindScheduler(doc_.Text(Child(n, 1)));
  if (!scheduler.valid()) {
    Error(
        Offset(Child(n, 1)),
        "unknown scheduler " + Quoted(Child(n, 1)) + "; (let-scheduler NAME (back-off)) makes one",
        ErrorKind::kSafety);
    return std::nullopt;
  }
  return ReadRun(n, scheduler, 2);
}

bool Loader::LetSchedulerCommand(uint32_t n) {
  std::string_view name;
  if (!Takes(n, 2, 2) || !NewName(Child(n, 1), &name)) return false;
  const uint32_t kind = Child(n, 2);
  if (!IsNonEmptyList(kind) || !doc_.IsSymbol(Child(kind, 0)) ||
      doc_.Text(Child(kind, 0)) != "back-off") {
    return Error(Offset(kind), "expected (back-off [:match-limit N] [:ban-length N])");
  }
  BackoffOptions options;
  for (uint32_t i = 1; i < Count(kind); i += 2) {
    const uint32_t option = Child(kind, i);
    const std::string_view text = IsOption(option) ? doc_.Text(option) : std::string_view();
    if (text != ":match-limit" && text != ":ban-length") {
      return Error(Offset(option), "expected :match-limit or :ban-length");
    }
    // No match at all would ban every rule for ever.
    const int64_t least = text == ":match-limit" ? 1 : 0;
    if (i + 1 == Count(kind) || doc_.node(Child(kind, i + 1)).kind != Document::Kind::kInt ||
        doc_.Int(Child(kind, i + 1)) < least) {
      return Error(Offset(option),
                   "a count from " + std::to_string(least) + " on must follow " + Quoted(option));
    }
    (text == ":match-limit" ? options.match_limit : options.ban_length) =
        static_cast<uint64_t>(doc_.Int(Child(kind, i + 1)));
  }
  graph_.DeclareScheduler(name, options);
  return true;
}

std::optional<RulesetId> Loader::ReadRuleset(uint32_t n) {
  if (doc_.IsSymbol(n)) {
    const RulesetId ruleset = graph_.FindRuleset(doc_.Text(n));
    if (ruleset.valid()) return ruleset;
  }
  Suggestion suggestion(doc_.Text(n));
  for (uint32_t r = 0; r < graph_.ruleset_count(); ++r) {
    suggestion.Offer(graph_.ruleset_name(RulesetId{r}));
  }
  Error(Offset(n), "unknown ruleset " + Quoted(n) + suggestion.Text(), ErrorKind::kSafety);
  return std::nullopt;
}

std::optional<Schedule> Loader::ReadSchedule(uint32_t n) {
  if (doc_.IsSymbol(n)) {
    const std::optional<RulesetId> ruleset = ReadRuleset(n);
    if (!ruleset) return std::nullopt;
    return Schedule::Run(*ruleset);
  }
  if (!IsNonEmptyList(n) || !doc_.IsSymbol(Child(n, 0))) {
    Error(Offset(n), "expected a schedule");
    return std::nullopt;
  }
  const std::string_view head = doc_.Text(Child(n, 0));
  if (head == "run") return ReadRun(n);
  if (head == "run-with") return ReadRunWith(n);
  if (head == "let-scheduler") {
    if (!LetSchedulerCommand(n)) return std::nullopt;
    return Schedule::Sequence({});
  }
  uint32_t first = 1;
  uint64_t times = 0;
  if (head == "repeat") {
    if (Count(n) < 2 || doc_.node(Child(n, 1)).kind != Document::Kind::kInt ||
        doc_.Int(Child(n, 1)) < 0) {
      Error(Offset(n), "expected (repeat N SCHEDULE...)");
      return std::nullopt;
    }
    times = static_cast<uint64_t>(doc_.Int(Child(n, 1)));
    first = 2;
  } else if (head != "saturate" && head != "seq") {
    Error(Offset(n), "unknown schedule " + Quoted(Child(n, 0)) +
                         "; run, run-with, let-scheduler, repeat, saturate and seq are known");
    return std::nullopt;
  }
  std::vector<Schedule> parts;
  for (uint32_t i = first; i < Count(n); ++i) {
    std::optional<Schedule> part = ReadSchedule(Child(n, i));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
  }
  Schedule body = Schedule::Sequence(std::move(parts));
  if (head == "repeat") return Schedule::Repeat(times, std::move(body));
  if (head == "saturate") return Schedule::Saturate(std::move(body));
  return body;
}

bool Loader::RunCommand(uint32_t n) {
  const std::optional<Schedule> schedule = ReadRun(n);
  return schedule && FinishRun(n, *schedule);
}

bool Loader::RunScheduleCommand(uint32_t n) {
  std::vector<Schedule> parts;
  for (uint32_t i = 1; i < Count(n); ++i) {
    std::optional<Schedule> part = ReadSchedule(Child(n, i));
    if (!part) return false;
    parts.push_back(std::move(*part));
  }
  return FinishRun(n, Schedule::Sequence(std::move(parts)));
}

}  // namespace l3c::egraph
