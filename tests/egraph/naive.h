// An engine without any cleverness, to compare with: rows in sets, queries by trying every row for
// every atom, congruence by looking at all pairs until nothing changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "egraph/egraph.h"

namespace l3c::egraph {

// Understands constructors, relations and rules over them without primitives. Classes only.
class NaiveEngine {
 public:
  explicit NaiveEngine(const EGraph& signature) : graph_(signature) {}

  uint32_t Find(uint32_t id) const {
    while (parents_[id] != id) id = parents_[id];
    return id;
  }

  uint32_t Add(FunctionId f, std::vector<uint32_t> args) {
    for (uint32_t& a : args) a = Find(a);
    const bool constructor = graph_.function(f).kind == FunctionKind::kConstructor;
    auto [it, fresh] = rows_.try_emplace({f.index, std::move(args)}, 0);
    if (fresh && constructor) {
      it->second = static_cast<uint32_t>(parents_.size());
      parents_.push_back(it->second);
    }
    return constructor ? Find(it->second) : 0;
  }

  void Union(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

  void Rebuild() {
    for (bool changed = true; changed;) {
      changed = false;
      std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> rows;
      for (const auto& [key, output] : rows_) {
        auto canonical = key;
        for (uint32_t& a : canonical.second) a = Find(a);
        const bool constructor =
            graph_.function(FunctionId{key.first}).kind == FunctionKind::kConstructor;
        const uint32_t out = constructor ? Find(output) : 0;
        auto [it, fresh] = rows.try_emplace(canonical, out);
        if (!fresh && constructor && Find(it->second) != out) {
          Union(it->second, out);
          changed = true;
        }
        if (canonical != key || out != output) changed = true;
      }
      rows_ = std::move(rows);
    }
  }

  // One step of all rules: match on the same graph, apply, rebuild.
  void Step() {
    std::vector<std::pair<const Rule*, std::vector<uint32_t>>> matches;
    for (uint32_t r = kCongruence.index + 1; r < graph_.rule_count(); ++r) {
      const Rule& rule = graph_.rule(RuleId{r});
      std::vector<uint32_t> slots(rule.slot_sorts.size(), Value::kNone);
      Match(rule, 0, slots, [&] { matches.emplace_back(&rule, slots); });
    }
    for (auto& [rule, slots] : matches) {
      const auto get = [&slots = slots](const Operand& o) { return slots[o.bits]; };
      for (const Action& a : rule->actions) {
        std::vector<uint32_t> args;
        for (const Operand& o : a.args) args.push_back(get(o));
        switch (a.kind) {
          case Action::Kind::kAdd:
            slots[a.result] = Add(a.function, args);
            break;
          case Action::Kind::kAddAs:
            Union(Add(a.function, args), get(a.value));
            break;
          case Action::Kind::kUnion:
            Union(args[0], args[1]);
            break;
          default:
            break;
        }
      }
    }
    Rebuild();
  }

  std::vector<size_t> Sizes() const {
    std::vector<size_t> sizes(graph_.function_count(), 0);
    for (const auto& [key, output] : rows_) ++sizes[key.first];
    return sizes;
  }

  // Which of `ids` are equal: for each, the first that it equals.
  std::vector<size_t> Partition(const std::vector<uint32_t>& ids) const {
    std::vector<size_t> groups;
    for (uint32_t id : ids) {
      size_t first = 0;
      while (Find(ids[first]) != Find(id)) ++first;
      groups.push_back(first);
    }
    return groups;
  }

 private:
  void Match(const Rule& rule, size_t atom, std::vector<uint32_t>& slots,
             const std::function<void()>& found) {
    if (atom == rule.query.atoms.size()) return found();
    const Atom& a = rule.query.atoms[atom];
    for (const auto& [key, output] : rows_) {
      if (key.first != a.function.index) continue;
      const std::vector<uint32_t> before = slots;
      bool fits = true;
      for (size_t c = 0; fits && c < a.columns.size(); ++c) {
        const uint32_t value = c < key.second.size() ? key.second[c] : output;
        if (a.columns[c].is_constant) {
          fits = a.columns[c].bits == value;
        } else if (slots[a.columns[c].bits] == Value::kNone) {
          slots[a.columns[c].bits] = value;
        } else {
          fits = slots[a.columns[c].bits] == value;
        }
      }
      if (fits) Match(rule, atom + 1, slots, found);
      slots = before;
    }
  }

  const EGraph& graph_;
  std::vector<uint32_t> parents_;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> rows_;
};

}  // namespace l3c::egraph
