// What tuning a program has measured so far: kept in the cache after every turn, so that it may be
// interrupted and go on, and so that the same question is not measured twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::tools::tune {

// A plan other than the predicted best: choices that are forced, or the plan of another search.
struct Trial {
  std::map<std::string, std::string> forced;  // decision id → label
  bool greedy = false;                        // the whole plan of --search greedy
  double predicted = 0;                       // seconds of a step
  std::vector<double>
      ratios;  // of the turns: its step over the predicted best's, measured together
  // Where it may not be taken: it has no plan, the same plan as another, or fails its check.
  std::string refused;
  bool checked = false;  // against the interpreter, and its losses against the predicted best's

  std::string Label() const;  // the choices in one line
};

struct Record {
  double spent_seconds = 0;  // of all times together
  std::vector<double> base;  // seconds of a step of the predicted best, one a turn
  std::vector<Trial> trials;
  bool done = false;  // nothing is left to measure, whatever the time
};

std::string WriteRecord(const Record& record);
std::optional<Record> ReadRecord(std::string_view text);

}  // namespace l3c::tools::tune
