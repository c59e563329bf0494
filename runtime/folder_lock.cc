#include "runtime/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/message.h"

namespace l3c::runtime {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        Message(folder, ": cannot make the output folder: ", error.message()));
  }
  const std::string path = (std::filesystem::path(folder) / ".lock").string();
  FolderLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) {
    const std::string reason = std::strerror(errno);
    return absl::UnavailableError(Message(path, ": cannot create the file: ", reason));
  }
  while (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) break;
    return absl::FailedPreconditionError(
        Message(folder, ": another run is writing to this folder (it holds ", path,
                "); choose another output folder or wait for its end"));
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace l3c::runtime
