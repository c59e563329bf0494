#include "bench/extraction/plain_cbc.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Cbc_C_Interface.h"
#include "egraph/extract/plain.h"

namespace l3c::bench {
namespace {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::NodeGraph;
using egraph::TimeKind;
using egraph::TimeLimit;

constexpr uint32_t kNone = 0xffffffffu;
using Cycle = std::vector<uint32_t>;  // classes

struct ModelDeleter {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

class PlainCbc {
 public:
  PlainCbc(const NodeGraph& graph, std::span<const double> prices, std::span<const ClassRef> roots)
      : graph_(graph), prices_(prices), roots_(roots) {
    class_column_.assign(graph.class_count(), kNone);
    node_column_.assign(graph.node_count(), kNone);
    std::vector<ClassRef> todo;
    const auto visit = [&](ClassRef c) {
      if (class_column_[c.index] != kNone) return;
      class_column_[c.index] = columns_++;
      classes_.push_back(c);
      todo.push_back(c);
    };
    for (ClassRef root : roots) visit(root);
    while (!todo.empty()) {
      const ClassRef c = todo.back();
      todo.pop_back();
      for (uint32_t i = 0; i < graph.NodeCountOf(c); ++i) {
        const ENodeRef n{graph.FirstNode(c).index + i};
        const std::span<const ClassRef> children = graph.NodeChildren(n);
        const auto bad = [&](ClassRef child) { return !child.valid() || child == c; };
        if (!std::isfinite(prices[n.index])) continue;
        if (std::any_of(children.begin(), children.end(), bad)) continue;
        node_column_[n.index] = columns_++;
        gains_ |= prices[n.index] < 0;
        for (ClassRef child : children) visit(child);
      }
    }
  }

  PlainCbcResult Solve(const TimeLimit& time) {
    PlainCbcResult result;
    while (!time.Passed()) {
      const std::vector<double> values = Run(time);
      if (values.empty()) return result;
      std::vector<ENodeRef> choice(graph_.class_count());
      for (ClassRef c : classes_) {
        for (uint32_t i = 0; i < graph_.NodeCountOf(c); ++i) {
          const uint32_t n = graph_.FirstNode(c).index + i;
          if (node_column_[n] != kNone && values[node_column_[n]] > 0.5) choice[c.index].index = n;
        }
      }
      const egraph::PlainExtraction found = egraph::MeasureChoice(graph_, prices_, roots_, choice);
      if (found.feasible) {
        result.cost = std::min(result.cost, found.dag_cost);
        result.proven = optimal_;
        return result;
      }
      if (!Block(choice)) return result;
    }
    return result;
  }

