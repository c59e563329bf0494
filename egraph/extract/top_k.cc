#include "egraph/extract/top_k.h"

#include <algorithm>
#include <limits>
#include <set>

#include "egraph/extract/pass.h"

namespace l3c::egraph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

// Candidates wait in one heap for the whole graph. A candidate is an e-node with a rank for each
// child: which of the child's terms it takes. Its successors raise one rank, at the last position
// that is not zero or behind it, so that each combination comes up once. A rank that its class has
// no term for yet waits at the class. Costs never fall from child to parent, so the heap gives the
// terms of every class in the order of their cost.
class TopTrees::Search {
 public:
  Search(TopTrees& result, const NodeGraph& graph, std::span<const double> prices,
         std::span<const ClassRef> roots, size_t k, uint64_t max_work)
      : result_(result), graph_(graph), prices_(prices), roots_(roots), k_(k), users_(graph) {
    lists_.resize(graph.class_count() + 1);
    waiting_.resize(graph.class_count() + 1);
    Run(max_work);
  }

 private:
  struct Candidate {
    double cost;
    uint32_t node;  // node_count() stands for the roots
    uint32_t ranks;
  };

  uint32_t RootNode() const { return static_cast<uint32_t>(graph_.node_count()); }
  uint32_t ClassOf(uint32_t n) const {
    if (n == RootNode()) return static_cast<uint32_t>(graph_.class_count());
    return graph_.NodeClass(ENodeRef{n}).index;
  }
  std::span<const ClassRef> Children(uint32_t n) const {
    return n == RootNode() ? roots_ : graph_.NodeChildren(ENodeRef{n});
  }
  double Price(uint32_t n) const {
    if (n == RootNode()) return 0;
    return prices_[n] < kInfinity ? std::max(0.0, prices_[n]) : kInfinity;
  }

  void Push(uint32_t n, uint32_t ranks) {
    double cost = Price(n);
    const std::span<const ClassRef> children = Children(n);
    for (size_t i = 0; i < children.size(); ++i) {
      cost += result_.terms_[lists_[children[i].index][ranks_[ranks + i]]].cost;
    }
    if (!(cost < kInfinity)) return;
    heap_.push_back({cost, n, ranks});
    std::push_heap(heap_.begin(), heap_.end(), After);
  }

  void PushFirst(uint32_t n) {
    const auto ranks = static_cast<uint32_t>(ranks_.size());
    ranks_.resize(ranks_.size() + Children(n).size(), 0);
    Push(n, ranks);
  }

  static bool After(const Candidate& a, const Candidate& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    return a.node != b.node ? a.node > b.node : a.ranks > b.ranks;
  }

