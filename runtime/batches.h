// The batches of a sampler: which samples make up batch number b, gathered and decoded into
// buffers.
//
// Batch b belongs to epoch b / BatchesPerEpoch. In an epoch-shuffle sampler the order of an epoch
// is the permutation given by (seed, epoch); so a batch depends on its number alone, and a resumed
// run needs no state of a generator. Rows beyond the last sample of an epoch are zeros, with mask
// 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/data_set.h"

namespace l3c::runtime {

class Batches {
 public:
  // The data must outlive the object. data.samples >= batch if the sampler drops the last batch.
  Batches(const l0::Sampler& sampler, const l0::DataSource& source, const SplitData& data);

  int64_t BatchesPerEpoch() const { return batches_per_epoch_; }
  // Rows of data in batch `number`: the batch but for the last of an epoch.
  int64_t Rows(int64_t number) const;

  // Decodes a field of the batch into `out` (batch × elements of the declared type).
  void Fill(int64_t number, size_t field, std::byte* out);
  void FillMask(int64_t number, std::span<float> mask) const;

 private:
  void Order(int64_t epoch);

  const l0::Sampler& sampler_;
  const l0::DataSource& source_;
  const SplitData& data_;
  int64_t batches_per_epoch_ = 1;
  int64_t ordered_epoch_ = -1;
  std::vector<uint32_t> order_;  // of the epoch ordered_epoch_; empty for a sequential sampler
  std::vector<std::vector<float>> tables_;  // per field of bytes wanted as f32: byte → value
};

}  // namespace l3c::runtime
