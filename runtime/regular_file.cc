#include "runtime/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/message.h"

namespace l3c::runtime {

absl::StatusOr<RegularFile> RegularFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe would wait for a writer. It means nothing to a regular file.
  RegularFile file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status = {};
  if (file.fd_ < 0 || fstat(file.fd_, &status) != 0) {
    if (errno == ENOENT) return absl::NotFoundError(Message(path, ": no such file"));
    const std::string reason = std::strerror(errno);
    return absl::UnavailableError(Message(path, ": cannot be opened: ", reason));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(Message(path, ": not a regular file but a ",
                                              S_ISDIR(status.st_mode)    ? "folder"
                                              : S_ISFIFO(status.st_mode) ? "pipe"
                                                                         : "device or socket"));
  }
  // To io_uring the flag would mean not to wait for the disk either.
  fcntl(file.fd_, F_SETFL, fcntl(file.fd_, F_GETFL) & ~O_NONBLOCK);
  return file;
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) close(fd_);
}

int RegularFile::Release() { return std::exchange(fd_, -1); }

}  // namespace l3c::runtime
