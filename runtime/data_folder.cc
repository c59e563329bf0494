#include "runtime/data_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "layers/support/diagnostics.h"
#include "layers/support/printer.h"
#include "runtime/durable_file.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxManifest = size_t{16} << 20;

std::string FormatNames() {
  std::vector<std::string> names;
  for (const ArrayFormat& format : ArrayFormats()) names.emplace_back(format.name);
  return support::Join(names);
}

// "; did you mean 'test'?", or nothing where the word resembles none.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::string closest = support::ClosestMatch(word, known);
  return closest.empty() || closest == word ? "" : Message("; did you mean '", closest, "'?");
}

std::string Quoted(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(Message("'", name, "'"));
  return support::Join(quoted);
}

std::vector<std::string> KeysOf(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// Of two values of one key JSON's readers take either: none is better than the wrong one.
nlohmann::json ParseWithoutRepeats(const std::string& text, std::string& repeated) {
  std::vector<std::set<std::string>> keys;
  const nlohmann::json::parser_callback_t note = [&](int, nlohmann::json::parse_event_t event,
                                                     nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second) {
      if (repeated.empty()) repeated = parsed.get<std::string>();
    }
    return true;
  };
  return nlohmann::json::parse(text, note, /*allow_exceptions=*/false);
}

// Where in a text that is no JSON it stops being any, and why.
std::string JsonFault(const std::string& file, const std::string& text) {
  try {
    static_cast<void>(nlohmann::json::parse(text));
  } catch (const nlohmann::json::parse_error& error) {
    const size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
    const size_t line = static_cast<size_t>(std::count(text.begin(), text.begin() + at, '\n')) + 1;
    const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const size_t column = at - (newline == std::string::npos ? 0 : newline + 1) + 1;
    // The library's own account begins with its name and the place.
    const std::string_view what = error.what();
    const size_t why = what.find("; expected ");
    return Message(file, ":", line, ":", column, ": not JSON",
                   why == std::string_view::npos ? "" : ": ",
                   why == std::string_view::npos ? "" : what.substr(why + 2),
                   at == text.size() ? " before the end" : "");
  }
  return Message(file, ": not JSON");
}

}  // namespace

absl::StatusOr<DataFolder> DataFolder::Open(const l0::DataSource& source, const std::string& path,
                                            const std::string& split) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return absl::NotFoundError(
        Message("data '", source.name, "': there is no folder '", path, "'"));
  }
  DataFolder folder(source, path);
  const std::string file = (fs::path(path) / "dataset.json").string();
  if (fs::exists(file, ignored)) {
    if (absl::Status s = folder.ReadManifest(file, split); !s.ok()) return s;
  }
  return folder;
}

absl::Status DataFolder::ReadManifest(const std::string& file, const std::string& split) {
  const auto bad = [&](std::string_view message) {
    return absl::InvalidArgumentError(Message(file, ": ", message));
  };
  absl::StatusOr<std::string> text = ReadText(file, kMaxManifest);
  if (!text.ok()) return text.status();
  std::string repeated;
  manifest_ = ParseWithoutRepeats(*text, repeated);
  manifest_path_ = file;
  if (manifest_->is_discarded()) return absl::InvalidArgumentError(JsonFault(file, *text));
  if (!repeated.empty()) return bad(Message("'", repeated, "' stands twice in one place"));
  if (!manifest_->is_object()) return bad("an object of splits was expected");
  const std::vector<std::string> known = {"train", "test"};
  for (const auto& [name, fields] : manifest_->items()) {
    const bool is_split =
        name == split || std::find(known.begin(), known.end(), name) != known.end();
    if (!is_split) {
      return bad(Message("'", name, "' is no split: those are 'train' and 'test'",
                         DidYouMean(name, known)));
    }
    if (!fields.is_object()) return bad(Message("split '", name, "' is no object of fields"));
  }
  return CheckEntries();
}

