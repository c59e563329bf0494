#include "layers/l2/verify.h"

#include <algorithm>
#include <string>

#include "layers/l2/backward.h"
#include "layers/l2/estimate.h"
#include "layers/l2/expand.h"
#include "layers/l2/infer.h"
#include "layers/l2/inputs.h"
#include "layers/l2/layers.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/symmetry.h"
#include "layers/l2/updates.h"
#include "layers/l3/domain.h"
#include "layers/l3/verify.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using support::Diagnostics;
using support::Kind;
using support::PrintCount;
using support::PrintInteger;

class Verifier {
 public:
  Verifier(const Module& module, const Methods& methods, Diagnostics& diagnostics)
      : module_(module),
        spec_(module.spec),
        methods_(methods),
        model_(*module.spec.FindModel(methods.model)),
        diagnostics_(diagnostics) {}

  void Run() {
    // The other checks walk the network, so it has to be well formed.
    if (!CheckAcyclic() || !CheckShapes()) return;
    CheckSize();
    CheckOutput();
    CheckConstraints();
    CheckBackward();
    CheckUpdate();
    CheckSample();
    CheckPhases();
    ResolveObjective(spec_, methods_.model, diagnostics_);
  }

 private:
  support::Diagnostic& Error(Kind kind, Span span, std::string message) {
    return diagnostics_.Error(kind, span.known() ? span : methods_.span, std::move(message));
  }

  bool CheckAcyclic() {
    const InferGraph& infer = methods_.infer;
    bool ok = !infer.nodes.empty() && infer.output < infer.nodes.size() && infer.output > 0;
    for (size_t i = 1; ok && i < infer.nodes.size(); ++i) {
      const LayerNode& node = infer.nodes[i];
      ok = FindLayer(node.form.name) != nullptr &&
           (EntryOf(node).operand_count == LayerEntry::kAnyNumber ||
            node.inputs.size() == static_cast<size_t>(EntryOf(node).operand_count)) &&
           (!node.lender || (*node.lender < i && !infer.nodes[*node.lender].lender));
      // Operands before users: an order exists exactly when there is no cycle.
      for (uint32_t operand : node.inputs) ok = ok && operand < i;
    }
    if (!ok) {
      Error(Kind::kResourceBound, methods_.infer.form.span,
            "the network of '" + methods_.model + "' is not an acyclic graph of layers");
    }
    return ok;
  }

  bool CheckShapes() {
    auto shapes = InferShapes(methods_.infer, InputShape(spec_, model_), diagnostics_);
    if (!shapes) return false;
    for (size_t i = 0; i < shapes->size(); ++i) {
      if ((*shapes)[i] == methods_.infer.nodes[i].shape) continue;
      Error(Kind::kConsistency, methods_.infer.nodes[i].form.span,
            "the shape of " + methods_.infer.nodes[i].name + " is " +
                tensor::ShapeToString((*shapes)[i]) + ", the graph says " +
                tensor::ShapeToString(methods_.infer.nodes[i].shape));
      return false;
    }
    return true;
  }

  void CheckSize() {
    const int64_t parameters = ParameterCount(methods_.infer);
    if (parameters > kMaxParameters) {
      Error(Kind::kResourceBound, methods_.infer.form.span,
            "the network has " + PrintInteger(parameters) + " parameters")
          .Label("at most " + PrintInteger(kMaxParameters));
    }
    double bytes = 0;
    for (const LayerNode& node : methods_.infer.nodes) {
      bytes += 4.0 * static_cast<double>(tensor::NumElements(node.shape)) *
               static_cast<double>(BatchOf(methods_.sample));
    }
    if (bytes > static_cast<double>(kMaxActivationBytes)) {
      Error(Kind::kResourceBound, methods_.sample.span,
            "one batch of every layer's result takes " +
                support::PrintBytes(static_cast<int64_t>(std::min(bytes, 9e18))))
          .Label("at most " + support::PrintBytes(kMaxActivationBytes))
          .Fix("lower 'batch'");
    }
  }

