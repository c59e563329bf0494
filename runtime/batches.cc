#include "runtime/batches.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "layers/tensor/philox.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

template <class From, class To>
void Convert(const std::byte* from, std::byte* to, int64_t count, double scale) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    To converted;
    if constexpr (std::is_same_v<To, bool>) {
      converted = value != From{0};
    } else if (scale == 1) {
      converted = static_cast<To>(value);
    } else {
      converted = static_cast<To>(static_cast<double>(value) * scale);
    }
    std::memcpy(to + static_cast<size_t>(i) * sizeof(To), &converted, sizeof(To));
  }
}

template <class From>
void ConvertFrom(const std::byte* from, std::byte* to, tensor::DType dtype, int64_t count,
                 double scale) {
  switch (dtype) {
    case tensor::DType::kBool:
      return Convert<From, bool>(from, to, count, scale);
    case tensor::DType::kU8:
      return Convert<From, uint8_t>(from, to, count, scale);
    case tensor::DType::kI32:
      return Convert<From, int32_t>(from, to, count, scale);
    case tensor::DType::kI64:
      return Convert<From, int64_t>(from, to, count, scale);
    case tensor::DType::kU32:
      return Convert<From, uint32_t>(from, to, count, scale);
    case tensor::DType::kU64:
      return Convert<From, uint64_t>(from, to, count, scale);
    case tensor::DType::kF32:
      return Convert<From, float>(from, to, count, scale);
    case tensor::DType::kF64:
      return Convert<From, double>(from, to, count, scale);
  }
}

void ConvertStored(Stored type, const std::byte* from, std::byte* to, tensor::DType dtype,
                   int64_t count, double scale) {
  switch (type) {
    case Stored::kBool:
    case Stored::kU8:
      return ConvertFrom<uint8_t>(from, to, dtype, count, scale);
    case Stored::kI8:
      return ConvertFrom<int8_t>(from, to, dtype, count, scale);
    case Stored::kU16:
      return ConvertFrom<uint16_t>(from, to, dtype, count, scale);
    case Stored::kI16:
      return ConvertFrom<int16_t>(from, to, dtype, count, scale);
    case Stored::kU32:
      return ConvertFrom<uint32_t>(from, to, dtype, count, scale);
    case Stored::kI32:
      return ConvertFrom<int32_t>(from, to, dtype, count, scale);
    case Stored::kU64:
      return ConvertFrom<uint64_t>(from, to, dtype, count, scale);
    case Stored::kI64:
      return ConvertFrom<int64_t>(from, to, dtype, count, scale);
    case Stored::kF32:
      return ConvertFrom<float>(from, to, dtype, count, scale);
    case Stored::kF64:
      return ConvertFrom<double>(from, to, dtype, count, scale);
  }
}

// Of `count` reals, the first that is NaN or infinite.
std::optional<size_t> FirstNotFinite(const std::byte* values, tensor::DType dtype, size_t count) {
  const auto first = [&]<class Real>(Real value) -> std::optional<size_t> {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&value, values + i * sizeof value, sizeof value);
      if (!std::isfinite(value)) return i;
    }
    return std::nullopt;
  };
  return dtype == tensor::DType::kF32 ? first(0.0f) : first(0.0);
}

}  // namespace

int64_t SamplesOf(const l0::Sampler& sampler, int64_t stored_rows) {
  int64_t samples = stored_rows;
  if (sampler.window > 0) {
    samples =
        stored_rows < sampler.window ? 0 : (stored_rows - sampler.window) / sampler.stride + 1;
  }
  return samples / sampler.shards * sampler.shards;
}

int64_t RowsFor(const l0::Sampler& sampler, int64_t samples) {
  return sampler.window > 0 ? (samples - 1) * sampler.stride + sampler.window : samples;
}

l0::DataSource AsStored(const l0::Sampler& sampler, const l0::DataSource& source) {
  l0::DataSource stored = source;
  for (l0::FieldSource& field : stored.fields) {
    if (sampler.window > 0 && !field.shape.empty() && field.shape[0] == sampler.window) {
      field.shape.erase(field.shape.begin());
    }
  }
  return stored;
}

