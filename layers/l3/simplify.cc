#include "layers/l3/simplify.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l3/print.h"

namespace l3c::l3 {
namespace {

void Canonicalize(Domain& domain) {
  if (domain.kind == Domain::Kind::kTensor && domain.shape.empty()) {
    domain = Domain::Scalar(domain.dtype);
  }
  for (Domain& part : domain.parts) Canonicalize(part);
}

// a + b rounds to itself: both can be had back from the sum (Knuth's two-sum error is zero).
bool IsExactSum(double a, double b) {
  const double sum = a + b;
  const double b_seen = sum - a;
  return (a - (sum - b_seen)) + (b - b_seen) == 0;
}

void AddNamedTerms(const Goal& goal, std::set<std::string>& named) {
  for (const Ref& target : goal.targets) {
    if (target.kind == Ref::Kind::kTerm) named.insert(PrintRef(target));
  }
  for (const Goal& turn : goal.turns) AddNamedTerms(turn, named);
}

void MergeTerms(Loss& loss, const std::set<std::string>& named) {
  std::vector<Term> kept;
  std::map<std::string, size_t> first;  // what a term computes → its index in `kept`
  for (Term& term : loss.terms) {
    if (named.count(loss.name + "." + term.name) > 0) {
      kept.push_back(std::move(term));
      continue;
    }
    const auto [place, inserted] = first.emplace(PrintTermKind(term), kept.size());
    if (!inserted && IsExactSum(kept[place->second].weight, term.weight)) {
      kept[place->second].weight += term.weight;
    } else {
      kept.push_back(std::move(term));
    }
  }
  loss.terms = std::move(kept);
}

}  // namespace

Module Simplify(const Module& module) {
  Module simple = module;
  for (Data& data : simple.data) {
    for (Field& field : data.fields) Canonicalize(field.domain);
  }
  for (Model& model : simple.models) Canonicalize(model.out);
  std::set<std::string> named;
  AddNamedTerms(simple.goal, named);
  for (const auto& [path, hatches] : simple.hints) named.insert(path);
  for (Loss& loss : simple.losses) MergeTerms(loss, named);
  return simple;
}

}  // namespace l3c::l3
