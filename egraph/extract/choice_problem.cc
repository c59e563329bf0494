#include "egraph/extract/choice_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "egraph/extract/cost.h"
#include "egraph/extract/implications.h"
#include "egraph/extract/term_costs.h"

namespace l3c::egraph {
namespace {

// A class whose single e-node has more children than this is not written into its users.
constexpr size_t kMaxInlinedChildren = 2;

bool Contains(const std::vector<uint32_t>& sorted, uint32_t x) {
  return std::binary_search(sorted.begin(), sorted.end(), x);
}

bool Insert(std::vector<uint32_t>& sorted, uint32_t x) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), x);
  if (at != sorted.end() && *at == x) return false;
  sorted.insert(at, x);
  return true;
}

bool Erase(std::vector<uint32_t>& sorted, uint32_t x) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), x);
  if (at == sorted.end() || *at != x) return false;
  sorted.erase(at);
  return true;
}

// 64 bits that a superset has all of.
uint64_t Signature(const ChoiceNode& n) {
  uint64_t bits = 0;
  for (uint32_t c : n.children) bits |= uint64_t{1} << (c * 0x9e3779b1u >> 26);
  return bits;
}

class Reducer {
 public:
  Reducer(ChoiceProblem& problem, ReducedChoice& result, const ReduceLimits& limits)
      : p_(problem), result_(result), limits_(limits) {}

  void Run(Reductions reductions) {
    result_.decided.assign(p_.class_count(), kNone);
    if (!KeepFeasible()) return;
    if (reductions == Reductions::kFeasibility) {
      if (UseImplications(/*dominance=*/false)) KeepFeasible();
      return;
    }
    for (bool changed = true; changed && !Spent(p_.nodes.size());) {
      component_ = CyclicComponents(p_);
      CountUsers();
      changed = SettleRequired();
      changed |= DropRequiredChildren();
      // Where more can cost less, only what is certain goes.
      if (!p_.HasNegativeCosts()) {
        changed |= InlineSingles();
        changed |= RemoveDominated();
      }
      // The dearer tests, once the cheap ones find no more.
      if (!changed) changed = UseImplications(!p_.HasNegativeCosts());
      if (changed && !KeepFeasible()) return;
    }
  }

 private:
  bool OnCycle(uint32_t c) const { return component_[c] != kNone; }
  bool SameCycle(uint32_t a, uint32_t b) const {
    return OnCycle(a) && component_[a] == component_[b];
  }

  uint64_t WorkLeft() const { return limits_.max_work - std::min(limits_.max_work, result_.work); }

  // Adds what is to be done to the work; true, and nothing added, where that is beyond a limit.
  // Once beyond, always beyond.
  bool Spent(uint64_t work) {
    spent_ |= work > WorkLeft() || limits_.time.Passed();
    if (!spent_) result_.work += work;
    return spent_;
  }

  void Kill(uint32_t n) { p_.nodes[n].alive = false; }

