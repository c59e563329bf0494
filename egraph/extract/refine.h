// Improving a choice step by step, each step at the price of what it changes.
//
// For graphs without cycles. The choice is kept with a count of uses for every class, so that
// swapping the e-node of one class costs time in proportion to the classes that are reached anew or
// no longer, not to the whole term. That makes thousands of moves a millisecond possible:
//
//   swap    another e-node for a class; what it reaches anew is settled by swaps in turn
//   open    a class that several could use is taken in, whoever gains from it or from what came
//   with
//           it joins
//   close   everybody who uses a class does without it
//   again   a class takes another e-node for good, and all others choose again
//
// A move is kept when the total falls, and undone otherwise. Rounds in class order, until one
// brings nothing or the work is spent. The result depends on the graph, the start and the options
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/extract.h"
#include "egraph/extract/tried_swaps.h"

namespace l3c::egraph {

class Refiner {
 public:
  // `extractor` must outlive the refiner.
  explicit Refiner(const Extractor& extractor);

  // Whether no class can reach itself, whatever is chosen. Otherwise do not use the rest.
  bool acyclic() const { return acyclic_; }

  // Whether the e-node has a term of finite cost.
  bool Possible(ENodeRef n) const { return possible_[n.index] != 0; }

  // Starts from a feasible extraction of any roots; classes that it does not reach take `base`'s
  // choice (a feasible one for every class that has any, such as Tree()'s).
  void Start(const Extraction& start, std::span<const ENodeRef> base);

  // Improves until nothing does, at most for `max_work` steps. Fixed classes keep their e-node.
  // Without `again`, which takes most of the work and brings least, by the other moves.
  void Improve(uint64_t max_work, bool again = true);

  // The same by what can be told at one place: another e-node for a class, alone or with another
  // one for what it uses directly, and a class that all its users do without. Until nothing does,
  // at most for `max_work` steps.
  void Descend(uint64_t max_work);

  // Takes the e-node for its class, from now on fixed and wanted even where nothing else uses it;
  // then improves what is around. False when the e-node has no finite cost. Without `thorough`, by
  // swaps alone.
  bool Fix(ENodeRef n, uint64_t max_work, bool thorough);

  double total() const { return total_; }
  uint64_t work() const { return work_; }
  Extraction Result(std::span<const ClassRef> roots) const;

  // The state, to come back to.
  struct Saved {
    std::vector<uint32_t> choice;
    std::vector<uint32_t> uses;
    std::vector<uint8_t> fixed;
    double total = 0;
    uint64_t base = 0;  // 0: none that swaps have been tried from
  };
  Saved Save() const {
    return {choice_, uses_, fixed_, total_, tried_.in_trial() ? 0 : tried_.base()};
  }
  void Restore(const Saved& saved);

 private:
  // What every move reads of an e-node, side by side.
  struct Node {
    double price;
    const ClassRef* first_child;
    size_t child_count;
    std::span<const ClassRef> Children() const { return {first_child, child_count}; }
  };
  double Price(uint32_t n) const { return nodes_[n].price; }
  bool Less(double a, double b) const { return a < b - 1e-11 * b; }
  void Acquire(uint32_t c);
  void Release(uint32_t c);
  void Swap(uint32_t c, uint32_t n);
  // A state to come back to; BeginMove() forgets what moves before it have met.
  struct Mark {
    size_t journal;
    size_t touches;
    double total;
  };
  Mark Here() const { return {journal_.size(), touches_, total_}; }
  Mark BeginMove();
  void Undo(const Mark& mark);
  // The same, and nothing between has been met.
  void TakeBack(const Mark& mark);
  // Whether the total has fallen since; undone otherwise.
  bool Keep(const Mark& mark);
  TriedSwaps::Touch* Touches();
  void Touched(size_t count) {
    touches_ += count;
    work_ += count;
  }
  std::span<const TriedSwaps::Touch> AllTouches() const { return {log_.data(), touches_}; }
  // Swaps among classes reached since `mark_new`, best e-node of each.
  void Settle(size_t mark_new);
  bool TrySwap(uint32_t c, uint32_t n);
  bool SwapRound(uint64_t limit);
  bool TryAgain(uint32_t c, uint64_t limit);
  // Whether something that is reached, or could be had with k for nothing, could use k.
  bool MayBeJoined(uint32_t k) const;
  bool TryOpen(uint32_t k);
  bool TryClose(uint32_t k);
  // The e-node for c, and in the same move another one for a class in use that it uses: as a
  // producer that moves into the kernel of one of its users and is stored from there.
  bool TryWithChild(uint32_t c, uint32_t n);
  bool UsesClass(uint32_t n, uint32_t k) const;

  static constexpr uint32_t kNone = 0xffffffffu;

  const Extractor& extractor_;
  const EGraphView& view_;
  bool acyclic_ = true;
  std::vector<Node> nodes_;
  std::vector<uint8_t> possible_;     // by e-node: finite, and so is something below it
  std::vector<uint8_t> swappable_;    // by e-node: possible, and not alone in its class
  std::vector<uint32_t> choosable_;   // classes with several possible e-nodes
  std::vector<uint32_t> shared_;      // classes that several classes could use
  std::vector<uint32_t> user_first_;  // by class, into users_
  std::vector<uint32_t> users_;       // e-nodes
  std::vector<uint32_t> choice_;      // by class
  std::vector<uint32_t> uses_;        // by class
  std::vector<uint8_t> fixed_;        // by class
  std::vector<std::pair<uint32_t, uint32_t>> journal_;  // (class, e-node before)
  std::vector<uint32_t> reached_new_;
  std::vector<uint32_t> stack_;
  std::vector<TriedSwaps::Touch> log_;  // of the move, `touches_` of them
  size_t touches_ = 0;
  TriedSwaps tried_;
  double total_ = 0;
  uint64_t work_ = 0;
};

}  // namespace l3c::egraph
