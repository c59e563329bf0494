#include "layers/l0/lower/stamp.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "layers/l0/lower/launch_order.h"
#include "layers/l0/lower/shifted_values.h"

namespace l3c::l0::lower {

using tensor::NodeId;

namespace {

constexpr int32_t kFirst = RepeatedBlocks::kFirst;
constexpr int32_t kMiddle = RepeatedBlocks::kMiddle;
constexpr int32_t kLast = RepeatedBlocks::kLast;
constexpr NodeId kNoCopy = RepeatedBlocks::kNone;

class Stamper {
 public:
  Stamper(const RepeatedBlocks& blocks, const Step& whole, const ChooseResult& chosen,
          const StepPlan& plan)
      : blocks_(blocks),
        whole_(whole),
        chosen_(chosen),
        plan_(plan),
        shifted_(blocks.step, chosen.table),
        kernels_(static_cast<int64_t>(chosen.candidates.kernels.size())) {}

  std::optional<StampedStep> Run() {
    StartTable();
    FindWriters();
    std::vector<Launch> launches;
    for (const Launch& launch : plan_.launches) {
      const int32_t block = BlockOf(launch);
      const int64_t copies = block == kMiddle ? blocks_.left_out : 0;
      for (int64_t copy = 0; copy <= copies; ++copy) {
        std::optional<Launch> stamped = Stamp(launch, block, copy);
        if (!stamped) return std::nullopt;
        launches.push_back(*std::move(stamped));
      }
    }
    for (const ChosenCopy& copy : plan_.copies) {
      const auto it = blocks_.block_of_state.find(copy.state);
      const int32_t block = it == blocks_.block_of_state.end() ? -1 : it->second;
      const int64_t copies = block == kMiddle ? blocks_.left_out : 0;
      for (int64_t c = 0; c <= copies; ++c) {
        const std::optional<Storage> from = Read(copy.from, block, c);
        const std::optional<uint32_t> state = blocks_.ShiftState(copy.state, c);
        if (!from || !state) return std::nullopt;
        result_.plan.copies.push_back({*from, *state});
      }
    }
    result_.plan.reports.assign(whole_.outputs.size(), {});
    for (size_t o = 0; o < blocks_.outputs.size(); ++o) {
      if (blocks_.step.outputs[o].kind != StepOutput::Kind::kReport) continue;
      const std::optional<Storage> report = Read(plan_.reports[o], -1, 0);
      if (!report) return std::nullopt;
      result_.plan.reports[blocks_.outputs[o]] = *report;
    }
    result_.plan.seconds = plan_.seconds;  // counts all copies already
    std::vector<LaunchToOrder> to_order;
    for (const Launch& launch : launches) to_order.push_back({&launch.kernel, &launch.bindings});
    const auto order = OrderLaunches(to_order, result_.table);
    if (!order) return std::nullopt;
    for (size_t i : *order) result_.plan.launches.push_back(std::move(launches[i]));
    return std::move(result_);
  }

 private:
  void StartTable() {
    for (const Value& value : chosen_.table.values) {
      Value& copied = Add(value);
      if (copied.input >= 0) {
        copied.input = static_cast<int32_t>(blocks_.inputs[static_cast<size_t>(copied.input)]);
        given_[copied.input] = static_cast<ValueId>(result_.table.values.size()) - 1;
      }
    }
    for (size_t i = 0; i < whole_.inputs.size(); ++i) input_at_[whole_.inputs[i].node] = i;
  }

  Value& Add(const Value& like) {
    Value& value = result_.table.values.emplace_back();
    value.dtype = like.dtype;
    value.shape = like.shape;
    value.name = like.name;
    value.span = like.span;
    value.memory = like.memory;
    value.input = like.input;
    return value;
  }

  int32_t BlockOf(const Launch& launch) const {
    const ValueId root = chosen_.candidates.kernels[launch.candidate].roots.front();
    return chosen_.table.values[root].block;
  }

  void FindWriters() {
    for (const Launch& launch : plan_.launches) {
      const int32_t block = BlockOf(launch);
      for (size_t p = 0; p < launch.bindings.size(); ++p) {
        if (launch.kernel.params[p].access == Access::kIn) continue;
        const Binding& b = launch.bindings[p];
        if (b.state >= 0) continue;
        block_of_writer_[b.storage.kernel] = block;
        if (block == kMiddle) {
          // The first of several, by position: later ones may come too late for a reader.
          const auto [it, inserted] = stored_in_middle_.try_emplace(b.storage.value, b.storage);
          if (!inserted && b.storage.kernel < it->second.kernel) it->second = b.storage;
        }
      }
    }
  }

  std::optional<Launch> Stamp(const Launch& launch, int32_t block, int64_t copy) {
    Launch stamped = launch;
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      Binding& binding = stamped.bindings[p];
      if (binding.state >= 0) {
        const auto it = blocks_.block_of_state.find(static_cast<uint32_t>(binding.state));
        const int32_t of = it == blocks_.block_of_state.end() ? -1 : it->second;
        const std::optional<int64_t> by = CopiesApart(block, of, copy);
        if (!by) return std::nullopt;
        const auto state = blocks_.ShiftState(static_cast<uint32_t>(binding.state), *by);
        if (!state) return std::nullopt;
        binding.state = static_cast<int32_t>(*state);
        continue;
      }
      if (launch.kernel.params[p].access == Access::kIn) {
        const std::optional<Storage> read = Read(binding.storage, block, copy);
        if (!read) return std::nullopt;
        binding.storage = *read;
      } else {
        binding.storage = CopyOf(binding.storage, copy);
      }
    }
    if (copy > 0) {
      // Names of values, where there are any; a number otherwise.
      const ValueId root = chosen_.candidates.kernels[launch.candidate].roots.front();
      const std::string& name = chosen_.table.values[root].name;
      const std::string other = NameOf(root, copy);
      const size_t at = launch.id.find(name);
      if (at != std::string::npos) stamped.id.replace(at, name.size(), other);
    }
    return stamped;
  }