  void CheckOutput() {
    const LayerNode& last = methods_.infer.nodes[methods_.infer.output];
    const int64_t elements = l3::NumElements(model_.out);
    const int64_t found = tensor::NumElements(last.shape);
    const std::string out = model_.name + ".out is " + l3::PrintDomain(model_.out);
    if (found != elements) {
      Error(Kind::kConsistency, last.form.span,
            out + ", but the network gives " + tensor::ShapeToString(last.shape))
          .Label("expected " + PrintInteger(elements) + (elements == 1 ? " element" : " elements"))
          .With({model_.out_span, "declared here"});
      return;
    }
    const bool distribution = EntryOf(last).expand_log != nullptr;
    if ((ClassesOf(model_.out) > 0) == distribution) {
      if (!distribution || last.shape.back() == ClassesOf(model_.out)) return;
      Error(Kind::kConsistency, last.form.span,
            out + ", but the network ends in distributions over " +
                PrintInteger(last.shape.back()) + " classes")
          .With({model_.out_span, "declared here"});
      return;
    }
    if (distribution) {
      Error(Kind::kConsistency, last.form.span,
            out + ", but the network ends in " + last.form.name + ", which gives a distribution")
          .With({model_.out_span, "declared here"})
          .Fix("leave out '" + last.form.name + "'");
    } else {
      Error(Kind::kConsistency, last.form.span,
            out + ", but the network ends in " + last.form.name + ", which gives no distribution")
          .With({model_.out_span, "declared here"})
          .Fix("end the network with 'softmax'");
    }
  }

  void CheckConstraints() {
    using Property = l3::Property;
    auto note = [&](Property::Kind kind) {
      return support::Note{model_.FindProperty(kind)->span, "declared here"};
    };
    if (auto depth = model_.depth(); depth && Depth(methods_.infer) > *depth) {
      Error(Kind::kConsistency, methods_.infer.form.span,
            "the network has " + PrintInteger(Depth(methods_.infer)) + " stages, depth(" +
                PrintInteger(*depth) + ") allows " + PrintInteger(*depth))
          .With(note(Property::Kind::kDepth));
    }
    if (auto width = model_.width()) CheckWidth(*width, note(Property::Kind::kWidth));
    const int64_t parameters = ParameterCount(methods_.infer);
    if (auto budget = model_.param_budget(); budget && parameters > *budget) {
      Error(Kind::kConsistency, methods_.infer.form.span,
            "the network has " + PrintInteger(parameters) + " parameters, param_budget(" +
                PrintCount(*budget) + ") allows " + PrintInteger(*budget))
          .With(note(Property::Kind::kParamBudget));
    }
    if (auto budget = model_.latency_budget()) {
      // Sums taken in another order differ in the last digits.
      const double latency = ForwardLatency(methods_.infer, BuiltinPriors());
      if (latency > *budget * (1 + 1e-9)) {
        Error(Kind::kConsistency, methods_.infer.form.span,
              "the forward pass of one sample is predicted to take " + LatencyText(latency) +
                  ", latency_budget(" + support::PrintSeconds(*budget) + ") allows " +
                  support::PrintSeconds(*budget))
            .With(note(Property::Kind::kLatencyBudget));
      }
    }
    for (const Property& property : model_.properties) {
      if (property.kind == Property::Kind::kEquivariant) {
        CheckSymmetry(property);
      } else if (property.kind == Property::Kind::kCausal ||
                 property.kind == Property::Kind::kAutoregressive) {
        // One output, of all that was read, comes after everything.
        if (model_.out.kind == l3::Domain::Kind::kSequence) CheckCausal(property);
      }
    }
  }

