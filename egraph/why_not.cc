#include "egraph/why_not.h"

#include <algorithm>

#include "egraph/extract/term.h"
#include "egraph/nearest_match.h"
#include "egraph/run.h"
#include "nlohmann/json.hpp"

namespace l3c::egraph {
namespace {

constexpr size_t kMaxTermText = 160;
constexpr int kMaxNesting = 20;  // of patterns as they are printed

// A rule's union as a query: its premises, then what its actions make, with the two sides of the
// union in given classes.
struct Joining {
  Query query;
  Operand left, right;
  size_t atoms = 0, primitives = 0;  // those from here on are no premises
};

std::vector<Joining> JoiningQueries(const EGraph& graph, const Rule& rule, SortId sort) {
  std::vector<Joining> all;
  Joining made;
  made.query = rule.query;
  made.query.slot_sorts = rule.slot_sorts;
  made.atoms = rule.query.atoms.size();
  made.primitives = rule.query.primitives.size();
  const auto sort_of = [&](const Operand& o) {
    return o.is_constant ? SortId{} : rule.slot_sorts[o.bits];
  };
  for (const Action& action : rule.actions) {
    std::vector<Operand> columns = action.args;
    switch (action.kind) {
      case Action::Kind::kAdd:
      case Action::Kind::kLookup:
        if (graph.function(action.function).kind == FunctionKind::kRelation) break;
        columns.push_back(Operand::Slot(action.result));
        made.query.atoms.push_back({action.function, std::move(columns)});
        break;
      case Action::Kind::kPrimitive:
        made.query.primitives.push_back(
            {action.primitive, action.args, Operand::Slot(action.result)});
        break;
      case Action::Kind::kGlobal:
        made.query.presets.push_back({action.result, Value{action.value.bits}});
        break;
      case Action::Kind::kUnion:
        if (sort_of(action.args[0]) != sort) break;
        all.push_back(made);
        all.back().left = action.args[0];
        all.back().right = action.args[1];
        break;
      case Action::Kind::kAddAs: {
        if (sort_of(action.value) != sort) break;
        all.push_back(made);
        Joining& joining = all.back();
        joining.left = action.value;
        joining.right = Operand::Slot(static_cast<uint32_t>(rule.slot_sorts.size()));
        joining.query.slot_sorts.push_back(sort);
        columns.push_back(joining.right);
        joining.query.atoms.push_back({action.function, std::move(columns)});
        break;
      }
      case Action::Kind::kSet:
      case Action::Kind::kRemove:
      case Action::Kind::kSubsume:
      case Action::Kind::kPanic:
        break;
    }
  }
  return all;
}

class Asker {
 public:
  Asker(EGraph& graph, Value a, Value b)
      : graph_(graph), a_(graph.Find(a)), b_(graph.Find(b)), nearest_(graph), terms_(graph) {}

  WhyNot Ask() {
    WhyNot why_not;
    why_not.equal = a_ == b_;
    if (why_not.equal) return why_not;
    for (uint32_t r = kCongruence.index + 1; r < graph_.rule_count(); ++r) {
      std::optional<WhyNotRule> best;
      for (const Joining& joining :
           JoiningQueries(graph_, graph_.rule(RuleId{r}), graph_.ClassSort(a_))) {
        for (const auto& [left, right] : {std::pair(a_, b_), std::pair(b_, a_)}) {
          const std::optional<WhyNotRule> found = Try(RuleId{r}, joining, left, right);
          if (!found) continue;
          const auto rank = [](const WhyNotRule& w) {
            return std::pair(static_cast<int>(w.kind), w.matched);
          };
          if (!best || rank(*best) < rank(*found)) best = found;
        }
      }
      if (best) why_not.rules.push_back(std::move(*best));
    }
    why_not.congruence = NearestCongruence();
    return why_not;
  }

