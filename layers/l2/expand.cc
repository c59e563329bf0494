#include "layers/l2/expand.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/l2/backward.h"
#include "layers/l2/expression.h"
#include "layers/l2/infer.h"
#include "layers/l2/inputs.h"
#include "layers/l2/losses.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/predicate.h"
#include "layers/l2/verify.h"
#include "layers/l3/domain.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

class Expander {
 public:
  Expander(const Module& module, const Methods& methods, int64_t batch,
           const ForwardOptions& options)
      : module_(module), spec_(module.spec), methods_(methods), batch_(batch), options_(options) {
    support::Diagnostics diagnostics;
    auto turns = ResolveTurns(spec_, diagnostics);
    if (!turns) throw std::logic_error("the module was not verified");
    turns_ = std::move(*turns);
    FindClock();
  }

  ForwardGraph Run() {
    AddFieldInputs();
    result_.mask = g_.AddInput("mask", DType::kF32, {batch_});
    if (NeedsStep()) result_.step = g_.AddInput("step", DType::kI64, {});
    AddParameterInputs();
    l3::Ref own;
    own.kind = l3::Ref::Kind::kOutput;
    own.owner = methods_.model;
    own.member = "out";
    if (Reads(methods_.model)) result_.output = OutputOf(own);
    AddRowWeight();
    for (const Turn& turn : turns_) ExpandTurn(turn);
    result_.loss = result_.turns.front().loss;
    return std::move(result_);
  }

 private:
  // Only what is updated counts steps.
  void FindClock() {
    auto updates = [](const Turn& turn, const std::string& model) {
      return std::find(turn.updates.begin(), turn.updates.end(), model) != turn.updates.end();
    };
    for (size_t m = 0; m < module_.methods.size(); ++m) {
      const int64_t ticks = std::count_if(turns_.begin(), turns_.end(), [&](const Turn& turn) {
        return updates(turn, module_.methods[m].model);
      });
      if (ticks == 0) continue;
      result_.clock = m;
      result_.ticks = ticks;
      return;
    }
  }

  // What a model makes of some value.
  struct Applied {
    NodeId output = 0;
    std::optional<NodeId> log_output;
    std::vector<NodeId> activations;  // the results of its stages
    std::vector<NodeId> values;       // by node of the network
  };

  bool Reads(const std::string& model) const {
    return std::any_of(turns_.begin(), turns_.end(), [&](const Turn& turn) {
      return std::find(turn.reads.begin(), turn.reads.end(), model) != turn.reads.end();
    });
  }

  // Rows that pad the batch count nothing, nor in training those that a curriculum leaves out; a
  // batch in which none counts has the loss 0.
  void AddRowWeight() {
    result_.row_weight = result_.mask;
    const SamplePlan plan = PlanOf(methods_.sample);
    if (plan.curriculum.empty() || !options_.training) {
      rows_ = g_.ReduceSum(result_.mask, {0});
      return;
    }
    PredicateValues values;
    for (const auto& field : result_.fields) values[field.data + "." + field.field] = field.node;
    int64_t end = 0;
    for (const Form& stage : plan.curriculum) end += stage.Integer(1);
    NodeId counts = g_.Full(1, {batch_}, DType::kBool);
    for (size_t i = plan.curriculum.size(); i-- > 0;) {
      const Form& stage = plan.curriculum[i];
      const NodeId limit = g_.Const(static_cast<double>(end * result_.ticks), DType::kI64);
      const NodeId during = g_.Expand(g_.Binary(Op::kCmpLt, *result_.step, limit), {batch_});
      const NodeId holds = ExpandPredicate(g_, stage.Expression(0), values, batch_);
      counts = g_.Add(Op::kWhere, {during, holds, counts});
      end -= stage.Integer(1);
    }
    result_.row_weight = WhereElse(g_, counts, result_.mask, 0);
    rows_ = g_.Binary(Op::kMax, g_.ReduceSum(result_.row_weight, {0}), g_.Const(1));
  }

  bool NeedsStep() const {
    if (!options_.training) return false;
    if (!PlanOf(methods_.sample).curriculum.empty()) return true;
    for (const Methods& methods : module_.methods) {
      if (!Reads(methods.model)) continue;
      if (l2::DrawsRandomNumbers(methods.backward)) return true;
      for (size_t i = 1; i < methods.infer.nodes.size(); ++i) {
        if (EntryOf(methods.infer.nodes[i]).expand_random) return true;
      }
    }
    return false;
  }

