// What a run leaves behind: runs/NAME/ with the text of every layer, the facts needed to go on
// (run.json), events.jsonl, and checkpoints/.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/plan.h"
#include "tools/l3c/options.h"

namespace l3c::tools {

// The data that a plan reads.
std::vector<std::string> NamesOfData(const l0::Plan& plan);

// Where a run's events go; "" without a folder.
std::string EventsPath(const std::string& folder);
std::string AbsolutePath(const std::string& path);

// What a run needs beside its plan to go on.
struct RunFacts {
  std::string file;                         // the program, absolute
  std::map<std::string, std::string> data;  // folder of each data source
  bool synthetic = false;
};

using NamedText = std::pair<Layer, std::string>;

class RunFolder {
 public:
  // Whether Create would do, as far as can be told without making anything: asked before the work.
  static bool MayCreate(const std::string& output, bool overwrite);
  // A fresh folder: `output`, or runs/STEM of `file` with -2, -3, … when that is taken. Nothing
  // after printing why not: it cannot be written, or it holds a run and `overwrite` was not given.
  static std::optional<RunFolder> Create(const std::string& output, const std::string& file,
                                         bool overwrite);
  // An earlier run's folder.
  static std::optional<RunFolder> Open(const std::string& path);

  const std::filesystem::path& path() const { return path_; }

  // False after printing that another run works in it.
  bool IsFree() const;
  bool Save(const std::vector<NamedText>& texts, const RunFacts& facts) const;
  // The plan as saved, verified, and the facts, where `data` takes the place of what was saved.
  struct Saved {
    l0::Plan plan;
    RunFacts facts;
  };
  struct DiagnosticStyle {
    bool sarif = false;
    bool color = false;
  };
  std::optional<Saved> Load(const std::map<std::string, std::string>& data,
                            DiagnosticStyle style) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace l3c::tools
