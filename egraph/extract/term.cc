#include "egraph/extract/term.h"

#include <algorithm>
#include <limits>
#include <utility>

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

}  // namespace

TermExtractor::TermExtractor(const EGraph& graph) : graph_(graph) {
  // Sweeps over all e-nodes until nothing gets cheaper. An e-node is taken only where it is
  // strictly cheaper than what was there, so the choice has no cycles, even of cost 0.
  for (bool again = true; again;) {
    again = false;
    for (uint32_t f = 0; f < graph_.function_count(); ++f) {
      const FunctionId id{f};
      const Function& function = graph_.function(id);
      if (function.kind != FunctionKind::kConstructor || !function.extractable || function.hidden) {
        continue;
      }
      const Table& table = graph_.table(id);
      for (uint32_t row = 0; row < table.row_count(); ++row) {
        if (!table.IsVisible(row)) continue;
        const std::optional<uint64_t> cost = NodeCost(id, row);
        if (!cost) continue;
        const uint32_t c = graph_.Find(Value{table.Output(row)}).bits;
        if (c >= best_.size()) best_.resize(size_t{c} + 1);
        if (best_[c].function.valid() && best_[c].cost <= *cost) continue;
        best_[c] = {*cost, id, row};
        again = true;
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
  uint64_t cost = 0;
  const std::span<const Value> elements = graph_.Elements(value);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (IsName(s.container, i)) continue;
    const std::optional<uint64_t> element =
        Cost(graph_.ElementSort(sort, elements, i), elements[i]);
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
    if (text.size() > max_bytes) return text + "…";
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
  return text;
}

std::optional<std::string> TermExtractor::Text(SortId sort, Value value, size_t max_bytes) const {
  if (!Cost(sort, value)) return std::nullopt;
  return Print({{sort, value, nullptr}}, max_bytes);
}

std::string TermExtractor::RowText(FunctionId f, const Row& row) const {
  const Function& function = graph_.function(f);
  std::vector<Piece> pieces{{SortId{}, Value{}, ")"}};
  for (size_t i = function.inputs.size(); i-- > 0;) {
    pieces.push_back({function.inputs[i], row.arg(static_cast<uint32_t>(i)), nullptr});
    pieces.push_back({SortId{}, Value{}, " "});
  }
  pieces.push_back({SortId{}, Value{}, function.name.c_str()});
  pieces.push_back({SortId{}, Value{}, "("});
  return Print(std::move(pieces), kMaxBytes);
}

std::vector<TermExtractor::Variant> TermExtractor::Variants(SortId sort, Value value,
                                                            size_t count) const {
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
  for (const Candidate& candidate : candidates) {
    std::vector<Piece> pieces;
    PushNode(candidate.function, candidate.row, &pieces);
    variants.push_back({candidate.cost, Print(std::move(pieces), kMaxBytes)});
  }
  return variants;
}

}  // namespace l3c::egraph
