// Arrays at rest: files of samples in one of the formats of array_format.h, gzip-compressed or not.
//
// Reading checks everything the format lets one check: magic, element type, extents against the
// length, checksums of the compression, truncation, bytes that follow the end. A failure is an
// InvalidArgument (NotFound for a file that is not there) whose message begins with the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "layers/tensor/dtype.h"
#include "runtime/byte_stream.h"

namespace l3c::runtime {

enum class Stored : uint8_t { kBool, kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF32, kF64 };
std::string_view StoredName(Stored type);
size_t StoredSize(Stored type);
bool IsFloat(Stored type);
Stored StoredFor(tensor::DType dtype);

// What stands in a file, and from which byte on. Extents: the number of samples first.
struct ArrayLayout {
  Stored type = Stored::kU8;
  std::vector<int64_t> extents;
  int64_t offset = 0;
  bool swapped = false;  // elements in the other byte order
};

// Elements in the machine's byte order.
struct StoredArray {
  Stored type = Stored::kU8;
  std::vector<int64_t> extents;
  std::vector<std::byte> bytes;
};

// Of a whole array; nothing for absurd extents.
std::optional<int64_t> ByteCount(const std::vector<int64_t>& extents, size_t element);
// The elements that `layout` promises, which begin where the stream stands, and nothing after them.
// The memory grows with what is really there: a damaged header cannot ask for terabytes.
absl::StatusOr<StoredArray> ReadElements(ByteStream& stream, const ArrayLayout& layout);
// Turns the bytes of every element about.
void SwapBytes(std::span<std::byte> bytes, size_t element);

}  // namespace l3c::runtime