  // Kills e-nodes that have no finite term or that no required class can reach.
  bool KeepFeasible() {
    const size_t classes = p_.class_count();
    users_.assign(classes, {});
    for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
      ChoiceNode& node = p_.nodes[n];
      if (!node.alive) continue;
      // It would be below itself.
      if (Contains(node.children, node.cls)) {
        Kill(n);
        continue;
      }
      Erase(node.needs, node.cls);
      for (uint32_t c : node.children) users_[c].push_back(n);
    }
    // An e-node whose need has no term is dead, which may leave other classes without: repeat.
    std::vector<uint8_t> has_term;
    for (bool settled = false; !settled;) {
      settled = true;
      has_term.assign(classes, 0);
      std::vector<uint32_t> missing(p_.nodes.size(), 0), ready;
      for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
        missing[n] = static_cast<uint32_t>(p_.nodes[n].children.size());
        if (p_.nodes[n].alive && missing[n] == 0) ready.push_back(n);
      }
      while (!ready.empty()) {
        const uint32_t c = p_.nodes[ready.back()].cls;
        ready.pop_back();
        if (std::exchange(has_term[c], 1)) continue;
        for (uint32_t user : users_[c]) {
          if (p_.nodes[user].alive && --missing[user] == 0) ready.push_back(user);
        }
      }
      for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
        const ChoiceNode& node = p_.nodes[n];
        if (!node.alive) continue;
        const auto without = [&](uint32_t c) { return has_term[c] == 0; };
        if (std::any_of(node.children.begin(), node.children.end(), without)) {
          Kill(n);
        } else if (std::any_of(node.needs.begin(), node.needs.end(), without)) {
          Kill(n);
          settled = false;
        }
      }
    }
    for (uint32_t c = 0; c < classes; ++c) {
      if (p_.required[c] && !has_term[c]) return result_.feasible = false;
    }
    RebuildClasses();
    std::vector<uint8_t> reached(classes, 0);
    std::vector<uint32_t> todo;
    const auto visit = [&](uint32_t c) {
      if (!std::exchange(reached[c], 1)) todo.push_back(c);
    };
    for (uint32_t c = 0; c < classes; ++c) {
      if (p_.required[c]) visit(c);
    }
    while (!todo.empty()) {
      const uint32_t c = todo.back();
      todo.pop_back();
      for (uint32_t n : p_.class_nodes[c]) {
        for (uint32_t child : p_.nodes[n].children) visit(child);
        for (uint32_t need : p_.nodes[n].needs) visit(need);
      }
    }
    for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
      if (!reached[p_.nodes[n].cls]) Kill(n);
    }
    RebuildClasses();
    return true;
  }

  void RebuildClasses() {
    for (auto& nodes : p_.class_nodes) {
      std::erase_if(nodes, [&](uint32_t n) { return !p_.nodes[n].alive; });
    }
  }

  // By class: the e-nodes alive with it among their children or needs.
  void CountUsers() {
    users_.assign(p_.class_count(), {});
    for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
      if (!p_.nodes[n].alive) continue;
      for (uint32_t c : p_.nodes[n].children) users_[c].push_back(n);
      for (uint32_t c : p_.nodes[n].needs) users_[c].push_back(n);
    }
  }

  // Takes class `c` out of the problem; whoever used it need not any more.
  void Settle(uint32_t c) {
    const uint32_t n = p_.class_nodes[c].front();
    result_.decided[c] = n;
    Kill(n);
    p_.class_nodes[c].clear();
    p_.required[c] = 0;
  }

  // Classes that every solution has: below the only e-node of one, or below all of them.
  bool SettleRequired() {
    bool changed = false;
    std::vector<uint32_t> todo;
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (p_.required[c]) todo.push_back(c);
    }
    while (!todo.empty()) {
      const uint32_t c = todo.back();
      todo.pop_back();
      const std::vector<uint32_t>& nodes = p_.class_nodes[c];
      const auto require = [&](uint32_t d) {
        if (p_.required[d]) return;
        p_.required[d] = 1;
        changed = true;
        todo.push_back(d);
      };
      const ChoiceNode& first = p_.nodes[nodes.front()];
      const auto in_all = [&](uint32_t d) {
        return std::all_of(nodes.begin(), nodes.end(), [&](uint32_t n) {
          return Contains(p_.nodes[n].children, d) || Contains(p_.nodes[n].needs, d);
        });
      };
      for (uint32_t d : first.children) {
        if (in_all(d)) require(d);
      }
      for (uint32_t d : first.needs) {
        if (in_all(d)) require(d);
      }
    }
    // What all e-nodes of a required class cost at least is part of every total.
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (!p_.required[c]) continue;
      double least = kInfinity;
      for (uint32_t n : p_.class_nodes[c]) least = std::min(least, p_.nodes[n].cost);
      if (least == 0) continue;
      for (uint32_t n : p_.class_nodes[c]) p_.nodes[n].cost -= least;
      result_.fixed_cost += least;
    }
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (!p_.required[c] || p_.class_nodes[c].size() != 1 || OnCycle(c)) continue;
      const ChoiceNode only = p_.nodes[p_.class_nodes[c].front()];
      for (uint32_t n : users_[c]) {
        Erase(p_.nodes[n].children, c);
        Erase(p_.nodes[n].needs, c);
      }
      Settle(c);
      changed = true;
    }
    return changed;
  }

  // A required class costs the same whoever uses it, and only on a cycle does it matter who does.
  bool DropRequiredChildren() {
    bool changed = false;
    for (ChoiceNode& node : p_.nodes) {
      if (!node.alive) continue;
      changed |= 0 < std::erase_if(node.children, [&](uint32_t c) {
                   return p_.required[c] && !SameCycle(c, node.cls);
                 });
      changed |= 0 < std::erase_if(node.needs, [&](uint32_t c) { return p_.required[c] != 0; });
    }
    return changed;
  }

  // Classes with one e-node: written into their users where that costs no sharing.
  bool InlineSingles() {
    bool changed = false;
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (p_.required[c] || p_.class_nodes[c].size() != 1) continue;
      if (!p_.nodes[p_.class_nodes[c].front()].alive) continue;
      const ChoiceNode only = p_.nodes[p_.class_nodes[c].front()];
      // users_ may name e-nodes that have lost the class; what is inlined here adds new users.
      std::vector<uint32_t> users;
      for (uint32_t n : users_[c]) {
        const ChoiceNode& user = p_.nodes[n];
        if (user.alive && (Contains(user.children, c) || Contains(user.needs, c))) {
          users.push_back(n);
        }
      }
      std::sort(users.begin(), users.end());
      users.erase(std::unique(users.begin(), users.end()), users.end());
      const bool free =
          only.cost == 0 && only.children.size() + only.needs.size() <= kMaxInlinedChildren;
      if (!free && users.size() != 1) continue;
      const auto loosely = [&](uint32_t n) { return Contains(p_.nodes[n].needs, c); };
      // Between the e-nodes of a cycle and one that only needs it, the order would be lost.
      if (OnCycle(c) && std::any_of(users.begin(), users.end(), loosely)) continue;
      for (uint32_t n : users) {
        ChoiceNode& user = p_.nodes[n];
        const bool ordered = Erase(user.children, c);
        Erase(user.needs, c);
        user.cost += only.cost;
        for (uint32_t d : only.children) {
          if (!ordered) {
            if (d != user.cls && !Contains(user.children, d)) Insert(user.needs, d);
          } else {
            Erase(user.needs, d);
            Insert(user.children, d);
          }
          users_[d].push_back(n);
        }
        for (uint32_t d : only.needs) {
          if (d != user.cls && !Contains(user.children, d)) Insert(user.needs, d);
          users_[d].push_back(n);
        }
        if (Contains(user.children, user.cls)) Kill(n);
      }
      Settle(c);
      changed = true;
    }
    RebuildClasses();
    return changed;
  }

  // An e-node goes when another of its class costs no more and needs nothing besides; and also
  // when the other is cheaper by what it needs besides, had apart at its tree cost. The latter
  // only off cycles, as a term of one's own might run into one.
  bool RemoveDominated() {
    FindTermCosts();
    bool changed = false;
    for (auto& nodes : p_.class_nodes) {
      if (nodes.size() < 2) continue;
      if (Spent(nodes.size() * nodes.size())) break;
      std::vector<uint32_t> order = nodes;
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return p_.nodes[a].cost < p_.nodes[b].cost; });
      std::vector<uint64_t> signatures;
      for (uint32_t n : order) signatures.push_back(Signature(p_.nodes[n]));
      for (size_t i = 0; i < order.size(); ++i) {
        const ChoiceNode& a = p_.nodes[order[i]];
        if (!a.alive) continue;
        for (size_t j = 0; j < order.size(); ++j) {
          const ChoiceNode& b = p_.nodes[order[j]];
          if (i == j || !b.alive || a.cost > b.cost) continue;
          const bool maybe_subset = (signatures[i] & ~signatures[j]) == 0;
          if (!maybe_subset && a.cost >= b.cost) continue;
          double extra = 0;
          for (uint32_t c : a.children) {
            if (Contains(b.children, c)) continue;
            extra += OnCycle(a.cls) && SameCycle(a.cls, c) ? kInfinity : tree_[c];
            if (a.cost + extra >= b.cost) break;
          }
          for (uint32_t c : a.needs) {
            if (!Contains(b.needs, c) && !Contains(b.children, c)) extra = kInfinity;
          }
          const bool dominated = extra == 0 ? (a.cost < b.cost || IsSubset(a, b))
                                            : a.cost + extra < b.cost * (1 - 1e-12);
          if (!dominated) continue;
          Kill(order[j]);
          changed = true;
        }
      }
    }
    RebuildClasses();
    return changed;
  }

  static bool IsSubset(const ChoiceNode& a, const ChoiceNode& b) {
    return std::includes(b.children.begin(), b.children.end(), a.children.begin(),
                         a.children.end());
  }

  // E-nodes that no acyclic choice has, children that come with another, and dominance by all that
  // an e-node contains (implications.h).
  bool UseImplications(bool dominance) {
    const Implications implications(p_, WorkLeft());
    result_.work += implications.work();
    if (!implications.available()) return false;
    bool changed = false;
    std::vector<uint64_t> contained;
    std::vector<std::vector<uint64_t>> of_node;
    if (dominance) FindTermCosts();
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      std::vector<uint32_t> order = p_.class_nodes[c];
      if (Spent(order.size() * (order.size() + implications.below().words()))) break;
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return p_.nodes[a].cost < p_.nodes[b].cost; });
      of_node.resize(std::max(of_node.size(), order.size()));
      const std::span<const uint64_t> over = implications.over().Row(c);
      for (size_t i = 0; i < order.size(); ++i) {
        implications.Contained(order[i], of_node[i]);
        bool below_itself = ClassSets::Test(of_node[i], c);
        for (size_t w = 0; w < over.size(); ++w) below_itself |= (over[w] & of_node[i][w]) != 0;
        if (!below_itself) continue;
        Kill(order[i]);
        changed = true;
      }
      for (size_t j = 0; dominance && j < order.size(); ++j) {
        const ChoiceNode& b = p_.nodes[order[j]];
        if (!b.alive) continue;
        for (size_t i = 0; i < order.size() && p_.nodes[order[i]].cost <= b.cost; ++i) {
          const ChoiceNode& a = p_.nodes[order[i]];
          if (i == j || !a.alive || !IsImplied(a, b, of_node[j])) continue;
          Kill(order[j]);
          changed = true;
          break;
        }
      }
    }
    RebuildClasses();
    return DropContained(implications) || changed;
  }

  // Whether `a` can stand for `b`, which contains `contained`.
  bool IsImplied(const ChoiceNode& a, const ChoiceNode& b,
                 const std::vector<uint64_t>& contained) const {
    double extra = 0;
    for (uint32_t c : a.children) {
      if (ClassSets::Test(contained, c)) continue;
      if (OnCycle(a.cls) && SameCycle(a.cls, c)) return false;
      extra += tree_[c];
      if (a.cost + extra >= b.cost) return false;
    }
    for (uint32_t c : a.needs) {
      if (!Contains(b.needs, c) && !Contains(b.children, c)) return false;
    }
    return extra == 0 || a.cost + extra < b.cost * (1 - 1e-12);
  }

  // A child that another child contains comes with it, and before it.
  bool DropContained(const Implications& implications) {
    bool changed = false;
    for (ChoiceNode& node : p_.nodes) {
      if (!node.alive || node.children.size() < 2) continue;
      const std::vector<uint32_t> children = node.children;
      changed |= 0 < std::erase_if(node.children, [&](uint32_t x) {
                   return std::any_of(children.begin(), children.end(), [&](uint32_t y) {
                     return x != y && implications.below().Has(y, x);
                   });
                 });
    }
    return changed;
  }

  // By class: the cost of a term of its own; infinite where its e-nodes have needs.
  void FindTermCosts() {
    std::vector<double> costs(p_.nodes.size());
    for (uint32_t n = 0; n < costs.size(); ++n) costs[n] = p_.nodes[n].cost;
    tree_ = TermCosts(p_, costs, Needs::kForbidden).cost;
  }

  ChoiceProblem& p_;
  ReducedChoice& result_;
  const ReduceLimits limits_;
  bool spent_ = false;
  std::vector<uint32_t> component_;
  std::vector<std::vector<uint32_t>> users_;
  std::vector<double> tree_;
};

}  // namespace

