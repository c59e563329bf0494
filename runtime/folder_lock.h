// One run at a time in an output folder: two would remove and replace each other's checkpoints.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace l3c::runtime {

class FolderLock {
 public:
  // Makes the folder if need be and locks the file `.lock` in it, until the object goes or the
  // process ends in whatever way. FailedPrecondition when another run holds it. On a file system
  // that knows no locks, nothing is locked.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);

  FolderLock(FolderLock&& other);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace l3c::runtime
