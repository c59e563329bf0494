#include "egraph/nearest_match.h"

#include <algorithm>

namespace l3c::egraph {

PartialMatch NearestMatch::Find(const Query& query) {
  return Find(query, std::vector<Value>(query.slot_sorts.size()), query.atoms.size());
}

PartialMatch NearestMatch::Find(const Query& query, std::span<const Value> bound, size_t goals) {
  query_ = &query;
  rows_ = 0;
  slots_.assign(bound.begin(), bound.end());
  for (const Query::Preset& preset : query.presets) {
    const Value v = graph_.Canonical(query.slot_sorts[preset.slot], preset.value);
    if (!slots_[preset.slot].valid()) slots_[preset.slot] = v;
  }
  Order(query, goals);
  best_ = PartialMatch{};
  Search(0);
  return best_;
}

// Primitives as soon as they can run; of the atoms the one with most columns bound, the first of
// several.
void NearestMatch::Order(const Query& query, size_t goals) {
  order_.clear();
  std::vector<uint8_t> bound(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) bound[s] = slots_[s].valid();
  const auto known = [&](const Operand& o) { return o.is_constant || bound[o.bits] != 0; };
  const auto bind = [&](const Operand& o) {
    if (!o.is_constant) bound[o.bits] = 1;
  };
  std::vector<uint8_t> atoms(query.atoms.size(), 0);
  std::vector<uint8_t> primitives(query.primitives.size(), 0);
  while (order_.size() < atoms.size() + primitives.size()) {
    bool added = false;
    for (uint32_t p = 0; p < primitives.size(); ++p) {
      const PrimitiveAtom& primitive = query.primitives[p];
      if (primitives[p] || !std::all_of(primitive.args.begin(), primitive.args.end(), known)) {
        continue;
      }
      primitives[p] = 1;
      order_.push_back({true, p});
      bind(primitive.output);
      added = true;
    }
    if (added) continue;
    uint32_t best = 0;
    size_t best_bound = 0;
    const bool premises_left =
        std::find(atoms.begin(), atoms.begin() + static_cast<ptrdiff_t>(goals), 0) !=
        atoms.begin() + static_cast<ptrdiff_t>(goals);
    for (uint32_t a = 0; a < atoms.size(); ++a) {
      if (atoms[a] || (premises_left && a >= goals)) continue;
      const auto& columns = query.atoms[a].columns;
      const size_t count =
          1 + static_cast<size_t>(std::count_if(columns.begin(), columns.end(), known));
      if (count <= best_bound) continue;
      best = a;
      best_bound = count;
    }
    if (best_bound == 0) break;  // a primitive whose arguments nothing binds
    atoms[best] = 1;
    order_.push_back({false, best});
    for (const Operand& o : query.atoms[best].columns) bind(o);
  }
}

// True when the search is over: a match, or too much work.
bool NearestMatch::Search(size_t depth) {
  if (depth > best_.matched || best_.slots.empty()) {
    best_.matched = depth;
    best_.slots = slots_;
    best_.complete = depth == order_.size();
    best_.failed_atom.reset();
    best_.failed_primitive.reset();
    if (!best_.complete) {
      (order_[depth].primitive ? best_.failed_primitive : best_.failed_atom) = order_[depth].number;
    }
  }
  if (depth == order_.size()) return true;
  const Premise& next = order_[depth];
  return next.primitive ? TryPrimitive(depth, query_->primitives[next.number])
                        : TryAtom(depth, query_->atoms[next.number]);
}

const std::vector<uint32_t>& NearestMatch::Rows(FunctionId f, uint64_t mask,
                                                const std::vector<uint32_t>& key) {
  static const std::vector<uint32_t> kNoRows;
  const auto [it, fresh] = rows_by_key_.try_emplace(std::pair(f.index, mask));
  if (fresh) {
    const Table& table = graph_.table(f);
    for (uint32_t row = 0; row < table.row_count(); ++row) {
      if (!table.IsVisible(row) && !(see_subsumed_ && table.IsLive(row))) continue;
      std::vector<uint32_t> has;
      for (uint32_t c = 0; c <= table.arguments(); ++c) {
        if ((mask >> c & 1) != 0) has.push_back(table.Get(row, c));
      }
      it->second[std::move(has)].push_back(row);
    }
  }
  const auto found = it->second.find(key);
  return found == it->second.end() ? kNoRows : found->second;
}

bool NearestMatch::TryAtom(size_t depth, const Atom& atom) {
  uint64_t mask = 0;
  std::vector<uint32_t> key;
  for (size_t c = 0; c < atom.columns.size(); ++c) {
    if (!IsBound(atom.columns[c])) continue;
    mask |= uint64_t{1} << c;
    key.push_back(BitsOf(atom.columns[c]));
  }
  // The rows are copied: a search below may make the index grow.
  const std::vector<uint32_t> rows = Rows(atom.function, mask, key);
  for (uint32_t row : rows) {
    if (++rows_ > max_rows_) {
      best_.searched_all = false;
      return true;
    }
    if (TryRow(depth, atom, row)) return true;
  }
  return false;
}

bool NearestMatch::TryRow(size_t depth, const Atom& atom, uint32_t row) {
  const Table& table = graph_.table(atom.function);
  std::vector<uint32_t> bound_here;
  bool fits = true;
  for (uint32_t c = 0; c < atom.columns.size() && fits; ++c) {
    const Operand& o = atom.columns[c];
    const uint32_t has = table.Get(row, c);
    if (IsBound(o)) {
      fits = BitsOf(o) == has;
    } else {
      slots_[o.bits] = Value{has};
      bound_here.push_back(o.bits);
    }
  }
  const bool over = fits && Search(depth + 1);
  for (uint32_t slot : bound_here) slots_[slot] = Value{};
  return over;
}

bool NearestMatch::TryPrimitive(size_t depth, const PrimitiveAtom& primitive) {
  std::vector<Value> args;
  for (const Operand& o : primitive.args) args.push_back(Value{BitsOf(o)});
  const std::optional<Value> result = graph_.primitives()[primitive.primitive].fn(graph_, args);
  if (!result) return false;
  if (IsBound(primitive.output)) {
    return BitsOf(primitive.output) == result->bits && Search(depth + 1);
  }
  slots_[primitive.output.bits] = *result;
  const bool over = Search(depth + 1);
  slots_[primitive.output.bits] = Value{};
  return over;
}

}  // namespace l3c::egraph
