// Files that the command line reads and writes. Errors are printed as error[environment], and as
// JSON where a command was asked for that.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace l3c::tools {

// Written beside the target, then renamed over it: a reader never sees half a file. A link or a
// device is written through.
bool WriteFile(const std::filesystem::path& path, std::string_view text, bool executable = false);

// Whether WriteFile could write there, found out before the work of which it is the result; prints
// why not.
bool CanWriteFile(const std::filesystem::path& path);
// The same of a folder that is made where it is not there.
bool CanMakeFolder(const std::filesystem::path& folder);

// The whole file. Nothing, and an error printed, where it cannot be read or is larger than
// `max_bytes`.
std::optional<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes);

// Prints "error[environment]: message" and, when there is one, the way out; returns false.
bool EnvironmentError(const std::string& message, const std::string& fix = "");

}  // namespace l3c::tools