  // A key for what a layer draws in this step.
  NodeId RandomKey(const std::string& layer) {
    const NodeId step =
        result_.step ? g_.Cast(*result_.step, DType::kU64) : g_.Const(0, DType::kU64);
    return DeriveKey(g_, step, layer + "/" + std::to_string(options_.seed));
  }

  // The fields that a value is computed from, in the order in which they are first read.
  void AddFieldInputs() {
    std::vector<l3::Ref> fields;
    auto add = [&](const l3::Ref& ref) { AddFields(spec_, ref, fields); };
    const l3::Model& model = *spec_.FindModel(methods_.model);
    if (Reads(model.name)) {
      for (const l3::Ref& in : model.in) add(in);
    }
    for (const Turn& turn : turns_) {
      for (const ObjectiveTerm& term : turn.terms) {
        if (term.term == nullptr) {
          add(term.predicted);
        } else {
          for (const l3::Ref& read : term.term->reads) add(read);
        }
      }
    }
    for (const Form& stage : PlanOf(methods_.sample).curriculum) {
      l3::ForEachReference(stage.Expression(0), [&](const l3::Expr& ref) {
        const size_t dot = ref.name.find('.');
        l3::Ref field;
        field.kind = l3::Ref::Kind::kField;
        field.owner = ref.name.substr(0, dot);
        field.member = ref.name.substr(dot + 1);
        add(field);
      });
    }
    for (const l3::Ref& field : fields) FieldNode(field);
  }

  // The graph input of a field, made on first use.
  NodeId FieldNode(const l3::Ref& ref) {
    for (const auto& field : result_.fields) {
      if (field.data == ref.owner && field.field == ref.member) return field.node;
    }
    const l3::Domain& domain = *spec_.DomainOf(ref);
    Shape shape = l3::ExampleShape(domain);
    shape.insert(shape.begin(), batch_);
    // Two data declarations may have fields of one name.
    std::string name = ref.member;
    if (g_.Find(name) || name == "mask" || name == "step") name = ref.owner + "_" + ref.member;
    const NodeId node = g_.AddInput(name, l3::ExampleDType(domain), shape);
    result_.fields.push_back({ref.owner, ref.member, node});
    return node;
  }

  // Names of one model's layers and parameters begin with the model where there are several.
  std::string Prefix(const Methods& methods) const {
    return module_.methods.size() > 1 ? methods.model + "_" : "";
  }

  void AddParameterInputs() {
    for (size_t m = 0; m < module_.methods.size(); ++m) {
      const Methods& methods = module_.methods[m];
      if (!Reads(methods.model)) continue;
      first_parameter_[methods.model] = result_.parameters.size();
      for (Parameter& p : Parameters(methods.infer)) {
        p.name = Prefix(methods) + p.name;
        result_.parameter_nodes.push_back(g_.AddInput(p.name, DType::kF32, p.shape));
        result_.parameters.push_back(std::move(p));
        result_.parameter_models.push_back(m);
      }
    }
  }

  // A field or an output; an output is computed once for each value that its model is applied to.
  NodeId ValueOf(const l3::Ref& ref) {
    return ref.kind == l3::Ref::Kind::kField ? FieldNode(ref) : OutputOf(ref);
  }
  NodeId OutputOf(const l3::Ref& ref) { return Apply(ref).output; }

  const Applied& Apply(const l3::Ref& ref) {
    const l3::Model& model = *spec_.FindModel(ref.owner);
    const std::string key = KeyOf(ref);
    if (const auto known = applied_.find(key); known != applied_.end()) return known->second;
    const NodeId input = InputOf(model, ref.arguments.empty() ? model.in : ref.arguments);
    const Methods& methods = *module_.FindMethods(model.name);
    const Applied& applied = applied_[key] = ExpandInfer(methods, input);
    if (key == model.name + ".out") {
      const size_t index = static_cast<size_t>(&methods - module_.methods.data());
      result_.networks[index] = {applied.output, applied.log_output, applied.values,
                                 first_parameter_.at(model.name)};
    }
    return applied;
  }

