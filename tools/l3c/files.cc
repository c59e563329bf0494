#include "tools/l3c/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <system_error>

#include "nlohmann/json.hpp"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {

bool EnvironmentError(const std::string& message, const std::string& fix) {
  std::cerr << "error[environment]: " << message << "\n";
  if (!fix.empty()) std::cerr << "fix: " << fix << "\n";
  nlohmann::ordered_json members = {{"kind", "environment"}, {"message", message}};
  if (!fix.empty()) members["fix"] = fix;
  PrintJsonDiagnostic(members);
  return false;
}

bool CanWriteFile(const std::filesystem::path& path) {
  const auto failed = [&path](const std::string& why) {
    return EnvironmentError("cannot write '" + path.string() + "': " + why);
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return failed("it is a folder");
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) {
    // As WriteFile does, but for the end of it.
    std::filesystem::path target = path;
    target += ".part";
    errno = 0;
    if (!std::ofstream(target, std::ios::binary | std::ios::app)) {
      return failed(errno != 0 ? std::strerror(errno) : "it is not a file");
    }
    std::filesystem::remove(target, error);
    return true;
  }
  if (std::filesystem::exists(path, error) && access(path.c_str(), W_OK) != 0) {
    return failed(std::strerror(errno));
  }
  return true;
}

bool CanMakeFolder(const std::filesystem::path& folder) {
  const auto failed = [&folder](const std::string& why) {
    return EnvironmentError("cannot make the folder '" + folder.string() + "': " + why,
                            "choose another folder with -o");
  };
  // Of the part of the path that is there, the last may take what is to come.
  std::filesystem::path there = std::filesystem::absolute(folder).lexically_normal();
  std::error_code error;
  while (!std::filesystem::exists(there, error)) {
    if (error && error != std::errc::no_such_file_or_directory &&
        error != std::errc::not_a_directory) {
      return failed(error.message());
    }
    if (!there.has_relative_path()) return failed("there is no root");
    there = there.parent_path();
  }
  if (!std::filesystem::is_directory(there, error)) {
    return failed("'" + there.string() + "' is a file");
  }
  const std::filesystem::path probe = there / ".l3c-probe";
  std::filesystem::create_directory(probe, error);
  if (error) return failed(error.message());
  std::filesystem::remove(probe, error);
  return true;
}

std::optional<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  const auto failed = [&path](const std::string& why) {
    EnvironmentError("cannot read '" + path.string() + "': " + why);
    return std::nullopt;
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return failed("it is a folder");
  // Opening one waits for a writer that may never come.
  if (std::filesystem::is_fifo(status)) return failed("it is a pipe");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed(errno != 0 ? std::strerror(errno) : "it cannot be opened");
  // By pieces, so that what never ends is refused too.
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(in.gcount()));
    if (text.size() > max_bytes) {
      return failed("it is larger than " + std::to_string(max_bytes) + " bytes");
    }
  }
  if (!in.eof()) return failed("reading stopped");
  return text;
}

bool WriteFile(const std::filesystem::path& path, std::string_view text, bool executable) {
  const auto failed = [&path](const std::string& why) {
    return EnvironmentError("cannot write '" + path.string() + "': " + why);
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  // Devices, pipes and links are written through, not replaced.
  const bool aside = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  std::filesystem::path target = path;
  if (aside) target += ".part";
  errno = 0;
  {
    std::ofstream out(target, std::ios::binary | std::ios::trunc);
    out << text << std::flush;
    if (!out) {
      const std::string why = errno != 0 ? std::strerror(errno) : "it is not a file";
      if (aside) std::filesystem::remove(target, error);
      return failed(why);
    }
  }
  if (!aside) return true;
  if (executable) {
    // For those who may read it.
    using std::filesystem::perms;
    const perms mode = std::filesystem::status(target, error).permissions();
    perms run = perms::owner_exec;
    if ((mode & perms::group_read) != perms::none) run |= perms::group_exec;
    if ((mode & perms::others_read) != perms::none) run |= perms::others_exec;
    std::filesystem::permissions(target, run, std::filesystem::perm_options::add, error);
    if (error) return failed(error.message());
  }
  std::filesystem::rename(target, path, error);
  return !error || failed(error.message());
}

}  // namespace l3c::tools
