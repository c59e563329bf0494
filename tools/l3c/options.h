// The command line of l3c: what may be asked, checked and explained before anything is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::tools {

enum class Layer : uint8_t { kL3, kL2, kL1, kL0 };
constexpr std::string_view LayerName(Layer layer) {  // "l3"
  constexpr std::string_view kNames[] = {"l3", "l2", "l1", "l0"};
  return kNames[static_cast<size_t>(layer)];
}

enum class Verb : uint8_t {
  kCheck,
  kOptimize,
  kLower,
  kRun,
  kEval,
  kBuild,
  kEmit,
  kEGraphRun,
  kEGraphExtract,
  kRules,
  kRulesCheck,
  kCache,
  kCalibrate,
  kSweep,
  kSweepCompare
};

// Of l3c sweep, beside what it shares with other commands.
struct SweepOptions {
  std::vector<std::string> compared;  // compare A B
  std::vector<std::string> where;     // --where AXIS=LABEL
  std::optional<int64_t> repeats;     // --repeats N
  std::optional<double> seconds;      // --seconds-limit S
  std::optional<size_t> workers;      // --workers N
  bool retry = false;                 // --retry
  bool list = false;                  // --list
};

struct Options {
  Verb verb = Verb::kCheck;
  // A program of any layer; for eval, or run --resume, a run's folder; for egraph run, an .egg
  // file; for egraph extract, a .json file; for sweep, a grid.
  std::string file;

  std::vector<std::string> given;            // options of the command line, such as --search
  std::map<std::string, std::string> data;   // --data NAME=DIR
  std::string system;                        // --system FILE
  std::optional<uint64_t> seed;              // --seed N
  int threads = 0;                           // --threads N; 0: all cores
  std::string numerics = "reassoc";          // --numerics exact|reassoc|fast
  std::string search = "egraph";             // --search off|greedy|egraph
  std::map<std::string, std::string> force;  // --force ID=LOSER
  std::vector<std::string> without;          // --without NAME
  std::optional<int64_t> memory;             // --memory BYTES
  std::vector<std::string> rule_files;       // --rules FILE.egg; of rules check: what to check
  int64_t cases = 200;                       // --cases N
  std::map<std::string, uint64_t> budget;    // --budget work=N, nodes=N, candidates=N
  std::optional<Layer> to;                   // --to LAYER
  std::optional<int64_t> epochs;             // --epochs N
  std::optional<int64_t> steps;              // --steps N
  std::optional<int64_t> pick;               // --pick N
  std::optional<double> tune;                // --tune SECONDS
  bool synthetic = false;                    // --synthetic
  std::string output;                        // -o PATH
  bool overwrite = false;                    // --overwrite
  std::string resume;                        // --resume FOLDER
  std::string engine = "jit";                // --engine jit|interpreter
  std::string target;                        // --target llvm|asm|control
  std::string cpu = "native";                // --cpu NAME
  std::string cpu_features;                  // what that is, as "+a,+b"; "": this machine's
  bool cache = true;                         // --no-cache
  std::string cache_action;                  // of cache: "", "clear", "limit"
  std::optional<int64_t> cache_limit;        // of cache limit: BYTES
  std::string io = "auto";                   // --io auto|uring|portable
  std::optional<int64_t> data_memory;        // --data-memory BYTES
  std::string timeline;                      // --timeline FILE
  bool observe = false;                      // --observe
  std::string evidence;                      // --evidence N|FILE|none; "": the current one
  std::optional<int64_t> use_evidence;       // calibrate --use N
  double calibrate_seconds = 40;             // calibrate --seconds S
  bool explain = false;                      // --explain
  bool brief = false;                        // --brief
  bool json = false;                         // --json
  bool timings = false;                      // --timings
  bool stats = false;                        // --stats
  bool proofs = false;                       // --proofs
  std::vector<std::string> why_not;          // --why-not A B
  std::string fact_directory;                // --fact-directory DIR
  uint64_t max_bytes = uint64_t{16} << 30;   // --max-bytes N
  std::optional<uint64_t> max_nodes;         // --max-nodes N
  std::optional<uint64_t> max_matches;       // --max-matches N
  std::optional<uint64_t> max_work;          // --max-work N
  std::optional<uint64_t> max_iterations;    // --max-iterations N
  std::string extractor = "exact";           // --extractor tree|greedy|exact
  std::string costs = "file";                // --costs file|size|FILE
  size_t top = 1;                            // --top K
  std::vector<std::string> extract_roots;    // --root CLASS
  std::vector<std::string> extract_bounds;   // --bound FILE=LIMIT
  std::optional<double> max_seconds;         // --max-seconds S
  std::string dot;                           // --dot PATH
  std::string to_json;                       // --to-json PATH
  SweepOptions sweep;
  bool sarif = false;  // --diagnostics=json
  bool color = false;  // a terminal, unless NO_COLOR or --color=never
};

// Parses argv. On --help, --version or an error it has printed what there is to print (errors to
// standard error, with the closest known spelling) and gives the exit code: 0, or 2 for wrong
// usage.
struct ParsedCommandLine {
  std::optional<Options> options;
  int exit_code = 0;
};
ParsedCommandLine ParseCommandLine(int argc, char** argv);

}  // namespace l3c::tools
