// Why two terms are not equal: for each rule that could have joined them, what kept it from it.
//
// A rule could join classes a and b when it unites terms of their sort. Taken as a query, its
// premises with one side of that union in class a and the other in class b either match, and then
// the rule has not been applied (its class of numerics, its ruleset, a scheduler or a budget says
// why), or they do not, and then the match that comes nearest says which premise fails. Last, two
// terms may be equal by congruence: the e-nodes of both classes that differ least are named.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "egraph/egraph.h"

namespace l3c::egraph {

struct WhyNotRule {
  enum class Kind : uint8_t {
    kPremise,    // no match: a premise fails
    kElsewhere,  // the premises match, but what the rule makes is not in the other class
    kWaiting,    // a match that would join the two, not applied
  };
  RuleId rule;
  Kind kind = Kind::kPremise;
  size_t matched = 0;   // premises that hold in the nearest match
  size_t premises = 0;  // all of them
  std::string nearest;  // the nearest match: what holds, with its substitution
  std::string failed;   // the premise that fails, or what the rule makes instead
  // Why the rule did not run, or not to the end: "numerics", "never run", "banned", or the limit
  // that stopped it. Empty when it has seen everything.
  std::string held_back;
  bool searched_all = true;
};

struct WhyNot {
  bool equal = false;             // then there is nothing to say
  std::vector<WhyNotRule> rules;  // by rule
  // False where the search was cut off: by its limits on rows and on unions tried, or by time.
  bool searched_all = true;
  // "(F x) and (F y) would be equal if x = y": the nearest by congruence, if any.
  std::string congruence;
};

// Both ids must be classes of one sort. The graph is rebuilt first. Takes no longer than
// `max_seconds`, but for what it takes to cost the terms of the graph.
WhyNot ExplainWhyNot(EGraph& graph, Value a, Value b,
                     double max_seconds = std::numeric_limits<double>::infinity());
// Why a rule has no match: the match that comes nearest (its substitution in `nearest`, which may
// be empty) and the premise that it fails. kWaiting where there is a match after all. The graph is
// rebuilt first. `describe` names classes; "" leaves it to the smallest term.
using DescribeClass = std::function<std::string(Value class_id)>;
WhyNotRule WhyNoMatch(EGraph& graph, RuleId rule, DescribeClass describe = nullptr);
std::string WhyNotText(const EGraph& graph, const WhyNot& why_not);
std::string WhyNotJson(const EGraph& graph, const WhyNot& why_not);

}  // namespace l3c::egraph
