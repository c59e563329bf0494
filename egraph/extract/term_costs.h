// What a term of its own costs each class of a choice problem: parts shared with others, or within
// the term, count at every use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/extract/choice_problem.h"

namespace l3c::egraph {

enum class Needs : uint8_t {
  kIgnored,
  kForbidden,  // an e-node with needs is in no term
};

struct TermCosts {
  // `prices` by e-node, those below zero count as zero. Looks at what is alive.
  TermCosts(const ChoiceProblem& problem, std::span<const double> prices, Needs needs);

  // By class. Sums stop at the largest number; infinite where there is no term.
  std::vector<double> cost;
  // By class: the e-node of that term, kNone where there is none. Taken together
  // they never run in a cycle.
  std::vector<uint32_t> node;
};

}  // namespace l3c::egraph
