#include "runtime/data_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "layers/tensor/philox.h"
#include "runtime/array_format.h"
#include "runtime/data_folder.h"
#include "runtime/image_files.h"
#include "runtime/memory.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

namespace fs = std::filesystem;

// Calls visit(sample, value) for each element until it returns false.
template <class T, class Visit>
void VisitAs(const FieldData& data, Visit visit) {
  const size_t count = data.bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data.bytes.data() + i * sizeof(T), sizeof(T));
    if (!visit(static_cast<int64_t>(i) / data.elements, value)) return;
  }
}

template <class Visit>
void VisitElements(const FieldData& data, Visit visit) {
  switch (data.type) {
    case Stored::kBool:
    case Stored::kU8:
      return VisitAs<uint8_t>(data, visit);
    case Stored::kI8:
      return VisitAs<int8_t>(data, visit);
    case Stored::kU16:
      return VisitAs<uint16_t>(data, visit);
    case Stored::kI16:
      return VisitAs<int16_t>(data, visit);
    case Stored::kU32:
      return VisitAs<uint32_t>(data, visit);
    case Stored::kI32:
      return VisitAs<int32_t>(data, visit);
    case Stored::kU64:
      return VisitAs<uint64_t>(data, visit);
    case Stored::kI64:
      return VisitAs<int64_t>(data, visit);
    case Stored::kF32:
      return VisitAs<float>(data, visit);
    case Stored::kF64:
      return VisitAs<double>(data, visit);
  }
}

struct IntegerRange {
  double low, high;
};
IntegerRange RangeOf(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::kBool:
      return {0, 1};
    case tensor::DType::kU8:
      return {0, 255};
    case tensor::DType::kI32:
      return {-2147483648.0, 2147483647.0};
    case tensor::DType::kU32:
      return {0, 4294967295.0};
    case tensor::DType::kI64:
      return {-0x1p63, 0x1p63};
    case tensor::DType::kU64:
      return {0, 0x1p64};
    case tensor::DType::kF32:
    case tensor::DType::kF64:
      break;
  }
  return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
}

// Every `classes` reals in a row are to be none below zero and to add up to one, as far as files
// keep figures.
absl::Status CheckDistributions(const l0::FieldSource& field, const FieldFile& file,
                                const FieldData& data) {
  constexpr double kTolerance = 1e-3;
  absl::Status status;
  double sum = 0;
  int64_t count = 0;
  VisitElements(data, [&](int64_t sample, auto value) {
    const double p = static_cast<double>(value) * file.scale;
    if (!(p >= 0)) {
      status = absl::InvalidArgumentError(Message(
          file.path, ": sample ", sample, ": field '", field.field, "' is a distribution over ",
          field.classes, " classes, and ", p, " is no probability"));
      return false;
    }
    sum += p;
    if (++count < field.classes) return true;
    if (!(std::abs(sum - 1) <= kTolerance)) {
      status = absl::InvalidArgumentError(Message(
          file.path, ": sample ", sample, ": field '", field.field, "' is a distribution over ",
          field.classes, " classes, and they add up to ", sum));
    }
    sum = 0;
    count = 0;
    return status.ok();
  });
  return status;
}

// NaN, an infinity, or what is beyond the field's type would be found in the loss, where it looks
// as if training had gone wrong.
absl::Status CheckReals(const l0::FieldSource& field, const FieldFile& file,
                        const FieldData& data) {
  const double most = field.dtype == tensor::DType::kF32
                          ? static_cast<double>(std::numeric_limits<float>::max())
                          : std::numeric_limits<double>::max();
  if (!IsFloat(data.type) && std::abs(file.scale) <= most / 0x1p64) return absl::OkStatus();
  absl::Status status;
  VisitElements(data, [&](int64_t sample, auto value) {
    const auto stored = static_cast<double>(value);
    if (std::abs(stored * file.scale) <= most) return true;
    const std::string what =
        std::isnan(stored)   ? "nan is no number"
        : std::isinf(stored) ? Message(stored, " is no finite number")
        : file.scale != 1    ? Message(stored, " scaled by ", file.scale, " does not fit ",
                                       tensor::DTypeName(field.dtype))
                             : Message(stored, " does not fit ", tensor::DTypeName(field.dtype));
    status = absl::InvalidArgumentError(
        Message(file.path, ": sample ", sample, ": field '", field.field, "': ", what));
    return false;
  });
  return status;
}

