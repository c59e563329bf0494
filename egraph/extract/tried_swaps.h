// Which swaps of a refiner are worth another try: those for which something that the last try in
// vain depended on has changed since.
//
// A try looks at a class's e-node and at whether anything uses it. So it depends on the classes
// that it found unused, or left unused on its way, as they are; and on the others only as long as
// they do not come near to being unused.
//
// States: the base is what tries are remembered of. A trial departs from the base, and is either
// taken back or becomes the base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace l3c::egraph {

class TriedSwaps {
 public:
  // A class whose uses were counted up from, or down to, so many.
  struct Touch {
    uint32_t c = 0;
    uint32_t uses = 0;
  };

  // The refiner's, by class; they outlive this.
  TriedSwaps(const std::vector<uint32_t>& choice, const std::vector<uint32_t>& uses)
      : choice_(choice), uses_(uses) {}

  // The base is what the refiner has now, and of it nothing has been tried. E-nodes that cannot be
  // swapped to at all never are: `worth`, by e-node.
  void Reset(std::span<const uint8_t> worth);

  // A number of the base as it is.
  uint64_t base() const { return base_; }
  bool in_trial() const { return in_trial_; }

  void BeginTrial();
  // The refiner has gone back to the base.
  void EndTrial();
  // What the refiner has now is the base.
  void KeepTrial();

  // The first e-node from `n` on that is to be tried, or `e-nodes`.
  uint32_t Next(uint32_t n) const;

  // The e-node, of class c, was tried in vain, and the refiner is as it was before; `touched` on
  // the way there. Only of the base.
  void InVain(uint32_t n, uint32_t c, std::span<const Touch> touched);
  // A move is kept, of the trial or else of the base.
  void Moved(std::span<const Touch> touched);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Link {
    uint32_t node;
    uint32_t least;  // uses of the class, for which the try would end as it did
    uint32_t next;
  };

  void Add(uint32_t& list, uint32_t n, uint32_t least);
  // Of the list those for which so many uses are too few; kNone: all.
  void Mark(uint32_t list, uint32_t uses, std::vector<uint64_t>& open) const;
  void Free(uint32_t& list, uint32_t uses);
  void Rebase(uint32_t c);

  const std::vector<uint32_t>& choice_;
  const std::vector<uint32_t>& uses_;
  std::vector<uint32_t> base_choice_;  // by class
  std::vector<uint32_t> base_uses_;
  // By class: the tries that depend on it as it is, and on its uses not being fewer.
  std::vector<uint32_t> exact_;
  std::vector<uint32_t> at_least_;
  std::vector<uint32_t> most_least_;  // of any that is in at_least_
  std::vector<Link> links_;
  uint32_t free_ = kNone;
  std::vector<uint64_t> worth_;       // bits by e-node
  std::vector<uint64_t> open_;        // of the base: to be tried
  std::vector<uint64_t> trial_open_;  // in the trial, beside those
  std::vector<uint32_t> moved_;       // classes, of the trial
  std::vector<uint32_t> stamp_;       // by class: the pass that saw it
  std::vector<uint32_t> fewest_;      // and the fewest uses there
  std::vector<uint32_t> seen_;
  uint32_t pass_ = 0;
  uint64_t base_ = 0;
  bool in_trial_ = false;
};

}  // namespace l3c::egraph
