#include "layers/l0/lower/join_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "layers/l0/lower/join_explanations.h"
#include "layers/l0/lower/launch_order.h"

namespace l3c::l0::lower {

using tensor::NodeId;

namespace {

class Joiner {
 public:
  Joiner(const Step& whole, const StepParts& parts, std::vector<PlannedStep> planned)
      : whole_(whole), parts_(parts), planned_(std::move(planned)) {}

  std::optional<PlannedStep> Run() {
    for (size_t i = 0; i < whole_.inputs.size(); ++i) input_at_[whole_.inputs[i].node] = i;
    for (const PlannedStep& planned : planned_) kernels_.push_back(KernelsOf(planned.plan));
    result_.plan.reports.assign(whole_.outputs.size(), {});
    if (!ForEachCopy([this](size_t p, int64_t copy) { return HandOver(p, copy); }) ||
        !ForEachCopy([this](size_t p, int64_t copy) { return Launches(p, copy); }) || !Reports() ||
        !Order()) {
      return std::nullopt;
    }
    for (size_t p = 0; p < planned_.size(); ++p) {
      result_.plan.seconds +=
          planned_[p].plan.seconds * static_cast<double>(parts_.parts[p].copies);
    }
    std::vector<PartExplanation> explanations;
    for (size_t p = 0; p < planned_.size(); ++p) {
      explanations.push_back(
          {&parts_.parts[p], std::move(planned_[p].explanation), planned_[p].plan.cost});
    }
    result_.plan.cost = JoinCosts(explanations);
    result_.explanation = JoinExplanations(whole_, parts_, std::move(explanations));
    return std::move(result_);
  }

 private:
  struct Placed {
    Launch launch;
    NodeId node = 0;  // that stands for where it is in the whole step
  };

  template <typename Visit>
  bool ForEachCopy(Visit&& visit) {
    for (size_t p = 0; p < planned_.size(); ++p) {
      for (int64_t copy = 0; copy < parts_.parts[p].copies; ++copy) {
        if (!visit(p, copy)) return false;
      }
    }
    return true;
  }

  static int32_t KernelsOf(const StepPlan& plan) {
    int32_t last = -1;
    for (const Launch& launch : plan.launches) {
      for (const Binding& b : launch.bindings) last = std::max(last, b.storage.kernel);
    }
    return last + 1;
  }

  std::string Spelled(std::string_view text, size_t p, int64_t copy) const {
    return Spell(text, parts_, parts_.parts[p], copy, whole_);
  }

  ValueId Add(const Value& like, std::string name, int32_t input) {
    Value value;
    value.dtype = like.dtype;
    value.shape = like.shape;
    value.memory = like.memory;
    value.name = std::move(name);
    value.input = input;
    result_.table.values.push_back(std::move(value));
    return static_cast<ValueId>(result_.table.values.size() - 1);
  }

  // Of a value that a copy of a part has, or is given.
  std::optional<Storage> Map(Storage storage, size_t p, int64_t copy) {
    const Value& value = planned_[p].table.values[static_cast<size_t>(storage.value)];
    if (storage.kernel >= 0) {
      const auto [it, added] = values_.try_emplace({p, copy, storage.value}, 0);
      if (added) it->second = Add(value, Spelled(value.name, p, copy), -1);
      return Storage{it->second, First(p, copy) + storage.kernel, storage.again};
    }
    const StepInput& input = parts_.parts[p].step.inputs[static_cast<size_t>(value.input)];
    const std::optional<NodeId> node = parts_.NodeOf(parts_.parts[p], input.node, copy);
    if (!node) return std::nullopt;
    if (input.kind == StepInput::Kind::kHandedOver) {
      const auto it = handed_over_.find(*node);
      return it == handed_over_.end() ? std::nullopt : std::optional(it->second);
    }
    const auto at = input_at_.find(*node);
    if (at == input_at_.end()) return std::nullopt;
    const auto [it, added] = given_.try_emplace(at->second, 0);
    if (added) {
      it->second = Add(value, whole_.graph.node(*node).name, static_cast<int32_t>(at->second));
    }
    return Storage{it->second, -1, 0};
  }

  // The number of a copy's first kernel.
  int32_t First(size_t p, int64_t copy) const {
    int32_t first = 0;
    for (size_t q = 0; q < p; ++q) {
      first += kernels_[q] * static_cast<int32_t>(parts_.parts[q].copies);
    }
    return first + kernels_[p] * static_cast<int32_t>(copy);
  }

