#include "layers/rules/choices.h"

#include <algorithm>

namespace l3c::rules {
namespace {

bool Simpler(const Tape& a, const Tape& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

}  // namespace

Tape Shrink(Tape tape, size_t attempts,
            const std::function<bool(const Tape& trial, Tape* used)>& fails) {
  const auto accept = [&](const Tape& trial) {
    if (attempts == 0) return false;
    --attempts;
    Tape used;
    if (!fails(trial, &used) || !Simpler(used, tape)) return false;
    tape = std::move(used);
    return true;
  };
  for (bool smaller = true; smaller && attempts > 0;) {
    smaller = false;
    for (size_t length = std::min<size_t>(16, tape.size()); length > 0; length /= 2) {
      for (size_t at = 0; at + length <= tape.size() && attempts > 0;) {
        Tape trial = tape;
        trial.erase(trial.begin() + static_cast<std::ptrdiff_t>(at),
                    trial.begin() + static_cast<std::ptrdiff_t>(at + length));
        if (accept(trial)) {
          smaller = true;
        } else {
          ++at;
        }
      }
    }
    for (size_t at = 0; at < tape.size() && attempts > 0; ++at) {
      // The simplest first; most choices have few.
      constexpr uint64_t kFew = 24;
      for (uint64_t value = 0; at < tape.size() && value < std::min(tape[at], kFew); ++value) {
        Tape trial = tape;
        trial[at] = value;
        if (accept(trial)) {
          smaller = true;
          break;
        }
        // A smaller count leaves choices over: of the next few, one that was for what is gone.
        constexpr size_t kNext = 12;
        for (size_t other = at + 1; other < std::min(tape.size(), at + kNext); ++other) {
          Tape shorter = trial;
          shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(other));
          if (!accept(shorter)) continue;
          smaller = true;
          break;
        }
      }
    }
  }
  return tape;
}

}  // namespace l3c::rules
