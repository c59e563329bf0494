#include "egraph/why_not.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "egraph/extract/term.h"
#include "egraph/extract/time_limit.h"
#include "egraph/nearest_match.h"
#include "egraph/run.h"
#include "nlohmann/json.hpp"

namespace l3c::egraph {
namespace {

constexpr size_t kMaxTermText = 160;
constexpr size_t kMaxPatternText = 400;
constexpr int kMaxNesting = 20;  // of patterns as they are printed

// A rule's union as a query: its premises, then those of its actions that the two sides of the
// union are made by, with the two sides in given classes.
struct Joining {
  Query query;
  Operand left, right;
  size_t atoms = 0, primitives = 0;  // those from here on are no premises
};

// The unions of a rule that join classes of a sort.
class Unions {
 public:
  Unions(const EGraph& graph, const Rule& rule, SortId sort)
      : graph_(graph), rule_(rule), sort_(sort), maker_(rule.slot_sorts.size(), kNone) {
    for (uint32_t a = 0; a < rule.actions.size(); ++a) {
      switch (rule.actions[a].kind) {
        case Action::Kind::kAdd:
        case Action::Kind::kLookup:
        case Action::Kind::kPrimitive:
        case Action::Kind::kGlobal:
          maker_[rule.actions[a].result] = a;
          break;
        default:
          break;
      }
    }
  }

