// Measured search: of the plans that the cost model holds for the best, the one whose whole steps
// are fastest here.
//
//   1. The predicted best is compiled and timed; the losers of its decisions (--explain) are the
//      other plans, cheapest by the model first: each is the best plan with that choice forced, so
//      the first of them is the second-best plan of all, and so on. The plan of --search greedy is
//      one more.
//   2. Screening: each of the first kScreened is timed in a turn beside the predicted best, for
//   half
//      of the time, or longer where none of them is faster.
//   3. Finals: the fastest kFinalists are checked (plan_check.h) and timed in turns, kTurns each.
//   4. Choices that won by themselves are put together, and such plans go to the finals as well.
//
// What is done follows from the record alone, which is kept after every turn: an interrupted tuning
// goes on as if it had not been.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/l0/plan.h"
#include "layers/search/decision.h"
#include "runtime/kernel_table.h"
#include "tools/l3c/tune/record.h"

namespace l3c::tools::tune {

inline constexpr size_t kScreened = 32;
inline constexpr double kWorthTrying = 1.5;  // predicted at most so many times the best's

// What the tuner needs of the compiler.
struct Compiler {
  // The plan with these choices forced; `greedy`: of the other search. Nothing where there is none,
  // and why in the string.
  std::function<std::optional<l0::Plan>(const std::map<std::string, std::string>& forced,
                                        bool greedy, std::string& why)>
      plan;
  std::function<std::unique_ptr<runtime::KernelTable>(const l0::Plan& plan, std::string& why)> code;
  std::function<void(const std::string& record)> keep;
};

struct TuneOptions {
  double seconds = 0;
  int threads = 0;
  std::string numerics;
  double turn_seconds = 0.12;  // of timed steps of each plan in a turn
};

struct TuneProgress {
  std::string what;  // "screening 3 of 32", "finals, turn 5 of 12"
  double spent_seconds = 0;
};

class Tuner {
 public:
  // `best`: the predicted best, and `decisions` those of its training steps with their losers.
  Tuner(const l0::Plan& best, const std::vector<search::Decision>& decisions, bool greedy_too,
        const TuneOptions& options, Compiler compiler, Record record);

  // False after an error that `why` tells: the predicted best itself cannot be timed. True when the
  // time is up or nothing is left; `interrupted()` then says whether Ctrl-C ended it.
  bool Run(const std::function<void(const TuneProgress&)>& progress, std::string& why);
  bool interrupted() const { return interrupted_; }
  const Record& record() const { return record_; }

 private:
  struct Code {
    l0::Plan plan;
    std::unique_ptr<runtime::KernelTable> kernels;
  };

  void Enumerate(const std::vector<search::Decision>& decisions, bool greedy_too);
  // Compiled, or null after the trial has been refused.
  Code* CodeOf(size_t trial);
  bool Turn(size_t trial, std::string& why);
  void Check(size_t trial);
  std::vector<size_t> Finalists() const;
  std::optional<size_t> Next(std::string& what);  // whose turn it is; nothing is left without one
  void Combine();
  double Spent() const;
  bool TimeIsUp() const { return interrupted_ || Spent() >= options_.seconds; }

  const l0::Plan& best_;
  const TuneOptions options_;
  const Compiler compiler_;
  Record record_;
  const double spent_before_;
  std::unique_ptr<runtime::KernelTable> best_kernels_;
  std::vector<double> best_sums_;
  std::map<size_t, Code> code_;
  std::map<std::string, size_t> plans_;  // digest → trial, or kBest
  std::set<std::string> sound_;          // kernels that were checked
  bool interrupted_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace l3c::tools::tune
