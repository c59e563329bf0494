// Reads of files, many at a time: through io_uring where the kernel grants it, else by pread.
//
//   auto reader = FileReader::Create(FileReader::Kind::kAuto);      // which one is found out now
//   ReadRequest requests[] = {{fd, 0, first}, {fd, 4096, second}};
//   (*reader)->Read(requests);                                      // all of them are over
//   if (requests[0].error != 0) …                                   // an errno
//
// Containers often forbid io_uring, and kernels may lack it; so nothing may depend on it but speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace l3c::runtime {

struct ReadRequest {
  int fd = -1;
  int64_t offset = 0;
  std::span<std::byte> to;

  size_t done = 0;  // bytes read: fewer than asked for only at the file's end or with an error
  int error = 0;    // errno of the read that failed, or 0
};

class FileReader {
 public:
  enum class Kind : uint8_t { kAuto, kUring, kPortable };

  // kAuto never fails. kUring: Unavailable, with the reason, where there is no io_uring.
  static absl::StatusOr<std::unique_ptr<FileReader>> Create(Kind kind);
  virtual ~FileReader() = default;

  // Returns when every request has been carried out; results are in the requests. From any thread.
  virtual void Read(std::span<ReadRequest> requests) = 0;
  virtual std::string_view name() const = 0;  // "uring", "portable"
};

// "auto", "uring", "portable".
bool ParseFileReaderKind(std::string_view name, FileReader::Kind* kind);

}  // namespace l3c::runtime
