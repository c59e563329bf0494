#include "layers/l0/lower/repeat_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <utility>

namespace l3c::l0::lower {

RepeatOptions AllRepeats(const LaunchGraph& graph) {
  RepeatOptions options(graph.ops.size());
  for (int32_t s = 0; s < graph.end(); ++s) {
    options[s].assign(graph.ops.size(), Repeat::kNever);
    for (int32_t op = 0; op < graph.turn; ++op) {
      if (graph.MayRepeat(op, s)) options[s][op] = Repeat::kFree;
    }
  }
  return options;
}

// Steps from one choice to better ones.
class RepeatSearch::Improver {
 public:
  Improver(const LaunchGraph& graph, LiveBytes& live, int64_t bound, const RepeatOptions& options,
           uint64_t max_work)
      : g_(graph),
        live_(live),
        bound_(bound),
        options_(options),
        max_work_(live.work() + max_work) {}

  // Adds repeats until all fits, each the one that frees most for its cost, or by a lottery in
  // which those do best. False when nothing that was tried helps.
  bool Repair(Repeats& repeats, std::mt19937_64* lottery = nullptr) {
    double over = Over(repeats);
    while (over > 0) {
      if (live_.work() > max_work_) return false;
      std::optional<Repeats> best;
      double best_rate = 0;
      double best_over = over;
      for (std::vector<std::pair<int32_t, int32_t>>& added : Drops(repeats)) {
        Repeats tried = repeats;
        double seconds = 0;
        for (const auto& [s, op] : added) {
          if (Add(tried, s, op)) seconds += g_.ops[op].seconds;
        }
        const double left = Over(tried);
        if (left >= over) continue;
        double rate = (over - left) / (seconds + kSmallSeconds);
        if (lottery) rate *= static_cast<double>(1 + (*lottery)() % 64);
        if (!best || rate > best_rate) {
          best = std::move(tried);
          best_rate = rate;
          best_over = left;
        }
      }
      if (!best) return false;
      repeats = *std::move(best);
      over = best_over;
    }
    return true;
  }

