#include "egraph/explain.h"

#include <utility>
#include <vector>

#include "egraph/proof_builder.h"

namespace l3c::egraph {
namespace {

// A proof with more steps is not made again along other ways.
constexpr size_t kMaxShortened = 100'000;

const EGraph& Rebuilt(EGraph& graph) {
  graph.Rebuild();
  return graph;
}

}  // namespace

Explainer::Explainer(EGraph& graph, TimeLimit limit)
    : graph_(graph), limit_(limit), bank_(Rebuilt(graph)), index_(graph, bank_, limit) {}

// The proof along the unions that joined classes, or, where redundant ones are known, the shortest
// of several.
template <typename Goals>
std::optional<Proof> Explainer::Prove(Goals&& goals) {
  gap_.clear();
  using Way = ProofIndex::Way;
  if (!index_.complete()) {
    gap_ = "the time limit passed before the log had been read";
    return std::nullopt;
  }
  ProofBuilder builder(graph_, bank_, index_, Way::kJoining, limit_);
  std::optional<Proof> proof = builder.Build(goals);
  if (!proof) {
    gap_ = builder.gap();
    return std::nullopt;
  }
  const size_t first = proof->steps.size();
  if (graph_.proof_log()->options().redundant && first <= kMaxShortened) {
    for (const Way way : {Way::kFewest, Way::kFewCongruences, Way::kEarly}) {
      ProofBuilder other(graph_, bank_, index_, way, limit_);
      std::optional<Proof> shorter = other.Build(goals);
      if (shorter && shorter->steps.size() < proof->steps.size()) proof = std::move(shorter);
    }
  }
  proof->first_steps = first;
  return proof;
}

std::optional<Proof> Explainer::Explain(Value a, Value b) {
  if (graph_.Find(a) != graph_.Find(b) || graph_.ClassSort(a) != graph_.ClassSort(b)) {
    gap_.clear();
    return std::nullopt;
  }
  const uint32_t now = graph_.proof_log()->now();
  const SortId sort = graph_.ClassSort(a);
  const Value x = bank_.OfValue(sort, a);
  const Value y = bank_.OfValue(sort, b);
  return Prove([&](ProofBuilder& p) {
    return std::vector{x == y ? p.There(x, now) : p.Equal(sort, x, y, now)};
  });
}

std::optional<Proof> Explainer::ExplainMatch(const Query& query, std::span<const Value> slots) {
  const uint32_t now = graph_.proof_log()->now();
  // A slot stands for the term that the query spells out for it, where it does; else for the term
  // with which its class was created.
  std::vector<Value> terms(slots.size());
  for (const Query::Preset& preset : query.presets) {
    terms[preset.slot] = bank_.OfValue(query.slot_sorts[preset.slot], preset.value);
  }
  const auto settle = [&](const Operand& o) {
    if (o.is_constant || terms[o.bits].valid()) return;
    terms[o.bits] = bank_.OfValue(query.slot_sorts[o.bits], slots[o.bits]);
  };
  for (const Atom& atom : query.atoms) {
    const Operand& out = atom.columns.back();
    std::vector<Value> args;
    for (size_t i = 0; i + 1 < atom.columns.size(); ++i) {
      settle(atom.columns[i]);
      args.push_back(TermBank::OfOperand(atom.columns[i], terms));
    }
    if (!out.is_constant && !terms[out.bits].valid() &&
        graph_.function(atom.function).kind == FunctionKind::kConstructor) {
      terms[out.bits] = bank_.Call(atom.function, args);
    }
  }
  for (uint32_t s = 0; s < terms.size(); ++s) settle(Operand::Slot(s));
  return Prove([&](ProofBuilder& p) {
    std::vector<Proof::Ref> goals;
    for (const Proof::Ref& r : p.Premises(query, terms, now)) {
      if (r.step != Proof::kNone) goals.push_back(r);
    }
    return goals;
  });
}

}  // namespace l3c::egraph
