// When a trial's turns show that it is faster than the predicted best.
//
// A turn times both, one right after the other, so that what slows the machine slows both. The
// number of turns that the trial won is compared with what a fair coin gives: the one-sided sign
// test, its p-value multiplied by the number of trials that could have been taken instead. A gain
// counts from 1 % on.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/l3c/tune/record.h"

namespace l3c::tools::tune {

inline constexpr double kSignificance = 0.05;
inline constexpr double kLeastGain = 0.01;
inline constexpr size_t kFinalists = 4;
inline constexpr size_t kTurns = 12;  // of a finalist

double MedianRatio(const Trial& trial);  // 1 without a turn
// Of `wins` or more heads in `turns` throws.
double SignTestP(size_t wins, size_t turns);
bool Faster(const Trial& trial);

// The trial that is to be taken: of those that are faster and checked the fastest. −1: none.
int Winner(const Record& record);

}  // namespace l3c::tools::tune
