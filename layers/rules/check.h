// Whether the rules of a file hold.
//
//   RuleFile file = *ReadRuleFile(source, diagnostics);
//   CheckReport report = CheckRules(file, {.cases = 200});
//   ReportFaults(report, diagnostics);            // at the rules' places
//
// What a rule must keep depends on what its ruleset is for. A rule of the algebra says that two
// tensors are equal: it is tried on random instances of its left side (instance.h), both sides
// computed by the reference interpreter, and judged by its class of numerics (agreement.h). A rule
// of another ruleset gives an answer to a request: it is tried on random facts that meet its
// premises, and judged by what the terms mean (meaning.h). A counterexample is shrunk as far as it
// goes. Each case has a seed of its own, so that the first failing one is the same for any number
// of cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/rules/rule_file.h"
#include "layers/rules/value_check.h"

namespace l3c::rules {

struct CheckOptions {
  int64_t cases = 200;  // of each rule
  uint64_t seed = 0;
  // Rules of higher classes are not run under --numerics, and not checked.
  egraph::Numerics numerics = egraph::Numerics::kFast;
};

struct RuleVerdict {
  enum class Kind : uint8_t {
    kHolds,
    kFails,
    kUntested,  // no case matched it: nothing is known
    kFacts,     // it only states facts for other rules
    kLeftOut,   // of a higher class of numerics than what was asked for
  };
  RuleInfo rule;
  Kind kind = Kind::kUntested;
  int64_t cases = 0;   // that matched
  uint64_t draws = 0;  // tried for them
  std::string why;     // kUntested
  std::string grows;   // of an algebra rule that holds: the file's rules come to no end, and which
  std::optional<Counterexample> counterexample;
  int64_t failing_case = 0;
  std::string fix;
};
std::string_view VerdictName(RuleVerdict::Kind kind);  // "holds", "fails", …

struct CheckReport {
  std::vector<RuleVerdict> rules;
  bool sound() const;  // none fails
};

CheckReport CheckRules(const RuleFile& file, const CheckOptions& options);

// An error for every rule that fails.
void ReportFaults(const CheckReport& report, support::Diagnostics& diagnostics);

}  // namespace l3c::rules
