#include "tests/layers/l0/lower/single_recompute_oracle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "egraph/extract/linear_solver.h"

namespace l3c::l0::lower {
namespace {

using egraph::LinearRow;
constexpr double kOpen = std::numeric_limits<double>::infinity();

class Program {
 public:
  Program(const LaunchGraph& graph, int64_t bound)
      : g_(graph), bound_(bound), n_(graph.turn), segments_(graph.end() - graph.turn) {}

  std::optional<double> Solve() {
    for (int s = 0; s < segments_; ++s) {
      for (int v = 0; v < n_; ++v) Variable(g_.ops[v].seconds, true);  // Again
      for (int v = 0; v < n_; ++v) Variable(0, true);                  // Kept
    }
    Needs();
    Forward();
    for (int s = 0; s < segments_; ++s) {
      for (int k = 0; k < n_; ++k) Moment(s, k);
      Launch(s);
    }
    egraph::LinearSolver solver(costs_, whole_);
    solver.AddRows(rows_);
    const auto found = solver.SolveInteger(1e30, {}, 200'000, true);
    if (found.values.empty()) return std::nullopt;
    double seconds = 0;
    for (size_t i = 0; i < costs_.size(); ++i) seconds += costs_[i] * found.values[i];
    return seconds;
  }

 private:
  uint32_t Variable(double cost, bool whole) {
    costs_.push_back(cost);
    whole_.push_back(whole);
    return static_cast<uint32_t>(costs_.size() - 1);
  }
  uint32_t Again(int s, int v) const { return static_cast<uint32_t>(s * 2 * n_ + v); }
  uint32_t Kept(int s, int v) const { return static_cast<uint32_t>(s * 2 * n_ + n_ + v); }
  bool IsForward(int32_t v) const { return v < n_; }
  bool Reads(int op, int32_t v) const {
    return std::find(g_.ops[op].reads.begin(), g_.ops[op].reads.end(), v) != g_.ops[op].reads.end();
  }
  void AtLeast(std::vector<std::pair<uint32_t, double>> terms, double low) {
    rows_.push_back({std::move(terms), low, kOpen});
  }

  void Needs() {
    for (int s = 0; s < segments_; ++s) {
      for (int op = 0; op < n_; ++op) {
        for (int32_t a : g_.ops[op].reads) {
          AtLeast({{Again(s, a), 1}, {Kept(s, a), 1}, {Again(s, op), -1}}, 0);
        }
      }
      for (int32_t v : g_.ops[n_ + s].reads) {
        if (IsForward(v)) AtLeast({{Again(s, v), 1}, {Kept(s, v), 1}}, 1);
      }
      for (int v = 0; v < n_ && s + 1 < segments_; ++v) {
        AtLeast({{Again(s, v), 1}, {Kept(s, v), 1}, {Kept(s + 1, v), -1}}, 0);
      }
    }
    for (int v = 0; v < n_; ++v) {
      LinearRow once;
      for (int s = 0; s < segments_; ++s) once.terms.emplace_back(Again(s, v), 1);
      once.low = 0;
      once.high = 1;
      rows_.push_back(std::move(once));
    }
  }

  void Fits(std::vector<std::pair<uint32_t, double>> terms, int64_t others) {
    rows_.push_back({std::move(terms), -kOpen, static_cast<double>(bound_ - others)});
  }

  void Forward() {
    for (int t = 0; t < n_; ++t) {
      std::vector<std::pair<uint32_t, double>> terms;
      int64_t certain = 0;
      for (int v = 0; v <= t; ++v) {
        bool needed = v == t;
        for (int op = t; op < n_; ++op) needed |= Reads(op, v);
        if (needed) {
          certain += g_.values[v].bytes;
        } else {
          terms.emplace_back(Kept(0, v), static_cast<double>(g_.values[v].bytes));
        }
      }
      Fits(std::move(terms), certain);
    }
  }

  // Bytes of gradients that live across the point before launch s, or while it runs.
  int64_t Gradients(int s, bool running) const {
    int64_t bytes = 0;
    for (size_t v = static_cast<size_t>(n_); v < g_.values.size(); ++v) {
      int last = g_.values[v].maker;
      for (int op = n_; op < g_.end(); ++op) {
        if (Reads(op, static_cast<int32_t>(v))) last = op;
      }
      const int at = n_ + s;
      const bool made = running ? g_.values[v].maker <= at : g_.values[v].maker < at;
      if (made && last >= at) bytes += g_.values[v].bytes;
    }
    return bytes;
  }

  // Before launch s, when op k has its turn to run again.
  void Moment(int s, int k) {
    std::vector<std::pair<uint32_t, double>> terms;
    int64_t certain = Gradients(s, false);
    for (int v = 0; v < n_; ++v) {
      const auto bytes = static_cast<double>(g_.values[v].bytes);
      if (v <= k && Reads(n_ + s, v)) {
        certain += g_.values[v].bytes;
        continue;
      }
      const uint32_t live = Variable(0, false);
      terms.emplace_back(live, bytes);
      if (v > k) {
        AtLeast({{live, 1}, {Kept(s, v), -1}}, 0);
        continue;
      }
      if (v == k) AtLeast({{live, 1}, {Again(s, v), -1}}, 0);
      for (int op = std::max(k, v + 1); op < n_; ++op) {
        if (Reads(op, v)) AtLeast({{live, 1}, {Again(s, op), -1}}, 0);
      }
      if (s + 1 < segments_) AtLeast({{live, 1}, {Kept(s + 1, v), -1}}, 0);
    }
    Fits(std::move(terms), certain);
  }

  void Launch(int s) {
    std::vector<std::pair<uint32_t, double>> terms;
    int64_t certain = Gradients(s, true);
    for (int v = 0; v < n_; ++v) {
      if (Reads(n_ + s, v)) {
        certain += g_.values[v].bytes;
      } else if (s + 1 < segments_) {
        terms.emplace_back(Kept(s + 1, v), static_cast<double>(g_.values[v].bytes));
      }
    }
    Fits(std::move(terms), certain);
  }

  const LaunchGraph& g_;
  const int64_t bound_;
  const int n_;
  const int segments_;
  std::vector<double> costs_;
  std::vector<uint8_t> whole_;
  std::vector<LinearRow> rows_;
};

}  // namespace

std::optional<double> BestSingleRecompute(const LaunchGraph& graph, int64_t bound) {
  return Program(graph, bound).Solve();
}

}  // namespace l3c::l0::lower
