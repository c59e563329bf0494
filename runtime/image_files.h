// Where the pictures of a field lie: a folder of them, or a column of paths in a csv file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/file_reader.h"

namespace l3c::runtime {

// Every file below `folder` whose name ends in .png, .jpg or .jpeg (of any case), by path in byte
// order. Hidden files and folders do not count. Follows no links to folders.
absl::StatusOr<std::vector<std::string>> ListImages(const std::string& folder);

// The paths that the column `title` of a csv file gives, relative to the file's own folder.
absl::StatusOr<std::vector<std::string>> ReadPaths(const std::string& csv, const std::string& title,
                                                   FileReader& reader);

// The class of each picture of ListImages(folder): the number of the subfolder of `folder` that it
// lies in, subfolders in byte order. Every picture has to lie in one.
absl::StatusOr<std::vector<int64_t>> ListClasses(const std::string& folder);

}  // namespace l3c::runtime
