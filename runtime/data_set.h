// One split of a data source, decoded into memory as it is stored (MNIST's images stay bytes).
//
// The folder's `dataset.json` maps split → field → { file, format, scale? }; without it the files
// are SPLIT.FIELD.EXT with EXT one of idx, npy, csv, raw, and .gz or not behind it. Everything is
// checked against the plan's declaration before the run: element types, extents, labels within
// their classes, as many samples in each field. Messages name file, sample and value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "runtime/array_file.h"

namespace l3c::runtime {

struct FieldData {
  Stored type = Stored::kU8;
  double scale = 1;              // stored value × scale = the field's value
  int64_t elements = 1;          // of one sample
  std::vector<std::byte> bytes;  // samples one after the other
};

struct SplitData {
  int64_t samples = 0;            // that an epoch has
  int64_t stored = 0;             // that are in memory: sample i is stored sample i mod stored
  std::vector<FieldData> fields;  // as in the source's declaration
};

absl::StatusOr<SplitData> ReadSplit(const l0::DataSource& source, const std::string& folder,
                                    const std::string& split);

// Random samples of the declared domains: labels uniform over their classes, reals uniform in
// [0, 1), integers uniform over 0 … 255 (or the type's range, if smaller). The same bytes every
// time.
SplitData SyntheticSplit(const l0::DataSource& source, const std::string& split, int64_t samples);

}  // namespace l3c::runtime
