// An e-graph as a database.
//
// One table per function symbol: argument columns, one output column, 32-bit values. A
// constructor's output is an e-class of its sort; a function's output is a value that a merge keeps
// single (an analysis); a relation's output is Unit. Classes are joined by Union(); congruence
// (equal arguments, equal output) is restored later, for all unions at once, by Rebuild().
//
//   EGraph g;
//   SortId math = g.DeclareSort("Math");
//   FunctionId num = g.DeclareConstructor("Num", {kI64}, math);
//   FunctionId add = g.DeclareConstructor("Add", {math, math}, math);
//   Value one = g.Add(num, {g.I64(1)});
//   Value two = g.Add(add, {one, one});
//   g.Union(two, g.Add(num, {g.I64(2)}));
//   g.Rebuild();
//
// Rules come from text (program.h) and are run by run.h; terms are read back through a frozen view
// (view.h) by the extractors of extract/.
//
// Same calls, same graph: ids are handed out in call order and tables iterate in row order, so no
// result depends on hashing, addresses or time.
//
// Passing an id or a value of another graph, or of the wrong sort, is a bug of the caller and
// checked only in debug builds. Errors of the *data* (two facts that must agree and do not, a
// panic) are kept in failure(): the first one stays, and runs stop on it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/containers.h"
#include "egraph/ids.h"
#include "egraph/names.h"
#include "egraph/numerics.h"
#include "egraph/proof_log.h"
#include "egraph/rule.h"
#include "egraph/rule_history.h"
#include "egraph/scheduler.h"
#include "egraph/table.h"
#include "egraph/union_find.h"

namespace l3c::egraph {

class EGraph;
class SearchCache;  // search.h
class WorkerPool;   // worker_pool.h

// What searches keep from run to run: plans, indexes, threads. Plans decide in which order matches
// are found, so a copy of a graph has them as well.
class SearchCacheHolder {
 public:
  SearchCacheHolder();
  ~SearchCacheHolder();
  SearchCacheHolder(const SearchCacheHolder&);
  SearchCacheHolder& operator=(const SearchCacheHolder&);
  SearchCacheHolder(SearchCacheHolder&&) noexcept;
  SearchCacheHolder& operator=(SearchCacheHolder&&) noexcept;

  SearchCache& Get();
  // Forgets everything.
  void Drop();
  // What is there now, to be brought back by Restore(). Plans and indexes are shared until one of
  // the two changes them: both are for the same thread.
  SearchCacheHolder Save() const;
  void Restore(SearchCacheHolder saved);
  void ForgetSaved();  // nothing that was saved will be restored any more
  size_t Bytes() const;

 private:
  std::unique_ptr<SearchCache> cache_;
};

// What becomes of a second value set for the same arguments.
class Merge {
 public:
  // Gives the value to keep. May intern base values, read tables and add e-nodes; must not set,
  // unite or remove.
  using Fn = std::function<std::optional<Value>(EGraph&, Value old_value, Value new_value)>;
  enum class Kind : uint8_t { kUnion, kAssertEqual, kMin, kMax, kOr, kAnd, kCustom };

  static Merge Union() { return Merge(Kind::kUnion, nullptr); }  // equality-sort outputs
  // The two must be equal; otherwise the graph fails, naming the rules that set them.
  static Merge AssertEqual() { return Merge(Kind::kAssertEqual, nullptr); }
  static Merge Min() { return Merge(Kind::kMin, nullptr); }  // i64, f64
  static Merge Max() { return Merge(Kind::kMax, nullptr); }  // i64, f64
  static Merge Or() { return Merge(Kind::kOr, nullptr); }    // bool
  static Merge And() { return Merge(Kind::kAnd, nullptr); }  // bool
  static Merge Custom(Fn fn) { return Merge(Kind::kCustom, std::move(fn)); }
  // The same with what `fn` does as actions, over slots 0 (old) and 1 (new), so that proofs can go
  // through it.
  struct Steps {
    Rule actions;
    Operand result;
  };
  static Merge Custom(Fn fn, std::shared_ptr<const Steps> steps) {
    Merge merge(Kind::kCustom, std::move(fn));
    merge.steps_ = std::move(steps);
    return merge;
  }

