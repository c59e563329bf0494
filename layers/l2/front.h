// pareto([a, b, …]): the points of the front that can be trained for, and a specification that
// minimises one of them.
//
// A point is a weighted sum of the goals with positive weights; a minimiser of such a sum is Pareto
// optimal (Geoffrion 1968). For k goals there are 2k + 1 points: for each goal in order one that
// weighs it 0.9 and one that weighs it 0.7, the others sharing the rest evenly, and between them
// one that weighs all the same. For two goals they run from the first goal's end to the second's.
#pragma once

#include <string>
#include <vector>

#include "layers/l3/ir.h"

namespace l3c::l2 {

struct FrontPoint {
  std::vector<double> weights;  // by goal, their sum is 1
  std::string label;            // "0.7 objective.fit + 0.3 objective.size"
};

// In the order in which they are numbered, from 1. Empty for a goal that is no pareto.
std::vector<FrontPoint> Front(const l3::Module& spec);
// The index of the point that weighs all goals the same: what is trained when none is picked.
size_t MiddleOf(const std::vector<FrontPoint>& front);

// The specification with the goal replaced: a loss `front` of every goal's terms, each times the
// goal's weight, is minimised.
l3::Module AtPoint(const l3::Module& spec, const FrontPoint& point);

}  // namespace l3c::l2
