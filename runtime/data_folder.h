// Where a data folder keeps the fields of its splits.
//
// `dataset.json` maps split → field → { file, format, scale?, column? }; without it the files are
// SPLIT.FIELD.EXT with EXT one of the formats (array_format.h), and .gz or not behind it, or a
// folder SPLIT.FIELD of pictures. What stands in dataset.json and means nothing is an error with
// the word that it resembles, and so is a split that has some of the fields and not all of them:
// neither is passed over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "nlohmann/json.hpp"
#include "runtime/array_format.h"

namespace l3c::runtime {

// What a file is besides an array: pictures, or the classes that their subfolders are.
inline constexpr std::string_view kImages = "images";
inline constexpr std::string_view kClasses = "classes";

struct FieldFile {
  std::string path;
  const ArrayFormat* format = nullptr;  // null: `kind` says
  std::string_view kind;
  std::string column;
  double scale = 1;
};

class DataFolder {
 public:
  // Reads and checks dataset.json, if there is one. `split`: one that the program reads, beside
  // `train` and `test`. NotFound where there is no folder. `source` must outlive the folder.
  static absl::StatusOr<DataFolder> Open(const l0::DataSource& source, const std::string& path,
                                         const std::string& split);

  // Whether there is anything of the split; an error where there is, but not of all fields.
  absl::StatusOr<bool> Has(const std::string& split) const;
  // An error where there is none.
  absl::StatusOr<FieldFile> File(const std::string& split, const std::string& field) const;

 private:
  DataFolder(const l0::DataSource& source, const std::string& path)
      : source_(&source), path_(path) {}

  absl::Status ReadManifest(const std::string& file, const std::string& split);
  absl::Status CheckEntries() const;
  absl::StatusOr<FieldFile> FromEntry(const std::string& split, const std::string& field,
                                      const nlohmann::json& entry) const;
  absl::StatusOr<FieldFile> FromManifest(const std::string& split, const std::string& field) const;
  absl::StatusOr<FieldFile> ByName(const std::string& split, const std::string& field) const;

  const l0::DataSource* source_;
  std::string path_;
  std::string manifest_path_;
  std::optional<nlohmann::json> manifest_;
};

}  // namespace l3c::runtime