  // The next one; nothing after the last.
  std::optional<Joining> Next() {
    for (; next_ < rule_.actions.size(); ++next_) {
      const Action& action = rule_.actions[next_];
      if (action.kind == Action::Kind::kUnion && SortOf(action.args[0]) == sort_) {
        Joining joining = Begin(next_++);
        joining.left = Renamed(action.args[0], &joining.query);
        joining.right = Renamed(action.args[1], &joining.query);
        return joining;
      }
      if (action.kind == Action::Kind::kAddAs && SortOf(action.value) == sort_) {
        Joining joining = Begin(next_++);
        joining.left = Renamed(action.value, &joining.query);
        joining.right = NewSlot(sort_, &joining.query);
        AddAtom(action, joining.right, &joining.query);
        return joining;
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  SortId SortOf(const Operand& o) const {
    return o.is_constant ? SortId{} : rule_.slot_sorts[o.bits];
  }
  static Operand NewSlot(SortId sort, Query* query) {
    query->slot_sorts.push_back(sort);
    return Operand::Slot(static_cast<uint32_t>(query->slot_sorts.size() - 1));
  }
  // Slots of actions get numbers as they are needed, so that a query is no larger than what the
  // union rests on.
  Operand Renamed(const Operand& o, Query* query) {
    if (o.is_constant || o.bits < rule_.query.slot_sorts.size()) return o;
    const auto [it, fresh] = renamed_.try_emplace(o.bits, Operand{});
    if (fresh) it->second = NewSlot(rule_.slot_sorts[o.bits], query);
    return it->second;
  }
  void AddAtom(const Action& action, Operand out, Query* query) {
    std::vector<Operand> columns;
    for (const Operand& o : action.args) columns.push_back(Renamed(o, query));
    columns.push_back(out);
    query->atoms.push_back({action.function, std::move(columns)});
  }

  // With the actions that action `last` rests on.
  Joining Begin(uint32_t last) {
    std::vector<uint32_t> needed;
    std::vector<uint8_t> is_needed(rule_.actions.size(), 0);
    const auto need = [&](const Operand& o) {
      if (o.is_constant || maker_[o.bits] == kNone || is_needed[maker_[o.bits]] != 0) return;
      is_needed[maker_[o.bits]] = 1;
      needed.push_back(maker_[o.bits]);
    };
    for (const Operand& o : rule_.actions[last].args) need(o);
    if (rule_.actions[last].kind == Action::Kind::kAddAs) need(rule_.actions[last].value);
    for (size_t i = 0; i < needed.size(); ++i) {
      for (const Operand& o : rule_.actions[needed[i]].args) need(o);
    }
    std::sort(needed.begin(), needed.end());
    renamed_.clear();
    Joining joining;
    joining.query = rule_.query;
    joining.atoms = rule_.query.atoms.size();
    joining.primitives = rule_.query.primitives.size();
    for (const uint32_t a : needed) {
      const Action& action = rule_.actions[a];
      const Operand result = Renamed(Operand::Slot(action.result), &joining.query);
      if (action.kind == Action::Kind::kGlobal) {
        joining.query.presets.push_back({result.bits, Value{action.value.bits}});
      } else if (action.kind == Action::Kind::kPrimitive) {
        std::vector<Operand> args;
        for (const Operand& o : action.args) args.push_back(Renamed(o, &joining.query));
        joining.query.primitives.push_back({action.primitive, std::move(args), result});
      } else if (graph_.function(action.function).kind != FunctionKind::kRelation) {
        AddAtom(action, result, &joining.query);
      }
    }
    return joining;
  }

  const EGraph& graph_;
  const Rule& rule_;
  const SortId sort_;
  std::vector<uint32_t> maker_;  // by slot: the action that gives it its value
  uint32_t next_ = 0;
  absl::flat_hash_map<uint32_t, Operand> renamed_;  // slots of actions, in the query at hand
};

class Asker {
 public:
  Asker(EGraph& graph, Value a, Value b, TimeLimit limit)
      : graph_(graph),
        a_(graph.Find(a)),
        b_(graph.Find(b)),
        limit_(limit),
        nearest_(graph, kMaxRows, limit),
        terms_(graph) {}

  // To ask about rules alone.
  Asker(EGraph& graph, DescribeClass describe)
      : graph_(graph), nearest_(graph, kMaxRows), terms_(graph), describe_(std::move(describe)) {}

  WhyNotRule NoMatch(RuleId id) {
    const Query& query = graph_.rule(id).query;
    const PartialMatch match = nearest_.Find(query);
    FindMakers(query);
    WhyNotRule result;
    result.rule = id;
    result.kind = match.complete ? WhyNotRule::Kind::kWaiting : WhyNotRule::Kind::kPremise;
    result.matched = match.matched;
    result.premises = query.atoms.size() + query.primitives.size();
    result.searched_all = match.searched_all;
    result.nearest = Substitution(query, match.slots);
    if (match.failed_atom) {
      result.failed = AtomText(query, query.atoms[*match.failed_atom], match.slots);
    } else if (match.failed_primitive) {
      result.failed = PrimitiveText(query, query.primitives[*match.failed_primitive], match.slots);
    }
    result.held_back = HeldBack(id);
    return result;
  }

  WhyNot Ask() {
    WhyNot why_not;
    why_not.equal = a_ == b_;
    if (why_not.equal) return why_not;
    for (uint32_t r = kCongruence.index + 1; r < graph_.rule_count() && !AtLimit(); ++r) {
      std::optional<Near> best;
      Unions unions(graph_, graph_.rule(RuleId{r}), graph_.ClassSort(a_));
      std::optional<Joining> joining;
      while (!AtLimit() && (joining = unions.Next())) {
        for (const auto& [left, right] : {std::pair(a_, b_), std::pair(b_, a_)}) {
          std::optional<Near> near = Try(*joining, left, right);
          if (near && (!best || best->rank() < near->rank())) best = std::move(near);
        }
      }
      if (!best) continue;
      why_not.rules.push_back(Told(RuleId{r}, *best));
      if (joining) why_not.rules.back().searched_all = false;
    }
    why_not.searched_all = !AtLimit();
    why_not.congruence = NearestCongruence();
    return why_not;
  }

 private:
  // How near a union of a rule has come.
  struct Near {
    Joining joining;
    Value left;
    PartialMatch match;
    bool beyond = false;  // all premises hold
    std::pair<int, size_t> rank() const {
      return {match.complete ? 2 : beyond ? 1 : 0, match.matched};
    }
  };

  bool AtLimit() const { return rows_ > kMaxRows || work_ > kMaxWork || limit_.Passed(); }

  std::optional<Near> Try(const Joining& joining, Value left, Value right) {
    std::vector<Value> bound(joining.query.slot_sorts.size());
    for (const auto& [operand, v] :
         {std::pair(joining.left, left), std::pair(joining.right, right)}) {
      if (operand.is_constant || bound[operand.bits].valid()) return std::nullopt;
      bound[operand.bits] = v;
    }
    // What a lookup or an addition gives is bound by it, not before it, so that a term in another
    // class shows as the point where the match ends.
    Near near{joining, left, nearest_.Find(joining.query, bound, joining.atoms)};
    rows_ += nearest_.rows();
    work_ += bound.size() + joining.query.atoms.size() + joining.query.primitives.size();
    const PartialMatch& match = near.match;
    near.beyond = (match.failed_atom && *match.failed_atom >= joining.atoms) ||
                  (match.failed_primitive && *match.failed_primitive >= joining.primitives);
    return near;
  }

  WhyNotRule Told(RuleId id, const Near& near) {
    const Rule& rule = graph_.rule(id);
    const Joining& joining = near.joining;
    const PartialMatch& match = near.match;
    FindMakers(joining.query);
    WhyNotRule result;
    result.rule = id;
    result.premises = joining.atoms + joining.primitives;
    result.searched_all = match.searched_all;
    result.kind = match.complete ? WhyNotRule::Kind::kWaiting
                  : near.beyond  ? WhyNotRule::Kind::kElsewhere
                                 : WhyNotRule::Kind::kPremise;
    result.matched = std::min(match.matched, result.premises);
    result.nearest = "with " + TermText(graph_.ClassSort(near.left), near.left) +
                     " for the side that it matches";
    const std::string substitution = Substitution(rule.query, match.slots);
    if (!substitution.empty()) result.nearest += ", " + substitution;
    if (match.failed_atom) {
      const Atom& atom = joining.query.atoms[*match.failed_atom];
      result.failed = AtomText(joining.query, atom, match.slots);
      if (near.beyond) result.failed += Instead(atom, match.slots);
    } else if (match.failed_primitive) {
      result.failed = PrimitiveText(joining.query,
                                    joining.query.primitives[*match.failed_primitive], match.slots);
    }
    result.held_back = HeldBack(id);
    return result;
  }

  std::string HeldBack(RuleId id) const {
    const Rule& rule = graph_.rule(id);
    const RuleHistory& history = graph_.history(id);
    if (rule.numerics > graph_.numerics()) {
      return "rules of class " + std::string(NumericsName(rule.numerics)) + " do not run here";
    }
    if (history.last_search == 0) {
      const std::string& ruleset = graph_.ruleset_name(rule.ruleset);
      return "it has never run: " +
             (ruleset.empty() ? std::string("the default ruleset") : "ruleset '" + ruleset + "'") +
             " was in no schedule that got to it";
    }
    if (history.banned_for != 0) {
      return "the scheduler has banned it for " + std::to_string(history.banned_for) +
             " more steps";
    }
    if (history.stopped_by) {
      return "a run stopped at its " + std::string(StopReasonName(*history.stopped_by)) +
             " before all its matches were applied";
    }
    return "";
  }

  std::string TermText(SortId sort, Value v) const {
    if (describe_ && graph_.sort(sort).is_equality) {
      if (std::string text = describe_(graph_.Find(v)); !text.empty()) return text;
    }
    return terms_.Text(sort, v, kMaxTermText).value_or(graph_.DescribeValue(sort, v));
  }

  static std::string_view NameOf(const Query& query, uint32_t slot) {
    return slot < query.slot_names.size() ? std::string_view(query.slot_names[slot]) : "";
  }

  std::string Substitution(const Query& query, std::span<const Value> slots) const {
    std::string text;
    for (uint32_t s = 0; s < query.slot_names.size() && s < slots.size(); ++s) {
      if (query.slot_names[s].empty() || !slots[s].valid()) continue;
      text += text.empty() ? "" : ", ";
      text += query.slot_names[s] + " = " + TermText(query.slot_sorts[s], slots[s]);
    }
    return text;
  }

  // For Pattern(): which atom of the query a slot is the value of, the first of several.
  void FindMakers(const Query& query) {
    makers_.clear();
    for (const Atom& atom : query.atoms) {
      const Operand& out = atom.columns.back();
      if (!out.is_constant) makers_.try_emplace(out.bits, &atom);
    }
  }

  // An operand as the rule writes it: a variable, a literal, or the pattern that binds it.
  void AddPattern(const Query& query, const Operand& o, SortId sort, std::span<const Value> slots,
                  int depth, std::string* text) const {
    if (text->size() > kMaxPatternText) {
      if (!text->ends_with("…")) *text += "…";
      return;
    }
    if (o.is_constant) {
      *text += graph_.DescribeValue(sort, Value{o.bits});
    } else if (const std::string_view name = NameOf(query, o.bits); !name.empty()) {
      *text += name;
    } else if (const auto it = makers_.find(o.bits); depth < kMaxNesting && it != makers_.end()) {
      AddCall(query, *it->second, slots, depth + 1, text);
    } else {
      *text += slots[o.bits].valid() ? TermText(sort, slots[o.bits]) : "_";
    }
  }

  void AddCall(const Query& query, const Atom& atom, std::span<const Value> slots, int depth,
               std::string* text) const {
    const Function& f = graph_.function(atom.function);
    *text += "(" + f.name;
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      *text += ' ';
      AddPattern(query, atom.columns[i], f.inputs[i], slots, depth, text);
    }
    *text += ')';
  }

  std::string AtomText(const Query& query, const Atom& atom, std::span<const Value> slots) const {
    const Function& f = graph_.function(atom.function);
    std::string text;
    AddCall(query, atom, slots, 0, &text);
    const Operand& out = atom.columns.back();
    if (f.output == kUnit) return text;
    if (out.is_constant) return text + " = " + graph_.DescribeValue(f.output, Value{out.bits});
    if (!slots[out.bits].valid()) return text;
    const bool is_class = graph_.sort(f.output).is_equality;
    return text + (is_class ? " equal to " : " = ") + TermText(f.output, slots[out.bits]);
  }

  std::string PrimitiveText(const Query& query, const PrimitiveAtom& p,
                            std::span<const Value> slots) const {
    const Primitive& primitive = graph_.primitives()[p.primitive];
    std::string text = "(" + primitive.name;
    for (size_t i = 0; i < p.args.size(); ++i) {
      const SortId sort =
          p.args[i].is_constant ? primitive.Input(i) : query.slot_sorts[p.args[i].bits];
      text += ' ';
      if (sort == kAnySort) {
        text += '_';
      } else {
        AddPattern(query, p.args[i], sort, slots, 0, &text);
      }
    }
    return text + ")";
  }

  // Where the term that a rule makes is, when it is not where it should be.
  std::string Instead(const Atom& atom, std::span<const Value> slots) const {
    std::vector<Value> args;
    for (size_t i = 0; i + 1 < atom.columns.size(); ++i) {
      const Operand& o = atom.columns[i];
      const Value v = o.is_constant ? Value{o.bits} : slots[o.bits];
      if (!v.valid()) return "";
      args.push_back(v);
    }
    const std::optional<Value> out = graph_.Lookup(atom.function, args);
    if (!out) return "; there is no such term";
    return "; it is equal to " + TermText(graph_.function(atom.function).output, *out);
  }

  std::string NearestCongruence() const {
    struct Nearest {
      size_t differ = ~size_t{0};
      FunctionId function;
      std::vector<Value> x, y;
    } best;
    for (uint32_t f = 0; f < graph_.function_count(); ++f) {
      const Function& function = graph_.function(FunctionId{f});
      if (function.kind != FunctionKind::kConstructor || function.output != graph_.ClassSort(a_)) {
        continue;
      }
      if (limit_.Passed()) break;
      std::vector<std::vector<Value>> rows[2];
      graph_.ForEachRow(FunctionId{f}, [&](const Row& row) {
        const Value out = graph_.Find(row.output());
        if (out != a_ && out != b_) return;
        std::vector<Value> args;
        for (uint32_t i = 0; i < row.size(); ++i) args.push_back(row.arg(i));
        if (auto& side = rows[out == b_]; side.size() < kMaxCompared)
          side.push_back(std::move(args));
      });
      for (const auto& x : rows[0]) {
        for (const auto& y : rows[1]) {
          size_t differ = 0;
          bool can = true;
          for (size_t i = 0; i < x.size(); ++i) {
            if (x[i] == y[i]) continue;
            ++differ;
            const Sort& sort = graph_.sort(function.inputs[i]);
            can &= sort.is_equality || sort.moves;
          }
          if (can && differ < best.differ) best = {differ, FunctionId{f}, x, y};
        }
      }
    }
    if (!best.function.valid()) return "";
    const Function& function = graph_.function(best.function);
    std::string x = "(" + function.name, y = x, equal;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const std::string of_x = TermText(function.inputs[i], best.x[i]);
      const std::string of_y = TermText(function.inputs[i], best.y[i]);
      x += " " + of_x;
      y += " " + of_y;
      if (best.x[i] != best.y[i]) equal += (equal.empty() ? "" : " and ") + of_x + " = " + of_y;
    }
    return x + ") and " + y + ") would be equal if " + equal;
  }

  // Classes with more e-nodes of one function are compared by these many.
  static constexpr size_t kMaxCompared = 1000;
  // Rows of all searches, and of one; premises and actions of all unions tried.
  static constexpr uint64_t kMaxRows = 2'000'000;
  static constexpr uint64_t kMaxWork = 2'000'000;

  EGraph& graph_;
  const Value a_, b_;
  const TimeLimit limit_;
  NearestMatch nearest_;
  TermExtractor terms_;
  const DescribeClass describe_;
  uint64_t rows_ = 0;
  uint64_t work_ = 0;
  absl::flat_hash_map<uint32_t, const Atom*> makers_;  // by slot
};

}  // namespace

WhyNot ExplainWhyNot(EGraph& graph, Value a, Value b, double max_seconds) {
  graph.Rebuild();
  return Asker(graph, a, b, TimeLimit(TimeKind::kWall, max_seconds)).Ask();
}

WhyNotRule WhyNoMatch(EGraph& graph, RuleId rule, DescribeClass describe) {
  graph.Rebuild();
  return Asker(graph, std::move(describe)).NoMatch(rule);
}

std::string WhyNotText(const EGraph& graph, const WhyNot& why_not) {
  if (why_not.equal) return "they are equal\n";
  std::string text;
  for (const WhyNotRule& r : why_not.rules) {
    text += graph.DescribeRule(r.rule) + ": ";
    const std::string count =
        std::to_string(r.matched) + " of " + std::to_string(r.premises) + " premises hold";
    switch (r.kind) {
      case WhyNotRule::Kind::kWaiting:
        text += "it would join them, and was not applied";
        break;
      case WhyNotRule::Kind::kElsewhere:
        text += "it matches, but joins something else";
        break;
      case WhyNotRule::Kind::kPremise:
        text += count;
        break;
    }
    text += "\n  " + r.nearest + "\n";
    if (!r.failed.empty()) {
      text +=
          (r.kind == WhyNotRule::Kind::kElsewhere ? "  not so: " : "  fails: ") + r.failed + "\n";
    }
    if (!r.held_back.empty()) text += "  held back: " + r.held_back + "\n";
    if (!r.searched_all) text += "  (the search for a nearer match was cut off)\n";
  }
  if (!why_not.searched_all) {
    text += "(the search was cut off before all rules had been looked at)\n";
  } else if (why_not.rules.empty()) {
    text += "no rule unites terms of this sort\n";
  }
  if (!why_not.congruence.empty()) text += "congruence: " + why_not.congruence + "\n";
  return text;
}

std::string WhyNotJson(const EGraph& graph, const WhyNot& why_not) {
  using Json = nlohmann::ordered_json;
  Json rules = Json::array();
  for (const WhyNotRule& r : why_not.rules) {
    const Rule& rule = graph.rule(r.rule);
    rules.push_back({{"rule", rule.name},
                     {"file", rule.file},
                     {"line", rule.line},
                     {"outcome", r.kind == WhyNotRule::Kind::kWaiting     ? "not applied"
                                 : r.kind == WhyNotRule::Kind::kElsewhere ? "joins something else"
                                                                          : "premise fails"},
                     {"matched", r.matched},
                     {"premises", r.premises},
                     {"nearest", r.nearest},
                     {"failed", r.failed},
                     {"held_back", r.held_back},
                     {"searched_all", r.searched_all}});
  }
  const Json all{{"equal", why_not.equal},
                 {"rules", rules},
                 {"searched_all", why_not.searched_all},
                 {"congruence", why_not.congruence}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace l3c::egraph
