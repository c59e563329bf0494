// Random instances of a rule's left side: a tensor program that the rule's pattern matches, and
// values for its free variables.
//
// The program is made from the root down. A root gets a random dtype and shape; an op then says
// what its operands must be for that, with random attributes where they are free, as a Permute by
// any order has a permuted operand. A variable without a pattern becomes an input. What a premise
// about `shape` or `dtype` fixes is kept to; other premises are up to the match, which the caller
// tries.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "egraph/egraph.h"
#include "layers/rules/choices.h"
#include "layers/tensor/graph.h"
#include "layers/tensor/interpreter.h"

namespace l3c::rules {

class LeftSide {
 public:
  // `rule` is one of `graph`, which has the terms of layers/l0/lower/value_terms.h.
  LeftSide(const egraph::EGraph& graph, const egraph::Rule& rule);

  // Why there can be no instance; "" when there can.
  const std::string& obstacle() const { return obstacle_; }

  // Nothing where the choices contradict one another.
  std::optional<tensor::Graph> Draw(Choices& choices) const;

 private:
  friend class InstanceBuilder;
  struct Pattern {
    tensor::Op op;
    const egraph::Atom* atom;
  };

  const egraph::EGraph& graph_;
  const egraph::Rule& rule_;
  std::string obstacle_;
  std::map<uint32_t, std::vector<Pattern>> patterns_;  // by slot of the class
  std::map<uint32_t, std::string> dtypes_, shapes_;    // by slot: fixed by a premise
  std::vector<uint32_t> roots_;                        // slots that no pattern has as an operand
};

enum class ValueRange : uint8_t {
  kShort,    // of 8 significant bits, as bfloat16 has: rounding to it leaves them as they are
  kFinite,   // ordinary numbers, zeros of both signs
  kSpecial,  // NaN and infinities as well
  kExtreme,  // and the largest, the smallest, and those that swallow others in a sum
};
// One array for each input of the program.
std::vector<tensor::Array> DrawValues(const tensor::Graph& program, ValueRange range,
                                      Choices& choices);

}  // namespace l3c::rules