  Kind kind() const { return kind_; }
  const Fn& fn() const { return fn_; }
  const Steps* steps() const { return steps_.get(); }

 private:
  Merge(Kind kind, Fn fn) : kind_(kind), fn_(std::move(fn)) {}
  Kind kind_;
  Fn fn_;
  std::shared_ptr<const Steps> steps_;
};

struct Sort {
  std::string name;
  bool is_equality = false;  // its values are e-classes
  // Containers: their values move when the classes in them are united.
  bool moves = false;
  ContainerKind container = ContainerKind::kNone;
  std::vector<SortId> parameters;  // of the container: elements, or key and value, or first, second

  bool is_container() const { return container != ContainerKind::kNone; }
};

enum class FunctionKind : uint8_t { kConstructor, kFunction, kRelation };

struct Function {
  std::string name;
  FunctionKind kind = FunctionKind::kConstructor;
  std::vector<SortId> inputs;
  SortId output;
  double cost = 1;          // constructors: `:cost`, what DeclaredCosts (extract/cost.h) charges
  bool extractable = true;  // constructors: false keeps its e-nodes out of views
  bool hidden = false;      // left out of listings of all tables
  Merge merge = Merge::Union();
};

struct ConstructorOptions {
  double cost = 1;
  bool extractable = true;
  bool hidden = false;
};

// A primitive reads its arguments and gives a value, or nothing: in a premise that is "no match",
// in an action it fails the run. It may look up the graph's tables and intern base values, and must
// depend on nothing else; it must not set, nor add or union unless EGraph::in_action().
using PrimitiveFn = std::function<std::optional<Value>(EGraph&, std::span<const Value> args)>;

struct Primitive {
  std::string name;
  std::vector<SortId> inputs;  // kAnySort: see ids.h
  SortId output;
  PrimitiveFn fn;
  // The last `repeated` inputs may stand any number of times, also none.
  uint32_t repeated = 0;
  // It interns nothing and may run on several threads at once. Set for the comparisons of base
  // values; searches that call anything else stay on one thread.
  bool reads_only = false;

  // Whether it can be called with that many arguments; the sort that argument `i` must have.
  bool Takes(size_t arguments) const {
    const size_t fixed = inputs.size() - repeated;
    if (repeated == 0) return arguments == fixed;
    return arguments >= fixed && (arguments - fixed) % repeated == 0;
  }
  SortId Input(size_t i) const {
    const size_t fixed = inputs.size() - repeated;
    return i < fixed ? inputs[i] : inputs[fixed + (i - fixed) % repeated];
  }
};

// Why two classes are one: `a` and `b` as they were when the union was asked for.
struct UnionRecord {
  Value a;
  Value b;
  RuleId rule;
};

class EGraph {
 public:
  // Arguments of one function, at most.
  static constexpr size_t kMaxArity = 60;

  EGraph();
  // --- Declarations. Names are unique over sorts, and over functions and primitives; a second
  // declaration of a name is a caller's bug (text reports it as an error).
  SortId DeclareSort(std::string_view name);
  // A sort of containers over `parameters`, with its primitives (containers.h).
  SortId DeclareContainer(std::string_view name, ContainerKind kind,
                          std::span<const SortId> parameters);
  FunctionId DeclareConstructor(std::string_view name, std::span<const SortId> inputs,
                                SortId output, ConstructorOptions options = {});
  FunctionId DeclareConstructor(std::string_view name, std::initializer_list<SortId> inputs,
                                SortId output, ConstructorOptions options = {});
  FunctionId DeclareFunction(std::string_view name, std::span<const SortId> inputs, SortId output,
                             Merge merge);
  FunctionId DeclareFunction(std::string_view name, std::initializer_list<SortId> inputs,
                             SortId output, Merge merge);
  void SetHidden(FunctionId f, bool hidden);
  FunctionId DeclareRelation(std::string_view name, std::span<const SortId> inputs);
  FunctionId DeclareRelation(std::string_view name, std::initializer_list<SortId> inputs);
  RulesetId DeclareRuleset(std::string_view name);
  // A ruleset of the rules that its members have, then and later. It gets no rules of its own.
  RulesetId DeclareCombinedRuleset(std::string_view name, std::span<const RulesetId> members);
  // The plain rulesets that running `id` runs, itself where it is one, by id.
  std::span<const RulesetId> RulesetMembers(RulesetId id) const {
    return ruleset_members_[id.index];
  }
  bool IsCombined(RulesetId id) const { return ruleset_combined_[id.index] != 0; }
  // A primitive may be overloaded: several signatures under one name.
  void RegisterPrimitive(std::string_view name, std::span<const SortId> inputs, SortId output,
                         PrimitiveFn fn, uint32_t repeated = 0);
  void RegisterPrimitive(std::string_view name, std::initializer_list<SortId> inputs, SortId output,
                         PrimitiveFn fn, uint32_t repeated = 0);

