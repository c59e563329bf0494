#include "egraph/extract/term.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "egraph/utf8.h"

namespace l3c::egraph {
namespace {

uint64_t AddCosts(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

// Elements of functions that are no arguments: the name, and sorts.
bool IsName(ContainerKind kind, size_t i) {
  return kind == ContainerKind::kFn && (i == 0 || i % 2 == 1);
}

// Chains whose rows stand against their order need a sweep for each link; they are left to
// Settle().
constexpr int kMaxSweeps = 16;

// Adding up so few elements takes no longer than looking the sum up.
constexpr size_t kFewElements = 16;

// Calls fn(function, row) for every e-node that can be extracted, in order.
template <typename Fn>
void ForEachNode(const EGraph& graph, Fn&& fn) {
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    const FunctionId id{f};
    const Function& function = graph.function(id);
    if (function.kind != FunctionKind::kConstructor || !function.extractable || function.hidden) {
      continue;
    }
    const Table& table = graph.table(id);
    for (uint32_t row = 0; row < table.row_count(); ++row) {
      if (table.IsVisible(row)) fn(id, row);
    }
  }
}

}  // namespace

TermExtractor::TermExtractor(const EGraph& graph) : graph_(graph) {
  // Sweeps over all e-nodes until nothing gets cheaper. An e-node is taken only where it is
  // strictly cheaper than what was there, so the choice has no cycles, even of cost 0.
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool again = false;
    ForEachNode(graph_, [&](FunctionId f, uint32_t row) { again |= Offer(f, row); });
    if (!again) return;
  }
  Settle();
}

bool TermExtractor::Offer(FunctionId f, uint32_t row) {
  const std::optional<uint64_t> cost = NodeCost(f, row);
  if (!cost) return false;
  const uint32_t c = graph_.Find(Value{graph_.table(f).Output(row)}).bits;
  if (c >= best_.size()) best_.resize(size_t{c} + 1);
  if (best_[c].function.valid() && best_[c].cost <= *cost) return false;
  best_[c] = {*cost, f, row};
  if (c < in_container_.size() && in_container_[c]) container_costs_.clear();
  return true;
}

void TermExtractor::Settle() {
  struct Node {
    FunctionId function;
    uint32_t row;
  };
  std::vector<Node> nodes;                           // in the order of a sweep
  std::vector<std::pair<uint32_t, uint32_t>> users;  // a class, and the index of an e-node over it
  ForEachNode(graph_, [&](FunctionId f, uint32_t row) {
    const auto index = static_cast<uint32_t>(nodes.size());
    nodes.push_back({f, row});
    const std::vector<SortId>& inputs = graph_.function(f).inputs;
    std::vector<std::pair<SortId, Value>> open;
    absl::flat_hash_set<uint32_t> seen;  // containers
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      open.emplace_back(inputs[i], Value{graph_.table(f).Get(row, i)});
    }
    while (!open.empty()) {
      const auto [sort, value] = open.back();
      open.pop_back();
      const Sort& s = graph_.sort(sort);
      if (s.is_equality) {
        users.emplace_back(graph_.Find(value).bits, index);
      } else if (s.moves && seen.insert(value.bits).second) {
        const std::span<const Value> elements = graph_.Elements(value);
        for (size_t i = 0; i < elements.size(); ++i) {
          if (IsName(s.container, i)) continue;
          open.emplace_back(graph_.ElementSort(sort, elements, i), elements[i]);
        }
      }
    }
  });
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());

  // The e-nodes to look at in this sweep that are still to come, and those of the next one.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> now;
  std::vector<uint32_t> next(nodes.size());
  for (uint32_t n = 0; n < nodes.size(); ++n) next[n] = n;
  while (!next.empty()) {
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    for (uint32_t n : next) now.push(n);
    next.clear();
    for (uint32_t last = Id<void>::kNone; !now.empty();) {
      const uint32_t n = now.top();
      now.pop();
      if (n == last) continue;
      last = n;
      const Node& node = nodes[n];
      if (!Offer(node.function, node.row)) continue;
      const uint32_t c = graph_.Find(Value{graph_.table(node.function).Output(node.row)}).bits;
      for (auto it = std::lower_bound(users.begin(), users.end(), std::pair(c, uint32_t{0}));
           it != users.end() && it->first == c; ++it) {
        if (it->second > n) {
          now.push(it->second);
        } else {
          next.push_back(it->second);
        }
      }
    }
  }
}

std::optional<uint64_t> TermExtractor::NodeCost(FunctionId f, uint32_t row) const {
  const Function& function = graph_.function(f);
  const Table& table = graph_.table(f);
  auto cost = static_cast<uint64_t>(function.cost);
  for (uint32_t i = 0; i < function.inputs.size(); ++i) {
    const std::optional<uint64_t> arg = Cost(function.inputs[i], Value{table.Get(row, i)});
    if (!arg) return std::nullopt;
    cost = AddCosts(cost, *arg);
  }
  return cost;
}

std::optional<uint64_t> TermExtractor::Cost(SortId sort, Value value) const {
  const Sort& s = graph_.sort(sort);
  if (s.is_equality) {
    const uint32_t c = graph_.Find(value).bits;
    if (c >= best_.size() || !best_[c].function.valid()) return std::nullopt;
    return best_[c].cost;
  }
  if (!s.is_container()) return 1;
  const bool small =
      graph_.ContainerDepth(value) == 1 && graph_.Elements(value).size() <= kFewElements;
  if (small) return SumOfElements(sort, value);
  const auto known = container_costs_.find(value.bits);
  if (known != container_costs_.end()) return known->second;
  const std::optional<uint64_t> cost = SumOfElements(sort, value);
  container_costs_.emplace(value.bits, cost);
  return cost;
}

