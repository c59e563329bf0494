// What each extractor made of each file, kept in a text file so that a long run can be taken up
// again and the tables printed from it.
//
// A line a result, tab-separated: extractor, file, cost, lower bound, proven (0 or 1), seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace l3c::bench {

struct Result {
  double cost = 0;  // DAG cost; infinite where nothing was found
  double bound = 0;
  bool proven = false;
  double seconds = 0;
};

class Results {
 public:
  // Reads the file if there is one; an empty path keeps everything in memory only. False, with a
  // message on standard error, for lines that are no results.
  bool Open(const std::string& path);
  const Result* Find(const std::string& extractor, const std::string& file) const;
  // Appends to the file at once.
  void Add(const std::string& extractor, const std::string& file, const Result& result);

 private:
  std::string path_;
  std::map<std::pair<std::string, std::string>, Result> results_;
};

}  // namespace l3c::bench
