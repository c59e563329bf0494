#include "egraph/proof_builder.h"

#include <algorithm>
#include <utility>

namespace l3c::egraph {
namespace {

using Kind = Proof::Step::Kind;

constexpr uint32_t kMaxNested = 1000;

// The records between two looks at the clock.
constexpr uint32_t kDerivedPerLook = 256;

std::array<uint32_t, 3> EqualityKey(const Claim& claim) {
  return {claim.sort.index, claim.lhs.bits, claim.rhs.bits};
}

std::vector<uint32_t> FactKey(const Claim& claim) {
  std::vector<uint32_t> key{claim.function.index, claim.rhs.bits};
  for (Value v : claim.args) key.push_back(v.bits);
  return key;
}

Claim Reversed(Claim claim) {
  std::swap(claim.lhs, claim.rhs);
  return claim;
}

Claim Equality(SortId sort, Value x, Value y) { return {{}, {}, x, y, sort}; }

std::vector<Value> Copy(std::span<const Value> values) { return {values.begin(), values.end()}; }

}  // namespace

// --- The two passes

void ProofBuilder::Collect() {
  while (!wanted_.empty() && !failed_) {
    const uint32_t time = wanted_.top();
    wanted_.pop();
    collected_.push_back(time);
    Derive(time);
  }
}

void ProofBuilder::Write() {
  for (auto it = collected_.rbegin(); it != collected_.rend() && !failed_; ++it) {
    events_[*it] = Derive(*it);
  }
}

ProofBuilder::Ref ProofBuilder::Event(uint32_t time) {
  if (time >= limit_) return Fail("a record relies on a later one");
  if (!collecting_) return events_.at(time);
  if (events_.try_emplace(time).second) wanted_.push(time);
  return Ref{0, false};
}

ProofBuilder::Ref ProofBuilder::Derive(uint32_t time) {
  limit_ = time;
  if (++derived_ % kDerivedPerLook == 0 && time_.Passed()) return Fail("the time limit passed");
  const auto find = [time](const auto& records) {
    const auto it = std::lower_bound(records.begin(), records.end(), time,
                                     [](const auto& r, uint32_t t) { return r.time < t; });
    return it != records.end() && it->time == time ? static_cast<uint32_t>(it - records.begin())
                                                   : ProofLog::kNone;
  };
  if (const uint32_t n = find(log_.nodes()); n != ProofLog::kNone) return DeriveNode(n);
  if (const uint32_t e = find(log_.equations()); e != ProofLog::kNone) return DeriveEquation(e);
  return DeriveFact(find(log_.facts()));
}

ProofBuilder::Ref ProofBuilder::Fail(std::string why) {
  if (!failed_) gap_ = std::move(why);
  failed_ = true;
  return Ref{0, false};
}

// --- Records

ProofBuilder::Ref ProofBuilder::DeriveNode(uint32_t n) {
  const ProofLog::Node& node = log_.nodes()[n];
  const Value term = bank_.OfNode(n);
  const SortId sort = graph_.function(node.function).output;
  if (node.cause == ProofLog::kCallerCause) {
    return Emit(Kind::kGivenTerm, Equality(sort, term, term), {}, n);
  }
  const Applied* applied = Application(node.cause);
  if (applied == nullptr) return Ref{0, false};
  const std::vector<Value> args = Copy(bank_.ArgsOf(term));
  const std::vector<SortId>& inputs = graph_.function(node.function).inputs;
  const Claim* made = nullptr;
  for (const Claim& claim : applied->claims) {
    if (claim.is_fact() || claim.lhs != claim.rhs || claim.sort != sort ||
        bank_.FunctionOf(claim.lhs) != node.function) {
      continue;
    }
    const std::vector<Value> theirs = Copy(bank_.ArgsOf(claim.lhs));
    bool same = true;
    for (size_t i = 0; i < args.size() && same; ++i) {
      same = index_.SameAt(inputs[i], theirs[i], args[i], node.time);
    }
    if (same && (made == nullptr || claim.lhs == term)) made = &claim;
  }
  if (made == nullptr)
    return Fail("a term was made by a primitive in a way that is not written down");
  const Claim claim = *made;
  const Ref base = Apply(node.cause, claim);
  if (claim.lhs == term) return base;
  const Ref moved = Congruence(base, Equality(sort, term, claim.lhs), node.function,
                               Copy(bank_.ArgsOf(claim.lhs)), args, node.time);
  return Emit(Kind::kThere, Equality(sort, term, term), {moved});
}

ProofBuilder::Ref ProofBuilder::DeriveEquation(uint32_t e) {
  const ProofLog::Equation& equation = log_.equations()[e];
  const uint32_t t = equation.time;
  const auto [a, b] = index_.ends(e);
  const Value x = bank_.OfNode(a);
  const Value y = bank_.OfNode(b);
  const SortId sort = bank_.terms().ClassSort(x);
  if (x == y) return Ref{};
  if (equation.cause == ProofLog::kCongruenceCause) {
    if (bank_.FunctionOf(x) != bank_.FunctionOf(y)) return Fail("a congruence without its terms");
    return Congruence(Event(log_.nodes()[b].time), Equality(sort, x, y), bank_.FunctionOf(x),
                      Copy(bank_.ArgsOf(y)), Copy(bank_.ArgsOf(x)), t);
  }
  Ref base;
  Claim claim;
  if (equation.cause == ProofLog::kCallerCause) {
    claim = *bank_.GivenEquation(e);
    base = Emit(Kind::kGivenEquality, claim, {}, e);
  } else {
    const Applied* applied = Application(equation.cause);
    if (applied == nullptr) return Ref{0, false};
    // The claim that joined the two; of several, the one that says it most literally.
    int best = -1;
    for (const Claim& c : applied->claims) {
      if (c.is_fact() || c.sort != sort) continue;
      for (const Claim& side : {c, Reversed(c)}) {
        // That a term is there joins two when it is congruent to one of them.
        const int score = (side.lhs == x) + (side.rhs == y) + 3 * (c.lhs != c.rhs);
        if (score <= best || !index_.SameAt(sort, side.lhs, x, t) ||
            !index_.SameAt(sort, side.rhs, y, t)) {
          continue;
        }
        best = score;
        claim = side;
      }
    }
    if (best < 0)
      return Fail("an equality was made by a primitive in a way that is not written down");
    const bool turned =
        std::find(applied->claims.begin(), applied->claims.end(), claim) == applied->claims.end();
    base = Apply(equation.cause, turned ? Reversed(claim) : claim);
    base.reversed ^= turned;
  }
  return Chain(Equality(sort, x, y),
               {Equal(sort, x, claim.lhs, t), base, Equal(sort, claim.rhs, y, t)});
}

ProofBuilder::Ref ProofBuilder::DeriveFact(uint32_t k) {
  const ProofLog::Fact& fact = log_.facts()[k];
  const Claim wanted = bank_.FactClaim(k);
  if (fact.cause == ProofLog::kCallerCause) return Emit(Kind::kGivenFact, wanted, {}, k);
  const Applied* applied = Application(fact.cause);
  if (applied == nullptr) return Ref{0, false};
  const std::vector<SortId>& inputs = graph_.function(fact.function).inputs;
  const Claim* made = nullptr;
  for (const Claim& claim : applied->claims) {
    if (claim.function != fact.function) continue;
    bool same = index_.SameAt(wanted.sort, claim.rhs, wanted.rhs, fact.time);
    for (size_t i = 0; i < inputs.size() && same; ++i) {
      same = index_.SameAt(inputs[i], claim.args[i], wanted.args[i], fact.time);
    }
    if (same && (made == nullptr || claim == wanted)) made = &claim;
  }
  if (made == nullptr) return Fail("a fact was set in a way that is not written down");
  const Claim claim = *made;
  return AsFact(Apply(fact.cause, claim), claim, wanted, fact.time);
}

// --- Applications

std::vector<Value> ProofBuilder::ReadsOf(uint32_t application) {
  if (!reads_) {
    reads_.emplace();
    for (const ProofLog::Read& r : log_.reads()) (*reads_)[r.application].push_back(r.value);
  }
  const auto it = reads_->find(application);
  return it == reads_->end() ? std::vector<Value>{} : it->second;
}

// What the application claims, as far as it can be carried out on terms.
std::optional<ProofBuilder::Applied> ProofBuilder::Carry(uint32_t index) {
  const ProofLog::Application& record = log_.applications()[index];
  Applied applied;
  applied.subject = record.subject;
  const auto slot = [&](SortId sort, size_t i) {
    applied.slots.push_back(bank_.OfValue(sort, Value{log_.slots()[record.slots + i]}));
    applied.slot_sorts.push_back(sort);
  };
  const std::vector<Value> reads = ReadsOf(index);
  const auto read = [&](const Rule& rule) {
    for (const Action& action : rule.actions) {
      if (action.kind != Action::Kind::kLookup || applied.reads.size() == reads.size()) continue;
      const SortId sort = graph_.function(action.function).output;
      applied.reads.push_back(bank_.OfValue(sort, reads[applied.reads.size()]));
      applied.read_sorts.push_back(sort);
    }
  };
  std::optional<std::vector<Claim>> claims;
  if (record.kind == ProofLog::Application::Kind::kMerge) {
    applied.kind = Proof::Application::Kind::kMerge;
    const FunctionId f{record.subject};
    const Function& function = graph_.function(f);
    for (size_t i = 0; i < function.inputs.size(); ++i) slot(function.inputs[i], i);
    slot(function.output, function.inputs.size());
    slot(function.output, function.inputs.size() + 1);
    if (const Merge::Steps* steps = function.merge.steps()) read(steps->actions);
    const size_t count = function.inputs.size();
    claims = bank_.ExecuteMerge(f, std::span(applied.slots).first(count), applied.slots[count],
                                applied.slots[count + 1], applied.reads, &applied.relies);
  } else {
    const bool rule = record.kind == ProofLog::Application::Kind::kRule;
    applied.kind = rule ? Proof::Application::Kind::kRule : Proof::Application::Kind::kStatement;
    const Rule& actions =
        rule ? graph_.rule(RuleId{record.subject}) : *log_.statements()[record.subject];
    for (size_t i = 0; i < actions.query.slot_sorts.size(); ++i) {
      slot(actions.query.slot_sorts[i], i);
    }
    read(actions);
    std::vector<Value> slots = applied.slots;
    slots.resize(actions.slot_sorts.size());
    claims = bank_.Execute(actions, slots, applied.reads, &applied.relies);
  }
  if (!claims) return std::nullopt;
  applied.claims = std::move(*claims);
  return applied;
}

ProofBuilder::Applied* ProofBuilder::Application(uint32_t index) {
  const auto it = applied_.find(index);
  if (it != applied_.end()) return &it->second;
  std::optional<Applied> applied = Carry(index);
  if (!applied) {
    Fail("an action calls a primitive that looks into the tables");
    return nullptr;
  }
  return &applied_.emplace(index, std::move(*applied)).first->second;
}

ProofBuilder::Ref ProofBuilder::Apply(uint32_t index, const Claim& claim) {
  if (const std::optional<Ref> known = Known(claim)) return *known;
  Applied& applied = *Application(index);
  if (!(collecting_ ? applied.collected : applied.proven)) {
    (collecting_ ? applied.collected : applied.proven) = true;
    const uint32_t t = log_.applications()[index].time;
    std::vector<Ref> premises;
    if (applied.kind == Proof::Application::Kind::kRule) {
      premises = Premises(graph_.rule(RuleId{applied.subject}).query, applied.slots, t);
    } else if (applied.kind == Proof::Application::Kind::kMerge) {
      const size_t count = applied.slots.size() - 2;
      const std::span<const Value> args = std::span(applied.slots).first(count);
      for (size_t i : {count, count + 1}) {
        premises.push_back(Fact(FunctionId{applied.subject}, args, applied.slots[i], t));
      }
    }
    for (const Claim& claim_read : applied.relies) {
      premises.push_back(Fact(claim_read.function, claim_read.args, claim_read.rhs, limit_));
    }
    applied.premises = std::move(premises);
  }
  return Emit(Kind::kApply, claim, {}, index);
}

std::vector<ProofBuilder::Ref> ProofBuilder::Premises(const Query& query,
                                                      std::span<const Value> slots, uint32_t t) {
  std::vector<Ref> premises;
  for (const Atom& atom : query.atoms) {
    std::vector<Value> columns;
    for (const Operand& o : atom.columns) columns.push_back(TermBank::OfOperand(o, slots));
    const std::span<const Value> args = std::span(columns).first(columns.size() - 1);
    if (graph_.function(atom.function).kind == FunctionKind::kConstructor) {
      premises.push_back(Row(atom.function, args, columns.back(), t));
    } else {
      premises.push_back(Fact(atom.function, args, columns.back(), t));
    }
  }
  for (const Query::Preset& preset : query.presets) {
    const SortId sort = query.slot_sorts[preset.slot];
    premises.push_back(Equal(sort, slots[preset.slot], bank_.OfValue(sort, preset.value), t));
  }
  for (const PrimitiveAtom& p : query.primitives) {
    if (!bank_.IsEqualityPremise(query, p)) continue;
    const SortId sort = query.slot_sorts[p.args[0].bits];
    const bool holds = TermBank::OfOperand(p.output, slots) == bank_.terms().Bool(true);
    premises.push_back(holds ? Equal(sort, TermBank::OfOperand(p.args[0], slots),
                                     TermBank::OfOperand(p.args[1], slots), t)
                             : Ref{});
  }
  return premises;
}

// --- What follows from records

ProofBuilder::Ref ProofBuilder::Equal(SortId sort, Value x, Value y, uint32_t t) {
  if (x == y) return Ref{};
  if (const std::optional<Ref> known = Known(Equality(sort, x, y))) return *known;
  if (!graph_.sort(sort).is_equality) return Container(sort, x, y, t);
  const auto met = index_.Meet(x, y, t);
  if (!met) return Fail("two terms that were taken for equal are not");
  const auto [a, b] = *met;
  const auto path = index_.Path(a, b, t, way_);
  // Terms that are not written down nest as deep as rules do, and as congruences between rebuilds.
  if (nested_ >= kMaxNested) return Fail("equalities that rest on one another too deeply");
  ++nested_;
  std::vector<Ref> links;
  if (bank_.OfNode(a) != x) links.push_back(NodeIs(a, x, t));
  for (const ProofIndex::Hop& hop : *path) {
    Ref link = Event(log_.equations()[hop.equation].time);
    link.reversed ^= hop.reversed;
    links.push_back(link);
  }
  if (bank_.OfNode(b) != y) {
    links.push_back(NodeIs(b, y, t));
    links.back().reversed ^= true;
  }
  --nested_;
  return Chain(Equality(sort, x, y), std::move(links));
}

ProofBuilder::Ref ProofBuilder::NodeIs(uint32_t n, Value term, uint32_t t) {
  const Value its = bank_.OfNode(n);
  return Congruence(Event(log_.nodes()[n].time), Equality(bank_.terms().ClassSort(term), term, its),
                    bank_.FunctionOf(term), Copy(bank_.ArgsOf(its)), Copy(bank_.ArgsOf(term)), t);
}

ProofBuilder::Ref ProofBuilder::There(Value term, uint32_t t) {
  const Claim claim = Equality(bank_.terms().ClassSort(term), term, term);
  if (const std::optional<Ref> known = Known(claim)) return *known;
  const std::optional<uint32_t> n = index_.NodeOf(term, t);
  if (!n) return Fail("a term that was taken to be there is not");
  if (bank_.OfNode(*n) == term) return Event(log_.nodes()[*n].time);
  return Emit(Kind::kThere, claim, {NodeIs(*n, term, t)});
}

ProofBuilder::Ref ProofBuilder::Row(FunctionId f, std::span<const Value> args, Value out,
                                    uint32_t t) {
  const Value term = bank_.Call(f, args);
  return term == out ? There(term, t) : Equal(graph_.function(f).output, term, out, t);
}

ProofBuilder::Ref ProofBuilder::Fact(FunctionId f, std::span<const Value> args, Value value,
                                     uint32_t t) {
  const Claim wanted{f, Copy(args), {}, value, graph_.function(f).output};
  if (const std::optional<Ref> known = Known(wanted)) return *known;
  const std::optional<uint32_t> k = index_.FactOf(f, args, value, t);
  if (!k) return Fail("a fact that was taken to hold does not");
  return AsFact(Event(log_.facts()[*k].time), bank_.FactClaim(*k), wanted, t);
}

ProofBuilder::Ref ProofBuilder::AsFact(Ref base, const Claim& has, Claim wanted, uint32_t t) {
  if (has.args != wanted.args) {
    Claim moved = wanted;
    moved.rhs = has.rhs;
    base = Congruence(base, moved, wanted.function, has.args, wanted.args, t);
  }
  if (has.rhs == wanted.rhs) return base;
  const Ref value = Equal(wanted.sort, has.rhs, wanted.rhs, t);
  return Emit(Kind::kChain, std::move(wanted), {base, value});
}

ProofBuilder::Ref ProofBuilder::Congruence(Ref base, Claim claim, FunctionId f,
                                           std::span<const Value> from, std::span<const Value> to,
                                           uint32_t t) {
  if (const std::optional<Ref> known = Known(claim)) return *known;
  std::vector<Ref> premises{base};
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    premises.push_back(Equal(graph_.function(f).inputs[i], from[i], to[i], t));
  }
  return Emit(Kind::kEqualArguments, std::move(claim), std::move(premises));
}

