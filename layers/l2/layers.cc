#include "layers/l2/layers.h"

#include <stdexcept>
#include <utility>

namespace l3c::l2 {
namespace {

std::vector<LayerEntry>& Table() {
  static std::vector<LayerEntry> table = [] {
    std::vector<LayerEntry> all;
    for (auto* family :
         {LinearLayers, NormLayers, ActivationLayers, PositionsLayers, SoftmaxLayers, JoinLayers}) {
      for (LayerEntry& entry : family()) all.push_back(std::move(entry));
    }
    // Pointers into the table are handed out, so that registering must not move it.
    all.reserve(256);
    return all;
  }();
  return table;
}

}  // namespace

const std::vector<LayerEntry>& AllLayers() { return Table(); }

const LayerEntry* FindLayer(std::string_view name) {
  for (const LayerEntry& entry : Table()) {
    if (entry.form.name == name) return &entry;
  }
  return nullptr;
}

void RegisterLayer(LayerEntry entry) {
  if (FindLayer(entry.form.name) != nullptr || IsReservedName(Family::kLayer, entry.form.name) ||
      Table().size() == Table().capacity()) {
    throw std::invalid_argument("layer '" + entry.form.name + "' cannot be registered");
  }
  Table().push_back(std::move(entry));
}

}  // namespace l3c::l2
