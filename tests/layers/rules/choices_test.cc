#include "layers/rules/choices.h"

#include <gtest/gtest.h>

#include <numeric>

namespace l3c::rules {
namespace {

TEST(Choices, ATapeGivesTheSameChoicesAgain) {
  Choices fresh(7);
  std::vector<uint64_t> drawn;
  for (uint64_t bound : {3u, 100u, 2u, 1u, 50u}) drawn.push_back(fresh.Draw(bound));
  Choices again(fresh.Drawn());
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(again.Draw(std::vector<uint64_t>{3, 100, 2, 1, 50}[i]), drawn[i]);
  }
  EXPECT_EQ(again.Draw(9), 0u) << "beyond the end";
  EXPECT_EQ(again.Drawn(), fresh.Drawn());
}

TEST(Choices, WhatDoesNotFitIsCutToTheBound) {
  Choices replay(Tape{41, 2});
  EXPECT_EQ(replay.Draw(10), 9u);
  EXPECT_EQ(replay.Draw(10), 2u);
}

// A list of n numbers whose sum must stay below 100.
TEST(Shrink, FindsTheSmallestFailingCase) {
  const auto fails = [](const Tape& trial, Tape* used) {
    Choices choices(trial);
    uint64_t sum = 0;
    const uint64_t n = choices.Draw(20);
    for (uint64_t i = 0; i < n; ++i) sum += choices.Draw(1000);
    *used = choices.Drawn();
    return sum >= 100;
  };
  Tape tape = {12, 3, 400, 17, 0, 999, 5, 6, 7, 80, 2, 1, 1};
  tape = Shrink(tape, 10'000, fails);
  // One number is enough.
  EXPECT_EQ(tape.size(), 2u);
  EXPECT_EQ(tape[0], 1u);
  EXPECT_GE(tape[1], 100u);
}

TEST(Shrink, StopsWithItsAttempts) {
  size_t trials = 0;
  const Tape tape(50, 7);
  Shrink(tape, 25, [&](const Tape&, Tape*) {
    ++trials;
    return false;
  });
  EXPECT_EQ(trials, 25u);
}

}  // namespace
}  // namespace l3c::rules
