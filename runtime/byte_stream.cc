#include "runtime/byte_stream.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/message.h"

namespace l3c::runtime {
namespace {

// So many reads of so many bytes are under way at a time.
constexpr size_t kParts = 4;
constexpr size_t kPart = size_t{1} << 17;

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path,
                                                             FileReader& reader) {
  absl::StatusOr<RegularFile> file = RegularFile::Open(path);
  if (!file.ok()) return file.status();
  std::unique_ptr<ByteStream> stream(new ByteStream(path, *std::move(file), reader));
  struct stat status = {};
  if (fstat(stream->file_.fd(), &status) == 0) stream->file_size_ = status.st_size;
  stream->Refill();
  if (!stream->failure_.ok()) return stream->failure_;
  const auto& in = stream->input_;
  stream->compressed_ = in.size() >= 2 && in[0] == std::byte{0x1F} && in[1] == std::byte{0x8B};
  if (stream->compressed_) {
    // 15 bits of window, 16: a gzip header.
    if (inflateInit2(&stream->stream_, 15 + 16) != Z_OK) return stream->Bad("out of memory");
    stream->inflating_ = true;
  }
  return stream;
}

ByteStream::ByteStream(std::string path, RegularFile file, FileReader& reader)
    : path_(std::move(path)), file_(std::move(file)), reader_(reader) {}

ByteStream::~ByteStream() {
  if (inflating_) inflateEnd(&stream_);
}

absl::Status ByteStream::Bad(std::string_view message) const {
  return absl::InvalidArgumentError(Message(path_, ": ", message));
}

absl::StatusOr<size_t> ByteStream::Read(std::byte* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (used_ == input_.size() && !Refill()) {
      if (!failure_.ok()) return failure_;
      if (compressed_ && !at_member_end_) {
        return Bad("truncated: the compressed data ends in the middle");
      }
      break;
    }
    if (!compressed_) {
      const size_t part = std::min(size - done, input_.size() - used_);
      std::memcpy(out + done, input_.data() + used_, part);
      used_ += part;
      done += part;
      continue;
    }
    if (at_member_end_) {
      // Another member may follow; anything else does not belong here.
      if (input_[used_] != std::byte{0x1F}) return Bad("bytes follow the compressed data");
      inflateReset(&stream_);
      at_member_end_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + used_);
    stream_.avail_in = static_cast<uInt>(input_.size() - used_);
    const size_t part = std::min<size_t>(size - done, size_t{1} << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(out + done);
    stream_.avail_out = static_cast<uInt>(part);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    used_ = input_.size() - stream_.avail_in;
    done += part - stream_.avail_out;
    if (result == Z_STREAM_END) {
      at_member_end_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Bad(Message("the compressed data is damaged", stream_.msg == nullptr ? "" : ": ",
                         stream_.msg == nullptr ? "" : stream_.msg));
    }
  }
  position_ += static_cast<int64_t>(done);
  return done;
}

absl::Status ByteStream::ReadExactly(std::byte* out, size_t size, std::string_view what) {
  absl::StatusOr<size_t> got = Read(out, size);
  if (!got.ok()) return got.status();
  if (*got < size) return Bad(Message("truncated: no complete ", what));
  return absl::OkStatus();
}

absl::Status ByteStream::ExpectEnd() {
  std::byte extra;
  absl::StatusOr<size_t> more = Read(&extra, 1);
  if (!more.ok()) return more.status();
  if (*more > 0) return Bad("bytes follow the last element");
  return absl::OkStatus();
}

bool ByteStream::Refill() {
  used_ = 0;
  input_.resize(kParts * kPart);
  ReadRequest requests[kParts];
  for (size_t p = 0; p < kParts; ++p) {
    requests[p].fd = file_.fd();
    requests[p].offset = file_position_ + static_cast<int64_t>(p * kPart);
    requests[p].to = std::span(input_).subspan(p * kPart, kPart);
  }
  reader_.Read(requests);
  size_t got = 0;
  for (const ReadRequest& request : requests) {
    if (request.error != 0) {
      const std::string reason = std::strerror(request.error);
      failure_ = absl::UnavailableError(Message(path_, ": cannot be read: ", reason));
      got = 0;
      break;
    }
    got += request.done;
    if (request.done < kPart) break;
  }
  input_.resize(got);
  file_position_ += static_cast<int64_t>(got);
  return got > 0;
}

}  // namespace l3c::runtime
