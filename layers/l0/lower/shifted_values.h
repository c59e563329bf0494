// The value that is the same place of another of the three copies of a repeated block.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

class ShiftedValues {
 public:
  // `step` has StepBlocks and must outlive this, as must the table.
  ShiftedValues(const Step& step, const ValueTable& table);

  // The node that computes it; nothing for what only rules have made.
  std::optional<tensor::NodeId> NodeOf(ValueId v) const { return node_[v]; }

  // `towards`: 1 for the next copy, -1 for the one before. What belongs to no copy is itself.
  // Nothing where there is no such value, or not only one.
  std::optional<ValueId> Shift(ValueId v, int towards);

 private:
  using Key = std::tuple<tensor::Op, std::vector<int64_t>, int64_t, double, tensor::DType,
                         std::vector<ValueId>>;
  static Key KeyOf(const Definition& d, std::vector<ValueId> inputs);
  std::optional<ValueId> ByDefinition(ValueId v, int towards);

  const StepBlocks& blocks_;
  const ValueTable& table_;
  std::vector<std::optional<tensor::NodeId>> node_;  // by value: of the value's own copy
  std::map<Key, std::vector<ValueId>> by_definition_;
  std::map<std::pair<ValueId, int>, std::optional<ValueId>> known_;
};

}  // namespace l3c::l0::lower
