#include "layers/l0/lower/interval_schedule.h"

#include <algorithm>
#include <limits>

namespace l3c::l0::lower {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Of a front. Beyond, points that gain least are left out.
constexpr size_t kMostPoints = 4096;

}  // namespace

class IntervalSchedules::Solver {
 public:
  Solver(const LaunchGraph& graph, int64_t bound) : g_(graph), bound_(bound) {
    if (g_.turn <= 0) return;
    FindUses();
    Pin();
    ChooseCuts();
    FindDepths();
    FindBase();
    Solve();
  }

  const Front& front() const { return front_; }

  Repeats Schedule(const Point& point) const {
    Repeats repeats(g_.ops.size());
    Emit(0, blocks(), point.bytes, repeats);
    for (std::vector<int32_t>& ops : repeats) {
      std::sort(ops.begin(), ops.end());
      ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
    }
    return repeats;
  }

 private:
  // What running (i, k] takes, keeping a set of values.
  struct Run {
    double seconds = 0;
    int64_t peak = 0;  // while it runs
    int64_t kept = 0;  // in the end
    int32_t until = std::numeric_limits<int32_t>::max();
  };
  // A way to do C(i, j), given bytes: seconds of its own, the bytes that it takes itself, and
  // those that are held while the first part goes on.
  struct Way {
    double seconds = 0;
    int64_t least = 0;
    int64_t held = 0;
    int first = -1;   // C(first, j) goes on with `held` fewer bytes; −1: none
    int second = -1;  // C(i, second) follows with all of them; −1: none
  };

  int blocks() const { return static_cast<int>(cuts_.size()) - 1; }
  bool IsForward(int32_t v) const { return g_.values[v].maker < g_.turn; }
  bool Flows(int32_t v) const { return IsForward(v) && !pinned_[v]; }

  void FindUses() {
    const size_t n = g_.values.size();
    last_forward_.assign(n, -1);
    first_backward_.assign(n, g_.end());
    last_backward_.assign(n, -1);
    for (int32_t op = 0; op < g_.end(); ++op) {
      for (int32_t v : g_.ops[op].reads) {
        if (op < g_.turn) {
          last_forward_[v] = op;
        } else {
          first_backward_[v] = std::min(first_backward_[v], op);
          last_backward_[v] = op;
        }
      }
    }
  }

  // What is not made again: what is read at the very end, what cannot be made again, and what is
  // small beside the rest.
  void Pin() {
    int64_t all = 0;
    for (size_t v = 0; v < g_.values.size(); ++v) {
      if (IsForward(static_cast<int32_t>(v))) all += g_.values[v].bytes;
    }
    pinned_.assign(g_.values.size(), false);
    for (size_t v = 0; v < g_.values.size(); ++v) {
      if (!IsForward(static_cast<int32_t>(v)) || last_backward_[v] < 0) continue;
      const int32_t maker = g_.values[v].maker;
      pinned_[v] = last_backward_[v] == g_.end() - 1 || !g_.MayRepeat(maker, first_backward_[v]) ||
                   g_.values[v].bytes * kSmall < all;
    }
  }

  void ChooseCuts() {
    const int32_t n = g_.turn;
    std::vector<int64_t> across(static_cast<size_t>(n) + 1);
    for (size_t v = 0; v < g_.values.size(); ++v) {
      if (!Flows(static_cast<int32_t>(v))) continue;
      for (int32_t at = g_.values[v].maker + 1; at <= std::min(last_forward_[v], n); ++at) {
        across[at] += g_.values[v].bytes;
      }
    }
    std::vector<int32_t> inner;
    for (int32_t at = 1; at < n; ++at) inner.push_back(at);
    if (inner.size() > kMostCuts) {
      // The cheapest of every stretch of equal length.
      std::vector<int32_t> kept;
      for (size_t part = 0; part < kMostCuts; ++part) {
        const size_t from = part * inner.size() / kMostCuts;
        const size_t to = (part + 1) * inner.size() / kMostCuts;
        size_t best = from;
        for (size_t i = from; i < to; ++i) {
          if (across[inner[i]] < across[inner[best]]) best = i;
        }
        kept.push_back(inner[best]);
      }
      inner = std::move(kept);
    }
    cuts_.push_back(0);
    cuts_.insert(cuts_.end(), inner.begin(), inner.end());
    cuts_.push_back(n);
  }

