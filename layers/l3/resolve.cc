#include "layers/l3/resolve.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l3/parse.h"
#include "layers/l3/symbols.h"

namespace l3c::l3 {
namespace {

using support::Diagnostic;
using support::Kind;

// What may stand in a place, for the messages.
enum class Place {
  kInput,   // a field or an output
  kRead,    // of a term: also parameters and activations
  kTarget,  // of a goal: a loss, a term, a field or an output
};

class Resolver {
 public:
  Resolver(const Module& module, support::Diagnostics& diagnostics)
      : symbols_(module), diagnostics_(diagnostics) {}

  bool ok() const { return ok_; }
  bool IsModel(const std::string& name) const { return symbols_.FindModel(name) != nullptr; }

  void Resolve(Ref& ref, Place place) {
    if (!ref.arguments.empty()) return ResolveApplication(ref);
    if (const Data* data = symbols_.FindData(ref.owner)) return ResolveField(ref, *data);
    if (const Model* model = symbols_.FindModel(ref.owner)) return ResolveModel(ref, *model, place);
    if (const Loss* loss = symbols_.FindLoss(ref.owner)) return ResolveLoss(ref, *loss, place);
    const Span owner = {ref.span.begin, ref.span.begin + static_cast<uint32_t>(ref.owner.size())};
    Unknown(owner, "unknown name '" + ref.owner + "'", ref.owner, symbols_.Owners(),
            place == Place::kTarget ? "expected the name of a loss"
                                    : "expected the name of data or of a model",
            [&](const std::string& name) { return symbols_.SpanOf(name); });
  }

  void ResolveModelName(const std::string& name, Span span) {
    if (symbols_.FindModel(name)) return;
    Unknown(span, "unknown model '" + name + "'", name, symbols_.Owners(), "expected a model",
            [&](const std::string& known) {
              return symbols_.FindModel(known) ? symbols_.FindModel(known)->span : Span{};
            });
  }

 private:
  void ResolveApplication(Ref& ref) {
    for (Ref& argument : ref.arguments) Resolve(argument, Place::kInput);
    const Model* model = symbols_.FindModel(ref.owner);
    if (!model) {
      return ResolveModelName(
          ref.owner, {ref.span.begin, ref.span.begin + static_cast<uint32_t>(ref.owner.size())});
    }
    ref.kind = Ref::Kind::kOutput;
    if (ref.arguments.size() == model->in.size()) return;
    Error(ref.span, "model '" + model->name + "' reads " + Count(model->in.size()) + ", not " +
                        std::to_string(ref.arguments.size()))
        .With({model->span, "'" + model->name + "' is declared here"});
  }

  void ResolveField(Ref& ref, const Data& data) {
    ref.kind = Ref::Kind::kField;
    if (symbols_.FindField(data.name, ref.member)) return;
    std::vector<std::string> fields;
    for (const Field& field : data.fields) fields.push_back(field.name);
    if (ref.member.empty()) {
      Error(ref.span, "'" + data.name + "' is data; a reference names one of its fields")
          .With({data.span, "'" + data.name + "' is declared here"})
          .Fix(fields.empty() ? "" : "write '" + data.name + "." + fields[0] + "'");
      return;
    }
    Unknown(MemberSpan(ref), "unknown field '" + ref.member + "' of data '" + data.name + "'",
            ref.member, fields, "expected a field of data '" + data.name + "'",
            [&](const std::string& name) {
              const Field* field = symbols_.FindField(data.name, name);
              return field ? field->span : data.span;
            });
  }

  void ResolveModel(Ref& ref, const Model& model, Place place) {
    std::vector<std::string> members = {"out"};
    if (place == Place::kRead) members = {"out", "params", "activations"};
    if (ref.member.empty()) {
      Error(ref.span, "'" + model.name + "' is a model; a reference names its output")
          .With({model.span, "'" + model.name + "' is declared here"})
          .Fix("write '" + model.name + ".out'");
      return;
    }
    if (std::find(members.begin(), members.end(), ref.member) == members.end()) {
      Unknown(MemberSpan(ref),
              "model '" + model.name + "' has no '" + ref.member + "' to read here", ref.member,
              members,
              place == Place::kRead ? "expected out, params or activations" : "expected out",
              [](const std::string&) { return Span{}; })
          .With({model.span, "'" + model.name + "' is declared here"});
      return;
    }
    ref.kind = ref.member == "out"      ? Ref::Kind::kOutput
               : ref.member == "params" ? Ref::Kind::kParams
                                        : Ref::Kind::kActivations;
  }

  void ResolveLoss(Ref& ref, const Loss& loss, Place place) {
    if (place != Place::kTarget) {
      Error(ref.span, "a loss cannot be read: '" + PrintRef(ref) + "'")
          .Label("expected a field or a model's output")
          .With({loss.span, "'" + loss.name + "' is declared here"});
      return;
    }
    if (ref.member.empty()) {
      ref.kind = Ref::Kind::kLoss;
      return;
    }
    ref.kind = Ref::Kind::kTerm;
    if (symbols_.FindTerm(loss.name, ref.member)) return;
    std::vector<std::string> terms;
    for (const Term& term : loss.terms) terms.push_back(term.name);
    Unknown(MemberSpan(ref), "unknown term '" + ref.member + "' of loss '" + loss.name + "'",
            ref.member, terms, "expected a term of loss '" + loss.name + "'",
            [&](const std::string& name) {
              const Term* term = symbols_.FindTerm(loss.name, name);
              return term ? term->span : loss.span;
            });
  }

  static Span MemberSpan(const Ref& ref) {
    return {ref.span.end - static_cast<uint32_t>(ref.member.size()), ref.span.end};
  }

