// Extraction over a directory of egraph-serialize files, such as extraction-gym's data: what each
// extractor finds, how long it takes, and what exact extraction proves. A line per file on request
// and a table per folder.
//
//   extraction_bench --data DIR [--seconds 10] [--files] [--filter TEXT]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "egraph/extract/exact.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/plain.h"
#include "egraph/serialize.h"

namespace {

using namespace l3c::egraph;
using Clock = std::chrono::steady_clock;

// Of the fast mode, in e-nodes looked at.
constexpr uint64_t kGreedyWork = 300'000;

struct Outcome {
  bool finite = false;
  double tree_dag = 0, greedy_dag = 0;
  double tree_seconds = 0, greedy_seconds = 0, exact_seconds = 0;
  ExactSolution exact;
};

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Outcome Measure(const SerializedGraph& graph, double seconds) {
  const SerializedProblem problem = ProblemOf(graph);
  Outcome outcome;
  Clock::time_point start = Clock::now();
  const PlainExtraction tree = PlainTree(problem.graph, problem.prices, problem.roots);
  outcome.tree_seconds = Since(start);
  outcome.finite = tree.feasible;
  if (!outcome.finite) return outcome;
  outcome.tree_dag = tree.dag_cost;
  start = Clock::now();
  outcome.greedy_dag =
      PlainGreedyDag(problem.graph, problem.prices, problem.roots, kGreedyWork).dag_cost;
  outcome.greedy_seconds = Since(start);
  ExactOptions options;
  options.max_seconds = seconds;
  start = Clock::now();
  outcome.exact = SolveExact(problem.graph, problem.prices, problem.roots, options);
  outcome.exact_seconds = Since(start);
  return outcome;
}

struct Folder {
  size_t files = 0, finite = 0, optimal = 0, worse_than_tree = 0;
  double tree_dag = 0, greedy_dag = 0, exact_dag = 0, bound = 0;
  double tree_seconds = 0, greedy_seconds = 0, exact_seconds = 0, largest_gap = 0;

  void Add(const Folder& o) {
    files += o.files;
    finite += o.finite;
    optimal += o.optimal;
    worse_than_tree += o.worse_than_tree;
    tree_dag += o.tree_dag;
    greedy_dag += o.greedy_dag;
    exact_dag += o.exact_dag;
    bound += o.bound;
    tree_seconds += o.tree_seconds;
    greedy_seconds += o.greedy_seconds;
    exact_seconds += o.exact_seconds;
    largest_gap = std::max(largest_gap, o.largest_gap);
  }
};

void PrintRow(const std::string& name, const Folder& f) {
  std::printf("%-14s %5zu %6zu %7zu  %14.6g %14.6g %14.6g %14.6g  %7.2f%%  %7.2f %7.2f %8.2f\n",
              name.c_str(), f.files, f.finite, f.optimal, f.tree_dag, f.greedy_dag, f.exact_dag,
              f.bound, 100 * f.largest_gap, f.tree_seconds, f.greedy_seconds, f.exact_seconds);
}

int Usage() {
  std::fprintf(stderr,
               "usage: extraction_bench --data DIR [--seconds S] [--files] [--filter TEXT]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path data;
  double seconds = 10;
  bool each = false;
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--files") {
      each = true;
    } else if (i + 1 == argc) {
      return Usage();
    } else if (arg == "--data") {
      data = argv[++i];
    } else if (arg == "--seconds") {
      seconds = std::atof(argv[++i]);
    } else if (arg == "--filter") {
      filter = argv[++i];
    } else {
      return Usage();
    }
  }
  std::error_code error;
  if (data.empty() || !std::filesystem::is_directory(data, error)) return Usage();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".json") continue;
    if (path.string().find(filter) != std::string::npos) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  if (!LinearSolver::Available()) std::printf("built without COIN-OR Cbc: nothing is branched\n");

  std::map<std::string, Folder> folders;
  for (const std::filesystem::path& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string name = std::filesystem::relative(path, data).string();
    const SerializedResult read = ReadSerialized(text, name);
    Folder& folder = folders[std::filesystem::relative(path.parent_path(), data).string()];
    ++folder.files;
    if (!read.ok()) {
      std::printf("%s\n", read.error.c_str());
      continue;
    }
    const Outcome o = Measure(read.graph, seconds);
    if (!o.finite || !o.exact.feasible) {
      std::printf("%s: no finite extraction\n", name.c_str());
      continue;
    }
    Folder one;
    one.finite = 1;
    one.optimal = o.exact.optimal;
    one.worse_than_tree = o.greedy_dag > o.tree_dag * (1 + 1e-9);
    one.tree_dag = o.tree_dag;
    one.greedy_dag = o.greedy_dag;
    one.exact_dag = o.exact.cost;
    one.bound = o.exact.lower_bound;
    one.tree_seconds = o.tree_seconds;
    one.greedy_seconds = o.greedy_seconds;
    one.exact_seconds = o.exact_seconds;
    one.largest_gap = o.exact.gap;
    folder.Add(one);
    if (!each) continue;
    std::printf(
        "%s: tree %.9g, greedy %.9g in %.3f s, exact %.9g%s gap %.4f%% in %.3f s; "
        "nodes %llu -> %llu, parts %llu, branch nodes %llu, cycle cuts %llu\n",
        name.c_str(), o.tree_dag, o.greedy_dag, o.greedy_seconds, o.exact.cost,
        o.exact.optimal ? " (optimal)" : "", 100 * o.exact.gap, o.exact_seconds,
        static_cast<unsigned long long>(o.exact.nodes),
        static_cast<unsigned long long>(o.exact.reduced_nodes),
        static_cast<unsigned long long>(o.exact.parts),
        static_cast<unsigned long long>(o.exact.branch_nodes),
        static_cast<unsigned long long>(o.exact.cycle_cuts));
    std::fflush(stdout);
  }
  std::printf("\n%-14s %5s %6s %7s  %14s %14s %14s %14s  %8s  %7s %7s %8s\n", "folder", "files",
              "finite", "optimal", "tree DAG", "greedy DAG", "exact DAG", "bound", "max gap",
              "tree s", "greedy s", "exact s");
  Folder total;
  for (const auto& [name, folder] : folders) {
    PrintRow(name, folder);
    total.Add(folder);
  }
  PrintRow("all", total);
  if (total.worse_than_tree > 0) {
    std::printf("greedy is dearer than the tree optimum on %zu files\n", total.worse_than_tree);
  }
  return 0;
}
