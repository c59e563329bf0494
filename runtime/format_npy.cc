// npy: magic and version, the length of the header, the header as the text of a Python dictionary,
// then the elements in the byte order that it states.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/array_format.h"
#include "runtime/cells.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

// The text after 'key': in the header of an npy file, or "".
std::string_view NpyValue(std::string_view header, std::string_view key) {
  const size_t at = header.find(Message("'", key, "':"));
  if (at == std::string_view::npos) return {};
  return StripBlanks(header.substr(at + key.size() + 3));
}

absl::StatusOr<ArrayLayout> Layout(ByteStream& stream, const Wanted&) {
  std::byte start[8];
  if (absl::Status s = stream.ReadExactly(start, 8, "npy header"); !s.ok()) return s;
  const int major = std::to_integer<int>(start[6]);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0 || major < 1 || major > 3) {
    return stream.Bad("not an npy file: bad magic number");
  }
  std::byte length[4] = {};
  if (absl::Status s = stream.ReadExactly(length, major == 1 ? 2 : 4, "npy header"); !s.ok()) {
    return s;
  }
  uint32_t size = 0;
  std::memcpy(&size, length, 4);
  if (size > (1u << 20)) return stream.Bad("not an npy file: its header is too long");
  std::string header(size, '\0');
  if (absl::Status s =
          stream.ReadExactly(reinterpret_cast<std::byte*>(header.data()), size, "npy header");
      !s.ok()) {
    return s;
  }
  const std::string_view descr = NpyValue(header, "descr");
  const std::string_view order = NpyValue(header, "fortran_order");
  const std::string_view shape = NpyValue(header, "shape");
  if (descr.size() < 5 || descr[0] != '\'' || shape.empty() || shape[0] != '(') {
    return stream.Bad("the header of the npy file is damaged");
  }
  if (order.substr(0, 5) != "False") return stream.Bad("an npy file in Fortran order");
  ArrayLayout layout;
  constexpr std::pair<std::string_view, Stored> kDescriptions[] = {
      {"b1", Stored::kBool}, {"u1", Stored::kU8},  {"i1", Stored::kI8},  {"u2", Stored::kU16},
      {"i2", Stored::kI16},  {"u4", Stored::kU32}, {"i4", Stored::kI32}, {"u8", Stored::kU64},
      {"i8", Stored::kI64},  {"f4", Stored::kF32}, {"f8", Stored::kF64}};
  const std::string_view code = descr.substr(2, 2);
  const auto* found = std::find_if(std::begin(kDescriptions), std::end(kDescriptions),
                                   [&](const auto& entry) { return entry.first == code; });
  if (found == std::end(kDescriptions) || descr[4] != '\'') {
    return stream.Bad(Message("an npy file of unknown elements ", descr.substr(0, 6)));
  }
  layout.type = found->second;
  layout.swapped = descr[1] == '>';
  const size_t close = shape.find(')');
  if (close == std::string_view::npos) return stream.Bad("the header of the npy file is damaged");
  for (std::string_view part : SplitCells(shape.substr(1, close - 1), ",")) {
    if (part.empty()) continue;
    int64_t extent = 0;
    if (!ParseCell(part, &extent) || extent < 0 ||
        layout.extents.size() >= static_cast<size_t>(tensor::kMaxRank)) {
      return stream.Bad("the shape of the npy file is damaged");
    }
    layout.extents.push_back(extent);
  }
  if (layout.extents.empty()) return stream.Bad("an npy file of one scalar, not of samples");
  layout.offset = stream.position();
  return layout;
}

}  // namespace

const ArrayFormat kNpyFormat = {.name = "npy", .layout = Layout};

}  // namespace l3c::runtime
