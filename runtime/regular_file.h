// Opening files for reading without being kept waiting.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace l3c::runtime {

// A file open for reading; closes itself.
class RegularFile {
 public:
  // Follows links. What is no regular file is refused and not waited for: a pipe may never be
  // written to, and a device may never end.
  static absl::StatusOr<RegularFile> Open(const std::string& path);

  RegularFile(RegularFile&& other) : fd_(other.Release()) {}
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;
  ~RegularFile();

  int fd() const { return fd_; }
  // The descriptor, which the caller closes from now on.
  int Release();

 private:
  explicit RegularFile(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace l3c::runtime
