// idx: two zero bytes, a type byte, the number of axes, the extents as big-endian 32-bit integers,
// then the elements, big-endian.
#include <cstddef>

#include "runtime/array_format.h"

namespace l3c::runtime {
namespace {

absl::StatusOr<ArrayLayout> Layout(ByteStream& stream, const Wanted&) {
  std::byte magic[4];
  if (absl::Status s = stream.ReadExactly(magic, 4, "idx header"); !s.ok()) return s;
  ArrayLayout layout;
  layout.swapped = true;
  switch (std::to_integer<int>(magic[2])) {
    case 0x08:
      layout.type = Stored::kU8;
      break;
    case 0x09:
      layout.type = Stored::kI8;
      break;
    case 0x0B:
      layout.type = Stored::kI16;
      break;
    case 0x0C:
      layout.type = Stored::kI32;
      break;
    case 0x0D:
      layout.type = Stored::kF32;
      break;
    case 0x0E:
      layout.type = Stored::kF64;
      break;
    default:
      return stream.Bad("not an idx file: unknown element type in the magic number");
  }
  const int axes = std::to_integer<int>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || axes == 0 ||
      axes > tensor::kMaxRank) {
    return stream.Bad("not an idx file: bad magic number");
  }
  for (int axis = 0; axis < axes; ++axis) {
    std::byte extent[4];
    if (absl::Status s = stream.ReadExactly(extent, 4, "idx header"); !s.ok()) return s;
    int64_t value = 0;
    for (std::byte byte : extent) value = value << 8 | std::to_integer<int64_t>(byte);
    layout.extents.push_back(value);
  }
  layout.offset = stream.position();
  return layout;
}

}  // namespace

const ArrayFormat kIdxFormat = {.name = "idx", .layout = Layout};

}  // namespace l3c::runtime
