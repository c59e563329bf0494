#include "layers/l0/lower/span.h"

#include <algorithm>
#include <iterator>

namespace l3c::l0::lower {

uint64_t RowsOfDeepStep(size_t values) {
  constexpr uint64_t kRowsOfAValue = 300;
  constexpr uint64_t kMost = 8'000'000;
  return std::min(kMost, kRowsOfAValue * values);
}

uint64_t LeastRows(size_t operations) {
  constexpr uint64_t kRowsOfAnOperation = 64;
  return kRowsOfAnOperation * operations;
}

std::vector<ValueId> EndsOfLongChains(const ValueTable& table, const std::vector<bool>& stored,
                                      size_t most) {
  std::vector<ValueId> ends;
  // By value: itself and those below it that are in no memory, ascending; empty where it is in one.
  std::vector<std::vector<ValueId>> chains(table.values.size());
  std::vector<ValueId> together;
  for (ValueId v = 0; v < static_cast<ValueId>(table.values.size()); ++v) {
    const Value& value = table.values[v];
    if (value.input >= 0 || stored[v]) continue;
    std::vector<ValueId>& chain = chains[v];
    const Definition& definition = value.definitions.front();
    for (ValueId input : definition.inputs) {
      together.clear();
      std::set_union(chain.begin(), chain.end(), chains[input].begin(), chains[input].end(),
                     std::back_inserter(together));
      chain.swap(together);
    }
    chain.push_back(v);
    // A view is had for nothing where its operand is kept.
    if (chain.size() <= most || IsView(definition.op)) continue;
    ends.push_back(v);
    chain.clear();
  }
  return ends;
}

}  // namespace l3c::l0::lower