  // By name; an invalid id when there is none.
  SortId FindSort(std::string_view name) const;
  FunctionId FindFunction(std::string_view name) const;
  RulesetId FindRuleset(std::string_view name) const;
  // Indices into primitives(), in order of registration; empty when there is none of the name.
  std::span<const uint32_t> FindPrimitives(std::string_view name) const;

  const Sort& sort(SortId id) const { return sorts_[id.index]; }
  const Function& function(FunctionId id) const { return functions_[id.index]; }
  size_t sort_count() const { return sorts_.size(); }
  size_t function_count() const { return functions_.size(); }
  const std::vector<Primitive>& primitives() const { return primitives_; }
  const std::string& ruleset_name(RulesetId id) const { return ruleset_names_[id.index]; }
  size_t ruleset_count() const { return ruleset_names_.size(); }

  // --- Base values: equal literals have equal bits. f64 compares by bits (-0.0 is not 0.0), with
  // one NaN.
  Value Unit() const { return Value{0}; }
  Value Bool(bool b) const { return Value{b ? 1u : 0u}; }
  Value I64(int64_t i);
  Value F64(double d);
  Value String(std::string_view s);
  bool AsBool(Value v) const { return v.bits != 0; }
  int64_t AsI64(Value v) const;
  double AsF64(Value v) const;
  const std::string& AsString(Value v) const;
  // Containers: equal contents have equal bits, within one sort. Elements of sets, multisets and
  // keys of maps are put in order here.
  Value Container(SortId sort, std::vector<Value> elements) const;
  std::span<const Value> Elements(Value container) const { return containers_.Elements(container); }
  // The sort of element `i`; Unit for one that is no value.
  SortId ElementSort(SortId container, std::span<const Value> elements, size_t i) const {
    const Sort& s = sorts_[container.index];
    if (s.container != ContainerKind::kFn) return s.parameters[i % s.parameters.size()];
    return i == 0 ? kString : i % 2 == 1 ? kUnit : SortId{elements[i - 1].bits};
  }
  uint32_t ContainerDepth(Value container) const { return containers_.Depth(container); }

  // --- E-nodes and facts. Arguments need not be canonical.
  // The class of the e-node, which is created when absent.
  Value Add(FunctionId constructor, std::span<const Value> args);
  Value Add(FunctionId constructor, std::initializer_list<Value> args);
  // The output stored for `args`, canonical, if any.
  std::optional<Value> Lookup(FunctionId f, std::span<const Value> args) const;
  std::optional<Value> Lookup(FunctionId f, std::initializer_list<Value> args) const;
  // Functions: stores `value`, or merges it with the one there. Constructors: unions.
  void Set(FunctionId f, std::span<const Value> args, Value value);
  void Set(FunctionId f, std::initializer_list<Value> args, Value value);
  void Insert(FunctionId relation, std::span<const Value> args);
  void Insert(FunctionId relation, std::initializer_list<Value> args);
  // Takes the row out. Its class and what was concluded from it stay.
  void Remove(FunctionId f, std::span<const Value> args);
  // Keeps the row for lookups, but no rule matches it and no view shows it any more.
  void Subsume(FunctionId f, std::span<const Value> args);

