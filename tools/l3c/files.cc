#include "tools/l3c/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <system_error>

namespace l3c::tools {

bool EnvironmentError(const std::string& message, const std::string& fix) {
  std::cerr << "error[environment]: " << message << "\n";
  if (!fix.empty()) std::cerr << "fix: " << fix << "\n";
  return false;
}

bool WriteFile(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path aside = path;
  aside += ".part";
  {
    std::ofstream out(aside, std::ios::binary | std::ios::trunc);
    out << text << std::flush;
    if (!out) {
      const std::string why = std::strerror(errno);
      std::error_code ignored;
      std::filesystem::remove(aside, ignored);
      return EnvironmentError("cannot write '" + path.string() + "': " + why);
    }
  }
  std::error_code error;
  std::filesystem::rename(aside, path, error);
  if (error) {
    return EnvironmentError("cannot write '" + path.string() + "': " + error.message());
  }
  return true;
}

}  // namespace l3c::tools
