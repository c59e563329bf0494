// What a class cannot be had without.
//
// Below(c): the classes that every term of c contains, c included; the greatest sets such that
//   Below(c) = {c} ∪ ⋂ over its e-nodes n of ⋃ over the children d of n of Below(d).
// A term has a height, so by induction over it the greatest solution holds, cycles or not.
// Over(c): the classes that are above c in every choice that reaches it: its dominators seen from
// the required classes.
//
// From these follows what can be left out and what the linear relaxation lacks: an e-node whose
// children need its own class, or one above it, is in no choice; an e-node that costs no more than
// another and has no child that the other does not contain anyway replaces it; and of the e-nodes
// of c that contain d only as many as d is chosen, Σ x(n) ≤ Σ x(m), n in c with d below, m in d.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/extract/choice_problem.h"

namespace l3c::egraph {

// A row of bits for each class.
class ClassSets {
 public:
  void Assign(size_t rows, size_t classes, bool full);
  std::span<uint64_t> Row(uint32_t c) { return {bits_.data() + c * words_, words_}; }
  std::span<const uint64_t> Row(uint32_t c) const { return {bits_.data() + c * words_, words_}; }
  bool Has(uint32_t c, uint32_t d) const { return Test(Row(c), d); }
  size_t words() const { return words_; }

  static bool Test(std::span<const uint64_t> row, uint32_t d) { return row[d / 64] >> d % 64 & 1; }
  static void Set(std::span<uint64_t> row, uint32_t d) { row[d / 64] |= uint64_t{1} << d % 64; }

 private:
  size_t words_ = 0;
  std::vector<uint64_t> bits_;
};

class Implications {
 public:
  // Where there would be more than this many bits a set is not made and available() is false.
  static constexpr size_t kMaxBits = size_t{1} << 28;

  // Looks at what is alive. Every e-node alive must have a term. Not available where it would take
  // more than `max_work` words.
  explicit Implications(const ChoiceProblem& problem, uint64_t max_work = 1'000'000'000);

  bool available() const { return available_; }
  uint64_t work() const { return work_; }
  const ClassSets& below() const { return below_; }
  const ClassSets& over() const { return over_; }
  // ⋃ Below(d) over the children of `n`, by words as in below().
  void Contained(uint32_t n, std::vector<uint64_t>& result) const;

 private:
  bool FindBelow();
  bool FindOver();

  const ChoiceProblem& p_;
  const uint64_t max_work_;
  uint64_t work_ = 0;
  bool available_ = false;
  ClassSets below_, over_;
};

}  // namespace l3c::egraph