Batches::Batches(const l0::Sampler& sampler, const l0::DataSource& source, const SplitData& data)
    : sampler_(sampler),
      source_(source),
      data_(data),
      samples_(SamplesOf(sampler, data.samples)),
      tables_(source.fields.size()) {
  batches_per_epoch_ =
      sampler.drop_last ? samples_ / sampler.batch : (samples_ + sampler.batch - 1) / sampler.batch;
  orders_ = std::make_shared<EpochOrders>(sampler, samples_);
  for (size_t f = 0; f < source.fields.size(); ++f) {
    const FieldData& field = data.fields[f];
    if (field.type != Stored::kU8 || source.fields[f].dtype != tensor::DType::kF32) continue;
    for (int byte = 0; byte < 256; ++byte) {
      tables_[f].push_back(static_cast<float>(byte * field.scale));
    }
  }
}

int64_t Batches::Rows(int64_t number) const {
  if (sampler_.kind == l0::SampleKind::kReplay) return sampler_.batch;
  const int64_t first = number % batches_per_epoch_ * sampler_.batch;
  return std::min(sampler_.batch, samples_ - first);
}

std::shared_ptr<const std::vector<uint32_t>> EpochOrders::Of(int64_t epoch) {
  std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = known_.find(epoch); found != known_.end()) {
    if (auto order = found->second.lock()) return order;
  }
  auto order = std::make_shared<const std::vector<uint32_t>>(Make(epoch));
  known_[epoch] = order;
  return order;
}

std::vector<uint32_t> EpochOrders::Make(int64_t epoch) const {
  const bool shuffle = sampler_.kind == l0::SampleKind::kEpochShuffle;
  if (sampler_.kind == l0::SampleKind::kReplay) return {};
  if (sampler_.shards == 1) {
    if (!shuffle) return {};
    return tensor::ShuffledIndices(static_cast<uint32_t>(samples_), sampler_.seed,
                                   static_cast<uint64_t>(epoch));
  }
  // A batch takes as many samples of each shard, one shard after the other; the rest of the shards
  // makes the last.
  const int64_t each = samples_ / sampler_.shards;
  const int64_t share = std::max<int64_t>(1, sampler_.batch / sampler_.shards);
  std::vector<std::vector<uint32_t>> shards;
  for (int64_t s = 0; s < sampler_.shards; ++s) {
    // Of a seed of its own: 2^32 seeds apart, so that no shard has that of another run.
    std::vector<uint32_t> own = tensor::ShuffledIndices(
        static_cast<uint32_t>(each), sampler_.seed + (static_cast<uint64_t>(s) << 32),
        static_cast<uint64_t>(epoch));
    for (size_t i = 0; i < own.size(); ++i) {
      own[i] = static_cast<uint32_t>(s * each) + (shuffle ? own[i] : static_cast<uint32_t>(i));
    }
    shards.push_back(std::move(own));
  }
  std::vector<uint32_t> order;
  for (int64_t first = 0; first < each; first += share) {
    for (const std::vector<uint32_t>& shard : shards) {
      const int64_t end = std::min(first + share, each);
      order.insert(order.end(), shard.begin() + first, shard.begin() + end);
    }
  }
  return order;
}

int64_t Batches::SampleAt(int64_t number, int64_t row) const {
  if (sampler_.kind == l0::SampleKind::kReplay) {
    // The newest sample is the last of this batch's place in the stream.
    const int64_t seen = (number + 1) * sampler_.batch;
    const int64_t size = std::min({seen, sampler_.buffer, samples_});
    tensor::PhiloxStream draws(sampler_.seed,
                               static_cast<uint64_t>(number * sampler_.batch + row) + 1);
    auto back = static_cast<int64_t>(draws.NextBelow(static_cast<uint64_t>(size)));
    // The least of two draws: newer samples come up more often, the oldest hardly ever.
    if (sampler_.recent) {
      back = std::min(back, static_cast<int64_t>(draws.NextBelow(static_cast<uint64_t>(size))));
    }
    return (seen - 1 - back) % samples_;
  }
  const int64_t position = number % batches_per_epoch_ * sampler_.batch + row;
  return order_->empty() ? position : (*order_)[static_cast<size_t>(position)];
}

