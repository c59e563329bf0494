// An executable with segments added: how `l3c build` puts code and tables beside a linked runtime,
// where no linker is at hand.
//
//   auto file = ExecutableFile::Parse(bytes);
//   uint64_t address = file->NextAddress();
//   file->AddSegment(".text.l3c", code, /*executable=*/true);
//   std::string out = file->Finish();
//
// What is there stays where it is, in the file and in memory. Added segments are pages of their
// own, mapped by the system's loader like any other and shown by readelf and objdump with their
// names. The program headers, which have no room to grow in, move to a segment of their own;
// file offset and address stay congruent to those of the file's first segment, which is what
// kernels before 5.18 find them by.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace l3c::elf {

class ExecutableFile {
 public:
  // InvalidArgument when it is no executable of x86-64 Linux, or lacks section headers.
  static absl::StatusOr<ExecutableFile> Parse(std::string bytes);

  struct Section {
    uint64_t address = 0;
    uint64_t offset = 0;  // in the file
    uint64_t size = 0;
  };
  std::optional<Section> Find(std::string_view name) const;
  std::string_view bytes() const { return bytes_; }
  // Writes over bytes of the file.
  void Patch(uint64_t offset, std::string_view bytes);

  // The address of the segment that is added next.
  uint64_t NextAddress() const;
  void AddSegment(const std::string& name, std::string_view content, bool executable);

  std::string Finish() &&;

 private:
  struct Added {
    std::string name;
    uint64_t offset = 0;
    uint64_t size = 0;
    bool executable = false;
  };

  ExecutableFile() = default;
  uint64_t NextOffset() const;

  std::string bytes_;
  uint64_t end_ = 0;    // no added byte may lie before this offset
  uint64_t delta_ = 0;  // address minus offset of the first segment, and of all that is added
  std::vector<Added> added_;
};

}  // namespace l3c::elf