  // Takes away what is not needed, dearest first, or in any order.
  void Descend(Repeats& repeats, std::mt19937_64* lottery = nullptr) {
    std::vector<std::pair<int32_t, int32_t>> all = List(repeats);
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return g_.ops[a.second].seconds > g_.ops[b.second].seconds;
    });
    for (size_t i = all.size(); lottery && i > 1; --i) {
      std::swap(all[i - 1], all[(*lottery)() % i]);
    }
    for (const auto& [s, op] : all) {
      if (live_.work() > max_work_) return;
      if (options_[s][op] == Repeat::kAlways) continue;
      Remove(repeats, s, op);
      if (live_.Peak(repeats) > bound_) Add(repeats, s, op);
    }
  }

  // Takes some away at random and mends what then does not fit; wanders off a little from the best,
  // and comes back.
  void Shake(Repeats& best) {
    double least = SecondsOf(g_, best);
    Repeats current = best;
    double seconds = least;
    int idle = 0;
    std::mt19937_64 engine(1);
    while (least > 0 && live_.work() <= max_work_) {
      if (++idle % kComeBack == 0) current = best, seconds = least;
      Repeats tried = current;
      const std::vector<std::pair<int32_t, int32_t>> all = List(current);
      if (all.empty()) return;
      const auto& pick = all[engine() % all.size()];
      const uint64_t kind = engine() % 4;
      const uint64_t count = 1 + engine() % 4;
      for (const auto& [s, op] : all) {
        if (options_[s][op] == Repeat::kAlways) continue;
        bool out = std::make_pair(s, op) == pick;
        if (kind == 0) out |= op == pick.second;
        if (kind == 1) out |= s == pick.first;
        if (kind == 2) out |= engine() % all.size() < count;
        if (out) Remove(tried, s, op);
      }
      if (kind == 3) Move(tried, pick, engine);
      std::mt19937_64* lottery = engine() % 4 ? &engine : nullptr;
      if (!Repair(tried, lottery)) continue;
      Descend(tried, engine() % 2 ? &engine : nullptr);
      const double now = SecondsOf(g_, tried);
      if (live_.Peak(tried) > bound_) continue;
      if (now < least) best = tried, least = now, idle = 0;
      if (now <= seconds || now <= least * (1 + kWander * static_cast<double>(engine() % 8))) {
        current = std::move(tried);
        seconds = now;
      }
    }
  }

 private:
  static constexpr double kSmallSeconds = 1e-12;
  static constexpr size_t kMostDrops = 48;
  static constexpr int kComeBack = 64;         // after so many moves that brought nothing
  static constexpr double kWander = 1.0 / 32;  // of the least, times 0 to 7

  static bool Add(Repeats& repeats, int32_t s, int32_t op) {
    std::vector<int32_t>& ops = repeats[s];
    const auto it = std::lower_bound(ops.begin(), ops.end(), op);
    if (it != ops.end() && *it == op) return false;
    ops.insert(it, op);
    return true;
  }

  static void Remove(Repeats& repeats, int32_t s, int32_t op) { std::erase(repeats[s], op); }

  std::vector<std::pair<int32_t, int32_t>> List(const Repeats& repeats) const {
    std::vector<std::pair<int32_t, int32_t>> all;
    for (int32_t s = 0; s < g_.end(); ++s) {
      for (int32_t op : repeats[s]) all.emplace_back(s, op);
    }
    return all;
  }

  // A repeat somewhere else.
  void Move(Repeats& repeats, const std::pair<int32_t, int32_t>& from, std::mt19937_64& engine) {
    const int32_t op = from.second;
    const int32_t s = op + 1 + static_cast<int32_t>(engine() % (g_.ops.size() - op - 1));
    if (options_[s][op] != Repeat::kNever) Add(repeats, s, op);
  }

  // Bytes above the bound, over all launches.
  double Over(const Repeats& repeats) {
    double over = 0;
    for (int64_t bytes : live_.Profile(OrderOf(g_, repeats))) {
      if (bytes > bound_) over += static_cast<double>(bytes - bound_);
    }
    return over;
  }

  // What could be run again so that less lives where most does: each a list of (position, op).
  std::vector<std::vector<std::pair<int32_t, int32_t>>> Drops(const Repeats& repeats) {
    std::vector<int32_t> order, segment;
    for (int32_t op = 0; op < g_.end(); ++op) {
      for (int32_t again : repeats[op]) order.push_back(again), segment.push_back(op);
      order.push_back(op);
      segment.push_back(op);
    }
    const std::vector<int64_t>& profile = live_.Profile(order);
    const size_t peak = std::max_element(profile.begin(), profile.end()) - profile.begin();
    // By value: the first launch behind the peak that reads it before it is made anew; and whether
    // the launch at the peak has to do with it.
    std::vector<size_t> next(g_.values.size(), 0);
    std::vector<uint8_t> renewed(g_.values.size(), 0);
    for (size_t i = peak; i < order.size(); ++i) {
      const LaunchGraph::Op& op = g_.ops[order[i]];
      for (int32_t v : op.reads) {
        if (!renewed[v]) next[v] = i, renewed[v] = 1;
      }
      for (int32_t v : op.writes) renewed[v] = 1;
      if (i == peak) {
        for (int32_t v : op.reads) next[v] = 0;
      }
    }
    std::vector<uint8_t> made(g_.values.size(), 0);
    for (size_t i = 0; i < peak; ++i) {
      for (int32_t v : g_.ops[order[i]].writes) made[v] = 1;
    }
    std::vector<int32_t> live;
    for (int32_t v = 0; v < static_cast<int32_t>(g_.values.size()); ++v) {
      if (next[v] > 0 && made[v] && g_.values[v].maker < g_.turn) live.push_back(v);
    }
    std::stable_sort(live.begin(), live.end(),
                     [&](int32_t a, int32_t b) { return g_.values[a].bytes > g_.values[b].bytes; });
    if (live.size() > kMostDrops) live.resize(kMostDrops);
    std::vector<std::vector<std::pair<int32_t, int32_t>>> drops;
    for (int32_t v : live) {
      // Repeats stand before the launch that they serve.
      const int32_t s = segment[next[v]];
      if (s == segment[peak] || options_[s][g_.values[v].maker] == Repeat::kNever) {
        continue;
      }
      drops.push_back({{s, g_.values[v].maker}});
      // With all that does not live there by itself, as deep as it goes.
      std::vector<uint8_t> there = LiveBefore(order, segment, s);
      std::vector<std::pair<int32_t, int32_t>> deep;
      std::vector<int32_t> open = {g_.values[v].maker};
      std::set<int32_t> seen;
      bool possible = true;
      while (!open.empty() && possible) {
        const int32_t op = open.back();
        open.pop_back();
        if (!seen.insert(op).second) continue;
        possible = options_[s][op] != Repeat::kNever;
        deep.emplace_back(s, op);
        for (int32_t a : g_.ops[op].reads) {
          if (!there[a]) open.push_back(g_.values[a].maker);
        }
      }
      if (possible && deep.size() > 1) drops.push_back(std::move(deep));
    }
    return drops;
  }

  // What lives just before the launches of segment s begin.
  std::vector<uint8_t> LiveBefore(const std::vector<int32_t>& order,
                                  const std::vector<int32_t>& segment, int32_t s) const {
    std::vector<uint8_t> live(g_.values.size(), 0);
    for (size_t i = order.size(); i-- > 0 && segment[i] >= s;) {
      for (int32_t v : g_.ops[order[i]].writes) live[v] = 0;
      for (int32_t v : g_.ops[order[i]].reads) live[v] = 1;
    }
    return live;
  }

  const LaunchGraph& g_;
  LiveBytes& live_;
  const int64_t bound_;
  const RepeatOptions& options_;
  const uint64_t max_work_;
};

