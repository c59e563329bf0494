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
constexpr size_t kShapeAttempts = 1000;
constexpr uint64_t kOtherValues = 12;
constexpr size_t kValueAttempts = 3000;

uint64_t SeedOf(uint64_t seed, uint64_t draw) {
  return (seed * 0x9e3779b97f4a7c15u) ^ (draw * 0xd1342543de82ef95u + 1);
}

// Tries one case; where it does not match and `nearest` is given, says why.
using TryCase =
    std::function<Outcome(Choices& shapes, Choices& values, Counterexample*, std::string* nearest)>;

// A case as it can be replayed.
struct Case {
  Tape shapes, values;
};

// First the shapes, each with some other values where the old ones do not show it any more, then
// the values.
Case Smallest(Case failing, const TryCase& try_case) {
  const auto fails = [&](const Tape& shapes, Choices values, Tape* used_shapes, Tape* used_values) {
    Choices replay(shapes);
    const bool disagrees = try_case(replay, values, nullptr, nullptr) == Outcome::kDisagrees;
    *used_shapes = replay.Drawn();
    *used_values = values.Drawn();
    return disagrees;
  };
  for (int round = 0; round < 2; ++round) {
    failing.shapes = Shrink(failing.shapes, kShapeAttempts, [&](const Tape& trial, Tape* used) {
      Tape values;
      bool found = fails(trial, Choices(failing.values), used, &values);
      for (uint64_t other = 0; !found && other < kOtherValues && !failing.values.empty(); ++other) {
        found = fails(trial, Choices(SeedOf(round, other)), used, &values);
      }
      // Only what is simpler is taken, and with it its values.
      if (found && (used->size() < failing.shapes.size() ||
                    (used->size() == failing.shapes.size() && *used < failing.shapes))) {
        failing.shapes = *used;
        failing.values = std::move(values);
      }
      return found;
    });
    failing.values = Shrink(failing.values, kValueAttempts, [&](const Tape& trial, Tape* used) {
      Tape shapes;
      return fails(failing.shapes, Choices(trial), &shapes, used);
    });
  }
  return failing;
}

void RunCases(const TryCase& try_case, const CheckOptions& options, RuleVerdict& verdict) {
  const uint64_t most = std::max(kLeastDraws, static_cast<uint64_t>(options.cases) * kDrawsPerCase);
  std::optional<uint64_t> missed;
  for (; verdict.cases < options.cases && verdict.draws < most; ++verdict.draws) {
    const uint64_t seed = SeedOf(options.seed, verdict.draws);
    Choices shapes(seed);
    Choices values(seed + 1);
    const Outcome outcome = try_case(shapes, values, nullptr, nullptr);
    if (outcome == Outcome::kNoMatch) missed = seed;
    if (outcome == Outcome::kAgrees) ++verdict.cases;
    if (outcome != Outcome::kDisagrees) continue;
    const Case smallest = Smallest({shapes.Drawn(), values.Drawn()}, try_case);
    verdict.kind = RuleVerdict::Kind::kFails;
    verdict.failing_case = verdict.cases;
    verdict.counterexample.emplace();
    Choices smallest_shapes(smallest.shapes);
    Choices smallest_values(smallest.values);
    try_case(smallest_shapes, smallest_values, &*verdict.counterexample, nullptr);
    return;
  }
  if (verdict.cases > 0) {
    verdict.kind = RuleVerdict::Kind::kHolds;
    return;
  }
  verdict.why = "no instance can be drawn: its patterns contradict one another";
  if (missed) {
    Choices shapes(*missed);
    Choices values(*missed + 1);
    try_case(shapes, values, nullptr, &verdict.why);
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
      const uint64_t seed = SeedOf(options.seed, draw);
      Choices shapes(seed);
      Choices values(seed + 1);
      const Outcome outcome = check.Try(shapes, values, weaker, nullptr);
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
  if (!check.obstacle().empty()) {
    verdict.why = check.obstacle();
    return;
  }
  RunCases(
      [&](Choices& shapes, Choices& values, Counterexample* counterexample, std::string* nearest) {
        return check.Try(shapes, values, verdict.rule.numerics, counterexample, nearest);
      },
      options, verdict);
  if (check.states_facts_only()) {
    // They were run, so that what contradicts the program has shown.
    if (verdict.kind == RuleVerdict::Kind::kHolds) verdict.kind = RuleVerdict::Kind::kFacts;
    if (verdict.counterexample) verdict.fix = "state only what holds of every program";
    return;
  }
  if (verdict.counterexample) verdict.fix = WeakerClass(check, verdict.rule, options);
  // A few instances show it, as growth does not depend on values.
  constexpr uint64_t kInstances = 8;
  for (uint64_t draw = 0; draw < kInstances && verdict.grows.empty(); ++draw) {
    Choices choices(SeedOf(options.seed, draw));
    if (verdict.kind == RuleVerdict::Kind::kHolds) verdict.grows = check.Growth(choices);
  }
}

bool Deletes(const RuleFile& file, const RuleInfo& rule) {
  const egraph::EGraph graph = NewGraph(file);
  const std::vector<egraph::Action>& actions = graph.rule(rule.id).actions;
  return std::any_of(actions.begin(), actions.end(), [](const egraph::Action& action) {
    return action.kind == egraph::Action::Kind::kRemove;
  });
}

void CheckByMeaning(const RuleFile& file, const CheckOptions& options, RuleVerdict& verdict) {
  FactCheck check(file, verdict.rule);
  RunCases([&](Choices& facts, Choices&, Counterexample* counterexample,
               std::string* nearest) { return check.Try(facts, counterexample, nearest); },
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
    } else if (Deletes(file, rule)) {
      verdict.kind = RuleVerdict::Kind::kFails;
      verdict.counterexample = Counterexample{"it deletes what others have stated", {}};
      verdict.fix = "add what is better, and let the costs decide";
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
