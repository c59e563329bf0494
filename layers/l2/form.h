// Entries: the one description of each thing that a method can be made of.
//
// An entry says how a Form is written (its arguments, their kinds, bounds and defaults) and what it
// does. The parser and the printer work from this description alone, so a new layer, loss or update
// is one entry and nothing else. Meaning is added by the families: layers.h, losses.h, updates.h,
// methods.h.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/ir.h"

namespace l3c::l2 {

enum class Family : uint8_t {
  kSample,
  kInfer,
  kLayer,
  kNorm,
  kBackward,
  kUpdate,
  kLoss,
  kCurriculum,
};
std::string_view FamilyName(Family family);  // "sample method", "layer", …

// A word is one of those listed, a name any identifier (of a layer, say).
//   kPredicate  an expression, `until(…)` or `filter: …`
//   kEdges      [[0, 1], …] or one of `words`
//   kNames      [a, b]
//   kRecords    [{ name: value, … }, …], each of the entry of `family` named ""
enum class ArgKind : uint8_t {
  kInteger,
  kReal,
  kBool,
  kWord,
  kName,
  kForm,
  kPredicate,
  kEdges,
  kNames,
  kRecords
};

struct Arg {
  std::string name;
  ArgKind kind = ArgKind::kInteger;
  bool positional = false;        // written without its name; positional arguments come first
  std::optional<Value> fallback;  // left out when it has this value; none: must be given
  double min = 0;                 // kInteger, kReal: inclusive bounds
  double max = std::numeric_limits<double>::max();
  bool above_min = false;           // the lower bound is exclusive
  bool below_max = false;           // the upper bound is exclusive
  std::vector<std::string> words;   // kWord: what it may be
  Family family = Family::kUpdate;  // kForm

  static Arg Integer(std::string name, int64_t min, int64_t max);
  static Arg Real(std::string name, double min, double max);
  static Arg Flag(std::string name, bool fallback);
  static Arg Word(std::string name, std::vector<std::string> words);
  static Arg Name(std::string name);
  static Arg Predicate(std::string name);  // left out: none
  static Arg Edges(std::string name, std::vector<std::string> words);
  static Arg NameList(std::string name);  // left out: empty
  static Arg Records(std::string name, Family family);
  static Arg Nested(std::string name, Family family);
  Arg Positional() && {
    positional = true;
    return std::move(*this);
  }
  Arg Or(Value value) && {
    fallback = std::move(value);
    return std::move(*this);
  }
  Arg BelowMax() && {
    below_max = true;
    return std::move(*this);
  }
  Arg AboveMin() && {
    above_min = true;
    return std::move(*this);
  }
};

struct Entry {
  std::string name;
  std::vector<Arg> args;
  std::string doc;  // one sentence
};

// Nothing when the family has no such entry.
const Entry* FindEntry(Family family, std::string_view name);
std::vector<std::string> EntryNames(Family family);
// Names of the language that have no entry yet, so that a message can tell them from typos.
bool IsReservedName(Family family, std::string_view name);

// A form of `entry` with the given arguments by name and defaults for the rest. The caller names
// only arguments that exist and gives all that have no default (std::logic_error otherwise).
Form MakeForm(const Entry& entry, std::vector<std::pair<std::string, Value>> args);

// Reads `NAME(args)` or `NAME` of the family at the parser's position; reports and returns nothing
// on error. `act(gelu)` is read as `gelu`.
std::optional<Form> ParseForm(support::ParserBase& parser, Family family);

// Reads the value of one argument, after its label; reports and returns nothing on error.
std::optional<Value> ParseArgument(support::ParserBase& parser, const Entry& entry, const Arg& arg);
std::string PrintArgument(const Value& value, const Arg& arg);
bool SameArgument(const Value& a, const Value& b);

// Canonical spelling: positional arguments, then named ones that differ from their defaults.
std::string PrintForm(const Form& form, Family family);

}  // namespace l3c::l2
