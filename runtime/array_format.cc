#include "runtime/array_format.h"

#include <new>

namespace l3c::runtime {

std::span<const ArrayFormat> ArrayFormats() {
  static const ArrayFormat formats[] = {kIdxFormat, kNpyFormat, kCsvFormat, kRawFormat};
  return formats;
}

const ArrayFormat* FindArrayFormat(std::string_view name) {
  for (const ArrayFormat& format : ArrayFormats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

absl::StatusOr<StoredArray> ReadArray(const std::string& path, const ArrayFormat& format,
                                      const Wanted& wanted, FileReader& reader) {
  absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::Open(path, reader);
  if (!stream.ok()) return stream.status();
  try {
    if (format.read != nullptr) return format.read(**stream, wanted);
    const absl::StatusOr<ArrayLayout> layout = format.layout(**stream, wanted);
    if (!layout.ok()) return layout.status();
    return ReadElements(**stream, *layout);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(path + ": too large for the memory of this machine");
  }
}

}  // namespace l3c::runtime