RepeatSearch::RepeatSearch(const LaunchGraph& graph, uint64_t max_work)
    : graph_(graph), max_work_(max_work), live_(graph) {}

Repeats RepeatSearch::Obey(Repeats repeats, const RepeatOptions& options) const {
  // What may not run again here runs again a little earlier, where it may.
  for (int32_t s = graph_.end(); s-- > 0;) {
    for (int32_t op : repeats[s]) {
      if (options[s][op] == Repeat::kNever && s > op + 1) repeats[s - 1].push_back(op);
    }
    std::erase_if(repeats[s], [&](int32_t op) { return options[s][op] == Repeat::kNever; });
  }
  for (int32_t s = 0; s < graph_.end(); ++s) {
    for (int32_t op = 0; op < graph_.turn; ++op) {
      if (options[s][op] == Repeat::kAlways) repeats[s].push_back(op);
    }
    std::sort(repeats[s].begin(), repeats[s].end());
    repeats[s].erase(std::unique(repeats[s].begin(), repeats[s].end()), repeats[s].end());
  }
  return repeats;
}

RepeatChoice RepeatSearch::Judge(Repeats repeats) {
  RepeatChoice choice;
  choice.seconds = SecondsOf(graph_, repeats);
  choice.peak = live_.Peak(repeats);
  choice.repeats = std::move(repeats);
  return choice;
}

std::optional<RepeatChoice> RepeatSearch::FromIntervals(int64_t bound,
                                                        const RepeatOptions& options) {
  if (!intervals_) {
    intervals_ =
        std::make_unique<IntervalSchedules>(graph_, live_.Peak(Repeats(graph_.ops.size())));
  }
  const IntervalSchedules::Front& front = intervals_->front();
  // What a point says of its bytes is no less than what its order takes, mostly.
  std::optional<RepeatChoice> best;
  size_t low = 0;
  size_t high = front.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    RepeatChoice choice = Judge(Obey(intervals_->Schedule(front[middle]), options));
    const bool fits = choice.peak <= bound;
    if (fits && (!best || choice.seconds < best->seconds)) best = std::move(choice);
    if (fits) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return best;
}

std::optional<RepeatChoice> RepeatSearch::Within(int64_t bound, const RepeatOptions& options) {
  const Repeats none = Obey(Repeats(graph_.ops.size()), options);
  RepeatChoice all_saved = Judge(none);
  if (all_saved.peak <= bound) return all_saved;
  std::optional<RepeatChoice> best = FromIntervals(bound, options);
  Improver improver(graph_, live_, bound, options, max_work_);
  if (best) improver.Descend(best->repeats);
  Repeats dropped = none;
  Improver dropper(graph_, live_, bound, options, max_work_ / 4);
  if (dropper.Repair(dropped)) {
    dropper.Descend(dropped);
    if (!best || SecondsOf(graph_, dropped) < SecondsOf(graph_, best->repeats)) {
      best = Judge(std::move(dropped));
    }
  }
  if (!best) {
    RepeatChoice least = Smallest(options);
    if (least.peak > bound) return std::nullopt;
    best = std::move(least);
    improver.Descend(best->repeats);
  }
  improver.Shake(best->repeats);
  return Judge(std::move(best->repeats));
}

std::optional<RepeatChoice> RepeatSearch::Near(const RepeatChoice& start, int64_t bound,
                                               const RepeatOptions& options) {
  Repeats repeats = Obey(start.repeats, options);
  Improver improver(graph_, live_, bound, options, max_work_ / 16);
  if (!improver.Repair(repeats)) return std::nullopt;
  improver.Descend(repeats);
  return Judge(std::move(repeats));
}

RepeatChoice RepeatSearch::Smallest(const RepeatOptions& options) {
  RepeatChoice least = Judge(Obey(Repeats(graph_.ops.size()), options));
  const auto consider = [&](RepeatChoice choice) {
    if (choice.peak < least.peak) least = std::move(choice);
  };
  if (auto found = FromIntervals(-1, options)) consider(*std::move(found));
  const IntervalSchedules::Front& front = intervals_->front();
  for (size_t i = 0; i < std::min<size_t>(front.size(), 16); ++i) {
    consider(Judge(Obey(intervals_->Schedule(front[i]), options)));
  }
  // Below, step by step, as long as dropping more helps.
  for (int step = 0; step < 64; ++step) {
    Improver improver(graph_, live_, least.peak - 1, options, max_work_ / 64);
    Repeats repeats = least.repeats;
    if (!improver.Repair(repeats)) break;
    consider(Judge(std::move(repeats)));
  }
  return least;
}

}  // namespace l3c::l0::lower
