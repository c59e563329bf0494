#include "egraph/egraph.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "egraph/big.h"

namespace l3c::egraph {
namespace {

// Integers of 31 bits stand in the value itself (low bit 0), larger ones in a pool (low bit 1).
constexpr int64_t kMaxInlineInt = (int64_t{1} << 30) - 1;
constexpr int64_t kMinInlineInt = -(int64_t{1} << 30);

}  // namespace

std::string_view NumericsName(Numerics numerics) {
  switch (numerics) {
    case Numerics::kExact:
      return "exact";
    case Numerics::kReassoc:
      return "reassoc";
    case Numerics::kFast:
      return "fast";
  }
  return "exact";
}

std::optional<Numerics> ParseNumerics(std::string_view name) {
  for (Numerics n : {Numerics::kExact, Numerics::kReassoc, Numerics::kFast}) {
    if (NumericsName(n) == name) return n;
  }
  return std::nullopt;
}

EGraph::EGraph() {
  DeclareSort("Unit");
  for (std::string_view name : {"bool", "i64", "f64", "String", "BigInt", "BigRat", "Rational"}) {
    DeclareSort(name);
  }
  for (Sort& sort : sorts_) sort.is_equality = false;
  DeclareRuleset("");
  // The two ids of provenance that are no rules.
  for (const char* name : {"initial", "congruence"}) {
    auto rule = std::make_shared<Rule>();
    rule->name = name;
    rule->ruleset = RulesetId{};
    rules_.push_back(std::move(rule));
    rule_clock_.push_back(0);
    histories_.emplace_back();
  }
  RegisterBuiltinPrimitives(*this);
  for (Primitive& primitive : primitives_) {
    primitive.reads_only = primitive.output == kUnit || primitive.output == kBool;
  }
  RegisterBigPrimitives(*this);
}

// --- Declarations

SortId EGraph::DeclareSort(std::string_view name) {
  const SortId id{static_cast<uint32_t>(sorts_.size())};
  [[maybe_unused]] const bool fresh = sort_by_name_.emplace(name, id).second;
  assert(fresh && "sort declared twice");
  Sort sort;
  sort.name = name;
  sort.is_equality = true;
  sorts_.push_back(std::move(sort));
  return id;
}

SortId EGraph::DeclareContainer(std::string_view name, ContainerKind kind,
                                std::span<const SortId> parameters) {
  const SortId id = DeclareSort(name);
  Sort& declared = sorts_[id.index];
  declared.is_equality = false;
  declared.container = kind;
  declared.parameters.assign(parameters.begin(), parameters.end());
  for (SortId parameter : parameters) {
    declared.moves |= sorts_[parameter.index].is_equality || sorts_[parameter.index].moves;
  }
  // A function may have captured values of any sort.
  declared.moves |= kind == ContainerKind::kFn;
  RegisterContainerPrimitives(*this, id);
  return id;
}

FunctionId EGraph::DeclareTable(Function function) {
  assert(function.inputs.size() <= kMaxArity);
  const FunctionId id{static_cast<uint32_t>(functions_.size())};
  [[maybe_unused]] const bool fresh = function_by_name_.emplace(function.name, id).second;
  assert(fresh && "function declared twice");
  tables_.emplace_back(static_cast<uint32_t>(function.inputs.size()));
  functions_.push_back(std::move(function));
  return id;
}

FunctionId EGraph::DeclareConstructor(std::string_view name, std::span<const SortId> inputs,
                                      SortId output, ConstructorOptions options) {
  assert(sort(output).is_equality);
  Function f;
  f.name = name;
  f.kind = FunctionKind::kConstructor;
  f.inputs.assign(inputs.begin(), inputs.end());
  f.output = output;
  f.cost = options.cost;
  f.extractable = options.extractable;
  f.hidden = options.hidden;
  return DeclareTable(std::move(f));
}

FunctionId EGraph::DeclareConstructor(std::string_view name, std::initializer_list<SortId> inputs,
                                      SortId output, ConstructorOptions options) {
  return DeclareConstructor(name, std::span(inputs.begin(), inputs.size()), output, options);
}

FunctionId EGraph::DeclareFunction(std::string_view name, std::span<const SortId> inputs,
                                   SortId output, Merge merge) {
  Function f;
  f.name = name;
  f.kind = FunctionKind::kFunction;
  f.inputs.assign(inputs.begin(), inputs.end());
  f.output = output;
  f.merge = std::move(merge);
  return DeclareTable(std::move(f));
}

FunctionId EGraph::DeclareFunction(std::string_view name, std::initializer_list<SortId> inputs,
                                   SortId output, Merge merge) {
  return DeclareFunction(name, std::span(inputs.begin(), inputs.size()), output, std::move(merge));
}

FunctionId EGraph::DeclareRelation(std::string_view name, std::span<const SortId> inputs) {
  Function f;
  f.name = name;
  f.kind = FunctionKind::kRelation;
  f.inputs.assign(inputs.begin(), inputs.end());
  f.output = kUnit;
  f.merge = Merge::AssertEqual();
  return DeclareTable(std::move(f));
}

FunctionId EGraph::DeclareRelation(std::string_view name, std::initializer_list<SortId> inputs) {
  return DeclareRelation(name, std::span(inputs.begin(), inputs.size()));
}

RulesetId EGraph::DeclareRuleset(std::string_view name) {
  const RulesetId id{static_cast<uint32_t>(ruleset_names_.size())};
  [[maybe_unused]] const bool fresh = ruleset_by_name_.emplace(name, id).second;
  assert(fresh && "ruleset declared twice");
  ruleset_names_.emplace_back(name);
  ruleset_members_.push_back({id});
  ruleset_combined_.push_back(0);
  return id;
}

RulesetId EGraph::DeclareCombinedRuleset(std::string_view name,
                                         std::span<const RulesetId> members) {
  const RulesetId id = DeclareRuleset(name);
  std::vector<RulesetId>& all = ruleset_members_[id.index];
  all.clear();
  for (RulesetId member : members) {
    const std::span<const RulesetId> parts = RulesetMembers(member);
    all.insert(all.end(), parts.begin(), parts.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  ruleset_combined_.back() = 1;
  return id;
}

void EGraph::RegisterPrimitive(std::string_view name, std::span<const SortId> inputs, SortId output,
                               PrimitiveFn fn, uint32_t repeated) {
  primitives_by_name_[name].push_back(static_cast<uint32_t>(primitives_.size()));
  primitives_.push_back({std::string(name), std::vector<SortId>(inputs.begin(), inputs.end()),
                         output, std::move(fn), repeated});
}

void EGraph::RegisterPrimitive(std::string_view name, std::initializer_list<SortId> inputs,
                               SortId output, PrimitiveFn fn, uint32_t repeated) {
  RegisterPrimitive(name, std::span(inputs.begin(), inputs.size()), output, std::move(fn),
                    repeated);
}

SortId EGraph::FindSort(std::string_view name) const {
  auto it = sort_by_name_.find(name);
  return it == sort_by_name_.end() ? SortId{} : it->second;
}

FunctionId EGraph::FindFunction(std::string_view name) const {
  auto it = function_by_name_.find(name);
  return it == function_by_name_.end() ? FunctionId{} : it->second;
}

RulesetId EGraph::FindRuleset(std::string_view name) const {
  auto it = ruleset_by_name_.find(name);
  return it == ruleset_by_name_.end() ? RulesetId{} : it->second;
}

std::span<const uint32_t> EGraph::FindPrimitives(std::string_view name) const {
  auto it = primitives_by_name_.find(name);
  if (it == primitives_by_name_.end()) return {};
  return it->second;
}

RuleId EGraph::AddRule(Rule rule) {
  const RuleId id{static_cast<uint32_t>(rules_.size())};
  rules_.push_back(std::make_shared<const Rule>(std::move(rule)));
  rule_clock_.push_back(0);
  histories_.emplace_back();
  return id;
}

void EGraph::SetHidden(FunctionId f, bool hidden) {
  if (!levels_.empty()) old_hidden_.emplace_back(f, functions_[f.index].hidden);
  functions_[f.index].hidden = hidden;
}

SchedulerId EGraph::DeclareScheduler(std::string_view name, BackoffOptions options) {
  const SchedulerId known = FindScheduler(name);
  if (known.valid()) {
    schedulers_[known.index] = Scheduler(options);
    return known;
  }
  const SchedulerId id{static_cast<uint32_t>(schedulers_.size())};
  scheduler_by_name_.emplace(name, id);
  schedulers_.emplace_back(options);
  return id;
}

SchedulerId EGraph::FindScheduler(std::string_view name) const {
  auto it = scheduler_by_name_.find(name);
  return it == scheduler_by_name_.end() ? SchedulerId{} : it->second;
}

void EGraph::SetGlobal(std::string_view name, Global global) {
  if (!levels_.empty()) {
    const Global* old = FindGlobal(name);
    old_globals_.emplace_back(name, old == nullptr ? std::nullopt : std::optional(*old));
  }
  globals_.insert_or_assign(name, global);
}

const EGraph::Global* EGraph::FindGlobal(std::string_view name) const {
  auto it = globals_.find(name);
  return it == globals_.end() ? nullptr : &it->second;
}

// --- Base values

Value EGraph::I64(int64_t i) {
  if (i >= kMinInlineInt && i <= kMaxInlineInt) {
    return Value{static_cast<uint32_t>(i) << 1};
  }
  auto [it, fresh] = large_int_index_.try_emplace(i, static_cast<uint32_t>(large_ints_.size()));
  if (fresh) large_ints_.push_back(i);
  return Value{(it->second << 1) | 1};
}

int64_t EGraph::AsI64(Value v) const {
  if (v.bits & 1) return large_ints_[v.bits >> 1];
  return static_cast<int32_t>(v.bits) >> 1;
}

Value EGraph::F64(double d) {
  const uint64_t bits = std::isnan(d) ? uint64_t{0x7ff8000000000000} : std::bit_cast<uint64_t>(d);
  auto [it, fresh] = float_index_.try_emplace(bits, static_cast<uint32_t>(floats_.size()));
  if (fresh) floats_.push_back(std::bit_cast<double>(bits));
  return Value{it->second};
}

double EGraph::AsF64(Value v) const { return floats_[v.bits]; }

Value EGraph::String(std::string_view s) {
  auto it = string_index_.find(s);
  if (it == string_index_.end()) {
    it = string_index_.emplace(s, static_cast<uint32_t>(strings_.size())).first;
    strings_.emplace_back(s);
    string_bytes_ += 2 * (s.size() + sizeof(std::string)) + sizeof(uint32_t);
  }
  return Value{it->second};
}

const std::string& EGraph::AsString(Value v) const { return strings_[v.bits]; }

Value EGraph::Container(SortId sort, std::vector<Value> elements) const {
  NormalizeElements(sorts_[sort.index].container, &elements);
  uint32_t depth = 1;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!sorts_[ElementSort(sort, elements, i).index].is_container()) continue;
    depth = std::max(depth, containers_.Depth(elements[i]) + 1);
  }
  return containers_.Intern(sort, elements, depth);
}

Value EGraph::CanonicalContainer(SortId sort, Value v) const {
  // A container is looked at once after every union.
  const uint64_t now = epoch_;
  if (const std::optional<Value> known = containers_.CanonicalSince(v, now)) return *known;
  const std::span<const Value> elements = containers_.Elements(v);
  std::vector<Value> moved(elements.begin(), elements.end());
  bool changed = false;
  for (size_t i = 0; i < moved.size(); ++i) {
    const Value canonical = Canonical(ElementSort(sort, moved, i), moved[i]);
    changed |= canonical != moved[i];
    moved[i] = canonical;
  }
  const Value canonical = changed ? Container(sort, std::move(moved)) : v;
  containers_.SetCanonical(v, canonical, now);
  if (changed) containers_.SetCanonical(canonical, canonical, now);
  return canonical;
}

// --- E-nodes and facts

Value EGraph::NewClass(SortId sort) {
  const uint32_t id = union_find_.Add();
  class_sorts_.push_back(sort.index);
  return Value{id};
}

void EGraph::NewClasses(SortId sort, uint32_t count) {
  union_find_.AddMany(count);
  class_sorts_.resize(union_find_.size(), sort.index);
}

void EGraph::Canonicalize(const Function& f, std::span<const Value> args, uint32_t* out) const {
  assert(args.size() == f.inputs.size());
  for (size_t i = 0; i < args.size(); ++i) {
    out[i] = Canonical(f.inputs[i], args[i]).bits;
  }
}

Value EGraph::AddCanonical(FunctionId id, const uint32_t* args) {
  const Function& f = functions_[id.index];
  Table& table = tables_[id.index];
  // The next class id is taken only if the row is new.
  const Value next = f.kind == FunctionKind::kConstructor
                         ? Value{static_cast<uint32_t>(union_find_.size())}
                         : Unit();
  auto [row, inserted] = table.FindOrAppend(args, next.bits, current_rule_);
  if (!inserted) {
    const uint32_t output = table.Output(row);
    return f.kind == FunctionKind::kConstructor ? Value{union_find_.Find(output)} : Value{output};
  }
  if (f.kind == FunctionKind::kConstructor) NewClass(f.output);
  if (proof_log_) [[unlikely]] {
    const std::span all(args, f.inputs.size());
    if (f.kind == FunctionKind::kConstructor) {
      proof_log_->AddNode(id, all, next);
    } else {
      proof_log_->AddFact(id, all, next);
    }
  }
  ++live_rows_;
  ++version_;
  return next;
}

Value EGraph::Add(FunctionId constructor, std::span<const Value> args) {
  const Function& f = functions_[constructor.index];
  assert(f.kind == FunctionKind::kConstructor);
  uint32_t canonical[kMaxArity];
  Canonicalize(f, args, canonical);
  return AddCanonical(constructor, canonical);
}

Value EGraph::Add(FunctionId constructor, std::initializer_list<Value> args) {
  return Add(constructor, std::span(args.begin(), args.size()));
}

std::optional<Value> EGraph::Lookup(FunctionId id, std::span<const Value> args) const {
  const Function& f = functions_[id.index];
  uint32_t canonical[kMaxArity];
  Canonicalize(f, args, canonical);
  const uint32_t row = tables_[id.index].Find(canonical);
  if (row == Table::kNoRow) return std::nullopt;
  return Canonical(f.output, Value{tables_[id.index].Output(row)});
}

std::optional<Value> EGraph::Lookup(FunctionId f, std::initializer_list<Value> args) const {
  return Lookup(f, std::span(args.begin(), args.size()));
}

std::optional<Value> EGraph::MergedValue(FunctionId id, uint32_t row, Value old_value,
                                         Value new_value, RuleId rule) {
  // By value: a custom merge may be part of a graph that it changes.
  const Function& f = functions_[id.index];
  const SortId sort = f.output;
  switch (f.merge.kind()) {
    case Merge::Kind::kUnion:
      UnionAs(old_value, new_value, rule);
      if (proof_log_) [[unlikely]]
        proof_log_->AddUnion(old_value, new_value, /*joined=*/true);
      return Find(old_value);
    case Merge::Kind::kAssertEqual: {
      Fail("conflicting values for " + DescribeConflict(id, row, old_value, new_value, rule));
      return std::nullopt;
    }
    case Merge::Kind::kMin:
    case Merge::Kind::kMax: {
      const bool less =
          sort == kF64 ? AsF64(new_value) < AsF64(old_value) : AsI64(new_value) < AsI64(old_value);
      return less == (f.merge.kind() == Merge::Kind::kMin) ? new_value : old_value;
    }
    case Merge::Kind::kOr:
      return Bool(AsBool(old_value) || AsBool(new_value));
    case Merge::Kind::kAnd:
      return Bool(AsBool(old_value) && AsBool(new_value));
    case Merge::Kind::kCustom: {
      const bool had_failed = failure_.has_value();
      std::optional<Value> merged = f.merge.fn()(*this, old_value, new_value);
      if (!merged) {
        // What the merge says of itself knows neither the row nor the first of the two rules.
        std::string why;
        if (!had_failed && failure_) {
          why = ": " + *failure_;
          failure_.reset();
        }
        Fail("the merge gives nothing for " +
             DescribeConflict(id, row, old_value, new_value, rule) + why);
      }
      return merged;
    }
  }
  return old_value;
}

void EGraph::MergeIntoRow(FunctionId id, uint32_t row, Value value, RuleId rule) {
  const Function& f = functions_[id.index];
  Table& table = tables_[id.index];
  const Value old_value = Canonical(f.output, Value{table.Output(row)});
  const Value new_value = Canonical(f.output, value);
  if (old_value == new_value) {
    if (proof_log_) [[unlikely]]
      LogRowUnion(id, row, value, rule, /*joined=*/false);
    return;
  }
  if (f.kind == FunctionKind::kConstructor) {
    UnionAs(old_value, new_value, rule);
    if (proof_log_) [[unlikely]]
      LogRowUnion(id, row, value, rule, /*joined=*/true);
    return;
  }
  uint32_t args[kMaxArity];
  for (uint32_t i = 0; i < table.arguments(); ++i) args[i] = table.Get(row, i);
  if (proof_log_) [[unlikely]] {
    proof_log_->BeginMerge(id, std::span(args, f.inputs.size()), old_value, new_value);
  }
  const std::optional<Value> merged = MergedValue(id, row, old_value, new_value, rule);
  if (proof_log_) [[unlikely]] {
    if (merged && *merged != old_value && *merged != new_value) {
      proof_log_->AddFact(id, std::span(args, f.inputs.size()), *merged);
    }
    proof_log_->End();
  }
  if (!merged || *merged == old_value) return;
  const bool subsumed = table.IsSubsumed(row);
  table.Kill(row);
  table.Append(args, merged->bits, rule, subsumed);
  ++version_;
}

void EGraph::SetCanonical(FunctionId id, const uint32_t* args, Value value, RuleId rule) {
  Table& table = tables_[id.index];
  const Value output = Canonical(functions_[id.index].output, value);
  auto [row, inserted] = table.FindOrAppend(args, output.bits, rule);
  if (proof_log_) [[unlikely]]
    LogSet(id, args, inserted, row, value);
  if (inserted) {
    ++live_rows_;
    ++version_;
  } else {
    MergeIntoRow(id, row, value, rule);
  }
}

void EGraph::LogSet(FunctionId id, const uint32_t* args, bool inserted, uint32_t row, Value value) {
  const Function& f = functions_[id.index];
  const std::span all(args, f.inputs.size());
  if (f.kind != FunctionKind::kConstructor) {
    // A value that is there already needs no second reason.
    const Value output = Canonical(f.output, value);
    const Value stored = Canonical(f.output, Value{tables_[id.index].Output(row)});
    if (inserted || stored != output) proof_log_->AddFact(id, all, output);
  } else if (inserted) {
    proof_log_->AddJoin(proof_log_->AddNode(id, all, Value{}), value);
  }
}

void EGraph::LogRowUnion(FunctionId id, uint32_t row, Value value, RuleId rule, bool joined) {
  const Function& f = functions_[id.index];
  if (f.kind != FunctionKind::kConstructor) return;
  const Table& table = tables_[id.index];
  uint32_t args[kMaxArity];
  for (uint32_t i = 0; i < table.arguments(); ++i) args[i] = table.Get(row, i);
  proof_log_->AddRowUnion(id, std::span(args, f.inputs.size()), Value{table.Output(row)}, value,
                          rule == kCongruence, joined);
}

void EGraph::Set(FunctionId f, std::span<const Value> args, Value value) {
  uint32_t canonical[kMaxArity];
  Canonicalize(functions_[f.index], args, canonical);
  SetCanonical(f, canonical, value, current_rule_);
}

void EGraph::Set(FunctionId f, std::initializer_list<Value> args, Value value) {
  Set(f, std::span(args.begin(), args.size()), value);
}

void EGraph::Insert(FunctionId relation, std::span<const Value> args) {
  assert(functions_[relation.index].kind == FunctionKind::kRelation);
  Set(relation, args, Unit());
}

void EGraph::Insert(FunctionId relation, std::initializer_list<Value> args) {
  Insert(relation, std::span(args.begin(), args.size()));
}

void EGraph::RemoveRow(FunctionId f, uint32_t row) {
  tables_[f.index].Kill(row);
  --live_rows_;
  ++version_;
}

void EGraph::SubsumeRow(FunctionId f, uint32_t row) {
  if (tables_[f.index].IsSubsumed(row)) return;
  tables_[f.index].MarkSubsumed(row);
  ++version_;
}

void EGraph::Remove(FunctionId f, std::span<const Value> args) {
  uint32_t canonical[kMaxArity];
  Canonicalize(functions_[f.index], args, canonical);
  const uint32_t row = tables_[f.index].Find(canonical);
  if (row != Table::kNoRow) RemoveRow(f, row);
}

void EGraph::Subsume(FunctionId f, std::span<const Value> args) {
  uint32_t canonical[kMaxArity];
  Canonicalize(functions_[f.index], args, canonical);
  const uint32_t row = tables_[f.index].Find(canonical);
  if (row != Table::kNoRow) SubsumeRow(f, row);
}

// --- Equality

bool EGraph::Union(Value a, Value b) {
  if (keeps_apart_) [[unlikely]] {
    unions_.push_back({a, b, current_rule_});
    return true;
  }
  const bool joined = UnionAs(a, b, current_rule_);
  if (proof_log_) [[unlikely]]
    proof_log_->AddUnion(a, b, joined);
  return joined;
}

bool EGraph::UnionAs(Value a, Value b, RuleId rule) {
  if (!defer_unions_) return UnionNow(a, b, rule);
  if (Find(a) == Find(b)) return false;
  deferred_unions_.push_back({a, b, rule});
  return true;
}

bool EGraph::UnionNow(Value a, Value b, RuleId rule) {
  const uint32_t ra = union_find_.Find(a.bits);
  const uint32_t rb = union_find_.Find(b.bits);
  if (ra == rb) return false;
  assert(class_sorts_[ra] == class_sorts_[rb]);
  dirty_classes_.push_back(union_find_.Join(ra, rb));
  ++epoch_;
  unions_.push_back({a, b, rule});
  ++version_;
  return true;
}

void EGraph::EnableProofs(ProofOptions options) {
  assert(live_rows_ == 0 && union_find_.size() == 0);
  proof_log_.Create(options);
  search_cache_.Drop();  // what is kept of a match changes
}

// --- Reading

size_t EGraph::NodeCount() const {
  size_t count = 0;
  for (size_t f = 0; f < functions_.size(); ++f) {
    if (functions_[f].kind == FunctionKind::kConstructor) count += tables_[f].live_count();
  }
  return count;
}

size_t EGraph::ClassCount() const {
  size_t count = 0;
  for (uint32_t id = 0; id < union_find_.size(); ++id) count += union_find_.IsRoot(id);
  return count;
}

size_t EGraph::Bytes() const {
  size_t bytes = union_find_.Bytes() + class_sorts_.Bytes() + unions_.Bytes() +
                 containers_.Bytes() + dirty_classes_.capacity() * sizeof(uint32_t) + string_bytes_;
  if (proof_log_) bytes += proof_log_->Bytes();
  bytes += large_ints_.capacity() * 3 * sizeof(int64_t) + floats_.capacity() * 3 * sizeof(double);
  for (const Table& table : tables_) bytes += table.Bytes();
  bytes += search_cache_.Bytes();
  return bytes;
}

std::vector<RuleId> EGraph::RulesOf(Value class_id) const {
  const Value root = Find(class_id);
  std::vector<RuleId> rules;
  for (const UnionRecord& u : unions_) {
    if (Find(u.a) == root) rules.push_back(u.rule);
  }
  for (uint32_t f = 0; f < functions_.size(); ++f) {
    if (functions_[f].output != ClassSort(root)) continue;
    if (functions_[f].kind != FunctionKind::kConstructor) continue;
    ForEachRow(FunctionId{f}, [&](const Row& row) {
      if (Find(row.output()) == root) rules.push_back(row.rule());
    });
  }
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return rules;
}

void EGraph::Fail(std::string message) {
  if (!failure_) failure_ = std::move(message);
}

}  // namespace l3c::egraph
