// What proofs cost: math-microbenchmark with the log off, on, and with redundant unions; then the
// size of proofs of random equalities, and the time to make and to check them.
//
//   proof_bench [STEPS [PROOFS [ROUNDS]]]       10 steps, 50 proofs, medians of 3 rounds
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "egraph/explain.h"
#include "egraph/program.h"
#include "egraph/proof_checker.h"
#include "egraph/run.h"
#include "tests/egraph/math_workload.h"

namespace {

using namespace l3c::egraph;

enum class Mode { kOff, kOn, kRedundant };

double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The run's processor time.
double Run(EGraph& graph, Mode mode, uint64_t steps) {
  if (mode != Mode::kOff) graph.EnableProofs({.redundant = mode == Mode::kRedundant});
  const std::string text =
      std::string(math_workload::kLanguage) + math_workload::kRules + math_workload::kTerms;
  if (!LoadProgram(graph, text, "math.egg").ok()) std::exit(1);
  Budget budget;
  budget.max_nodes = budget.max_matches = uint64_t{1} << 32;
  budget.max_bytes = uint64_t{8} << 30;
  const double start = Seconds();
  RunSchedule(graph, Schedule::Repeat(steps, Schedule::Run(kDefaultRuleset)), budget);
  return Seconds() - start;
}

void Explain(EGraph& graph, uint64_t proofs) {
  double start = Seconds();
  Explainer explainer(graph);
  std::printf("  index of the log: %.3f s\n", Seconds() - start);
  ProofChecker checker(graph);
  const auto ids = static_cast<uint32_t>(graph.proof_log()->class_nodes().size());
  std::vector<std::pair<uint32_t, uint32_t>> by_class;
  for (uint32_t id = 0; id < ids; ++id) by_class.emplace_back(graph.Find(Value{id}).bits, id);
  std::sort(by_class.begin(), by_class.end());
  std::mt19937 random(1);
  std::vector<size_t> sizes, first;
  double explaining = 0, checking = 0;
  while (sizes.size() < proofs) {
    const auto& x = by_class[random() % by_class.size()];
    const auto begin = std::lower_bound(by_class.begin(), by_class.end(), std::pair(x.first, 0u));
    const auto end = std::lower_bound(by_class.begin(), by_class.end(), std::pair(x.first + 1, 0u));
    const uint32_t y =
        (begin + static_cast<ptrdiff_t>(random() % static_cast<uint32_t>(end - begin)))->second;
    if (y == x.second) continue;
    start = Seconds();
    const std::optional<Proof> proof = explainer.Explain(Value{x.second}, Value{y});
    explaining += Seconds() - start;
    if (!proof) {
      std::printf("  no proof: %s\n", explainer.gap().c_str());
      std::exit(1);
    }
    start = Seconds();
    if (const auto wrong = checker.CheckEqual(*proof, Value{x.second}, Value{y})) {
      std::printf("  refused: %s\n", wrong->c_str());
      std::exit(1);
    }
    checking += Seconds() - start;
    sizes.push_back(proof->steps.size());
    first.push_back(proof->first_steps);
  }
  std::sort(sizes.begin(), sizes.end());
  std::sort(first.begin(), first.end());
  std::printf(
      "  %zu proofs, all checked: steps before shortening median %zu max %zu, after %zu and "
      "%zu; %.2f ms to make one, %.2f ms to check it\n",
      sizes.size(), first[first.size() / 2], first.back(), sizes[sizes.size() / 2], sizes.back(),
      1e3 * explaining / static_cast<double>(proofs), 1e3 * checking / static_cast<double>(proofs));
}

int Usage() {
  std::fprintf(stderr, "usage: proof_bench [STEPS [PROOFS [ROUNDS]]], each from 1 on\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t numbers[] = {10, 50, 3};
  if (argc > 4) return Usage();
  for (int i = 1; i < argc; ++i) {
    char* end = nullptr;
    numbers[i - 1] = std::strtoull(argv[i], &end, 10);
    // Without a step nothing is equal to anything else, and there is nothing to prove.
    if (end == argv[i] || *end != '\0' || numbers[i - 1] == 0) return Usage();
  }
  const auto [steps, proofs, rounds] = numbers;
  constexpr const char* kNames[] = {"off", "on", "on, redundant unions too"};
  for (int m = 0; m < 3; ++m) {
    std::vector<double> times;
    for (uint64_t round = 0; round < rounds; ++round) {
      EGraph graph;
      times.push_back(Run(graph, static_cast<Mode>(m), steps));
      if (round + 1 != rounds) continue;
      std::sort(times.begin(), times.end());
      const ProofLog* log = graph.proof_log();
      std::printf(
          "proofs %s: %.3f s, %zu nodes, %.1f bytes a node, of which %.1f log\n", kNames[m],
          times[times.size() / 2], graph.NodeCount(),
          static_cast<double>(graph.Bytes()) / static_cast<double>(graph.NodeCount()),
          log ? static_cast<double>(log->Bytes()) / static_cast<double>(graph.NodeCount()) : 0.0);
      if (log) Explain(graph, proofs);
    }
  }
}
