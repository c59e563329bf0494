#include "layers/l2/infer_methods.h"

#include <map>
#include <utility>

#include "layers/l2/layers.h"
#include "layers/l2/registry.h"
#include "layers/support/printer.h"

namespace l3c::l2 {
namespace {

const Registry<InferEntry>& Table() {
  static const Registry<InferEntry> table(Family::kInfer, {{RecurrentMethod()},
                                                           {MixtureMethod()},
                                                           {GraphMethod()},
                                                           {DiffusionMethod()},
                                                           {SymmetricMethod()}});
  return table;
}

}  // namespace

const std::deque<InferEntry>& AllInferMethods() { return Table().all(); }
const InferEntry* FindInferMethod(std::string_view name) { return Table().Find(name); }

uint32_t InferLowering::Join(std::string_view name, std::vector<std::pair<std::string, Value>> args,
                             std::vector<uint32_t> inputs, Span span) {
  Form form = MakeForm(FindLayer(name)->form, std::move(args));
  form.span = span;
  return builder_.Add(std::move(form), std::move(inputs));
}

uint32_t InferLowering::Repeat(uint32_t first, uint32_t end, uint32_t output, uint32_t input,
                               uint32_t replaced) {
  std::map<uint32_t, uint32_t> copies = {{input, replaced}};
  for (uint32_t id = first; id < end; ++id) {
    const LayerNode node = builder_.node(id);
    std::vector<uint32_t> inputs;
    for (uint32_t operand : node.inputs) {
      const auto copy = copies.find(operand);
      inputs.push_back(copy == copies.end() ? operand : copy->second);
    }
    const bool learns = node.lender || EntryOf(node).parameters != nullptr;
    const uint32_t lender = node.lender.value_or(id);
    copies[id] =
        builder_.Add(node.form, std::move(inputs), learns ? std::optional(lender) : std::nullopt);
  }
  const auto copy = copies.find(output);
  return copy == copies.end() ? output : copy->second;
}

std::optional<uint32_t> InferLowering::Lower(InferForm& form, uint32_t input) {
  switch (form.kind) {
    case InferForm::Kind::kLayer:
      return LowerLayer(form, input);
    case InferForm::Kind::kCall:
      return FindInferMethod(form.written[0].name)->lower(*this, form, input);
    case InferForm::Kind::kSequential:
    case InferForm::Kind::kResidual:
      break;
  }
  uint32_t at = input;
  for (InferForm& item : form.items) {
    const auto end = Lower(item, at);
    if (!end) return std::nullopt;
    at = form.kind == InferForm::Kind::kSequential ? *end : Join("add", {}, {at, *end}, item.span);
  }
  return at;
}

// Layers that name another one borrow its parameters.
std::optional<uint32_t> InferLowering::LowerLayer(InferForm& form, uint32_t input) {
  Form layer = form.written[0];
  const bool shared = layer.name == kShared;
  if (!shared && !FindLayer(layer.name)->borrowed_shape) {
    form.written.clear();
    form.node = builder_.Add(std::move(layer), {input});
    return form.node;
  }
  auto lender = builder_.Find(layer.Word(0));
  if (!lender) {
    std::vector<std::string> names;
    for (uint32_t i = 1; i < builder_.size(); ++i) {
      const LayerNode& node = builder_.node(i);
      if (!node.lender && EntryOf(node).parameters) names.push_back(node.name);
    }
    auto& diagnostic =
        diagnostics_.Error(support::Kind::kSafety, layer.span,
                           "there is no layer '" + layer.Word(0) + "' before this one");
    if (!names.empty()) diagnostic.Label("so far: " + support::Join(names));
    return std::nullopt;
  }
  if (builder_.node(*lender).lender) lender = builder_.node(*lender).lender;
  if (shared) {
    const Span span = layer.span;
    layer = builder_.node(*lender).form;
    layer.span = span;
  } else {
    form.written.clear();
  }
  form.node = builder_.Add(std::move(layer), {input}, lender);
  return form.node;
}

}  // namespace l3c::l2
