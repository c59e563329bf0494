// l3c: the command line.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>

#include "tools/l3c/applicable.h"
#include "tools/l3c/commands.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/options.h"

namespace l3c::tools {
namespace {

int RunCommand(const Options& options) {
  if (!OptionsApply(options)) return 2;
  switch (options.verb) {
    case Verb::kCheck: return Check(options);
    case Verb::kOptimize: return Optimize(options);
    case Verb::kLower: return Lower(options);
    case Verb::kRun: return Run(options);
    case Verb::kEval: return Eval(options);
    case Verb::kBuild: return Build(options);
    case Verb::kEmit: return Emit(options);
    case Verb::kEGraphRun: return EGraphRun(options);
    case Verb::kEGraphExtract: return EGraphExtract(options);
    case Verb::kRules: return Rules(options);
    case Verb::kRulesCheck: return RulesCheck(options);
    case Verb::kCache: return Cache(options);
    case Verb::kCalibrate: return Calibrate(options);
    case Verb::kSweep: return Sweep(options);
    case Verb::kSweepCompare: return SweepCompare(options);
  }
  return 2;
}

int Main(int argc, char** argv) {
  const ParsedCommandLine command_line = ParseCommandLine(argc, argv);
  if (!command_line.options) return command_line.exit_code;
  UseJsonLines(command_line.options->json);
  UseCache(command_line.options->cache);
  try {
    const int code = RunCommand(*command_line.options);
    EndJsonLines(code == 0);
    return code;
  } catch (const std::bad_alloc&) {
    EnvironmentError("out of memory");
  } catch (const std::filesystem::filesystem_error& error) {
    EnvironmentError(error.what());
  } catch (const std::exception& error) {
    // Nothing else throws on bad input; what arrives here is a defect of l3c.
    std::fprintf(stderr, "internal error: %s\nplease report it with the input\n", error.what());
  }
  EndJsonLines(false);
  return 1;
}

}  // namespace
}  // namespace l3c::tools

int main(int argc, char** argv) {
  const int code = l3c::tools::Main(argc, argv);
  // A full disk or a closed pipe must not pass for success.
  if (!std::cout.flush()) {
    l3c::tools::EnvironmentError("standard output could not be written");
    return code == 0 ? 1 : code;
  }
  return code;
}