  void Run(uint64_t max_work) {
    const size_t classes = graph_.class_count();
    std::vector<uint8_t> reached(classes, 0);
    std::vector<uint32_t> todo, missing(graph_.node_count(), 0);
    const auto visit = [&](ClassRef c) {
      if (c.valid() && !std::exchange(reached[c.index], 1)) todo.push_back(c.index);
    };
    std::set<uint32_t> roots_missing;
    for (ClassRef root : roots_) {
      if (!root.valid()) return;
      visit(root);
      roots_missing.insert(root.index);
    }
    std::vector<uint32_t> leaves;
    while (!todo.empty()) {
      const ClassRef c{todo.back()};
      todo.pop_back();
      for (uint32_t i = 0; i < graph_.NodeCountOf(c); ++i) {
        const uint32_t n = graph_.FirstNode(c).index + i;
        missing[n] = users_.DistinctChildren(ENodeRef{n});
        if (missing[n] == 0) leaves.push_back(n);
        for (ClassRef child : graph_.NodeChildren(ENodeRef{n})) visit(child);
      }
    }
    std::sort(leaves.begin(), leaves.end());
    for (uint32_t n : leaves) PushFirst(n);
    for (uint64_t work = 0; !heap_.empty() && lists_[classes].size() < k_;) {
      std::pop_heap(heap_.begin(), heap_.end(), After);
      const Candidate candidate = heap_.back();
      heap_.pop_back();
      const uint32_t c = ClassOf(candidate.node);
      if (lists_[c].size() >= k_) continue;
      const std::span<const ClassRef> children = Children(candidate.node);
      work += 1 + children.size();
      if (work > max_work) {
        result_.work_exhausted_ = true;
        break;
      }
      const auto term = static_cast<uint32_t>(result_.terms_.size());
      result_.terms_.push_back({ENodeRef{candidate.node}, candidate.cost});
      for (size_t i = 0; i < children.size(); ++i) {
        result_.children_.push_back(lists_[children[i].index][ranks_[candidate.ranks + i]]);
      }
      result_.first_child_.push_back(static_cast<uint32_t>(result_.children_.size()));
      lists_[c].push_back(term);
      if (c == classes) result_.results_.push_back(term);
      const std::vector<Candidate> woken = std::exchange(waiting_[c], {});
      for (const Candidate& w : woken) Push(w.node, w.ranks);
      if (lists_[c].size() == 1 && c < classes) {
        for (ENodeRef user : users_.Users(ClassRef{c})) {
          if (reached[graph_.NodeClass(user).index] && --missing[user.index] == 0) {
            PushFirst(user.index);
          }
        }
        if (roots_missing.erase(c) != 0 && roots_missing.empty()) PushFirst(RootNode());
      }
      Successors(candidate);
    }
  }

  void Successors(const Candidate& candidate) {
    const std::span<const ClassRef> children = Children(candidate.node);
    size_t first = 0;
    for (size_t i = 0; i < children.size(); ++i) {
      if (ranks_[candidate.ranks + i] != 0) first = i;
    }
    for (size_t i = first; i < children.size(); ++i) {
      const auto ranks = static_cast<uint32_t>(ranks_.size());
      for (size_t j = 0; j < children.size(); ++j) {
        ranks_.push_back(ranks_[candidate.ranks + j] + (i == j));
      }
      const uint32_t d = children[i].index;
      if (ranks_[ranks + i] < lists_[d].size()) {
        Push(candidate.node, ranks);
      } else if (lists_[d].size() < k_) {
        waiting_[d].push_back({0, candidate.node, ranks});
      }
    }
  }

  TopTrees& result_;
  const NodeGraph& graph_;
  const std::span<const double> prices_;
  const std::span<const ClassRef> roots_;
  const size_t k_;
  const UserIndex users_;
  std::vector<std::vector<uint32_t>> lists_;     // by class: terms by cost
  std::vector<std::vector<Candidate>> waiting_;  // by class: for its next term
  std::vector<Candidate> heap_;
  std::vector<uint32_t> ranks_;
};

TopTrees::TopTrees(const NodeGraph& graph, std::span<const double> prices,
                   std::span<const ClassRef> roots, size_t k, uint64_t max_work) {
  Search(*this, graph, prices, roots, k, max_work);
}

std::vector<TopDag> TopDags(const NodeGraph& graph, std::span<const double> prices,
                            std::span<const ClassRef> roots, size_t k,
                            const ExactOptions& options) {
  std::vector<TopDag> results;
  ExactOptions own = options;
  const TimeLimit time(options.time_kind, options.max_seconds);
  while (results.size() < k && !(time.SecondsLeft() <= 0)) {
    own.max_seconds = time.SecondsLeft();
    const ExactSolution solution = SolveExact(graph, prices, roots, own);
    if (!solution.feasible) break;
    // A term that has all e-nodes of another is that term: not all of them again.
    ChoiceBound others;
    for (ENodeRef n : solution.choice) {
      if (n.valid()) others.terms.emplace_back(n, 1);
    }
    others.limit = static_cast<double>(others.terms.size()) - 1;
    own.bounds.push_back(std::move(others));
    results.push_back({MeasureChoice(graph, prices, roots, solution.choice), solution.optimal});
  }
  return results;
}

}  // namespace l3c::egraph
