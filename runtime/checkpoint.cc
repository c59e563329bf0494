#include "runtime/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "layers/l0/plan_text.h"
#include "nlohmann/json.hpp"
#include "runtime/durable_file.h"
#include "runtime/message.h"
#include "runtime/safetensors.h"
#include "runtime/sha256.h"

namespace l3c::runtime {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kParameters[] = "parameters.safetensors";
constexpr char kState[] = "state.safetensors";
constexpr char kRun[] = "state.json";
constexpr char kSums[] = "SHA256SUMS";
constexpr char kPrefix[] = "step-";
constexpr char kPartial[] = ".partial-";
constexpr char kReplaced[] = ".replaced-";
constexpr size_t kMaxText = size_t{16} << 20;

// Optimiser state, then every other persistent buffer that a command writes.
std::vector<l0::BufferId> StateBuffers(const l0::Plan& plan) {
  std::vector<l0::BufferId> state = plan.optimiser_state;
  std::set<l0::BufferId> written;
  for (const l0::Sequence& sequence : plan.sequences) {
    for (const l0::Command& command : sequence.commands) {
      if (command.kind == l0::CommandKind::kCopy) written.insert(command.args[1]);
      if (command.kind != l0::CommandKind::kLaunch) continue;
      const l0::Kernel& kernel = plan.kernels[command.kernel];
      for (size_t i = 0; i < command.args.size(); ++i) {
        if (kernel.params[i].access != l0::Access::kIn) written.insert(command.args[i]);
      }
    }
  }
  for (const auto* kept : {&plan.parameters, &plan.optimiser_state}) {
    for (l0::BufferId id : *kept) written.erase(id);
  }
  for (l0::BufferId id : written) {
    if (plan.pools[plan.buffers[id].pool].kind == l0::PoolKind::kPersistent) state.push_back(id);
  }
  return state;
}

std::vector<TensorView> Views(const l0::Plan& plan, const Memory& memory,
                              const std::vector<l0::BufferId>& ids) {
  std::vector<TensorView> views;
  for (l0::BufferId id : ids) {
    const l0::Buffer& buffer = plan.buffers[id];
    views.push_back({buffer.name,
                     buffer.dtype,
                     buffer.shape,
                     {memory.Address(id), static_cast<size_t>(buffer.size)}});
  }
  return views;
}

// A double and its bits: the first is for readers, the second is exact for NaN and infinity too.
Json ToJson(const Value& value) {
  return {
      {"name", value.name}, {"value", value.value}, {"bits", std::bit_cast<uint64_t>(value.value)}};
}

Value ValueFromJson(const Json& json) {
  return {json.at("name").get<std::string>(),
          std::bit_cast<double>(json.at("bits").get<uint64_t>())};
}

Json ToJson(const RunState& state, const std::string& plan_name) {
  Json splits = Json::object();
  for (const auto& [name, split] : state.splits) {
    Json sums = Json::array(), published = Json::array();
    for (const auto& [sum, value] : split.sums) sums.push_back(ToJson(Value{sum, value}));
    for (const Value& value : split.published) published.push_back(ToJson(value));
    splits[name] = {{"steps", split.steps},
                    {"samples", split.samples},
                    {"period_steps", split.period_steps},
                    {"sums", sums},
                    {"published", published}};
  }
  return {{"format", 1},
          {"plan", plan_name},
          {"plan_sha256", state.plan_digest},
          {"regions", state.regions},
          {"splits", splits}};
}

RunState StateFromJson(const Json& json) {
  RunState state;
  state.plan_digest = json.at("plan_sha256").get<std::string>();
  state.regions = json.at("regions").get<std::map<std::string, std::vector<int64_t>>>();
  for (const auto& [name, entry] : json.at("splits").items()) {
    Metrics::Split& split = state.splits[name];
    split.steps = entry.at("steps").get<int64_t>();
    split.samples = entry.at("samples").get<int64_t>();
    split.period_steps = entry.at("period_steps").get<int64_t>();
    for (const Json& sum : entry.at("sums")) {
      const Value value = ValueFromJson(sum);
      split.sums[value.name] = value.value;
    }
    for (const Json& figure : entry.at("published"))
      split.published.push_back(ValueFromJson(figure));
  }
  return state;
}

Bytes BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string NameOf(const RunState& state) {
  auto train = state.splits.find(kTrainSplit);
  const int64_t step = train == state.splits.end() ? 0 : train->second.steps;
  char name[32];
  std::snprintf(name, sizeof name, "%s%09lld", kPrefix, static_cast<long long>(step));
  return name;
}

bool StartsWith(const std::string& text, std::string_view prefix) {
  return std::string_view(text).substr(0, prefix.size()) == prefix;
}

std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CheckFiles(const fs::path& folder) {
  const std::string sums_path = (folder / kSums).string();
  absl::StatusOr<std::string> sums = ReadText(sums_path, kMaxText);
  if (!sums.ok()) return sums.status();
  std::set<std::string> seen;
  for (size_t at = 0; at < sums->size();) {
    const size_t end = std::min(sums->find('\n', at), sums->size());
    const std::string line = sums->substr(at, end - at);
    at = end + 1;
    if (line.size() < 67 || line.substr(64, 2) != "  ") {
      return absl::DataLossError(Message(sums_path, ": damaged"));
    }
    const std::string name = line.substr(66);
    if (name.find('/') != std::string::npos) {
      return absl::DataLossError(Message(sums_path, ": damaged"));
    }
    const std::string path = (folder / name).string();
    absl::StatusOr<std::string> sum = HashFile(path);
    if (!sum.ok()) return sum.status();
    if (*sum != line.substr(0, 64)) {
      return absl::DataLossError(Message(
          path, ": the checkpoint is damaged: the file's SHA-256 is not the one noted in ", kSums));
    }
    seen.insert(name);
  }
  for (const char* name : {kParameters, kState, kRun}) {
    if (seen.count(name) == 0) {
      return absl::DataLossError(Message(sums_path, ": damaged: ", name, " is missing"));
    }
  }
  return absl::OkStatus();
}

// What is wrong with a damaged checkpoint, and which older one beside it can take its place.
absl::Status WithOlder(const absl::Status& damage, const fs::path& folder) {
  // A path may end in a slash.
  const fs::path place = folder.has_filename() ? folder : folder.parent_path();
  const fs::path parent = place.has_parent_path() ? place.parent_path() : fs::path(".");
  const std::vector<std::string> names = EntriesOf(parent.string());
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!StartsWith(*name, kPrefix) || *name >= place.filename().string()) continue;
    if (!CheckFiles(parent / *name).ok()) continue;
    return absl::Status(damage.code(),
                        Message(std::string(damage.message()), "; the checkpoint before it, ",
                                (parent / *name).string(), ", is sound: remove ", place.string(),
                                " and resume to go on from there"));
  }
  return damage;
}

