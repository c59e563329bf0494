// Local search over a reduced choice problem: an incumbent that is rarely far from the optimum,
// quickly, on graphs with cycles, needs and gains alike.
//
// A choice is kept with the number of uses of every class, so that a move costs what it changes and
// not the whole: to try another e-node for a class, what only its e-node used is released, what the
// other needs is acquired, and the difference is there to see. A class that is acquired anew takes
// the e-node that is cheapest beside what is chosen already; what is not chosen yet counts at an
// estimate, the cost of a term of its own. An e-node that would be below itself is never taken: the
// children that can lead back to the class, those of its strongly connected component, are followed
// first.
//
// Descend() swaps single e-nodes until nothing falls any more. Kicks leave such a minimum: force
// another e-node, open a class for whoever gains by it, or close one, descend around the change,
// and go back unless the total has not risen. First every kick has its turn, then they are drawn.
//
// Deterministic within a work limit; a time limit cuts at a moment of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

class LocalSearch {
 public:
  // `costs` by e-node of the problem, finite, of any sign; both must outlive the search. Every
  // e-node alive must have a term (Reduce()).
  LocalSearch(const ChoiceProblem& problem, std::span<const double> costs, TimeLimit time = {});

  // A choice from scratch, by estimates: term costs under `guide` (by e-node, ≥ 0; empty: the
  // costs, gains counting as nothing). False where no choice was found.
  bool Start(std::span<const double> guide = {});
  // A choice by class, complete and acyclic where it is reached. False where it is not.
  bool StartFrom(std::span<const uint32_t> choice);

  // Both stop within a move after `max_work` more steps (classes acquired, released or looked at).
  void Descend(uint64_t max_work);
  // Takes all of it, unless the time is up or no class has a choice.
  void Kick(uint64_t max_work);

  bool valid() const { return valid_; }
  double total() const { return total_; }
  uint64_t work() const { return work_; }
  // By class: the e-node taken, kNone where it is not reached.
  std::vector<uint32_t> Choice() const;

 private:
  struct Change {
    uint32_t cls;
    uint32_t what;  // kMore, kLess, or the e-node before
  };
  static constexpr uint32_t kMore = 0xfffffffeu;
  static constexpr uint32_t kLess = 0xfffffffdu;
  struct Mark {
    size_t changes;
    double total;
  };

  std::span<const uint32_t> Uses(uint32_t n) const {
    return {uses_of_.data() + first_use_[n], first_use_[n + 1] - first_use_[n]};
  }
  std::span<const uint32_t> Users(uint32_t c) const {
    return {users_.data() + first_user_[c], first_user_[c + 1] - first_user_[c]};
  }
  void Estimate(std::span<const double> guide);

  Mark Now() const { return {changes_.size(), total_}; }
  void Undo(const Mark& mark);
  void SetChoice(uint32_t c, uint32_t n);
  // Adds one use of `c` and chooses for what is reached anew. False when the total exceeds
  // `cutoff` or no e-node fits; what was done so far stands, to be undone.
  bool Acquire(uint32_t c, double cutoff);
  bool AcquireUses(uint32_t n, double cutoff);
  void Release(uint32_t c);
  void ReleaseUses(uint32_t n);
  bool ChooseFor(uint32_t c);
  // Whether taking `n` for `c` would put c below itself.
  bool ClosesCycle(uint32_t c, uint32_t n);
  // `n` for a reached class whose e-node has been released; as Acquire().
  bool Take(uint32_t c, uint32_t n, double cutoff);
  // The best other e-node for `c` beside the rest; false, and nothing done, where the total would
  // not fall, or with `whatever` where there is none.
  bool Improve(uint32_t c, bool whatever);
  void Enqueue(uint32_t c);
  // Everyone whose best e-node may have changed since `mark`.
  void EnqueueAffected(size_t mark);
  void DrainQueue(uint64_t limit);

  bool TryForce(uint32_t c, uint32_t n, uint64_t limit);
  bool TryOpen(uint32_t k, uint64_t limit);
  bool TryClose(uint32_t k, uint64_t limit);
  bool Settle(const Mark& mark, bool moved);
  uint32_t Draw(size_t below);
  double Slack() const;

  const ChoiceProblem& p_;
  const std::span<const double> costs_;
  const TimeLimit time_;
  std::vector<uint32_t> component_;
  std::vector<uint32_t> first_use_, uses_of_;  // by e-node: children and needs
  std::vector<uint32_t> first_user_, users_;   // by class: e-nodes alive
  std::vector<uint32_t> choosable_;            // classes with several e-nodes
  std::vector<uint32_t> shared_;               // classes that several classes could use
  bool gains_ = false;

  std::vector<double> floor_;       // by class: its cheapest e-node
  std::vector<double> estimate_;    // by class
  std::vector<uint32_t> own_term_;  // by class: the e-node of the estimate
  std::vector<uint32_t> choice_;    // by class; meaningful where used
  std::vector<uint32_t> uses_;      // by class
  std::vector<uint8_t> frozen_;     // by class: not swapped
  uint32_t banned_ = kNone;         // a class that no e-node may use
  double total_ = 0;
  bool valid_ = false;
  std::vector<Change> changes_;
  std::vector<uint32_t> queue_;
  size_t queue_head_ = 0;
  std::vector<uint8_t> queued_;  // by class
  std::vector<uint32_t> pending_, stack_, seen_;
  uint32_t seen_mark_ = 0;
  std::vector<std::pair<double, uint32_t>> candidates_;
  uint64_t work_ = 0;
  uint64_t random_ = 0x9e3779b97f4a7c15u;
};

}  // namespace l3c::egraph