 private:
  std::optional<WhyNotRule> Try(RuleId id, const Joining& joining, Value left, Value right) {
    const Rule& rule = graph_.rule(id);
    std::vector<Value> bound(joining.query.slot_sorts.size());
    for (const auto& [operand, v] :
         {std::pair(joining.left, left), std::pair(joining.right, right)}) {
      if (operand.is_constant || bound[operand.bits].valid()) return std::nullopt;
      bound[operand.bits] = v;
    }
    // What a lookup or an addition gives is bound by it, not before it, so that a term in another
    // class shows as the point where the match ends.
    const PartialMatch match = nearest_.Find(joining.query, bound, joining.atoms);
    WhyNotRule result;
    result.rule = id;
    result.premises = joining.atoms + joining.primitives;
    result.searched_all = match.searched_all;
    const bool beyond = (match.failed_atom && *match.failed_atom >= joining.atoms) ||
                        (match.failed_primitive && *match.failed_primitive >= joining.primitives);
    result.kind = match.complete ? WhyNotRule::Kind::kWaiting
                  : beyond       ? WhyNotRule::Kind::kElsewhere
                                 : WhyNotRule::Kind::kPremise;
    result.matched = std::min(match.matched, result.premises);
    result.nearest =
        "with " + TermText(graph_.ClassSort(left), left) + " for the side that it matches";
    const std::string substitution = Substitution(rule.query, match.slots);
    if (!substitution.empty()) result.nearest += ", " + substitution;
    if (match.failed_atom) {
      const Atom& atom = joining.query.atoms[*match.failed_atom];
      result.failed = AtomText(joining.query, atom, match.slots);
      if (beyond) result.failed += Instead(atom, match.slots);
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

  // An operand as the rule writes it: a variable, a literal, or the pattern that binds it.
  std::string Pattern(const Query& query, const Operand& o, SortId sort,
                      std::span<const Value> slots, int depth) const {
    if (o.is_constant) return graph_.DescribeValue(sort, Value{o.bits});
    if (const std::string_view name = NameOf(query, o.bits); !name.empty())
      return std::string(name);
    for (const Atom& atom : query.atoms) {
      if (depth < kMaxNesting && atom.columns.back() == o) {
        return CallText(query, atom, slots, depth + 1);
      }
    }
    return slots[o.bits].valid() ? TermText(sort, slots[o.bits]) : "_";
  }

  std::string CallText(const Query& query, const Atom& atom, std::span<const Value> slots,
                       int depth = 0) const {
    const Function& f = graph_.function(atom.function);
    std::string text = "(" + f.name;
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      text += " " + Pattern(query, atom.columns[i], f.inputs[i], slots, depth);
    }
    return text + ")";
  }

  std::string AtomText(const Query& query, const Atom& atom, std::span<const Value> slots) const {
    const Function& f = graph_.function(atom.function);
    std::string text = CallText(query, atom, slots);
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
      text +=
          " " + (sort == kAnySort ? std::string("_") : Pattern(query, p.args[i], sort, slots, 0));
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
      std::vector<std::vector<Value>> rows[2];
      graph_.ForEachRow(FunctionId{f}, [&](const Row& row) {
        const Value out = graph_.Find(row.output());
        if (out != a_ && out != b_) return;
        std::vector<Value> args;
        for (uint32_t i = 0; i < row.size(); ++i) args.push_back(row.arg(i));
        if (auto& side = rows[out == b_]; side.size() < kMaxRows) side.push_back(std::move(args));
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
  static constexpr size_t kMaxRows = 1000;

  EGraph& graph_;
  const Value a_, b_;
  NearestMatch nearest_;
  TermExtractor terms_;
};

}  // namespace

WhyNot ExplainWhyNot(EGraph& graph, Value a, Value b) {
  graph.Rebuild();
  return Asker(graph, a, b).Ask();
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
  if (why_not.rules.empty()) text += "no rule unites terms of this sort\n";
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
  const Json all{{"equal", why_not.equal}, {"rules", rules}, {"congruence", why_not.congruence}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace l3c::egraph
