#include "runtime/row_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "runtime/message.h"

namespace l3c::runtime {
namespace {

absl::Status Unreadable(const std::string& path, int error) {
  const std::string reason = std::strerror(error);
  return absl::UnavailableError(Message(path, ": cannot be read: ", reason));
}

class FileRows : public RowSource {
 public:
  FileRows(std::string path, RegularFile file, const ArrayLayout& layout, FileReader& reader)
      : path_(std::move(path)), file_(std::move(file)), layout_(layout), reader_(reader) {
    row_bytes_ = StoredSize(layout.type);
    for (size_t axis = 1; axis < layout.extents.size(); ++axis) {
      row_bytes_ *= static_cast<size_t>(layout.extents[axis]);
    }
  }

  absl::Status Read(std::span<const int64_t> rows, std::span<std::byte> out) override {
    std::vector<ReadRequest> requests;
    for (size_t i = 0; i < rows.size(); ++i) {
      ReadRequest request;
      request.fd = file_.fd();
      request.offset = layout_.offset + rows[i] * static_cast<int64_t>(row_bytes_);
      request.to = out.subspan(i * row_bytes_, row_bytes_);
      // Rows that follow one another are one read.
      if (!requests.empty() && rows[i] == rows[i - 1] + 1) {
        ReadRequest& last = requests.back();
        last.to = {last.to.data(), last.to.size() + row_bytes_};
      } else {
        requests.push_back(request);
      }
    }
    reader_.Read(requests);
    for (const ReadRequest& request : requests) {
      if (request.error != 0) return Unreadable(path_, request.error);
      if (request.done < request.to.size()) {
        const int64_t at = request.offset + static_cast<int64_t>(request.done) - layout_.offset;
        return absl::DataLossError(Message(path_, ": has become shorter since the run began: row ",
                                           at / static_cast<int64_t>(row_bytes_), " is gone"));
      }
    }
    if (layout_.swapped) SwapBytes(out.first(rows.size() * row_bytes_), StoredSize(layout_.type));
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  RegularFile file_;
  const ArrayLayout layout_;
  FileReader& reader_;
  size_t row_bytes_ = 0;
};

constexpr int64_t kMaxImageFile = int64_t{256} << 20;
constexpr size_t kOpenAtOnce = 64;

class ImageRows : public RowSource {
 public:
  ImageRows(std::vector<std::string> paths, const ImageExtents& extents, FileReader& reader)
      : paths_(std::move(paths)), extents_(extents), reader_(reader) {}

  absl::Status Read(std::span<const int64_t> rows, std::span<std::byte> out) override {
    for (size_t first = 0; first < rows.size(); first += kOpenAtOnce) {
      const size_t count = std::min(kOpenAtOnce, rows.size() - first);
      absl::Status status =
          ReadSome(rows.subspan(first, count), out.subspan(first * extents_.bytes()));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadSome(std::span<const int64_t> rows, std::span<std::byte> out) {
    Arena arena;  // the files' bytes
    std::vector<RegularFile> files;
    std::vector<ReadRequest> requests;
    for (int64_t row : rows) {
      const std::string& path = paths_[static_cast<size_t>(row)];
      absl::StatusOr<RegularFile> file = RegularFile::Open(path);
      if (!file.ok()) return file.status();
      struct stat status = {};
      if (fstat(file->fd(), &status) != 0) return Unreadable(path, errno);
      if (status.st_size > kMaxImageFile) {
        return absl::InvalidArgumentError(Message(path, ": larger than ", kMaxImageFile, " bytes"));
      }
      ReadRequest request;
      request.fd = file->fd();
      request.to = arena.Take(static_cast<size_t>(status.st_size));
      requests.push_back(request);
      files.push_back(*std::move(file));
    }
    reader_.Read(requests);
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string& path = paths_[static_cast<size_t>(rows[i])];
      if (requests[i].error != 0) return Unreadable(path, requests[i].error);
      const size_t bytes = extents_.bytes();
      absl::Status status = DecodeImage(path, requests[i].to.first(requests[i].done), extents_,
                                        out.subspan(i * bytes, bytes));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const std::vector<std::string> paths_;
  const ImageExtents extents_;
  FileReader& reader_;
};

}  // namespace

std::unique_ptr<RowSource> MakeFileRows(std::string path, RegularFile file,
                                        const ArrayLayout& layout, FileReader& reader) {
  return std::make_unique<FileRows>(std::move(path), std::move(file), layout, reader);
}

std::unique_ptr<RowSource> MakeImageRows(std::vector<std::string> paths,
                                         const ImageExtents& extents, FileReader& reader) {
  return std::make_unique<ImageRows>(std::move(paths), extents, reader);
}

}  // namespace l3c::runtime
