// How many rows of each split a folder of data holds, for loop bounds that a plan has before a run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "layers/l0/plan.h"
#include "layers/l1/ir.h"
#include "layers/l3/ir.h"

namespace l3c::tools {

// Samples of a split when the data are made up (--synthetic), or when only a plan is asked for and
// the files are not here.
inline constexpr int64_t kAssumedTrainRows = 50'000;
inline constexpr int64_t kAssumedTestRows = 10'000;

// The fields that a folder is looked through for: one sample of each.
l0::DataSource SourceOf(const l3::Data& data);
l0::DataSource SourceOf(const l1::BoundData& data);

// Told from the smallest field alone; the run checks all of them. A split but `train` need not be
// there; what there is of it must be whole. `window`: rows that make a sample, 0 for one.
absl::Status CountRows(const l0::DataSource& source, const std::string& folder, int64_t window,
                       std::span<const std::string> splits, std::map<std::string, int64_t>& rows);

// The same of all fields and every element, as a run reads them.
absl::Status ReadRows(const l0::DataSource& source, const std::string& folder, int64_t window,
                      std::span<const std::string> splits, std::map<std::string, int64_t>& rows);

// Where stages that a phase draws from do not say in an L1 text how many rows their split has:
// fills in what there is in the folders that `folder_of(data, path)` gives. What is not there stays
// unsaid; a phase counted in steps then has one epoch.
absl::Status CountRowsOfStages(
    l1::Program& program, bool synthetic,
    const std::function<std::string(const std::string& name, const std::string& path)>& folder_of);

}  // namespace l3c::tools