bool ChoiceProblem::HasNegativeCosts() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const ChoiceNode& n) { return n.alive && n.cost < 0; });
}

ChoiceProblem MakeChoiceProblem(const NodeGraph& graph, std::span<const double> prices,
                                std::span<const ClassRef> roots,
                                std::span<const double> frequencies) {
  const auto levels = static_cast<uint32_t>(frequencies.size());
  ChoiceProblem p;
  p.class_nodes.resize(graph.class_count() * levels);
  p.required.assign(p.class_nodes.size(), 0);
  p.nodes.resize(graph.node_count() * levels);
  for (uint32_t i = 0; i < p.nodes.size(); ++i) {
    const ENodeRef n{i / levels};
    const uint32_t level = i % levels;
    ChoiceNode& node = p.nodes[i];
    node.cls = graph.NodeClass(n).index * levels + level;
    node.cost = prices[n.index] * frequencies[level];
    node.alive = std::isfinite(node.cost);
    for (ClassRef child : graph.NodeChildren(n)) {
      if (child.valid()) {
        node.children.push_back(child.index * levels + level);
      } else {
        node.alive = false;
      }
    }
    std::sort(node.children.begin(), node.children.end());
    node.children.erase(std::unique(node.children.begin(), node.children.end()),
                        node.children.end());
    if (node.alive) p.class_nodes[node.cls].push_back(i);
  }
  for (ClassRef root : roots) p.required[root.index * levels] = 1;
  return p;
}

