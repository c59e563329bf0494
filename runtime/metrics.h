// The sums behind a run's figures. Reports add up in f64, in the order of their stream, until their
// split is published; a checkpoint keeps the sums, so a resumed run publishes the same figures.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/events.h"

namespace l3c::runtime {

// The splits that results are told apart by.
inline constexpr char kTrainSplit[] = "train";
inline constexpr char kTestSplit[] = "test";

class Metrics {
 public:
  struct Split {
    int64_t steps = 0;         // reports, from the very first
    int64_t samples = 0;       // rows behind them
    int64_t period_steps = 0;  // of the present period
    std::map<std::string, double> sums;
    std::vector<Value> published;  // figures of the last publish
  };

  explicit Metrics(const l0::Plan& plan) : plan_(plan) {}

  void Add(const Report& report, int64_t rows);
  // The metrics of the split; the sums start again. A metric whose denominator is 0 is NaN.
  Period Publish(const std::string& split, int64_t argument);

  const Split& split(const std::string& name) const;
  const std::map<std::string, Split>& splits() const { return splits_; }
  void Restore(std::map<std::string, Split> splits) { splits_ = std::move(splits); }
  // The last published figures: those of the test split by their names, others as SPLIT_NAME.
  std::vector<Value> Figures() const;

 private:
  const l0::Plan& plan_;
  std::map<std::string, Split> splits_;
};

}  // namespace l3c::runtime
