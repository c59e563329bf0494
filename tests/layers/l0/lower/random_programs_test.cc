// Random small tensor programs: whatever kernels are chosen, they compute what the program means.
#include <gtest/gtest.h>

#include "tests/layers/l0/lower/program_maker.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

class RandomPrograms : public testing::TestWithParam<search::Mode> {};

TEST_P(RandomPrograms, ComputeWhatTheyMean) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = ProgramMaker(seed).Make(3 + static_cast<int>(seed % 22));
    ExpectSameAsInterpreter(graph, {.mode = GetParam()}, seed);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

TEST_P(RandomPrograms, PaddingIsZeroWhoeverReadsTheValueBeside) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = ProgramMaker(seed).MakeWindows(2 + static_cast<int>(seed % 4));
    ExpectSameAsInterpreter(graph, {.mode = GetParam()}, seed);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, RandomPrograms,
                         testing::Values(search::Mode::kOff, search::Mode::kGreedy,
                                         search::Mode::kEGraph),
                         [](const auto& mode) {
                           return std::string(search::ModeName(mode.param));
                         });

}  // namespace
}  // namespace l3c::l0::lower
