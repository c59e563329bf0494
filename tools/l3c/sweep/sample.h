// One measurement of one point, and the file in which a sweep keeps them.
//
//   FOLDER/samples.jsonl
//     {"event":"sweep","version":1,"grid":"ablation","build":"…","machine":"…"}
//     {"event":"sample","point":"3f…","repeat":1,"seconds":0.2,"figures":{"optimise_s":0.02,…}}
//     {"event":"sample","point":"90…","repeat":1,"seconds":9.1,"failed":"time: …"}
//
// A line is on the disk before the next measurement begins, so whatever ends the process, finished
// ones stay: a last line without its end is dropped when the file is opened again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace l3c::tools::sweep {

struct Sample {
  std::string point;  // its key
  int64_t repeat = 1;
  double seconds = 0;  // that measuring took
  std::map<std::string, double> figures;
  std::string failed;  // why there are none
};

// Of the first line. Samples of two builds or two machines are not mixed.
struct SweepOrigin {
  std::string grid;
  std::string build;    // l3c's
  std::string machine;  // fingerprint of evidence, cores, processor
};

std::string PrintSample(const Sample& sample);  // with its newline

class SampleLog {
 public:
  // Makes the file, or reads it and drops a torn last line. A line that is no sample, and another
  // origin, are errors that name the file and the line.
  static absl::StatusOr<SampleLog> Open(const std::string& path, const SweepOrigin& origin);
  ~SampleLog();
  SampleLog(SampleLog&& other) noexcept;
  SampleLog& operator=(SampleLog&&) = delete;

  // Written and synced when it returns.
  absl::Status Append(const Sample& sample);

  const std::vector<Sample>& samples() const { return samples_; }

 private:
  SampleLog() = default;
  absl::Status Write(const std::string& line);

  std::string path_;
  int file_ = -1;
  std::vector<Sample> samples_;
};

}  // namespace l3c::tools::sweep