  // A reference by what it is computed from: `m(in)` is `m.out`, whatever of m is asked for.
  std::string KeyOf(const l3::Ref& ref) const {
    if (ref.kind == l3::Ref::Kind::kField) return l3::PrintRef(ref);
    const l3::Model& model = *spec_.FindModel(ref.owner);
    std::string key = ref.owner + ".out";
    if (ref.arguments.empty() || std::equal(ref.arguments.begin(), ref.arguments.end(),
                                            model.in.begin(), model.in.end(), l3::SameRef)) {
      return key;
    }
    key = ref.owner + "(";
    for (const l3::Ref& argument : ref.arguments) key += KeyOf(argument) + ",";
    return key + ")";
  }

  NodeId AsF32(NodeId id) { return As(g_, id, DType::kF32); }

  // [batch, …InputShape]
  NodeId InputOf(const l3::Model& model, const std::vector<l3::Ref>& inputs) {
    Shape shape = InputShape(spec_, model);
    shape.insert(shape.begin(), batch_);
    if (inputs.size() == 1) {
      const NodeId value = AsF32(ValueOf(inputs[0]));
      return g_.node(value).shape == shape ? value : g_.Reshape(value, shape);
    }
    const size_t axis = shape.size() - 1;
    std::vector<NodeId> parts;
    for (const l3::Ref& input : inputs) {
      const NodeId part = AsF32(ValueOf(input));
      Shape own = shape;
      int64_t places = 1;
      for (size_t i = 1; i < axis; ++i) places *= shape[i];
      own[axis] = tensor::NumElements(g_.node(part).shape) / (batch_ * places);
      parts.push_back(g_.node(part).shape == own ? part : g_.Reshape(part, own));
    }
    return Concatenate(g_, parts, axis);
  }

  Applied ExpandInfer(const Methods& methods, NodeId input) {
    const InferGraph& infer = methods.infer;
    Applied applied;
    std::vector<NodeId> values = {input};  // by node of the network
    const size_t first = first_parameter_.at(methods.model);
    const auto ranges = ParameterRanges(infer);
    for (size_t i = 1; i < infer.nodes.size(); ++i) {
      const LayerNode& node = infer.nodes[i];
      const LayerEntry& entry = EntryOf(node);
      std::vector<NodeId> operands;
      for (uint32_t operand : node.inputs) operands.push_back(values[operand]);
      if (entry.is_stage && node.inputs[0] != 0) applied.activations.push_back(operands[0]);
      const auto parameters =
          std::span(result_.parameter_nodes).subspan(first + ranges[i].first, ranges[i].second);
      if (entry.expand_surrogate && options_.training && TakesSurrogates(methods.backward)) {
        values.push_back(
            entry.expand_surrogate(g_, node.form, operands, SurrogateOf(methods.backward)));
      } else if (entry.expand_random && (options_.training || entry.random_in_evaluation)) {
        const NodeId key = RandomKey(Prefix(methods) + node.name);
        values.push_back(entry.expand_random(g_, node.form, operands, parameters, key));
      } else {
        values.push_back(entry.expand(g_, node.form, operands, parameters));
      }
      if (i == infer.output && entry.expand_log) {
        applied.log_output = entry.expand_log(g_, node.form, operands, parameters);
      }
      // The value goes by its layer's name, unless the layer hands an operand through.
      const bool made = std::find(operands.begin(), operands.end(), values[i]) == operands.end();
      const std::string name = Prefix(methods) + node.name;
      if (made && !g_.Find(name)) g_.Rename(values[i], name);
    }
    applied.output = values[infer.output];
    applied.values = values;
    applied.activations.push_back(applied.output);
    return applied;
  }