std::optional<uint64_t> TermExtractor::SumOfElements(SortId sort, Value container) const {
  uint64_t cost = 0;
  const ContainerKind kind = graph_.sort(sort).container;
  const std::span<const Value> elements = graph_.Elements(container);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (IsName(kind, i)) continue;
    const SortId element_sort = graph_.ElementSort(sort, elements, i);
    if (graph_.sort(element_sort).is_equality) {
      const uint32_t c = graph_.Find(elements[i]).bits;
      if (c >= in_container_.size()) in_container_.resize(size_t{c} + 1);
      in_container_[c] = true;
    }
    const std::optional<uint64_t> element = Cost(element_sort, elements[i]);
    if (!element) return std::nullopt;
    cost = AddCosts(cost, *element);
  }
  return cost;
}

void TermExtractor::PushNode(FunctionId f, uint32_t row, std::vector<Piece>* pieces) const {
  const Function& function = graph_.function(f);
  pieces->push_back({SortId{}, Value{}, ")"});
  for (size_t i = function.inputs.size(); i-- > 0;) {
    pieces->push_back(
        {function.inputs[i], Value{graph_.table(f).Get(row, static_cast<uint32_t>(i))}, nullptr});
    pieces->push_back({SortId{}, Value{}, " "});
  }
  pieces->push_back({SortId{}, Value{}, function.name.c_str()});
  pieces->push_back({SortId{}, Value{}, "("});
}

std::string TermExtractor::Print(std::vector<Piece> pieces, size_t max_bytes) const {
  std::string text;
  while (!pieces.empty()) {
    const Piece piece = pieces.back();
    pieces.pop_back();
    if (text.size() > max_bytes) break;
    if (piece.text != nullptr) {
      text += piece.text;
      continue;
    }
    const Sort& sort = graph_.sort(piece.sort);
    if (sort.is_equality) {
      const uint32_t c = graph_.Find(piece.value).bits;
      if (c >= best_.size() || !best_[c].function.valid()) {
        text += "Unextractable";
      } else {
        PushNode(best_[c].function, best_[c].row, &pieces);
      }
    } else if (sort.is_container()) {
      const std::span<const Value> elements = graph_.Elements(piece.value);
      if (elements.empty() && sort.container == ContainerKind::kVec) {
        text += "(vec-empty)";
        continue;
      }
      text += '(';
      text += ContainerConstructor(sort.container);
      pieces.push_back({SortId{}, Value{}, ")"});
      for (size_t i = elements.size(); i-- > 0;) {
        if (IsName(sort.container, i) && i != 0) continue;
        pieces.push_back({graph_.ElementSort(piece.sort, elements, i), elements[i], nullptr});
        pieces.push_back({SortId{}, Value{}, " "});
      }
    } else {
      text += graph_.DescribeValue(piece.sort, piece.value);
    }
  }
  if (text.size() <= max_bytes) return text;
  return std::string(WholeCharacters(text, max_bytes)) + "…";
}

std::optional<std::string> TermExtractor::Text(SortId sort, Value value, size_t max_bytes) const {
  if (!Cost(sort, value)) return std::nullopt;
  return Print({{sort, value, nullptr}}, max_bytes);
}

std::string TermExtractor::RowText(FunctionId f, const Row& row, size_t max_bytes) const {
  const Function& function = graph_.function(f);
  std::vector<Piece> pieces{{SortId{}, Value{}, ")"}};
  for (size_t i = function.inputs.size(); i-- > 0;) {
    pieces.push_back({function.inputs[i], row.arg(static_cast<uint32_t>(i)), nullptr});
    pieces.push_back({SortId{}, Value{}, " "});
  }
  pieces.push_back({SortId{}, Value{}, function.name.c_str()});
  pieces.push_back({SortId{}, Value{}, "("});
  return Print(std::move(pieces), max_bytes);
}

std::vector<TermExtractor::Variant> TermExtractor::Variants(SortId sort, Value value, size_t count,
                                                            size_t max_bytes) const {
  std::vector<Variant> variants;
  if (!graph_.sort(sort).is_equality) {
    const std::optional<uint64_t> cost = Cost(sort, value);
    std::optional<std::string> text = Text(sort, value);
    if (count != 0 && cost && text) variants.push_back({*cost, std::move(*text)});
    return variants;
  }
  struct Candidate {
    uint64_t cost;
    FunctionId function;
    uint32_t row;
  };
  std::vector<Candidate> candidates;
  const Value root = graph_.Find(value);
  for (uint32_t f = 0; f < graph_.function_count(); ++f) {
    const FunctionId id{f};
    const Function& function = graph_.function(id);
    if (function.kind != FunctionKind::kConstructor || function.output != sort ||
        !function.extractable || function.hidden) {
      continue;
    }
    const Table& table = graph_.table(id);
    for (uint32_t row = 0; row < table.row_count(); ++row) {
      if (!table.IsVisible(row) || graph_.Find(Value{table.Output(row)}) != root) continue;
      if (const std::optional<uint64_t> cost = NodeCost(id, row)) {
        candidates.push_back({*cost, id, row});
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  if (candidates.size() > count) candidates.resize(count);
  size_t bytes = 0;
  for (const Candidate& candidate : candidates) {
    std::vector<Piece> pieces;
    PushNode(candidate.function, candidate.row, &pieces);
    const size_t limit = std::min(max_bytes - bytes, kMaxBytes);
    variants.push_back({candidate.cost, Print(std::move(pieces), limit)});
    bytes += variants.back().text.size();
    if (bytes >= max_bytes) break;
  }
  return variants;
}

}  // namespace l3c::egraph
