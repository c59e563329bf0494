// raw: nothing but elements, little-endian, of the declared type and extents.
#include "runtime/array_format.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

int64_t BytesOfSample(const Wanted& wanted) {
  return tensor::NumElements(wanted.sample) *
         static_cast<int64_t>(StoredSize(StoredFor(wanted.dtype)));
}

absl::Status CheckLength(const ByteStream& stream, int64_t bytes, int64_t each) {
  if (bytes % each == 0) return absl::OkStatus();
  return stream.Bad(Message("truncated: ", bytes, " bytes are not a whole number of samples of ",
                            each, " bytes"));
}

absl::StatusOr<ArrayLayout> Layout(ByteStream& stream, const Wanted& wanted) {
  const int64_t each = BytesOfSample(wanted);
  if (absl::Status s = CheckLength(stream, stream.file_size(), each); !s.ok()) return s;
  ArrayLayout layout;
  layout.type = StoredFor(wanted.dtype);
  layout.extents = wanted.sample;
  layout.extents.insert(layout.extents.begin(), stream.file_size() / each);
  return layout;
}

absl::StatusOr<StoredArray> Read(ByteStream& stream, const Wanted& wanted) {
  StoredArray array;
  array.type = StoredFor(wanted.dtype);
  array.extents = wanted.sample;
  for (;;) {
    const size_t have = array.bytes.size();
    array.bytes.resize(have + (size_t{4} << 20));
    absl::StatusOr<size_t> got = stream.Read(array.bytes.data() + have, array.bytes.size() - have);
    if (!got.ok()) return got.status();
    array.bytes.resize(have + *got);
    if (*got < size_t{4} << 20) break;
  }
  const auto bytes = static_cast<int64_t>(array.bytes.size());
  const int64_t each = BytesOfSample(wanted);
  if (absl::Status s = CheckLength(stream, bytes, each); !s.ok()) return s;
  array.extents.insert(array.extents.begin(), bytes / each);
  return array;
}

}  // namespace

const ArrayFormat kRawFormat = {.name = "raw", .layout = Layout, .read = Read};

}  // namespace l3c::runtime