 private:
  std::vector<double> Run(const TimeLimit& time) {
    std::vector<int> starts{0}, index;
    std::vector<double> low, high, elements;
    const auto close = [&](double least, double most) {
      starts.push_back(static_cast<int>(index.size()));
      low.push_back(least);
      high.push_back(most);
    };
    const auto term = [&](uint32_t column, double x) {
      index.push_back(static_cast<int>(column));
      elements.push_back(x);
    };
    std::vector<double> costs(columns_, 0), floor(columns_, 0), ceiling(columns_, 1);
    for (ClassRef root : roots_) floor[class_column_[root.index]] = 1;
    for (ClassRef c : classes_) {
      for (uint32_t i = 0; i < graph_.NodeCountOf(c); ++i) {
        const ENodeRef n{graph_.FirstNode(c).index + i};
        const uint32_t column = node_column_[n.index];
        if (column == kNone) continue;
        costs[column] = prices_[n.index];
        std::vector<ClassRef> children(graph_.NodeChildren(n).begin(),
                                       graph_.NodeChildren(n).end());
        std::sort(children.begin(), children.end(),
                  [](ClassRef a, ClassRef b) { return a.index < b.index; });
        children.erase(std::unique(children.begin(), children.end()), children.end());
        for (ClassRef child : children) {
          term(column, 1);
          term(class_column_[child.index], -1);
          close(-1, 0);
        }
      }
      for (uint32_t i = 0; i < graph_.NodeCountOf(c); ++i) {
        const uint32_t column = node_column_[graph_.FirstNode(c).index + i];
        if (column != kNone) term(column, 1);
      }
      term(class_column_[c.index], -1);
      close(0, 0);
    }
    // A gain is had only where something uses the class.
    std::vector<std::vector<uint32_t>> users(gains_ ? graph_.class_count() : 0);
    for (uint32_t n = 0; gains_ && n < node_column_.size(); ++n) {
      if (node_column_[n] == kNone) continue;
      for (ClassRef child : graph_.NodeChildren(ENodeRef{n})) {
        std::vector<uint32_t>& of = users[child.index];
        if (of.empty() || of.back() != n) of.push_back(n);
      }
    }
    for (ClassRef c : classes_) {
      if (!gains_ || floor[class_column_[c.index]] > 0) continue;
      for (uint32_t n : users[c.index]) term(node_column_[n], -1);
      term(class_column_[c.index], 1);
      close(-static_cast<double>(users[c.index].size()), 0);
    }
    for (const Cycle& cycle : cycles_) {
      for (size_t i = 0; i < cycle.size(); ++i) {
        const ClassRef c{cycle[i]};
        const ClassRef next{cycle[(i + 1) % cycle.size()]};
        for (uint32_t k = 0; k < graph_.NodeCountOf(c); ++k) {
          const ENodeRef n{graph_.FirstNode(c).index + k};
          const std::span<const ClassRef> children = graph_.NodeChildren(n);
          if (node_column_[n.index] == kNone) continue;
          if (std::find(children.begin(), children.end(), next) == children.end()) continue;
          term(node_column_[n.index], 1);
        }
      }
      close(0, static_cast<double>(cycle.size()) - 1);
    }

    // Cbc loads by columns.
    const std::unique_ptr<Cbc_Model, ModelDeleter> model(Cbc_newModel());
    Cbc_Model* m = model.get();
    std::vector<int> column_starts(columns_ + 1, 0), rows(index.size());
    std::vector<double> by_column(index.size());
    for (int j : index) ++column_starts[j + 1];
    for (uint32_t j = 0; j < columns_; ++j) column_starts[j + 1] += column_starts[j];
    std::vector<int> next(column_starts.begin(), column_starts.end() - 1);
    for (size_t r = 0; r + 1 < starts.size(); ++r) {
      for (int k = starts[r]; k < starts[r + 1]; ++k) {
        const int at = next[index[k]]++;
        rows[at] = static_cast<int>(r);
        by_column[at] = elements[k];
      }
    }
    Cbc_loadProblem(m, static_cast<int>(columns_), static_cast<int>(low.size()),
                    column_starts.data(), rows.data(), by_column.data(), floor.data(),
                    ceiling.data(), costs.data(), low.data(), high.data());
    for (uint32_t j = 0; j < columns_; ++j) Cbc_setInteger(m, static_cast<int>(j));
    Cbc_setLogLevel(m, 0);
    Cbc_setParameter(m, "log", "0");
    Cbc_setParameter(m, "slog", "0");
    Cbc_setParameter(m, "timeMode", time.kind() == TimeKind::kWall ? "elapsed" : "cpu");
    char seconds[40];
    std::snprintf(seconds, sizeof seconds, "%.6f", std::max(0.01, time.SecondsLeft()));
    Cbc_setParameter(m, "sec", seconds);
    Cbc_setParameter(m, "ratioGap", "0");
    Cbc_setParameter(m, "allowableGap", "0");
    Cbc_solve(m);
    optimal_ = Cbc_isProvenOptimal(m) != 0;
    const double* values = Cbc_bestSolution(m);
    if (values == nullptr) return {};
    return std::vector<double>(values, values + columns_);
  }

  // Blocks a cycle through each class that one of the choices closes; false when there was none.
  bool Block(std::span<const ENodeRef> choice) {
    const size_t before = cycles_.size();
    std::vector<uint8_t> state(graph_.class_count(), 0);  // 1 open, 2 done
    std::vector<std::pair<uint32_t, uint32_t>> path;      // class, next child
    for (ClassRef root : roots_) {
      if (state[root.index] != 0) continue;
      state[root.index] = 1;
      path.emplace_back(root.index, 0);
      while (!path.empty()) {
        const uint32_t c = path.back().first;
        const std::span<const ClassRef> children =
            choice[c].valid() ? graph_.NodeChildren(choice[c]) : std::span<const ClassRef>{};
        if (path.back().second == children.size()) {
          state[c] = 2;
          path.pop_back();
          continue;
        }
        const uint32_t child = children[path.back().second++].index;
        if (state[child] == 0) {
          state[child] = 1;
          path.emplace_back(child, 0);
        } else if (state[child] == 1) {
          Cycle cycle;
          size_t at = path.size();
          while (path[at - 1].first != child) --at;
          for (size_t i = at - 1; i < path.size(); ++i) cycle.push_back(path[i].first);
          cycles_.push_back(std::move(cycle));
        }
      }
    }
    return cycles_.size() > before;
  }

  const NodeGraph& graph_;
  const std::span<const double> prices_;
  const std::span<const ClassRef> roots_;
  std::vector<uint32_t> class_column_, node_column_;
  std::vector<ClassRef> classes_;
  uint32_t columns_ = 0;
  std::vector<Cycle> cycles_;
  bool gains_ = false;
  bool optimal_ = false;
};

}  // namespace

PlainCbcResult SolvePlainCbc(const NodeGraph& graph, std::span<const double> prices,
                             std::span<const ClassRef> roots, const TimeLimit& time) {
  return PlainCbc(graph, prices, roots).Solve(time);
}

}  // namespace l3c::bench
