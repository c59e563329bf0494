// The backoff scheduler: rules that match too often rest for a while.
//
// A rule with more than `match_limit` matches in one step is banned for `ban_length` steps of the
// scheduler; what it found is dropped and found again later. Both numbers double with every ban of
// that rule. A step in which nothing happens while a rule is banned does not end a saturation: the
// bans are shortened so that the first of them ends with the next step.
//
// Without a scheduler (the simple one) every rule is searched for at every step.
//
// Deterministic: what it does depends only on the counts of matches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/ids.h"

namespace l3c::egraph {

struct BackoffOptions {
  uint64_t match_limit = 1000;
  uint64_t ban_length = 5;  // steps
};

class Scheduler {
 public:
  explicit Scheduler(BackoffOptions options) : options_(options) {}

  const BackoffOptions& options() const { return options_; }

  // A step of the scheduler is a step of a ruleset that runs under it.
  void BeginStep() { ++step_; }
  // For how many steps, this one included, the rule is still banned; 0: it may run.
  uint64_t BannedFor(RuleId rule) const;
  // The matches that the rule may have in one step.
  uint64_t MatchLimit(RuleId rule) const;
  void Ban(RuleId rule);
  // Shortens the bans of `rules` by the same number of steps, so that the first of them ends with
  // the next step. False when none of them is banned after this step.
  bool EndFirstBan(std::span<const RuleId> rules);

 private:
  struct RuleState {
    uint32_t bans = 0;
    uint64_t banned_until = 0;  // the first step in which it may run again
  };
  // A limit that has doubled so often is none.
  uint64_t Doubled(uint64_t number, uint32_t times) const;
  const RuleState* Find(RuleId rule) const {
    return rule.index < rules_.size() ? &rules_[rule.index] : nullptr;
  }

  BackoffOptions options_;
  uint64_t step_ = 0;
  std::vector<RuleState> rules_;  // by rule
};

}  // namespace l3c::egraph
