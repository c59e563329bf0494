#include "tests/egraph/naive.h"

#include <algorithm>
#include <set>

namespace l3c::egraph {
namespace {

uint64_t Mix(uint64_t h, uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ (h >> 33);
}

}  // namespace

std::vector<uint64_t> Fingerprint(const EGraph& signature, const std::vector<PlainRow>& rows) {
  const auto sort_of = [&](const PlainRow& row, size_t c) {
    const Function& f = signature.function(FunctionId{row.function});
    return c < f.inputs.size() ? f.inputs[c] : f.output;
  };
  std::map<uint32_t, uint64_t> color;  // by class
  const auto row_color = [&](const PlainRow& row) {
    uint64_t h = Mix(row.function, row.subsumed);
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const bool is_class = signature.sort(sort_of(row, c)).is_equality;
      h = Mix(h, is_class ? color[row.columns[c]] : row.columns[c]);
    }
    return h;
  };
  for (int round = 0; round < 8; ++round) {
    std::map<uint32_t, uint64_t> next = color;
    for (const PlainRow& row : rows) {
      const uint64_t h = row_color(row);
      for (size_t c = 0; c < row.columns.size(); ++c) {
        // A sum, so that the order of the rows does not matter.
        if (signature.sort(sort_of(row, c)).is_equality) next[row.columns[c]] += Mix(h, c);
      }
    }
    color = std::move(next);
  }
  std::vector<uint64_t> colors;
  for (const PlainRow& row : rows) colors.push_back(row_color(row));
  std::sort(colors.begin(), colors.end());
  return colors;
}

std::vector<PlainRow> PlainRows(const EGraph& graph) {
  std::vector<PlainRow> rows;
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    graph.ForEachRow(FunctionId{f}, [&](const auto& row) {
      PlainRow plain{f, {}, row.subsumed()};
      for (uint32_t i = 0; i < row.size(); ++i) plain.columns.push_back(row.arg(i).bits);
      plain.columns.push_back(
          graph.Canonical(graph.function(FunctionId{f}).output, row.output()).bits);
      rows.push_back(std::move(plain));
    });
  }
  return rows;
}

// --- Rows and classes

uint32_t NaiveEngine::Find(uint32_t id) const {
  while (parents_[id] != id) id = parents_[id];
  return id;
}

bool NaiveEngine::IsConstructor(uint32_t f) const {
  return program_.function(FunctionId{f}).kind == FunctionKind::kConstructor;
}

uint32_t NaiveEngine::Canonical(SortId sort, uint32_t value) const {
  return program_.sort(sort).is_equality ? Find(value) : value;
}

NaiveEngine::Key NaiveEngine::CanonicalKey(uint32_t f, const std::vector<uint32_t>& args) const {
  Key key{f, args};
  const Function& function = program_.function(FunctionId{f});
  for (size_t i = 0; i < args.size(); ++i) key.second[i] = Canonical(function.inputs[i], args[i]);
  return key;
}

uint32_t NaiveEngine::Add(FunctionId f, std::vector<uint32_t> args) {
  auto [it, fresh] = rows_.try_emplace(CanonicalKey(f.index, args));
  if (fresh) {
    ++changes_;
    it->second.stamp = clock_;
    if (IsConstructor(f.index)) {
      it->second.output = static_cast<uint32_t>(parents_.size());
      parents_.push_back(it->second.output);
    }
  }
  return IsConstructor(f.index) ? Find(it->second.output) : it->second.output;
}

void NaiveEngine::Union(uint32_t a, uint32_t b) {
  a = Find(a);
  b = Find(b);
  if (a == b) return;
  ++changes_;
  parents_[std::max(a, b)] = std::min(a, b);
}

void NaiveEngine::Set(FunctionId f, const std::vector<uint32_t>& args, uint32_t value) {
  auto [it, fresh] = rows_.try_emplace(CanonicalKey(f.index, args));
  Content& content = it->second;
  const uint32_t old_value = content.output;
  if (fresh) {
    content.output = value;
  } else if (IsConstructor(f.index)) {
    return Union(old_value, value);
  } else if (old_value != value) {
    content.output = Merged(program_.function(f), old_value, value);
  }
  if (fresh || content.output != old_value) {
    ++changes_;
    content.stamp = clock_;
  }
}

