#include "tools/l3c/sweep_options.h"

#include "tools/l3c/option_values.h"

namespace l3c::tools {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  l3c sweep bench/grids/ablation.grid              measure what is not measured yet\n"
    "  l3c sweep mine.grid -o sweeps/new --repeats 10   elsewhere, and more often\n"
    "  l3c sweep mine.grid --where search=egraph        some of its points\n"
    "  l3c sweep mine.grid --list                       its points, measured or not\n"
    "  l3c sweep compare sweeps/old sweeps/new          which differences exceed the noise\n"
    "A grid that was interrupted goes on where it was: what is in FOLDER/samples.jsonl is not\n"
    "measured again. docs/sweep.md has the grammar of grids.";

}  // namespace

void AddSweepCommand(CLI::App& app, Options& options, std::string& memory, std::string& color,
                     std::string& diagnostics) {
  SweepOptions& sweep = options.sweep;
  const auto add_colors = [&](CLI::App* command) {
    command->add_option("--color", color, "Colours: auto (a terminal), always, never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    command->add_option("--diagnostics", diagnostics, "Errors as text or as json (SARIF)")
        ->check(CLI::IsMember({"text", "json"}));
    command->add_flag("--json", options.json, "One JSON object a line");
    command->footer(kExamples);
  };
  CLI::App* command = app.add_subcommand(
      "sweep", "Measure programs under a grid of settings: a table, plots, and what is noise");
  command->parse_complete_callback([&options] { options.verb = Verb::kSweep; });
  command->add_option("GRID", options.file, "A grid: workloads, settings, what is measured");
  command
      ->add_option("-o,--output", options.output,
                   "Folder for samples, results and plots (default: sweeps/NAME)")
      ->check(Path());
  command->add_flag("--overwrite", options.overwrite, "Forget what was measured before");
  command->add_flag("--retry", sweep.retry, "Try points that failed again");
  command->add_flag("--list", sweep.list, "Print the points and measure nothing");
  command
      ->add_option("--where", sweep.where,
                   "AXIS=LABEL: only points that have it, such as search=egraph or workload=cnn")
      ->allow_extra_args(false);
  command->add_option("--repeats", sweep.repeats, "Of every point, instead of the grid's")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  command->add_option("--seconds-limit", sweep.seconds, "Of a point, instead of the grid's time")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--memory-limit", memory,
                      "Resident bytes of a point, such as 4GB, instead of the grid's");
  command
      ->add_option("--workers", sweep.workers,
                   "Points at a time where optimisation alone is measured (default: 2)")
      ->check(CLI::Range(size_t{1}, size_t{64}));
  add_colors(command);
  CLI::App* compare = command->add_subcommand("compare", "Which differences exceed the noise");
  compare->final_callback([&options] { options.verb = Verb::kSweepCompare; });
  compare->add_option("A B", sweep.compared, "Folders of two sweeps, or their results.jsonl")
      ->required()
      ->expected(2);
  add_colors(compare);
  command->require_subcommand(0, 1);
}

}  // namespace l3c::tools
