// What a program of `l3c build` does: the runtime, the code and tables that were put beside it, and
// the run options of `l3c run`.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <utility>

#include "layers/l0/plan_text.h"
#include "runtime/kernel_table.h"
#include "runtime/session.h"
#include "runtime/sha256.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/option_values.h"
#include "tools/l3c/overrides.h"
#include "tools/l3c/run_folder.h"
#include "tools/l3c/training.h"
#include "tools/program/anchor.h"
#include "tools/program/cpu_features.h"
#include "tools/program/options.h"
#include "tools/program/program.h"

namespace l3c::program {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using tools::EnvironmentError;

// The functions that stand in the program's code.
class BuiltKernels : public runtime::KernelTable {
 public:
  BuiltKernels(const char* code, const Program& program)
      : code_(reinterpret_cast<uintptr_t>(code)), program_(program) {}
  runtime::KernelFn Find(l0::KernelId kernel) const override {
    return reinterpret_cast<runtime::KernelFn>(code_ + program_.kernels[kernel]);
  }
  l0::ControlFn FindControl(size_t unit) const override {
    return reinterpret_cast<l0::ControlFn>(code_ + program_.control[unit]);
  }

 private:
  const uintptr_t code_;
  const Program& program_;
};

bool CpuSuffices(const Program& program) {
  std::string missing;
  for (const std::string& feature : RequiredFeatures(program.features)) {
    if (!HasFeature(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  }
  return missing.empty() ||
         EnvironmentError("this program was compiled for a CPU with " + missing +
                              ", which this one does not have",
                          "build it with l3c build --cpu x86-64-v3 (or -v2), or on this machine");
}

std::string TextOf(const Program& program, tools::Layer layer) {
  for (const Program::Text& text : program.texts) {
    if (text.layer != static_cast<uint8_t>(layer)) continue;
    if (std::optional<std::string> inflated = Inflate(text)) return *std::move(inflated);
  }
  return "";
}

// The plan that the program was built from, with the bodies of its kernels. It was verified then.
std::optional<l0::Plan> WholePlan(const Program& program) {
  support::Diagnostics diagnostics;
  const support::SourceFile source("plan.l0", TextOf(program, tools::Layer::kL0));
  diagnostics.set_source(&source);
  std::optional<l0::Plan> plan = l0::ParsePlan(source, diagnostics);
  if (!plan) EnvironmentError("this program is damaged", "make it anew with l3c build");
  return plan;
}

// The same folders as at the build where they are there, else those that the plan names.
std::map<std::string, std::string> DataFolders(const Program& program, const Options& options) {
  std::map<std::string, std::string> folders;
  for (const l0::DataSource& source : program.plan.sources) {
    std::string& folder = folders[source.name];
    const auto given = options.data.find(source.name);
    const auto built = program.data.find(source.name);
    std::error_code ignored;
    if (given != options.data.end()) {
      folder = tools::AbsolutePath(given->second);
    } else if (built != program.data.end() && fs::is_directory(built->second, ignored)) {
      folder = built->second;
    } else {
      folder = tools::AbsolutePath(source.path);
    }
  }
  return folders;
}

// Whether the program's code is that of `plan`: whether they differ in lengths and seeds alone.
bool HasCodeOf(const l0::Plan& plan, const l0::Plan& own) {
  if (plan.phases.size() != own.phases.size() || plan.init.size() != own.init.size() ||
      plan.samplers.size() != own.samplers.size() || plan.control.size() != own.control.size()) {
    return false;
  }
  l0::Plan same = plan;
  for (size_t i = 0; i < own.phases.size(); ++i) {
    same.phases[i].epochs = own.phases[i].epochs;
    same.phases[i].steps = own.phases[i].steps;
  }
  for (size_t i = 0; i < own.init.size(); ++i) same.init[i].seed = own.init[i].seed;
  for (size_t i = 0; i < own.samplers.size(); ++i) same.samplers[i].seed = own.samplers[i].seed;
  for (size_t u = 0; u < own.control.size(); ++u) {
    if (same.control[u].regions.size() != own.control[u].regions.size()) return false;
    for (size_t r = 0; r < own.control[u].regions.size(); ++r) {
      same.control[u].regions[r].values = own.control[u].regions[r].values;
    }
  }
  return l0::PrintPlan(same) == l0::PrintPlan(own);
}

class Command {
 public:
  Command(const Program& program, const Options& options, std::string name)
      : program_(program),
        options_(options),
        kernels_(reinterpret_cast<const char*>(&TheAnchor()) + TheAnchor().code, program),
        presentation_{options.json, options.color, options.timeline,
                      std::move(name) + " --resume"} {
    run_.threads = options.threads;
    runtime::ParseFileReaderKind(options.io, &run_.reader);
    run_.resident_bytes = options.data_memory;
  }

  int Run(Clock::time_point start) {
    if (!CpuSuffices(program_)) return 1;
    if (!tools::KnowsData(options_.data, tools::NamesOfData(program_.plan))) return 1;
    if (!options_.timeline.empty() && !tools::CanWriteFile(options_.timeline)) return 1;
    if (!options_.resume.empty()) return Resume(start);
    std::vector<tools::NamedText> texts;
    std::optional<l0::Plan> changed;
    const tools::RunLength length{options_.epochs, options_.steps, options_.seed};
    if (length.epochs || length.steps || length.seed) {
      changed = WholePlan(program_);
      if (!changed || !tools::Override(*changed, length)) return 1;
      // The layers above say what they said before, so they are not this run's.
      texts.emplace_back(tools::Layer::kL0, l0::PrintPlan(*changed));
      run_.plan_digest = runtime::Sha256Of(texts.back().second);
    } else {
      for (const Program::Text& text : program_.texts) {
        const auto layer = static_cast<tools::Layer>(text.layer);
        texts.emplace_back(layer, TextOf(program_, layer));
      }
      run_.plan_digest = program_.digest;
    }
    const double compile_seconds = tools::SecondsSince(start);
    const std::optional<tools::RunFolder> folder =
        tools::RunFolder::Create(options_.output, program_.file, options_.overwrite);
    if (!folder) return 1;
    run_.data = DataFolders(program_, options_);
    run_.synthetic = options_.synthetic;
    if (!folder->Save(texts, {program_.file, run_.data, run_.synthetic})) return 1;
    run_.output = folder->path().string();
    return tools::TrainAndTell(changed ? *changed : program_.plan, kernels_, run_, presentation_,
                               compile_seconds);
  }

 private:
  int Resume(Clock::time_point start) {
    const std::optional<tools::RunFolder> folder = tools::RunFolder::Open(options_.resume);
    if (!folder || !folder->IsFree()) return 1;
    const std::optional<tools::RunFolder::Saved> saved =
        folder->Load(options_.data, {options_.sarif, options_.color});
    if (!saved) return 1;
    const std::optional<l0::Plan> own = WholePlan(program_);
    if (!own) return 1;
    if (!HasCodeOf(saved->plan, *own)) {
      EnvironmentError("'" + options_.resume + "' holds a run of another plan than this program's",
                       "go on with it by l3c run --resume " + options_.resume);
      return 1;
    }
    run_.data = saved->facts.data;
    run_.synthetic = options_.synthetic || saved->facts.synthetic;
    run_.output = run_.checkpoint = folder->path().string();
    run_.or_from_start = true;
    return tools::TrainAndTell(saved->plan, kernels_, run_, presentation_,
                               tools::SecondsSince(start));
  }

  const Program& program_;
  const Options& options_;
  const BuiltKernels kernels_;
  const tools::Presentation presentation_;
  runtime::RunOptions run_;
};

int Main(int argc, char** argv) {
  const Clock::time_point start = Clock::now();
  const Anchor& anchor = TheAnchor();
  std::optional<Program> program;
  if (anchor.tables != 0) {
    program = Read({reinterpret_cast<const char*>(&anchor) + anchor.tables,
                    static_cast<size_t>(anchor.tables_size)});
  }
  if (!program) {
    EnvironmentError(anchor.tables == 0 ? "this is the runtime alone, without a program"
                                        : "this program is damaged",
                     "make one with l3c build");
    return 1;
  }
  const ParsedCommandLine command_line = ParseCommandLine(*program, argc, argv);
  if (!command_line.options) return command_line.exit_code;
  const Options& options = *command_line.options;
  tools::UseJsonLines(options.json);
  try {
    const int code = Command(*program, options, argv[0]).Run(start);
    tools::EndJsonLines(code == 0);
    return code;
  } catch (const std::bad_alloc&) {
    EnvironmentError("out of memory");
  } catch (const fs::filesystem_error& error) {
    EnvironmentError(error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\nplease report it\n", error.what());
  }
  tools::EndJsonLines(false);
  return 1;
}

}  // namespace
}  // namespace l3c::program

int main(int argc, char** argv) {
  const int code = l3c::program::Main(argc, argv);
  // A full disk or a closed pipe must not pass for success.
  if (!std::cout.flush()) {
    l3c::tools::EnvironmentError("standard output could not be written");
    return code == 0 ? 1 : code;
  }
  return code;
}
