// Loss signature (safety) and domain compatibility (consistency).
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "layers/l3/checks.h"

namespace l3c::l3 {
namespace {

using Kinds = std::vector<Ref::Kind>;

bool DependsOnModel(const Ref& ref) { return ref.kind != Ref::Kind::kField; }

bool IsOneOf(const Ref& ref, const Kinds& kinds) {
  return std::find(kinds.begin(), kinds.end(), ref.kind) != kinds.end();
}

std::string KindPhrase(Ref::Kind kind) {
  switch (kind) {
    case Ref::Kind::kField:
      return "a field of data";
    case Ref::Kind::kOutput:
      return "a model's output";
    case Ref::Kind::kActivations:
      return "a model's activations";
    case Ref::Kind::kParams:
      return "a model's parameters";
    case Ref::Kind::kLoss:
      return "a loss";
    case Ref::Kind::kTerm:
      return "a term of a loss";
    case Ref::Kind::kUnresolved:
      break;
  }
  return "nothing";
}

void Want(const Term& term, size_t read, const char* role, const Kinds& kinds, Reporter& report) {
  const Ref& ref = term.reads[read];
  if (IsOneOf(ref, kinds)) return;
  std::string wanted;
  for (size_t i = 0; i < kinds.size(); ++i) {
    wanted += (i == 0 ? "" : i + 1 == kinds.size() ? " or " : ", ") + KindPhrase(kinds[i]);
  }
  report
      .Error(ref.span, "the " + std::string(role) + " of a " +
                           std::string(LossKindName(term.kind)) + " cannot be " +
                           KindPhrase(ref.kind))
      .Label("expected " + wanted);
}

constexpr Ref::Kind kField = Ref::Kind::kField;
constexpr Ref::Kind kOutput = Ref::Kind::kOutput;
constexpr Ref::Kind kActivations = Ref::Kind::kActivations;
constexpr Ref::Kind kParams = Ref::Kind::kParams;

size_t Arity(LossKind kind) {
  switch (kind) {
    case LossKind::kDivergence:
    case LossKind::kReconstruction:
      return 2;
    case LossKind::kContrastive:
      return 3;
    case LossKind::kNorm:
      return 1;
    case LossKind::kConstraint:
    case LossKind::kCustom:
      return 0;  // as many as it likes
  }
  return 0;
}

void CheckSignature(const Term& term, Reporter& report) {
  const size_t arity = Arity(term.kind);
  if (arity != 0 && term.reads.size() != arity) {
    report.Error(term.kind_span, std::string(LossKindName(term.kind)) + " reads " +
                                     std::to_string(arity) + " references, not " +
                                     std::to_string(term.reads.size()));
    return;
  }
  switch (term.kind) {
    case LossKind::kDivergence:
      Want(term, 0, "prediction", {kOutput}, report);
      Want(term, 1, "target", {kField, kOutput}, report);
      return;
    case LossKind::kReconstruction:
      Want(term, 0, "input", {kField, kOutput}, report);
      Want(term, 1, "decoded value", {kOutput}, report);
      return;
    case LossKind::kContrastive:
      Want(term, 0, "anchor", {kOutput}, report);
      Want(term, 1, "positive", {kOutput, kField}, report);
      Want(term, 2, "negative", {kOutput, kField}, report);
      return;
    case LossKind::kNorm:
      Want(term, 0, "target", {kParams, kActivations, kOutput}, report);
      return;
    case LossKind::kConstraint:
    case LossKind::kCustom:
      if (std::none_of(term.reads.begin(), term.reads.end(), DependsOnModel)) {
        report
            .Error(term.kind_span, "term '" + term.name + "' reads nothing that depends on a model")
            .Label("expected a model's output, parameters or activations among what it reads");
      }
      if (term.kind == LossKind::kConstraint && term.value && !IsPredicate(*term.value)) {
        report.Error(term.value->span, "a constraint is a comparison, not a number")
            .Fix("compare it with a bound, such as '… <= 1.0'");
      }
      if (term.kind == LossKind::kCustom && term.value && IsPredicate(*term.value)) {
        report.Error(term.value->span, "a custom loss is a number, not a comparison")
            .Fix("write the comparison as a constraint(…)");
      }
      return;
  }
}

// ---- Domains ----------------------------------------------------------------------------------

bool IsFloatDomain(const Domain& domain) { return tensor::IsFloat(ExampleDType(domain)); }

// Largest class that a label of this dtype can name.
int64_t LargestLabel(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::kBool:
      return 1;
    case tensor::DType::kU8:
      return 255;
    default:
      return kMaxDomainElements;
  }
}

// Why `target` cannot be what `predicted` is compared with; "" if it can.
std::string Mismatch(const Domain& predicted, const Domain& target) {
  if (predicted.kind == Domain::Kind::kSequence) {
    if (target.kind == Domain::Kind::kSequence) {
      if (predicted.size != target.size) {
        return "sequences of up to " + std::to_string(predicted.size) + " and of up to " +
               std::to_string(target.size) + " elements";
      }
      return Mismatch(predicted.parts[0], target.parts[0]);
    }
    // One label a position, written as a tensor.
    if (target.kind == Domain::Kind::kTensor && target.shape == tensor::Shape{predicted.size}) {
      return Mismatch(predicted.parts[0], Domain::Scalar(target.dtype));
    }
    return "a sequence is compared with a sequence";
  }
  if (predicted.kind == Domain::Kind::kDist) {
    if (target.kind == Domain::Kind::kDist) {
      if (predicted.size == target.size) return "";
      return std::to_string(predicted.size) + " classes and " + std::to_string(target.size);
    }
    const bool single =
        (target.kind == Domain::Kind::kTensor || target.kind == Domain::Kind::kScalar) &&
        NumElements(target) == 1;
    if (single && IsFloatDomain(target) && predicted.size != 1) {
      return "a label is a whole number, such as u8, not " +
             std::string(tensor::DTypeName(target.dtype));
    }
    if (single) {
      if (predicted.size - 1 <= LargestLabel(target.dtype)) return "";
      return "a label of type " + std::string(tensor::DTypeName(target.dtype)) + " names 0 … " +
             std::to_string(LargestLabel(target.dtype)) + ", too few for " +
             std::to_string(predicted.size) + " classes";
    }
    if (IsFloatDomain(target) && ExampleShape(target) == tensor::Shape{predicted.size}) return "";
    return "a distribution is compared with one label, or with " + std::to_string(predicted.size) +
           " probabilities";
  }
  if (target.kind == Domain::Kind::kSequence) return "a sequence is compared with a sequence";
  if (NumElements(predicted) == 1 && NumElements(target) == 1) return "";
  if (ExampleShape(predicted) != ExampleShape(target)) {
    return "shapes " + tensor::ShapeToString(ExampleShape(predicted)) + " and " +
           tensor::ShapeToString(ExampleShape(target));
  }
  return "";
}

class DomainChecker {
 public:
  DomainChecker(const Symbols& symbols, Reporter& report) : symbols_(symbols), report_(report) {}