ProofBuilder::Ref ProofBuilder::Container(SortId sort, Value x, Value y, uint32_t t) {
  const Sort& s = graph_.sort(sort);
  if (!s.moves) return Fail("two values that were taken for equal are not");
  // Containers may share what they hold many times over.
  if (collecting_ && !collected_containers_.insert({sort.index, x.bits, y.bits, t}).second) {
    return Ref{0, false};
  }
  const std::vector<Value> from = Copy(bank_.terms().Elements(x));
  std::vector<Value> to = Copy(bank_.terms().Elements(y));
  std::vector<Ref> premises;
  const auto same = [&](size_t i, size_t j) {
    return index_.SameAt(bank_.terms().ElementSort(sort, from, i), from[i], to[j], t);
  };
  const auto relate = [&](size_t i, size_t j) {
    const Ref r = Equal(bank_.terms().ElementSort(sort, from, i), from[i], to[j], t);
    if (r.step != Proof::kNone) premises.push_back(r);
  };
  const size_t columns = s.container == ContainerKind::kMap ? 2 : 1;
  switch (s.container) {
    case ContainerKind::kVec:
    case ContainerKind::kPair:
    case ContainerKind::kFn:
      if (from.size() != to.size()) return Fail("containers of different sizes");
      for (size_t i = 0; i < from.size(); ++i) {
        if (from[i] != to[i]) relate(i, i);
      }
      break;
    case ContainerKind::kMultiSet: {
      // What stands in both stays; the rest is paired.
      std::vector<uint8_t> used(to.size(), 0);
      const auto take = [&](size_t i, bool identical) {
        for (size_t j = 0; j < to.size(); ++j) {
          if (used[j] || (identical ? from[i] != to[j] : !same(i, j))) continue;
          used[j] = 1;
          if (!identical) relate(i, j);
          return true;
        }
        return false;
      };
      std::vector<size_t> left;
      for (size_t i = 0; i < from.size(); ++i) {
        if (!take(i, true)) left.push_back(i);
      }
      for (size_t i : left) {
        if (!take(i, false)) return Fail("multisets that do not pair up");
      }
      break;
    }
    default: {
      // Sets, and maps by entries: each has a partner on the other side.
      const auto partner = [&](size_t i, size_t j) {
        return same(i, j) && (columns == 1 || same(i + 1, j + 1));
      };
      const auto relate_entry = [&](size_t i, size_t j) {
        for (size_t c = 0; c < columns; ++c) relate(i + c, j + c);
      };
      for (size_t j = 0; j < to.size(); j += columns) {
        size_t i = 0;
        while (i < from.size() && !partner(i, j)) i += columns;
        if (i >= from.size()) return Fail("containers without partners for their elements");
        relate_entry(i, j);
      }
      for (size_t i = 0; i < from.size(); i += columns) {
        size_t j = 0;
        while (j < to.size() && !same(i, j)) j += columns;
        if (j >= to.size()) return Fail("containers without partners for their elements");
        relate(i, j);
      }
    }
  }
  return Emit(Kind::kContainer, Equality(sort, x, y), std::move(premises));
}

