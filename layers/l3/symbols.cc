#include "layers/l3/symbols.h"

namespace l3c::l3 {

Symbols::Symbols(const Module& module) {
  for (const Data& data : module.data) {
    data_.emplace(data.name, &data);
    for (const Field& field : data.fields) fields_.emplace(Member(data.name, field.name), &field);
  }
  for (const Model& model : module.models) models_.emplace(model.name, &model);
  for (const Loss& loss : module.losses) {
    losses_.emplace(loss.name, &loss);
    for (const Term& term : loss.terms) terms_.emplace(Member(loss.name, term.name), &term);
  }
}

const Field* Symbols::FindField(std::string_view data, std::string_view field) const {
  const auto found = fields_.find({data, field});
  return found == fields_.end() ? nullptr : found->second;
}

const Term* Symbols::FindTerm(std::string_view loss, std::string_view term) const {
  const auto found = terms_.find({loss, term});
  return found == terms_.end() ? nullptr : found->second;
}

const Domain* Symbols::DomainOf(const Ref& ref) const {
  if (ref.kind == Ref::Kind::kField) {
    const Field* field = FindField(ref.owner, ref.member);
    return field ? &field->domain : nullptr;
  }
  if (ref.kind == Ref::Kind::kOutput) {
    const Model* model = FindModel(ref.owner);
    return model ? &model->out : nullptr;
  }
  return nullptr;
}

Span Symbols::SpanOf(std::string_view name) const {
  if (const Data* data = FindData(name)) return data->span;
  if (const Model* model = FindModel(name)) return model->span;
  if (const Loss* loss = FindLoss(name)) return loss->span;
  return {};
}

std::vector<std::string> Symbols::Owners() const {
  std::vector<std::string> names;
  for (const auto& [name, data] : data_) names.emplace_back(name);
  for (const auto& [name, model] : models_) names.emplace_back(name);
  for (const auto& [name, loss] : losses_) names.emplace_back(name);
  return names;
}

}  // namespace l3c::l3
