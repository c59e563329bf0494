#include "layers/l0/lower/shifted_values.h"

namespace l3c::l0::lower {

using tensor::NodeId;

ShiftedValues::ShiftedValues(const Step& step, const ValueTable& table)
    : blocks_(step.blocks), table_(table), node_(table.values.size()) {
  for (NodeId id = 0; id < table.of_node.size(); ++id) {
    const ValueId v = table.of_node[id];
    if (v < 0 || node_[v]) continue;
    if (blocks_.of_node[id] == table.values[v].block) node_[v] = id;
  }
  for (ValueId v = 0; v < static_cast<ValueId>(table.values.size()); ++v) {
    const Definition& d = table.values[v].definitions.front();
    if (d.op != tensor::Op::kInput) by_definition_[KeyOf(d, d.inputs)].push_back(v);
  }
}

ShiftedValues::Key ShiftedValues::KeyOf(const Definition& d, std::vector<ValueId> inputs) {
  return {d.op, d.attr.ints, d.attr.axis, d.attr.scalar, d.attr.dtype, std::move(inputs)};
}

std::optional<ValueId> ShiftedValues::Shift(ValueId v, int towards) {
  const int32_t block = table_.values[v].block;
  if (block < 0) return v;
  const auto [it, inserted] = known_.try_emplace({v, towards});
  if (!inserted) return it->second;
  std::optional<ValueId> shifted;
  if (node_[v]) {
    const std::optional<NodeId> node = (towards > 0 ? blocks_.later : blocks_.earlier)[*node_[v]];
    if (node && table_.of_node[*node] >= 0) shifted = table_.of_node[*node];
  } else {
    shifted = ByDefinition(v, towards);
  }
  known_[{v, towards}] = shifted;
  return shifted;
}

std::optional<ValueId> ShiftedValues::ByDefinition(ValueId v, int towards) {
  const Definition& d = table_.values[v].definitions.front();
  std::vector<ValueId> inputs;
  for (const ValueId input : d.inputs) {
    const std::optional<ValueId> shifted = Shift(input, towards);
    if (!shifted) return std::nullopt;
    inputs.push_back(*shifted);
  }
  const auto it = by_definition_.find(KeyOf(d, std::move(inputs)));
  if (it == by_definition_.end() || it->second.size() != 1) return std::nullopt;
  return it->second.front();
}

}  // namespace l3c::l0::lower