  // By segment: how deep in the forward pass it and those after it read; by cut: the first segment
  // that reads nothing behind it.
  void FindDepths() {
    first_.assign(cuts_.size(), g_.end());
    int32_t depth = 0;
    std::vector<int> block(g_.ops.size());
    for (int32_t s = g_.end(); s-- > g_.turn;) {
      for (int32_t v : g_.ops[s].reads) {
        if (Flows(v)) depth = std::max(depth, g_.values[v].maker + 1);
      }
      const auto cut = std::lower_bound(cuts_.begin(), cuts_.end(), depth) - cuts_.begin();
      for (size_t b = static_cast<size_t>(cut); b < cuts_.size(); ++b) first_[b] = s;
    }
  }

  // Bytes that live whatever is chosen: before each launch, and while it runs.
  void FindBase() {
    before_.assign(g_.ops.size() + 1, 0);
    during_.assign(g_.ops.size(), 0);
    for (size_t i = 0; i < g_.values.size(); ++i) {
      const int32_t v = static_cast<int32_t>(i);
      if (Flows(v)) continue;
      const int32_t from = g_.values[v].maker;
      const int32_t to = std::max({from, last_forward_[v], last_backward_[v]});
      for (int32_t op = from; op <= to; ++op) {
        during_[op] += g_.values[v].bytes;
        if (op > from) before_[op] += g_.values[v].bytes;
      }
    }
  }

  bool Crosses(int32_t v, int cut) const {
    return Flows(v) && g_.values[v].maker < cuts_[cut] &&
           (last_forward_[v] >= cuts_[cut] || first_backward_[v] < first_[cut]);
  }
  // Read by the backward launches of (i, k], and made there.
  bool ReadBack(int32_t v, int i, int k) const {
    return Flows(v) && g_.values[v].maker >= cuts_[i] && g_.values[v].maker < cuts_[k] &&
           last_backward_[v] >= first_[k] && first_backward_[v] < first_[i];
  }

  // Runs (i, k] again, as far as it is needed for what is kept; `initial`: for the first time, all.
  Run RunOf(int i, int k, bool crossing, bool reads, bool initial) const {
    Run run;
    std::vector<uint8_t> live(g_.values.size());
    for (int32_t op = cuts_[i]; op < cuts_[k]; ++op) {
      for (int32_t v : g_.ops[op].writes) {
        if (!((crossing && Crosses(v, k)) || (reads && ReadBack(v, i, k)))) continue;
        live[v] = 1;
        run.kept += g_.values[v].bytes;
      }
    }
    int64_t bytes = run.kept;
    for (int32_t op = cuts_[k]; op-- > cuts_[i];) {
      const LaunchGraph::Op& launch = g_.ops[op];
      int64_t idle = 0;
      bool needed = initial;
      for (int32_t v : launch.writes) {
        if (live[v]) {
          needed = true;
        } else if (!initial || Flows(v)) {
          idle += g_.values[v].bytes;
        }
      }
      if (!needed) continue;
      run.seconds += launch.seconds;
      run.until = std::min(run.until, launch.until);
      for (int32_t v : launch.reads) {
        if (live[v] || !Flows(v) || g_.values[v].maker < cuts_[i]) continue;
        live[v] = 1;
        bytes += g_.values[v].bytes;
      }
      run.peak = std::max(run.peak, bytes + idle + (initial ? during_[op] : 0));
      for (int32_t v : launch.writes) {
        if (!live[v]) continue;
        live[v] = 0;
        bytes -= g_.values[v].bytes;
      }
    }
    return run;
  }

  // While the backward launches of (i, k] go by, with what they read of it kept.
  int64_t BackPeak(int i, int k) const {
    int64_t peak = 0;
    for (int32_t s = first_[k]; s < first_[i]; ++s) {
      int64_t bytes = during_[s];
      for (int32_t op = cuts_[i]; op < cuts_[k]; ++op) {
        for (int32_t v : g_.ops[op].writes) {
          if (ReadBack(v, i, k) && last_backward_[v] >= s) bytes += g_.values[v].bytes;
        }
      }
      peak = std::max(peak, bytes);
    }
    return peak;
  }

