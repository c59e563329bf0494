// Pictures to bytes. A codec is one file with one entry (image_png.cc, say) and its line in the
// table of image_codec.cc; a file's codec is told by its first bytes, not by its name.
//
// Pixels come out as [height, width, channels] of one byte: 1 channel is grey, 3 are red, green and
// blue, 2 and 4 have alpha behind. Nothing is scaled, cropped or converted from colour to grey.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace l3c::runtime {

struct ImageExtents {
  int64_t height = 0, width = 0, channels = 0;
  bool operator==(const ImageExtents&) const = default;
  size_t bytes() const { return static_cast<size_t>(height * width * channels); }
};

inline constexpr int64_t kMaxImageSide = int64_t{1} << 16;

struct ImageCodec {
  std::string_view name;
  std::string_view magic;  // the first bytes of a file
  // What a decoded file has. The message of an error leaves the path to the caller.
  absl::StatusOr<ImageExtents> (*extents)(std::span<const std::byte> file);
  // Into extents.bytes() bytes; `extents` are the file's own.
  absl::Status (*decode)(std::span<const std::byte> file, const ImageExtents& extents,
                         std::span<std::byte> out);
};

std::span<const ImageCodec> ImageCodecs();  // png, jpeg

extern const ImageCodec kPngCodec;
extern const ImageCodec kJpegCodec;

// InvalidArgument, beginning with the path, for what is no picture, a damaged one, or one of other
// extents.
absl::StatusOr<ImageExtents> ExtentsOfImage(const std::string& path,
                                            std::span<const std::byte> file);
absl::Status DecodeImage(const std::string& path, std::span<const std::byte> file,
                         const ImageExtents& wanted, std::span<std::byte> out);

}  // namespace l3c::runtime
