#include "layers/l2/stage.h"

#include <algorithm>
#include <string>

#include "layers/l2/form.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
namespace {

constexpr int64_t kKernel = 3;

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
  constexpr std::string_view kNames[] = {"dense", "pointwise", "attention",
                                         "line",  "halving",   "plane"};
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
      return {1, 1, width};
    case StageKind::kAttention:
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

std::vector<Form> StageForms(StageKind kind, const Extent& in, int64_t width,
                             const std::optional<Form>& norm, const std::optional<Form>& activation,
                             bool causal) {
  std::vector<Form> forms;
  if (kind == StageKind::kAttention) {
    if (norm) forms.push_back(*norm);
    forms.push_back(Layer("attn", {{"heads", HeadsOf(width)}, {"dim", width}, {"causal", causal}}));
    return forms;
  }
  switch (kind) {
    case StageKind::kDense:
      forms.push_back(Linear(in.elements(), width));
      break;
    case StageKind::kPointwise:
      forms.push_back(Linear(in.channels, width));
      break;
    default:
      forms.push_back(Layer("conv", {{"in_ch", in.channels},
                                     {"out_ch", width},
                                     {"kernel", kKernel},
                                     {"padding", kKernel / 2}}));
  }
  if (norm) forms.push_back(*norm);
  if (activation) forms.push_back(*activation);
  if (kind == StageKind::kHalving) {
    forms.push_back(Layer("pool", {{"kind", std::string("max")}, {"kernel", int64_t{2}}}));
  }
  return forms;
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
