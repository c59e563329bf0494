// Arrays at rest: idx, npy, csv and raw files, gzip-compressed or not (told by their first bytes).
//
// Reading checks everything the format lets one check: magic, element type, extents against the
// length, checksums of the compression, truncation, bytes that follow the end. A failure is an
// InvalidArgument (NotFound for a file that is not there) whose message begins with the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/tensor/dtype.h"

namespace l3c::runtime {

enum class Stored : uint8_t { kBool, kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF32, kF64 };
std::string_view StoredName(Stored type);
size_t StoredSize(Stored type);
bool IsFloat(Stored type);
Stored StoredFor(tensor::DType dtype);

// Extents, the number of samples first; elements in the machine's byte order.
struct StoredArray {
  Stored type = Stored::kU8;
  std::vector<int64_t> extents;
  std::vector<std::byte> bytes;
};

enum class FileFormat : uint8_t { kIdx, kNpy, kCsv, kRaw };
// "idx", "npy", "csv", "raw".
bool ParseFileFormat(std::string_view name, FileFormat* format);

// csv has a sample a line and raw nothing but elements, so both take type and extents of a sample
// from the caller; the other formats say theirs. A csv file may begin with a line of titles.
absl::StatusOr<StoredArray> ReadArray(const std::string& path, FileFormat format,
                                      tensor::DType dtype, const tensor::Shape& sample);

}  // namespace l3c::runtime
