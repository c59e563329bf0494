#include "runtime/uring_reader.h"

#ifdef L3C_HAS_URING
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#endif

#include "absl/status/status.h"
#include "runtime/message.h"

namespace l3c::runtime {

#ifdef L3C_HAS_URING
namespace {

constexpr unsigned kDepth = 64;               // reads in flight
constexpr size_t kMaxPart = size_t{1} << 30;  // of one read

class UringReader : public FileReader {
 public:
  ~UringReader() override {
    if (open_) io_uring_queue_exit(&ring_);
  }

  absl::Status Open() {
    const int result = io_uring_queue_init(kDepth, &ring_, 0);
    if (result < 0) {
      return absl::UnavailableError(
          Message("io_uring is not to be had here: ", std::strerror(-result)));
    }
    open_ = true;
    // Rings without plain reads (Linux 5.1 to 5.5) are not worth a second way of asking.
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    const bool reads = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ);
    if (probe != nullptr) io_uring_free_probe(probe);
    if (!reads) return absl::UnavailableError("this kernel's io_uring has no plain reads");
    return absl::OkStatus();
  }

  void Read(std::span<ReadRequest> requests) override {
    std::lock_guard lock(mutex_);
    size_t next = 0, in_flight = 0;
    while (next < requests.size() || in_flight > 0) {
      while (next < requests.size() && in_flight < kDepth) {
        if (!requests[next].to.empty()) {
          Start(requests[next]);
          ++in_flight;
        }
        ++next;
      }
      if (in_flight == 0) continue;
      io_uring_cqe* entry = nullptr;
      const int waited = io_uring_submit_and_wait(&ring_, 1);
      if (waited < 0 && waited != -EINTR && waited != -EAGAIN && waited != -EBUSY) {
        // The ring itself is broken: nothing that was asked for can be counted on.
        for (ReadRequest& request : requests) request.error = -waited;
        return;
      }
      while (io_uring_peek_cqe(&ring_, &entry) == 0) {
        auto& request = *static_cast<ReadRequest*>(io_uring_cqe_get_data(entry));
        const int result = entry->res;
        io_uring_cqe_seen(&ring_, entry);
        --in_flight;
        if (result > 0) request.done += static_cast<size_t>(result);
        const bool again = result == -EINTR || result == -EAGAIN ||
                           (result > 0 && request.done < request.to.size());
        if (again) {
          Start(request);
          ++in_flight;
        } else if (result < 0) {
          request.error = -result;
        }
      }
    }
  }

  std::string_view name() const override { return "uring"; }

 private:
  // There is room: no more reads are in flight than the ring has entries.
  void Start(ReadRequest& request) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
    }
    const size_t left = std::min(request.to.size() - request.done, kMaxPart);
    io_uring_prep_read(entry, request.fd, request.to.data() + request.done,
                       static_cast<unsigned>(left),
                       static_cast<uint64_t>(request.offset) + request.done);
    io_uring_sqe_set_data(entry, &request);
  }

  std::mutex mutex_;
  io_uring ring_ = {};
  bool open_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileReader>> MakeUringReader() {
  auto reader = std::make_unique<UringReader>();
  if (absl::Status status = reader->Open(); !status.ok()) return status;
  return reader;
}
#else
absl::StatusOr<std::unique_ptr<FileReader>> MakeUringReader() {
  return absl::UnavailableError("this build was made without liburing");
}
#endif

}  // namespace l3c::runtime
