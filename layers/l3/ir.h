// L3: the specification. What is wanted; no algorithm, no hardware. See docs/l3.md.
//
// A Module is total: every reference resolved, every domain concrete, defaults filled in. The
// declarations keep the order in which they were written. Spans point into the source for later
// diagnostics and never count in comparisons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l3/domain.h"
#include "layers/l3/expression.h"
#include "layers/support/escape_hatch.h"
#include "layers/support/source.h"

namespace l3c::l3 {

using support::Span;

// A reference by name: `mnist.images`, `classify.out`, `classify.params`, `objective`.
struct Ref {
  enum class Kind : uint8_t {
    kUnresolved,
    kField,        // data.field
    kOutput,       // model.out: what the model makes of its `in`; or applied, see `arguments`
    kActivations,  // model.activations: the outputs of all its stages
    kParams,       // model.params: all its parameters
    kLoss,         // loss
    kTerm,         // loss.term
  };

  Kind kind = Kind::kUnresolved;
  std::string owner;   // name of the data, model or loss
  std::string member;  // field, "out", "activations", "params", term; "" for kLoss
  // kOutput only: `judge(generate.out)`, the model with these inputs in place of its own `in`.
  std::vector<Ref> arguments;
  Span span;
};
bool SameRef(const Ref& a, const Ref& b);
// "mnist.images", "judge(generate.out)"
std::string PrintRef(const Ref& ref);

struct Field {
  std::string name;
  Domain domain;
  Span span;  // the name
  Span domain_span;
};

struct Data {
  std::string name;
  std::vector<Field> fields;
  // `env("gridworld.l1")`: the data come from an environment, a tensor graph with state, reward
  // and done, instead of files. Empty: from files.
  std::string environment;
  Span span;

  const Field* FindField(std::string_view field) const;
};

// Bounds on what L2 may produce.
struct Property {
  enum class Kind : uint8_t {
    kDepth,           // count: max composed stages
    kWidth,           // count: max hidden dimension
    kCausal,          // output_t depends on input_≤t only
    kAutoregressive,  // output is fed back as input
    kEquivariant,     // group
    kParamBudget,     // count: max parameters
    kLatencyBudget,   // seconds: max forward pass
  };
  Kind kind = Kind::kDepth;
  int64_t count = 0;
  double seconds = 0;
  std::string group;  // translation, reflection, permutation, c4 (quarter turns), d4 (and mirrors)
  Span span;
};
std::string_view PropertyName(Property::Kind kind);

struct Model {
  std::string name;
  std::vector<Ref> in;  // one or more fields or outputs
  Domain out;
  std::vector<Property> properties;
  Span span;
  Span out_span;

  const Property* FindProperty(Property::Kind kind) const;
  std::optional<int64_t> depth() const { return Count(Property::Kind::kDepth); }
  std::optional<int64_t> width() const { return Count(Property::Kind::kWidth); }
  std::optional<int64_t> param_budget() const { return Count(Property::Kind::kParamBudget); }
  std::optional<double> latency_budget() const;  // seconds
  bool causal() const { return FindProperty(Property::Kind::kCausal) != nullptr; }
  bool autoregressive() const { return FindProperty(Property::Kind::kAutoregressive) != nullptr; }

 private:
  std::optional<int64_t> Count(Property::Kind kind) const;
};

enum class LossKind : uint8_t {
  kDivergence,      // reads: predicted, target
  kNorm,            // reads: target; p
  kConstraint,      // value: a predicate; reads: what it refers to
  kReconstruction,  // reads: input, decoded
  kContrastive,     // reads: anchor, positive, negative
  kCustom,          // custom_name; reads; value, unless the name is defined elsewhere
};
std::string_view LossKindName(LossKind kind);

struct Term {
  std::string name;
  LossKind kind = LossKind::kDivergence;
  std::vector<Ref> reads;
  double p = 2;             // kNorm
  std::string custom_name;  // kCustom: a name, or the path of a file if `custom_file`
  bool custom_file = false;
  std::optional<Expr> value;  // kConstraint, kCustom
  double weight = 1;
  Span span;       // the name
  Span kind_span;  // kind and arguments
  Span weight_span;
};

enum class Combine : uint8_t { kWeightedSum };

struct Loss {
  std::string name;
  std::vector<Term> terms;
  Combine combine = Combine::kWeightedSum;
  Span span;

  const Term* FindTerm(std::string_view term) const;
};

struct Goal {
  enum class Kind : uint8_t { kMinimize, kMaximize, kPareto, kAlternate };
  Kind kind = Kind::kMinimize;
  std::vector<Ref> targets;  // minimize, maximize: one; pareto: several
  std::vector<std::string>
      models;  // minimize, maximize: those it updates; empty: all it depends on
  std::vector<Span> model_spans;
  std::vector<Goal> turns;  // alternate: minimize and maximize goals
  Span span;
};

struct Module {
  std::vector<Data> data;
  std::vector<Model> models;
  std::vector<Loss> losses;
  Goal goal;
  // By path: a declaration ("classify"), a field or term ("objective.ce"), or "goal".
  support::Hints hints;

  const Data* FindData(std::string_view name) const;
  const Model* FindModel(std::string_view name) const;
  const Loss* FindLoss(std::string_view name) const;

  // The domain of a field or of a model's output; nothing for other references.
  const Domain* DomainOf(const Ref& ref) const;
};

}  // namespace l3c::l3
