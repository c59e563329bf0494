#include "egraph/extract/local_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/cost.h"
#include "egraph/extract/term_costs.h"

namespace l3c::egraph {
namespace {

// Of a single kick, so that no one of them takes everything.
constexpr uint64_t kMaxKickWork = 50'000;
// Of a descent, between looks at the clock.
constexpr size_t kPopsBetweenLooks = 64;

}  // namespace

LocalSearch::LocalSearch(const ChoiceProblem& problem, std::span<const double> costs,
                         TimeLimit time)
    : p_(problem), costs_(costs), time_(time), component_(CyclicComponents(problem)) {
  const size_t classes = p_.class_count();
  first_use_.assign(p_.nodes.size() + 1, 0);
  first_user_.assign(classes + 1, 0);
  for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
    first_use_[n] = static_cast<uint32_t>(uses_of_.size());
    const ChoiceNode& node = p_.nodes[n];
    if (!node.alive) continue;
    uses_of_.insert(uses_of_.end(), node.children.begin(), node.children.end());
    uses_of_.insert(uses_of_.end(), node.needs.begin(), node.needs.end());
    gains_ |= costs_[n] < 0;
  }
  first_use_.back() = static_cast<uint32_t>(uses_of_.size());
  for (uint32_t c : uses_of_) ++first_user_[c + 1];
  for (size_t c = 0; c < classes; ++c) first_user_[c + 1] += first_user_[c];
  users_.resize(uses_of_.size());
  std::vector<uint32_t> next(first_user_.begin(), first_user_.end() - 1);
  for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
    for (uint32_t c : Uses(n)) users_[next[c]++] = n;
  }
  floor_.assign(classes, 0);
  for (uint32_t c = 0; c < classes; ++c) {
    if (p_.class_nodes[c].size() > 1) choosable_.push_back(c);
    uint32_t sharers = 0, last = kNone;
    for (uint32_t n : Users(c)) sharers += std::exchange(last, p_.nodes[n].cls) != p_.nodes[n].cls;
    if (sharers > 1 && !p_.required[c]) shared_.push_back(c);
    double least = kInfinity;
    for (uint32_t n : p_.class_nodes[c]) least = std::min(least, costs_[n]);
    floor_[c] = least;
  }
  choice_.assign(classes, kNone);
  uses_.assign(classes, 0);
  frozen_.assign(classes, 0);
  queued_.assign(classes, 0);
  seen_.assign(classes, 0);
}

void LocalSearch::Estimate(std::span<const double> guide) {
  TermCosts terms(p_, guide.empty() ? costs_ : guide, Needs::kIgnored);
  estimate_ = std::move(terms.cost);
  own_term_ = std::move(terms.node);
  work_ += p_.nodes.size();
}

bool LocalSearch::Start(std::span<const double> guide) {
  Estimate(guide);
  std::fill(uses_.begin(), uses_.end(), 0);
  changes_.clear();
  total_ = 0;
  valid_ = true;
  for (uint32_t c = 0; valid_ && c < p_.class_count(); ++c) {
    if (p_.required[c]) valid_ = Acquire(c, kInfinity);
  }
  changes_.clear();
  // The terms of the estimates never run in a cycle.
  return valid_ || StartFrom(std::vector<uint32_t>(own_term_));
}

bool LocalSearch::StartFrom(std::span<const uint32_t> choice) {
  if (estimate_.empty()) Estimate({});
  std::fill(uses_.begin(), uses_.end(), 0);
  changes_.clear();
  total_ = 0;
  valid_ = false;
  std::vector<uint32_t> reached;
  const auto use = [&](uint32_t c) {
    if (uses_[c]++ == 0) reached.push_back(c);
  };
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    if (p_.required[c]) use(c);
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    const uint32_t c = reached[i];
    choice_[c] = choice[c];
    if (choice[c] == kNone) return false;
    total_ += costs_[choice[c]];
    for (uint32_t d : Uses(choice[c])) use(d);
  }
  work_ += reached.size();
  // Acyclic, if taking away what has no child left takes all.
  std::vector<uint32_t> missing(p_.class_count(), 0), ready;
  for (uint32_t c : reached) {
    missing[c] = static_cast<uint32_t>(p_.nodes[choice_[c]].children.size());
    if (missing[c] == 0) ready.push_back(c);
  }
  size_t taken = 0;
  for (; taken < ready.size(); ++taken) {
    const uint32_t c = ready[taken];
    for (uint32_t user : Users(c)) {
      const uint32_t k = p_.nodes[user].cls;
      if (uses_[k] == 0 || choice_[k] != user) continue;
      const std::vector<uint32_t>& children = p_.nodes[user].children;
      if (!std::binary_search(children.begin(), children.end(), c)) continue;
      if (--missing[k] == 0) ready.push_back(k);
    }
  }
  valid_ = taken == reached.size();
  return valid_;
}

double LocalSearch::Slack() const { return 1e-9 * std::max(1.0, std::abs(total_)); }

