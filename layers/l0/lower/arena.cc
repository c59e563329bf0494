#include "layers/l0/lower/arena.h"

#include <algorithm>
#include <vector>

#include "layers/tensor/op.h"

namespace l3c::l0::lower {

Arena PackArena(const StepPlan& plan, const ValueTable& table, bool streams) {
  Arena arena;
  const bool apart =
      streams || std::any_of(table.values.begin(), table.values.end(), [&](const Value& value) {
        return value.memory != table.values[0].memory;
      });
  // `blocks`: it is written by several threads.
  const auto use = [&](const Storage& storage, size_t at, bool blocks) {
    if (storage.kernel < 0 || storage.value < 0) return;
    const auto position = static_cast<int64_t>(at);
    const auto [it, fresh] = arena.slots.try_emplace(storage);
    Slot& slot = it->second;
    if (fresh) slot = {Bytes(table.values[storage.value]), position, position, 0, apart};
    slot.last_use = std::max(slot.last_use, position);
    slot.whole_lines = slot.whole_lines || blocks;
  };
  size_t at = 0;
  for (const Launch& launch : plan.launches) {
    const bool blocks = NumBlocks(launch.kernel) > 1;
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      const Binding& b = launch.bindings[p];
      const bool written = launch.kernel.params[p].access != Access::kIn;
      if (b.state < 0) use(b.storage, at, blocks && written);
    }
    ++at;
  }
  for (const ChosenCopy& copy : plan.copies) use(copy.from, at++, false);
  for (const Storage& report : plan.reports) use(report, at, false);
  std::map<uint32_t, std::vector<Slot>> slots;
  for (const auto& [storage, slot] : arena.slots) {
    slots[table.values[storage.value].memory].push_back(slot);
  }
  int64_t largest = -1;
  for (auto& [memory, list] : slots) {
    const Packing packing = PackSlots(list, plan.packing);
    arena.packings[memory] = packing;
    arena.packing.size += packing.size;
    arena.packing.lower_bound += packing.lower_bound;
    if (packing.size > largest) arena.packing.order = packing.order;
    largest = std::max(largest, packing.size);
  }
  std::map<uint32_t, size_t> next;
  for (auto& [storage, slot] : arena.slots) {
    const uint32_t memory = table.values[storage.value].memory;
    slot = slots[memory][next[memory]++];
  }
  return arena;
}

int64_t Arena::BytesIn(std::optional<uint32_t> memory) const {
  if (!memory) return packing.size;
  const auto it = packings.find(*memory);
  return it == packings.end() ? 0 : it->second.size;
}

int64_t OpByOpBytes(const tensor::Graph& graph) {
  std::vector<size_t> last(graph.size());
  for (tensor::NodeId id = 0; id < graph.size(); ++id) {
    last[id] = id;
    for (tensor::NodeId input : graph.node(id).inputs) last[input] = id;
  }
  for (const tensor::Output& output : graph.outputs()) last[output.node] = graph.size();
  std::vector<int64_t> change(graph.size() + 2);
  for (tensor::NodeId id = 0; id < graph.size(); ++id) {
    const tensor::Node& node = graph.node(id);
    if (node.op == tensor::Op::kInput) continue;
    const int64_t bytes =
        tensor::NumElements(node.shape) * static_cast<int64_t>(tensor::SizeOf(node.dtype));
    change[id] += bytes;
    change[last[id] + 1] -= bytes;
  }
  int64_t live = 0;
  int64_t most = 0;
  for (int64_t bytes : change) most = std::max(most, live += bytes);
  return most;
}

void ExplainPacking(const StepPlan& plan, const Step& step, const ValueTable& table,
                    const std::string& prefix, search::Explanation& explanation) {
  const Arena arena = PackArena(plan, table);
  if (arena.slots.empty()) return;
  const auto op_by_op = static_cast<double>(OpByOpBytes(step.graph));
  const auto cost = [&](const Packing& packing) -> search::CostVector {
    return {{"memory", static_cast<double>(packing.size), "B", "exact"},
            {"live", static_cast<double>(packing.lower_bound), "B", "exact"},
            {"op_by_op", op_by_op, "B", "exact"}};
  };
  search::Decision decision;
  decision.id = prefix + "/arena.packing";
  decision.chosen = PackOrderName(arena.packing.order);
  decision.cost = cost(arena.packing);
  decision.forced = plan.packing.has_value();
  for (PackOrder order : PackOrders()) {
    if (order == arena.packing.order) continue;
    StepPlan other = plan;
    other.packing = order;
    search::Loser loser;
    loser.label = PackOrderName(order);
    loser.cost = cost(PackArena(other, table).packing);
    loser.difference = search::Difference(loser.cost, decision.cost);
    loser.decided_by = "memory";
    decision.losers.push_back(std::move(loser));
  }
  std::stable_sort(decision.losers.begin(), decision.losers.end(),
                   [](const search::Loser& a, const search::Loser& b) {
                     return a.cost[0].value < b.cost[0].value;
                   });
  explanation.decisions.push_back(std::move(decision));
}

std::string ForcePacking(const search::ForcedChoices& forced, const std::string& prefix,
                         StepPlan& plan) {
  const auto it = forced.find(prefix + "/arena.packing");
  if (it == forced.end()) return "";
  plan.packing = ParsePackOrder(it->second);
  if (plan.packing) return "";
  std::string known;
  for (PackOrder order : PackOrders()) {
    known += (known.empty() ? "'" : ", '") + std::string(PackOrderName(order)) + "'";
  }
  return "'" + it->second + "' is no choice of '" + it->first + "': those are " + known;
}

}  // namespace l3c::l0::lower
