#include "runtime/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/message.h"
#include "runtime/regular_file.h"
#include "runtime/sha256.h"

namespace l3c::runtime {
namespace {

// A descriptor that closes itself.
class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

absl::Status Failed(const std::string& path, std::string_view what) {
  const std::string reason = std::strerror(errno);
  return absl::UnavailableError(Message(path, ": cannot ", what, ": ", reason));
}

}  // namespace

absl::StatusOr<std::string> WriteDurably(const std::string& path, std::span<const Bytes> parts) {
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return Failed(path, "create the file");
  Sha256 sha;
  for (Bytes part : parts) {
    sha.Add(part);
    while (!part.empty()) {
      const ssize_t written = write(file.fd(), part.data(), part.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Failed(path, "write");
      part = part.subspan(static_cast<size_t>(written));
    }
  }
  if (fsync(file.fd()) != 0) return Failed(path, "sync");
  return sha.Finish();
}

absl::Status SyncFolder(const std::string& path) {
  File folder(path, O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return Failed(path, "open the folder");
  if (fsync(folder.fd()) != 0) return Failed(path, "sync");
  return absl::OkStatus();
}

absl::StatusOr<std::string> HashFile(const std::string& path) {
  absl::StatusOr<RegularFile> file = RegularFile::Open(path);
  if (!file.ok()) return file.status();
  Sha256 sha;
  std::vector<std::byte> chunk(size_t{1} << 20);
  for (;;) {
    const ssize_t got = read(file->fd(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(path, "read");
    if (got == 0) return sha.Finish();
    sha.Add(Bytes(chunk).first(static_cast<size_t>(got)));
  }
}

absl::StatusOr<std::string> ReadText(const std::string& path, size_t limit) {
  absl::StatusOr<RegularFile> file = RegularFile::Open(path);
  if (!file.ok()) return file.status();
  std::string text;
  char chunk[1 << 14];
  for (;;) {
    const ssize_t got = read(file->fd(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(path, "read");
    if (got == 0) return text;
    text.append(chunk, static_cast<size_t>(got));
    if (text.size() > limit) {
      return absl::InvalidArgumentError(Message(path, ": more than ", limit, " bytes"));
    }
  }
}

}  // namespace l3c::runtime
