// A proof: numbered steps, each from earlier ones, over a table of terms.
//
// It is complete by itself but for the rules, the statements of the program and what was put in
// through the C++ interface, which are what it proves from. ProofChecker (proof_checker.h) decides
// whether it is one; Explainer (explain.h) makes them; proof_text.h prints them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "egraph/ids.h"

namespace l3c::egraph {

struct Proof {
  static constexpr uint32_t kNone = 0xffffffffu;

  struct Term {
    enum class Kind : uint8_t { kLiteral, kCall, kContainer };
    Kind kind = Kind::kLiteral;
    SortId sort;
    FunctionId function;         // kCall
    std::vector<uint32_t> args;  // kCall, kContainer: earlier terms
    // kLiteral. Of Unit: an index that a function value captures; of BigInt, BigRat
    // and Rational: as big.h keeps them.
    std::variant<int64_t, bool, double, std::string> literal;
    friend bool operator==(const Term&, const Term&) = default;
  };

  struct Ref {
    uint32_t step = kNone;
    bool reversed = false;
    friend bool operator==(const Ref&, const Ref&) = default;
  };

  // A rule, statement or merge with what it was applied to. Several steps may draw on one.
  struct Application {
    enum class Kind : uint8_t { kRule, kStatement, kMerge };
    Kind kind = Kind::kRule;
    uint32_t subject = 0;  // rule, index of the statement in the log, or function
    // Terms. Rule: the value of each slot of its query. Merge: the arguments, the old value, the
    // new one.
    std::vector<uint32_t> slots;
    std::vector<uint32_t> reads;  // terms that its actions looked up, in order
    // Steps, kNone where nothing has to be shown. Rule: for each atom of the query; for each
    // preset, that the slot equals it; for each primitive `bool-=` over terms that differ, that
    // they are equal; for each read, the fact. Statement: its reads. Merge: the facts of the old
    // and of the new value, then its reads.
    std::vector<Ref> premises;
  };

  // `lhs` = `rhs`. Where `lhs` is a call of a function or a relation: that has the value `rhs`.
  struct Step {
    enum class Kind : uint8_t {
      kGivenTerm,  // put in by the caller: node, equation or fact `source` of the log
      kGivenEquality,
      kGivenFact,
      kApply,           // what application `source` claims
      kEqualArguments,  // the first premise with the arguments of its left side replaced by equal
                        // ones
      kChain,           // a = b, b = c, … so a = z
      kThere,           // t = t, because the premise speaks of t (on its right side if reversed)
      kContainer,       // containers with equal elements
    };
    Kind kind = Kind::kApply;
    uint32_t lhs = 0;
    uint32_t rhs = 0;
    uint32_t source = kNone;
    std::vector<Ref> premises;
  };

  std::vector<Term> terms;
  std::vector<Application> applications;
  std::vector<Step> steps;
  std::vector<uint32_t> goals;  // steps that together are what was to be proven

  // Before it was made shorter: steps of the proof along the unions that joined classes.
  size_t first_steps = 0;
};

}  // namespace l3c::egraph
