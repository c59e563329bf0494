#include "egraph/term_bank.h"

#include <utility>

#include "absl/container/flat_hash_set.h"

namespace l3c::egraph {

TermBank::TermBank(const EGraph& graph) : graph_(graph) {
  bank_.sorts_ = graph.sorts_;
  bank_.functions_ = graph.functions_;
  bank_.primitives_ = graph.primitives_;
  bank_.rules_ = graph.rules_;
  bank_.sort_by_name_ = graph.sort_by_name_;
  bank_.function_by_name_ = graph.function_by_name_;
  bank_.primitives_by_name_ = graph.primitives_by_name_;
  bank_.large_ints_ = graph.large_ints_;
  bank_.large_int_index_ = graph.large_int_index_;
  bank_.floats_ = graph.floats_;
  bank_.float_index_ = graph.float_index_;
  bank_.strings_ = graph.strings_;
  bank_.string_index_ = graph.string_index_;
  bank_.containers_ = graph.containers_;
  for (const Function& f : bank_.functions_) {
    bank_.tables_.emplace_back(static_cast<uint32_t>(f.inputs.size()));
  }
  bank_.EnableProofs();
  bank_.keeps_apart_ = true;
  node_terms_.assign(graph.proof_log()->nodes().size(), Value::kNone);
}

void TermBank::Register() {
  // The bank's own log tells what each class was created with.
  const ProofLog& log = *bank_.proof_log();
  while (calls_.size() < log.nodes().size()) {
    const ProofLog::Node& node = log.nodes()[calls_.size()];
    calls_.push_back({node.function, args_.size()});
    for (size_t i = 0; i < bank_.function(node.function).inputs.size(); ++i) {
      args_.push_back(Value{log.values()[node.args + i]});
    }
  }
}

Value TermBank::Call(FunctionId constructor, std::span<const Value> args) {
  const Value term = bank_.Add(constructor, args);
  Register();
  return term;
}

Value TermBank::OfNode(uint32_t node) {
  const ProofLog& log = *graph_.proof_log();
  if (node_terms_.size() < log.nodes().size()) node_terms_.resize(log.nodes().size(), Value::kNone);
  // Arguments were there before what is made of them, so every path down ends.
  std::vector<uint32_t> pending{node};
  while (!pending.empty()) {
    const uint32_t n = pending.back();
    if (node_terms_[n] != Value::kNone) {
      pending.pop_back();
      continue;
    }
    const ProofLog::Node& record = log.nodes()[n];
    const Function& f = graph_.function(record.function);
    const size_t before = pending.size();
    absl::flat_hash_set<uint32_t> seen;  // containers, which may share what they hold
    const auto need = [&](auto&& self, SortId sort, Value v) -> void {
      if (graph_.sort(sort).is_equality) {
        const uint32_t child = log.class_nodes()[v.bits];
        if (node_terms_[child] == Value::kNone) pending.push_back(child);
      } else if (graph_.sort(sort).moves && seen.insert(v.bits).second) {
        const std::span<const Value> elements = graph_.Elements(v);
        for (size_t i = 0; i < elements.size(); ++i) {
          self(self, graph_.ElementSort(sort, elements, i), elements[i]);
        }
      }
    };
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      need(need, f.inputs[i], Value{log.values()[record.args + i]});
    }
    if (pending.size() != before) continue;
    std::vector<Value> args;
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      args.push_back(OfValue(f.inputs[i], Value{log.values()[record.args + i]}));
    }
    const Value term = Call(record.function, args);
    node_terms_[n] = term.bits;
    if (term_nodes_.size() <= term.bits) term_nodes_.resize(term.bits + 1, ProofLog::kNone);
    if (term_nodes_[term.bits] > n) term_nodes_[term.bits] = n;
    pending.pop_back();
  }
  return Value{node_terms_[node]};
}

Value TermBank::OfValue(SortId sort, Value v) {
  const Sort& s = graph_.sort(sort);
  if (s.is_equality) return OfNode(graph_.proof_log()->class_nodes()[v.bits]);
  if (!s.moves) return v;
  if (const auto it = container_terms_.find(v.bits); it != container_terms_.end()) {
    return it->second;
  }
  const std::span<const Value> elements = graph_.Elements(v);
  std::vector<Value> terms;
  for (size_t i = 0; i < elements.size(); ++i) {
    terms.push_back(OfValue(graph_.ElementSort(sort, elements, i), elements[i]));
  }
  const Value term = bank_.Container(sort, std::move(terms));
  if (graph_.ContainerDepth(v) > 1) container_terms_.emplace(v.bits, term);
  return term;
}

std::optional<Value> TermBank::Evaluate(uint32_t primitive, std::span<const Value> args) {
  return bank_.primitives_[primitive].fn(bank_, args);
}

