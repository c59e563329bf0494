// JPEG through libjpeg-turbo: the slow integer transform, so that pixels are the same on every
// machine. A picture that ends early is an error and not half a picture.
//
// The library reports errors by a function that may not return, so what runs below a setjmp owns
// nothing.
#include <cstddef>
#include <cstdio>
// After <cstdio>, which it needs and does not include.
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>

#include "runtime/image_codec.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

struct Errors {
  jpeg_error_mgr manager;  // first: the library hands this one back
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void OnError(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  errors->manager.format_message(info, errors->text);
  std::longjmp(errors->back, 1);
}

// Warnings (level -1) are about damaged or missing data; what is above is a trace.
void OnMessage(j_common_ptr info, int level) {
  if (level < 0) OnError(info);
}

bool Decode(std::span<const std::byte> file, Errors* errors, const ImageExtents* wanted,
            ImageExtents* extents, std::byte* out) {
  jpeg_decompress_struct info;
  std::memset(&info, 0, sizeof info);
  info.err = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = OnError;
  errors->manager.emit_message = OnMessage;
  if (setjmp(errors->back) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()),
               static_cast<unsigned long>(file.size()));
  jpeg_read_header(&info, TRUE);
  info.out_color_space = info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  jpeg_calc_output_dimensions(&info);
  extents->height = info.output_height;
  extents->width = info.output_width;
  extents->channels = info.out_color_components;
  if (out != nullptr && *extents == *wanted) {
    jpeg_start_decompress(&info);
    const size_t row = static_cast<size_t>(extents->width * extents->channels);
    while (info.output_scanline < info.output_height) {
      auto* to = reinterpret_cast<JSAMPROW>(out + info.output_scanline * row);
      jpeg_read_scanlines(&info, &to, 1);
    }
    jpeg_finish_decompress(&info);
  }
  jpeg_destroy_decompress(&info);
  return true;
}

absl::Status Failed(const Errors& errors) {
  return absl::InvalidArgumentError(
      Message("the picture is damaged or cannot be read: ", errors.text));
}

absl::StatusOr<ImageExtents> Extents(std::span<const std::byte> file) {
  Errors errors = {};
  ImageExtents extents;
  if (!Decode(file, &errors, nullptr, &extents, nullptr)) return Failed(errors);
  return extents;
}

absl::Status Pixels(std::span<const std::byte> file, const ImageExtents& extents,
                    std::span<std::byte> out) {
  Errors errors = {};
  ImageExtents found;
  if (!Decode(file, &errors, &extents, &found, out.data())) return Failed(errors);
  return absl::OkStatus();
}

}  // namespace

const ImageCodec kJpegCodec = {"jpeg", "\xff\xd8\xff", Extents, Pixels};

}  // namespace l3c::runtime