uint32_t NaiveEngine::Merged(const Function& f, uint32_t old_value, uint32_t new_value) {
  const bool is_float = f.output == kF64;
  const auto less = [&](uint32_t a, uint32_t b) {
    return is_float ? program_.AsF64(Value{a}) < program_.AsF64(Value{b})
                    : program_.AsI64(Value{a}) < program_.AsI64(Value{b});
  };
  switch (f.merge.kind()) {
    case Merge::Kind::kMin:
      return less(new_value, old_value) ? new_value : old_value;
    case Merge::Kind::kMax:
      return less(old_value, new_value) ? new_value : old_value;
    case Merge::Kind::kOr:
      return old_value | new_value;
    case Merge::Kind::kAnd:
      return old_value & new_value;
    case Merge::Kind::kCustom: {
      const Merge::Steps& steps = *f.merge.steps();
      Slots slots{old_value, new_value};
      slots.resize(steps.actions.slot_sorts.size(), Value::kNone);
      Act(steps.actions.actions, steps.actions.slot_sorts, slots);
      return steps.result.is_constant ? steps.result.bits : slots[steps.result.bits];
    }
    case Merge::Kind::kAssertEqual:
    case Merge::Kind::kUnion:
      failed_ = true;  // the two differ
      return old_value;
  }
  return old_value;
}

void NaiveEngine::Rebuild() {
  for (bool changed = true; changed && !failed_;) {
    changed = false;
    std::map<Key, Content> before;
    before.swap(rows_);
    for (const auto& [key, content] : before) {
      const Key canonical = CanonicalKey(key.first, key.second);
      Content next = content;
      next.output = Canonical(program_.function(FunctionId{key.first}).output, content.output);
      if (canonical != key || next.output != content.output) {
        changed = true;
        next.stamp = clock_;
      }
      auto [it, fresh] = rows_.try_emplace(canonical, next);
      if (fresh) continue;
      it->second.subsumed |= next.subsumed;
      const std::vector<uint32_t> args = canonical.second;
      Set(FunctionId{key.first}, args, next.output);
    }
  }
}

// --- Matching

std::optional<uint32_t> NaiveEngine::Call(uint32_t primitive, const std::vector<Operand>& args,
                                          const Slots& slots) {
  std::vector<Value> values;
  for (const Operand& o : args) values.push_back(Value{o.is_constant ? o.bits : slots[o.bits]});
  const std::optional<Value> result = program_.primitives()[primitive].fn(program_, values);
  if (!result) return std::nullopt;
  return result->bits;
}

bool NaiveEngine::Primitives(const Query& query, Slots& slots) {
  std::set<size_t> left;
  for (size_t i = 0; i < query.primitives.size(); ++i) left.insert(i);
  const auto bound = [&](const Operand& o) {
    return o.is_constant || slots[o.bits] != Value::kNone;
  };
  while (!left.empty()) {
    const size_t before = left.size();
    for (const size_t i : std::vector<size_t>(left.begin(), left.end())) {
      const PrimitiveAtom& p = query.primitives[i];
      if (!std::all_of(p.args.begin(), p.args.end(), bound)) continue;
      left.erase(i);
      const std::optional<uint32_t> result = Call(p.primitive, p.args, slots);
      if (!result) return false;
      if (!bound(p.output)) {
        slots[p.output.bits] = *result;
      } else if ((p.output.is_constant ? p.output.bits : slots[p.output.bits]) != *result) {
        return false;
      }
    }
    if (left.size() == before) return false;  // no order binds them: the compiler refuses such
  }
  return true;
}

void NaiveEngine::Match(const Query& query, size_t atom, Slots& slots, uint64_t newest,
                        bool subsumed_too, const std::function<void(uint64_t)>& found) {
  if (atom == query.atoms.size()) {
    const Slots before = slots;
    if (Primitives(query, slots)) found(newest);
    slots = before;
    return;
  }
  const Atom& a = query.atoms[atom];
  for (const auto& [key, content] : rows_) {
    if (key.first != a.function.index || (content.subsumed && !subsumed_too)) continue;
    const Slots before = slots;
    bool fits = true;
    for (size_t c = 0; fits && c < a.columns.size(); ++c) {
      const uint32_t value = c < key.second.size() ? key.second[c] : content.output;
      const Operand& column = a.columns[c];
      if (column.is_constant) {
        fits = column.bits == value;
      } else if (slots[column.bits] == Value::kNone) {
        slots[column.bits] = value;
      } else {
        fits = slots[column.bits] == value;
      }
    }
    if (fits) {
      Match(query, atom + 1, slots, std::max(newest, content.stamp), subsumed_too, found);
    }
    slots = before;
  }
}

bool NaiveEngine::HasMatch(const Query& query, bool subsumed_too) {
  Slots slots(query.slot_sorts.size(), Value::kNone);
  bool any = false;
  Match(query, 0, slots, 0, subsumed_too, [&](uint64_t) { any = true; });
  return any;
}

// --- Steps and schedules

