// The random choices of a test case, written down, so that a case can be replayed and shrunk.
//
// A generator asks Draw() for every choice that it makes; smaller numbers must stand for simpler
// choices. A case is then the list of the numbers drawn: replaying the list gives the same case,
// and a list with smaller numbers, or with fewer, gives a simpler one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace l3c::rules {

using Tape = std::vector<uint64_t>;

class Choices {
 public:
  // Fresh choices, the same for the same seed.
  explicit Choices(uint64_t seed) : engine_(seed) {}
  // Those of a tape; zeros beyond its end.
  explicit Choices(Tape tape) : replay_(true), tape_(std::move(tape)) {}

  // A number below `bound`, which is at least 1.
  uint64_t Draw(uint64_t bound) {
    return Draw(bound, [bound](std::mt19937_64& engine) { return engine() % bound; });
  }
  // The same, fresh ones as `sample` distributes them.
  template <typename Sample>
  uint64_t Draw(uint64_t bound, Sample&& sample) {
    if (!replay_) {
      tape_.push_back(sample(engine_));
    } else if (at_ >= tape_.size()) {
      ++at_;
      return 0;
    }
    const uint64_t drawn = tape_[at_++];
    return drawn < bound ? drawn : bound - 1;
  }

  // What has been drawn so far.
  Tape Drawn() const { return {tape_.begin(), tape_.begin() + std::min(at_, tape_.size())}; }

 private:
  bool replay_ = false;
  std::mt19937_64 engine_;
  Tape tape_;
  size_t at_ = 0;
};

// A tape that `fails` still rejects and from which no single step makes it simpler, after at most
// `attempts` trials: first without parts of it, then with smaller numbers. `fails` gives the part
// of its tape that it has used, or nothing.
Tape Shrink(Tape tape, size_t attempts,
            const std::function<bool(const Tape& trial, Tape* used)>& fails);

}  // namespace l3c::rules
