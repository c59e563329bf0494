// A small plan written by hand: linear regression with momentum, over csv files.
//
//   y ≈ w·x + b, x of four features; loss Σ (w·x + b − y)² over the rows of a batch
//   v ← 0.9·v + gradient, w ← w − 0.05·v (b alike), gradients averaged over the batch's rows
#pragma once

#include <string>
#include <vector>

#include "layers/l0/plan.h"

namespace l3c::runtime::testing {

struct LinearOptions {
  int depth = 2;
  int64_t steps = 15;
  int64_t steps_per_epoch = 3;
  int64_t eval_every = 1;
  int64_t checkpoint_every = 1;
  bool drop_last = false;
  bool shuffle = true;
  int phases = 1;  // the same phase several times over
};

inline constexpr int64_t kBatch = 8;
inline constexpr int64_t kTrainSamples = 20;  // two full batches and one of four rows
inline constexpr int64_t kTestSamples = 11;
inline constexpr int64_t kFeatures = 4;

// The plan, verified; reads its data from `folder`.
l0::Plan LinearPlan(const std::string& folder, const LinearOptions& options = {});
// The text without control units.
std::string LinearText(const std::string& folder, const LinearOptions& options = {});

struct LinearData {
  std::vector<std::vector<float>> x;
  std::vector<float> y;
};
LinearData MakeLinearData(const std::string& split);
// Writes train and test as csv files of this data.
void WriteLinearData(const std::string& folder);

}  // namespace l3c::runtime::testing
