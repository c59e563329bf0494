// The values of a step and the ways to define each: the tensor program after the algebra rules.
//
// A step's graph is written into the e-graph as terms of the sort Val (value_terms.h), equal terms
// falling together; rewrites/algebra.egg adds equal definitions. What comes back is a table of
// values in topological order, each with one or more definitions over earlier values. From here on
// a value is its number, and the order of the numbers is the order in which kernels are placed
// (candidates.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/run.h"
#include "layers/l0/lower/step.h"
#include "layers/l0/lower/value_terms.h"
#include "layers/tensor/graph.h"

namespace l3c::l0::lower {

using ValueId = int32_t;

struct Definition {
  tensor::Op op = tensor::Op::kInput;
  tensor::Attributes attr;
  std::vector<ValueId> inputs;
  egraph::RuleId rule = egraph::kInitial;  // that wrote it
};

struct Value {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  std::vector<Definition> definitions;  // the source's own first
  std::string name;                     // of its `let`; of the first when several fell together
  support::Span span;
  uint32_t memory = 0;     // the node of the system that it lies in (Step::memory)
  int32_t input = -1;      // index into Step::inputs
  int32_t own = -1;        // index into Step::own: made of its operands by a kernel of the user's
  egraph::Value class_id;  // of the sort Val
};

struct ValueTable {
  std::vector<Value> values;     // operands of the first definition before users
  std::vector<ValueId> outputs;  // parallel to Step::outputs
  std::vector<ValueId> inputs;   // parallel to Step::inputs; -1: nothing reads it
  std::vector<ValueId> of_node;  // by node of the step's graph; -1: nothing needs it
};

int64_t Bytes(const Value& value);
bool IsView(tensor::Op op);
bool IsReduction(tensor::Op op);
bool IsElementwise(tensor::Op op);
bool IsContraction(tensor::Op op);

// Encodes, saturates `algebra`, decodes. The algebra rules have been loaded into `graph` already.
// Nothing, and why, when a rule has made what is no tensor, or the budget ended before the rules.
std::optional<ValueTable> BuildValues(const Step& step, egraph::EGraph& graph,
                                      const egraph::Budget& budget, egraph::RunReport& report,
                                      std::string& error);

}  // namespace l3c::l0::lower
