// What is saved and what is computed again, against optima found by other means.
#include "layers/l0/lower/repeat_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "egraph/extract/linear_solver.h"
#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/kept_terms.h"
#include "tests/layers/l0/lower/chain_oracle.h"
#include "tests/layers/l0/lower/single_recompute_oracle.h"

namespace l3c::l0::lower {
namespace {

// How often with fresh numbers: once, and more in the nightly preset.
int Rounds() {
  const char* rounds = std::getenv("L3C_ROUNDS");
  return rounds ? std::atoi(rounds) : 1;
}

Chain RandomChain(int layers, std::mt19937_64& engine) {
  Chain chain;
  chain.forward.push_back(0);
  chain.value.push_back(0);
  chain.gradient.push_back(0);
  for (int l = 1; l <= layers; ++l) {
    chain.forward.push_back(static_cast<int64_t>(1 + engine() % 20));
    chain.value.push_back(static_cast<int64_t>(1 + engine() % 12));
    chain.gradient.push_back(static_cast<int64_t>(1 + engine() % 12));
  }
  return chain;
}

// Runs the launches one by one, each result a slot of its own from its launch to its last reader.
int64_t ReplayedPeak(const LaunchGraph& graph, const Repeats& repeats) {
  struct Slot {
    int64_t bytes;
    size_t from, to;
  };
  std::vector<Slot> slots;
  std::vector<int64_t> latest(graph.values.size(), -1);
  size_t time = 0;
  const auto launch = [&](int32_t op) {
    for (int32_t v : graph.ops[op].reads) {
      EXPECT_GE(latest[v], 0) << "read before it was made";
      if (latest[v] >= 0) slots[static_cast<size_t>(latest[v])].to = time;
    }
    for (int32_t v : graph.ops[op].writes) {
      latest[v] = static_cast<int64_t>(slots.size());
      slots.push_back({graph.values[v].bytes, time, time});
    }
    ++time;
  };
  for (int32_t s = 0; s < graph.end(); ++s) {
    for (int32_t op : repeats[s]) {
      EXPECT_TRUE(graph.MayRepeat(op, s));
      launch(op);
    }
    launch(s);
  }
  int64_t peak = 0;
  for (size_t t = 0; t < time; ++t) {
    int64_t live = 0;
    for (const Slot& slot : slots) live += slot.from <= t && t <= slot.to ? slot.bytes : 0;
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(RepeatSearchTest, ChainsAreWithinAPercentOfTheOptimum) {
  std::mt19937_64 engine(3);
  std::vector<int> sizes;
  for (int round = 0; round < Rounds(); ++round) {
    for (int layers : {8, 9, 16, 23, 40, 64}) sizes.push_back(layers);
  }
  for (int layers : sizes) {
    const Chain chain = RandomChain(layers, engine);
    LaunchGraph graph = GraphOf(chain);
    graph.turn = FindTurn(graph);
    LiveBytes live(graph);
    const int64_t all = live.Peak(Repeats(graph.ops.size()));
    const std::vector<int64_t> optimum = BestCosts(chain, all);
    int64_t least = 0;
    while (optimum[least] < 0) ++least;
    int64_t once = 0;
    for (int64_t cost : chain.forward) once += cost;
    ASSERT_EQ(optimum[all], once);
    if (graph.turn == layers) {
      // What the search starts from is that optimum itself.
      size_t at = 0;
      const IntervalSchedules intervals(graph, all);
      for (int64_t m = least; m <= all; ++m) {
        while (at + 1 < intervals.front().size() && intervals.front()[at + 1].bytes <= m) ++at;
        EXPECT_EQ(intervals.front()[at].seconds, static_cast<double>(optimum[m]));
      }
    }
    RepeatSearch search(graph, 200'000);
    const RepeatOptions options = AllRepeats(graph);
    EXPECT_EQ(search.Smallest(options).peak, least) << layers;
    EXPECT_FALSE(search.Within(least - 1, options)) << layers;
    for (int64_t bound :
         {least, least + 1, least + 2, least + (all - least) / 8, least + (all - least) / 3,
          std::max(least, all - all / 3), all - 1, all}) {
      const auto found = search.Within(bound, options);
      ASSERT_TRUE(found) << layers << " layers, " << bound;
      EXPECT_EQ(ReplayedPeak(graph, found->repeats), found->peak);
      EXPECT_LE(found->peak, bound);
      EXPECT_LE(static_cast<double>(once) + found->seconds,
                1.01 * static_cast<double>(optimum[bound]))
          << layers << " layers, " << bound << " of " << all;
    }
  }
}

// A deep step has terms for fewer segments, not none at all.
TEST(KeptTermsTest, TakeTheRowsThatThereAre) {
  std::mt19937_64 engine(5);
  LaunchGraph graph = GraphOf(RandomChain(64, engine));
  graph.turn = FindTurn(graph);
  const RuleSources all = EmbeddedRules();
  const std::vector<RuleSource> rules = {all.at("kernel_terms"), all.at("checkpointing")};
  const int64_t saved = LiveBytes(graph).Peak(Repeats(graph.ops.size()));
  int64_t least_of_few = 0;
  for (const uint64_t rows : {5'000, 500'000}) {
    egraph::Budget budget;
    budget.max_nodes = rows;
    const KeptTerms terms(graph, rules, egraph::Numerics::kExact, budget);
    EXPECT_EQ(terms.error(), "");
    ASSERT_FALSE(terms.report().cut_short()) << rows;
    RepeatSearch search(graph, 50'000);
    const RepeatChoice least = search.Smallest(terms.options());
    EXPECT_LT(least.peak, saved / 2);
    const Repeats read = terms.Read(terms.Extract(least.repeats));
    EXPECT_LE(ReplayedPeak(graph, read), least.peak);
    if (rows == 5'000) {
      least_of_few = least.peak;
    } else {
      EXPECT_LE(least.peak, least_of_few);
    }
  }
}

// A network from what each of its layers reads. Its backward launch reads what it read, its value
// and the gradients that the launches behind it have left for it, and leaves one for each operand.
LaunchGraph NetworkOf(const std::vector<std::vector<int32_t>>& operands,
                      const std::vector<int64_t>& bytes, const std::vector<double>& seconds) {
  LaunchGraph graph;
  const int32_t n = static_cast<int32_t>(operands.size());
  graph.turn = n;
  graph.ops.resize(static_cast<size_t>(2 * n + 1));
  std::vector<std::vector<int32_t>> gradients(operands.size());
  for (int32_t l = 0; l < n; ++l) {
    graph.values.push_back({bytes[l], l});
    graph.ops[l] = {seconds[l], operands[l], {l}, 2 * n};
  }
  for (int32_t l = n; l-- > 0;) {
    LaunchGraph::Op& op = graph.ops[2 * n - 1 - l];
    op.reads = operands[l];
    op.reads.push_back(l);
    op.reads.insert(op.reads.end(), gradients[l].begin(), gradients[l].end());
    for (int32_t a : operands[l]) {
      const int32_t gradient = static_cast<int32_t>(graph.values.size());
      graph.values.push_back({bytes[a], 2 * n - 1 - l});
      op.writes.push_back(gradient);
      gradients[a].push_back(gradient);
    }
  }
  return graph;
}

// Layers with a path around every second one.
LaunchGraph Residual(int32_t layers, std::mt19937_64& engine) {
  std::vector<std::vector<int32_t>> operands;
  std::vector<int64_t> bytes;
  std::vector<double> seconds;
  for (int32_t l = 0; l < layers; ++l) {
    std::vector<int32_t> reads;
    if (l >= 2 && l % 2 == 0) reads.push_back(l - 2);
    if (l >= 1) reads.push_back(l - 1);
    operands.push_back(reads);
    bytes.push_back(static_cast<int64_t>(1 + engine() % 12));
    seconds.push_back(static_cast<double>(1 + engine() % 20));
  }
  return NetworkOf(operands, bytes, seconds);
}

// Down, across and up again, each step up reading what the step down of its height has left.
LaunchGraph UShaped(int32_t depth, std::mt19937_64& engine) {
  std::vector<std::vector<int32_t>> operands;
  std::vector<int64_t> bytes;
  std::vector<double> seconds;
  for (int32_t l = 0; l < 2 * depth; ++l) {
    std::vector<int32_t> reads;
    if (l > depth) reads.push_back(2 * depth - 1 - l);
    if (l >= 1) reads.push_back(l - 1);
    operands.push_back(reads);
    const int32_t height = l < depth ? l : 2 * depth - 1 - l;
    bytes.push_back((int64_t{16} >> height) + static_cast<int64_t>(1 + engine() % 3));
    seconds.push_back(static_cast<double>(1 + engine() % 20));
  }
  return NetworkOf(operands, bytes, seconds);
}

void ExpectNoWorseThanSingleRecompute(LaunchGraph graph, const std::string& name) {
  LiveBytes live(graph);
  const int64_t all = live.Peak(Repeats(graph.ops.size()));
  const RepeatOptions options = AllRepeats(graph);
  RepeatSearch search(graph, 3'000'000);
  const int64_t least = search.Smallest(options).peak;
  EXPECT_FALSE(BestSingleRecompute(graph, least - 1)) << name;
  for (int64_t part = 0; part < 4; ++part) {
    const int64_t bound = least + (all - least) * part / 4;
    const auto found = search.Within(bound, options);
    ASSERT_TRUE(found) << name;
    EXPECT_LE(ReplayedPeak(graph, found->repeats), bound);
    const std::optional<double> single = BestSingleRecompute(graph, bound);
    if (single) {
      EXPECT_LE(found->seconds, *single + 1e-6) << name << " within " << bound;
    }
  }
}

TEST(RepeatSearchTest, ResidualAndUShapedNetworksAreNoWorseThanOneRecomputation) {
  if (!egraph::LinearSolver::Available()) GTEST_SKIP() << "Cbc is not here";
  std::mt19937_64 engine(5);
  for (int round = 0; round < Rounds(); ++round) {
    for (int32_t layers : {7, 8}) {
      ExpectNoWorseThanSingleRecompute(Residual(layers, engine),
                                       "residual " + std::to_string(layers));
    }
    for (int32_t depth : {3, 4}) {
      ExpectNoWorseThanSingleRecompute(UShaped(depth, engine), "u " + std::to_string(depth));
    }
  }
}

}  // namespace
}  // namespace l3c::l0::lower