std::optional<std::vector<Claim>> TermBank::Execute(const Rule& rule, std::span<Value> slots,
                                                    std::span<const Value> reads,
                                                    std::vector<Claim>* relies) {
  std::vector<Claim> claims;
  const auto equal = [&](SortId sort, Value a, Value b) { claims.push_back({{}, {}, a, b, sort}); };
  for (const Action& action : rule.actions) {
    std::vector<Value> args;
    for (const Operand& o : action.args) args.push_back(OfOperand(o, slots));
    switch (action.kind) {
      case Action::Kind::kAdd:
      case Action::Kind::kAddAs: {
        const Function& f = bank_.function(action.function);
        if (f.kind != FunctionKind::kConstructor) {
          claims.push_back({action.function, args, {}, bank_.Unit(), f.output});
          slots[action.result] = bank_.Unit();
          break;
        }
        const Value term = Call(action.function, args);
        equal(f.output, term, term);
        if (action.kind == Action::Kind::kAdd) {
          slots[action.result] = term;
        } else {
          equal(f.output, term, OfOperand(action.value, slots));
        }
        break;
      }
      case Action::Kind::kLookup:
        if (reads.empty()) return std::nullopt;
        slots[action.result] = reads.front();
        relies->push_back(
            {action.function, args, {}, reads.front(), bank_.function(action.function).output});
        reads = reads.subspan(1);
        break;
      case Action::Kind::kPrimitive: {
        const size_t unions = bank_.unions().size();
        const bool nested = std::exchange(bank_.in_action_, true);
        const std::optional<Value> result = Evaluate(action.primitive, args);
        bank_.in_action_ = nested;
        Register();
        if (!result) return std::nullopt;
        slots[action.result] = *result;
        for (size_t u = unions; u < bank_.unions().size(); ++u) {
          const UnionRecord& asked = bank_.unions()[u];
          equal(bank_.ClassSort(asked.a), asked.a, asked.b);
        }
        // A primitive that calls constructors adds what it gives.
        const SortId sort = rule.slot_sorts[action.result];
        if (bank_.sort(sort).is_equality) {
          equal(sort, *result, *result);
        } else if (bank_.sort(sort).moves) {
          const std::span<const Value> elements = bank_.Elements(*result);
          for (size_t i = 0; i < elements.size(); ++i) {
            const SortId element = bank_.ElementSort(sort, elements, i);
            if (bank_.sort(element).is_equality) equal(element, elements[i], elements[i]);
          }
        }
        break;
      }
      case Action::Kind::kSet:
        claims.push_back({action.function,
                          args,
                          {},
                          OfOperand(action.value, slots),
                          bank_.function(action.function).output});
        break;
      case Action::Kind::kUnion:
        equal(bank_.ClassSort(args[0]), args[0], args[1]);
        break;
      case Action::Kind::kGlobal:
        slots[action.result] = OfValue(rule.slot_sorts[action.result], Value{action.value.bits});
        break;
      case Action::Kind::kRemove:
      case Action::Kind::kSubsume:
      case Action::Kind::kPanic:
        break;
    }
  }
  return claims;
}

std::optional<std::vector<Claim>> TermBank::ExecuteMerge(FunctionId f, std::span<const Value> args,
                                                         Value old_value, Value new_value,
                                                         std::span<const Value> reads,
                                                         std::vector<Claim>* relies) {
  const Function& function = bank_.function(f);
  const Merge& merge = function.merge;
  if (merge.kind() == Merge::Kind::kUnion) {
    return std::vector<Claim>{{{}, {}, old_value, new_value, function.output}};
  }
  if (merge.kind() != Merge::Kind::kCustom) return std::nullopt;
  std::vector<Claim> claims;
  std::optional<Value> merged;
  if (const Merge::Steps* steps = merge.steps()) {
    std::vector<Value> slots(steps->actions.slot_sorts.size());
    slots[0] = old_value;
    slots[1] = new_value;
    std::optional<std::vector<Claim>> made = Execute(steps->actions, slots, reads, relies);
    if (!made) return std::nullopt;
    claims = std::move(*made);
    merged = OfOperand(steps->result, slots);
  } else {
    merged = merge.fn()(bank_, old_value, new_value);
    Register();
  }
  if (!merged) return std::nullopt;
  claims.push_back({f, std::vector<Value>(args.begin(), args.end()), {}, *merged, function.output});
  return claims;
}

std::optional<Claim> TermBank::GivenNode(uint32_t node) {
  const ProofLog::Node& n = graph_.proof_log()->nodes()[node];
  if (n.cause != ProofLog::kCallerCause) return std::nullopt;
  const Value term = OfNode(node);
  return Claim{{}, {}, term, term, graph_.function(n.function).output};
}

std::optional<Claim> TermBank::GivenEquation(uint32_t equation) {
  const ProofLog& log = *graph_.proof_log();
  const ProofLog::Equation& e = log.equations()[equation];
  if (e.cause != ProofLog::kCallerCause) return std::nullopt;
  Value a = OfNode(e.a);
  if (e.row != ProofLog::kNone) {
    const FunctionId f{log.values()[e.row]};
    std::vector<Value> args;
    for (uint32_t i = 0; i < graph_.function(f).inputs.size(); ++i) {
      args.push_back(OfValue(graph_.function(f).inputs[i], Value{log.values()[e.row + 1 + i]}));
    }
    a = Call(f, args);
  }
  return Claim{{}, {}, a, OfNode(e.b), bank_.ClassSort(a)};
}

std::optional<Claim> TermBank::GivenFact(uint32_t fact) {
  const ProofLog& log = *graph_.proof_log();
  const ProofLog::Fact& k = log.facts()[fact];
  if (k.cause != ProofLog::kCallerCause) return std::nullopt;
  return FactClaim(fact);
}

Claim TermBank::FactClaim(uint32_t fact) {
  const ProofLog& log = *graph_.proof_log();
  const ProofLog::Fact& k = log.facts()[fact];
  const Function& f = graph_.function(k.function);
  Claim claim{k.function, {}, {}, {}, f.output};
  for (uint32_t i = 0; i < f.inputs.size(); ++i) {
    claim.args.push_back(OfValue(f.inputs[i], Value{log.values()[k.args + i]}));
  }
  claim.rhs = OfValue(f.output, Value{log.values()[k.args + f.inputs.size()]});
  return claim;
}

}  // namespace l3c::egraph
