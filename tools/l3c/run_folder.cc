#include "tools/l3c/run_folder.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <system_error>

#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "layers/support/diagnostics.h"
#include "nlohmann/json.hpp"
#include "runtime/folder_lock.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlan = "plan.l0";
constexpr const char* kRun = "run.json";
// Everything that a run writes: all that --overwrite removes.
constexpr std::array<const char*, 7> kOwn = {"spec.l3", "method.l2",    "placement.l1", kPlan,
                                             kRun,      "events.jsonl", "checkpoints"};

const char* FileOf(Layer layer) {
  switch (layer) {
    case Layer::kL3:
      return "spec.l3";
    case Layer::kL2:
      return "method.l2";
    case Layer::kL1:
      return "placement.l1";
    case Layer::kL0:
      return kPlan;
  }
  return "";
}

bool HoldsRun(const fs::path& folder) {
  const auto exists = [&](const char* name) {
    std::error_code ignored;
    return fs::exists(folder / name, ignored);
  };
  // Save() begins with the facts and ends with the plan: one that was killed in between left
  // nothing that could be continued.
  if (exists(kRun) && !exists(kPlan) && !exists("checkpoints")) return false;
  return std::any_of(kOwn.begin(), kOwn.end(), exists);
}

// A run that is still going on would lose its files under its feet. The lock itself is the run's to
// take, so this one is let go at once.
bool NobodyRuns(const fs::path& folder) {
  const absl::StatusOr<runtime::FolderLock> lock = runtime::FolderLock::Take(folder.string());
  return lock.ok() || EnvironmentError(std::string(lock.status().message()),
                                       "wait for it, or choose another folder with -o");
}

bool RemoveRun(const fs::path& folder) {
  for (const char* name : kOwn) {
    std::error_code error;
    fs::remove_all(folder / name, error);
    if (error) {
      return EnvironmentError("cannot remove '" + (folder / name).string() +
                              "': " + error.message());
    }
  }
  return true;
}

}  // namespace

std::string EventsPath(const std::string& folder) {
  return folder.empty() ? "" : (fs::path(folder) / "events.jsonl").string();
}

std::vector<std::string> NamesOfData(const l0::Plan& plan) {
  std::vector<std::string> names;
  for (const l0::DataSource& source : plan.sources) names.push_back(source.name);
  return names;
}

std::string AbsolutePath(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

namespace {

// Which is an error without --overwrite.
bool HoldsNoRun(const fs::path& path) {
  return !HoldsRun(path) ||
         EnvironmentError("'" + path.string() + "' holds an earlier run",
                          "continue it with --resume " + path.string() +
                              ", replace it with --overwrite, or choose another folder with -o");
}

}  // namespace

bool RunFolder::MayCreate(const std::string& output, bool overwrite) {
  const fs::path path = output.empty() ? fs::path("runs") : fs::path(output);
  return CanMakeFolder(path) && (output.empty() || overwrite || HoldsNoRun(path));
}

std::optional<RunFolder> RunFolder::Create(const std::string& output, const std::string& file,
                                           bool overwrite) {
  fs::path path = output;
  if (output.empty()) {
    const fs::path base = fs::path("runs") / fs::path(file).stem();
    path = base;
    for (int n = 2; !overwrite && HoldsRun(path); ++n) {
      path = base;
      path += "-" + std::to_string(n);
    }
  }
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    EnvironmentError("cannot make the folder '" + path.string() +
                         "': " + (error ? error.message() : "a file of that name exists"),
                     "choose another folder with -o");
    return std::nullopt;
  }
  if (HoldsRun(path)) {
    if (!overwrite && !HoldsNoRun(path)) return std::nullopt;
    if (!NobodyRuns(path) || !RemoveRun(path)) return std::nullopt;
  }
  // Found out now rather than after an hour of training.
  const fs::path probe = path / ".probe";
  if (!WriteFile(probe, "")) return std::nullopt;
  fs::remove(probe, error);
  return RunFolder(path);
}

std::optional<RunFolder> RunFolder::Open(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    EnvironmentError("there is no folder '" + path + "'",
                     "name a run's folder, such as runs/mnist");
    return std::nullopt;
  }
  if (!fs::exists(fs::path(path) / kPlan, ignored)) {
    EnvironmentError("'" + path + "' holds no run: " + kPlan + " is missing");
    return std::nullopt;
  }
  return RunFolder(fs::path(path));
}

bool RunFolder::IsFree() const { return NobodyRuns(path_); }

bool RunFolder::Save(const std::vector<NamedText>& texts, const RunFacts& facts) const {
  nlohmann::ordered_json run;
  run["file"] = facts.file;
  run["data"] = facts.data;
  run["synthetic"] = facts.synthetic;
  if (!WriteFile(path_ / kRun, run.dump(2) + "\n")) return false;
  // The plan, without which there is no run, comes last: where it is, everything is.
  for (const auto& [layer, text] : texts) {
    if (!WriteFile(path_ / FileOf(layer), text)) return false;
  }
  return true;
}

std::optional<RunFolder::Saved> RunFolder::Load(const std::map<std::string, std::string>& data,
                                                DiagnosticStyle style) const {
  support::Diagnostics diagnostics;
  std::optional<support::SourceFile> source =
      support::SourceFile::Read((path_ / kPlan).string(), diagnostics);
  std::optional<l0::Plan> plan;
  if (source) {
    diagnostics.set_source(&*source);
    plan = l0::ParsePlan(*source, diagnostics);
    if (plan) l0::VerifyPlan(*plan, diagnostics);
  }
  if (diagnostics.has_errors()) {
    std::cerr << (style.sarif ? diagnostics.RenderSarif() : diagnostics.Render(style.color));
    PrintJsonDiagnostics(diagnostics);
    return std::nullopt;
  }
  Saved saved{std::move(*plan), {}};
  std::ifstream in(path_ / kRun);
  if (in) {
    const nlohmann::json run = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (run.is_object()) {
      if (const auto folders = run.find("data"); folders != run.end() && folders->is_object()) {
        for (const auto& [name, folder] : folders->items()) {
          if (folder.is_string()) saved.facts.data[name] = folder.get<std::string>();
        }
      }
      if (const auto kind = run.find("synthetic"); kind != run.end() && kind->is_boolean()) {
        saved.facts.synthetic = kind->get<bool>();
      }
    } else {
      EnvironmentError("'" + (path_ / kRun).string() + "' is not valid JSON",
                       "remove it and pass --data NAME=DIR");
      return std::nullopt;
    }
  }
  for (const auto& [name, folder] : data) saved.facts.data[name] = folder;
  if (!data.empty()) saved.facts.synthetic = false;
  return saved;
}

}  // namespace l3c::tools