  void ExpandTurn(const Turn& turn) {
    TurnNodes nodes;
    nodes.name = turn.name;
    nodes.first_metric = result_.metrics.size();
    metric_prefix_ = result_.turns.empty() ? "" : turn.name + "_";
    result_.metrics.push_back({metric_prefix_ + "loss", 0, rows_});
    std::optional<NodeId> total;
    row_loss_.reset();
    for (const ObjectiveTerm& term : turn.terms) {
      NodeId value = ExpandTerm(term);
      if (term.weight != 1) value = g_.Binary(Op::kMul, value, g_.Const(term.weight));
      total = total ? g_.Binary(Op::kAdd, *total, value) : value;
      if (term.has_loss) continue;
      nodes.other_loss = nodes.other_loss ? g_.Binary(Op::kAdd, *nodes.other_loss, value) : value;
    }
    nodes.loss = *total;
    nodes.row_loss = row_loss_;
    for (size_t p = 0; p < result_.parameters.size(); ++p) {
      const std::string& owner = module_.methods[result_.parameter_models[p]].model;
      const auto& updates = turn.updates;
      if (std::find(updates.begin(), updates.end(), owner) != updates.end()) {
        nodes.parameters.push_back(p);
      }
    }
    AddOutput(metric_prefix_ + "loss", nodes.loss);
    const NodeId sum = g_.Binary(Op::kMul, nodes.loss, rows_);
    AddOutput(metric_prefix_ + "loss_sum", sum);
    if (result_.turns.empty()) AddOutput("rows", rows_);
    result_.metrics[nodes.first_metric].numerator = sum;
    if (result_.turns.empty() && Reads(methods_.model)) AddOutput("output", result_.output);
    nodes.metric_count = result_.metrics.size() - nodes.first_metric;
    result_.turns.push_back(std::move(nodes));
  }

  // Two turns may minimise the same.
  void AddOutput(std::string name, NodeId node) {
    for (const tensor::Output& output : g_.outputs()) {
      if (output.name == name) name += "_" + std::to_string(result_.turns.size() + 1);
    }
    g_.AddOutput(std::move(name), node);
  }

  NodeId ExpandTerm(const ObjectiveTerm& term) {
    if (term.has_loss) return ExpandLoss(term);
    if (term.term == nullptr) return MeanOfRows(ValueOf(term.predicted));
    if (term.term->kind == l3::LossKind::kNorm) return ExpandNorm(term);
    support::Diagnostics diagnostics;
    const auto value = ExpandExpression(
        *term.term, [&](const l3::Ref& ref) { return ExpressionValueOf(ref); }, g_, diagnostics);
    if (!value) throw std::logic_error("the module was not verified");
    return g_.node(*value).shape.empty() ? *value : MeanOverRows({*value, {}});
  }

  // The mean of a value of one element a row.
  NodeId MeanOfRows(NodeId value) {
    value = AsF32(value);
    if (g_.node(value).shape != Shape{batch_}) value = g_.Reshape(value, {batch_});
    return MeanOverRows({value, {}});
  }

  std::vector<NodeId> ParametersOf(const std::string& model) const {
    std::vector<NodeId> nodes;
    for (size_t p = 0; p < result_.parameters.size(); ++p) {
      if (module_.methods[result_.parameter_models[p]].model != model) continue;
      nodes.push_back(result_.parameter_nodes[p]);
    }
    return nodes;
  }

  ExpressionValue ExpressionValueOf(const l3::Ref& ref) {
    switch (ref.kind) {
      case l3::Ref::Kind::kParams:
        return {false, ParametersOf(ref.owner)};
      case l3::Ref::Kind::kActivations:
        return {true, Apply(ref).activations};
      default:
        return {true, {AsF32(ValueOf(ref))}};
    }
  }

  LossOperands Operands(const ObjectiveTerm& term) {
    const Applied& applied = Apply(term.predicted);
    LossOperands operands;
    operands.output = applied.output;
    operands.log_output = applied.log_output;
    operands.target = ValueOf(term.target);
    operands.target_is_label = term.target_kind == TargetKind::kLabel;
    operands.classes = ClassesOf(spec_.FindModel(term.predicted.owner)->out);
    if (term.negative) operands.negative = ValueOf(*term.negative);
    return operands;
  }

  NodeId ExpandLoss(const ObjectiveTerm& term) {
    const LossOperands operands = Operands(term);
    const Methods& methods = *module_.FindMethods(term.predicted.owner);
    const auto choice =
        std::find_if(methods.losses.begin(), methods.losses.end(),
                     [&](const LossChoice& loss) { return loss.term == term.choice; });
    const LossRows rows = FindLoss(choice->form.name)->expand(g_, choice->form, operands);
    if (operands.target_is_label) AddAccuracy(operands, IgnoredLabel(choice->form));
    const NodeId weighed = TimesConstant(g_, rows.loss, term.weight);
    row_loss_ = row_loss_ ? Add(g_, *row_loss_, weighed) : weighed;
    return MeanOverRows(rows);
  }