  // --- Equality.
  Value Find(Value class_id) const { return Value{union_find_.Find(class_id.bits)}; }
  // Find() for equality sorts, the value itself for base sorts; containers have their elements
  // made canonical.
  Value Canonical(SortId sort, Value v) const {
    const Sort& s = sorts_[sort.index];
    if (s.is_equality) return Find(v);
    return s.moves ? CanonicalContainer(sort, v) : v;
  }
  // True when the two were different classes. Both must be of one sort.
  bool Union(Value a, Value b);
  SortId ClassSort(Value class_id) const { return SortId{class_sorts_[class_id.bits]}; }
  // Restores congruence and canonical rows after unions; runs do it after every step. False when
  // the graph has failed (see failure()): what is left then is done by the next call after
  // ClearFailure(). Each call that fails has settled the conflict that it names, so that calling
  // it again comes to an end. With a pool, its threads share the work in large tables; what comes
  // out is the same.
  bool Rebuild(WorkerPool* pool = nullptr);
  bool NeedsRebuild() const { return !dirty_classes_.empty() || !deferred_unions_.empty(); }
  // From now on unions wait for the next Rebuild(), and those of its rounds for the next round:
  // what a step sets is merged as if nothing had been united in it. Merges that build terms need
  // that, as which terms they build must not depend on the order of the unions.
  void DeferUnions() { defer_unions_ = true; }

  // --- Undo.
  // Pop() takes back all that has happened since the latest Push(): rows, classes, interned values,
  // declarations, rules, globals and the failure are what they were then, in the same order and
  // with the same ids, and what the graph does next it would have done then. Ids and values that
  // came in between name nothing any more, and views of the graph end. Push() writes down a few
  // words for every table and rule; Pop() takes time by what has changed. Neither is for rules or
  // primitives to call.
  void Push();
  void Pop();
  // Closes the latest level and keeps what has happened since.
  void DropLevel();
  size_t level_count() const { return levels_.size(); }

  // --- Reading tables: call Rebuild() first. Live rows in row order; `fn` takes a Row.
  template <typename Fn>
  void ForEachRow(FunctionId f, Fn&& fn) const {
    const Table& t = tables_[f.index];
    for (uint32_t r = 0; r < t.row_count(); ++r) {
      if (t.IsLive(r)) fn(Row(&t, r));
    }
  }
  size_t LiveRows(FunctionId f) const { return tables_[f.index].live_count(); }
  const Table& table(FunctionId f) const { return tables_[f.index]; }
  // All live rows of constructors: the e-nodes.
  size_t NodeCount() const;
  // All live rows.
  size_t RowCount() const { return live_rows_; }
  size_t ClassCount() const;  // canonical classes
  // What primitives have made: containers and strings. Beyond the limit they give nothing, and the
  // graph fails.
  size_t PoolBytes() const { return containers_.Bytes() + string_bytes_; }
  void set_max_pool_bytes(size_t bytes) { max_pool_bytes_ = bytes; }
  bool PoolIsFull() {
    if (PoolBytes() <= max_pool_bytes_) return false;
    Fail("containers and strings take more than " + std::to_string(max_pool_bytes_) + " bytes");
    return true;
  }
  size_t Bytes() const;  // tables, indexes, union-find and interned values
  // Changes with every row added or removed and every union; equal versions, equal graphs.
  uint64_t version() const { return version_; }

  // --- Rules and provenance.
  RuleId AddRule(Rule rule);
  const Rule& rule(RuleId id) const { return *rules_[id.index]; }
  size_t rule_count() const { return rules_.size(); }
  const RuleHistory& history(RuleId id) const { return histories_[id.index]; }
  // Counts the steps of all runs; each searches all rules of a ruleset once.
  uint64_t search_step() const { return clock_; }
  // A scheduler under this name, from its beginning; one of that name is replaced.
  SchedulerId DeclareScheduler(std::string_view name, BackoffOptions options);
  SchedulerId FindScheduler(std::string_view name) const;
  const Scheduler& scheduler(SchedulerId id) const { return schedulers_[id.index]; }
  // Rules of a higher class are loaded but do not run. Default: kReassoc.
  void set_numerics(Numerics numerics) { numerics_ = numerics; }
  Numerics numerics() const { return numerics_; }
  // New rows and unions are filed under this rule; kInitial outside of runs.
  void set_current_rule(RuleId rule) { current_rule_ = rule; }
  RuleId current_rule() const { return current_rule_; }
  // Whether a primitive runs in an action, where it may add e-nodes and unite classes.
  bool in_action() const { return in_action_; }
  std::span<const UnionRecord> unions() const { return {unions_.begin(), unions_.end()}; }
  // From here on, what is needed to explain equalities and facts (explain.h) is written down. The
  // graph must be empty. A Pop() to a Push() before this switches it off again. It comes to hold
  // the same classes and rows as without proofs, but new classes may be numbered otherwise: without
  // proofs, matches are applied in blocks.
  void EnableProofs(ProofOptions options = {});
  // Null unless enabled.
  ProofLog* proof_log() const { return proof_log_.get(); }
  // The rules that created an e-node of the class or joined classes into it, each once, by id.
  std::vector<RuleId> RulesOf(Value class_id) const;

