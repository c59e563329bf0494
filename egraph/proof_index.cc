#include "egraph/proof_index.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "egraph/hash.h"

namespace l3c::egraph {
namespace {

constexpr uint32_t kNever = 0xffffffffu;
// A search for a shorter way looks at no more nodes than this.
constexpr size_t kMaxVisited = 20000;
// How many early equations the latest one is worth.
constexpr uint32_t kLateness = 8;
// Terms that no row was made for nest no deeper than rules do.
constexpr uint32_t kMaxLookups = 400;

}  // namespace

ProofIndex::ProofIndex(const EGraph& graph, TermBank& bank, TimeLimit limit)
    : graph_(graph), log_(*graph.proof_log()), bank_(bank), limit_(limit) {
  LinkClasses();
  HashRows();
  ResolveEnds();
  if (!complete_) return;
  ListEdges();
  GrowForest();
}

void ProofIndex::LinkClasses() {
  const size_t count = log_.nodes().size();
  parents_.resize(count);
  for (uint32_t n = 0; n < count; ++n) parents_[n] = n;
  link_times_.assign(count, kNever);
  std::vector<uint32_t> sizes(count, 1);
  for (const ProofLog::Equation& e : log_.equations()) {
    if (!InTime()) return;
    uint32_t a = FindAt(e.a, kNever);
    uint32_t b = FindAt(e.b, kNever);
    joined_.push_back(a != b);
    if (a == b) continue;
    if (sizes[a] < sizes[b]) std::swap(a, b);
    parents_[b] = a;
    link_times_[b] = e.time;
    sizes[a] += sizes[b];
  }
}

bool ProofIndex::FinalName(SortId sort, Value term, uint32_t t, uint32_t* name) {
  const Sort& s = graph_.sort(sort);
  if (s.is_equality) {
    const std::optional<uint32_t> node = NodeOf(term, t);
    if (!node) return false;
    *name = FindAt(*node, kNever);
    return true;
  }
  *name = term.bits;
  if (!s.moves) return true;
  const std::optional<Value> canonical = CanonicalAt(sort, term, kNever);
  if (!canonical) return false;
  *name = canonical->bits;
  return true;
}

uint64_t ProofIndex::Hash(FunctionId f, std::span<const uint32_t> names) const {
  uint64_t h = Mix(0, f.index);
  for (uint32_t name : names) h = Mix(h, name);
  return h;
}

uint64_t ProofIndex::HashRow(FunctionId function, uint32_t args) {
  const std::vector<SortId>& inputs = graph_.function(function).inputs;
  std::vector<uint32_t>& names = names_;
  names.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value v{log_.values()[args + i]};
    const Sort& sort = graph_.sort(inputs[i]);
    uint32_t name = v.bits;
    if (sort.is_equality) {
      name = FindAt(log_.class_nodes()[v.bits], kNever);
    } else if (sort.moves) {
      FinalName(inputs[i], bank_.OfValue(inputs[i], v), kNever, &name);
    }
    names.push_back(name);
  }
  return Hash(function, names);
}

void ProofIndex::HashRows() {
  for (uint32_t n = 0; n < log_.nodes().size(); ++n) {
    if (!InTime()) return;
    nodes_by_hash_.push_back({HashRow(log_.nodes()[n].function, log_.nodes()[n].args), n});
  }
  for (uint32_t k = 0; k < log_.facts().size(); ++k) {
    if (!InTime()) return;
    facts_by_hash_.push_back({HashRow(log_.facts()[k].function, log_.facts()[k].args), k});
  }
  const auto before = [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.row < b.row;
  };
  std::sort(nodes_by_hash_.begin(), nodes_by_hash_.end(), before);
  std::sort(facts_by_hash_.begin(), facts_by_hash_.end(), before);
}

std::optional<Value> ProofIndex::CanonicalAt(SortId sort, Value container, uint32_t t) {
  CanonicalParts known;
  return CanonicalAt(sort, container, t, &known);
}

