#include "runtime/file_reader.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/uring_reader.h"

namespace l3c::runtime {
namespace {

class PortableReader : public FileReader {
 public:
  void Read(std::span<ReadRequest> requests) override {
    for (ReadRequest& request : requests) {
      while (request.done < request.to.size()) {
        const ssize_t got =
            pread(request.fd, request.to.data() + request.done, request.to.size() - request.done,
                  request.offset + static_cast<int64_t>(request.done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) request.error = errno;
        if (got <= 0) break;
        request.done += static_cast<size_t>(got);
      }
    }
  }
  std::string_view name() const override { return "portable"; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileReader>> FileReader::Create(Kind kind) {
  if (kind != Kind::kPortable) {
    absl::StatusOr<std::unique_ptr<FileReader>> ring = MakeUringReader();
    if (ring.ok() || kind == Kind::kUring) return ring;
  }
  return std::make_unique<PortableReader>();
}

bool ParseFileReaderKind(std::string_view name, FileReader::Kind* kind) {
  constexpr std::pair<std::string_view, FileReader::Kind> kKinds[] = {
      {"auto", FileReader::Kind::kAuto},
      {"uring", FileReader::Kind::kUring},
      {"portable", FileReader::Kind::kPortable}};
  for (const auto& [known, value] : kKinds) {
    if (known != name) continue;
    *kind = value;
    return true;
  }
  return false;
}

}  // namespace l3c::runtime
