#include "layers/l3/ir.h"

#include <algorithm>

#include "layers/support/printer.h"

namespace l3c::l3 {
namespace {

template <class T>
const T* FindNamed(const std::vector<T>& items, std::string_view name) {
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const T& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

bool SameRef(const Ref& a, const Ref& b) {
  return a.kind == b.kind && a.owner == b.owner && a.member == b.member &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(),
                    SameRef);
}

std::string PrintRef(const Ref& ref) {
  if (!ref.arguments.empty()) {
    std::vector<std::string> arguments;
    for (const Ref& argument : ref.arguments) arguments.push_back(PrintRef(argument));
    return ref.owner + "(" + support::Join(arguments) + ")";
  }
  return ref.member.empty() ? ref.owner : ref.owner + "." + ref.member;
}

std::string_view PropertyName(Property::Kind kind) {
  switch (kind) {
    case Property::Kind::kDepth:
      return "depth";
    case Property::Kind::kWidth:
      return "width";
    case Property::Kind::kCausal:
      return "causal";
    case Property::Kind::kAutoregressive:
      return "autoregressive";
    case Property::Kind::kEquivariant:
      return "equivariant";
    case Property::Kind::kParamBudget:
      return "param_budget";
    case Property::Kind::kLatencyBudget:
      return "latency_budget";
  }
  return "";
}

std::string_view LossKindName(LossKind kind) {
  switch (kind) {
    case LossKind::kDivergence:
      return "divergence";
    case LossKind::kNorm:
      return "norm";
    case LossKind::kConstraint:
      return "constraint";
    case LossKind::kReconstruction:
      return "reconstruction";
    case LossKind::kContrastive:
      return "contrastive";
    case LossKind::kCustom:
      return "custom";
  }
  return "";
}

const Field* Data::FindField(std::string_view field) const { return FindNamed(fields, field); }
const Term* Loss::FindTerm(std::string_view term) const { return FindNamed(terms, term); }

const Property* Model::FindProperty(Property::Kind kind) const {
  const auto found = std::find_if(properties.begin(), properties.end(),
                                  [&](const Property& p) { return p.kind == kind; });
  return found == properties.end() ? nullptr : &*found;
}

std::optional<int64_t> Model::Count(Property::Kind kind) const {
  const Property* property = FindProperty(kind);
  return property ? std::optional(property->count) : std::nullopt;
}

std::optional<double> Model::latency_budget() const {
  const Property* property = FindProperty(Property::Kind::kLatencyBudget);
  return property ? std::optional(property->seconds) : std::nullopt;
}

const Data* Module::FindData(std::string_view name) const { return FindNamed(data, name); }
const Model* Module::FindModel(std::string_view name) const { return FindNamed(models, name); }
const Loss* Module::FindLoss(std::string_view name) const { return FindNamed(losses, name); }

const Domain* Module::DomainOf(const Ref& ref) const {
  if (ref.kind == Ref::Kind::kField) {
    const Data* owner = FindData(ref.owner);
    const Field* field = owner ? owner->FindField(ref.member) : nullptr;
    return field ? &field->domain : nullptr;
  }
  if (ref.kind == Ref::Kind::kOutput) {
    const Model* model = FindModel(ref.owner);
    return model ? &model->out : nullptr;
  }
  return nullptr;
}

}  // namespace l3c::l3
