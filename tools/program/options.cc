#include "tools/program/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

#include "layers/support/diagnostics.h"
#include "tools/l3c/option_values.h"

namespace l3c::program {
namespace {

// Options of `l3c run` that have done their work by the time a program exists.
constexpr const char* kOfTheBuild[] = {"--system",  "--numerics", "--search", "--force",
                                       "--without", "--rules",    "--budget", "--pick",
                                       "--engine",  "--tune",     "--memory"};

// What helps somebody whose word no option takes; "" when nothing comes to mind.
std::string Hint(const CLI::App& app, const std::string& word) {
  const std::string head = word.substr(0, word.find('='));
  if (std::find(std::begin(kOfTheBuild), std::end(kOfTheBuild), head) != std::end(kOfTheBuild)) {
    return head + " shapes the plan, which is part of this program: pass it to l3c build";
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::string closest = support::ClosestMatch(head, known);
  return closest.empty() ? "" : "did you mean '" + closest + "'?";
}

}  // namespace

ParsedCommandLine ParseCommandLine(const Program& program, int argc, char** argv) {
  Options options;
  tools::RunValues length;
  std::string color = "auto", diagnostics = "text", data_memory;
  const std::string name = std::filesystem::path(argc > 0 ? argv[0] : "train").filename().string();

  CLI::App app("Trains '" + std::filesystem::path(program.file).stem().string() + "' (" +
                   program.file + "), compiled by l3c " + program.version +
                   ".\nIt needs its data and nothing else.",
               name);
  app.footer(
      "Exit codes: 0 done, 1 bad input, 2 wrong usage, 130 interrupted (a checkpoint was "
      "kept).");
  app.set_version_flag("--version",
                       name + ", compiled by l3c " + program.version + " for " + program.features);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("--data", length.data,
                 "NAME=DIR: where data NAME lies (default: where it lay at the build, else "
                 "data/NAME under the working directory)");
  tools::AddLengthOptions(app, length);
  app.add_flag("--synthetic", options.synthetic, "Random data of the declared domains");
  tools::AddExecutionOptions(app, options.threads, options.io, data_memory);
  app.add_option("-o,--output", options.output,
                 "Folder for plans, events and checkpoints (default: runs/NAME)")
      ->check(tools::Path());
  app.add_flag("--overwrite", options.overwrite, "Replace what an earlier run left in that folder");
  app.add_option("--resume", options.resume, "Go on with the run in this folder")
      ->check(tools::Path());
  tools::AddTimelineOption(app, options.timeline);
  app.add_flag("--json", options.json,
               "One JSON object a line; the last is {\"event\":\"done\",…}");
  app.add_option("--color", color, "Colours: auto (a terminal), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("--diagnostics", diagnostics, "Errors as text or as json (SARIF)")
      ->check(CLI::IsMember({"text", "json"}));

  const auto wrong = [&](const std::string& message, const std::string& hint) {
    std::cerr << "error: " << message << "\n";
    if (!hint.empty()) std::cerr << hint << "\n";
    std::cerr << "run '" << name << " --help' for usage\n";
    return ParsedCommandLine{std::nullopt, 2};
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, app.exit(help)};
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, app.exit(version)};
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> left = app.remaining();
    return wrong(error.what(), left.empty() ? "" : Hint(app, left.front()));
  }
  if (!tools::SplitAssignments(length.data, "--data", "NAME=DIR", options.data)) {
    return {std::nullopt, 2};
  }
  if (app.count("--data-memory") > 0 && !tools::ParseDataMemory(data_memory, options.data_memory)) {
    return {std::nullopt, 2};
  }
  if (app.count("--seed") > 0) options.seed = length.seed;
  if (app.count("--epochs") > 0) options.epochs = length.epochs;
  if (app.count("--steps") > 0) options.steps = length.steps;
  if (options.epochs && options.steps) return wrong("--epochs and --steps exclude each other", "");
  if (!options.data.empty() && options.synthetic) {
    return wrong("--data and --synthetic exclude each other: all data is read, or none", "");
  }
  if (!options.resume.empty() && (options.epochs || options.steps || options.seed ||
                                  !options.output.empty() || options.overwrite)) {
    return wrong("--resume goes on with a run as it was begun: --data and --threads may be given",
                 "");
  }
  options.sarif = diagnostics == "json";
  options.color = tools::WantsColor(color);
  return {options, 0};
}

}  // namespace l3c::program
