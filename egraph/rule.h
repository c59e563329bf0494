// Rules as the engine runs them: a flat query and a flat list of actions over numbered slots.
//
// Text is the usual way to write rules (program.h); this is what it is compiled to. A query is a
// conjunction: every atom must match a live row of its function, every primitive must succeed and
// give its output. Slots hold the values of variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "egraph/ids.h"
#include "egraph/numerics.h"

namespace l3c::egraph {

// A slot or a constant of a base sort (classes move when they are united: see Query::presets).
struct Operand {
  bool is_constant = false;
  uint32_t bits = 0;  // the slot's number, or the constant's Value

  static Operand Slot(uint32_t slot) { return {false, slot}; }
  static Operand Constant(Value v) { return {true, v.bits}; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Matches rows whose columns (arguments, then output) agree with the operands.
struct Atom {
  FunctionId function;
  std::vector<Operand> columns;
};

// Holds when the primitive succeeds on `args` and gives `output`. A slot in `output` that nothing
// else binds is bound by it.
struct PrimitiveAtom {
  uint32_t primitive = 0;  // index into EGraph::primitives()
  std::vector<Operand> args;
  Operand output;
};

struct Query {
  std::vector<SortId> slot_sorts;  // one for each slot
  // The variables' names, empty for a slot that has none; may be shorter than slot_sorts.
  std::vector<std::string> slot_names;
  // Slots that are bound from the start: globals whose value moves (classes, containers of them).
  struct Preset {
    uint32_t slot;
    Value value;
  };
  std::vector<Preset> presets;
  std::vector<Atom> atoms;
  std::vector<PrimitiveAtom> primitives;
};

struct Action {
  enum class Kind : uint8_t {
    kAdd,        // result := class of constructor function(args), created when absent
    kAddAs,      // constructor function(args) joins the class in `value`, created when absent
    kLookup,     // result := output of function(args); fails when absent
    kPrimitive,  // result := primitive(args); fails when it gives nothing
    kSet,        // function(args) := value, merged
    kUnion,      // args[0] = args[1]
    kGlobal,     // result := class `value`
    kRemove,     // function(args)
    kSubsume,    // function(args)
    kPanic,      // fails with `message`
  };
  Kind kind = Kind::kUnion;
  FunctionId function;
  uint32_t primitive = 0;
  std::vector<Operand> args;
  Operand value;
  uint32_t result = 0;  // slot
  std::string message;
};

struct Rule {
  std::string name;  // unique by choice of the author; by default the text of the left-hand side
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  RulesetId ruleset = kDefaultRuleset;
  Numerics numerics = Numerics::kExact;
  bool naive = false;  // matched against all rows at every step, not only the new ones
  Query query;
  std::vector<Action> actions;
  std::vector<SortId> slot_sorts;  // the query's, then those of the actions' results
};

}  // namespace l3c::egraph