std::vector<int64_t> WithoutOnes(const std::vector<int64_t>& extents, size_t begin) {
  std::vector<int64_t> rest;
  for (size_t i = begin; i < extents.size(); ++i) {
    if (extents[i] != 1) rest.push_back(extents[i]);
  }
  return rest;
}

absl::Status CheckField(const l0::FieldSource& field, const FieldFile& file,
                        const std::vector<int64_t>& extents, const FieldData& data) {
  const auto bad = [&](std::string_view message) {
    return absl::InvalidArgumentError(Message(file.path, ": ", message));
  };
  // Axes of extent one say nothing: labels of the domain [1] may be stored as [n] or [n, 1].
  if (WithoutOnes(extents, 1) != WithoutOnes(field.shape, 0)) {
    return bad(Message("a sample has the extents ",
                       tensor::ShapeToString({extents.begin() + 1, extents.end()}), "; field '",
                       field.field, "' is declared ", tensor::ShapeToString(field.shape)));
  }
  if (!tensor::IsFloat(field.dtype)) {
    if (IsFloat(data.type)) {
      return bad(Message("holds elements of ", StoredName(data.type), "; field '", field.field,
                         "' is declared ", tensor::DTypeName(field.dtype)));
    }
    if (file.scale != 1) {
      return bad(Message("a scale for field '", field.field, "' of integers"));
    }
  }
  if (tensor::IsFloat(field.dtype) && field.classes == 0) return CheckReals(field, file, data);
  if (tensor::IsFloat(field.dtype)) return CheckDistributions(field, file, data);
  const IntegerRange range = RangeOf(field.dtype);
  absl::Status status;
  VisitElements(data, [&](int64_t sample, auto value) {
    const auto real = static_cast<double>(value);
    const bool ignored = field.ignored && real == static_cast<double>(*field.ignored);
    if (field.classes > 0 && !ignored &&
        !(real >= 0 && real < static_cast<double>(field.classes))) {
      status =
          bad(Message("sample ", sample, ": label ", value, " is outside 0..", field.classes - 1));
    } else if (!tensor::IsFloat(field.dtype) && (real < range.low || real > range.high)) {
      status = bad(Message("sample ", sample, ": ", value, " does not fit ",
                           tensor::DTypeName(field.dtype)));
    }
    return status.ok();
  });
  return status;
}

// Reads fields until together they have taken the bytes that may stay in memory; what does not fit
// in any more is left on the disk.
class FieldReader {
 public:
  FieldReader(FileReader& reader, int64_t resident_bytes)
      : reader_(reader), left_(std::max<int64_t>(0, resident_bytes)) {}

  // Returns the extents, samples first.
  absl::StatusOr<std::vector<int64_t>> Read(const l0::FieldSource& field, const FieldFile& file,
                                            FieldData& data) {
    data.scale = file.scale;
    data.elements = tensor::NumElements(field.shape);
    absl::StatusOr<std::vector<int64_t>> extents = file.kind == kImages ? Images(field, file, data)
                                                   : file.kind == kClasses
                                                       ? Classes(file, data)
                                                       : Array(field, file, data);
    left_ = std::max<int64_t>(0, left_ - static_cast<int64_t>(data.bytes.size()));
    return extents;
  }

