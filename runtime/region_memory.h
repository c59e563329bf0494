// The memory of a control unit's regions, with their rights: what the unit may not write lies in
// pages that nobody can write, so that a store past a region, or to a read-only one, is a fault of
// the hardware and not a wrong run. Queues have no words here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "layers/l0/control.h"
#include "layers/l0/control_interpreter.h"

namespace l3c::runtime {

class RegionMemory {
 public:
  using Words = std::map<std::string, std::vector<int64_t>>;

  // `given` replaces the initial words of read-write regions. `signals` stands for the host's
  // region; it must outlive this. FailedPrecondition when a given region has another size.
  static absl::StatusOr<RegionMemory> Make(const l0::ControlUnit& unit, const Words& given,
                                           std::atomic<int64_t>& signals);

  RegionMemory(RegionMemory&& other) noexcept;
  RegionMemory& operator=(RegionMemory&&) = delete;
  ~RegionMemory();

  std::vector<l0::RegionBytes>& bytes() { return bytes_; }  // by RegionId
  // The read-write regions as they stand; while the unit runs, too.
  Words Snapshot() const;

 private:
  explicit RegionMemory(const l0::ControlUnit& unit) : unit_(&unit) {}

  const l0::ControlUnit* unit_;
  std::byte* base_ = nullptr;  // pages of read-only words, then pages of read-write ones
  size_t size_ = 0;
  std::vector<l0::RegionBytes> bytes_;
};

}  // namespace l3c::runtime
