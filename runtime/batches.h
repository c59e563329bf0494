// The batches of a sampler: which samples make up batch number b, gathered and decoded into
// buffers.
//
// Batch b belongs to epoch b / BatchesPerEpoch. In an epoch-shuffle sampler the order of an epoch
// is the permutation given by (seed, epoch); so a batch depends on its number alone, and a resumed
// run needs no state of a generator. Rows beyond the last sample of an epoch are zeros, with mask
// 0.
// A replay sampler draws the rows of batch b, from Philox under the seed, out of the samples of the
// batches up to b; so it too depends on the number alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "layers/l0/plan.h"
#include "runtime/data_set.h"

namespace l3c::runtime {

// Samples of an epoch in so many stored rows: windows, of equal shards.
int64_t SamplesOf(const l0::Sampler& sampler, int64_t stored_rows);
// The least number of stored rows that hold so many samples.
int64_t RowsFor(const l0::Sampler& sampler, int64_t samples);
// The source as its rows are stored: fields of a window without their first axis.
l0::DataSource AsStored(const l0::Sampler& sampler, const l0::DataSource& source);

// The order of an epoch's samples, found once for all that draw from the sampler.
class EpochOrders {
 public:
  // `samples` of an epoch.
  EpochOrders(const l0::Sampler& sampler, int64_t samples) : sampler_(sampler), samples_(samples) {}

  // Empty for a sampler that draws them as they are stored. From any thread.
  std::shared_ptr<const std::vector<uint32_t>> Of(int64_t epoch);

 private:
  std::vector<uint32_t> Make(int64_t epoch) const;

  const l0::Sampler& sampler_;
  const int64_t samples_;
  std::mutex mutex_;
  // Those that somebody draws by: batches in flight may belong to either side of an epoch's end.
  std::map<int64_t, std::weak_ptr<const std::vector<uint32_t>>> known_;
};

// One thread's: a copy draws the same batches on another.
class Batches {
 public:
  // `source` declares samples, `data` holds stored rows (AsStored). The data must outlive the
  // object. data.samples >= batch if the sampler drops the last batch.
  Batches(const l0::Sampler& sampler, const l0::DataSource& source, const SplitData& data);

  int64_t BatchesPerEpoch() const { return batches_per_epoch_; }
  // Rows of data in batch `number`: the batch but for the last of an epoch.
  int64_t Rows(int64_t number) const;

  // Decodes a field of the batch into `out` (batch × elements of the declared type). What is in
  // memory cannot fail; a file that is read by the batch can.
  absl::Status Fill(int64_t number, size_t field, std::byte* out);
  void FillMask(int64_t number, std::span<float> mask) const;

 private:
  // The sample that is row `row` of the batch.
  int64_t SampleAt(int64_t number, int64_t row) const;

  const l0::Sampler& sampler_;
  const l0::DataSource& source_;
  const SplitData& data_;
  int64_t samples_ = 0;  // of an epoch
  int64_t batches_per_epoch_ = 1;
  std::shared_ptr<EpochOrders> orders_;
  int64_t ordered_epoch_ = -1;
  std::shared_ptr<const std::vector<uint32_t>> order_;  // of the epoch ordered_epoch_
  std::vector<int64_t> stored_rows_;        // of a batch, where they are read from the disk
  std::vector<std::byte> stored_bytes_;     // theirs
  std::vector<std::vector<float>> tables_;  // per field of bytes wanted as f32: byte → value
};

}  // namespace l3c::runtime
