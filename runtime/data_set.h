// One split of a data source as it is stored (MNIST's images stay bytes): in memory, or, where a
// field takes more than it may, left on the disk and read batch by batch.
//
// The folder's `dataset.json` maps split → field → { file, format, scale?, column? }; without it
// the files are SPLIT.FIELD.EXT with EXT one of the formats (array_format.h), and .gz or not behind
// it, or a folder SPLIT.FIELD of pictures. Everything is checked against the plan's declaration
// before the run: element types, extents, labels within their classes, as many samples in each
// field; of what stays on the disk, all but the elements themselves. Messages name file, sample and
// value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "runtime/array_file.h"
#include "runtime/file_reader.h"
#include "runtime/row_source.h"

namespace l3c::runtime {

struct FieldData {
  Stored type = Stored::kU8;
  double scale = 1;                 // stored value × scale = the field's value
  int64_t elements = 1;             // of one sample
  std::vector<std::byte> bytes;     // samples one after the other; empty when `rows` has them
  std::shared_ptr<RowSource> rows;  // null: `bytes` has them
};

struct SplitData {
  int64_t samples = 0;            // that an epoch has
  int64_t stored = 0;             // that are in memory: sample i is stored sample i mod stored
  std::vector<FieldData> fields;  // as in the source's declaration
};

struct DataOptions {
  FileReader* reader = nullptr;  // null: the portable one; else it must outlive the data
  // That the split may take; a field beyond it stays on the disk if its format allows. Nothing: a
  // quarter of what the machine has available.
  std::optional<int64_t> resident_bytes;
};

absl::StatusOr<SplitData> ReadSplit(const l0::DataSource& source, const std::string& folder,
                                    const std::string& split, const DataOptions& options = {});

// Random samples of the declared domains: labels uniform over their classes, reals uniform in
// [0, 1), integers uniform over 0 … 255 (or the type's range, if smaller). The same bytes every
// time.
SplitData SyntheticSplit(const l0::DataSource& source, const std::string& split, int64_t samples);

}  // namespace l3c::runtime
