#include "tools/l3c/option_values.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "layers/support/diagnostics.h"
#include "layers/support/units.h"
#include "tools/l3c/files.h"

namespace l3c::tools {

bool SplitAssignments(const std::vector<std::string>& pairs, const char* option, const char* form,
                      std::map<std::string, std::string>& out) {
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size()) {
      std::cerr << "error: " << option << " takes " << form << ", not '" << pair << "'\n";
      return false;
    }
    const auto [it, fresh] = out.emplace(pair.substr(0, equals), pair.substr(equals + 1));
    if (!fresh && it->second != pair.substr(equals + 1)) {
      std::cerr << "error: " << option << " gives '" << it->first << "' twice\n";
      return false;
    }
  }
  return true;
}

CLI::Validator Path() {
  return CLI::Validator(
      [](const std::string& text) {
        return text.empty() ? std::string("takes a path, not ''") : std::string();
      },
      "PATH");
}

bool KnowsData(const std::map<std::string, std::string>& given,
               const std::vector<std::string>& declared) {
  for (const auto& [name, folder] : given) {
    if (std::find(declared.begin(), declared.end(), name) != declared.end()) continue;
    const std::string closest = support::ClosestMatch(name, declared);
    std::string names;
    for (const std::string& known : declared) names += (names.empty() ? "'" : ", '") + known + "'";
    return EnvironmentError(
        "--data " + name + "=" + folder + ": the program has no data '" + name + "'",
        !closest.empty() ? "did you mean '" + closest + "'?"
        : names.empty()  ? "it declares none"
                         : "it declares " + names);
  }
  return true;
}

CLI::Validator Whole(uint64_t from, uint64_t to) {
  return CLI::Validator(
      [=](const std::string& text) {
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && number >= from && number <= to) return std::string();
        return "takes a whole number from " + std::to_string(from) + " to " + std::to_string(to) +
               ", not '" + text + "'";
      },
      "N");
}

bool WantsColor(const std::string& when) {
  if (when == "always") return true;
  if (when == "never" || std::getenv("NO_COLOR") != nullptr) return false;
  return isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

void AddLengthOptions(CLI::App& command, RunValues& values) {
  command
      .add_option("--seed", values.seed,
                  "Of initial values and shuffles (default: the file's, or 0)")
      ->check(Whole(0, std::numeric_limits<int64_t>::max()));
  command.add_option("--epochs", values.epochs, "Train this many epochs in all")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command.add_option("--steps", values.steps, "Train this many steps in all")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
}

void AddExecutionOptions(CLI::App& command, int& threads, std::string& io,
                         std::string& data_memory) {
  command
      .add_option("--threads", threads,
                  "Worker threads (default: all cores); never changes a result")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--io", io,
                  "How files are read: uring, portable, or auto: uring where it is granted")
      ->check(CLI::IsMember({"auto", "uring", "portable"}))
      ->capture_default_str();
  command.add_option("--data-memory", data_memory,
                     "BYTES (2GB) that a split of the data may take in memory; what takes more "
                     "is read from the disk by the batch (default: a quarter of what is free)");
}

void AddTimelineOption(CLI::App& command, std::string& file) {
  command
      .add_option("--timeline", file,
                  "Write what each stream did when to this file, as a Chrome trace")
      ->check(Path());
}

bool ParseDataMemory(const std::string& text, std::optional<int64_t>& bytes) {
  std::string error;
  bytes = support::ParseBytes(text, &error);
  if (!bytes) std::cerr << "error: --data-memory " << text << ": " << error << "\n";
  return bytes.has_value();
}

}  // namespace l3c::tools