// Also of the splits and fields that are not read: what is wrong there would be missed later.
absl::Status DataFolder::CheckEntries() const {
  for (const auto& [split, fields] : manifest_->items()) {
    for (const auto& [field, entry] : fields.items()) {
      if (const auto file = FromEntry(split, field, entry); !file.ok()) return file.status();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FieldFile> DataFolder::FromEntry(const std::string& split, const std::string& field,
                                                const nlohmann::json& entry) const {
  const auto bad = [&](std::string_view message) {
    return absl::InvalidArgumentError(Message(manifest_path_, ": ", split, ".", field, message));
  };
  if (!entry.is_object()) return bad(" is no object with 'file' and 'format'");
  const std::vector<std::string> known = {"file", "format", "column", "scale"};
  FieldFile file;
  for (const auto& [key, value] : entry.items()) {
    if (key == "file" && value.is_string() && !value.get<std::string>().empty()) {
      file.path = (fs::path(path_) / value.get<std::string>()).string();
    } else if (key == "format" && value.is_string()) {
      const auto name = value.get<std::string>();
      file.format = FindArrayFormat(name);
      if (name == kImages) file.kind = kImages;
      if (name == kClasses) file.kind = kClasses;
      if (file.format == nullptr && file.kind.empty()) {
        return bad(Message(": unknown format '", name, "'; the formats are ", FormatNames(), ", ",
                           kImages, ", ", kClasses));
      }
    } else if (key == "column" && value.is_string() && !value.get<std::string>().empty()) {
      file.column = value.get<std::string>();
    } else if (key == "scale" && value.is_number() && std::isfinite(value.get<double>())) {
      file.scale = value.get<double>();
    } else if (std::find(known.begin(), known.end(), key) == known.end()) {
      return bad(Message(": '", key, "' is unknown; an entry has ", Quoted(known),
                         DidYouMean(key, known)));
    } else {
      return bad(Message(": '", key, "' has a value of the wrong kind"));
    }
  }
  if (file.path.empty() || !entry.contains("format")) return bad(" needs 'file' and 'format'");
  const bool columns = file.format != nullptr ? file.format->columns : file.kind == kImages;
  if (!file.column.empty() && !columns) return bad(": a 'column' of a format that has none");
  return file;
}

absl::StatusOr<FieldFile> DataFolder::FromManifest(const std::string& split,
                                                   const std::string& field) const {
  const auto bad = [&](std::string_view message) {
    return absl::InvalidArgumentError(Message(manifest_path_, ": ", message));
  };
  if (!manifest_->contains(split)) return bad(Message("there is no split '", split, "'"));
  const nlohmann::json& fields = (*manifest_)[split];
  if (!fields.contains(field)) {
    const std::vector<std::string> names = KeysOf(fields);
    return bad(Message("split '", split, "' has no field '", field, "', which data '",
                       source_->name, "' declares; it has ", names.empty() ? "none" : Quoted(names),
                       DidYouMean(field, names)));
  }
  return FromEntry(split, field, fields[field]);
}

absl::StatusOr<FieldFile> DataFolder::ByName(const std::string& split,
                                             const std::string& field) const {
  std::vector<FieldFile> found;
  std::error_code ignored;
  const fs::path folder(path_);
  for (const ArrayFormat& format : ArrayFormats()) {
    for (std::string_view packed : {"", ".gz"}) {
      const fs::path path = folder / Message(split, ".", field, ".", format.name, packed);
      if (!fs::exists(path, ignored)) continue;
      found.emplace_back().format = &format;
      found.back().path = path.string();
    }
  }
  if (const fs::path path = folder / Message(split, ".", field); fs::is_directory(path, ignored)) {
    found.emplace_back().kind = kImages;
    found.back().path = path.string();
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    // Whichever was taken, it could be the wrong one.
    return absl::InvalidArgumentError(Message("both '", found[0].path, "' and '", found[1].path,
                                              "' could be field '", field, "' of split '", split,
                                              "': remove one, or say which in dataset.json"));
  }
  return absl::NotFoundError(Message(
      path_, ": neither dataset.json nor a file ", split, ".", field, ".EXT with EXT one of ",
      FormatNames(), " (or with .gz behind it), nor a folder ", split, ".", field, " of pictures"));
}

absl::StatusOr<bool> DataFolder::Has(const std::string& split) const {
  if (manifest_ && !manifest_->contains(split)) return false;
  size_t found = 0;
  absl::Status missing;
  for (const l0::FieldSource& field : source_->fields) {
    const absl::StatusOr<FieldFile> file = File(split, field.field);
    if (!file.ok() && !absl::IsNotFound(file.status()) && !manifest_) return file.status();
    if (file.ok()) {
      ++found;
    } else if (missing.ok()) {
      missing = file.status();
    }
  }
  if (missing.ok()) return true;
  if (found == 0 && !manifest_) return false;
  return missing;
}

absl::StatusOr<FieldFile> DataFolder::File(const std::string& split,
                                           const std::string& field) const {
  return manifest_ ? FromManifest(split, field) : ByName(split, field);
}

}  // namespace l3c::runtime
