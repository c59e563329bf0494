#include "tests/layers/l0/lower/chain_oracle.h"

#include <algorithm>
#include <limits>

namespace l3c::l0::lower {

LaunchGraph GraphOf(const Chain& chain) {
  const int n = chain.layers();
  LaunchGraph graph;
  graph.turn = n;
  const auto a = [](int l) { return l - 1; };
  const auto d = [n](int l) { return n + l - 1; };
  graph.values.resize(static_cast<size_t>(2 * n - 1));
  graph.ops.resize(static_cast<size_t>(2 * n + 1));
  for (int l = 1; l <= n; ++l) {
    LaunchGraph::Op& op = graph.ops[l - 1];
    op.seconds = static_cast<double>(chain.forward[l]);
    if (l > 1) op.reads = {a(l - 1)};
    op.writes = {a(l)};
    op.until = 2 * n;
    graph.values[a(l)] = {chain.value[l], l - 1};
  }
  for (int l = n; l >= 1; --l) {
    LaunchGraph::Op& op = graph.ops[2 * n - l];
    if (l > 1) op.reads.push_back(a(l - 1));
    op.reads.push_back(a(l));
    if (l < n) op.reads.push_back(d(l));
    if (l > 1) {
      op.writes = {d(l - 1)};
      graph.values[d(l - 1)] = {chain.gradient[l - 1], 2 * n - l};
    }
  }
  return graph;
}

std::vector<int64_t> BestCosts(const Chain& chain, int64_t most) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;
  const int n = chain.layers();
  const auto gradient = [&](int l) { return l == 0 || l == n ? 0 : chain.gradient[l]; };
  // best[i][j][m]: F(i+1) … and back to B(i+1), with a(i) there beside the m bytes, d(j) within.
  std::vector<std::vector<std::vector<int64_t>>> best(n + 1,
                                                      std::vector<std::vector<int64_t>>(n + 1));
  for (int length = 1; length <= n; ++length) {
    for (int i = 0; i + length <= n; ++i) {
      const int j = i + length;
      std::vector<int64_t>& costs = best[i][j];
      costs.assign(static_cast<size_t>(most + 1), kNever);
      const int64_t first = chain.value[i + 1];
      const int64_t back = gradient(i + 1) + first + gradient(i);  // of B(i+1)
      for (int64_t m = 0; m <= most; ++m) {
        if (length == 1) {
          if (m >= back) costs[m] = chain.forward[j];
          continue;
        }
        // Keep a(i+1) for B(i+1).
        if (m >= std::max(gradient(j) + first, back)) {
          costs[m] = std::min(costs[m], chain.forward[i + 1] + best[i + 1][j][m - first]);
        }
        // Keep a(k) while what follows it is undone, then run again from a(i).
        int64_t forward = 0;
        int64_t running = 0;
        for (int k = i + 1; k < j; ++k) {
          forward += chain.forward[k];
          running = std::max(running, chain.value[k] + (k > i + 1 ? chain.value[k - 1] : 0));
          if (m < gradient(j) + running || m < chain.value[k]) continue;
          costs[m] = std::min(costs[m], forward + best[k][j][m - chain.value[k]] + best[i][k][m]);
        }
      }
    }
  }
  std::vector<int64_t> result = best[0][n];
  for (int64_t& cost : result) {
    if (cost >= kNever) cost = -1;
  }
  return result;
}

}  // namespace l3c::l0::lower
