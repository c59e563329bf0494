#include "layers/l2/inputs.h"

#include <algorithm>

#include "layers/l3/domain.h"

namespace l3c::l2 {

tensor::Shape InputShape(const l3::Module& spec, const l3::Model& model) {
  if (model.in.size() == 1) {
    const l3::Domain& domain = *spec.DomainOf(model.in[0]);
    tensor::Shape shape = l3::ExampleShape(domain);
    // Numbers in sequence have one channel; whole numbers are indices, which have none.
    const bool numbers = domain.kind == l3::Domain::Kind::kSequence && shape.size() == 1 &&
                         tensor::IsFloat(l3::ExampleDType(domain));
    if (numbers) shape.push_back(1);
    return shape;
  }
  int64_t elements = 0;
  int64_t length = -1;
  for (const l3::Ref& ref : model.in) {
    const l3::Domain& domain = *spec.DomainOf(ref);
    elements += l3::NumElements(domain);
    const int64_t own = domain.kind == l3::Domain::Kind::kSequence ? domain.size : 0;
    length = length < 0 || length == own ? own : 0;
  }
  if (length > 0) return {length, elements / length};
  return {elements};
}

int64_t ClassesOf(const l3::Domain& domain) {
  if (domain.kind == l3::Domain::Kind::kDist) return domain.size;
  return domain.kind == l3::Domain::Kind::kSequence ? ClassesOf(domain.parts[0]) : 0;
}

namespace {

// Calls `field` and `model` for each that `ref` is computed from. A model's inputs are walked once
// (applications bring their own), so that long chains stay linear.
template <class OnField, class OnModel>
void Walk(const l3::Module& spec, const l3::Ref& start, OnField field, OnModel model) {
  std::vector<const l3::Ref*> open = {&start};
  std::set<const l3::Model*> seen;
  auto terms_of = [&](const l3::Loss& loss, const std::string& only) {
    for (const l3::Term& term : loss.terms) {
      if (!only.empty() && term.name != only) continue;
      for (const l3::Ref& read : term.reads) open.push_back(&read);
    }
  };
  while (!open.empty()) {
    const l3::Ref& ref = *open.back();
    open.pop_back();
    switch (ref.kind) {
      case l3::Ref::Kind::kField:
        field(ref);
        break;
      case l3::Ref::Kind::kOutput:
      case l3::Ref::Kind::kActivations:
      case l3::Ref::Kind::kParams: {
        const l3::Model* owner = spec.FindModel(ref.owner);
        model(*owner);
        if (ref.kind == l3::Ref::Kind::kParams) break;
        if (!ref.arguments.empty()) {
          for (const l3::Ref& argument : ref.arguments) open.push_back(&argument);
        } else if (seen.insert(owner).second) {
          for (const l3::Ref& in : owner->in) open.push_back(&in);
        }
        break;
      }
      case l3::Ref::Kind::kLoss:
      case l3::Ref::Kind::kTerm:
        terms_of(*spec.FindLoss(ref.owner), ref.kind == l3::Ref::Kind::kTerm ? ref.member : "");
        break;
      case l3::Ref::Kind::kUnresolved:
        break;
    }
  }
}

}  // namespace

void AddModels(const l3::Module& spec, const l3::Ref& ref, std::set<std::string>& models) {
  Walk(spec, ref, [](const l3::Ref&) {}, [&](const l3::Model& m) { models.insert(m.name); });
}

void AddFields(const l3::Module& spec, const l3::Ref& ref, std::vector<l3::Ref>& fields) {
  Walk(
      spec, ref,
      [&](const l3::Ref& field) {
        const bool known = std::any_of(fields.begin(), fields.end(),
                                       [&](const l3::Ref& f) { return l3::SameRef(f, field); });
        if (!known) fields.push_back(field);
      },
      [](const l3::Model&) {});
}

int64_t ClassesOfField(const l3::Module& spec, const l3::Data& data, const l3::Field& field) {
  if (const int64_t declared = ClassesOf(field.domain); declared > 0) return declared;
  for (const l3::Loss& loss : spec.losses) {
    for (const l3::Term& term : loss.terms) {
      if (term.kind != l3::LossKind::kDivergence || term.reads.size() != 2) continue;
      const l3::Ref& target = term.reads[1];
      if (target.kind != l3::Ref::Kind::kField || target.owner != data.name ||
          target.member != field.name) {
        continue;
      }
      const l3::Domain* predicted = spec.DomainOf(term.reads[0]);
      if (predicted != nullptr && ClassesOf(*predicted) > 0) return ClassesOf(*predicted);
    }
  }
  return 0;
}

}  // namespace l3c::l2
