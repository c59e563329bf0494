// The number of each definition of a table's values, by which the terms of the e-graph name it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

class DefinitionNumbers {
 public:
  explicit DefinitionNumbers(const ValueTable& table) {
    for (const Value& value : table.values) {
      first_.push_back(count_);
      count_ += static_cast<int64_t>(value.definitions.size());
    }
  }
  int64_t Number(ValueId v, uint32_t d) const { return first_[v] + d; }
  // (value, definition)
  std::pair<ValueId, uint32_t> At(int64_t number) const {
    const auto it = std::upper_bound(first_.begin(), first_.end(), number) - 1;
    return {static_cast<ValueId>(it - first_.begin()), static_cast<uint32_t>(number - *it)};
  }

 private:
  std::vector<int64_t> first_;
  int64_t count_ = 0;
};

}  // namespace l3c::l0::lower