// --- Writing

std::optional<ProofBuilder::Ref> ProofBuilder::Known(const Claim& claim) const {
  if (collecting_) return std::nullopt;
  if (claim.is_fact()) {
    const auto it = by_fact_.find(FactKey(claim));
    return it == by_fact_.end() ? std::nullopt : std::optional(Ref{it->second, false});
  }
  std::array<uint32_t, 3> key = EqualityKey(claim);
  if (const auto it = by_equality_.find(key); it != by_equality_.end()) {
    return Ref{it->second, false};
  }
  std::swap(key[1], key[2]);
  const auto it = by_equality_.find(key);
  return it == by_equality_.end() ? std::nullopt : std::optional(Ref{it->second, true});
}

Value ProofBuilder::LeftOf(Ref r) const {
  const Claim& claim = drafts_[r.step].claim;
  return r.reversed ? claim.rhs : claim.lhs;
}

Value ProofBuilder::RightOf(Ref r) const { return LeftOf({r.step, !r.reversed}); }

ProofBuilder::Ref ProofBuilder::Emit(Kind kind, Claim claim, std::vector<Ref> premises,
                                     uint32_t source) {
  if (collecting_ || failed_) return Ref{0, false};
  if (const std::optional<Ref> known = Known(claim)) return *known;
  const auto step = static_cast<uint32_t>(drafts_.size());
  if (claim.is_fact()) {
    by_fact_.emplace(FactKey(claim), step);
  } else {
    by_equality_.emplace(EqualityKey(claim), step);
  }
  drafts_.push_back({kind, std::move(claim), source, std::move(premises)});
  return Ref{step, false};
}