  static std::string Count(size_t inputs) {
    return std::to_string(inputs) + (inputs == 1 ? " input" : " inputs");
  }

  Diagnostic& Error(Span span, std::string message) {
    ok_ = false;
    return diagnostics_.Error(Kind::kSafety, span, std::move(message));
  }

  // `place_of` tells where a candidate is declared; it may be unknown.
  template <class PlaceOf>
  Diagnostic& Unknown(Span span, std::string message, const std::string& name,
                      const std::vector<std::string>& candidates, std::string label,
                      const PlaceOf& place_of) {
    ok_ = false;
    // Once of a name, however often it is used and for what.
    for (const Diagnostic& before : diagnostics_.all()) {
      const bool same = before.message == message || (before.message.starts_with("unknown ") &&
                                                      message.ends_with("'" + name + "'") &&
                                                      before.message.ends_with("'" + name + "'"));
      if (same) return unsaid_ = {};
    }
    Diagnostic& error = Error(span, std::move(message)).Label(std::move(label));
    const std::string closest = support::ClosestMatch(name, candidates);
    if (!closest.empty()) {
      const Span place = place_of(closest);
      if (place.known()) error.With({place, "'" + closest + "' is declared here"});
      return error.Fix("replace with '" + closest + "'");
    }
    constexpr size_t kMaxNotes = 3;
    size_t notes = 0;
    for (const std::string& candidate : candidates) {
      const Span place = place_of(candidate);
      if (!place.known()) continue;
      if (++notes > kMaxNotes) break;
      error.With({place, "'" + candidate + "' is declared here"});
    }
    return error;
  }

  const Symbols symbols_;
  Diagnostic unsaid_;
  support::Diagnostics& diagnostics_;
  bool ok_ = true;
};

// "classify.out" of an expression as a reference.
Ref ReferenceOf(const Expr& expr) {
  Ref ref;
  const size_t dot = expr.name.find('.');
  ref.owner = expr.name.substr(0, dot);
  if (dot != std::string::npos) ref.member = expr.name.substr(dot + 1);
  ref.span = expr.span;
  return ref;
}

// `judge(generate.out)` in an expression is a model applied, not a function: the call as a
// reference. Nothing when an argument is no reference.
std::optional<Ref> ApplicationOf(const Expr& expr) {
  if (expr.kind == Expr::Kind::kReference) return ReferenceOf(expr);
  if (expr.kind != Expr::Kind::kCall) return std::nullopt;
  Ref ref;
  ref.owner = expr.name;
  ref.member = "out";
  ref.span = expr.span;
  for (const Expr& arg : expr.args) {
    auto argument = ApplicationOf(arg);
    if (!argument) return std::nullopt;
    ref.arguments.push_back(*std::move(argument));
  }
  return ref;
}

// Replaces models that are applied by references, printed as they are written.
void FindApplications(Expr& expr, const Resolver& resolver, std::map<std::string, Ref>& found) {
  if (expr.kind == Expr::Kind::kCall && resolver.IsModel(expr.name) && !expr.args.empty()) {
    if (auto ref = ApplicationOf(expr)) {
      expr.kind = Expr::Kind::kReference;
      expr.name = PrintRef(*ref);
      expr.args.clear();
      expr.labels.clear();
      expr.height = 1;
      found.emplace(expr.name, *std::move(ref));
      return;
    }
  }
  for (Expr& arg : expr.args) FindApplications(arg, resolver, found);
}

void ResolveTerm(Term& term, Resolver& resolver, support::Diagnostics& diagnostics) {
  for (Ref& ref : term.reads) resolver.Resolve(ref, Place::kRead);
  if (!term.value || !resolver.ok()) return;
  std::map<std::string, Ref> applications;
  FindApplications(*term.value, resolver, applications);
  std::set<std::string> known;
  for (const Ref& ref : term.reads) known.insert(PrintRef(ref));
  ForEachReference(*term.value, [&](const Expr& expr) {
    if (known.count(expr.name) > 0) return;
    const auto applied = applications.find(expr.name);
    Ref ref = applied == applications.end() ? ReferenceOf(expr) : applied->second;
    resolver.Resolve(ref, Place::kRead);
    // A constraint reads what it mentions; a custom loss mentions only what it reads.
    if (!resolver.ok()) return;
    if (term.kind == LossKind::kConstraint) {
      known.insert(expr.name);
      term.reads.push_back(std::move(ref));
    } else {
      diagnostics
          .Error(Kind::kSafety, expr.span,
                 "custom loss '" + term.custom_name + "' mentions '" + expr.name +
                     "', which is not among its reads")
          .Fix("add it to reads: […]");
    }
  });
}

void ResolveGoal(Goal& goal, Resolver& resolver) {
  for (Ref& target : goal.targets) resolver.Resolve(target, Place::kTarget);
  for (size_t i = 0; i < goal.models.size(); ++i) {
    resolver.ResolveModelName(goal.models[i], goal.model_spans[i]);
  }
  for (Goal& turn : goal.turns) ResolveGoal(turn, resolver);
}

}  // namespace

bool ResolveReferences(Module& module, support::Diagnostics& diagnostics) {
  const size_t before = diagnostics.all().size();
  Resolver resolver(module, diagnostics);
  for (Model& model : module.models) {
    for (Ref& ref : model.in) resolver.Resolve(ref, Place::kInput);
  }
  for (Loss& loss : module.losses) {
    for (Term& term : loss.terms) ResolveTerm(term, resolver, diagnostics);
  }
  ResolveGoal(module.goal, resolver);
  return diagnostics.all().size() == before;
}

}  // namespace l3c::l3