ReducedChoice Reduce(ChoiceProblem& problem, Reductions reductions, const ReduceLimits& limits) {
  ReducedChoice result;
  Reducer(problem, result, limits).Run(reductions);
  return result;
}

std::vector<uint32_t> CyclicComponents(const ChoiceProblem& p) {
  // Tarjan's algorithm, without recursion.
  const auto classes = static_cast<uint32_t>(p.class_count());
  std::vector<std::vector<uint32_t>> edges(classes);
  for (uint32_t c = 0; c < classes; ++c) {
    for (uint32_t n : p.class_nodes[c]) {
      edges[c].insert(edges[c].end(), p.nodes[n].children.begin(), p.nodes[n].children.end());
    }
    std::sort(edges[c].begin(), edges[c].end());
    edges[c].erase(std::unique(edges[c].begin(), edges[c].end()), edges[c].end());
  }
  std::vector<uint32_t> component(classes, kNone), low(classes, 0), number(classes, 0);
  std::vector<uint8_t> open(classes, 0);
  std::vector<uint32_t> path;
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // class, next edge
  uint32_t next_number = 0, next_component = 0;
  const auto enter = [&](uint32_t c) {
    number[c] = low[c] = ++next_number;
    open[c] = 1;
    path.push_back(c);
    stack.emplace_back(c, 0);
  };
  for (uint32_t root = 0; root < classes; ++root) {
    if (number[root] == 0) enter(root);
    while (!stack.empty()) {
      const uint32_t c = stack.back().first;
      if (stack.back().second < edges[c].size()) {
        const uint32_t d = edges[c][stack.back().second++];
        if (number[d] == 0) {
          enter(d);
        } else if (open[d]) {
          low[c] = std::min(low[c], number[d]);
        }
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) {
        const uint32_t parent = stack.back().first;
        low[parent] = std::min(low[parent], low[c]);
      }
      if (low[c] != number[c]) continue;
      const bool cyclic = path.back() != c || Contains(edges[c], c);
      for (uint32_t member = kNone; member != c;) {
        member = path.back();
        path.pop_back();
        open[member] = 0;
        if (cyclic) component[member] = next_component;
      }
      next_component += cyclic;
    }
  }
  return component;
}