  // Σ mask·loss / Σ mask. Rows that pad the batch are cut out, not multiplied by zero: what they
  // hold may be anything, and 0·NaN is NaN.
  NodeId MeanOverRows(const LossRows& rows) {
    const NodeId zero = g_.Full(0, {batch_});
    NodeId padding =
        g_.Unary(*tensor::FindOp("not"), g_.Binary(Op::kCmpNe, result_.row_weight, zero));
    if (!rows.kept) {
      const NodeId kept = g_.Add(Op::kWhere, {padding, zero, rows.loss});
      return l2::Apply(g_, "div", {g_.ReduceSum(kept, {0}), rows_});
    }
    const NodeId weight = g_.Binary(Op::kMul, result_.row_weight, *rows.kept);
    padding = g_.Unary(*tensor::FindOp("not"), g_.Binary(Op::kCmpNe, weight, zero));
    const NodeId kept = g_.Add(Op::kWhere, {padding, zero, rows.loss});
    // With every row ignored the loss is 0.
    const NodeId count = g_.Binary(Op::kMax, g_.ReduceSum(weight, {0}), g_.Const(1));
    return l2::Apply(g_, "div", {g_.ReduceSum(kept, {0}), count});
  }

  // Places (rows, or elements of their sequences) whose most probable class, the lowest among
  // equals, is the label; those of the ignored label count nothing.
  void AddAccuracy(const LossOperands& in, std::optional<int64_t> ignored) {
    for (size_t m = result_.metrics.size(); m-- > 0;) {
      if (result_.metrics[m].name == metric_prefix_ + "accuracy") return;
    }
    const Shape classes = g_.node(in.output).shape;
    const int64_t last = static_cast<int64_t>(classes.size()) - 1;
    Shape places = classes;
    places.pop_back();
    Shape column = places;
    column.push_back(1);
    const NodeId top = g_.Expand(g_.Reshape(g_.ReduceMax(in.output, {last}), column), classes);
    tensor::Attributes iota;
    iota.ints = classes;
    iota.axis = last;
    iota.dtype = DType::kI32;
    const NodeId index = g_.Add(Op::kIota, {}, iota);
    const NodeId below = g_.Binary(Op::kCmpNe, in.output, top);
    const NodeId none = g_.Full(static_cast<double>(-classes.back()), Shape(classes), DType::kI32);
    // The greatest of −index is the lowest index; a row of NaN has none and is never right.
    const NodeId negated = g_.Add(Op::kWhere, {below, none, g_.Unary(Op::kNeg, index)});
    const NodeId guess = g_.Unary(Op::kNeg, g_.ReduceMax(negated, {last}));
    NodeId label = in.target;
    if (g_.node(label).shape != places) label = g_.Reshape(label, places);
    if (g_.node(label).dtype != DType::kI32) label = g_.Cast(label, DType::kI32);
    const NodeId wrong = g_.Binary(Op::kCmpNe, guess, label);
    std::optional<NodeId> kept;  // f32 of the places
    if (ignored) {
      kept = g_.Cast(g_.Binary(Op::kCmpNe, label,
                               g_.Full(static_cast<double>(*ignored), Shape(places), DType::kI32)),
                     DType::kF32);
    }
    NodeId right = 0;
    NodeId weight = result_.row_weight;
    const bool sequence = places.size() > 1;
    if (sequence) {
      const NodeId hit = g_.Add(
          Op::kWhere, {wrong, g_.Full(0, Shape(places)), kept ? *kept : g_.Full(1, Shape(places))});
      std::vector<int64_t> axes;
      double count = 1;
      for (size_t i = 1; i < places.size(); ++i) {
        axes.push_back(static_cast<int64_t>(i));
        count *= static_cast<double>(places[i]);
      }
      const NodeId hits = g_.ReduceSum(hit, axes);
      NodeId share = 0;
      if (kept) {
        const NodeId counted = g_.ReduceSum(*kept, axes);
        const NodeId one = g_.Full(1, {batch_});
        share = l2::Apply(g_, "div", {hits, g_.Binary(Op::kMax, counted, one)});
        const NodeId any =
            g_.Cast(g_.Binary(Op::kCmpNe, counted, g_.Full(0, {batch_})), DType::kF32);
        weight = g_.Binary(Op::kMul, weight, any);
      } else {
        share = g_.Binary(Op::kMul, hits, g_.Full(1 / count, {batch_}));
      }
      right = g_.Binary(Op::kMul, share, weight);
    } else {
      if (kept) weight = g_.Binary(Op::kMul, weight, *kept);
      right = g_.Add(Op::kWhere, {wrong, g_.Full(0, {batch_}), weight});
    }
    const NodeId sum = g_.ReduceSum(right, {0});
    const NodeId of = kept ? g_.ReduceSum(weight, {0}) : rows_;
    AddOutput(metric_prefix_ + "correct", sum);
    result_.metrics.push_back({metric_prefix_ + "accuracy", sum, of});
  }

