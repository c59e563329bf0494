// math-microbenchmark in the process: the e-nodes after every step are checked, the time of each is
// printed, and the memory at the end.
//
//   math_bench [--steps N] [--repeat R] [--threads N]
//
// Steps: 11 by default, 12 at most (16 million e-nodes, 4 GB). Small measurements (loading, the 35
// e-nodes of the start, steps 1 to 5) are medians of many runs, the rest medians of R (3). Times
// are of the wall clock beside processor seconds of the process: on a busy machine the latter say
// more. Bytes are EGraph::Bytes() and, as a check, the growth of the peak resident set.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/program.h"
#include "egraph/run.h"
#include "tests/egraph/math_workload.h"

namespace {

using l3c::egraph::Budget;
using l3c::egraph::EGraph;
using l3c::egraph::LoadProgram;
using l3c::egraph::ProgramResult;
using l3c::egraph::RunReport;
using l3c::egraph::RunSchedule;
using l3c::egraph::Schedule;
namespace math = l3c::egraph::math_workload;

struct Times {
  double wall = 0;       // seconds
  double processor = 0;  // seconds of all threads
};

Times Now() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
      seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

size_t PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

void Load(EGraph& graph, const char* text) {
  const ProgramResult result = LoadProgram(graph, text, "math.egg");
  if (result.ok()) return;
  std::fprintf(stderr, "%s\n", result.status.ToString().c_str());
  std::exit(1);
}

// Wall time of `measured` on the graph that `prepare` makes, in microseconds, the median of `runs`.
double Microseconds(size_t runs, const std::function<void(EGraph&)>& prepare,
                    const std::function<void(EGraph&)>& measured) {
  std::vector<double> times;
  for (size_t r = 0; r < runs; ++r) {
    EGraph graph;
    prepare(graph);
    const double start = Now().wall;
    measured(graph);
    times.push_back((Now().wall - start) * 1e6);
  }
  return Median(times);
}

uint32_t g_threads = 1;

// Gives the seconds of planning.
double Step(EGraph& graph, size_t step) {
  Budget budget;
  budget.threads = g_threads;
  budget.max_nodes = 64'000'000;
  budget.max_bytes = size_t{4} << 30;
  const RunReport report = RunSchedule(graph, Schedule::Run(l3c::egraph::kDefaultRuleset), budget);
  if (report.nodes == math::kNodes[step]) return report.planning_seconds;
  std::fprintf(stderr, "step %zu: %llu e-nodes instead of %zu (%s)\n", step,
               static_cast<unsigned long long>(report.nodes), math::kNodes[step],
               std::string(StopReasonName(report.stop)).c_str());
  std::exit(1);
}

void Small() {
  const size_t runs = 301;
  std::vector<double> empty;
  for (size_t r = 0; r < runs; ++r) {
    const double start = Now().wall;
    const EGraph graph;
    empty.push_back((Now().wall - start) * 1e6);
  }
  const auto declare = [](EGraph& g) { Load(g, math::kLanguage); };
  const auto load = [](EGraph& g) {
    Load(g, math::kLanguage);
    Load(g, math::kRules);
  };
  const auto insert = [](EGraph& g) {
    math::AddTerms(g, math::Language(g));
    g.Rebuild();
  };
  const double inserted = Microseconds(runs, declare, [](EGraph& g) {
    static thread_local math::Language language(g);
    math::AddTerms(g, language);
    g.Rebuild();
  });
  const double loaded = Microseconds(runs, [](EGraph&) {}, load);
  std::vector<double> planning;
  const double steps = Microseconds(
      runs,
      [&](EGraph& g) {
        load(g);
        insert(g);
        planning.push_back(0);
      },
      [&](EGraph& g) {
        for (size_t step = 1; step <= 5; ++step) planning.back() += Step(g, step) * 1e6;
      });
  std::printf("an empty e-graph         %8.1f us\n", Median(empty));
  std::printf("language and 24 rules    %8.1f us\n", loaded);
  std::printf("insert 35, rebuild       %8.1f us\n", inserted);
  std::printf("steps 1 to 5             %8.1f us\n", steps);
  std::printf("  of it planning         %8.1f us\n", Median(planning));
}

int Usage() {
  std::fprintf(stderr, "usage: math_bench [--steps N] [--repeat R] [--threads N]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  size_t steps = 11;
  size_t repeat = 3;
  for (int i = 1; i < argc; i += 2) {
    char* end = nullptr;
    const size_t value = i + 1 < argc ? std::strtoull(argv[i + 1], &end, 10) : 0;
    if (end == nullptr || end == argv[i + 1] || *end != '\0') return Usage();
    if (std::strcmp(argv[i], "--steps") == 0) {
      steps = std::min<size_t>(value, std::size(math::kNodes) - 1);
    } else if (std::strcmp(argv[i], "--repeat") == 0) {
      repeat = std::max<size_t>(value, 1);
    } else if (std::strcmp(argv[i], "--threads") == 0) {
      g_threads = static_cast<uint32_t>(std::max<size_t>(value, 1));
    } else {
      return Usage();
    }
  }
  Small();

  std::vector<std::vector<double>> wall(steps + 1), processor(steps + 1);
  size_t bytes = 0;
  const size_t resident = PeakBytes();
  for (size_t r = 0; r < repeat; ++r) {
    EGraph graph;
    Load(graph, math::kLanguage);
    Load(graph, math::kRules);
    Load(graph, math::kTerms);
    const Times begin = Now();
    for (size_t step = 1; step <= steps; ++step) {
      const Times start = Now();
      Step(graph, step);
      const Times end = Now();
      wall[step].push_back((end.wall - start.wall) * 1e3);
      processor[step].push_back((end.processor - start.processor) * 1e3);
    }
    const Times end = Now();
    wall[0].push_back((end.wall - begin.wall) * 1e3);
    processor[0].push_back((end.processor - begin.processor) * 1e3);
    bytes = graph.Bytes();
  }
  std::printf("\nstep     e-nodes      wall ms  processor ms\n");
  for (size_t step = 1; step <= steps; ++step) {
    std::printf("%4zu  %10zu  %11.3f  %12.3f\n", step, math::kNodes[step], Median(wall[step]),
                Median(processor[step]));
  }
  std::printf(" all              %11.3f  %12.3f\n", Median(wall[0]), Median(processor[0]));
  const auto nodes = static_cast<double>(math::kNodes[steps]);
  std::printf("\nbytes per e-node: %.1f counted, %.1f peak resident\n",
              static_cast<double>(bytes) / nodes,
              static_cast<double>(PeakBytes() - resident) / nodes);
  return 0;
}