  // The ways to do C(i, j), in a fixed order.
  std::vector<Way> WaysOf(int i, int j) const {
    std::vector<Way> ways;
    const bool initial = j == blocks();
    const int32_t at = first_[j];
    const auto add = [&](const Run& run, Way way) {
      if (!initial && run.seconds > 0 && run.until < at) return;
      way.seconds = run.seconds;
      const int64_t before = initial || at >= g_.end() ? 0 : before_[at];
      way.least = std::max(way.least, before + run.peak);
      ways.push_back(way);
    };
    if (!initial && ReadsNothing(i, j)) {
      Way way;
      way.least = BackPeak(i, j);
      ways.push_back(way);
      return ways;
    }
    if (j == i + 1) {
      Way leaf;
      leaf.least = BackPeak(i, j);
      add(RunOf(i, j, false, true, initial), leaf);
      return ways;
    }
    for (int k = i + 1; k < j; ++k) {
      const Run& run = initial ? initial_runs_[At(i, k)] : split_runs_[At(i, k)];
      Way split;
      split.held = run.kept;
      split.first = k;
      split.second = k;
      add(run, split);
      if (k > i + 1) continue;
      const Run keeping = RunOf(i, k, true, true, initial);
      Way keep;
      keep.least = back_peaks_[i];
      keep.held = keeping.kept;
      keep.first = k;
      add(keeping, keep);
    }
    return ways;
  }

  bool ReadsNothing(int i, int j) const {
    for (int32_t op = cuts_[i]; op < cuts_[j]; ++op) {
      for (int32_t v : g_.ops[op].writes) {
        if (ReadBack(v, i, j)) return false;
      }
    }
    return true;
  }

  size_t At(int i, int j) const {
    return static_cast<size_t>(i) * cuts_.size() + static_cast<size_t>(j);
  }

  static double SecondsAt(const Front& front, int64_t bytes) {
    auto it = std::upper_bound(front.begin(), front.end(), bytes,
                               [](int64_t b, const Point& p) { return b < p.bytes; });
    return it == front.begin() ? kNever : (it - 1)->seconds;
  }

  double SecondsOf(const Way& way, int i, int j, int64_t bytes) const {
    if (bytes < way.least) return kNever;
    double seconds = way.seconds;
    if (way.first >= 0) seconds += SecondsAt(fronts_[At(way.first, j)], bytes - way.held);
    if (way.second >= 0) seconds += SecondsAt(fronts_[At(i, way.second)], bytes);
    return seconds;
  }

  // Every number of bytes at which the way becomes possible or cheaper.
  void Sample(const Way& way, int i, int j, Front& points) const {
    static const Front kFree = {{std::numeric_limits<int64_t>::min() / 2, 0}};
    const Front& first = way.first >= 0 ? fronts_[At(way.first, j)] : kFree;
    const Front& second = way.second >= 0 ? fronts_[At(i, way.second)] : kFree;
    if (first.empty() || second.empty()) return;
    size_t a = 0, b = 0;
    int64_t bytes = std::max({way.least, first[0].bytes + way.held, second[0].bytes});
    while (true) {
      while (a + 1 < first.size() && first[a + 1].bytes + way.held <= bytes) ++a;
      while (b + 1 < second.size() && second[b + 1].bytes <= bytes) ++b;
      points.push_back({bytes, way.seconds + first[a].seconds + second[b].seconds});
      int64_t next = std::numeric_limits<int64_t>::max();
      if (a + 1 < first.size()) next = first[a + 1].bytes + way.held;
      if (b + 1 < second.size()) next = std::min(next, second[b + 1].bytes);
      if (next == std::numeric_limits<int64_t>::max() || bytes > bound_) return;
      bytes = next;
    }
  }