 private:
  absl::StatusOr<std::vector<int64_t>> Array(const l0::FieldSource& field, const FieldFile& file,
                                             FieldData& data) {
    const Wanted wanted = {field.dtype, field.shape, file.column};
    absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::Open(file.path, reader_);
    if (!stream.ok()) return stream.status();
    if (file.format->layout != nullptr && !(*stream)->compressed() &&
        (*stream)->file_size() > left_) {
      absl::StatusOr<ArrayLayout> layout = file.format->layout(**stream, wanted);
      if (!layout.ok()) return layout.status();
      // Elements that a check looks at have to be here for it.
      const bool unchecked = field.classes == 0 && (tensor::IsFloat(field.dtype) ||
                                                    layout->type == StoredFor(field.dtype));
      const auto bytes = ByteCount(layout->extents, StoredSize(layout->type));
      if (unchecked && bytes && layout->offset + *bytes == (*stream)->file_size()) {
        data.type = layout->type;
        data.rows = MakeFileRows(file.path, (*stream)->TakeFile(), *layout, reader_);
        return layout->extents;
      }
    }
    absl::StatusOr<StoredArray> array = ReadArray(file.path, *file.format, wanted, reader_);
    if (absl::IsOutOfRange(array.status())) {
      return absl::InvalidArgumentError(
          Message(std::string(array.status().message()), "; field '", field.field, "'"));
    }
    if (!array.ok()) return array.status();
    data.type = array->type;
    data.bytes = std::move(array->bytes);
    return std::move(array->extents);
  }

  absl::StatusOr<std::vector<int64_t>> Images(const l0::FieldSource& field, const FieldFile& file,
                                              FieldData& data) {
    const size_t rank = field.shape.size();
    if (rank < 2 || rank > 3) {
      return absl::InvalidArgumentError(
          Message(file.path, ": pictures are [height, width] or [height, width, channels]; field '",
                  field.field, "' is declared ", tensor::ShapeToString(field.shape)));
    }
    const ImageExtents extents = {field.shape[0], field.shape[1], rank == 3 ? field.shape[2] : 1};
    std::error_code ignored;
    if (file.column.empty() && !fs::is_directory(file.path, ignored)) {
      return absl::InvalidArgumentError(
          Message(file.path,
                  ": is no folder of pictures; of a csv file, 'column' says which one "
                  "holds their paths"));
    }
    absl::StatusOr<std::vector<std::string>> paths =
        file.column.empty() ? ListImages(file.path) : ReadPaths(file.path, file.column, reader_);
    if (!paths.ok()) return paths.status();
    const auto count = static_cast<int64_t>(paths->size());
    data.type = Stored::kU8;
    data.rows = MakeImageRows(*std::move(paths), extents, reader_);
    const double bytes = static_cast<double>(count) * static_cast<double>(extents.bytes());
    const bool resident = bytes <= static_cast<double>(left_);
    // Of pictures that stay on the disk, the first speaks for the extents of the others.
    std::vector<int64_t> rows(resident ? static_cast<size_t>(count) : 1);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    data.bytes.resize(rows.size() * extents.bytes());
    if (absl::Status s = data.rows->Read(rows, data.bytes); !s.ok()) return s;
    if (resident) {
      data.rows.reset();
    } else {
      data.bytes = {};
    }
    return std::vector<int64_t>{count, extents.height, extents.width, extents.channels};
  }

  absl::StatusOr<std::vector<int64_t>> Classes(const FieldFile& file, FieldData& data) {
    absl::StatusOr<std::vector<int64_t>> labels = ListClasses(file.path);
    if (!labels.ok()) return labels.status();
    data.type = Stored::kI64;
    const auto bytes = std::as_bytes(std::span(*labels));
    data.bytes.assign(bytes.begin(), bytes.end());
    return std::vector<int64_t>{static_cast<int64_t>(labels->size())};
  }

  FileReader& reader_;
  int64_t left_;
};

}  // namespace

