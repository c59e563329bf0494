// Schedules: in which order rulesets run, how often, and under which scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "egraph/ids.h"
#include "egraph/rule.h"

namespace l3c::egraph {

class Schedule {
 public:
  enum class Kind : uint8_t { kRun, kRepeat, kSaturate, kSequence };

  static Schedule Run(RulesetId ruleset);  // one step
  static Schedule Run(RulesetId ruleset, SchedulerId scheduler);
  static Schedule Repeat(uint64_t times, Schedule body);
  static Schedule Saturate(Schedule body);
  static Schedule Sequence(std::vector<Schedule> parts);
  // A Run whose `query` has a match does nothing, and so ends a loop around it in which nothing
  // else changes the graph either.
  Schedule Until(Query query) &&;

  Kind kind() const { return kind_; }
  RulesetId ruleset() const { return ruleset_; }
  SchedulerId scheduler() const { return scheduler_; }  // invalid: the simple one
  uint64_t times() const { return times_; }
  const std::vector<Schedule>& parts() const { return parts_; }
  const std::vector<Query>& until() const { return until_; }  // none or one

 private:
  Kind kind_ = Kind::kSequence;
  RulesetId ruleset_;
  SchedulerId scheduler_;
  uint64_t times_ = 1;
  std::vector<Schedule> parts_;
  std::vector<Query> until_;
};

}  // namespace l3c::egraph