std::optional<Value> ProofIndex::CanonicalAt(SortId sort, Value container, uint32_t t,
                                             CanonicalParts* known) {
  if (const auto it = known->find(container.bits); it != known->end()) return it->second;
  const std::span<const Value> elements = bank_.terms().Elements(container);
  std::vector<Value> named(elements.begin(), elements.end());
  for (size_t i = 0; i < named.size(); ++i) {
    const SortId element = bank_.terms().ElementSort(sort, named, i);
    const Sort& s = graph_.sort(element);
    if (s.is_equality) {
      const std::optional<uint32_t> node = NodeOf(named[i], t);
      if (!node) return std::nullopt;
      named[i] = bank_.OfNode(FindAt(*node, t));
    } else if (s.moves) {
      const std::optional<Value> inner = CanonicalAt(element, named[i], t, known);
      if (!inner) return std::nullopt;
      named[i] = *inner;
    }
  }
  const Value canonical = bank_.terms().Container(sort, std::move(named));
  if (bank_.terms().ContainerDepth(container) > 1) known->emplace(container.bits, canonical);
  return canonical;
}

bool ProofIndex::SameAt(SortId sort, Value x, Value y, uint32_t t) {
  if (x == y) return true;
  const Sort& s = graph_.sort(sort);
  if (s.is_equality) return Meet(x, y, t).has_value();
  if (!s.moves) return false;
  const std::optional<Value> a = CanonicalAt(sort, x, t);
  return a && a == CanonicalAt(sort, y, t);
}

bool ProofIndex::AllSame(FunctionId f, std::span<const Value> x, std::span<const Value> y,
                         uint32_t t) {
  const std::vector<SortId>& inputs = graph_.function(f).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!SameAt(inputs[i], x[i], y[i], t)) return false;
  }
  return true;
}

std::vector<uint32_t> ProofIndex::Congruent(Value term, uint32_t t) {
  if (lookups_ >= kMaxLookups) return {};
  ++lookups_;
  const FunctionId f = bank_.FunctionOf(term);
  const std::span<const Value> given = bank_.ArgsOf(term);
  const std::vector<Value> args(given.begin(), given.end());  // lookups may grow the bank
  const std::vector<SortId>& inputs = graph_.function(f).inputs;
  std::vector<uint32_t> names(args.size());
  bool named = true;
  for (size_t i = 0; i < args.size() && named; ++i) {
    named = FinalName(inputs[i], args[i], t, &names[i]);
  }
  std::vector<std::pair<size_t, uint32_t>> found;  // arguments that differ, node
  if (named) {
    const uint64_t hash = Hash(f, names);
    auto it = std::lower_bound(nodes_by_hash_.begin(), nodes_by_hash_.end(), hash,
                               [](const Hashed& h, uint64_t wanted) { return h.hash < wanted; });
    for (; it != nodes_by_hash_.end() && it->hash == hash; ++it) {
      const ProofLog::Node& node = log_.nodes()[it->row];
      if (node.time >= t || node.function != f) continue;
      const std::span<const Value> has = bank_.ArgsOf(bank_.OfNode(it->row));
      const std::vector<Value> theirs(has.begin(), has.end());
      if (!AllSame(f, theirs, args, t)) continue;
      size_t differ = 0;
      for (size_t i = 0; i < args.size(); ++i) differ += theirs[i] != args[i];
      found.emplace_back(differ, it->row);
    }
  }
  std::stable_sort(found.begin(), found.end());
  --lookups_;
  std::vector<uint32_t> nodes;
  for (const auto& [differ, node] : found) nodes.push_back(node);
  return nodes;
}

std::optional<uint32_t> ProofIndex::NodeOf(Value term, uint32_t t) {
  if (const uint32_t n = bank_.KnownNode(term); n != ProofLog::kNone && log_.nodes()[n].time < t) {
    return n;
  }
  const std::vector<uint32_t> nodes = Congruent(term, t);
  return nodes.empty() ? std::nullopt : std::optional(nodes[0]);
}