  // One level as text: a literal, or `c12` for a class.
  std::string DescribeValue(SortId sort, Value v) const;
  // "rule 'name' (file:line)", "the input" or "congruence".
  std::string DescribeRule(RuleId rule) const;

  // --- Globals of the text language: `(let x …)`.
  struct Global {
    SortId sort;
    Value value;
  };
  void SetGlobal(std::string_view name, Global global);
  const Global* FindGlobal(std::string_view name) const;
  // Calls `fn` with every name, in no particular order.
  template <typename Fn>
  void ForEachGlobal(Fn&& fn) const {
    for (const auto& [name, global] : globals_) fn(std::string_view(name));
  }

  // --- The first error of the data, if any; it names both causes.
  const std::optional<std::string>& failure() const { return failure_; }
  void Fail(std::string message);
  void ClearFailure() { failure_.reset(); }

 private:
  friend class Engine;        // run.cc: search steps
  friend class RuleSearch;    // search.h: what it keeps from run to run
  friend class ActionRunner;  // apply.h: canonical arguments
  friend class BlockRunner;   // apply_block.h: the same
  friend class TermBank;      // term_bank.h: a graph without equalities

  FunctionId DeclareTable(Function function);
  Value NewClass(SortId sort);
  void NewClasses(SortId sort, uint32_t count);
  void Canonicalize(const Function& f, std::span<const Value> args, uint32_t* out) const;
  // Add() or Insert() with canonical arguments.
  Value AddCanonical(FunctionId f, const uint32_t* args);
  void SetCanonical(FunctionId f, const uint32_t* args, Value value, RuleId rule);
  // Writes into the log what SetCanonical() is about to do, or has done where it has `inserted`.
  void LogSet(FunctionId f, const uint32_t* args, bool inserted, uint32_t row, Value value);
  // Writes that row `row` of a constructor was asked to be in the class of `value`.
  void LogRowUnion(FunctionId f, uint32_t row, Value value, RuleId rule, bool joined);
  // Merges `value` into the live row `row`.
  void MergeIntoRow(FunctionId f, uint32_t row, Value value, RuleId rule);
  std::optional<Value> MergedValue(FunctionId f, uint32_t row, Value old_value, Value new_value,
                                   RuleId rule);
  bool UnionAs(Value a, Value b, RuleId rule);
  bool UnionNow(Value a, Value b, RuleId rule);
  void RemoveRow(FunctionId f, uint32_t row);
  void SubsumeRow(FunctionId f, uint32_t row);
  Value CanonicalContainer(SortId sort, Value v) const;
  // "(f x): OLD from RULE, NEW from RULE", all of them terms.
  std::string DescribeConflict(FunctionId f, uint32_t row, Value old_value, Value new_value,
                               RuleId rule) const;
  void RebuildRow(FunctionId f, uint32_t row);
  // What a rebuild looks at in the rows of a table.
  struct RebuildPlan {
    std::vector<uint32_t> classes;  // columns of equality sorts
    std::vector<std::pair<uint32_t, SortId>> containers;
    std::vector<uint32_t> arguments;  // those of `classes` without the output
    uint32_t first_columns = 0;       // the row is just so many classes; 0: look there
    bool in_blocks = false;
  };
  RebuildPlan PlanRebuild(FunctionId f) const;
  // Rebuilds the rows that name one of the classes in `dirty`, or, if that is empty, all stale rows
  // that there are at its start.
  struct RebuildRoom;  // what a rebuild works in
  void RebuildTable(FunctionId f, std::span<const uint32_t> dirty, RebuildRoom& room);
  void RebuildInBlocks(FunctionId f, const RebuildPlan& plan, uint32_t rows, RebuildRoom& room);
  // Writes the stale rows of [from, to) to `stale`, in order, and returns how many there are.
  uint32_t StaleRows(const RebuildPlan& plan, const Table& table, uint32_t from, uint32_t to,
                     uint32_t* stale) const;
  uint32_t NextStale(const RebuildPlan& plan, const Table& table, uint32_t row, uint32_t end) const;

