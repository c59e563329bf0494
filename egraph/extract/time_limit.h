// How long a solver may still run, by the wall clock or by the processor time of its thread.
//
// The wall clock is what a user waits by. Processor time is what two solvers are compared by on a
// machine that others use too.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>

namespace l3c::egraph {

enum class TimeKind : uint8_t { kWall, kThread };

// Seconds since some fixed moment.
inline double SecondsBy(TimeKind kind) {
  if (kind == TimeKind::kWall) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class TimeLimit {
 public:
  // None.
  TimeLimit() = default;
  TimeLimit(TimeKind kind, double seconds) : kind_(kind) {
    if (seconds < kForever) end_ = SecondsBy(kind) + seconds;
  }

  bool unlimited() const { return end_ >= kForever; }
  TimeKind kind() const { return kind_; }
  // Infinity where there is no limit; the clock is not read then.
  double SecondsLeft() const {
    return unlimited() ? std::numeric_limits<double>::infinity() : end_ - SecondsBy(kind_);
  }
  bool Passed() const { return SecondsLeft() <= 0; }

 private:
  static constexpr double kForever = 1e15;
  TimeKind kind_ = TimeKind::kWall;
  double end_ = std::numeric_limits<double>::infinity();
};

}  // namespace l3c::egraph
