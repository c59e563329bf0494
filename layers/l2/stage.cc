#include "layers/l2/stage.h"

#include <algorithm>
#include <string>

#include "layers/l2/form.h"
#include "layers/l2/infer_methods.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
namespace {

constexpr int64_t kKernel = 3;
constexpr int64_t kExperts = 4;

Form Layer(std::string_view name, std::vector<std::pair<std::string, Value>> args) {
  return MakeForm(FindLayer(name)->form, std::move(args));
}

Form Linear(int64_t in, int64_t out) { return Layer("linear", {{"in", in}, {"out", out}}); }

// A head has at least 16 numbers, and there are at most 8.
int64_t HeadsOf(int64_t width) {
  int64_t heads = 1;
  while (heads < 8 && width / (2 * heads) >= 16 && width % (2 * heads) == 0) heads *= 2;
  return heads;
}

}  // namespace

std::string_view StageKindName(StageKind kind) {
  constexpr std::string_view kNames[] = {"dense", "pointwise", "attention", "line",    "halving",
                                         "plane", "recurrent", "mixture",   "residual"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view ReadoutName(Readout readout) {
  constexpr std::string_view kNames[] = {"flat", "mean", "each", "unfold"};
  return kNames[static_cast<size_t>(readout)];
}

Shape Extent::shape() const {
  if (rows == 1 && columns == 1) return {channels};
  if (columns == 1) return {rows, channels};
  return {rows, columns, channels};
}

Extent After(StageKind kind, const Extent& in, int64_t width) {
  switch (kind) {
    case StageKind::kDense:
    case StageKind::kRecurrent:
    case StageKind::kMixture:
      return {1, 1, width};
    case StageKind::kAttention:
    case StageKind::kResidual:
      return in;
    case StageKind::kHalving:
      return {in.rows / 2, in.columns / 2, width};
    case StageKind::kPointwise:
    case StageKind::kLine:
    case StageKind::kPlane:
      return {in.rows, in.columns, width};
  }
  return in;
}

InferForm LayerItem(Form layer) {
  InferForm item;
  item.written.push_back(std::move(layer));
  return item;
}

InferForm Sequential(std::vector<InferForm> items) {
  InferForm chain;
  chain.kind = InferForm::Kind::kSequential;
  chain.items = std::move(items);
  return chain;
}

InferForm Sequential(const std::vector<Form>& layers) {
  std::vector<InferForm> items;
  for (const Form& layer : layers) items.push_back(LayerItem(layer));
  return Sequential(std::move(items));
}

namespace {

InferForm Residual(InferForm block) {
  InferForm residual;
  residual.kind = InferForm::Kind::kResidual;
  residual.items.push_back(std::move(block));
  return residual;
}

InferForm Call(std::string_view method, std::vector<std::pair<std::string, Value>> args,
               std::vector<InferForm> networks) {
  InferForm call;
  call.kind = InferForm::Kind::kCall;
  call.written.push_back(MakeForm(FindInferMethod(method)->form, std::move(args)));
  call.items = std::move(networks);
  return call;
}

// The layers of a dense stage.
std::vector<Form> Dense(int64_t in, int64_t width, const std::optional<Form>& norm,
                        const std::optional<Form>& activation) {
  std::vector<Form> layers = {Linear(in, width)};
  if (norm) layers.push_back(*norm);
  if (activation) layers.push_back(*activation);
  return layers;
}

}  // namespace

InferForm Symmetric(InferForm network, const std::string& group, int64_t axis) {
  return Call("symmetric", {{"group", group}, {"axis", axis}}, {std::move(network)});
}

std::vector<InferForm> StageItems(StageKind kind, const Extent& in, int64_t width,
                                  const std::optional<Form>& norm,
                                  const std::optional<Form>& activation, bool causal) {
  std::vector<Form> layers;
  switch (kind) {
    case StageKind::kDense:
      layers = Dense(in.elements(), width, norm, activation);
      break;
    case StageKind::kPointwise:
      layers = Dense(in.channels, width, norm, activation);
      break;
    case StageKind::kAttention:
      if (norm) layers.push_back(*norm);
      layers.push_back(
          Layer("attn", {{"heads", HeadsOf(width)}, {"dim", width}, {"causal", causal}}));
      return {Residual(Sequential(layers))};
    case StageKind::kResidual:
      if (norm) layers.push_back(*norm);
      layers.push_back(Linear(width, width));
      if (activation) layers.push_back(*activation);
      return {Residual(Sequential(layers))};
    case StageKind::kRecurrent:
      return {Call("recurrent", {{"steps", in.rows}},
                   {Sequential(Dense(in.channels + width, width, norm, Layer("tanh", {})))})};
    case StageKind::kMixture: {
      std::vector<InferForm> networks;
      for (int64_t e = 0; e < kExperts; ++e) {
        networks.push_back(Sequential(Dense(in.elements(), width, norm, activation)));
      }
      networks.push_back(Sequential({Linear(in.elements(), kExperts), Layer("softmax", {})}));
      return {Call("mixture", {}, std::move(networks))};
    }
    case StageKind::kLine:
    case StageKind::kHalving:
    case StageKind::kPlane:
      layers.push_back(Layer("conv", {{"in_ch", in.channels},
                                      {"out_ch", width},
                                      {"kernel", kKernel},
                                      {"padding", kKernel / 2}}));
      if (norm) layers.push_back(*norm);
      if (activation) layers.push_back(*activation);
      if (kind == StageKind::kHalving) {
        layers.push_back(Layer("pool", {{"kind", std::string("max")}, {"kernel", int64_t{2}}}));
      }
      break;
  }
  return Sequential(layers).items;
}

std::vector<Form> ReadoutForms(Readout readout, const Extent& in, int64_t outputs,
                               int64_t out_rows) {
  switch (readout) {
    case Readout::kFlat:
      return {Linear(in.elements(), outputs)};
    case Readout::kMean:
      return {Layer("pool", {{"kind", std::string("avg")}, {"kernel", in.rows}}),
              Linear(in.channels, outputs)};
    case Readout::kEach:
      return {Linear(in.channels, outputs / out_rows)};
    case Readout::kUnfold:
      return {Linear(in.elements(), outputs), Layer("positions", {{"n", out_rows}})};
  }
  return {};
}

std::vector<Form> EmbedForms(int64_t vocabulary, int64_t length, int64_t width, bool positions) {
  std::vector<Form> forms = {Layer("embed", {{"vocab", vocabulary}, {"dim", width}})};
  if (positions) {
    forms.push_back(Layer("position", {{"kind", std::string("learned")}, {"n", length}}));
  }
  return forms;
}

}  // namespace l3c::l2
