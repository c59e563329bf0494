#include "tools/l3c/options.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>

#include "layers/support/diagnostics.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"
#include "tools/l3c/option_values.h"
#include "tools/l3c/sweep_options.h"

namespace l3c::tools {
namespace {

constexpr char kDescription[] =
    "l3c compiles a statement of intent (L3) into a method (L2), a placement (L1) and a machine "
    "plan\n"
    "(L0), by search, and trains it. Any layer's file can be checked, lowered, edited and run.";

constexpr uint64_t kMostCount = uint64_t{1} << 62;

constexpr char kExamples[] =
    "Examples:\n"
    "  l3c run examples/mnist/mnist.l3                  train, printing each epoch\n"
    "  l3c optimize examples/mnist/mnist.l3 --explain   what was chosen, what it beat, and why\n"
    "  l3c lower examples/mnist/mnist.l3 --to l2        print the method; edit it; run it\n"
    "  l3c build examples/mnist/mnist.l3 -o train       one executable that trains by itself\n"
    "  l3c egraph run rules.egg                         run an e-graph program by itself\n"
    "  l3c eval runs/mnist                              score the newest checkpoint on the test "
    "split\n"
    "Exit codes: 0 done, 1 bad input, 2 wrong usage, 130 interrupted (a checkpoint was kept).";

constexpr char kRulesExamples[] =
    "Examples:\n"
    "  l3c rules                                        file, ruleset, lowering, rules, numerics\n"
    "  l3c rules check mine.egg                         200 cases of each rule\n"
    "  l3c rules check mine.egg --cases 10000 --seed 7  more, and other ones\n"
    "  l3c rules check algebra fusion                   built-in sets by name\n"
    "Exit code 1 when a rule fails: its smallest counterexample is then shown at its place.";

// Adds the closest known option or command to a usage error.
std::string Suggestion(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  auto collect = [&known](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  };
  collect(app);
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (!word.starts_with("-")) known.push_back(sub->get_name());
    if (sub->parsed()) collect(*sub);
  }
  const std::string head = word.substr(0, word.find('='));
  const std::string closest = support::ClosestMatch(head, known);
  return closest.empty() ? "" : "did you mean '" + closest + "'?";
}

// What was asked for, as far as it was understood: "l3c", "l3c run", "l3c egraph run".
std::string CommandOf(const CLI::App& app) {
  const std::vector<CLI::App*> sub = app.get_subcommands();
  return sub.empty() ? app.get_name() : app.get_name() + " " + CommandOf(*sub.front());
}

// The word of the command line that no option or command takes, or "".
std::string UnknownWord(const CLI::App& app) {
  for (const std::string& word : app.remaining(/*recurse=*/true)) return word;
  return "";
}

bool ParseBudget(const std::map<std::string, std::string>& given,
                 std::map<std::string, uint64_t>& budget) {
  for (const auto& [name, text] : given) {
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count == 0) {
      std::cerr << "error: --budget " << name << " takes a whole number above 0, not '" << text
                << "'\n";
      return false;
    }
    if (name != "work" && name != "nodes" && name != "candidates") {
      const std::string closest = support::ClosestMatch(name, {"work", "nodes", "candidates"});
      std::cerr << "error: --budget knows work, nodes and candidates, not '" << name << "'\n"
                << (closest.empty() ? "" : "did you mean '" + closest + "'?\n");
      return false;
    }
    budget[name] = count;
  }
  return true;
}

CLI::Validator Bytes() {
  return CLI::Validator(
      [](const std::string& text) {
        std::string error;
        const std::optional<int64_t> bytes = support::ParseBytes(text, &error);
        if (bytes && *bytes > 0) return std::string();
        return "takes bytes above 0 with a unit, such as 8MB, 32KiB or 500000B, not '" + text + "'";
      },
      "BYTES");
}

// The library's own conversion takes nan for a time.
CLI::Validator Seconds() {
  return CLI::Validator(
      [](const std::string& text) {
        double seconds = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
        const bool number = error == std::errc() && end == text.data() + text.size();
        if (number && seconds >= 0 && seconds <= 1e9) return std::string();
        return "takes a number of seconds from 0 to 1e9, not '" + text + "'";
      },
      "S");
}