absl::StatusOr<SplitData> ReadSplit(const l0::DataSource& source, const std::string& folder,
                                    const std::string& split, const DataOptions& options) {
  const absl::StatusOr<DataFolder> where = DataFolder::Open(source, folder, split);
  if (!where.ok()) return where.status();
  static const std::unique_ptr<FileReader> portable =
      *FileReader::Create(FileReader::Kind::kPortable);
  FieldReader reader(options.reader != nullptr ? *options.reader : *portable,
                     options.resident_bytes.value_or(AvailableBytes() / 4));
  SplitData data;
  std::string first_path;
  for (const l0::FieldSource& field : source.fields) {
    const absl::StatusOr<FieldFile> file = where->File(split, field.field);
    if (!file.ok()) return file.status();
    FieldData loaded;
    absl::StatusOr<std::vector<int64_t>> extents = reader.Read(field, *file, loaded);
    if (!extents.ok()) return extents.status();
    if (absl::Status s = CheckField(field, *file, *extents, loaded); !s.ok()) return s;
    const int64_t samples = extents->front();
    if (samples == 0) return absl::InvalidArgumentError(file->path + ": holds no sample");
    if (samples > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(file->path + ": holds more than 2^32 samples");
    }
    if (first_path.empty()) {
      first_path = file->path;
      data.samples = samples;
    } else if (samples != data.samples) {
      return absl::InvalidArgumentError(Message(file->path, ": holds ", samples, " samples; ",
                                                first_path, " holds ", data.samples));
    }
    data.fields.push_back(std::move(loaded));
  }
  data.stored = data.samples;
  return data;
}

SplitData SyntheticSplit(const l0::DataSource& source, const std::string& split, int64_t samples) {
  // Enough to defeat caches, and little enough to be made at once: rows of a megabyte and more are
  // repeated after fewer.
  constexpr int64_t kMaxStored = 4096;
  constexpr int64_t kMaxElements = int64_t{1} << 25;
  int64_t elements = 1;  // of a row
  for (const l0::FieldSource& field : source.fields) elements += tensor::NumElements(field.shape);
  SplitData data;
  data.samples = samples;
  data.stored = std::min({samples, kMaxStored, std::max<int64_t>(1, kMaxElements / elements)});
  // The split's name seeds the generator, so that what is tested was not trained on.
  uint64_t seed = 0;
  for (char c : split) seed = seed * 131 + static_cast<unsigned char>(c);
  for (size_t f = 0; f < source.fields.size(); ++f) {
    const l0::FieldSource& field = source.fields[f];
    FieldData made;
    made.elements = tensor::NumElements(field.shape);
    const auto count = static_cast<size_t>(data.stored * made.elements);
    tensor::PhiloxStream random(seed, f);
    const auto append = [&]<class T>(T value) {
      const auto* raw = reinterpret_cast<const std::byte*>(&value);
      made.bytes.insert(made.bytes.end(), raw, raw + sizeof(T));
    };
    if (field.classes > 0 && tensor::IsFloat(field.dtype)) {
      made.type = Stored::kF32;
      std::vector<float> weights(static_cast<size_t>(field.classes));
      for (size_t i = 0; i < count; i += weights.size()) {
        float sum = 0;
        for (float& w : weights) sum += w = static_cast<float>(1 + (random.NextWord() & 255));
        for (float w : weights) append(w / sum);
      }
    } else if (field.classes > 0) {
      made.type = Stored::kI64;
      for (size_t i = 0; i < count; ++i) {
        append(static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(field.classes))));
      }
    } else {
      // Bytes stand for reals as well, as in files of images.
      made.type = Stored::kU8;
      made.scale = tensor::IsFloat(field.dtype) ? 1.0 / 256 : 1;
      const uint32_t mask = field.dtype == tensor::DType::kBool ? 1 : 255;
      made.bytes.reserve(count);
      for (size_t i = 0; i < count; ++i) append(static_cast<uint8_t>(random.NextWord() & mask));
    }
    data.fields.push_back(std::move(made));
  }
  return data;
}

}  // namespace l3c::runtime
