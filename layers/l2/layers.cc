#include "layers/l2/layers.h"

#include <utility>

#include "layers/l2/registry.h"

namespace l3c::l2 {
namespace {

// A new layer is a line here and a file of its own.
Registry<LayerEntry>& Table() {
  static Registry<LayerEntry> table(
      Family::kLayer,
      {LinearLayers(), ConvLayers(), AttentionLayers(), NormLayers(), ActivationLayers(),
       EmbedLayers(), PositionsLayers(), PoolLayers(), DropoutLayers(), SoftmaxLayers(),
       TiedLayers(), SymmetricLayers(), JoinLayers()});
  return table;
}

}  // namespace

const std::deque<LayerEntry>& AllLayers() { return Table().all(); }
const LayerEntry* FindLayer(std::string_view name) { return Table().Find(name); }
void RegisterLayer(LayerEntry entry) { Table().Add(std::move(entry)); }

}  // namespace l3c::l2
