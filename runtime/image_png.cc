// PNG through libpng. Palettes become colours, and 1, 2 and 4 bits a channel become 8; pictures of
// 16 bits are refused, for half of every value would be lost without a word.
//
// libpng reports errors by longjmp, so what runs below a setjmp owns nothing.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "runtime/image_codec.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

struct Source {
  const std::byte* at;
  size_t left;
  char error[128];
};

void ReadFrom(png_structp png, png_bytep out, size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (source->left < size) png_error(png, "truncated");
  std::memcpy(out, source->at, size);
  source->at += size;
  source->left -= size;
}

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->error, message, sizeof source->error - 1);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

// Reads the head, and the pixels where `out` is not null. False with source->error.
bool Decode(Source* source, const ImageExtents* wanted, ImageExtents* extents, std::byte* out) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, source, OnError, OnWarning);
  if (png == nullptr) return false;
  png_infop info = png_create_info_struct(png);
  if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, source, ReadFrom);
  png_set_user_limits(png, kMaxImageSide, kMaxImageSide);
  png_read_info(png, info);
  if (png_get_bit_depth(png, info) == 16) png_error(png, "16 bits a channel; 8 can be read");
  png_set_expand(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  extents->height = png_get_image_height(png, info);
  extents->width = png_get_image_width(png, info);
  extents->channels = png_get_channels(png, info);
  if (out != nullptr) {
    if (!(*extents == *wanted)) png_error(png, "other extents than it had");
    const size_t row = static_cast<size_t>(extents->width * extents->channels);
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t y = 0; y < extents->height; ++y) {
        png_read_row(png, reinterpret_cast<png_bytep>(out + static_cast<size_t>(y) * row), nullptr);
      }
    }
    png_read_end(png, nullptr);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

absl::Status Failed(const Source& source) {
  return absl::InvalidArgumentError(
      Message("the picture is damaged or cannot be read: ",
              source.error[0] == '\0' ? "out of memory" : source.error));
}

absl::StatusOr<ImageExtents> Extents(std::span<const std::byte> file) {
  Source source = {file.data(), file.size(), {}};
  ImageExtents extents;
  if (!Decode(&source, nullptr, &extents, nullptr)) return Failed(source);
  return extents;
}

absl::Status Pixels(std::span<const std::byte> file, const ImageExtents& extents,
                    std::span<std::byte> out) {
  Source source = {file.data(), file.size(), {}};
  ImageExtents found;
  if (!Decode(&source, &extents, &found, out.data())) return Failed(source);
  return absl::OkStatus();
}

}  // namespace

const ImageCodec kPngCodec = {"png", "\x89PNG\r\n\x1a\n", Extents, Pixels};

}  // namespace l3c::runtime
