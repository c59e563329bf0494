#include "egraph/proof_checker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "egraph/big.h"

namespace l3c::egraph {

using Kind = Proof::Step::Kind;

namespace {

constexpr uint32_t kStepsPerLook = 256;

}  // namespace

bool ProofChecker::Wrong(std::string what) {
  wrong_ = std::move(what);
  return false;
}

std::optional<std::string> ProofChecker::Check(const Proof& proof) {
  proof_ = &proof;
  values_.clear();
  concluded_.assign(proof.applications.size(), {});
  checked_.assign(proof.applications.size(), 0);
  if (!LoadTerms()) return wrong_;
  for (uint32_t s = 0; s < proof.steps.size(); ++s) {
    if (s % kStepsPerLook == 0 && limit_.Passed()) return "the time limit passed";
    if (!CheckStep(s)) return "step " + std::to_string(s + 1) + ": " + wrong_;
  }
  if (proof.goals.empty()) return "the proof shows nothing";
  for (uint32_t goal : proof.goals) {
    if (goal >= proof.steps.size()) return "a goal is no step";
  }
  return std::nullopt;
}

std::optional<std::string> ProofChecker::CheckEqual(const Proof& proof, Value a, Value b) {
  if (std::optional<std::string> wrong = Check(proof)) return wrong;
  const SortId sort = graph_.ClassSort(a);
  const Claim wanted{{}, {}, bank_.OfValue(sort, a), bank_.OfValue(sort, b), sort};
  if (proof.goals.size() == 1) {
    for (const bool reversed : {false, true}) {
      if (ClaimOf(Proof::Ref{proof.goals[0], reversed}) == wanted) return std::nullopt;
    }
  }
  return "the proof shows something else";
}

// --- Terms

bool ProofChecker::LoadTerms() {
  for (const Proof::Term& term : proof_->terms) {
    if (!LoadTerm(term)) {
      wrong_ = "term " + std::to_string(values_.size() + 1) + ": " + wrong_;
      return false;
    }
  }
  return true;
}

bool ProofChecker::LoadTerm(const Proof::Term& term) {
  if (term.sort.index >= graph_.sort_count()) return Wrong("no such sort");
  std::vector<Value> parts;
  for (uint32_t arg : term.args) {
    if (arg >= values_.size()) return Wrong("an argument is no earlier term");
    parts.push_back(values_[arg]);
    if (!parts.back().valid()) return Wrong("the call of a function is no argument");
  }
  EGraph& g = bank_.terms();
  const auto fits = [&](size_t i, SortId sort) { return proof_->terms[term.args[i]].sort == sort; };
  Value value;
  switch (term.kind) {
    case Proof::Term::Kind::kLiteral: {
      const auto* i = std::get_if<int64_t>(&term.literal);
      const auto* b = std::get_if<bool>(&term.literal);
      const auto* d = std::get_if<double>(&term.literal);
      const auto* s = std::get_if<std::string>(&term.literal);
      const bool text = term.sort == kString || (s && IsBigText(term.sort, *s));
      if (term.sort == kI64 && i) value = g.I64(*i);
      if (term.sort == kUnit && i) value = Value{static_cast<uint32_t>(*i)};
      if (term.sort == kBool && b) value = g.Bool(*b);
      if (term.sort == kF64 && d) value = g.F64(*d);
      if (text && s) value = g.String(*s);
      if (!value.valid()) return Wrong("a literal of another sort");
      break;
    }
    case Proof::Term::Kind::kCall: {
      if (term.function.index >= graph_.function_count()) return Wrong("no such function");
      const Function& f = graph_.function(term.function);
      if (f.output != term.sort || f.inputs.size() != parts.size())
        return Wrong("a wrong signature");
      for (size_t i = 0; i < parts.size(); ++i) {
        if (!fits(i, f.inputs[i])) return Wrong("an argument of another sort");
      }
      if (f.kind == FunctionKind::kConstructor) value = bank_.Call(term.function, parts);
      break;
    }
    case Proof::Term::Kind::kContainer: {
      const Sort& sort = graph_.sort(term.sort);
      if (!sort.is_container()) return Wrong("no container");
      const bool fn = sort.container == ContainerKind::kFn;
      if (fn && (parts.size() % 2 == 0 || !fits(0, kString))) return Wrong("no function value");
      if (sort.container == ContainerKind::kPair && parts.size() != 2) return Wrong("no pair");
      if (sort.container == ContainerKind::kMap && parts.size() % 2 != 0) {
        return Wrong("a key without a value");
      }
      for (size_t i = 0; i < parts.size(); ++i) {
        if (fn && i % 2 == 1 && parts[i].bits >= graph_.sort_count()) return Wrong("no such sort");
        if (!fits(i, graph_.ElementSort(term.sort, parts, i)))
          return Wrong("an element of another sort");
      }
      value = g.Container(term.sort, std::move(parts));
      break;
    }
  }
  values_.push_back(value);
  return true;
}

std::optional<Claim> ProofChecker::ClaimOf(uint32_t s) const {
  const Proof::Step& step = proof_->steps[s];
  if (step.lhs >= values_.size() || step.rhs >= values_.size()) return std::nullopt;
  const Proof::Term& lhs = proof_->terms[step.lhs];
  Claim claim{{}, {}, values_[step.lhs], values_[step.rhs], lhs.sort};
  if (lhs.sort != proof_->terms[step.rhs].sort || !claim.rhs.valid()) return std::nullopt;
  if (claim.lhs.valid()) return claim;
  claim.function = lhs.function;
  for (uint32_t arg : lhs.args) claim.args.push_back(values_[arg]);
  return claim;
}

std::optional<Claim> ProofChecker::ClaimOf(Proof::Ref ref) const {
  std::optional<Claim> claim = ClaimOf(ref.step);
  if (!ref.reversed || !claim) return claim;
  if (claim->is_fact()) return std::nullopt;
  std::swap(claim->lhs, claim->rhs);
  return claim;
}

bool ProofChecker::Shows(Proof::Ref ref, const Claim& wanted, uint32_t step) const {
  return ref.step < step && ClaimOf(ref) == wanted;
}

// --- Steps

bool ProofChecker::CheckStep(uint32_t s) {
  const Proof::Step& step = proof_->steps[s];
  const std::optional<Claim> claim = ClaimOf(s);
  if (!claim) return Wrong("it claims nothing that can be said");
  for (const Proof::Ref& r : step.premises) {
    if (r.step >= s) return Wrong("a premise does not come before it");
    if (!ClaimOf(r)) return Wrong("a fact is read backwards");
  }
  switch (step.kind) {
    case Kind::kGivenTerm:
    case Kind::kGivenEquality:
    case Kind::kGivenFact:
      return step.premises.empty() ? CheckGiven(step, *claim) : Wrong("a given needs no premise");
    case Kind::kApply:
      if (!step.premises.empty()) return Wrong("the premises belong to the application");
      if (step.source >= proof_->applications.size()) return Wrong("no such application");
      if (!CheckApplication(step.source, s)) return false;
      for (const Claim& c : concluded_[step.source]) {
        if (c == *claim) return true;
      }
      return Wrong("the application does not claim it");
    case Kind::kEqualArguments:
      return CheckCongruence(step, *claim);
    case Kind::kChain:
      return CheckChain(step, *claim);
    case Kind::kThere: {
      if (step.premises.size() != 1 || claim->is_fact() || claim->lhs != claim->rhs) {
        return Wrong("not of the form t = t");
      }
      const std::optional<Claim> from = ClaimOf(step.premises[0]);
      if (from->is_fact() || from->sort != claim->sort || from->lhs != claim->lhs) {
        return Wrong("the premise speaks of another term");
      }
      return true;
    }
    case Kind::kContainer:
      return CheckContainer(step, *claim);
  }
  return Wrong("no such kind of step");
}

bool ProofChecker::CheckGiven(const Proof::Step& step, const Claim& claim) {
  const ProofLog& log = *graph_.proof_log();
  std::optional<Claim> given;
  if (step.kind == Kind::kGivenTerm && step.source < log.nodes().size()) {
    given = bank_.GivenNode(step.source);
  } else if (step.kind == Kind::kGivenEquality && step.source < log.equations().size()) {
    given = bank_.GivenEquation(step.source);
  } else if (step.kind == Kind::kGivenFact && step.source < log.facts().size()) {
    given = bank_.GivenFact(step.source);
  }
  return given == claim || Wrong("nobody has put it in");
}

bool ProofChecker::CheckPremises(const Proof::Application& app, const Rule& rule,
                                 std::span<const Value> slots, size_t* used, uint32_t step) {
  const auto shown = [&](const Claim& wanted) {
    if (*used >= app.premises.size()) return Wrong("a premise is missing");
    const Proof::Ref ref = app.premises[(*used)++];
    if (ref.step == Proof::kNone && !wanted.is_fact() && wanted.lhs == wanted.rhs) return true;
    return Shows(ref, wanted, step) ||
           Wrong("premise " + std::to_string(*used) + " of the application is not shown");
  };
  for (const Atom& atom : rule.query.atoms) {
    const Function& f = graph_.function(atom.function);
    Claim wanted{atom.function, {}, {}, {}, f.output};
    for (const Operand& o : atom.columns) wanted.args.push_back(TermBank::OfOperand(o, slots));
    wanted.rhs = wanted.args.back();
    wanted.args.pop_back();
    if (f.kind == FunctionKind::kConstructor) {
      wanted.lhs = bank_.Call(atom.function, wanted.args);
      wanted.function = FunctionId{};
      wanted.args.clear();
      // Here t = t says that the term is there, which has to be shown.
      if (*used < app.premises.size() && app.premises[*used].step == Proof::kNone) {
        return Wrong("a term of the premises is not shown to be there");
      }
    }
    if (!shown(wanted)) return false;
  }
  for (const Query::Preset& preset : rule.query.presets) {
    const SortId sort = rule.query.slot_sorts[preset.slot];
    if (!shown({{}, {}, slots[preset.slot], bank_.OfValue(sort, preset.value), sort})) return false;
  }
  for (const PrimitiveAtom& p : rule.query.primitives) {
    std::vector<Value> args;
    for (const Operand& o : p.args) args.push_back(TermBank::OfOperand(o, slots));
    const Value output = TermBank::OfOperand(p.output, slots);
    if (bank_.IsEqualityPremise(rule.query, p)) {
      const SortId sort = rule.query.slot_sorts[p.args[0].bits];
      if (output == bank_.terms().Bool(true)) {
        if (!shown({{}, {}, args[0], args[1], sort})) return false;
        continue;
      }
      ++*used;
    }
    if (bank_.Evaluate(p.primitive, args) != output) {
      return Wrong("primitive '" + graph_.primitives()[p.primitive].name +
                   "' computes another value");
    }
  }
  return true;
}

bool ProofChecker::CheckApplication(uint32_t index, uint32_t step) {
  if (checked_[index]) return true;
  const Proof::Application& app = proof_->applications[index];
  std::vector<Value> slots;
  std::vector<Value> reads;
  for (uint32_t t : app.slots) {
    if (t >= values_.size() || !values_[t].valid()) return Wrong("a variable stands for no term");
    slots.push_back(values_[t]);
  }
  for (uint32_t t : app.reads) {
    if (t >= values_.size() || !values_[t].valid()) return Wrong("a read gives no term");
    reads.push_back(values_[t]);
  }
  const auto sorts_fit = [&](std::span<const SortId> sorts) {
    if (sorts.size() != app.slots.size()) return Wrong("a wrong number of variables");
    for (size_t i = 0; i < sorts.size(); ++i) {
      if (proof_->terms[app.slots[i]].sort != sorts[i]) return Wrong("a variable of another sort");
    }
    return true;
  };
  const ProofLog& log = *graph_.proof_log();
  std::optional<std::vector<Claim>> claims;
  std::vector<Claim> relies;
  size_t used = 0;
  if (app.kind == Proof::Application::Kind::kMerge) {
    const FunctionId f{app.subject};
    if (app.subject >= graph_.function_count()) return Wrong("no such function");
    const Function& function = graph_.function(f);
    std::vector<SortId> sorts = function.inputs;
    sorts.insert(sorts.end(), 2, function.output);
    if (function.kind != FunctionKind::kFunction || !sorts_fit(sorts)) return false;
    const size_t count = function.inputs.size();
    const std::vector<Value> args(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(count));
    for (; used < 2; ++used) {
      if (used >= app.premises.size() ||
          !Shows(app.premises[used], {f, args, {}, slots[count + used], function.output}, step)) {
        return Wrong("a value that is merged is not shown");
      }
    }
    claims = bank_.ExecuteMerge(f, args, slots[count], slots[count + 1], reads, &relies);
  } else {
    const bool is_rule = app.kind == Proof::Application::Kind::kRule;
    if (app.subject >= (is_rule ? graph_.rule_count() : log.statements().size()) ||
        (is_rule && app.subject <= kCongruence.index)) {
      return Wrong("no such rule or statement");
    }
    const Rule& rule = is_rule ? graph_.rule(RuleId{app.subject}) : *log.statements()[app.subject];
    if (!sorts_fit(rule.query.slot_sorts)) return false;
    if (!CheckPremises(app, rule, slots, &used, step)) return false;
    slots.resize(rule.slot_sorts.size());
    claims = bank_.Execute(rule, slots, reads, &relies);
  }
  if (!claims || relies.size() != reads.size()) return Wrong("the actions cannot be carried out");
  if (app.premises.size() != used + relies.size()) return Wrong("a wrong number of premises");
  for (const Claim& claim : relies) {
    if (!Shows(app.premises[used++], claim, step))
      return Wrong("a value that is read is not shown");
  }
  checked_[index] = 1;
  concluded_[index] = std::move(*claims);
  return true;
}

bool ProofChecker::CheckCongruence(const Proof::Step& step, const Claim& claim) {
  if (step.premises.empty()) return Wrong("it needs a premise");
  const Claim base = *ClaimOf(step.premises[0]);
  if (base.function != claim.function || base.sort != claim.sort || base.rhs != claim.rhs) {
    return Wrong("the first premise says something else");
  }
  FunctionId f = claim.function;
  std::vector<Value> from = base.args, to = claim.args;
  if (!claim.is_fact()) {
    if (!graph_.sort(claim.sort).is_equality) return Wrong("not over a call");
    f = bank_.FunctionOf(claim.lhs);
    if (bank_.FunctionOf(base.lhs) != f) return Wrong("calls of different functions");
    from.assign(bank_.ArgsOf(base.lhs).begin(), bank_.ArgsOf(base.lhs).end());
    to.assign(bank_.ArgsOf(claim.lhs).begin(), bank_.ArgsOf(claim.lhs).end());
  }
  size_t used = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    const Claim wanted{{}, {}, from[i], to[i], graph_.function(f).inputs[i]};
    if (used >= step.premises.size() || ClaimOf(step.premises[used++]) != wanted) {
      return Wrong("argument " + std::to_string(i + 1) + " is not shown to be equal");
    }
  }
  return used == step.premises.size() || Wrong("a premise too many");
}