absl::Status CheckSums(const fs::path& folder) {
  absl::Status status = CheckFiles(folder);
  return status.ok() ? status : WithOlder(status, folder);
}

// Fills the buffers from a file. `all`: each must be there.
absl::Status Fill(const std::string& path, const l0::Plan& plan, const Memory& memory,
                  const std::vector<l0::BufferId>& ids, bool all) {
  absl::StatusOr<std::map<std::string, StoredTensor>> tensors = ReadSafetensors(path);
  if (!tensors.ok()) return tensors.status();
  for (l0::BufferId id : ids) {
    const l0::Buffer& buffer = plan.buffers[id];
    auto found = tensors->find(buffer.name);
    const bool fits = found != tensors->end() && found->second.dtype == buffer.dtype &&
                      found->second.shape == buffer.shape;
    if (!fits && !all) continue;
    if (!fits) {
      const std::string wanted =
          Message(tensor::DTypeName(buffer.dtype), " ", tensor::ShapeToString(buffer.shape));
      const std::string there = found == tensors->end()
                                    ? std::string("is missing")
                                    : Message("is ", tensor::DTypeName(found->second.dtype), " ",
                                              tensor::ShapeToString(found->second.shape));
      return absl::FailedPreconditionError(
          Message(path, ": '", buffer.name, "' ", there, "; the plan wants ", wanted));
    }
    std::memcpy(memory.Address(id), found->second.bytes.data(), found->second.bytes.size());
  }
  return absl::OkStatus();
}

absl::Status Rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      Message(from.string(), ": cannot rename to ", to.string(), ": ", error.message()));
}

