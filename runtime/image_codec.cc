#include "runtime/image_codec.h"

#include <cstring>
#include <vector>

#include "layers/support/printer.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

absl::Status At(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), Message(path, ": ", std::string(status.message())));
}

absl::StatusOr<const ImageCodec*> CodecOf(const std::string& path,
                                          std::span<const std::byte> file) {
  std::vector<std::string> names;
  for (const ImageCodec& codec : ImageCodecs()) {
    if (file.size() >= codec.magic.size() &&
        std::memcmp(file.data(), codec.magic.data(), codec.magic.size()) == 0) {
      return &codec;
    }
    names.emplace_back(codec.name);
  }
  return absl::InvalidArgumentError(
      Message(path, ": not a picture of a known kind (", support::Join(names), ")"));
}

std::string Text(const ImageExtents& extents) {
  return Message(extents.height, " x ", extents.width, " pixels of ", extents.channels,
                 extents.channels == 1 ? " channel" : " channels");
}

}  // namespace

std::span<const ImageCodec> ImageCodecs() {
  static const ImageCodec codecs[] = {kPngCodec, kJpegCodec};
  return codecs;
}

absl::StatusOr<ImageExtents> ExtentsOfImage(const std::string& path,
                                            std::span<const std::byte> file) {
  absl::StatusOr<const ImageCodec*> codec = CodecOf(path, file);
  if (!codec.ok()) return codec.status();
  absl::StatusOr<ImageExtents> extents = (*codec)->extents(file);
  if (!extents.ok()) return At(path, extents.status());
  if (extents->height < 1 || extents->width < 1 || extents->height > kMaxImageSide ||
      extents->width > kMaxImageSide) {
    return absl::InvalidArgumentError(Message(path, ": impossible extents: ", Text(*extents)));
  }
  return extents;
}

absl::Status DecodeImage(const std::string& path, std::span<const std::byte> file,
                         const ImageExtents& wanted, std::span<std::byte> out) {
  absl::StatusOr<ImageExtents> extents = ExtentsOfImage(path, file);
  if (!extents.ok()) return extents.status();
  if (*extents != wanted) {
    return absl::InvalidArgumentError(
        Message(path, ": has ", Text(*extents), "; ", Text(wanted), " are declared"));
  }
  absl::Status status = (*CodecOf(path, file))->decode(file, wanted, out);
  return status.ok() ? status : At(path, status);
}

}  // namespace l3c::runtime
