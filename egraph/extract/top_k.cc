#include "egraph/extract/top_k.h"

#include <algorithm>
#include <limits>
#include <set>

#include "egraph/extract/cost.h"
#include "egraph/extract/pass.h"

namespace l3c::egraph {
// Candidates wait in one heap for the whole graph. A candidate is an e-node with a rank for each
// child: which of the child's terms it takes. Its successors raise one rank, at the last position
// that is not zero or behind it, so that each combination comes up once and shares what is before
// it; it costs what the one that it came from does, and the difference. A rank that its class has
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
  // A rank above zero; those at the positions before it are behind `before`.
  struct Raise {
    uint32_t before;  // into raises_; kNone: this stands for no rank at all
    uint32_t position, rank;
  };
  struct Candidate {
    double cost;
    uint32_t node;   // node_count() stands for the roots
    uint32_t raise;  // into raises_
  };
  static constexpr uint32_t kNone = 0xffffffffu;

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

  void Push(const Candidate& candidate) {
    if (!(candidate.cost < kInfinity)) return;
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), After);
  }

  double TermCost(ClassRef c, size_t rank) const {
    return result_.terms_[lists_[c.index][rank]].cost;
  }

  // Sums stop at the largest number.
  static double Sum(double a, double b) {
    return a < kInfinity ? std::min(a + b, std::numeric_limits<double>::max()) : kInfinity;
  }

  void PushFirst(uint32_t n) {
    double cost = Price(n);
    for (ClassRef child : Children(n)) cost = Sum(cost, TermCost(child, 0));
    const auto raise = static_cast<uint32_t>(raises_.size());
    raises_.push_back({kNone, 0, 0});
    Push({cost, n, raise});
  }

  // Fills ranks_ for a candidate; returns the position raised last, 0 where all are zero.
  size_t FindRanks(const Candidate& candidate) {
    ranks_.assign(Children(candidate.node).size(), 0);
    for (uint32_t at = candidate.raise; raises_[at].before != kNone; at = raises_[at].before) {
      ranks_[raises_[at].position] = raises_[at].rank;
    }
    return raises_[candidate.raise].position;
  }

  // Whether there is no room for what another candidate can add.
  bool Full(size_t children) const {
    return std::max({raises_.size(), result_.terms_.size(), result_.children_.size()}) + children +
               1 >=
           kNone;
  }

  static bool After(const Candidate& a, const Candidate& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    return a.node != b.node ? a.node > b.node : a.raise > b.raise;
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
      if (work > max_work || Full(children.size() + graph_.node_count())) {
        result_.work_exhausted_ = true;
        break;
      }
      const size_t last = FindRanks(candidate);
      const auto term = static_cast<uint32_t>(result_.terms_.size());
      result_.terms_.push_back({ENodeRef{candidate.node}, candidate.cost});
      for (size_t i = 0; i < children.size(); ++i) {
        result_.children_.push_back(lists_[children[i].index][ranks_[i]]);
      }
      result_.first_child_.push_back(static_cast<uint32_t>(result_.children_.size()));
      lists_[c].push_back(term);
      if (c == classes) result_.results_.push_back(term);
      const std::vector<Candidate> woken = std::exchange(waiting_[c], {});
      work += woken.size();
      for (const Candidate& w : woken) {
        Push({Raised(w.cost, ClassRef{c}, lists_[c].size() - 1), w.node, w.raise});
      }
      if (lists_[c].size() == 1 && c < classes) {
        for (ENodeRef user : users_.Users(ClassRef{c})) {
          if (reached[graph_.NodeClass(user).index] && --missing[user.index] == 0) {
            PushFirst(user.index);
          }
        }
        if (roots_missing.erase(c) != 0 && roots_missing.empty()) PushFirst(RootNode());
      }
      Successors(candidate, last);
    }
  }

  // A cost with the term of `c` at `rank` in place of the one before it.
  double Raised(double cost, ClassRef c, size_t rank) const {
    return Sum(cost, TermCost(c, rank) - TermCost(c, rank - 1));
  }

  // Raises one rank of `ranks_`, those of the candidate, from position `first`, its last above
  // zero, on.
  void Successors(const Candidate& candidate, size_t first) {
    const std::span<const ClassRef> children = Children(candidate.node);
    for (size_t i = first; i < children.size(); ++i) {
      const ClassRef d = children[i];
      const size_t rank = ranks_[i] + 1;
      const bool there = rank < lists_[d.index].size();
      if (!there && lists_[d.index].size() >= k_) continue;
      // Above one, it takes the place of the last rank.
      Candidate next{candidate.cost, candidate.node, static_cast<uint32_t>(raises_.size())};
      const Raise last = raises_[candidate.raise];
      raises_.push_back({rank > 1 ? last.before : candidate.raise, static_cast<uint32_t>(i),
                         static_cast<uint32_t>(rank)});
      if (there) {
        next.cost = Raised(next.cost, d, rank);
        Push(next);
      } else {
        waiting_[d.index].push_back(next);
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
  std::vector<Raise> raises_;
  std::vector<uint32_t> ranks_;  // by child of the candidate in hand
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