void LocalSearch::Undo(const Mark& mark) {
  while (changes_.size() > mark.changes) {
    const Change change = changes_.back();
    changes_.pop_back();
    if (change.what == kMore) {
      --uses_[change.cls];
    } else if (change.what == kLess) {
      ++uses_[change.cls];
    } else {
      choice_[change.cls] = change.what;
    }
  }
  total_ = mark.total;
}

void LocalSearch::SetChoice(uint32_t c, uint32_t n) {
  changes_.push_back({c, choice_[c]});
  choice_[c] = n;
}

bool LocalSearch::ClosesCycle(uint32_t c, uint32_t n) {
  const uint32_t component = component_[c];
  if (component == kNone) return false;
  stack_.clear();
  ++seen_mark_;
  const auto visit = [&](uint32_t d) {
    if (component_[d] != component || uses_[d] == 0 || seen_[d] == seen_mark_) return;
    seen_[d] = seen_mark_;
    stack_.push_back(d);
  };
  for (uint32_t d : p_.nodes[n].children) visit(d);
  while (!stack_.empty()) {
    const uint32_t d = stack_.back();
    stack_.pop_back();
    if (d == c) return true;
    ++work_;
    if (choice_[d] == kNone) continue;
    for (uint32_t e : p_.nodes[choice_[d]].children) visit(e);
  }
  return false;
}

bool LocalSearch::ChooseFor(uint32_t c) {
  candidates_.clear();
  for (uint32_t n : p_.class_nodes[c]) {
    ++work_;
    double score = costs_[n];
    bool banned = false;
    for (uint32_t d : Uses(n)) {
      banned |= d == banned_;
      if (uses_[d] == 0) score += estimate_[d];
    }
    if (!banned) candidates_.emplace_back(score, n);
  }
  while (!candidates_.empty()) {
    const auto least = std::min_element(candidates_.begin(), candidates_.end());
    if (!ClosesCycle(c, least->second)) {
      SetChoice(c, least->second);
      return true;
    }
    candidates_.erase(least);
  }
  return false;
}

bool LocalSearch::Acquire(uint32_t c, double cutoff) {
  pending_.clear();
  const auto use = [&](uint32_t d) {
    changes_.push_back({d, kMore});
    if (uses_[d]++ != 0) return;
    SetChoice(d, kNone);
    pending_.push_back(d);
  };
  use(c);
  while (!pending_.empty()) {
    const uint32_t d = pending_.back();
    pending_.pop_back();
    ++work_;
    if (!ChooseFor(d)) return false;
    total_ += costs_[choice_[d]];
    if (!gains_ && total_ > cutoff) return false;
    for (uint32_t e : Uses(choice_[d])) use(e);
  }
  return true;
}

bool LocalSearch::AcquireUses(uint32_t n, double cutoff) {
  for (uint32_t d : Uses(n)) {
    if (!Acquire(d, cutoff)) return false;
  }
  return true;
}

void LocalSearch::Release(uint32_t c) {
  stack_.assign(1, c);
  while (!stack_.empty()) {
    const uint32_t d = stack_.back();
    stack_.pop_back();
    ++work_;
    changes_.push_back({d, kLess});
    if (--uses_[d] != 0) continue;
    total_ -= costs_[choice_[d]];
    for (uint32_t e : Uses(choice_[d])) stack_.push_back(e);
  }
}

void LocalSearch::ReleaseUses(uint32_t n) {
  for (uint32_t d : Uses(n)) Release(d);
}

bool LocalSearch::Take(uint32_t c, uint32_t n, double cutoff) {
  if (ClosesCycle(c, n)) return false;
  SetChoice(c, n);
  total_ += costs_[n];
  return AcquireUses(n, cutoff);
}

bool LocalSearch::Improve(uint32_t c, bool whatever) {
  const Mark before = Now();
  const uint32_t old = choice_[c];
  double least = whatever ? kInfinity : total_ - Slack();
  total_ -= costs_[old];
  ReleaseUses(old);
  const Mark without = Now();
  uint32_t best = kNone;
  for (uint32_t n : p_.class_nodes[c]) {
    ++work_;
    if (n == old) continue;
    double bound = total_ + costs_[n];
    bool banned = false;
    for (uint32_t d : Uses(n)) {
      banned |= d == banned_;
      if (uses_[d] == 0 && !gains_) bound += floor_[d];
    }
    if (banned || (!gains_ && bound >= least)) continue;
    if (Take(c, n, least) && total_ < least) {
      least = total_;
      best = n;
    }
    Undo(without);
  }
  if (best == kNone) {
    Undo(before);
    return false;
  }
  return Take(c, best, kInfinity);
}

void LocalSearch::Enqueue(uint32_t c) {
  if (uses_[c] == 0 || p_.class_nodes[c].size() < 2 || queued_[c]) return;
  queued_[c] = 1;
  queue_.push_back(c);
}