ProofBuilder::Ref ProofBuilder::Chain(Claim claim, std::vector<Ref> links) {
  if (collecting_ || failed_) return Ref{0, false};
  if (const std::optional<Ref> known = Known(claim)) return *known;
  // A chain that comes back to a term goes on from its first visit.
  std::vector<Ref> kept;
  absl::flat_hash_map<uint32_t, size_t> visited{{claim.lhs.bits, 0}};
  for (const Ref& link : links) {
    if (link.step == Proof::kNone || LeftOf(link) == RightOf(link)) continue;
    kept.push_back(link);
    const auto [it, fresh] = visited.try_emplace(RightOf(link).bits, kept.size());
    if (fresh) continue;
    while (kept.size() > it->second) {
      if (const auto at = visited.find(RightOf(kept.back()).bits); at->second == kept.size()) {
        visited.erase(at);
      }
      kept.pop_back();
    }
  }
  if (kept.size() == 1) return kept[0];
  return Emit(Kind::kChain, std::move(claim), std::move(kept));
}

// A chain that only one other chain uses is part of that.
void ProofBuilder::Flatten(std::vector<uint32_t>* uses) {
  for (size_t s = 0; s < drafts_.size(); ++s) {
    Draft& draft = drafts_[s];
    if (draft.kind != Kind::kChain || (*uses)[s] == 0) continue;
    std::vector<Ref> links;
    for (const Ref& link : draft.premises) {
      const Draft& inner = drafts_[link.step];
      if (inner.kind != Kind::kChain || (*uses)[link.step] != 1) {
        links.push_back(link);
        continue;
      }
      (*uses)[link.step] = 0;
      std::vector<Ref> parts = inner.premises;
      if (link.reversed) {
        std::reverse(parts.begin(), parts.end());
        for (Ref& part : parts) part.reversed ^= true;
      }
      links.insert(links.end(), parts.begin(), parts.end());
    }
    draft.premises = std::move(links);
  }
}

