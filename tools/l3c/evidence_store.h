// Where the evidence of this machine is kept, and which of it plans use.
//
//   $XDG_DATA_HOME/l3c/evidence/FINGERPRINT/3.json     revision 3, never changed
//   $XDG_DATA_HOME/l3c/evidence/FINGERPRINT/current    the number of the revision that plans use
//
// (~/.local/share without the variable.) The first calibration is used from then on; a later one
// when it is asked for, by `--evidence N` once or `l3c calibrate --use N` for good.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost/evidence.h"

namespace l3c::tools {

// This machine, as evidence names it: the cores that this process may use, the caches of the first.
cost::EvidenceTarget ThisTarget();

class EvidenceStore {
 public:
  // Nothing where no variable says where it would be.
  static std::optional<EvidenceStore> Open();

  const std::filesystem::path& folder() const { return folder_; }  // of this machine
  std::optional<int64_t> Current() const;
  int64_t Newest() const;  // 0: none
  // Writes the next revision, and makes it the current one where there is none. Nothing after
  // printing why it cannot be written.
  std::optional<std::filesystem::path> Add(cost::Evidence& evidence);
  // False after printing why.
  bool Use(int64_t revision);
  absl::StatusOr<cost::Evidence> Read(int64_t revision) const;
  std::filesystem::path PathOf(int64_t revision) const;

 private:
  explicit EvidenceStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  bool Write(const std::filesystem::path& path, const std::string& text) const;

  std::filesystem::path folder_;
};

// The evidence that `wanted` of --evidence names: "" the current one, "none", a revision's number
// or a file. What is asked for and cannot be had ends with false after an error; a current one that
// is refused gives a warning, and nothing.
struct ChosenEvidence {
  std::optional<cost::Evidence> evidence;
  std::string said;  // one line for people: what costs rest on
};
bool ChooseEvidence(const std::string& wanted, ChosenEvidence& chosen);

}  // namespace l3c::tools
