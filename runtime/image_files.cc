#include "runtime/image_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <system_error>

#include "runtime/byte_stream.h"
#include "runtime/cells.h"
#include "runtime/line_reader.h"
#include "runtime/message.h"
#include "runtime/table_column.h"

namespace l3c::runtime {
namespace {

namespace fs = std::filesystem;

bool IsPicture(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListImages(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.')) {
      entries.disable_recursion_pending();
    } else if (IsPicture(entries->path()) && !entries->is_directory(ignored)) {
      paths.push_back(entries->path().string());
    }
  }
  if (error) {
    return absl::UnavailableError(Message(folder, ": cannot be listed: ", error.message()));
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        Message(folder, ": there is no picture (.png, .jpg, .jpeg) in this folder"));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<std::vector<std::string>> ReadPaths(const std::string& csv, const std::string& title,
                                                   FileReader& reader) {
  absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::Open(csv, reader);
  if (!stream.ok()) return stream.status();
  const fs::path folder = fs::path(csv).parent_path();
  std::vector<std::string> paths;
  bool titles = true;
  size_t index = 0;
  absl::Status status = ForEachLine(**stream, [&](int64_t number, std::string_view line) {
    line = StripBlanks(line);
    if (line.empty()) return absl::OkStatus();
    if (titles) {
      titles = false;
      return FindColumn(**stream, line, title, &index);
    }
    std::vector<std::string_view> cells = SplitCells(line, kCellSeparators);
    if (absl::Status s = KeepColumn(**stream, number, index, cells); !s.ok()) return s;
    if (cells[0].empty()) return (*stream)->Bad(Message("line ", number, " names no picture"));
    paths.push_back((folder / cells[0]).string());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (paths.empty()) return (*stream)->Bad("holds no sample");
  return paths;
}

absl::StatusOr<std::vector<int64_t>> ListClasses(const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> paths = ListImages(folder);
  if (!paths.ok()) return paths.status();
  std::vector<std::string> names;  // of each picture's subfolder
  std::map<std::string, int64_t> classes;
  for (const std::string& path : *paths) {
    const fs::path below = fs::path(path).lexically_relative(folder);
    if (below.begin() == --below.end()) {
      return absl::InvalidArgumentError(
          Message(path, ": lies in no subfolder, whose number would be its class"));
    }
    names.push_back(below.begin()->string());
    classes.emplace(names.back(), 0);
  }
  int64_t count = 0;
  for (auto& [name, number] : classes) number = count++;
  std::vector<int64_t> labels;
  for (const std::string& name : names) labels.push_back(classes.at(name));
  return labels;
}

}  // namespace l3c::runtime
