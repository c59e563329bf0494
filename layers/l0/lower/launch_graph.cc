#include "layers/l0/lower/launch_graph.h"

#include <algorithm>

namespace l3c::l0::lower {

double SecondsOf(const LaunchGraph& graph, const Repeats& repeats) {
  double seconds = 0;
  for (const std::vector<int32_t>& ops : repeats) {
    for (int32_t op : ops) seconds += graph.ops[op].seconds;
  }
  return seconds;
}

int32_t FindTurn(const LaunchGraph& graph) {
  std::vector<int32_t> last(graph.values.size(), -1);
  for (int32_t op = 0; op < graph.end(); ++op) {
    for (int32_t v : graph.ops[op].reads) last[v] = op;
  }
  std::vector<int64_t> change(graph.ops.size() + 1);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (last[v] < 0) continue;
    // What lives long is what the backward pass reads; gradients come and go.
    const int64_t life = last[v] - graph.values[v].maker;
    const int64_t weight = life * life;
    change[graph.values[v].maker + 1] += weight;
    change[last[v] + 1] -= weight;
  }
  int32_t turn = 0;
  int64_t across = 0;
  int64_t most = 0;
  for (int32_t at = 0; at < graph.end(); ++at) {
    across += change[at];
    if (across > most) most = across, turn = at;
  }
  return turn;
}

std::vector<int32_t> OrderOf(const LaunchGraph& graph, const Repeats& repeats) {
  std::vector<int32_t> order;
  for (int32_t op = 0; op < graph.end(); ++op) {
    order.insert(order.end(), repeats[op].begin(), repeats[op].end());
    order.push_back(op);
  }
  return order;
}

LiveBytes::LiveBytes(const LaunchGraph& graph) : graph_(graph), live_(graph.values.size()) {}

const std::vector<int64_t>& LiveBytes::Profile(const std::vector<int32_t>& order) {
  profile_.assign(order.size(), 0);
  std::fill(live_.begin(), live_.end(), uint8_t{0});
  work_ += order.size();
  int64_t live = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const LaunchGraph::Op& op = graph_.ops[order[i]];
    int64_t idle_results = 0;
    for (int32_t v : op.writes) {
      if (!live_[v]) idle_results += graph_.values[v].bytes;
    }
    for (int32_t v : op.reads) {
      if (live_[v]) continue;
      live_[v] = 1;
      live += graph_.values[v].bytes;
    }
    profile_[i] = live + idle_results;
    for (int32_t v : op.writes) {
      if (!live_[v]) continue;
      live_[v] = 0;
      live -= graph_.values[v].bytes;
    }
  }
  return profile_;
}

int64_t LiveBytes::Peak(const std::vector<int32_t>& order) {
  const std::vector<int64_t>& profile = Profile(order);
  return profile.empty() ? 0 : *std::max_element(profile.begin(), profile.end());
}

}  // namespace l3c::l0::lower
