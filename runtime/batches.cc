#include "runtime/batches.h"

#include <algorithm>
#include <cstring>

#include "layers/tensor/philox.h"

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

}  // namespace

Batches::Batches(const l0::Sampler& sampler, const l0::DataSource& source, const SplitData& data)
    : sampler_(sampler), source_(source), data_(data), tables_(source.fields.size()) {
  batches_per_epoch_ = sampler.drop_last ? data.samples / sampler.batch
                                         : (data.samples + sampler.batch - 1) / sampler.batch;
  for (size_t f = 0; f < source.fields.size(); ++f) {
    const FieldData& field = data.fields[f];
    if (field.type != Stored::kU8 || source.fields[f].dtype != tensor::DType::kF32) continue;
    for (int byte = 0; byte < 256; ++byte) {
      tables_[f].push_back(static_cast<float>(byte * field.scale));
    }
  }
}

int64_t Batches::Rows(int64_t number) const {
  const int64_t first = number % batches_per_epoch_ * sampler_.batch;
  return std::min(sampler_.batch, data_.samples - first);
}

void Batches::Order(int64_t epoch) {
  if (sampler_.kind == l0::SampleKind::kSequential || epoch == ordered_epoch_) return;
  order_ = tensor::ShuffledIndices(static_cast<uint32_t>(data_.samples), sampler_.seed,
                                   static_cast<uint64_t>(epoch));
  ordered_epoch_ = epoch;
}

void Batches::Fill(int64_t number, size_t field, std::byte* out) {
  Order(number / batches_per_epoch_);
  const FieldData& data = data_.fields[field];
  const tensor::DType dtype = source_.fields[field].dtype;
  const auto stored_bytes = static_cast<size_t>(data.elements) * StoredSize(data.type);
  const auto wanted_bytes = static_cast<size_t>(data.elements) * tensor::SizeOf(dtype);
  const int64_t first = number % batches_per_epoch_ * sampler_.batch;
  const int64_t rows = Rows(number);
  const std::vector<float>& table = tables_[field];
  for (int64_t row = 0; row < rows; ++row) {
    const auto position = static_cast<size_t>(first + row);
    const int64_t sample =
        (order_.empty() ? static_cast<int64_t>(position) : order_[position]) % data_.stored;
    const std::byte* from = data.bytes.data() + static_cast<size_t>(sample) * stored_bytes;
    std::byte* to = out + static_cast<size_t>(row) * wanted_bytes;
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
  const auto filled = static_cast<size_t>(rows) * wanted_bytes;
  std::memset(out + filled, 0, static_cast<size_t>(sampler_.batch) * wanted_bytes - filled);
}

void Batches::FillMask(int64_t number, std::span<float> mask) const {
  const auto rows = static_cast<size_t>(Rows(number));
  std::fill(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(rows), 1.0f);
  std::fill(mask.begin() + static_cast<std::ptrdiff_t>(rows), mask.end(), 0.0f);
}

}  // namespace l3c::runtime