  // By how many copies what a launch of a block reads of another is apart, in the whole step, from
  // where it is in the step with three copies. Nothing where they are no neighbours.
  std::optional<int64_t> CopiesApart(int32_t reader, int32_t read, int64_t copy) const {
    if (read < 0) return 0;
    if (reader == kMiddle) return read == kLast ? copy - blocks_.left_out : copy;
    if (reader == kLast) {
      if (read == kFirst) return std::nullopt;
      return read == kMiddle ? blocks_.left_out : 0;
    }
    if (reader == kFirst) {
      if (read == kLast) return std::nullopt;
      return 0;
    }
    if (read == kMiddle) return std::nullopt;
    return 0;
  }

  std::optional<Storage> Read(const Storage& storage, int32_t reader, int64_t copy) {
    if (storage.kernel < 0) return ReadGiven(storage, reader, copy);
    const auto it = block_of_writer_.find(storage.kernel);
    const int32_t writer = it == block_of_writer_.end() ? -1 : it->second;
    if (!CopiesApart(reader, writer, copy)) return std::nullopt;
    if (reader == kLast && writer == kMiddle) return CopyOf(storage, blocks_.left_out);
    // Of what is outside of all blocks only what is the same for each of them is read.
    if (reader == kMiddle && writer < 0 && chosen_.table.values[storage.value].block >= 0) {
      return std::nullopt;
    }
    if (reader != kMiddle || writer < 0) return storage;
    if (writer == kMiddle) return CopyOf(storage, copy);
    if (writer == kFirst && copy == 0) return storage;
    if (writer == kLast && copy == blocks_.left_out) return storage;
    const int towards = writer == kFirst ? 1 : -1;
    const std::optional<ValueId> own = shifted_.Shift(storage.value, towards);
    const auto stored = own ? stored_in_middle_.find(*own) : stored_in_middle_.end();
    if (stored == stored_in_middle_.end()) return std::nullopt;
    return CopyOf(stored->second, copy - towards);
  }

  // A batch, or old state.
  std::optional<Storage> ReadGiven(Storage storage, int32_t reader, int64_t copy) {
    const Value& value = chosen_.table.values[storage.value];
    const std::optional<int64_t> by = CopiesApart(reader, value.block, copy);
    if (!by) return std::nullopt;
    if (*by == 0) return storage;
    const NodeId node = blocks_.Shift(WholeNode(storage.value), *by);
    const auto input = input_at_.find(node);
    if (node == kNoCopy || input == input_at_.end()) return std::nullopt;
    const auto index = static_cast<int32_t>(input->second);
    const auto [it, inserted] = given_.try_emplace(index, 0);
    if (inserted) {
      it->second = static_cast<ValueId>(result_.table.values.size());
      Value& added = Add(value);
      added.input = index;
      added.name = whole_.graph.node(node).name;
    }
    storage.value = it->second;
    return storage;
  }

  // The node of the whole step that computes it; kNoCopy for what only rules have made.
  NodeId WholeNode(ValueId v) const {
    const std::optional<NodeId> node = shifted_.NodeOf(v);
    return node ? blocks_.origin[*node] : kNoCopy;
  }

  Storage CopyOf(Storage storage, int64_t copy) {
    if (copy == 0) return storage;
    const auto [it, inserted] = copies_.try_emplace({storage.value, copy}, 0);
    if (inserted) {
      it->second = static_cast<ValueId>(result_.table.values.size());
      Add(chosen_.table.values[storage.value]).name = NameOf(storage.value, copy);
    }
    storage.value = it->second;
    storage.kernel = static_cast<int32_t>(storage.kernel + copy * kernels_);
    return storage;
  }

  std::string NameOf(ValueId v, int64_t copy) const {
    const Value& value = chosen_.table.values[v];
    NodeId node = WholeNode(v);
    if (node != kNoCopy && value.block >= 0) {
      node = blocks_.Shift(node, value.block == kLast ? copy - blocks_.left_out : copy);
      if (node != kNoCopy) return whole_.graph.node(node).name;
    }
    return value.name + "_" + std::to_string(copy);
  }

  const RepeatedBlocks& blocks_;
  const Step& whole_;
  const ChooseResult& chosen_;
  const StepPlan& plan_;
  ShiftedValues shifted_;
  const int64_t kernels_;                        // candidates: copies are numbered behind them
  std::map<int32_t, int32_t> block_of_writer_;   // by kernel
  std::map<ValueId, Storage> stored_in_middle_;  // by the middle block's kernels
  std::map<std::pair<ValueId, int64_t>, ValueId> copies_;
  std::map<NodeId, size_t> input_at_;  // of the whole step
  std::map<int32_t, ValueId> given_;   // by input of the whole step
  StampedStep result_;
};

}  // namespace

std::optional<StampedStep> StampBlocks(const RepeatedBlocks& blocks, const Step& whole,
                                       const ChooseResult& chosen, const StepPlan& plan) {
  return Stamper(blocks, whole, chosen, plan).Run();
}

}  // namespace l3c::l0::lower
