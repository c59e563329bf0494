// What the machine is for: each of the example kernels without one of its barriers, or without the
// predicate of a load or store, or with a branch the wrong way round, is caught: by a fault, or by
// another result.
#include <sstream>

#include "tests/backends/ptx/example_kernels.h"
#include "tests/backends/ptx/ptx_runner.h"

namespace l3c {
namespace {

using testing::ParseOne;

// The line with something wrong; nothing where there is nothing of the sort.
std::optional<std::string> Mutated(const std::string& line) {
  if (line.find("bar.sync") != std::string::npos) return "";
  const size_t guard = line.find('@');
  if (guard == std::string::npos) return std::nullopt;
  if (line.find(" bra ") == std::string::npos) return line.substr(line.find(' ', guard));
  const bool inverted = line[guard + 1] == '!';
  return (inverted ? "@" : "@!") + line.substr(guard + (inverted ? 2 : 1));
}

// Mutants that were not caught, of `count`.
int Survivors(const l0::Kernel& kernel, int* count) {
  const std::string text = testing::TextOf(kernel);
  testing::Buffers expected(kernel, 1);
  EXPECT_FALSE(RunText(kernel, text, expected));
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  int survivors = 0;
  testing::PtxLimits limits;
  limits.steps = 2'000'000;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::optional<std::string> mutated = Mutated(lines[i]);
    if (!mutated) continue;
    std::string mutant;
    for (size_t l = 0; l < lines.size(); ++l) mutant += (l == i ? *mutated : lines[l]) + "\n";
    ++*count;
    testing::Buffers found(kernel, 1);
    if (RunText(kernel, mutant, found, limits) || !(found == expected)) continue;
    ++survivors;
    ADD_FAILURE() << "not caught without line " << i + 1 << ": " << lines[i] << "\n" << text;
  }
  return survivors;
}

TEST(PtxMutations, AreCaught) {
  int count = 0;
  for (std::string text : testing::ExampleKernels()) {
    // A maximum is often the same without some of what it is of.
    const size_t max = text.find("reduce_max");
    if (max != std::string::npos) text.replace(max, 10, "reduce_add");
    const l0::Kernel kernel = ParseOne(text);
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, testing::kGpu)) {
      SCOPED_TRACE(schedule.name);
      if (Survivors(l0::ApplySchedule(kernel, schedule), &count) > 0) return;
    }
  }
  EXPECT_GE(count, 100);
}

}  // namespace
}  // namespace l3c