// The first option given that says how a run begins, which one that goes on has behind it; "" if
// there is none. Its own folder may be named again.
std::string BeginsARun(const CLI::App& run, const Options& options) {
  constexpr std::string_view kOfAnyRun[] = {
      "--resume", "--data",  "--data-memory", "--threads", "--io",
      "--json",   "--color", "--diagnostics", "--engine",  "--timeline"};
  for (const CLI::Option* option : run.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    if (name == "--output" && options.output == options.resume) continue;
    if (std::find(std::begin(kOfAnyRun), std::end(kOfAnyRun), name) != std::end(kOfAnyRun)) {
      continue;
    }
    return name;
  }
  return "";
}

// Nothing that is read or written is written over.
bool KeepsFiles(const Options& options) {
  namespace fs = std::filesystem;
  std::vector<std::string> outputs = {options.to_json, options.dot};
  if (options.verb == Verb::kLower || options.verb == Verb::kBuild) {
    outputs.push_back(options.output);
  }
  std::vector<std::string> taken = {options.file};
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    for (const std::string& other : taken) {
      std::error_code error;
      const bool same =
          fs::equivalent(output, other, error) ||
          fs::absolute(output).lexically_normal() == fs::absolute(other).lexically_normal();
      if (!same || fs::is_character_file(output, error)) continue;
      std::cerr << "error: '" << output << "' would be written over"
                << (other == options.file ? " while it is read" : " by another output") << "\n";
      return false;
    }
    taken.push_back(output);
  }
  return true;
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, char** argv) {
  Options options;
  std::vector<std::string> force, budget;
  std::string to, color = "auto", diagnostics = "text", memory, data_memory, cache_limit;
  RunValues length;
  int64_t pick = 0;

  CLI::App app(kDescription, "l3c");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("l3c ") + L3C_VERSION);
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Print this help and exit");

  auto add_command = [&](Verb verb, const char* name, const char* description) {
    CLI::App* command = app.add_subcommand(name, description);
    command->parse_complete_callback([&options, verb] { options.verb = verb; });
    command->add_option("--color", color, "Colours: auto (a terminal), always, never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    command->add_option("--diagnostics", diagnostics, "Errors as text or as json (SARIF)")
        ->check(CLI::IsMember({"text", "json"}));
    return command;
  };
  auto add_input = [&](CLI::App* command) {
    return command->add_option("FILE", options.file, "A program: .l3, .l2, .l1 or .l0");
  };
  auto add_cache_option = [&](CLI::App* command) {
    command->add_flag("!--no-cache", options.cache,
                      "Neither read nor write the cache of searches and kernels (l3c cache)");
  };
  auto add_lowering_options = [&](CLI::App* command) {
    add_cache_option(command);
    command->add_option("--data", length.data,
                        "NAME=DIR: where data NAME lies (default: data/NAME beside the file, else "
                        "under the working directory)");
    command
        ->add_option("--system", options.system,
                     "An .l1 file with the system to place on (default: this machine)")
        ->check(Path());
    command->add_option("--numerics", options.numerics, "Which rules may run: exact, reassoc, fast")
        ->check(CLI::IsMember({"exact", "reassoc", "fast"}))
        ->capture_default_str();
    command
        ->add_option("--search", options.search,
                     "off: first legal choice; greedy: local choices; egraph: joint choices")
        ->check(CLI::IsMember({"off", "greedy", "egraph"}))
        ->capture_default_str();
    command
        ->add_option("--memory", memory,
                     "Bytes that the plan may take, such as 8MB or 32KiB: what does not fit is "
                     "computed again (default: what the system has)")
        ->check(Bytes());
    command->add_option("--force", force, "ID=LOSER: take that choice for a decision of --explain");
    command->add_option(
        "--without", options.without,
        "Leave a rule file out (its name under rewrites/), or FILE/RULE: what is it "
        "good for?");
    command
        ->add_option("--rules", options.rule_files,
                     "An .egg file of rules of your own: checked, then used beside the built-in")
        ->allow_extra_args(false);
    command->add_option(
        "--budget", budget,
        "work=N, nodes=N or candidates=N: where each search (methods, placement, the kernels of "
        "a pipeline) gives up; never in seconds");
    command->add_option("--evidence", options.evidence,
                        "What costs rest on: a revision or a file of 'l3c calibrate', or none "
                        "(default: the revision in use)");
    AddLengthOptions(*command, length);
    command->add_option("--pick", pick, "Of a pareto goal: the point of its front to train for")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
    command->add_flag("--synthetic", options.synthetic, "Random data of the declared domains");
  };
  double tune = 0;
  auto add_tune_option = [&](CLI::App* command) {
    command
        ->add_option("--tune", tune,
                     "Seconds for timing the whole steps of the best plans: the fastest here is "
                     "taken, if it is faster beyond the noise; goes on where it was interrupted")
        ->check(Seconds());
  };
  auto add_execution_options = [&](CLI::App* command) {
    AddExecutionOptions(*command, options.threads, options.io, data_memory);
    command
        ->add_option("--engine", options.engine,
                     "jit: compiled kernels; interpreter: the slow reference")
        ->check(CLI::IsMember({"jit", "interpreter"}))
        ->capture_default_str();
  };

  CLI::App* check = add_command(Verb::kCheck, "check", "Parse and verify a program");
  add_input(check)->required();
  check->add_option("--data", length.data,
                    "NAME=DIR: read what lies there too, and hold it against the declaration");
  check->add_flag("--json", options.json, "One JSON object a line");

  CLI::App* optimize =
      add_command(Verb::kOptimize, "optimize", "Search every layer below and say what was chosen");
  add_input(optimize)->required();
  add_lowering_options(optimize);
  optimize->add_flag("--explain", options.explain, "Each decision: winner, losers, costs, rules");
  optimize->add_flag("--brief", options.brief,
                     "With --explain or --json: the method's decisions only");
  optimize->add_flag("--json", options.json,
                     "The same as --explain, one JSON object a line; same bytes for same input");
  optimize->add_flag("--timings", options.timings, "Add the time each part took");

  add_tune_option(optimize);

  CLI::App* lower = add_command(Verb::kLower, "lower", "Print the program at a lower layer");
  add_input(lower)->required();
  add_lowering_options(lower);
  add_tune_option(lower);
  lower->add_option("--to", to, "l2, l1 or l0")
      ->required()
      ->check(CLI::IsMember({"l3", "l2", "l1", "l0"}));
  lower->add_option("-o,--output", options.output, "Write to this file instead of standard output")
      ->check(Path());
  lower->add_flag("--explain", options.explain,
                  "Each decision: winner, losers, costs, rules, to standard error");

  CLI::App* run = add_command(Verb::kRun, "run", "Lower all the way and train");
  CLI::Option* run_input = add_input(run);
  add_lowering_options(run);
  add_tune_option(run);
  add_execution_options(run);
  run->add_option("-o,--output", options.output,
                  "Folder for plans, events and checkpoints (default: runs/NAME)")
      ->check(Path());
  run->add_flag("--overwrite", options.overwrite,
                "Replace what an earlier run left in that folder");
  run->add_option("--resume", options.resume, "Go on with the run in this folder")
      ->check(Path())
      ->excludes(run_input);
  run->add_flag(
      "--explain", options.explain,
      "Each decision: winner, losers, costs, rules, to standard error; and what was reused");
  AddTimelineOption(*run, options.timeline);
  run->add_flag("--observe", options.observe,
                "Add the kernels' times to a revision of the evidence");
  run->add_flag("--json", options.json,
                "One JSON object a line; the last is {\"event\":\"done\",…}");

  CLI::App* eval =
      add_command(Verb::kEval, "eval", "Score a run's newest checkpoint on the test split");
  eval->add_option("RUN", options.file, "A run's folder, such as runs/mnist")->required();
  eval->add_option("--data", length.data, "NAME=DIR: where data NAME lies");
  add_cache_option(eval);
  add_execution_options(eval);
  eval->add_flag("--json", options.json, "One JSON object a line");

  CLI::App* build =
      add_command(Verb::kBuild, "build", "Make one executable that trains, needing nothing else");
  add_input(build)->required();
  add_lowering_options(build);
  add_tune_option(build);
  build->add_option("-o,--output", options.output, "The executable to write")
      ->required()
      ->check(Path());
  build
      ->add_option("--cpu", options.cpu,
                   "What the code may use: native (this CPU), x86-64-v2, x86-64-v3, x86-64-v4, or "
                   "features as +avx2,+fma")
      ->capture_default_str();
  build->add_flag("--json", options.json, "One JSON object a line");

  CLI::App* emit = add_command(Verb::kEmit, "emit", "Write what a program becomes below L0");
  add_input(emit)->required();
  add_lowering_options(emit);
  emit->add_option("--target", options.target,
                   "llvm: kernels and control units as LLVM IR; asm: as the instructions that "
                   "run; control: the control units as L0 writes them")
      ->required()
      ->check(CLI::IsMember({"llvm", "asm", "control"}));
  emit->add_option("-o,--output", options.output, "Folder for the files")
      ->required()
      ->check(Path());
  emit->add_flag("--json", options.json, "One JSON object a line");

  CLI::App* cache = add_command(Verb::kCache, "cache",
                                "What earlier runs left for later ones: searches and kernels");
  cache->add_flag("--json", options.json, "One JSON object a line");
  cache->fallthrough();
  for (const auto& [name, description] :
       {std::pair("clear", "Remove all of it"),
        std::pair("limit", "Bound it; what was used longest ago goes first")}) {
    CLI::App* action = cache->add_subcommand(name, description);
    action->parse_complete_callback([&options, name = name] { options.cache_action = name; });
    if (std::string_view(name) == "limit") {
      action->add_option("BYTES", cache_limit, "500MB, 2GiB, 0B")->required();
    }
  }
  cache->require_subcommand(0, 1);

  CLI::App* calibrate = add_command(Verb::kCalibrate, "calibrate",
                                    "Measure this machine for the costs of plans; below a minute");
  CLI::Option* use_evidence =
      calibrate
          ->add_option("--use", options.use_evidence,
                       "Measure nothing: plans use this revision from now on")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  calibrate
      ->add_option("--seconds", options.calibrate_seconds,
                   "Time for the shapes of products and sums: fewer are measured in less")
      ->excludes(use_evidence)
      ->check(Seconds())
      ->check(CLI::Range(0.0, 40.0))
      ->capture_default_str();
  calibrate->add_flag("--json", options.json, "One JSON object a line");

  std::string memory_limit;
  AddSweepCommand(app, options, memory_limit, color, diagnostics);

  CLI::App* egraph = app.add_subcommand("egraph", "The e-graph engine on its own");
  egraph->require_subcommand(1);
  CLI::App* egraph_run = egraph->add_subcommand("run", "Carry out an .egg program");
  egraph_run->parse_complete_callback([&options] { options.verb = Verb::kEGraphRun; });
  egraph_run->add_option("FILE", options.file, "A program of declarations, rules and commands")
      ->required();
  egraph_run->add_flag("--json", options.json,
                       "One JSON object a line; the last says how it ended");
  egraph_run->add_flag("--stats", options.stats, "Each run's steps and matches, to standard error");
  egraph_run->add_flag("--proofs", options.proofs,
                       "Keep what proofs need; prove every check and verify the proof");
  egraph_run
      ->add_option("--why-not", options.why_not,
                   "Two terms A B: at the end, say what kept each rule from making them equal")
      ->expected(2);
  egraph_run
      ->add_option("--threads", options.threads,
                   "Threads to search with (default: one); never changes a result")
      ->check(CLI::Range(1, 1024));
  egraph_run
      ->add_option("-F,--fact-directory", options.fact_directory,
                   "Where include, input and output look for files (default: here)")
      ->check(Path());
  egraph_run
      ->add_option("--max-bytes", options.max_bytes,
                   "Memory at which a run stops (default: 16 GiB)")
      ->check(Whole(uint64_t{1} << 20, uint64_t{1} << 50));
  egraph_run
      ->add_option("--to-json", options.to_json,
                   "Write the e-graph there in the end, as egraph-serialize does")
      ->check(Path());
  egraph_run->add_option("--dot", options.dot, "Draw the e-graph there in the end")->check(Path());
  egraph_run
      ->add_option("--max-nodes", options.max_nodes, "Rows of all tables at which a run stops")
      ->check(Whole(1, kMostCount));
  egraph_run->add_option("--max-matches", options.max_matches, "Matches after which a run stops")
      ->check(Whole(1, kMostCount));
  egraph_run
      ->add_option("--max-work", options.max_work,
                   "Rows that searches look at, matching or not, after which a run stops")
      ->check(Whole(1, kMostCount));
  egraph_run
      ->add_option("--max-iterations", options.max_iterations,
                   "Steps of a ruleset after which a run stops")
      ->check(Whole(0, kMostCount));
  egraph_run
      ->add_option("--max-seconds", options.max_seconds,
                   "Time after which a run is aborted; what it found then varies")
      ->check(Seconds());

  CLI::App* egraph_extract =
      egraph->add_subcommand("extract", "Choose the cheapest term of a serialized e-graph");
  egraph_extract->parse_complete_callback([&options] { options.verb = Verb::kEGraphExtract; });
  egraph_extract->add_option("FILE", options.file, "An e-graph as egraph-serialize writes it")
      ->required();
  egraph_extract
      ->add_option("--extractor", options.extractor,
                   "tree: shared parts at every use; greedy: once, by local search; exact: proven")
      ->check(CLI::IsMember({"tree", "greedy", "exact"}));
  egraph_extract->add_option("--costs", options.costs,
                             "file: those in FILE; size: 1 each; or a JSON file {\"op\": cost, …}");
  egraph_extract
      ->add_option("--max-seconds", options.max_seconds,
                   "exact, greedy: stop there, with what was found")
      ->check(Seconds());
  egraph_extract
      ->add_option("--top", options.top,
                   "The K cheapest distinct terms, by tree cost (tree) or DAG cost (exact)")
      ->check(CLI::Range(size_t{1}, size_t{100000}));
  egraph_extract->add_option("--root", options.extract_roots,
                             "Extract these classes instead of FILE's root_eclasses");
  egraph_extract->add_option("--bound", options.extract_bounds,
                             "exact: AMOUNTS.json=LIMIT, {\"op\": amount, …} summed over what is "
                             "chosen is at most LIMIT");
  egraph_extract->add_option("--dot", options.dot, "Draw the e-graph there, what is chosen filled")
      ->check(Path());
  egraph_extract->add_flag("--json", options.json, "The choice as one JSON object");

  CLI::App* rules =
      add_command(Verb::kRules, "rules", "The built-in rule sets; check rules of your own");
  rules->require_subcommand(0, 1);
  rules->add_flag("--json", options.json, "One JSON object a line");
  rules->footer(kRulesExamples);
  CLI::App* rules_check = rules->add_subcommand(
      "check", "Test every rule of a file on random instances of its left side");
  rules_check->final_callback([&options] { options.verb = Verb::kRulesCheck; });
  rules_check->add_option("FILE", options.rule_files, "Files of rules, or names of built-in sets")
      ->required();
  rules_check->add_option("--cases", options.cases, "Of each rule")
      ->check(Whole(1, 100'000'000))
      ->capture_default_str();
  CLI::Option* rules_seed =
      rules_check->add_option("--seed", length.seed, "Of the instances (default: 0)")
          ->check(Whole(0, std::numeric_limits<int64_t>::max()));
  rules_check->add_flag("--json", options.json,
                        "One JSON object a line; the last says how it ended");
  for (CLI::App* command : {rules_check, egraph_run, egraph_extract}) {
    command->add_option("--color", color, "Colours: auto (a terminal), always, never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    command->add_option("--diagnostics", diagnostics, "Errors as text or as json (SARIF)")
        ->check(CLI::IsMember({"text", "json"}));
  }
  rules_check->footer(kRulesExamples);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, app.exit(help)};
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, app.exit(version)};
  } catch (const CLI::ParseError& error) {
    std::string word = UnknownWord(app);
    // CLI11 checks for a command before it looks at what is left over.
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      word = argv[1];
      std::cerr << "error: there is no command '" << word << "'\n";
    } else {
      std::cerr << "error: " << error.what() << "\n";
    }
    if (const std::string hint = word.empty() ? "" : Suggestion(app, word); !hint.empty()) {
      std::cerr << hint << "\n";
    }
    std::cerr << "run '" << CommandOf(app) << " --help' for usage\n";
    return {std::nullopt, 2};
  }

  std::map<std::string, std::string> budgets;
  if (!SplitAssignments(length.data, "--data", "NAME=DIR", options.data) ||
      !SplitAssignments(force, "--force", "ID=LOSER", options.force) ||
      !SplitAssignments(budget, "--budget", "NAME=N", budgets) ||
      !ParseBudget(budgets, options.budget)) {
    return {std::nullopt, 2};
  }
  for (const std::string& name : options.without) {
    if (rewrites::LeaveOut(name)) continue;
    std::vector<std::string> known;
    const std::string_view file_name = std::string_view(name).substr(0, name.find('/'));
    const bool has_file = rewrites::Find(file_name) != nullptr;
    for (const rewrites::RuleFile& file : rewrites::All()) known.emplace_back(file.name);
    const std::string closest =
        has_file ? "" : support::ClosestMatch(std::string(file_name), known);
    std::cerr << "error: --without: there is no rule "
              << (has_file ? "of that name in that file: '" : "file '") << name << "'\n"
              << (closest.empty() ? "" : "did you mean '" + closest + "'?\n");
    return {std::nullopt, 2};
  }
  if (rules_seed->count() > 0) options.seed = length.seed;
  std::string unread;  // why an option is refused, which its check has said
  for (const CLI::App* command : app.get_subcommands()) {
    auto given = [command](const char* name) {
      const CLI::Option* option = command->get_option_no_throw(name);
      return option != nullptr && option->count() > 0;
    };
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() > 0) options.given.push_back(option->get_name());
    }
    if (given("--seed")) options.seed = length.seed;
    if (given("--epochs")) options.epochs = length.epochs;
    if (given("--steps")) options.steps = length.steps;
    if (given("--pick")) options.pick = pick;
    if (given("--tune")) options.tune = tune;
    if (given("--memory")) options.memory = support::ParseBytes(memory, &unread);
    if (given("--data-memory") && !ParseDataMemory(data_memory, options.data_memory)) {
      return {std::nullopt, 2};
    }
    if (given("--epochs") && given("--steps")) {
      std::cerr << "error: --epochs and --steps exclude each other\n";
      return {std::nullopt, 2};
    }
    if (given("--data") && options.synthetic) {
      std::cerr << "error: --data and --synthetic exclude each other: all data is read, or none\n";
      return {std::nullopt, 2};
    }
    if (given("--to")) {
      for (Layer layer : {Layer::kL3, Layer::kL2, Layer::kL1, Layer::kL0}) {
        if (to == LayerName(layer)) options.to = layer;
      }
    }
  }
  if (options.cache_action == "limit") {
    std::string error;
    options.cache_limit = support::ParseBytes(cache_limit, &error);
    if (!options.cache_limit) {
      std::cerr << "error: cache limit " << cache_limit << ": " << error << "\n";
      return {std::nullopt, 2};
    }
  }
  if (!memory_limit.empty()) {
    std::string error = "a point takes more than no memory";
    options.memory = support::ParseBytes(memory_limit, &error);
    if (options.memory.value_or(0) <= 0) {
      std::cerr << "error: --memory-limit " << memory_limit << ": " << error << "\n";
      return {std::nullopt, 2};
    }
  }
  if (options.verb == Verb::kSweep && options.file.empty()) {
    std::cerr << "error: sweep needs a GRID, or compare A B\nrun 'l3c sweep --help' for usage\n";
    return {std::nullopt, 2};
  }
  if (options.verb == Verb::kRun && options.file.empty() && options.resume.empty()) {
    std::cerr << "error: run needs a FILE, or --resume FOLDER\nrun 'l3c run --help' for usage\n";
    return {std::nullopt, 2};
  }
  if (options.tune && (options.engine == "interpreter" ||
                       (options.verb == Verb::kLower && options.to != Layer::kL0))) {
    std::cerr << "error: --tune times compiled plans: "
              << (options.verb == Verb::kLower ? "with --to l0" : "without --engine interpreter")
              << "\n";
    return {std::nullopt, 2};
  }
  if (options.verb == Verb::kRun && !options.resume.empty()) {
    if (const std::string option = BeginsARun(*run, options); !option.empty()) {
      std::cerr << "error: --resume goes on with a run as it was begun: " << option
                << " cannot change it; --data and --threads may be given\n"
                << "run 'l3c run --help' for usage\n";
      return {std::nullopt, 2};
    }
  }
  if (!KeepsFiles(options)) return {std::nullopt, 2};
  // For machines there is one amount of detail.
  if (options.verb == Verb::kOptimize && options.json) options.explain = !options.brief;
  options.sarif = diagnostics == "json";
  options.color = WantsColor(color);
  return {options, 0};
}

}  // namespace l3c::tools