  // (Σ|x|ᵖ)^(1/p) from Σ|x|ᵖ.
  NodeId Root(NodeId sum, double p) { return p == 1 ? sum : PowerOfPositive(g_, sum, 1 / p); }

  NodeId Power(NodeId a, double p) {
    if (p == 2) return g_.Unary(*tensor::FindOp("square"), a);
    const NodeId size = g_.Unary(*tensor::FindOp("abs"), a);
    return p == 1 ? size : PowerOfPositive(g_, size, p);
  }

  NodeId ExpandNorm(const ObjectiveTerm& term) {
    const double p = term.term->p;
    const l3::Ref& of = term.predicted;
    if (of.kind == l3::Ref::Kind::kParams) return ParameterNorm(ParametersOf(of.owner), p);
    if (of.kind == l3::Ref::Kind::kActivations) return RowNorm(Apply(of).activations, p);
    return RowNorm({OutputOf(of)}, p);
  }

  NodeId ParameterNorm(const std::vector<NodeId>& parameters, double p) {
    std::optional<NodeId> sum;
    for (NodeId parameter : parameters) {
      const NodeId part = SumAll(g_, Power(parameter, p));
      sum = sum ? g_.Binary(Op::kAdd, *sum, part) : part;
    }
    return sum ? Root(*sum, p) : g_.Const(0);
  }

  // Of all elements of a row, averaged over the rows.
  NodeId RowNorm(const std::vector<NodeId>& values, double p) {
    std::optional<NodeId> sum;
    for (NodeId value : values) {
      const NodeId powers = SumRows(g_, Power(AsF32(value), p));
      sum = sum ? g_.Binary(Op::kAdd, *sum, powers) : powers;
    }
    return MeanOverRows({Root(*sum, p), {}});
  }

  const Module& module_;
  const l3::Module& spec_;
  const Methods& methods_;
  const int64_t batch_;
  const ForwardOptions options_;
  std::vector<Turn> turns_;
  ForwardGraph result_;
  Graph& g_ = result_.graph;
  std::map<std::string, size_t> first_parameter_;  // of each model, into result_.parameters
  std::map<std::string, Applied> applied_;         // by what each application computes
  std::string metric_prefix_;
  std::optional<NodeId> row_loss_;  // of the turn
  NodeId rows_ = 0;                 // Σ mask
};

}  // namespace

ForwardGraph ExpandForward(const Module& module, const Methods& methods, int64_t batch,
                           const ForwardOptions& options) {
  return Expander(module, methods, batch, options).Run();
}

std::optional<int64_t> TotalSteps(const Methods& methods, int64_t rows) {
  const SamplePlan plan = PlanOf(methods.sample);
  const int64_t samples = SamplesOf(plan, rows);
  const int64_t per_epoch =
      plan.drop_last ? samples / plan.batch : (samples + plan.batch - 1) / plan.batch;
  int64_t total = 0;
  for (const Phase& phase : methods.phases) {
    int64_t steps = phase.steps;
    if (steps == 0 && __builtin_mul_overflow(phase.epochs, per_epoch, &steps)) return std::nullopt;
    if (steps > kMaxTotalSteps - total) return std::nullopt;
    total += steps;
  }
  return std::max<int64_t>(total, 1);
}

}  // namespace l3c::l2
