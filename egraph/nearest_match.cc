#include "egraph/nearest_match.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace l3c::egraph {
namespace {

// The clock is looked at once in so many rows.
constexpr uint64_t kRowsPerLook = 1024;

}  // namespace

PartialMatch NearestMatch::Find(const Query& query) {
  return Find(query, std::vector<Value>(query.slot_sorts.size()), query.atoms.size());
}

PartialMatch NearestMatch::Find(const Query& query, std::span<const Value> bound, size_t goals) {
  query_ = &query;
  rows_ = 0;
  over_ = false;
  slots_.assign(bound.begin(), bound.end());
  for (const Query::Preset& preset : query.presets) {
    const Value v = graph_.Canonical(query.slot_sorts[preset.slot], preset.value);
    if (!slots_[preset.slot].valid()) slots_[preset.slot] = v;
  }
  Order(query, goals);
  best_ = PartialMatch{};
  Search();
  return best_;
}

// Primitives as soon as they can run; of the atoms the one with most columns bound, the first of
// several.
void NearestMatch::Order(const Query& query, size_t goals) {
  order_.clear();
  // Where each slot stands, once for each place.
  std::vector<std::vector<uint32_t>> atoms_of(slots_.size()), primitives_of(slots_.size());
  // By whether they are goals, then by columns that are not bound, then by number: the columns
  // that count are those bound, so they are taken from the most that an atom may have.
  constexpr size_t kMost = EGraph::kMaxArity + 1;
  std::vector<size_t> bound_columns(query.atoms.size(), 0);
  std::set<std::tuple<bool, size_t, uint32_t>> atoms;
  const auto key = [&](uint32_t a) { return std::tuple(a >= goals, kMost - bound_columns[a], a); };
  for (uint32_t a = 0; a < query.atoms.size(); ++a) {
    for (const Operand& o : query.atoms[a].columns) {
      if (o.is_constant || slots_[o.bits].valid()) {
        ++bound_columns[a];
      } else {
        atoms_of[o.bits].push_back(a);
      }
    }
    atoms.insert(key(a));
  }
  std::vector<size_t> open_args(query.primitives.size(), 0);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t p = 0; p < query.primitives.size(); ++p) {
    for (const Operand& o : query.primitives[p].args) {
      if (o.is_constant || slots_[o.bits].valid()) continue;
      ++open_args[p];
      primitives_of[o.bits].push_back(p);
    }
    if (open_args[p] == 0) ready.push(p);
  }
  std::vector<uint8_t> taken(query.atoms.size(), 0);
  const auto bind = [&](const Operand& o) {
    if (o.is_constant || slots_[o.bits].valid()) return;
    for (const uint32_t a : std::exchange(atoms_of[o.bits], {})) {
      if (taken[a] != 0) continue;
      atoms.erase(key(a));
      ++bound_columns[a];
      atoms.insert(key(a));
    }
    for (const uint32_t p : std::exchange(primitives_of[o.bits], {})) {
      if (--open_args[p] == 0) ready.push(p);
    }
  };
  // What is left in the end is a primitive whose arguments nothing binds.
  while (!ready.empty() || !atoms.empty()) {
    if (!ready.empty()) {
      const uint32_t p = ready.top();
      ready.pop();
      order_.push_back({true, p});
      bind(query.primitives[p].output);
      continue;
    }
    const uint32_t a = std::get<2>(*atoms.begin());
    atoms.erase(atoms.begin());
    taken[a] = 1;
    order_.push_back({false, a});
    for (const Operand& o : query.atoms[a].columns) bind(o);
  }
}

void NearestMatch::Reach(size_t depth) {
  if (depth != 0 && depth <= best_.matched) return;
  best_.matched = depth;
  best_.complete = depth == order_.size();
  best_.failed_atom.reset();
  best_.failed_primitive.reset();
  if (!best_.complete) {
    (order_[depth].primitive ? best_.failed_primitive : best_.failed_atom) = order_[depth].number;
  }
  // The slots are copied when the search leaves this match, not at each step on the way to it.
  keeps_best_ = false;
}

void NearestMatch::Search() {
  frames_.clear();
  Reach(0);
  if (!order_.empty()) Open();
  while (!frames_.empty() && !over_) {
    if (!Advance()) {
      frames_.pop_back();
      continue;
    }
    Reach(frames_.size());
    if (frames_.size() == order_.size()) break;
    Open();
  }
  if (!keeps_best_) best_.slots = slots_;
}

void NearestMatch::Open() {
  const Premise& premise = order_[frames_.size()];
  Frame& frame = frames_.emplace_back();
  if (premise.primitive) return;
  const Atom& atom = query_->atoms[premise.number];
  uint64_t mask = 0;
  std::vector<uint32_t> key;
  for (size_t c = 0; c < atom.columns.size(); ++c) {
    if (!IsBound(atom.columns[c])) continue;
    mask |= uint64_t{1} << c;
    key.push_back(BitsOf(atom.columns[c]));
  }
  // The rows are copied: the search goes on to make the index grow.
  frame.rows = Rows(atom.function, mask, key);
}

bool NearestMatch::Advance() {
  Frame& frame = frames_.back();
  const Premise& premise = order_[frames_.size() - 1];
  Unbind(frame);
  if (premise.primitive) {
    return frame.next++ == 0 && TryPrimitive(frame, query_->primitives[premise.number]);
  }
  while (frame.next < frame.rows.size()) {
    if (++rows_ > max_rows_ || (rows_ % kRowsPerLook == 0 && limit_.Passed())) {
      best_.searched_all = false;
      over_ = true;
      return false;
    }
    if (TryRow(frame, query_->atoms[premise.number], frame.rows[frame.next++])) return true;
    Unbind(frame);
  }
  return false;
}

void NearestMatch::Unbind(Frame& frame) {
  if (frame.bound.empty()) return;
  if (!keeps_best_ && frames_.size() <= best_.matched) {
    best_.slots = slots_;
    keeps_best_ = true;
  }
  for (const uint32_t slot : frame.bound) slots_[slot] = Value{};
  frame.bound.clear();
}

bool NearestMatch::Bind(Frame& frame, const Operand& o, uint32_t bits) {
  if (IsBound(o)) return BitsOf(o) == bits;
  slots_[o.bits] = Value{bits};
  frame.bound.push_back(o.bits);
  return true;
}

bool NearestMatch::TryRow(Frame& frame, const Atom& atom, uint32_t row) {
  const Table& table = graph_.table(atom.function);
  for (uint32_t c = 0; c < atom.columns.size(); ++c) {
    if (!Bind(frame, atom.columns[c], table.Get(row, c))) return false;
  }
  return true;
}

bool NearestMatch::TryPrimitive(Frame& frame, const PrimitiveAtom& primitive) {
  std::vector<Value> args;
  for (const Operand& o : primitive.args) args.push_back(Value{BitsOf(o)});
  const std::optional<Value> result = graph_.primitives()[primitive.primitive].fn(graph_, args);
  return result && Bind(frame, primitive.output, result->bits);
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

}  // namespace l3c::egraph
