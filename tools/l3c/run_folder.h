// What a run leaves behind: runs/NAME/ with the text of every layer, the facts needed to go on
// (run.json), events.jsonl, and checkpoints/.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "layers/l0/plan.h"
#include "tools/l3c/compile.h"
#include "tools/l3c/options.h"

namespace l3c::tools {

class RunFolder {
 public:
  // A fresh folder: options.output, or runs/STEM with -2, -3, … when that is taken. Nothing after
  // printing why not: it cannot be written, or it holds a run and --overwrite was not given.
  static std::optional<RunFolder> Create(const Options& options);
  // An earlier run's folder.
  static std::optional<RunFolder> Open(const std::string& path);

  const std::filesystem::path& path() const { return path_; }
  std::string EventsPath() const { return (path_ / "events.jsonl").string(); }

  // False after printing that another run works in it.
  bool IsFree() const;
  bool Save(const Compilation& compilation, const Options& options) const;
  // The plan as saved, verified, and the data folders and the kind of data it ran with.
  struct Saved {
    l0::Plan plan;
    std::map<std::string, std::string> data;
    bool synthetic = false;
  };
  std::optional<Saved> Load(const Options& options) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace l3c::tools