bool ProofChecker::CheckChain(const Proof::Step& step, const Claim& claim) {
  if (step.premises.empty()) return Wrong("an empty chain");
  Claim reached = *ClaimOf(step.premises[0]);
  for (size_t i = 1; i < step.premises.size(); ++i) {
    const Claim next = *ClaimOf(step.premises[i]);
    if (next.is_fact() || next.sort != reached.sort || next.lhs != reached.rhs) {
      return Wrong("link " + std::to_string(i + 1) + " does not fit the one before it");
    }
    reached.rhs = next.rhs;
  }
  return reached == claim || Wrong("the chain leads elsewhere");
}

bool ProofChecker::CheckContainer(const Proof::Step& step, const Claim& claim) {
  const Sort& sort = graph_.sort(claim.sort);
  if (claim.is_fact() || !sort.moves) return Wrong("no container of terms");
  const EGraph& g = bank_.terms();
  std::vector<Value> x(g.Elements(claim.lhs).begin(), g.Elements(claim.lhs).end());
  std::vector<Value> y(g.Elements(claim.rhs).begin(), g.Elements(claim.rhs).end());
  std::set<std::pair<SortId, std::pair<Value, Value>>> equal;
  for (const Proof::Ref& r : step.premises) {
    const Claim c = *ClaimOf(r);
    if (c.is_fact()) return Wrong("a fact does not relate elements");
    equal.insert({c.sort, {c.lhs, c.rhs}});
  }
  const auto same = [&](size_t i, size_t j) {
    return x[i] == y[j] || equal.contains({g.ElementSort(claim.sort, x, i), {x[i], y[j]}});
  };
  if (sort.container == ContainerKind::kMultiSet) {
    for (const Proof::Ref& r : step.premises) {
      const Claim c = *ClaimOf(r);
      const auto a = std::find(x.begin(), x.end(), c.lhs);
      const auto b = std::find(y.begin(), y.end(), c.rhs);
      if (a == x.end() || b == y.end() || c.sort != sort.parameters[0])
        return Wrong("no such element");
      x.erase(a);
      y.erase(b);
    }
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    return x == y || Wrong("the elements do not pair up");
  }
  if (sort.container == ContainerKind::kSet || sort.container == ContainerKind::kMap) {
    const size_t columns = sort.container == ContainerKind::kMap ? 2 : 1;
    for (size_t j = 0; j < y.size(); j += columns) {
      bool found = false;
      for (size_t i = 0; i < x.size() && !found; i += columns) {
        found = same(i, j) && (columns == 1 || same(i + 1, j + 1));
      }
      if (!found) return Wrong("an element on the right has no partner");
    }
    for (size_t i = 0; i < x.size(); i += columns) {
      bool found = false;
      for (size_t j = 0; j < y.size() && !found; j += columns) found = same(i, j);
      if (!found) return Wrong("an element on the left has no partner");
    }
    return true;
  }
  if (x.size() != y.size()) return Wrong("containers of different sizes");
  for (size_t i = 0; i < x.size(); ++i) {
    if (!same(i, i)) return Wrong("element " + std::to_string(i + 1) + " is not shown to be equal");
  }
  return true;
}

}  // namespace l3c::egraph
