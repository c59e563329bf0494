#include "bench/extraction/results.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace l3c::bench {

bool Results::Open(const std::string& path) {
  path_ = path;
  if (path.empty()) return true;
  std::ifstream in(path);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::vector<std::string> fields;
    std::stringstream stream(line);
    for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
    if (fields.size() != 6) {
      std::fprintf(stderr, "%s:%d: not a result\n", path.c_str(), number);
      return false;
    }
    results_[{fields[0], fields[1]}] = {std::strtod(fields[2].c_str(), nullptr),
                                        std::strtod(fields[3].c_str(), nullptr), fields[4] == "1",
                                        std::strtod(fields[5].c_str(), nullptr)};
  }
  return true;
}

const Result* Results::Find(const std::string& extractor, const std::string& file) const {
  const auto at = results_.find({extractor, file});
  return at == results_.end() ? nullptr : &at->second;
}

void Results::Add(const std::string& extractor, const std::string& file, const Result& result) {
  results_[{extractor, file}] = result;
  if (path_.empty()) return;
  std::ofstream out(path_, std::ios::app);
  char numbers[120];
  std::snprintf(numbers, sizeof numbers, "%.17g\t%.17g\t%d\t%.6g", result.cost, result.bound,
                result.proven ? 1 : 0, result.seconds);
  out << extractor << '\t' << file << '\t' << numbers << '\n';
}

}  // namespace l3c::bench
