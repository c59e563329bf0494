// From s-expressions to queries and actions: names, sorts, overloads.
//
// A query is read into nodes (variables, literals, intermediate values) with their equalities kept
// by a small union-find; sorts flow along atoms and primitives until nothing changes, which also
// settles overloads. What is left becomes slots. Actions are read in order, every sort known when
// it is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/egraph.h"
#include "egraph/error_kind.h"
#include "egraph/names.h"
#include "egraph/rule.h"
#include "egraph/text/sexp.h"

namespace l3c::egraph {

struct CompileError {
  uint32_t offset = 0;  // into the document's text
  std::string message;
  ErrorKind kind = ErrorKind::kSafety;
};

// 'NAME', cut where it gets long.
std::string QuotedName(std::string_view name);

// Compiles one query and the actions that go with it. Methods return false on an error, kept in
// error(); the object is then of no further use.
class Compiler {
 public:
  // Interns literals in `graph`; changes nothing else.
  Compiler(EGraph& graph, const Document& document) : graph_(graph), doc_(document) {}

  const CompileError& error() const { return error_; }

  // --- The query: add facts, then finish it once.
  bool AddFact(uint32_t expr);
  // The left-hand side of a rewrite, whose class the other side joins: a call, or a variable that
  // facts bind.
  bool AddPattern(uint32_t expr);
  // An expression that must have a value; its sort may be any.
  bool AddPresence(uint32_t expr) { return QueryExpr(expr).has_value(); }
  bool FinishQuery(Query* query);

  // --- Actions, after FinishQuery() (or with no query at all).
  struct Typed {
    Operand operand;
    SortId sort;
  };
  bool AddAction(uint32_t expr);
  // The pattern's class becomes (or joins) the class of `expr`.
  bool AddRewriteTo(uint32_t expr);
  bool AddSubsumePattern();
  // Reads `expr` as a value. `wanted` settles which overload where the arguments leave it open.
  std::optional<Typed> AddExpression(uint32_t expr, SortId wanted = SortId{});
  // A name for a slot that the caller fills.
  void BindName(std::string_view name, Typed value) { names_.insert_or_assign(name, value); }
  Typed NewSlot(SortId sort);

  // Reading the value of a function is an error inside rules: the rule would not run again when
  // the value changes.
  void AllowReads() { allow_reads_ = true; }

  std::vector<Action> TakeActions() { return std::move(actions_); }
  std::vector<SortId> TakeSlotSorts() { return std::move(slot_sorts_); }

 private:
  struct Node {
    uint32_t parent;
    SortId sort;  // invalid: not known yet
    std::optional<Value> constant;
    std::optional<Value> global;  // a class
    uint32_t offset;
    bool bound = false;
    uint32_t slot = Id<void>::kNone;
  };
  struct PendingAtom {
    FunctionId function;
    std::vector<uint32_t> columns;  // nodes
  };
  struct PendingPrimitive {
    std::string_view name;
    uint32_t offset;
    std::vector<uint32_t> args;
    uint32_t output;
    std::vector<uint32_t> candidates;
    bool resolved = false;
    bool is_fact = false;
    std::string fn_name;  // of an unstable-fn; empty for all others
  };

  bool Error(uint32_t offset, std::string message, ErrorKind kind = ErrorKind::kSafety);
  uint32_t NewNode(uint32_t offset, SortId sort = SortId{});
  uint32_t Root(uint32_t node) const;
  bool SetSort(uint32_t node, SortId sort, uint32_t offset);
  bool Equate(uint32_t a, uint32_t b, uint32_t offset);
  // Facts of a relation are equal where their arguments are, although all have the value Unit.
  bool EquateFacts(uint32_t a, uint32_t b, uint32_t offset);
  std::optional<uint32_t> QueryExpr(uint32_t expr);
  std::optional<uint32_t> QueryCall(uint32_t expr);
  // Narrows the overloads of a primitive by the sorts known so far. False on an error.
  bool Narrow(PendingPrimitive& primitive, bool* progress);
  bool Fits(const Primitive& primitive, const std::vector<SortId>& args, SortId output,
            SortId* any) const;
  bool ResolvePrimitives();
  bool CheckBound();
  Operand ToOperand(uint32_t node);
  std::optional<Typed> Literal(uint32_t expr);
  // The sorts that a value read from `expr` can have, by the overloads of primitives in it.
  const std::vector<SortId>& PossibleSorts(uint32_t expr);
  // (unstable-fn "name" captured…): the primitives that make such a value, one for each sort of
  // functions that fits what is known of the sorts of what is captured. `wanted` is the value's own
  // sort where it is one of functions.
  std::vector<uint32_t> FnCandidates(const std::string& name, std::span<const SortId> captured,
                                     SortId wanted) const;
  bool NoFnFits(uint32_t offset, const std::string& name, size_t captured);
  // Narrow() for such a value. With `settle` the first candidate is taken.
  bool NarrowFn(PendingPrimitive& primitive, bool settle, bool* progress);
  bool CheckFnCall(uint32_t expr);
  std::optional<Typed> ActionFn(uint32_t expr, SortId wanted);
  std::optional<uint32_t> QueryFn(uint32_t expr);
  std::optional<Typed> ActionPrimitive(uint32_t expr, SortId wanted);
  std::optional<Typed> ActionCall(uint32_t expr, SortId wanted, const Typed* join_class);
  std::optional<std::vector<Operand>> CallArguments(uint32_t expr, FunctionId f);
  bool CheckArity(uint32_t expr, FunctionId f, uint32_t extra);
  std::string SortName(SortId sort) const;
  std::string Signature(std::string_view name, const std::vector<SortId>& args) const;
  // "unknown WHAT 'NAME'", with the closest name there is: of functions, primitives or variables.
  enum class NameKind : uint8_t { kFunction, kCallable, kVariable };
  std::string Unknown(NameKind kind, std::string_view name) const;
  // A variable may not have the name of a function, or of a global with or without its '$'.
  bool CheckNewName(uint32_t expr);

  EGraph& graph_;
  const Document& doc_;
  CompileError error_;
  std::vector<Node> nodes_;
  NameViewMap<uint32_t> variables_;
  std::vector<std::string_view> variable_order_;
  std::vector<PendingAtom> atoms_;
  std::vector<PendingPrimitive> primitives_;
  std::optional<uint32_t> pattern_root_;  // node
  Typed root_;
  uint32_t pattern_offset_ = 0;
  std::optional<size_t> pattern_atom_;  // the call, where it is one of a table
  NameViewMap<Typed> names_;
  std::vector<SortId> slot_sorts_;
  std::vector<Query::Preset> presets_;
  std::vector<Action> actions_;
  absl::flat_hash_map<uint32_t, std::vector<SortId>> possible_sorts_;  // by expression
  bool allow_reads_ = false;
};

}  // namespace l3c::egraph