  bool HandOver(size_t p, int64_t copy) {
    const StepPart& part = parts_.parts[p];
    for (size_t o = 0; o < part.step.outputs.size(); ++o) {
      const StepOutput& output = part.step.outputs[o];
      if (output.order < 0) continue;
      const std::optional<NodeId> node = parts_.NodeOf(part, output.node, copy);
      const Storage& stored = planned_[p].plan.reports[o];
      if (!node || stored.kernel < 0) return false;
      handed_over_[*node] = *Map(stored, p, copy);
    }
    return true;
  }

  bool Launches(size_t p, int64_t copy) {
    const StepPart& part = parts_.parts[p];
    NodeId last = 0;
    for (const Launch& planned : planned_[p].plan.launches) {
      Placed placed;
      placed.launch = planned;
      Launch& launch = placed.launch;
      for (Binding& binding : launch.bindings) {
        if (binding.state >= 0) {
          const auto state = parts_.StateOf(part, static_cast<uint32_t>(binding.state), copy);
          if (!state) return false;
          binding.state = static_cast<int32_t>(*state);
        } else {
          const std::optional<Storage> storage = Map(binding.storage, p, copy);
          if (!storage) return false;
          binding.storage = *storage;
        }
      }
      const std::optional<NodeId> place = FirstPlace(launch.kernel.name);
      const auto node = place ? parts_.NodeOf(part, *place, copy) : std::nullopt;
      placed.node = last = node.value_or(last);
      SpellNames(launch, p, copy);
      launches_.push_back(std::move(placed));
    }
    for (const ChosenCopy& chosen : planned_[p].plan.copies) {
      const std::optional<Storage> from = Map(chosen.from, p, copy);
      const std::optional<uint32_t> state = parts_.StateOf(part, chosen.state, copy);
      if (!from || !state) return false;
      result_.plan.copies.push_back({*from, *state});
    }
    return true;
  }

  void SpellNames(Launch& launch, size_t p, int64_t copy) const {
    launch.id = Spelled(launch.id, p, copy);
    Kernel& kernel = launch.kernel;
    kernel.name = Identifier(Spelled(kernel.name, p, copy));
    for (std::string& value : kernel.origin) value = Spelled(value, p, copy);
    std::set<std::string> taken;
    for (Param& param : kernel.params) {
      param.name = Identifier(Spelled(param.name, p, copy));
      while (!taken.insert(param.name).second) param.name += "_";
    }
  }

  bool Reports() {
    for (size_t p = 0; p < planned_.size(); ++p) {
      const StepPart& part = parts_.parts[p];
      for (size_t i = 0, o = 0; o < part.step.outputs.size(); ++o) {
        if (part.step.outputs[o].order >= 0) continue;
        const size_t of_whole = part.outputs[i++];
        if (part.step.outputs[o].kind != StepOutput::Kind::kReport) continue;
        const std::optional<Storage> report = Map(planned_[p].plan.reports[o], p, 0);
        if (!report) return false;
        result_.plan.reports[of_whole] = *report;
      }
    }
    return true;
  }

  // First as the whole step makes things, then as memory likes it.
  bool Order() {
    std::stable_sort(launches_.begin(), launches_.end(),
                     [](const Placed& a, const Placed& b) { return a.node < b.node; });
    std::vector<LaunchToOrder> to_order;
    for (const Placed& placed : launches_) {
      to_order.push_back({&placed.launch.kernel, &placed.launch.bindings});
    }
    const auto order = OrderLaunches(to_order, result_.table);
    if (!order) return false;
    for (const size_t i : *order) {
      result_.plan.launches.push_back(std::move(launches_[i].launch));
    }
    return true;
  }

  const Step& whole_;
  const StepParts& parts_;
  std::vector<PlannedStep> planned_;
  std::vector<int32_t> kernels_;           // by part
  std::map<NodeId, size_t> input_at_;      // of the whole step
  std::map<size_t, ValueId> given_;        // by input of the whole step
  std::map<NodeId, Storage> handed_over_;  // by node of the whole step
  std::map<std::tuple<size_t, int64_t, ValueId>, ValueId> values_;
  std::vector<Placed> launches_;
  PlannedStep result_;
};

}  // namespace

std::optional<PlannedStep> JoinParts(const Step& whole, const StepParts& parts,
                                     std::vector<PlannedStep> planned) {
  return Joiner(whole, parts, std::move(planned)).Run();
}

}  // namespace l3c::l0::lower
