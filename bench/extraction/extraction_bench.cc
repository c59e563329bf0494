// Extraction over a directory of egraph-serialize files, such as extraction-gym's data: what each
// extractor finds, how long it takes, and what exact extraction proves, beside Cbc on the plain
// integer program. A line per file on request and a table per folder.
//
//   extraction_bench --data DIR [--seconds 10] [--clock wall|cpu] [--files] [--filter TEXT]
//                    [--extractors tree,fast,exact,cbc] [--results FILE]
//
// Seconds are of the extraction alone, without reading the file; on a machine that others use too,
// take the processor's (--clock cpu). Results in FILE are not computed again, new ones are added.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/extraction/plain_cbc.h"
#include "bench/extraction/results.h"
#include "egraph/extract/exact.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/plain.h"
#include "egraph/extract/time_limit.h"
#include "egraph/serialize.h"

namespace {

using namespace l3c::egraph;
using l3c::bench::Result;
using l3c::bench::Results;

// Of the fast mode on one file; never reached on extraction-gym's.
constexpr uint64_t kFastWork = 1'000'000'000;
// Costs that differ by less are the same to the solvers.
constexpr double kSame = 1e-6;

const std::set<std::string> kExtractors = {"tree", "fast", "exact", "cbc"};

struct Settings {
  double seconds = 10;
  TimeKind clock = TimeKind::kWall;
};

Result Run(const std::string& extractor, const SerializedProblem& problem,
           const Settings& settings) {
  Result result;
  const double start = SecondsBy(settings.clock);
  if (extractor == "tree") {
    result.cost = PlainTree(problem.graph, problem.prices, problem.roots).dag_cost;
  } else if (extractor == "fast") {
    result.cost = PlainGreedyDag(problem.graph, problem.prices, problem.roots, kFastWork).dag_cost;
  } else if (extractor == "exact") {
    ExactOptions options;
    options.max_seconds = settings.seconds;
    options.time_kind = settings.clock;
    const ExactSolution exact = SolveExact(problem.graph, problem.prices, problem.roots, options);
    result.cost = exact.cost;
    result.bound = exact.lower_bound;
    result.proven = exact.optimal;
  } else {
    const l3c::bench::PlainCbcResult cbc = l3c::bench::SolvePlainCbc(
        problem.graph, problem.prices, problem.roots, TimeLimit(settings.clock, settings.seconds));
    result.cost = cbc.cost;
    result.proven = cbc.proven;
  }
  result.seconds = SecondsBy(settings.clock) - start;
  return result;
}

double Gap(const Result& exact) {
  if (exact.proven || exact.cost == exact.bound) return 0;
  return (exact.cost - exact.bound) / std::max(std::abs(exact.cost), 1e-300);
}

bool Dearer(double a, double b) { return a > b + kSame * std::max(1e-9, std::abs(b)); }

struct Folder {
  size_t files = 0, finite = 0;
  // Of the files that have results of the extractors in question.
  size_t tree_files = 0, fast_above_tree = 0;
  size_t exact_files = 0, proven = 0;
  double tree_dag = 0, fast_dag = 0, exact_dag = 0, bound = 0, largest_gap = 0;
  double fast_seconds = 0, exact_seconds = 0;
  size_t cbc_files = 0, cbc_proven = 0, above_cbc = 0, below_cbc = 0, both = 0;
  double cbc_seconds = 0, log_ratio = 0;

