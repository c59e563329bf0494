// Random programs of the language's core, as text: for comparing the engine with a naive one.
//
// A program either deletes and unites, with rules that are matched anew at every step, or it does
// one of the two: then which matches count as new cannot show in the result. Facts are deleted and
// subsumed by rules of a ruleset of their own, in whose steps nothing is united, and the merges are
// lattices: so the order of matches, which the two engines do not share, cannot show either.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "egraph/run.h"

namespace l3c::egraph {

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed);

  // Declarations and rules. Rulesets: `start` (the facts, as a rule without premises), `grow`,
  // `prune`, `both` of the latter two, and `queries`, whose rules are conditions and do nothing.
  const std::string& text() const { return text_; }
  // A random schedule over the graph that has loaded the text.
  Schedule NextSchedule(const EGraph& graph);

 private:
  struct Scope {
    std::vector<std::string> terms;    // variables of sort T
    std::vector<std::string> numbers;  // i64
    std::vector<std::string> facts;    // premises that a rule may delete or subsume
  };
  uint32_t Pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool Chance(uint32_t percent) { return Pick(100) < percent; }
  std::string Term(Scope* scope);    // a variable, known or new
  std::string Number(Scope* scope);  // a variable or a literal
  std::string Fact(Scope* scope);
  std::string Facts(Scope* scope, uint32_t most);
  std::string KnownTerm(const Scope& scope, int depth);
  std::string Expression(const Scope& scope);  // of known numbers, small
  std::string Action(const Scope& scope);
  Schedule SomeSchedule(const EGraph& graph, int depth);

  std::mt19937_64 random_;
  bool unites_ = false;
  bool deletes_ = false;
  int names_ = 0;
  std::string text_;
};

}  // namespace l3c::egraph