std::vector<ChoicePart> Split(const ChoiceProblem& p) {
  std::vector<uint32_t> parent(p.class_count());
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](uint32_t c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
  };
  const auto join = [&](uint32_t a, uint32_t b) {
    a = find(a);
    b = find(b);
    parent[std::max(a, b)] = std::min(a, b);
  };
  for (const ChoiceNode& n : p.nodes) {
    if (!n.alive) continue;
    for (uint32_t c : n.children) join(n.cls, c);
    for (uint32_t c : n.needs) join(n.cls, c);
  }
  std::vector<ChoicePart> parts;
  std::vector<uint32_t> part_of_root(p.class_count(), kNone), index(p.class_count(), kNone);
  for (uint32_t c = 0; c < p.class_count(); ++c) {
    if (p.class_nodes[c].empty()) continue;
    uint32_t& part = part_of_root[find(c)];
    if (part == kNone) {
      part = static_cast<uint32_t>(parts.size());
      parts.emplace_back();
    }
    index[c] = static_cast<uint32_t>(parts[part].classes.size());
    parts[part].classes.push_back(c);
  }
  for (ChoicePart& part : parts) {
    for (uint32_t c : part.classes) {
      part.problem.required.push_back(p.required[c]);
      std::vector<uint32_t>& nodes = part.problem.class_nodes.emplace_back();
      for (uint32_t n : p.class_nodes[c]) {
        nodes.push_back(static_cast<uint32_t>(part.nodes.size()));
        part.nodes.push_back(n);
        ChoiceNode node = p.nodes[n];
        node.cls = index[c];
        for (uint32_t& d : node.children) d = index[d];
        for (uint32_t& d : node.needs) d = index[d];
        part.problem.nodes.push_back(std::move(node));
      }
    }
  }
  return parts;
}

}  // namespace l3c::egraph