  void Add(const Folder& o) {
    files += o.files;
    finite += o.finite;
    tree_files += o.tree_files;
    fast_above_tree += o.fast_above_tree;
    exact_files += o.exact_files;
    proven += o.proven;
    tree_dag += o.tree_dag;
    fast_dag += o.fast_dag;
    exact_dag += o.exact_dag;
    bound += o.bound;
    largest_gap = std::max(largest_gap, o.largest_gap);
    fast_seconds += o.fast_seconds;
    exact_seconds += o.exact_seconds;
    cbc_files += o.cbc_files;
    cbc_proven += o.cbc_proven;
    above_cbc += o.above_cbc;
    below_cbc += o.below_cbc;
    both += o.both;
    cbc_seconds += o.cbc_seconds;
    log_ratio += o.log_ratio;
  }
};

Folder Count(const Result* tree, const Result* fast, const Result* exact, const Result* cbc) {
  Folder f;
  f.finite = 1;
  if (tree != nullptr) f.tree_dag = tree->cost;
  if (fast != nullptr) {
    f.fast_dag = fast->cost;
    f.fast_seconds = fast->seconds;
  }
  if (tree != nullptr && fast != nullptr) {
    f.tree_files = 1;
    f.fast_above_tree = Dearer(fast->cost, tree->cost);
  }
  if (exact != nullptr) {
    f.exact_files = 1;
    f.proven = exact->proven;
    f.exact_dag = exact->cost;
    f.bound = exact->bound;
    f.largest_gap = Gap(*exact);
    f.exact_seconds = exact->seconds;
  }
  if (exact != nullptr && cbc != nullptr) {
    f.cbc_files = 1;
    f.cbc_proven = cbc->proven;
    f.cbc_seconds = cbc->seconds;
    f.above_cbc = Dearer(exact->cost, cbc->cost);
    f.below_cbc = Dearer(cbc->cost, exact->cost);
    f.both = exact->proven && cbc->proven;
    if (f.both)
      f.log_ratio = std::log(std::max(cbc->seconds, 1e-6) / std::max(exact->seconds, 1e-6));
  }
  return f;
}

void PrintRow(const std::string& name, const Folder& f) {
  std::printf("%-14s %5zu %6zu %6zu  %14.6f %14.6f %14.6f %14.6f  %7.2f%%  %7.2f %8.2f\n",
              name.c_str(), f.files, f.finite, f.proven, f.tree_dag, f.fast_dag, f.exact_dag,
              f.bound, 100 * f.largest_gap, f.fast_seconds, f.exact_seconds);
}

void PrintCbcRow(const std::string& name, const Folder& f) {
  if (f.cbc_files == 0) return;
  std::printf("%-14s %5zu %12zu %12zu %13zu %13zu  %12zu %8.1f  %8.2f\n", name.c_str(), f.cbc_files,
              f.proven, f.cbc_proven, f.below_cbc, f.above_cbc, f.both,
              f.both == 0 ? 0 : std::exp(f.log_ratio / static_cast<double>(f.both)), f.cbc_seconds);
}

// Fails with what is wrong, if that is said.
int Usage(const std::string& wrong = "") {
  if (!wrong.empty()) std::fprintf(stderr, "error: %s\n", wrong.c_str());
  std::fprintf(stderr,
               "usage: extraction_bench --data DIR [--seconds S] [--clock wall|cpu] [--files] "
               "[--filter TEXT] [--extractors tree,fast,exact,cbc] [--results FILE]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path data;
  Settings settings;
  bool each = false;
  std::string filter, results_path;
  std::set<std::string> extractors = kExtractors;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--files") {
      each = true;
      continue;
    }
    if (i + 1 == argc) return Usage("\"" + arg + "\" is no option, or its value is missing");
    const std::string value = argv[++i];
    if (arg == "--data") {
      data = value;
    } else if (arg == "--seconds") {
      char* end = nullptr;
      settings.seconds = std::strtod(value.c_str(), &end);
      if (end == value.c_str() || *end != 0 || !(settings.seconds > 0)) {
        return Usage("--seconds " + value + ": expected a number above 0");
      }
    } else if (arg == "--clock" && (value == "wall" || value == "cpu")) {
      settings.clock = value == "cpu" ? TimeKind::kThread : TimeKind::kWall;
    } else if (arg == "--filter") {
      filter = value;
    } else if (arg == "--extractors") {
      extractors.clear();
      std::stringstream names(value);
      for (std::string name; std::getline(names, name, ',');) {
        if (!kExtractors.contains(name)) return Usage("there is no extractor \"" + name + "\"");
        extractors.insert(name);
      }
      if (extractors.empty()) return Usage("--extractors names none");
    } else if (arg == "--results") {
      results_path = value;
    } else if (arg == "--clock") {
      return Usage("--clock " + value + ": expected wall or cpu");
    } else {
      return Usage("\"" + arg + "\" is no option");
    }
  }
  std::error_code error;
  if (data.empty()) return Usage("--data is missing");
  if (!std::filesystem::is_directory(data, error)) {
    return Usage("--data " + data.string() + " is no directory");
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".json") continue;
    if (path.string().find(filter) != std::string::npos) files.push_back(path);
  }
  if (files.empty()) return Usage("no .json file there has \"" + filter + "\" in its path");
  std::sort(files.begin(), files.end());
  if (!LinearSolver::Available()) std::printf("built without COIN-OR Cbc: nothing is branched\n");
  Results results;
  if (!results.Open(results_path)) return 1;

  std::map<std::string, Folder> folders;
  for (const std::filesystem::path& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string name = std::filesystem::relative(path, data).string();
    Folder& folder = folders[std::filesystem::relative(path.parent_path(), data).string()];
    ++folder.files;
    const SerializedResult read = ReadSerialized(text, name);
    if (!read.ok()) {
      if (each) std::printf("%s\n", read.error.c_str());
      continue;
    }
    const SerializedProblem problem = ProblemOf(read.graph);
    if (!PlainTree(problem.graph, problem.prices, problem.roots).feasible) {
      if (each) std::printf("%s: no finite extraction\n", name.c_str());
      continue;
    }
    const auto get = [&](const char* extractor) -> const Result* {
      if (const Result* known = results.Find(extractor, name)) return known;
      if (!extractors.contains(extractor)) return nullptr;
      results.Add(extractor, name, Run(extractor, problem, settings));
      return results.Find(extractor, name);
    };
    const Result* tree = get("tree");
    const Result* fast = get("fast");
    const Result* exact = get("exact");
    const Result* cbc = get("cbc");
    folder.Add(Count(tree, fast, exact, cbc));
    if (!each) continue;
    std::printf("%s:", name.c_str());
    if (tree != nullptr) std::printf(" tree %.9g", tree->cost);
    if (fast != nullptr) std::printf(", fast %.9g in %.3f s", fast->cost, fast->seconds);
    if (exact != nullptr) {
      std::printf(", exact %.9g%s gap %.4f%% in %.3f s", exact->cost,
                  exact->proven ? " (optimal)" : "", 100 * Gap(*exact), exact->seconds);
    }
    if (cbc != nullptr) {
      std::printf(", Cbc %.9g%s in %.3f s", cbc->cost, cbc->proven ? " (optimal)" : "",
                  cbc->seconds);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  std::printf("\n%-14s %5s %6s %6s  %14s %14s %14s %14s  %8s  %7s %8s\n", "folder", "files",
              "finite", "proven", "tree DAG", "fast DAG", "exact DAG", "bound", "max gap", "fast s",
              "exact s");
  Folder total;
  for (const auto& [name, folder] : folders) {
    PrintRow(name, folder);
    total.Add(folder);
  }
  PrintRow("all", total);
  if (total.exact_dag != 0 && total.fast_dag != 0) {
    std::printf("fast above exact by %.3f%%; fast above the tree optimum on %zu of %zu files\n",
                100 * (total.fast_dag / total.exact_dag - 1), total.fast_above_tree,
                total.tree_files);
  }
  if (total.cbc_files > 0) {
    std::printf("\n%-14s %5s %12s %12s %13s %13s  %12s %8s  %8s\n", "beside Cbc", "files",
                "exact proves", "Cbc proves", "exact cheaper", "exact dearer", "both prove",
                "times", "Cbc s");
    for (const auto& [name, folder] : folders) PrintCbcRow(name, folder);
    PrintCbcRow("all", total);
  }
  return 0;
}
