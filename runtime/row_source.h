// Rows of a field that stay on the disk and are read batch by batch, for data sets larger than the
// memory they may take.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/arena.h"
#include "runtime/array_file.h"
#include "runtime/file_reader.h"
#include "runtime/image_codec.h"
#include "runtime/regular_file.h"

namespace l3c::runtime {

class RowSource {
 public:
  virtual ~RowSource() = default;
  // Rows by their numbers, one after the other, into `out`. From any thread. An error names the
  // file, and the row where it is one row's fault.
  virtual absl::Status Read(std::span<const int64_t> rows, std::span<std::byte> out) = 0;
};

// An uncompressed array. The reader must outlive the source.
std::unique_ptr<RowSource> MakeFileRows(std::string path, RegularFile file,
                                        const ArrayLayout& layout, FileReader& reader);

// A picture a row.
std::unique_ptr<RowSource> MakeImageRows(std::vector<std::string> paths,
                                         const ImageExtents& extents, FileReader& reader);

}  // namespace l3c::runtime
