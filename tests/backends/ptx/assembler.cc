#include "tests/backends/ptx/assembler.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace l3c::testing {
namespace {

namespace fs = std::filesystem;

int NumberBefore(const std::string& text, std::string_view what) {
  const size_t end = text.find(what);
  if (end == std::string::npos) return 0;
  size_t begin = text.find_last_not_of("0123456789", end - 1);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return std::atoi(text.substr(begin, end - begin).c_str());
}

}  // namespace

std::optional<std::string> FindPtxas() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) folders.push_back(fs::path(home) / "bin");
  }
  if (const char* path = std::getenv("PATH")) {
    std::istringstream list(path);
    for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  }
  for (const fs::path& folder : folders) {
    const fs::path ptxas = folder / "ptxas";
    if (access(ptxas.c_str(), X_OK) == 0) return ptxas.string();
  }
  return std::nullopt;
}

Assembled Assemble(const std::string& ptxas, const std::string& text, std::string_view arch) {
  std::string folder = (fs::temp_directory_path() / "l3c_ptx_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {"cannot make a folder"};
  const fs::path source = fs::path(folder) / "kernel.ptx";
  const fs::path report = fs::path(folder) / "report";
  std::ofstream(source) << text;
  const std::string command = "'" + ptxas + "' -v -arch " + std::string(arch) + " -o '" +
                              (fs::path(folder) / "kernel.cubin").string() + "' '" +
                              source.string() + "' > '" + report.string() + "' 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream said;
  said << std::ifstream(report).rdbuf();
  fs::remove_all(folder);
  Assembled assembled;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    assembled.errors = said.str().empty() ? "ptxas failed" : said.str();
    return assembled;
  }
  assembled.registers = NumberBefore(said.str(), " registers");
  assembled.spilled = NumberBefore(said.str(), " bytes spill stores") +
                      NumberBefore(said.str(), " bytes spill loads");
  return assembled;
}

}  // namespace l3c::testing