std::optional<Proof> ProofBuilder::Finish(const std::vector<Ref>& wanted) {
  std::vector<uint32_t> goals;
  for (const Ref& r : wanted) {
    if (r.step == Proof::kNone) continue;
    if (std::find(goals.begin(), goals.end(), r.step) == goals.end()) goals.push_back(r.step);
  }
  // What the goals rest on. Steps come after what they use, so one pass backwards finds it.
  std::vector<uint32_t> uses(drafts_.size(), 0);
  absl::flat_hash_map<uint32_t, uint32_t> application_of;  // of the log -> of the proof
  for (uint32_t g : goals) uses[g] += 2;
  std::vector<uint32_t> used_applications;
  for (size_t s = drafts_.size(); s-- > 0;) {
    if (uses[s] == 0) continue;
    for (const Ref& r : drafts_[s].premises) ++uses[r.step];
    if (drafts_[s].kind != Kind::kApply) continue;
    // Its premises are before its first use, and are counted there, which is passed last.
    const Applied& applied = applied_.at(drafts_[s].source);
    if (application_of.try_emplace(drafts_[s].source, 0).second) {
      used_applications.push_back(drafts_[s].source);
    }
    for (const Ref& r : applied.premises) {
      if (r.step != Proof::kNone) uses[r.step] += 2;
    }
  }
  Flatten(&uses);

  Proof proof;
  std::sort(used_applications.begin(), used_applications.end());
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> terms;  // by sort and value
  absl::flat_hash_map<std::vector<uint32_t>, uint32_t> calls;  // of functions, by all they say
  const auto add = [&](Proof::Term term) {
    proof.terms.push_back(std::move(term));
    return static_cast<uint32_t>(proof.terms.size() - 1);
  };
  const auto term_of = [&](SortId root_sort, Value root) {
    std::vector<std::pair<SortId, Value>> pending{{root_sort, root}};
    while (!pending.empty()) {
      const auto [sort, v] = pending.back();
      const std::pair key(sort.index, v.bits);
      if (terms.contains(key)) {
        pending.pop_back();
        continue;
      }
      const Sort& s = graph_.sort(sort);
      Proof::Term term;
      term.sort = sort;
      if (!s.is_equality && !s.is_container()) {
        if (sort == kBool) {
          term.literal = graph_.AsBool(v);
        } else if (sort == kI64) {
          term.literal = bank_.terms().AsI64(v);
        } else if (sort == kF64) {
          term.literal = bank_.terms().AsF64(v);
        } else if (sort == kUnit) {
          term.literal = int64_t{v.bits};
        } else {
          term.literal = bank_.terms().AsString(v);
        }
        terms.emplace(key, add(std::move(term)));
        pending.pop_back();
        continue;
      }
      std::vector<Value> parts;
      const size_t before = pending.size();
      term.kind = s.is_equality ? Proof::Term::Kind::kCall : Proof::Term::Kind::kContainer;
      if (s.is_equality) term.function = bank_.FunctionOf(v);
      parts = Copy(s.is_equality ? bank_.ArgsOf(v) : bank_.terms().Elements(v));
      for (size_t i = 0; i < parts.size(); ++i) {
        const SortId part = s.is_equality ? graph_.function(term.function).inputs[i]
                                          : bank_.terms().ElementSort(sort, parts, i);
        if (const auto it = terms.find({part.index, parts[i].bits}); it != terms.end()) {
          term.args.push_back(it->second);
        } else {
          pending.push_back({part, parts[i]});
        }
      }
      if (pending.size() != before) continue;
      terms.emplace(key, add(std::move(term)));
      pending.pop_back();
    }
    return terms.at({root_sort.index, root.bits});
  };
  const auto call_of = [&](const Claim& claim) {
    Proof::Term term;
    term.kind = Proof::Term::Kind::kCall;
    term.sort = claim.sort;
    term.function = claim.function;
    std::vector<uint32_t> key{claim.function.index};
    for (size_t i = 0; i < claim.args.size(); ++i) {
      term.args.push_back(term_of(graph_.function(claim.function).inputs[i], claim.args[i]));
      key.push_back(term.args.back());
    }
    if (const auto it = calls.find(key); it != calls.end()) return it->second;
    return calls.emplace(std::move(key), add(std::move(term))).first->second;
  };

  std::vector<uint32_t> number(drafts_.size(), Proof::kNone);
  for (size_t s = 0; s < drafts_.size(); ++s) {
    if (uses[s] == 0) continue;
    const Draft& draft = drafts_[s];
    Proof::Step step;
    step.kind = draft.kind;
    step.lhs =
        draft.claim.is_fact() ? call_of(draft.claim) : term_of(draft.claim.sort, draft.claim.lhs);
    step.rhs = term_of(draft.claim.sort, draft.claim.rhs);
    step.source = draft.source;
    for (const Ref& r : draft.premises) step.premises.push_back({number[r.step], r.reversed});
    if (draft.kind == Kind::kApply) {
      const auto it =
          std::lower_bound(used_applications.begin(), used_applications.end(), draft.source);
      step.source = static_cast<uint32_t>(it - used_applications.begin());
    }
    number[s] = static_cast<uint32_t>(proof.steps.size());
    proof.steps.push_back(std::move(step));
  }
  for (uint32_t a : used_applications) {
    const Applied& applied = applied_.at(a);
    Proof::Application out;
    out.kind = applied.kind;
    out.subject = applied.subject;
    for (size_t i = 0; i < applied.slots.size(); ++i) {
      out.slots.push_back(term_of(applied.slot_sorts[i], applied.slots[i]));
    }
    for (size_t i = 0; i < applied.reads.size(); ++i) {
      out.reads.push_back(term_of(applied.read_sorts[i], applied.reads[i]));
    }
    for (const Ref& r : applied.premises) {
      out.premises.push_back(r.step == Proof::kNone ? Ref{} : Ref{number[r.step], r.reversed});
    }
    proof.applications.push_back(std::move(out));
  }
  for (uint32_t g : goals) proof.goals.push_back(number[g]);
  return proof;
}

}  // namespace l3c::egraph