// Puts a folder in the place of another at one moment, so that one of the two always stands there.
// What stood there is then at `aside`, or at `replaced` where the file system knows no exchange;
// that name counts as the place's own as long as nothing is there (see Checkpoints).
absl::Status Replace(const fs::path& aside, const fs::path& place, const fs::path& replaced) {
  std::error_code error;
  if (!fs::exists(place, error)) return Rename(aside, place);
  if (renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  fs::remove_all(replaced, error);
  if (absl::Status s = Rename(place, replaced); !s.ok()) return s;
  return Rename(aside, place);
}

// Removes a checkpoint. Under its own name it is whole or not there, even if this is cut short.
void Remove(const fs::path& checkpoint) {
  const std::string name = checkpoint.filename().string();
  std::error_code error;
  if (!StartsWith(name, kPartial)) {
    const fs::path aside = checkpoint.parent_path() / (kPartial + name);
    fs::remove_all(aside, error);
    fs::rename(checkpoint, aside, error);
    fs::remove_all(error ? checkpoint : aside, error);
  } else {
    fs::remove_all(checkpoint, error);
  }
}

// The checkpoints of a folder, the newest first.
std::vector<std::string> Checkpoints(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> found;  // the step's name, the entry
  std::error_code error;
  for (const std::string& entry : EntriesOf(folder.string())) {
    std::string name = entry;
    if (StartsWith(entry, kReplaced)) name = entry.substr(sizeof(kReplaced) - 1);
    if (!StartsWith(name, kPrefix) || !fs::exists(folder / entry / kSums, error)) continue;
    if (name != entry && fs::exists(folder / name, error)) continue;
    found.emplace_back(name, entry);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> entries;
  for (auto& [name, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace

std::string PlanDigest(const l0::Plan& plan) { return Sha256Of(l0::PrintPlan(plan)); }

absl::StatusOr<CheckpointWriter> CheckpointWriter::Open(const std::string& output, int keep,
                                                        const std::string& resumed) {
  CheckpointWriter writer;
  writer.folder_ = (fs::path(output) / "checkpoints").string();
  writer.keep_ = static_cast<size_t>(std::max(keep, 1));
  std::error_code error;
  fs::create_directories(writer.folder_, error);
  if (error) {
    return absl::UnavailableError(
        Message(output, ": cannot make the output folder: ", error.message()));
  }
  const std::string probe = (fs::path(writer.folder_) / ".writable").string();
  absl::StatusOr<std::string> written = WriteDurably(probe, {});
  if (!written.ok()) return written.status();
  fs::remove(probe, error);
  if (!resumed.empty()) {
    const fs::path parent = fs::path(resumed).parent_path();
    if (fs::equivalent(parent, writer.folder_, error)) {
      for (const std::string& name : EntriesOf(writer.folder_)) {
        if (StartsWith(name, kPrefix) && name <= fs::path(resumed).filename().string()) {
          writer.written_.push_back(name);
        }
      }
    }
  }
  return writer;
}

absl::StatusOr<std::string> CheckpointWriter::Write(const l0::Plan& plan, const Memory& memory,
                                                    const RunState& state) {
  const std::string name = NameOf(state);
  absl::StatusOr<std::string> written = WriteAs(name, plan, memory, state);
  // A disk that has just become full is to have its room back.
  if (!written.ok()) Remove(fs::path(folder_) / (kPartial + name));
  return written;
}

absl::StatusOr<std::string> CheckpointWriter::WriteAs(const std::string& name, const l0::Plan& plan,
                                                      const Memory& memory, const RunState& state) {
  const fs::path place = fs::path(folder_) / name;
  const fs::path aside = fs::path(folder_) / (kPartial + name);
  std::error_code error;
  fs::remove_all(aside, error);
  fs::create_directory(aside, error);
  if (error) {
    return absl::UnavailableError(Message(aside.string(), ": cannot be made: ", error.message()));
  }

  std::string sums;
  const auto add = [&](const char* file, absl::StatusOr<std::string> sum) -> absl::Status {
    if (!sum.ok()) return sum.status();
    sums += Message(*sum, "  ", file, "\n");
    return absl::OkStatus();
  };
  const auto path = [&](const char* file) { return (aside / file).string(); };
  if (absl::Status s = add(
          kParameters, WriteSafetensors(path(kParameters), Views(plan, memory, plan.parameters)));
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          add(kState, WriteSafetensors(path(kState), Views(plan, memory, StateBuffers(plan))));
      !s.ok()) {
    return s;
  }
  const std::string run = ToJson(state, plan.name).dump(2) + "\n";
  const Bytes run_bytes[] = {BytesOf(run)};
  if (absl::Status s = add(kRun, WriteDurably(path(kRun), run_bytes)); !s.ok()) return s;
  const Bytes sums_bytes[] = {BytesOf(sums)};
  if (auto s = WriteDurably(path(kSums), sums_bytes); !s.ok()) return s.status();
  if (absl::Status s = SyncFolder(aside.string()); !s.ok()) return s;

  if (absl::Status s = Replace(aside, place, fs::path(folder_) / (kReplaced + name)); !s.ok()) {
    return s;
  }
  const fs::path pointer = fs::path(folder_) / (std::string(kPartial) + "latest");
  const std::string pointer_text = name + "\n";
  const Bytes pointer_bytes[] = {BytesOf(pointer_text)};
  if (auto s = WriteDurably(pointer.string(), pointer_bytes); !s.ok()) return s.status();
  if (absl::Status s = Rename(pointer, fs::path(folder_) / "latest"); !s.ok()) return s;
  if (absl::Status s = SyncFolder(folder_); !s.ok()) return s;

  written_.erase(std::remove(written_.begin(), written_.end(), name), written_.end());
  written_.push_back(name);
  if (written_.size() > keep_) {
    written_.erase(written_.begin(), written_.end() - static_cast<std::ptrdiff_t>(keep_));
  }
  for (const std::string& entry : EntriesOf(folder_)) {
    const bool old = StartsWith(entry, kPrefix) &&
                     std::find(written_.begin(), written_.end(), entry) == written_.end();
    if (old || StartsWith(entry, kPartial) || StartsWith(entry, kReplaced)) {
      Remove(fs::path(folder_) / entry);
    }
  }
  return place.string();
}

absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::path(path) / kSums, error)) return path;
  const fs::path folder = fs::path(path) / "checkpoints";
  absl::StatusOr<std::string> latest = ReadText((folder / "latest").string(), kMaxText);
  if (latest.ok()) {
    std::string name = *latest;
    while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
    if (StartsWith(name, kPrefix) && fs::exists(folder / name / kSums, error)) {
      return (folder / name).string();
    }
  }
  // The pointer is written last, so it can be missing where a checkpoint is not.
  const std::vector<std::string> names = Checkpoints(folder);
  if (!names.empty()) return (folder / names.front()).string();
  return absl::NotFoundError(Message(path, ": there is no checkpoint"));
}

absl::StatusOr<RunState> ReadCheckpoint(const std::string& folder, const l0::Plan& plan,
                                        const std::string& digest, const Memory& memory) {
  if (absl::Status s = CheckSums(folder); !s.ok()) return s;
  const std::string path = (fs::path(folder) / kRun).string();
  absl::StatusOr<std::string> text = ReadText(path, kMaxText);
  if (!text.ok()) return text.status();
  RunState state;
  try {
    const Json json = Json::parse(*text);
    if (json.at("format").get<int>() != 1) {
      return absl::FailedPreconditionError(Message(path, ": a later format of checkpoints"));
    }
    state = StateFromJson(json);
  } catch (const Json::exception&) {
    return WithOlder(
        absl::DataLossError(Message(path, ": the checkpoint is damaged: not what was written")),
        folder);
  }
  if (state.plan_digest != digest) {
    return absl::FailedPreconditionError(Message(
        folder, ": the checkpoint is of another plan (sha256 ", state.plan_digest.substr(0, 12),
        "…, not ", digest.substr(0, 12), "…); a run goes on only with the plan that began it"));
  }
  for (const auto& [file, ids] :
       {std::pair(kParameters, plan.parameters), std::pair(kState, StateBuffers(plan))}) {
    absl::Status s = Fill((fs::path(folder) / file).string(), plan, memory, ids, true);
    if (!s.ok()) return s;
  }
  return state;
}

absl::Status ReadWeights(const std::string& folder, const l0::Plan& plan, const Memory& memory) {
  if (absl::Status s = CheckSums(folder); !s.ok()) return s;
  const fs::path path(folder);
  absl::Status s = Fill((path / kParameters).string(), plan, memory, plan.parameters, true);
  if (!s.ok()) return s;
  return Fill((path / kState).string(), plan, memory, StateBuffers(plan), false);
}

}  // namespace l3c::runtime