  // The lower envelope of two fronts.
  static Front Envelope(const Front& a, const Front& b) {
    Front merged;
    size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
      const bool left = j == b.size() || (i < a.size() && a[i].bytes <= b[j].bytes);
      const Point& point = left ? a[i++] : b[j++];
      if (!merged.empty() && point.seconds >= merged.back().seconds) continue;
      if (!merged.empty() && point.bytes == merged.back().bytes) {
        merged.back() = point;
      } else {
        merged.push_back(point);
      }
    }
    return merged;
  }

  void Thin(Front& front) const {
    while (front.size() > 1 && front.back().bytes > bound_) front.pop_back();
    if (front.size() <= kMostPoints) return;
    Front kept;
    for (size_t i = 0; i < kMostPoints; ++i) {
      kept.push_back(front[i * (front.size() - 1) / (kMostPoints - 1)]);
    }
    front = std::move(kept);
  }

  void Solve() {
    const int n = blocks();
    split_runs_.resize(cuts_.size() * cuts_.size());
    initial_runs_.resize(split_runs_.size());
    fronts_.resize(split_runs_.size());
    back_peaks_.resize(cuts_.size());
    for (int i = 0; i < n; ++i) {
      back_peaks_[i] = BackPeak(i, i + 1);
      for (int k = i + 1; k < n; ++k) {
        split_runs_[At(i, k)] = RunOf(i, k, true, false, false);
        initial_runs_[At(i, k)] = RunOf(i, k, true, false, true);
      }
    }
    for (int length = 1; length <= n; ++length) {
      for (int i = 0; i + length <= n; ++i) {
        Front& front = fronts_[At(i, i + length)];
        Front points;
        for (const Way& way : WaysOf(i, i + length)) {
          points.clear();
          Sample(way, i, i + length, points);
          front = Envelope(front, points);
        }
        Thin(front);
      }
    }
    front_ = fronts_[At(0, n)];
    while (front_.size() > 1 && front_.back().bytes > bound_) front_.pop_back();
  }

  void Emit(int i, int j, int64_t bytes, Repeats& repeats) const {
    const std::vector<Way> ways = WaysOf(i, j);
    const Way* best = nullptr;
    double least = kNever;
    for (const Way& way : ways) {
      const double seconds = SecondsOf(way, i, j, bytes);
      if (seconds < least) least = seconds, best = &way;
    }
    if (!best) return;
    const bool leaf = best->first < 0;
    const bool keep = best->first >= 0 && best->second < 0;
    if (j != blocks() && best->seconds > 0) {
      Collect(i, leaf ? j : best->first, !leaf, leaf || keep, repeats[first_[j]]);
    }
    if (best->first >= 0) Emit(best->first, j, bytes - best->held, repeats);
    if (best->second >= 0) Emit(i, best->second, bytes, repeats);
  }

  // The launches of RunOf().
  void Collect(int i, int k, bool crossing, bool reads, std::vector<int32_t>& ops) const {
    std::vector<uint8_t> live(g_.values.size());
    for (int32_t op = cuts_[k]; op-- > cuts_[i];) {
      bool needed = false;
      for (int32_t v : g_.ops[op].writes) {
        needed |= live[v] || (crossing && Crosses(v, k)) || (reads && ReadBack(v, i, k));
      }
      if (!needed) continue;
      ops.push_back(op);
      for (int32_t v : g_.ops[op].reads) {
        if (Flows(v) && g_.values[v].maker >= cuts_[i]) live[v] = 1;
      }
    }
  }

  static constexpr int64_t kSmall = 2048;

  const LaunchGraph& g_;
  const int64_t bound_;
  std::vector<int32_t> last_forward_, first_backward_, last_backward_;  // by value
  std::vector<bool> pinned_;
  std::vector<int32_t> cuts_;   // positions, 0 and the turn among them
  std::vector<int32_t> first_;  // by cut: a position
  std::vector<int64_t> before_, during_;
  std::vector<Run> split_runs_, initial_runs_;
  std::vector<int64_t> back_peaks_;  // of (i, i+1]
  std::vector<Front> fronts_;
  Front front_;
};

IntervalSchedules::IntervalSchedules(const LaunchGraph& graph, int64_t bound)
    : solver_(std::make_unique<Solver>(graph, bound)) {}

IntervalSchedules::~IntervalSchedules() = default;

const IntervalSchedules::Front& IntervalSchedules::front() const { return solver_->front(); }

Repeats IntervalSchedules::Schedule(const Point& point) const { return solver_->Schedule(point); }

}  // namespace l3c::l0::lower