  std::vector<Sort> sorts_;
  std::vector<Function> functions_;
  std::vector<Table> tables_;
  std::vector<Primitive> primitives_;
  std::vector<std::string> ruleset_names_;
  std::vector<std::vector<RulesetId>> ruleset_members_;
  std::vector<uint8_t> ruleset_combined_;
  std::vector<std::shared_ptr<const Rule>> rules_;  // shared by copies of the graph
  NameMap<SortId> sort_by_name_;
  NameMap<FunctionId> function_by_name_;
  std::vector<RuleHistory> histories_;  // by rule
  std::vector<Scheduler> schedulers_;
  NameMap<RulesetId> ruleset_by_name_;
  NameMap<SchedulerId> scheduler_by_name_;
  NameMap<std::vector<uint32_t>> primitives_by_name_;
  NameMap<Global> globals_;

  std::vector<int64_t> large_ints_;
  absl::flat_hash_map<int64_t, uint32_t> large_int_index_;
  std::vector<double> floats_;
  absl::flat_hash_map<uint64_t, uint32_t> float_index_;
  std::deque<std::string> strings_;
  NameMap<uint32_t> string_index_;
  size_t string_bytes_ = 0;
  size_t max_pool_bytes_ = std::numeric_limits<size_t>::max();
  mutable ContainerPool containers_;  // making a value canonical may intern it

  UnionFind union_find_;
  GrowingArray<uint32_t> class_sorts_;
  std::vector<uint32_t> dirty_classes_;  // ids that lost their class since the last rebuild
  GrowingArray<UnionRecord> unions_;
  bool defer_unions_ = false;
  std::vector<UnionRecord> deferred_unions_;
  ProofLogHolder proof_log_;
  bool keeps_apart_ = false;  // Union() only writes down that it was asked; see term_bank.h

  size_t live_rows_ = 0;
  uint64_t version_ = 0;
  uint64_t clock_ = 0;                // search steps, see Table::Mark
  std::vector<uint64_t> rule_clock_;  // by rule: the search step up to which it has seen all rows
  Numerics numerics_ = Numerics::kReassoc;
  RuleId current_rule_ = kInitial;
  bool in_action_ = false;
  std::optional<std::string> failure_;
  SearchCacheHolder search_cache_;
  uint64_t epoch_ = 0;  // unlike the number of unions, it only grows: see CanonicalContainer()

  // What was there at each Push(), and what has been overwritten since the first.
  struct Level {
    size_t sorts, functions, primitives, rulesets, rules;
    VectorMark large_ints, floats;
    size_t strings, string_bytes;
    ContainerPool::Mark containers;
    size_t classes, classes_capacity;
    VectorMark unions;
    std::vector<uint32_t> dirty_classes;
    size_t dirty_capacity;
    bool defer_unions;
    std::vector<UnionRecord> deferred_unions;
    size_t live_rows;
    uint64_t clock;
    std::vector<uint64_t> rule_clock;
    std::vector<RuleHistory> histories;
    std::vector<Scheduler> schedulers;
    Numerics numerics;
    std::optional<std::string> failure;
    std::optional<ProofLog::Mark> proof_log;
    SearchCacheHolder search_cache;
    size_t globals, hidden;  // overwritten so far
  };
  std::vector<Level> levels_;
  std::vector<std::pair<std::string, std::optional<Global>>> old_globals_;
  std::vector<std::pair<FunctionId, bool>> old_hidden_;
};

// Declares the primitives of the base sorts (primitives.cc); every graph has them.
void RegisterBuiltinPrimitives(EGraph& graph);

}  // namespace l3c::egraph