void NaiveEngine::Act(const std::vector<Action>& actions, const std::vector<SortId>& sorts,
                      Slots& slots) {
  const auto get = [&](const Operand& o) {
    return o.is_constant ? o.bits : Canonical(sorts[o.bits], slots[o.bits]);
  };
  for (const Action& a : actions) {
    if (failed_) return;
    std::vector<uint32_t> args;
    for (const Operand& o : a.args) args.push_back(get(o));
    switch (a.kind) {
      case Action::Kind::kAdd:
        slots[a.result] = Add(a.function, args);
        break;
      case Action::Kind::kAddAs:
      case Action::Kind::kSet:
        Set(a.function, args, get(a.value));
        break;
      case Action::Kind::kUnion:
        Union(args[0], args[1]);
        break;
      case Action::Kind::kPrimitive: {
        const std::optional<uint32_t> result = Call(a.primitive, a.args, slots);
        failed_ = failed_ || !result;
        if (result) slots[a.result] = *result;
        break;
      }
      case Action::Kind::kRemove:
        changes_ += rows_.erase(CanonicalKey(a.function.index, args));
        break;
      case Action::Kind::kSubsume: {
        const auto it = rows_.find(CanonicalKey(a.function.index, args));
        if (it == rows_.end() || it->second.subsumed) break;
        it->second.subsumed = true;
        ++changes_;
        break;
      }
      case Action::Kind::kPanic:
      case Action::Kind::kLookup:
      case Action::Kind::kGlobal:
        failed_ = true;
        break;
    }
  }
}

void NaiveEngine::Step(RulesetId ruleset) {
  ++clock_;
  std::vector<std::pair<const Rule*, Slots>> matches;
  const std::span<const RulesetId> members = program_.RulesetMembers(ruleset);
  for (uint32_t r = kCongruence.index + 1; r < program_.rule_count(); ++r) {
    const Rule& rule = program_.rule(RuleId{r});
    if (std::find(members.begin(), members.end(), rule.ruleset) == members.end()) continue;
    // 0: it has never run. A row of the step in which it last ran came after its search.
    uint64_t& seen = seen_[r];
    const bool all = rule.naive || seen == 0;
    Slots slots(rule.slot_sorts.size(), Value::kNone);
    Match(rule.query, 0, slots, 0, false, [&](uint64_t newest) {
      const bool is_new = rule.query.atoms.empty() ? seen == 0 : all || newest >= seen;
      if (is_new) matches.emplace_back(&rule, slots);
    });
    seen = clock_;
  }
  for (auto& [rule, slots] : matches) Act(rule->actions, rule->slot_sorts, slots);
  Rebuild();
}

bool NaiveEngine::Carry(const Schedule& schedule) {
  const uint64_t before = changes_;
  if (!schedule.until().empty() && HasMatch(schedule.until()[0])) return false;
  switch (schedule.kind()) {
    case Schedule::Kind::kRun:
      if (steps_left_ == 0) break;
      --steps_left_;
      Step(schedule.ruleset());
      break;
    case Schedule::Kind::kRepeat:
    case Schedule::Kind::kSaturate: {
      const bool saturate = schedule.kind() == Schedule::Kind::kSaturate;
      for (uint64_t i = 0; saturate || i < schedule.times(); ++i) {
        if (!Carry(schedule.parts()[0]) || failed_ || steps_left_ == 0) break;
      }
      break;
    }
    case Schedule::Kind::kSequence:
      for (const Schedule& part : schedule.parts()) {
        Carry(part);
        if (failed_) break;
      }
      break;
  }
  return changes_ != before;
}

void NaiveEngine::Run(const Schedule& schedule, uint64_t max_steps) {
  steps_left_ = max_steps;
  Rebuild();
  if (!failed_) Carry(schedule);
}

// --- What came out

std::vector<PlainRow> NaiveEngine::Rows() const {
  std::vector<PlainRow> rows;
  for (const auto& [key, content] : rows_) {
    PlainRow plain{key.first, key.second, content.subsumed};
    plain.columns.push_back(content.output);
    rows.push_back(std::move(plain));
  }
  return rows;
}

std::vector<size_t> NaiveEngine::Sizes() const {
  std::vector<size_t> sizes(program_.function_count(), 0);
  for (const auto& [key, content] : rows_) ++sizes[key.first];
  return sizes;
}

std::vector<size_t> NaiveEngine::Partition(const std::vector<uint32_t>& ids) const {
  std::vector<size_t> groups;
  for (uint32_t id : ids) {
    size_t first = 0;
    while (Find(ids[first]) != Find(id)) ++first;
    groups.push_back(first);
  }
  return groups;
}

}  // namespace l3c::egraph
