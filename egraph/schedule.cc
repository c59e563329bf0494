#include "egraph/schedule.h"

#include <utility>

namespace l3c::egraph {

Schedule Schedule::Run(RulesetId ruleset) {
  Schedule s;
  s.kind_ = Kind::kRun;
  s.ruleset_ = ruleset;
  return s;
}

Schedule Schedule::Run(RulesetId ruleset, SchedulerId scheduler) {
  Schedule s = Run(ruleset);
  s.scheduler_ = scheduler;
  return s;
}

Schedule Schedule::Repeat(uint64_t times, Schedule body) {
  Schedule s;
  s.kind_ = Kind::kRepeat;
  s.times_ = times;
  s.parts_.push_back(std::move(body));
  return s;
}

Schedule Schedule::Saturate(Schedule body) {
  Schedule s;
  s.kind_ = Kind::kSaturate;
  s.parts_.push_back(std::move(body));
  return s;
}

Schedule Schedule::Sequence(std::vector<Schedule> parts) {
  Schedule s;
  s.kind_ = Kind::kSequence;
  s.parts_ = std::move(parts);
  return s;
}

Schedule Schedule::Until(Query query) && {
  until_.assign(1, std::move(query));
  return std::move(*this);
}

}  // namespace l3c::egraph