std::optional<std::pair<uint32_t, uint32_t>> ProofIndex::Meet(Value x, Value y, uint32_t t) {
  const std::optional<uint32_t> a = NodeOf(x, t);
  const std::optional<uint32_t> b = NodeOf(y, t);
  if (!a || !b) return std::nullopt;
  if (SameNodes(*a, *b, t)) return std::pair(*a, *b);
  // What is never equal is not equal now.
  if (!SameNodes(*a, *b, kNever)) return std::nullopt;
  // Congruence is a least fixed point: what would have to be shown on the way to itself counts as
  // not shown. Every question is looked into once.
  constexpr std::pair<uint32_t, uint32_t> kApart{kNever, kNever};
  const std::array<uint32_t, 3> key{x.bits, y.bits, t};
  const auto [known, is_new] = met_.try_emplace(key, kApart);
  if (!is_new) return known->second == kApart ? std::nullopt : std::optional(known->second);
  const std::vector<uint32_t> others = Congruent(y, t);
  for (const uint32_t n : Congruent(x, t)) {
    for (const uint32_t m : others) {
      if (!SameNodes(n, m, t)) continue;
      met_[key] = {n, m};
      return std::pair(n, m);
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> ProofIndex::FactOf(FunctionId f, std::span<const Value> args, Value value,
                                           uint32_t t) {
  const Function& function = graph_.function(f);
  std::vector<uint32_t> names(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (!FinalName(function.inputs[i], args[i], t, &names[i])) return std::nullopt;
  }
  const uint64_t hash = Hash(f, names);
  std::optional<uint32_t> best;
  size_t best_alike = 0;
  auto it = std::lower_bound(facts_by_hash_.begin(), facts_by_hash_.end(), hash,
                             [](const Hashed& h, uint64_t wanted) { return h.hash < wanted; });
  for (; it != facts_by_hash_.end() && it->hash == hash; ++it) {
    const ProofLog::Fact& fact = log_.facts()[it->row];
    if (fact.time >= t || fact.function != f) continue;
    std::vector<Value> theirs;
    for (size_t i = 0; i < args.size(); ++i) {
      theirs.push_back(bank_.OfValue(function.inputs[i], Value{log_.values()[fact.args + i]}));
    }
    const Value has = bank_.OfValue(function.output, Value{log_.values()[fact.args + args.size()]});
    if (!AllSame(f, theirs, args, t) || !SameAt(function.output, has, value, t)) continue;
    size_t alike = 1 + (has == value);
    for (size_t i = 0; i < args.size(); ++i) alike += theirs[i] == args[i];
    if (alike > best_alike) {
      best = it->row;
      best_alike = alike;
    }
  }
  return best;
}

// The first node with the function and the arguments at values()[row], as they were equal at time
// t, that was then equal to node `to`.
std::optional<uint32_t> ProofIndex::NodeOfRow(uint32_t row, uint32_t t, uint32_t to) {
  const FunctionId f{log_.values()[row]};
  const std::vector<SortId>& inputs = graph_.function(f).inputs;
  const uint64_t hash = HashRow(f, row + 1);
  auto it = std::lower_bound(nodes_by_hash_.begin(), nodes_by_hash_.end(), hash,
                             [](const Hashed& h, uint64_t wanted) { return h.hash < wanted; });
  for (; it != nodes_by_hash_.end() && it->hash == hash; ++it) {
    const ProofLog::Node& node = log_.nodes()[it->row];
    if (node.time >= t || node.function != f || !SameNodes(it->row, to, t)) continue;
    bool same = true;
    for (uint32_t i = 0; i < inputs.size() && same; ++i) {
      const Value x{log_.values()[node.args + i]};
      const Value y{log_.values()[row + 1 + i]};
      const Sort& sort = graph_.sort(inputs[i]);
      if (x == y) continue;
      if (sort.is_equality) {
        same = SameNodes(log_.class_nodes()[x.bits], log_.class_nodes()[y.bits], t);
      } else {
        same = sort.moves &&
               SameAt(inputs[i], bank_.OfValue(inputs[i], x), bank_.OfValue(inputs[i], y), t);
      }
    }
    if (same) return it->row;
  }
  return std::nullopt;
}

void ProofIndex::ResolveEnds() {
  for (const ProofLog::Equation& e : log_.equations()) {
    if (!InTime()) return;
    Ends ends{e.a, e.b};
    if (e.row != ProofLog::kNone) {
      ends.a = NodeOfRow(e.row, e.time, e.a).value_or(e.a);
      if (e.cause == ProofLog::kCongruenceCause) {
        ends.b = NodeOfRow(e.row, e.time, e.b).value_or(e.b);
      }
    }
    ends_.push_back(ends);
  }
}

void ProofIndex::ListEdges() {
  const size_t count = log_.nodes().size();
  first_edge_.assign(count + 1, 0);
  for (const Ends& e : ends_) {
    ++first_edge_[e.a + 1];
    ++first_edge_[e.b + 1];
  }
  for (size_t n = 0; n < count; ++n) first_edge_[n + 1] += first_edge_[n];
  edges_.resize(2 * ends_.size());
  std::vector<uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
  for (uint32_t e = 0; e < ends_.size(); ++e) {
    edges_[next[ends_[e].a]++] = e;
    edges_[next[ends_[e].b]++] = e;
  }
}

void ProofIndex::GrowForest() {
  const size_t count = log_.nodes().size();
  up_.assign(count, ProofLog::kNone);
  depth_.assign(count, kNever);
  std::vector<uint32_t> queue;
  for (uint32_t root = 0; root < count; ++root) {
    if (depth_[root] != kNever) continue;
    depth_[root] = 0;
    queue.assign(1, root);
    for (size_t q = 0; q < queue.size(); ++q) {
      const uint32_t n = queue[q];
      for (uint32_t i = first_edge_[n]; i < first_edge_[n + 1]; ++i) {
        const uint32_t e = edges_[i];
        const uint32_t other = ends_[e].a == n ? ends_[e].b : ends_[e].a;
        if (!joined_[e] || depth_[other] != kNever) continue;
        depth_[other] = depth_[n] + 1;
        up_[other] = e;
        queue.push_back(other);
      }
    }
  }
}

std::optional<std::vector<ProofIndex::Hop>> ProofIndex::ForestPath(uint32_t a, uint32_t b) const {
  std::vector<Hop> from_a;
  std::vector<Hop> from_b;
  const auto climb = [&](uint32_t& n, std::vector<Hop>& hops, bool down) {
    const uint32_t e = up_[n];
    const bool forward = ends_[e].a == n;
    hops.push_back({e, forward == down});
    n = forward ? ends_[e].b : ends_[e].a;
  };
  while (a != b) {
    if (depth_[a] == 0 && depth_[b] == 0) return std::nullopt;
    if (depth_[a] >= depth_[b]) {
      climb(a, from_a, false);
    } else {
      climb(b, from_b, true);
    }
  }
  from_a.insert(from_a.end(), from_b.rbegin(), from_b.rend());
  return from_a;
}

std::optional<std::vector<ProofIndex::Hop>> ProofIndex::ShortestPath(uint32_t a, uint32_t b,
                                                                     uint32_t t, Way way) const {
  const auto length = [&](const ProofLog::Equation& e) -> uint64_t {
    switch (way) {
      case Way::kFewCongruences:
        return e.cause == ProofLog::kCongruenceCause ? 4 : 1;
      case Way::kEarly:
        return 1 + uint64_t{kLateness} * e.time / log_.now();
      case Way::kJoining:
      case Way::kFewest:
        break;
    }
    return 1;
  };
  struct Reached {
    uint64_t length;
    Hop by;
  };
  absl::flat_hash_map<uint32_t, Reached> reached{{a, {0, {ProofLog::kNone, false}}}};
  // Length, then node: the same way whatever the order of insertion.
  std::priority_queue<std::pair<uint64_t, uint32_t>, std::vector<std::pair<uint64_t, uint32_t>>,
                      std::greater<>>
      queue;
  queue.emplace(0, a);
  while (!queue.empty() && reached.size() < kMaxVisited) {
    const auto [so_far, n] = queue.top();
    queue.pop();
    if (n == b) break;
    if (reached.at(n).length < so_far) continue;
    for (uint32_t i = first_edge_[n]; i < first_edge_[n + 1]; ++i) {
      const uint32_t e = edges_[i];
      const ProofLog::Equation& equation = log_.equations()[e];
      if (equation.time >= t) continue;
      const bool reversed = ends_[e].a != n;
      const uint32_t other = reversed ? ends_[e].a : ends_[e].b;
      const uint64_t total = so_far + length(equation);
      const auto [it, fresh] = reached.try_emplace(other, Reached{total, {e, reversed}});
      if (!fresh && it->second.length <= total) continue;
      it->second = {total, {e, reversed}};
      queue.emplace(total, other);
    }
  }
  if (!reached.contains(b)) return std::nullopt;
  std::vector<Hop> hops;
  for (uint32_t at = b; at != a;) {
    const Hop hop = reached.at(at).by;
    hops.push_back(hop);
    at = hop.reversed ? ends_[hop.equation].b : ends_[hop.equation].a;
  }
  std::reverse(hops.begin(), hops.end());
  return hops;
}

std::optional<std::vector<ProofIndex::Hop>> ProofIndex::Path(uint32_t a, uint32_t b, uint32_t t,
                                                             Way way) {
  if (!SameNodes(a, b, t)) return std::nullopt;
  if (a == b) return std::vector<Hop>{};
  if (way != Way::kJoining) {
    if (auto hops = ShortestPath(a, b, t, way)) return hops;
  }
  return ForestPath(a, b);
}

}  // namespace l3c::egraph
