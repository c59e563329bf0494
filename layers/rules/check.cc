#include "layers/rules/check.h"

#include <algorithm>
#include <functional>

#include "layers/rules/fact_check.h"

namespace l3c::rules {
namespace {

using egraph::Numerics;
using Outcome = ValueCheck::Outcome;

// Draws for each case that is wanted, before a rule counts as one that nothing matches.
constexpr uint64_t kDrawsPerCase = 40;
constexpr uint64_t kLeastDraws = 4000;
constexpr size_t kShrinkAttempts = 10'000;

uint64_t SeedOf(uint64_t seed, uint64_t draw) {
  return (seed * 0x9e3779b97f4a7c15u) ^ (draw * 0xd1342543de82ef95u + 1);
}

// Tries one case; where it does not match and `nearest` is given, says why.
using TryCase = std::function<Outcome(Choices&, Counterexample*, std::string* nearest)>;

void RunCases(const TryCase& try_case, const CheckOptions& options, RuleVerdict& verdict) {
  const uint64_t most = std::max(kLeastDraws, static_cast<uint64_t>(options.cases) * kDrawsPerCase);
  std::optional<uint64_t> missed;
  for (; verdict.cases < options.cases && verdict.draws < most; ++verdict.draws) {
    const uint64_t seed = SeedOf(options.seed, verdict.draws);
    Choices choices(seed);
    const Outcome outcome = try_case(choices, nullptr, nullptr);
    if (outcome == Outcome::kNoMatch) missed = seed;
    if (outcome == Outcome::kAgrees) ++verdict.cases;
    if (outcome != Outcome::kDisagrees) continue;
    const Tape smallest =
        Shrink(choices.Drawn(), kShrinkAttempts, [&](const Tape& trial, Tape* used) {
          Choices replay(trial);
          const bool fails = try_case(replay, nullptr, nullptr) == Outcome::kDisagrees;
          *used = replay.Drawn();
          return fails;
        });
    verdict.kind = RuleVerdict::Kind::kFails;
    verdict.failing_case = verdict.cases;
    verdict.counterexample.emplace();
    Choices replay(smallest);
    try_case(replay, &*verdict.counterexample, nullptr);
    return;
  }
  if (verdict.cases > 0) {
    verdict.kind = RuleVerdict::Kind::kHolds;
    return;
  }
  verdict.why = "no instance can be drawn: its patterns contradict one another";
  if (missed) {
    Choices choices(*missed);
    try_case(choices, nullptr, &verdict.why);
    verdict.why = "none of " + std::to_string(verdict.draws) +
                  " instances of its patterns meets its premises; in the last one " + verdict.why;
  }
}

// The least class under which so many cases hold, if there is one above the rule's own.
std::string WeakerClass(ValueCheck& check, const RuleInfo& rule, const CheckOptions& options) {
  for (Numerics weaker : {Numerics::kReassoc, Numerics::kFast}) {
    if (weaker <= rule.numerics) continue;
    int64_t held = 0;
    bool holds = true;
    const int64_t cases = std::max<int64_t>(options.cases, 200);
    const uint64_t draws = std::max(kLeastDraws, static_cast<uint64_t>(cases) * kDrawsPerCase);
    for (uint64_t draw = 0; holds && held < cases && draw < draws; ++draw) {
      Choices choices(SeedOf(options.seed, draw));
      const Outcome outcome = check.Try(choices, weaker, nullptr);
      holds = outcome != Outcome::kDisagrees;
      held += outcome == Outcome::kAgrees;
    }
    if (holds && held > 0) {
      return "declare it ':numerics " + std::string(NumericsName(weaker)) +
             "': " + std::to_string(held) + " cases hold under that class";
    }
  }
  return "add the premise under which it holds, or correct its right side";
}

void CheckByValue(const RuleFile& file, const CheckOptions& options, RuleVerdict& verdict) {
  ValueCheck check(file, verdict.rule);
  if (check.states_facts_only()) {
    verdict.kind = RuleVerdict::Kind::kFacts;
    return;
  }
  if (!check.obstacle().empty()) {
    verdict.why = check.obstacle();
    return;
  }
  RunCases(
      [&](Choices& choices, Counterexample* counterexample, std::string* nearest) {
        return check.Try(choices, verdict.rule.numerics, counterexample, nearest);
      },
      options, verdict);
  if (verdict.counterexample) verdict.fix = WeakerClass(check, verdict.rule, options);
}

void CheckByMeaning(const RuleFile& file, const CheckOptions& options, RuleVerdict& verdict) {
  FactCheck check(file, verdict.rule);
  RunCases([&](Choices& choices, Counterexample* counterexample,
               std::string* nearest) { return check.Try(choices, counterexample, nearest); },
           options, verdict);
  if (verdict.counterexample) {
    verdict.fix = "docs/rules.md says what each term of '" + verdict.rule.ruleset +
                  "' means; add the premise that is missing";
  }
}

}  // namespace

std::string_view VerdictName(RuleVerdict::Kind kind) {
  switch (kind) {
    case RuleVerdict::Kind::kHolds:
      return "holds";
    case RuleVerdict::Kind::kFails:
      return "fails";
    case RuleVerdict::Kind::kUntested:
      return "untested";
    case RuleVerdict::Kind::kFacts:
      return "facts";
    case RuleVerdict::Kind::kLeftOut:
      return "left out";
  }
  return "";
}

bool CheckReport::sound() const {
  return std::none_of(rules.begin(), rules.end(), [](const RuleVerdict& verdict) {
    return verdict.kind == RuleVerdict::Kind::kFails;
  });
}

CheckReport CheckRules(const RuleFile& file, const CheckOptions& options) {
  CheckReport report;
  for (const RuleInfo& rule : file.rules) {
    RuleVerdict& verdict = report.rules.emplace_back();
    verdict.rule = rule;
    if (rule.numerics > options.numerics) {
      verdict.kind = RuleVerdict::Kind::kLeftOut;
    } else if (rule.ruleset == "algebra") {
      CheckByValue(file, options, verdict);
    } else {
      CheckByMeaning(file, options, verdict);
    }
  }
  return report;
}

void ReportFaults(const CheckReport& report, support::Diagnostics& diagnostics) {
  for (const RuleVerdict& verdict : report.rules) {
    if (verdict.kind != RuleVerdict::Kind::kFails) continue;
    support::Diagnostic& error =
        diagnostics.Error(support::Kind::kConsistency, verdict.rule.span,
                          "the rule '" + verdict.rule.name + "' does not hold as " +
                              std::string(NumericsName(verdict.rule.numerics)) + ": " +
                              verdict.counterexample->reason);
    for (const std::string& line : verdict.counterexample->lines) error.With({{}, line});
    error.Fix(verdict.fix);
  }
}

}  // namespace l3c::rules
