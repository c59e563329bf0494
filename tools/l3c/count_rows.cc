#include "tools/l3c/count_rows.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "layers/l3/domain.h"
#include "runtime/batches.h"
#include "runtime/data_folder.h"
#include "runtime/data_set.h"

namespace l3c::tools {

l0::DataSource SourceOf(const l3::Data& data) {
  l0::DataSource source;
  source.name = data.name;
  for (const l3::Field& field : data.fields) {
    l0::FieldSource& added = source.fields.emplace_back();
    added.field = field.name;
    added.dtype = l3::ExampleDType(field.domain);
    added.shape = l3::ExampleShape(field.domain);
  }
  return source;
}

l0::DataSource SourceOf(const l1::BoundData& data) {
  l0::DataSource source;
  source.name = data.name;
  for (const l1::BoundField& field : data.fields) {
    l0::FieldSource& added = source.fields.emplace_back();
    added.field = field.name;
    added.dtype = field.dtype;
    added.shape = field.shape;
    added.classes = field.classes;
    added.ignored = field.ignored;
  }
  return source;
}

absl::Status CountRows(const l0::DataSource& source, const std::string& folder, int64_t window,
                       std::span<const std::string> splits, std::map<std::string, int64_t>& rows) {
  const auto smallest =
      std::min_element(source.fields.begin(), source.fields.end(),
                       [](const l0::FieldSource& a, const l0::FieldSource& b) {
                         return tensor::NumElements(a.shape) < tensor::NumElements(b.shape);
                       });
  l0::DataSource one;
  one.name = source.name;
  one.path = folder;
  if (smallest != source.fields.end()) {
    l0::FieldSource field = *smallest;
    if (window > 0 && !field.shape.empty() && field.shape[0] == window) {
      field.shape.erase(field.shape.begin());
    }
    one.fields.push_back(std::move(field));
  }
  // Where a header says how many there are, it is taken at its word.
  const runtime::DataOptions counting = {nullptr, 0};
  for (const std::string& split : splits) {
    const absl::StatusOr<runtime::DataFolder> files =
        runtime::DataFolder::Open(source, folder, split);
    if (!files.ok()) return files.status();
    const absl::StatusOr<bool> has = files->Has(split);
    if (!has.ok()) return has.status();
    if (!*has && split != "train") continue;
    const absl::StatusOr<runtime::SplitData> read =
        runtime::ReadSplit(one, folder, split, counting);
    if (!read.ok()) return read.status();
    rows[split] = read->samples;
  }
  return absl::OkStatus();
}

absl::Status ReadRows(const l0::DataSource& source, const std::string& folder, int64_t window,
                      std::span<const std::string> splits, std::map<std::string, int64_t>& rows) {
  l0::Sampler sampler;
  sampler.window = window;
  const l0::DataSource stored = runtime::AsStored(sampler, source);
  for (const std::string& split : splits) {
    const absl::StatusOr<runtime::DataFolder> files =
        runtime::DataFolder::Open(stored, folder, split);
    if (!files.ok()) return files.status();
    const absl::StatusOr<bool> has = files->Has(split);
    if (!has.ok()) return has.status();
    if (!*has && split != "train") continue;
    const absl::StatusOr<runtime::SplitData> read = runtime::ReadSplit(stored, folder, split);
    if (!read.ok()) return read.status();
    rows[split] = read->samples;
  }
  return absl::OkStatus();
}

absl::Status CountRowsOfStages(
    l1::Program& program, bool synthetic,
    const std::function<std::string(const std::string& name, const std::string& path)>& folder_of) {
  std::set<std::string> bounding;  // the stages whose rows bound a loop, or an epoch of one
  for (const l1::Phase& phase : program.schedule.phases) {
    for (const std::string& name : {phase.pipeline, phase.eval}) {
      const l1::Pipeline* pipeline = l1::FindPipeline(program, name);
      if (pipeline != nullptr) bounding.insert(pipeline->links.front().name);
    }
  }
  for (l1::Stage& stage : program.stages) {
    l1::Sampling& sampling = stage.sampling;
    if (!bounding.contains(stage.name) || !stage.samples || sampling.rows > 0) continue;
    const l1::BoundData& data = *l1::FindData(program, sampling.data);
    if (data.fields.empty()) continue;
    const std::string folder = folder_of(data.name, data.fields.front().path);
    std::map<std::string, int64_t> rows;
    std::error_code ignored;
    if (synthetic) {
      rows[sampling.split] = sampling.split == "train" ? kAssumedTrainRows : kAssumedTestRows;
    } else if (std::filesystem::is_directory(folder, ignored)) {
      const absl::Status status =
          CountRows(SourceOf(data), folder, sampling.window, {&sampling.split, 1}, rows);
      if (!status.ok()) return status;
    }
    if (!rows.contains(sampling.split)) continue;
    l0::Sampler sampler;
    sampler.window = sampling.window;
    sampler.stride = sampling.stride;
    sampler.shards = sampling.shards;
    sampling.rows = runtime::SamplesOf(sampler, rows.at(sampling.split));
  }
  return absl::OkStatus();
}

}  // namespace l3c::tools
