// How a kind of file becomes an array of samples. A format is one file with one entry
// (format_npy.cc, say) and its line in the table of array_format.cc; nothing else knows its name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "layers/tensor/dtype.h"
#include "runtime/array_file.h"
#include "runtime/byte_stream.h"

namespace l3c::runtime {

// What the caller knows: files may say less than they need. `column`: of a table with titles, the
// title of the one to read; "" for all.
struct Wanted {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape sample;
  std::string column;
};

struct ArrayFormat {
  std::string_view name;  // in dataset.json, and the extension of a file
  // What the header says; null where samples are not found without reading all of them.
  absl::StatusOr<ArrayLayout> (*layout)(ByteStream& stream, const Wanted& wanted) = nullptr;
  // The whole array; null where it is the elements that the layout describes.
  absl::StatusOr<StoredArray> (*read)(ByteStream& stream, const Wanted& wanted) = nullptr;
  bool columns = false;  // takes `column`
};

std::span<const ArrayFormat> ArrayFormats();                // idx, npy, csv, raw
const ArrayFormat* FindArrayFormat(std::string_view name);  // or null

extern const ArrayFormat kIdxFormat;
extern const ArrayFormat kNpyFormat;
extern const ArrayFormat kCsvFormat;
extern const ArrayFormat kRawFormat;

absl::StatusOr<StoredArray> ReadArray(const std::string& path, const ArrayFormat& format,
                                      const Wanted& wanted, FileReader& reader);

}  // namespace l3c::runtime