  // Every application in the reference: argument against the input it replaces.
  void CheckApplications(const Ref& ref) {
    for (const Ref& argument : ref.arguments) CheckApplications(argument);
    if (ref.arguments.empty()) return;
    const Model* model = symbols_.FindModel(ref.owner);
    if (ref.arguments.size() != model->in.size()) {
      report_.Error(ref.span, "model '" + ref.owner + "' reads " +
                                  std::to_string(model->in.size()) + " inputs, not " +
                                  std::to_string(ref.arguments.size()));
      return;
    }
    for (size_t i = 0; i < ref.arguments.size(); ++i) {
      const Domain& argument = *symbols_.DomainOf(ref.arguments[i]);
      const Domain& input = *symbols_.DomainOf(model->in[i]);
      const bool fits = argument == input || (ExampleShape(argument) == ExampleShape(input) &&
                                              ExampleDType(argument) == ExampleDType(input) &&
                                              argument.kind != Domain::Kind::kSequence &&
                                              input.kind != Domain::Kind::kSequence);
      if (fits) continue;
      report_
          .Error(ref.arguments[i].span, "'" + PrintRef(ref.arguments[i]) + "' is " +
                                            PrintDomain(argument) + ", but model '" + ref.owner +
                                            "' reads " + PrintDomain(input))
          .With({model->span, "'" + ref.owner + "' is declared here"});
    }
  }

  void CheckTerm(const Term& term) {
    for (const Ref& ref : term.reads) CheckApplications(ref);
    switch (term.kind) {
      case LossKind::kDivergence:
        return Compare(term, 0, 1);
      case LossKind::kReconstruction:
        return Compare(term, 1, 0);
      case LossKind::kContrastive:
        Compare(term, 0, 1);
        return Compare(term, 0, 2);
      case LossKind::kNorm:
        if (term.p <= 0) {
          report_.Error(term.kind_span, "the exponent p of a norm is positive");
        }
        return;
      case LossKind::kConstraint:
      case LossKind::kCustom:
        return;
    }
  }

 private:
  void Compare(const Term& term, size_t predicted, size_t target) {
    if (term.reads.size() <= std::max(predicted, target)) return;
    const Ref& a = term.reads[predicted];
    const Ref& b = term.reads[target];
    const Domain* left = symbols_.DomainOf(a);
    const Domain* right = symbols_.DomainOf(b);
    if (!left || !right) return;  // the signature check has said so
    const std::string reason = Mismatch(*left, *right);
    if (reason.empty()) return;
    report_
        .Error(term.kind_span, std::string(LossKindName(term.kind)) + " of '" + PrintRef(a) +
                                   "' and '" + PrintRef(b) +
                                   "', whose domains do not match: " + reason)
        .With({PlaceOf(a), "'" + PrintRef(a) + "' is " + PrintDomain(*left)})
        .With({PlaceOf(b), "'" + PrintRef(b) + "' is " + PrintDomain(*right)});
  }

  Span PlaceOf(const Ref& ref) const {
    if (ref.kind == Ref::Kind::kField)
      return symbols_.FindField(ref.owner, ref.member)->domain_span;
    return symbols_.FindModel(ref.owner)->out_span;
  }

  const Symbols& symbols_;
  Reporter& report_;
};

void CheckGoalTargets(const Goal& goal, const Symbols& symbols, Reporter& report) {
  for (const Ref& target : goal.targets) {
    const Domain* domain = symbols.DomainOf(target);
    if (!domain || NumElements(*domain) == 1) continue;
    report
        .Error(target.span,
               "a goal is one number, but '" + PrintRef(target) + "' is " + PrintDomain(*domain))
        .Label("expected a loss or a scalar");
  }
  for (const Goal& turn : goal.turns) CheckGoalTargets(turn, symbols, report);
}

}  // namespace

void CheckLossSignatures(const Module& module, const Symbols&, Reporter& report) {
  for (const Loss& loss : module.losses) {
    for (const Term& term : loss.terms) CheckSignature(term, report);
  }
}

void CheckDomains(const Module& module, const Symbols& symbols, Reporter& report) {
  DomainChecker checker(symbols, report);
  for (const Model& model : module.models) {
    for (const Ref& ref : model.in) checker.CheckApplications(ref);
  }
  for (const Loss& loss : module.losses) {
    for (const Term& term : loss.terms) checker.CheckTerm(term);
  }
  CheckGoalTargets(module.goal, symbols, report);
}

}  // namespace l3c::l3
