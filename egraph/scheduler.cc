#include "egraph/scheduler.h"

#include <algorithm>
#include <limits>

namespace l3c::egraph {
namespace {

constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max() / 2;

}  // namespace

uint64_t Scheduler::Doubled(uint64_t number, uint32_t times) const {
  return times >= 62 || number > (kForever >> times) ? kForever : number << times;
}

uint64_t Scheduler::BannedFor(RuleId rule) const {
  const RuleState* state = Find(rule);
  return state == nullptr || state->banned_until <= step_ ? 0 : state->banned_until - step_;
}

uint64_t Scheduler::MatchLimit(RuleId rule) const {
  const RuleState* state = Find(rule);
  return Doubled(options_.match_limit, state == nullptr ? 0 : state->bans);
}

void Scheduler::Ban(RuleId rule) {
  if (rule.index >= rules_.size()) rules_.resize(rule.index + 1);
  RuleState& state = rules_[rule.index];
  // At least the step after this one is left out.
  const uint64_t length = std::max<uint64_t>(1, Doubled(options_.ban_length, state.bans));
  state.banned_until = std::min(kForever, step_ + 1 + length);
  ++state.bans;
}

bool Scheduler::EndFirstBan(std::span<const RuleId> rules) {
  uint64_t first = kForever;
  bool any = false;
  for (RuleId rule : rules) {
    const RuleState* state = Find(rule);
    if (state == nullptr || state->banned_until <= step_ + 1) continue;
    any = true;
    first = std::min(first, state->banned_until);
  }
  // A ban that ends with the next step anyway counts too: that step is still to come.
  for (RuleId rule : rules) {
    const RuleState* state = Find(rule);
    if (state != nullptr && state->banned_until == step_ + 1) return true;
  }
  if (!any) return false;
  const uint64_t sooner = first - (step_ + 1);
  for (RuleId rule : rules) {
    if (rule.index >= rules_.size()) continue;
    RuleState& state = rules_[rule.index];
    if (state.banned_until > step_ + 1) state.banned_until -= sooner;
  }
  return true;
}

}  // namespace l3c::egraph
