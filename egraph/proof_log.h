// What an e-graph writes down so that it can be explained later (explain.h).
//
// The log is append-only. It holds
//   nodes         one for every row of a constructor that was ever inserted: the term by which the
//                 row came to be, its arguments as they stood in the row. A class id stands for
//                 the node that it was created with;
//   facts         one for every value that a function or relation got;
//   equations     one for every union, in order;
//   applications  what caused them: a rule with the values of its variables, a statement of a
//                 program, a merge of two values; congruence is told from the rest by an id.
// Every record but an application carries its number in one common order, its time. An application
// carries the time of the search that found it: its premises held by records before that time.
// Records never change, so a premise proven from earlier records stays proven, and a proof, which
// goes from later records to earlier ones, cannot be circular.
//
// Nothing is looked up or compared while the graph runs; all search is left to the explainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "egraph/ids.h"
#include "egraph/pages.h"
#include "egraph/rule.h"

namespace l3c::egraph {

struct ProofOptions {
  // Whether unions of terms that were equal already are kept too. Proofs get shorter, the log gets
  // an entry for every match.
  bool redundant = false;
};

class ProofLog {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  // Causes: an index into applications(), or one of these.
  static constexpr uint32_t kCallerCause = 0xfffffffeu;      // a call of the C++ interface
  static constexpr uint32_t kCongruenceCause = 0xfffffffdu;  // equations only

  struct Node {
    FunctionId function;
    uint32_t args;  // into values(); as many as the function has
    uint32_t cause;
    uint32_t time;
  };
  struct Fact {
    FunctionId function;
    uint32_t args;  // into values(); the value of the function follows its arguments
    uint32_t cause;
    uint32_t time;
  };
  // The terms of nodes `a` and `b` are equal. With a `row`, side `a` is, more exactly, the term
  // row_function(row arguments), which was in the class of `a`; under kCongruenceCause both sides
  // are terms of that function with arguments equal to these.
  struct Equation {
    uint32_t a;
    uint32_t b;
    uint32_t cause;
    uint32_t row;  // into values(): the function's index, then its arguments; or kNone
    uint32_t time;
  };
  struct Application {
    enum class Kind : uint8_t { kRule, kStatement, kMerge };
    Kind kind;
    uint32_t subject;  // index of the rule, the statement, or the function
    // Into slots(). Rule: the values of all slots of its query. Merge: the arguments, the old value
    // and the new one.
    uint32_t slots;
    uint32_t time;
  };
  struct Read {  // the value that a kLookup action found, in order of reading
    uint32_t application;
    Value value;
  };

  explicit ProofLog(ProofOptions options) : options_(options) {}

  const ProofOptions& options() const { return options_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Fact>& facts() const { return facts_; }
  const std::vector<Equation>& equations() const { return equations_; }
  const std::vector<Application>& applications() const { return applications_; }
  const std::vector<std::shared_ptr<const Rule>>& statements() const { return statements_; }
  const std::vector<Read>& reads() const { return reads_; }
  const std::vector<uint32_t>& values() const { return values_; }
  const std::vector<uint32_t>& slots() const { return slots_; }
  // By class id: its node.
  const std::vector<uint32_t>& class_nodes() const { return class_nodes_; }
  // The time of the next record.
  uint32_t now() const { return now_; }
  size_t Bytes() const;

  // --- What the engine calls.
  void BeginRule(RuleId rule, std::span<const uint32_t> slots, uint32_t search_time);
  // A statement at the top level of a program: actions without premises.
  void BeginStatement(std::shared_ptr<const Rule> statement);
  void BeginMerge(FunctionId f, std::span<const uint32_t> args, Value old_value, Value new_value);
  // Ends the latest of the above; one that left no record is forgotten.
  void End();

  // A new row of a constructor. `class_id` is its class where the row made one, else invalid.
  // Returns the node.
  uint32_t AddNode(FunctionId f, std::span<const uint32_t> args, Value class_id);
  void AddFact(FunctionId f, std::span<const uint32_t> args, Value value);
  // `joined`: the two were different classes.
  void AddUnion(Value a, Value b, bool joined);
  // A new row, node `a`, was put into class `b`.
  void AddJoin(uint32_t a, Value b);
  // A row with these arguments and of class `a` was asked to be in class `b`, by the current cause
  // or by congruence.
  void AddRowUnion(FunctionId f, std::span<const uint32_t> args, Value a, Value b, bool congruence,
                   bool joined);
  void AddRead(Value value);

  // --- Undoing: everything written since `mark` is taken back.
  struct Mark {
    VectorMark nodes, facts, equations, applications, statements, reads, values, slots, classes;
    uint32_t now;
  };
  Mark mark() const;
  void Rewind(const Mark& mark);

 private:
  uint32_t cause() const { return open_.empty() ? kCallerCause : open_.back().application; }
  uint32_t Store(std::span<const uint32_t> values);
  void Begin(Application application);

  ProofOptions options_;
  std::vector<Node> nodes_;
  std::vector<Fact> facts_;
  std::vector<Equation> equations_;
  std::vector<Application> applications_;
  std::vector<std::shared_ptr<const Rule>> statements_;
  std::vector<Read> reads_;
  std::vector<uint32_t> values_;
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> class_nodes_;
  uint32_t now_ = 0;
  struct Open {
    uint32_t application;
    uint32_t records;  // now() when it began
    size_t reads;
  };
  std::vector<Open> open_;
};

// A log that is copied with the graph that has it. Null where proofs are off.
class ProofLogHolder {
 public:
  ProofLogHolder() = default;
  ProofLogHolder(const ProofLogHolder& other)
      : log_(other.log_ ? std::make_unique<ProofLog>(*other.log_) : nullptr) {}
  ProofLogHolder& operator=(const ProofLogHolder& other) {
    log_ = other.log_ ? std::make_unique<ProofLog>(*other.log_) : nullptr;
    return *this;
  }
  ProofLogHolder(ProofLogHolder&&) = default;
  ProofLogHolder& operator=(ProofLogHolder&&) = default;

  void Create(ProofOptions options) { log_ = std::make_unique<ProofLog>(options); }
  void Drop() { log_.reset(); }
  explicit operator bool() const { return log_ != nullptr; }
  ProofLog* get() const { return log_.get(); }
  ProofLog* operator->() const { return log_.get(); }

 private:
  std::unique_ptr<ProofLog> log_;
};

}  // namespace l3c::egraph
