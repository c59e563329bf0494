// Local search for a cheap DAG.
//
// A bottom-up pass decides class by class and cannot see that an e-node too dear for one class pays
// when several share it: of four roots that each have a kernel of their own at cost 10, or a part
// of one common kernel at cost 25, each root alone prefers its own. So the search keeps a set of
// *opened* classes, whose terms a pass may use for free, as if somebody had paid for them already.
// Opening the common kernel makes all four roots take it, and the true total falls from 40 to 25.
//
// Start:  the tree optimum, the greedy DAG, and passes that split an e-node's price among its
// users. Moves:  swap the e-node of one class for another, everything else as it is;
//         add a class that several others could use, and let each that gains join it;
//         take a class from all that use it;
//         open a class, or close one, and run a new pass;
//         force a class to another e-node and run a new pass.
// Every result is refined by swaps and accepted when the true total falls. The first improvement is
// taken, round after round in class order, until no move improves or the work budget is spent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/extract/pass.h"

namespace l3c::egraph {

class DagSearch {
 public:
  // `forced` as in Pass::Input.
  DagSearch(const NodeGraph& view, const UserIndex& users, std::span<const double> prices,
            std::span<const ClassRef> roots, std::span<const ENodeRef> forced, uint64_t max_work);

  void Run();

  // By class; meaningful for what is reachable from the roots.
  std::span<const ENodeRef> choice() const { return best_.choice; }
  uint64_t work() const { return work_; }
  bool exhausted() const { return exhausted_; }

 private:
  struct Solution {
    std::vector<ENodeRef> choice;
    std::vector<uint32_t> reached;  // classes; ascending once refined by swaps
    double total = 0;
    bool valid = false;  // every root has a choice and none reaches itself
  };

  bool OutOfWork();
  // Fills reached (children first), total and valid of `result` from `choice`.
  // With `extra`, as if that class were a root too.
  void Measure(std::span<const ENodeRef> choice, Solution& result, ClassRef extra = ClassRef{});
  bool IsReached(const Solution& s, uint32_t c) const;
  // Swaps single e-nodes while the total falls. Classes reached anew take `base`.
  void SwapDescent(Solution& solution, std::span<const ENodeRef> base);
  // A pass with what is opened and forced now, refined by swaps.
  Solution FromPass(std::span<const double> prices);
  bool Adopt(Solution&& solution);
  bool TryJoining();
  bool TryLeaving();
  bool Uses(ENodeRef n, uint32_t c) const;
  bool TryOpening();
  bool TryClosing();
  bool TryForcing();
  void MarkFree();  // the terms of what is opened
  void ForbidUnreachable();
  std::vector<double> SharedPrices() const;
  // Passes root after root, the terms of earlier roots being free.
  Solution FromRootsInTurn();

  const NodeGraph& view_;
  const UserIndex& users_;
  std::vector<double> prices_;  // by e-node
  const std::span<const ClassRef> roots_;
  std::vector<ENodeRef> forced_;  // by class; the caller's and the search's own
  std::vector<uint8_t> fixed_;    // by class: forced by the caller
  const uint64_t max_work_;
  uint64_t work_ = 0;
  bool exhausted_ = false;

  Pass pass_;
  std::vector<ENodeRef> base_choice_;              // of the first greedy pass
  std::vector<std::vector<uint32_t>> base_terms_;  // its closures
  std::vector<uint32_t> sharers_;                  // by class: distinct classes that could use it
  std::vector<uint32_t> opened_;
  uint32_t next_to_join_ = 0;
  uint32_t next_to_leave_ = 0;
  uint32_t next_to_open_ = 0;
  uint32_t next_to_force_ = 0;
  std::vector<uint8_t> free_;
  Solution best_;
  Solution scratch_;
  std::vector<uint32_t> colors_;  // by class: twice the epoch of a visit, plus one when done
  uint32_t epoch_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> stack_;
};

}  // namespace l3c::egraph