absl::Status Batches::Fill(int64_t number, size_t field, std::byte* out) {
  if (const int64_t epoch = number / batches_per_epoch_; epoch != ordered_epoch_) {
    order_ = orders_->Of(epoch);
    ordered_epoch_ = epoch;
  }
  const FieldData& data = data_.fields[field];
  const l0::FieldSource& declared = source_.fields[field];
  const tensor::DType dtype = declared.dtype;
  const auto stored_bytes = static_cast<size_t>(data.elements) * StoredSize(data.type);
  const auto wanted_bytes = static_cast<size_t>(data.elements) * tensor::SizeOf(dtype);
  const int64_t rows = Rows(number);
  const std::vector<float>& table = tables_[field];
  const int64_t window = std::max<int64_t>(sampler_.window, 1);
  const bool whole =
      sampler_.window > 0 && !declared.shape.empty() && declared.shape[0] == sampler_.window;
  const int64_t pieces = whole ? window : 1;
  const auto stored_row = [&](int64_t row, int64_t piece) {
    const int64_t first = SampleAt(number, row) * (sampler_.window > 0 ? sampler_.stride : 1) +
                          (whole ? 0 : window - 1);
    return (first + piece) % data_.stored;
  };
  if (data.rows != nullptr) {
    stored_rows_.clear();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t piece = 0; piece < pieces; ++piece) {
        stored_rows_.push_back(stored_row(row, piece));
      }
    }
    stored_bytes_.resize(stored_rows_.size() * stored_bytes);
    if (absl::Status s = data.rows->Read(stored_rows_, stored_bytes_); !s.ok()) return s;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const std::byte* from =
          data.rows != nullptr
              ? stored_bytes_.data() + static_cast<size_t>(row * pieces + piece) * stored_bytes
              : data.bytes.data() + static_cast<size_t>(stored_row(row, piece)) * stored_bytes;
      std::byte* to = out + static_cast<size_t>(row * pieces + piece) * wanted_bytes;
      if (!table.empty()) {
        auto* values = reinterpret_cast<float*>(to);
        for (int64_t i = 0; i < data.elements; ++i) {
          values[i] = table[std::to_integer<size_t>(from[i])];
        }
      } else if (data.scale == 1 && data.type == StoredFor(dtype)) {
        std::memcpy(to, from, wanted_bytes);
      } else {
        ConvertStored(data.type, from, to, dtype, data.elements, data.scale);
      }
    }
  }
  // What is in memory was looked at when it was read.
  if (data.rows != nullptr && IsFloat(data.type) && tensor::IsFloat(dtype)) {
    const size_t count = stored_rows_.size() * static_cast<size_t>(data.elements);
    if (const auto bad = FirstNotFinite(out, dtype, count)) {
      const int64_t sample = stored_rows_[*bad / static_cast<size_t>(data.elements)];
      return absl::InvalidArgumentError(Message(
          "data '", source_.name, "', split '", sampler_.split, "': sample ", sample, ": field '",
          declared.field, "' has a value that is no finite number of ", tensor::DTypeName(dtype)));
    }
  }
  const auto filled = static_cast<size_t>(rows * pieces) * wanted_bytes;
  std::memset(out + filled, 0,
              static_cast<size_t>(sampler_.batch * pieces) * wanted_bytes - filled);
  return absl::OkStatus();
}

void Batches::FillMask(int64_t number, std::span<float> mask) const {
  const auto rows = static_cast<size_t>(Rows(number));
  std::fill(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(rows), 1.0f);
  std::fill(mask.begin() + static_cast<std::ptrdiff_t>(rows), mask.end(), 0.0f);
}

}  // namespace l3c::runtime