void LocalSearch::EnqueueAffected(size_t mark) {
  ++seen_mark_;
  for (size_t i = mark; i < changes_.size(); ++i) {
    const auto [c, what] = changes_[i];
    if ((what != kMore && what != kLess) || seen_[c] == seen_mark_) continue;
    seen_[c] = seen_mark_;
    Enqueue(c);
    for (uint32_t n : Users(c)) Enqueue(p_.nodes[n].cls);
    work_ += Users(c).size() / 4;
  }
}

void LocalSearch::DrainQueue(uint64_t limit) {
  for (; queue_head_ < queue_.size(); ++queue_head_) {
    const uint32_t c = queue_[queue_head_];
    queued_[c] = 0;
    if (queue_head_ % kPopsBetweenLooks == 0 && time_.Passed()) limit = 0;
    if (work_ > limit || uses_[c] == 0 || frozen_[c]) continue;
    const size_t mark = changes_.size();
    if (Improve(c, /*whatever=*/false)) EnqueueAffected(mark);
  }
  queue_.clear();
  queue_head_ = 0;
}

void LocalSearch::Descend(uint64_t max_work) {
  if (!valid_) return;
  for (uint32_t c : choosable_) Enqueue(c);
  DrainQueue(work_ + max_work);
  changes_.clear();
}

// Keeps what came of a kick, unless it is dearer.
bool LocalSearch::Settle(const Mark& mark, bool moved) {
  const bool better = moved && total_ < mark.total - Slack();
  if (!moved || total_ > mark.total + Slack()) Undo(mark);
  changes_.clear();
  return better;
}

bool LocalSearch::TryForce(uint32_t c, uint32_t n, uint64_t limit) {
  const Mark mark = Now();
  total_ -= costs_[choice_[c]];
  ReleaseUses(choice_[c]);
  const bool moved = Take(c, n, kInfinity);
  if (moved) {
    frozen_[c] = 1;
    EnqueueAffected(mark.changes);
    DrainQueue(limit);
    frozen_[c] = 0;
    Enqueue(c);
    DrainQueue(limit);
  }
  return Settle(mark, moved);
}

bool LocalSearch::TryOpen(uint32_t k, uint64_t limit) {
  const Mark mark = Now();
  const bool moved = Acquire(k, kInfinity);
  if (moved) {
    EnqueueAffected(mark.changes);
    DrainQueue(limit);
    const size_t held = changes_.size();
    Release(k);
    EnqueueAffected(held);
    DrainQueue(limit);
  }
  return Settle(mark, moved);
}

bool LocalSearch::TryClose(uint32_t k, uint64_t limit) {
  const Mark mark = Now();
  banned_ = k;
  bool moved = true;
  for (uint32_t n : Users(k)) {
    const uint32_t c = p_.nodes[n].cls;
    if (uses_[c] == 0 || choice_[c] != n) continue;
    moved = Improve(c, /*whatever=*/true);
    if (!moved) break;
  }
  if (moved) {
    EnqueueAffected(mark.changes);
    DrainQueue(limit);
  }
  banned_ = kNone;
  if (moved) {
    EnqueueAffected(mark.changes);
    DrainQueue(limit);
  }
  return Settle(mark, moved);
}

uint32_t LocalSearch::Draw(size_t below) {
  random_ += 0x9e3779b97f4a7c15u;
  uint64_t x = random_;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>((x ^ (x >> 31)) % below);
}

void LocalSearch::Kick(uint64_t max_work) {
  if (!valid_) return;
  const uint64_t limit = work_ + max_work;
  const auto done = [&] { return work_ > limit || time_.Passed(); };
  const auto inner = [&] { return std::min(limit, work_ + kMaxKickWork); };
  for (bool improved = true; improved && !done();) {
    improved = false;
    for (uint32_t k : shared_) {
      if (done()) return;
      improved |= uses_[k] == 0 ? TryOpen(k, inner()) : TryClose(k, inner());
    }
    for (uint32_t c : choosable_) {
      for (uint32_t n : p_.class_nodes[c]) {
        if (uses_[c] == 0 || choice_[c] == n) continue;
        if (done()) return;
        improved |= TryForce(c, n, inner());
      }
    }
  }
  while (!choosable_.empty() && !done()) {
    ++work_;
    if (!shared_.empty() && Draw(4) == 0) {
      const uint32_t k = shared_[Draw(shared_.size())];
      uses_[k] == 0 ? TryOpen(k, inner()) : TryClose(k, inner());
      continue;
    }
    const uint32_t c = choosable_[Draw(choosable_.size())];
    const uint32_t n = p_.class_nodes[c][Draw(p_.class_nodes[c].size())];
    if (uses_[c] != 0 && choice_[c] != n) TryForce(c, n, inner());
  }
}

std::vector<uint32_t> LocalSearch::Choice() const {
  std::vector<uint32_t> choice(choice_);
  for (uint32_t c = 0; c < choice.size(); ++c) {
    if (uses_[c] == 0) choice[c] = kNone;
  }
  return choice;
}

}  // namespace l3c::egraph
