// L2: the method. How to sample, which network, how to differentiate, how to update, for how long;
// no hardware, no memory, no order of execution. See docs/l2.md for the grammar.
//
// An L2 module is an L3 module plus `methods` for its models. Whatever can be chosen (a layer, an
// update, a loss, a way to sample) is a Form: a name and its arguments, described by a table entry
// (layers.h, losses.h, updates.h, methods.h). Nothing here knows any of them by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layers/l3/ir.h"
#include "layers/support/escape_hatch.h"
#include "layers/support/source.h"
#include "layers/tensor/dtype.h"

namespace l3c::l2 {

using support::Span;
using tensor::Shape;

struct Form;

// A word is one of an entry's enumerated names (`reverse`, `cosine`), a name any identifier; a form
// is nested (`inner: adam(…)`), held as a vector of one, and so is an expression, a vector of none
// where there is none; names are a list of identifiers, integers the ends of edges, in pairs.
using Value = std::variant<int64_t, double, bool, std::string, std::vector<Form>,
                           std::vector<l3::Expr>, std::vector<std::string>, std::vector<int64_t>>;

// `adam(lr: 3e-4)`. `args` has one value for each parameter of the entry, in table order, defaults
// filled in: adam → lr, beta1, beta2, eps.
struct Form {
  std::string name;
  std::vector<Value> args;
  Span span;

  int64_t Integer(size_t i) const { return std::get<int64_t>(args[i]); }
  double Real(size_t i) const { return std::get<double>(args[i]); }
  bool Bool(size_t i) const { return std::get<bool>(args[i]); }
  const std::string& Word(size_t i) const { return std::get<std::string>(args[i]); }
  const Form& Inner(size_t i) const { return std::get<std::vector<Form>>(args[i]).front(); }
  const std::vector<Form>& Forms(size_t i) const { return std::get<std::vector<Form>>(args[i]); }
  bool HasExpression(size_t i) const { return !std::get<std::vector<l3::Expr>>(args[i]).empty(); }
  const l3::Expr& Expression(size_t i) const {
    return std::get<std::vector<l3::Expr>>(args[i]).front();
  }
  const std::vector<std::string>& Names(size_t i) const {
    return std::get<std::vector<std::string>>(args[i]);
  }
  // Edges are a list of pairs or a word.
  bool IsEdgeList(size_t i) const { return std::holds_alternative<std::vector<int64_t>>(args[i]); }
  const std::vector<int64_t>& Edges(size_t i) const {
    return std::get<std::vector<int64_t>>(args[i]);
  }
};
// Same name and arguments; spans do not count.
bool SameForm(const Form& a, const Form& b);

// The network as a DAG, operands before users. Node 0 is the model's input and has no form.
struct LayerNode {
  std::string name;  // unique in the graph: "linear1", "norm2"; prefixes its parameters
  Form form;         // layers.h; "" for node 0, "add" where a residual joins
  std::vector<uint32_t> inputs;
  std::optional<uint32_t> lender;  // the node whose parameters it uses in place of its own
  Shape shape;                     // of one sample, without the batch; filled by PropagateShapes
};

// How the network is written. The DAG is its meaning; this is only kept to print it back.
//   sequential [ a, b ]   b after a
//   residual [ a, b ]     x + a(x), then y + b(y): every item is a block with a skip around it
//   recurrent(…), …       a call of infer_methods.h
struct InferForm {
  enum class Kind : uint8_t { kLayer, kSequential, kResidual, kCall };
  Kind kind = Kind::kLayer;
  uint32_t node = 0;          // kLayer: index into InferGraph::nodes
  std::vector<Form> written;  // kLayer: what stands in the text, where it is not the node's form;
                              // kCall: the name and the arguments that are no networks
  std::vector<InferForm> items;  // kSequential, kResidual; kCall: the networks of its parts
  std::vector<support::EscapeHatch> hatches;  // kLayer, until the graph is built
  Span span;
};

struct InferGraph {
  std::vector<LayerNode> nodes;
  uint32_t output = 0;
  InferForm form;
};

// Which loss a term of L3 uses: `ce: ce(label_smoothing: 0.1)`.
struct LossChoice {
  std::string term;  // name of the term in the L3 loss
  Form form;         // losses.h
};

// `main(epochs: 10, eval: 1, checkpoint: 5)`. One of epochs and steps is positive.
struct Phase {
  std::string name;
  int64_t epochs = 0;
  int64_t steps = 0;
  int64_t eval_every = 1;           // epochs between evaluations on the test split; 0: never
  int64_t checkpoint_every = 1;     // epochs between checkpoints; 0: only at the end
  std::vector<std::string> frozen;  // layers whose parameters do not move
  std::vector<Form> update;         // in place of the method's: one or none
  Span span;
};

// What trains when no phases are written: `main(epochs: 10)`.
Phase DefaultPhase();

struct Methods {
  std::string model;
  Form sample;
  InferGraph infer;
  Form backward;
  Form update;                     // the outermost of the chain
  std::vector<LossChoice> losses;  // one for each term of the objective that leaves a choice, in
                                   // the order of the terms (objective.h)
  bool losses_written = false;     // `loss:` is printed only when it was chosen
  std::vector<Phase> phases;       // at least one
  bool phases_written = false;     // `phases` is printed only when it was chosen
  std::optional<uint64_t> seed;
  support::Hints hints;  // annotations for L1 and L0, by path ("classify.infer.linear2")
  Span span;
};

struct Module {
  l3::Module spec;
  std::vector<Methods> methods;  // in the order of the models

  const Methods* FindMethods(std::string_view model) const;
};

// `# l3c l2 v1` text → module. Resolves every name, builds the DAG and propagates shapes; what
// fails is reported. No value after an error.
std::optional<Module> ParseModule(const support::SourceFile& source,
                                  support::Diagnostics& diagnostics);
// Canonical text: parsing it and printing again gives the same bytes.
std::string PrintModule(const Module& module);

}  // namespace l3c::l2