  void CheckSymmetry(const l3::Property& property) {
    const std::string name = "equivariant(" + property.group + ")";
    const bool actions = IsGroupOfActions(property.group);
    if (actions && model_.out.kind == l3::Domain::Kind::kSequence) {
      Error(Kind::kConsistency, property.span, "no layer can be shown to be " + name)
          .Label("a mean over all actions is of outputs without positions")
          .Fix("leave out the property");
      return;
    }
    const int64_t axis = ReflectionAxis(*spec_.DomainOf(model_.in[0]));
    const auto node = FirstWithoutSymmetry(methods_.infer, property.group, axis);
    if (!node) return;
    if (actions) {
      Error(Kind::kConsistency, methods_.infer.nodes[*node].form.span,
            "'" + methods_.infer.nodes[*node].form.name + "' loses what makes the model " + name)
          .With({property.span, "declared here"})
          .Fix("wrap the network: 'symmetric(net: …, group: " + property.group +
               (property.group == "reflection" ? ", axis: " + PrintInteger(axis) : "") + ")'");
      return;
    }
    Error(Kind::kConsistency, methods_.infer.nodes[*node].form.span,
          "'" + methods_.infer.nodes[*node].form.name + "' loses what makes the model " + name)
        .With({property.span, "declared here"})
        .Fix(
            "work on the channels of each position, and join positions by attention or a mean over "
            "all of them");
  }

  // An autoregressive model is trained on sequences whose every position predicts the next, so it
  // must be causal, and give a position for each that it reads.
  void CheckCausal(const l3::Property& property) {
    const InferGraph& infer = methods_.infer;
    const std::string name(l3::PropertyName(property.kind));
    const support::Note declared{property.span, "declared here"};
    if (const auto leak = FirstAcausal(infer)) {
      const LayerNode& node = infer.nodes[*leak];
      Error(Kind::kConsistency, node.form.span,
            "'" + node.form.name + "' lets a position see later ones, and the model is " + name)
          .With(declared)
          .Fix(node.form.name == "attn" ? "write 'causal: true'"
                                        : "leave out the layer or the property");
      return;
    }
    const Shape& first = infer.nodes[0].shape;
    const Shape& last = infer.nodes[infer.output].shape;
    if (first.empty() || last.empty() || first[0] != last[0]) {
      Error(Kind::kConsistency, methods_.infer.form.span,
            "the model is " + name + ", but the network turns " + tensor::ShapeToString(first) +
                " into " + tensor::ShapeToString(last) + ": not a position for each position")
          .With(declared);
    }
  }

  // The hidden dimension: what a stage other than the last gives.
  void CheckWidth(int64_t width, const support::Note& note) {
    const InferGraph& infer = methods_.infer;
    // The last stage on the way to the output is not hidden.
    uint32_t last = infer.output;
    while (last > 0 && !EntryOf(infer.nodes[last]).is_stage) last = infer.nodes[last].inputs.back();
    for (size_t i = 1; i < infer.nodes.size(); ++i) {
      const LayerNode& node = infer.nodes[i];
      if (i == last || !EntryOf(node).is_stage || node.shape.back() <= width) continue;
      Error(Kind::kConsistency, node.form.span,
            "this layer is " + PrintInteger(node.shape.back()) + " wide, width(" +
                PrintInteger(width) + ") allows " + PrintInteger(width))
          .With(note);
    }
  }

  void CheckBackward() {
    l2::CheckBackward(methods_.backward, module_, methods_, diagnostics_);
    if (ParameterCount(methods_.infer) == 0) {
      Error(Kind::kConsistency, methods_.infer.form.span,
            "the network has no parameters, so there is nothing to differentiate for")
          .Fix("add a layer that learns, such as linear");
    }
  }

  void CheckUpdate() {
    CheckUpdate(methods_.update);
    for (const Phase& phase : methods_.phases) {
      if (!phase.update.empty()) CheckUpdate(phase.update[0]);
    }
  }

