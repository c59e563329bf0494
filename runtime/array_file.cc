#include "runtime/array_file.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "layers/support/printer.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);

struct TypeEntry {
  Stored type;
  std::string_view name;
  size_t size;
};
constexpr TypeEntry kTypes[] = {
    {Stored::kBool, "bool", 1}, {Stored::kU8, "u8", 1},   {Stored::kI8, "i8", 1},
    {Stored::kU16, "u16", 2},   {Stored::kI16, "i16", 2}, {Stored::kU32, "u32", 4},
    {Stored::kI32, "i32", 4},   {Stored::kU64, "u64", 8}, {Stored::kI64, "i64", 8},
    {Stored::kF32, "f32", 4},   {Stored::kF64, "f64", 8}};

std::string Extents(const std::vector<int64_t>& extents) {
  std::vector<std::string> parts;
  for (int64_t extent : extents) parts.push_back(std::to_string(extent));
  return support::Join(parts, " x ");
}

}  // namespace

std::string_view StoredName(Stored type) { return kTypes[static_cast<size_t>(type)].name; }
size_t StoredSize(Stored type) { return kTypes[static_cast<size_t>(type)].size; }
bool IsFloat(Stored type) { return type == Stored::kF32 || type == Stored::kF64; }

Stored StoredFor(tensor::DType dtype) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.name == tensor::DTypeName(dtype)) return entry.type;
  }
  return Stored::kU8;
}

std::optional<int64_t> ByteCount(const std::vector<int64_t>& extents, size_t element) {
  double bytes = static_cast<double>(element);
  for (int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    bytes *= static_cast<double>(extent);
  }
  if (bytes > static_cast<double>(int64_t{1} << 44)) return std::nullopt;
  auto count = static_cast<int64_t>(element);
  for (int64_t extent : extents) count *= extent;
  return count;
}

absl::StatusOr<StoredArray> ReadElements(ByteStream& stream, const ArrayLayout& layout) {
  StoredArray array;
  array.type = layout.type;
  array.extents = layout.extents;
  const std::string shape = Extents(array.extents);
  const auto bytes = ByteCount(array.extents, StoredSize(array.type));
  if (!bytes) return stream.Bad(Message("impossible extents ", shape));
  const auto wanted = static_cast<size_t>(*bytes);
  constexpr size_t kChunk = size_t{64} << 20;
  while (array.bytes.size() < wanted) {
    const size_t have = array.bytes.size();
    const size_t part = std::min(kChunk, wanted - have);
    array.bytes.resize(have + part);
    absl::StatusOr<size_t> got = stream.Read(array.bytes.data() + have, part);
    if (!got.ok()) return got.status();
    if (*got < part) {
      return stream.Bad(Message("truncated: ", shape, " elements of ", StoredName(array.type),
                                " are ", wanted, " bytes, and there are ", have + *got));
    }
  }
  if (absl::Status s = stream.ExpectEnd(); !s.ok()) return s;
  if (layout.swapped) SwapBytes(array.bytes, StoredSize(array.type));
  return array;
}

void SwapBytes(std::span<std::byte> bytes, size_t element) {
  if (element == 1) return;
  for (size_t at = 0; at + element <= bytes.size(); at += element) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    std::reverse(begin, begin + static_cast<std::ptrdiff_t>(element));
  }
}

}  // namespace l3c::runtime
