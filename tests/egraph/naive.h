// An engine without any cleverness, to compare with: rows in a map, queries by trying every row for
// every atom, congruence by looking at all rows until nothing changes.
//
// It knows the whole core of the language: constructors, relations, functions with merges,
// primitives in facts and actions, delete, subsume, rulesets, schedules with conditions, and the
// errors of the data. It reads rules as the engine compiles them, and shares the engine's interned
// literals and its primitives; everything else is its own. No containers, globals or lookups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/run.h"

namespace l3c::egraph {

// A row as both engines can show it: function, arguments and output.
struct PlainRow {
  uint32_t function = 0;
  std::vector<uint32_t> columns;
  bool subsumed = false;
};

// Equal for graphs that differ only in the numbers of their classes. (Classes are told apart by
// what refinement of their uses sees, so different graphs may be equal here, but not the reverse.)
std::vector<uint64_t> Fingerprint(const EGraph& signature, const std::vector<PlainRow>& rows);
std::vector<PlainRow> PlainRows(const EGraph& graph);

class NaiveEngine {
 public:
  // Of `program` only declarations, rules, literals and primitives are used.
  explicit NaiveEngine(EGraph& program) : program_(program) {}

  // A term or a fact; the class, or 0.
  uint32_t Add(FunctionId f, std::vector<uint32_t> args);
  // One step: match on the same graph, apply, rebuild.
  void Step(RulesetId ruleset = kDefaultRuleset);
  // At most `max_steps` steps.
  void Run(const Schedule& schedule, uint64_t max_steps);
  bool HasMatch(const Query& query, bool subsumed_too = false);

  bool failed() const { return failed_; }
  std::vector<PlainRow> Rows() const;
  std::vector<size_t> Sizes() const;  // by function
  // Which of `ids` are equal: for each, the first that it equals.
  std::vector<size_t> Partition(const std::vector<uint32_t>& ids) const;

 private:
  using Key = std::pair<uint32_t, std::vector<uint32_t>>;  // function, arguments
  struct Content {
    uint32_t output = 0;
    bool subsumed = false;
    uint64_t stamp = 0;  // the step in which it got its output
  };
  using Slots = std::vector<uint32_t>;

  uint32_t Find(uint32_t id) const;
  bool IsConstructor(uint32_t f) const;
  uint32_t Canonical(SortId sort, uint32_t value) const;
  Key CanonicalKey(uint32_t f, const std::vector<uint32_t>& args) const;
  void Union(uint32_t a, uint32_t b);
  void Set(FunctionId f, const std::vector<uint32_t>& args, uint32_t value);
  // The value kept of the two.
  uint32_t Merged(const Function& f, uint32_t old_value, uint32_t new_value);
  void Rebuild();
  bool Carry(const Schedule& schedule);
  std::optional<uint32_t> Call(uint32_t primitive, const std::vector<Operand>& args,
                               const Slots& slots);
  void Act(const std::vector<Action>& actions, const std::vector<SortId>& sorts, Slots& slots);
  // `found` for every match; `newest` is the latest stamp among its rows.
  void Match(const Query& query, size_t atom, Slots& slots, uint64_t newest, bool subsumed_too,
             const std::function<void(uint64_t newest)>& found);
  // Checks primitives whose arguments are bound, binding their outputs, until none is left.
  bool Primitives(const Query& query, Slots& slots);

  EGraph& program_;
  std::vector<uint32_t> parents_;
  std::map<Key, Content> rows_;
  std::map<uint32_t, uint64_t> seen_;  // by rule: the step of its latest run
  uint64_t clock_ = 0;
  uint64_t steps_left_ = 0;
  uint64_t changes_ = 0;
  bool failed_ = false;
};

}  // namespace l3c::egraph