  void CheckUpdate(const Form& form) {
    if (!CheckRepeatedUpdate(form)) return;  // two of a kind could not share their state's names
    const auto parameters = Parameters(methods_.infer);
    double elements = 0;
    for (const Parameter& p : parameters) {
      elements += static_cast<double>(tensor::NumElements(p.shape));
    }
    if (elements > static_cast<double>(kMaxParameters)) return;  // reported as its size
    const UpdateGraph update = ExpandUpdate(form, parameters, 1);
    for (const tensor::Output& output : update.graph.outputs()) {
      const auto before = update.graph.Find(output.name);
      if (before && update.graph.node(*before).shape == update.graph.node(output.node).shape &&
          update.graph.node(*before).dtype == update.graph.node(output.node).dtype) {
        continue;
      }
      Error(Kind::kConsistency, form.span,
            "the update turns '" + output.name + "' into shape " +
                tensor::ShapeToString(update.graph.node(output.node).shape));
    }
  }

  // Two schedules multiply, two clips clip twice: never meant.
  bool CheckRepeatedUpdate(const Form& form) {
    const auto chain = UpdateChain(form);
    for (size_t i = 0; i < chain.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (chain[i]->name != chain[j]->name) continue;
        Error(Kind::kConsistency, chain[i]->span,
              "'" + chain[i]->name + "' stands twice in the update")
            .With({chain[j]->span, "also here"});
        return false;
      }
    }
    return true;
  }

  void CheckSample() {
    std::vector<l3::Ref> fields;
    for (const l3::Ref& in : model_.in) AddFields(spec_, in, fields);
    auto read = [&](const l3::Goal& goal) {
      for (const l3::Ref& target : goal.targets) AddFields(spec_, target, fields);
    };
    read(spec_.goal);
    for (const l3::Goal& turn : spec_.goal.turns) read(turn);
    for (const l3::Ref& field : fields) {
      const l3::Data& data = *spec_.FindData(field.owner);
      if (!data.environment.empty()) {
        Error(Kind::kConsistency, methods_.sample.span,
              methods_.sample.name + " draws rows of files, but data '" + data.name +
                  "' comes from an environment")
            .With({data.span, "declared here"});
        return;
      }
      if (field.owner == fields.front().owner) continue;
      Error(Kind::kConsistency, methods_.sample.span,
            methods_.sample.name + " draws one row of '" + fields.front().owner + "' and one of '" +
                field.owner + "': nothing pairs them")
          .With({field.span, "the other data is read here"})
          .Fix("declare the fields in one data declaration");
      return;
    }
    l2::CheckSample(methods_.sample, spec_, fields, diagnostics_);
    CheckTogether();
  }

  // Models of one goal train together, on the same rows.
  void CheckTogether() {
    const Methods& first = module_.methods.front();
    if (&first == &methods_) return;
    auto differs = [&](const char* what, Span span, Span other) {
      Error(Kind::kConsistency, span,
            "the models of one goal train together, but '" + methods_.model + "' and '" +
                first.model + "' differ in '" + what + "'")
          .With({other, "the other is here"})
          .Fix("write the same in both");
    };
    if (!SameForm(first.sample, methods_.sample)) {
      differs("sample", methods_.sample.span, first.sample.span);
    }
    const bool same_phases = std::equal(
        first.phases.begin(), first.phases.end(), methods_.phases.begin(), methods_.phases.end(),
        [](const Phase& a, const Phase& b) {
          return a.name == b.name && a.epochs == b.epochs && a.steps == b.steps &&
                 a.eval_every == b.eval_every && a.checkpoint_every == b.checkpoint_every;
        });
    if (!same_phases) differs("phases", methods_.phases.front().span, first.phases.front().span);
    if (first.seed != methods_.seed) differs("seed", methods_.span, first.span);
  }

  void CheckPhases() {
    int64_t epochs = 0;
    int64_t steps = 0;
    for (const Phase& phase : methods_.phases) {
      if (phase.epochs > kMaxTotalEpochs || phase.steps > kMaxTotalSteps) {
        Error(Kind::kResourceBound, phase.span, "phase '" + phase.name + "' is too long")
            .Label("at most " + PrintInteger(kMaxTotalEpochs) + " epochs or " +
                   PrintInteger(kMaxTotalSteps) + " steps");
        return;
      }
      epochs += phase.epochs;
      steps += phase.steps;
    }
    if (epochs > kMaxTotalEpochs || steps > kMaxTotalSteps) {
      Error(Kind::kResourceBound, methods_.phases.back().span, "the phases together are too long")
          .Label("at most " + PrintInteger(kMaxTotalEpochs) + " epochs or " +
                 PrintInteger(kMaxTotalSteps) + " steps");
    }
    for (const Phase& phase : methods_.phases) CheckFrozen(phase);
    if (methods_.phases.empty()) {
      Error(Kind::kResourceBound, methods_.span, "there are no phases, so training has no length")
          .Fix("add 'phases [ main(epochs: 10) ]'");
    }
  }

  void CheckFrozen(const Phase& phase) {
    if (phase.frozen.empty() && phase.update.empty()) return;
    if (module_.methods.size() > 1) {
      Error(Kind::kConsistency, phase.span,
            "phase '" + phase.name + "' changes what is updated, but several models share it")
          .Fix("write 'frozen' and 'update' only where there is one model");
      return;
    }
    if (!phase.update.empty() && (EvaluationUpdate(phase.update[0]) == nullptr) !=
                                     (EvaluationUpdate(methods_.update) == nullptr)) {
      Error(Kind::kConsistency, phase.update[0].span,
            "evaluation reads a running mean in one phase and not in another")
          .With({methods_.update.span, "the method's update is here"})
          .Fix("write ema in both, or in neither");
    } else if (!phase.update.empty() && EvaluationUpdate(methods_.update) != nullptr &&
               !SameLink(*EvaluationUpdate(phase.update[0]), *EvaluationUpdate(methods_.update))) {
      Error(Kind::kConsistency, EvaluationUpdate(phase.update[0])->span,
            "one running mean goes on through all phases, but its decay differs")
          .With({EvaluationUpdate(methods_.update)->span, "the method's update is here"})
          .Fix("write the same decay in both");
    }
    const InferGraph& infer = methods_.infer;
    std::vector<std::string> learning;
    for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
      if (!infer.nodes[i].lender && !ParametersOf(infer, i).empty()) {
        learning.push_back(infer.nodes[i].name);
      }
    }
    size_t frozen = 0;
    for (const std::string& name : learning) {
      frozen += std::count(phase.frozen.begin(), phase.frozen.end(), name) > 0 ? 1 : 0;
    }
    for (const std::string& name : phase.frozen) {
      if (std::find(learning.begin(), learning.end(), name) != learning.end()) continue;
      auto& diagnostic = Error(Kind::kSafety, phase.span,
                               "there is no layer '" + name + "' with parameters to freeze");
      const std::string close = support::ClosestMatch(name, learning);
      if (!close.empty()) {
        diagnostic.Fix("replace with '" + close + "'");
      } else {
        diagnostic.Label("layers: " + support::Join(learning));
      }
      return;
    }
    if (frozen == learning.size()) {
      Error(Kind::kConsistency, phase.span,
            "phase '" + phase.name + "' freezes every layer, so nothing is trained")
          .Fix("leave a layer out of 'frozen'");
    }
  }

  const Module& module_;
  const l3::Module& spec_;
  const Methods& methods_;
  const l3::Model& model_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool Verify(const Module& module, support::Diagnostics& diagnostics) {
  const size_t before = diagnostics.all().size();
  // A file of L2 stands by itself: what holds of an L3 file holds of its declarations.
  if (!l3::Verify(module.spec, diagnostics)) return false;
  for (const Methods& methods : module.methods) {
    if (module.spec.FindModel(methods.model) == nullptr) {
      diagnostics.Error(Kind::kSafety, methods.span, "there is no model '" + methods.model + "'");
      continue;
    }
    Verifier(module, methods, diagnostics).Run();
  }
  return diagnostics.all().size() == before;
}

}  // namespace l3c::l2
