// Values of options that several command lines share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace l3c::tools {

// "NAME=VALUE" by name. False after printing which one is not of that form, or given twice.
bool SplitAssignments(const std::vector<std::string>& pairs, const char* option, const char* form,
                      std::map<std::string, std::string>& out);

// A whole number in these bounds. The library's own conversions take -1 for a large count.
// A path of at least one character.
CLI::Validator Path();

// Whether every NAME of --data is one of those that the program declares; else an error is printed.
bool KnowsData(const std::map<std::string, std::string>& given,
               const std::vector<std::string>& declared);

CLI::Validator Whole(uint64_t from, uint64_t to);

// `when`: auto (on a terminal, unless NO_COLOR is set), always, never.
bool WantsColor(const std::string& when);

// The options that say how long to train, on what, and where to: of `l3c run`, and of the programs
// that `l3c build` makes.
struct RunValues {
  std::vector<std::string> data;
  uint64_t seed = 0;
  int64_t epochs = 0;
  int64_t steps = 0;
};
void AddLengthOptions(CLI::App& command, RunValues& values);
void AddExecutionOptions(CLI::App& command, int& threads, std::string& io,
                         std::string& data_memory);
void AddTimelineOption(CLI::App& command, std::string& file);
// False after printing why `text` is no number of bytes.
bool ParseDataMemory(const std::string& text, std::optional<int64_t>& bytes);

}  // namespace l3c::tools
