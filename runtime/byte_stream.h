// The bytes of a file in order, decompressed on the way if it is gzip-compressed (told by its first
// two bytes). Errors are statuses whose messages begin with the path.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/file_reader.h"
#include "runtime/regular_file.h"

namespace l3c::runtime {

class ByteStream {
 public:
  // The reader must outlive the stream.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(const std::string& path,
                                                          FileReader& reader);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;

  // Up to `size` bytes; fewer only at the end.
  absl::StatusOr<size_t> Read(std::byte* out, size_t size);
  // All of them, or "truncated: no complete WHAT".
  absl::Status ReadExactly(std::byte* out, size_t size, std::string_view what);
  // Nothing may follow.
  absl::Status ExpectEnd();

  const std::string& path() const { return path_; }
  bool compressed() const { return compressed_; }
  int64_t file_size() const { return file_size_; }   // at rest
  int64_t position() const { return position_; }     // bytes handed out so far
  absl::Status Bad(std::string_view message) const;  // InvalidArgument: path: message

  // The file, for reads at places of their own.
  RegularFile TakeFile() { return std::move(file_); }

 private:
  ByteStream(std::string path, RegularFile file, FileReader& reader);
  // False at the end; after an error too, which `failure_` holds.
  bool Refill();

  std::string path_;
  RegularFile file_;
  FileReader& reader_;
  int64_t file_size_ = 0;
  int64_t file_position_ = 0;
  int64_t position_ = 0;
  std::vector<std::byte> input_;
  size_t used_ = 0;  // of input_
  absl::Status failure_;
  bool compressed_ = false;
  bool inflating_ = false;
  bool at_member_end_ = false;
  z_stream stream_ = {};
};

}  // namespace l3c::runtime
