#include "layers/l0/lower/own_kernel_make.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "layers/l0/kernel_file.h"
#include "layers/l0/kernel_trial.h"
#include "layers/l0/lower/kernel_build.h"
#include "layers/l0/uop_interpreter.h"

namespace l3c::l0::lower {

using support::Kind;

namespace {

// The meaning as a step of its own.
Step StepOf(const OwnKernel& own) {
  Step step;
  step.name = own.name;
  std::vector<tensor::NodeId> ids;
  step.graph = tensor::ExpandDerived(own.meaning, ids);
  for (tensor::NodeId id : own.meaning.inputs()) {
    StepInput input;
    input.node = ids[id];
    input.field = own.meaning.node(id).name;
    step.inputs.push_back(std::move(input));
  }
  StepOutput output;
  output.node = ids[own.meaning.outputs().front().node];
  output.name = own.name;
  step.outputs.push_back(std::move(output));
  return step;
}

// The parameters in another order: `place[p]` is where parameter p goes.
void Reorder(Kernel& kernel, const std::vector<uint32_t>& place) {
  std::vector<Param> params(kernel.params.size());
  for (uint32_t p = 0; p < place.size(); ++p) params[place[p]] = std::move(kernel.params[p]);
  kernel.params = std::move(params);
  for (Uop& uop : kernel.uops) {
    if (uop.op == UOp::kLoad || uop.op == UOp::kStore) uop.param = place[uop.param];
  }
}

// What a comparison may take; larger kernels are taken on trust.
constexpr double kMostOperations = 4e7;
constexpr double kMostBytes = 1 << 30;

// Whether both kernels, whose parameters are alike, compute the same of random operands: within
// 1e-5 of the largest value, as sums may be taken in another order.
bool ComputesTheSame(const Kernel& meaning, const Kernel& file) {
  const KernelWork work = CountWork(meaning), other = CountWork(file);
  double bytes = 0;
  for (const Param& param : meaning.params) bytes += static_cast<double>(BytesOf(param));
  if (std::max(work.multiply_adds + work.simple_flops, other.multiply_adds + other.simple_flops) >
          kMostOperations ||
      bytes > kMostBytes) {
    return true;
  }
  const auto compute = [&](const Kernel& kernel) {
    std::mt19937_64 random(1);
    std::vector<std::vector<std::byte>> buffers;
    std::vector<void*> params;
    for (const Param& param : meaning.params) {
      buffers.emplace_back(BytesOf(param));
      FillRandom(param, random, buffers.back().data());
    }
    for (auto& buffer : buffers) params.push_back(buffer.data());
    Run(kernel, params.data(), 0, NumBlocks(kernel), {.widen = true});
    return std::move(buffers.back());
  };
  const std::vector<std::byte> expected = compute(meaning), found = compute(file);
  return GapBetween(meaning.params.back(), expected.data(), found.data()).largest <= 1e-5;
}

}  // namespace

bool MakeOwnKernel(OwnKernel& own, const KernelCostModel& costs, const RuleSources& rules,
                   const ChooseOptions& options, support::Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& why) {
    diagnostics.Error(Kind::kSafety, own.hatch.span, "'" + own.name + "' " + why)
        .Fix("annotate the result of an op that one kernel computes from its operands");
    return false;
  };
  const Step step = StepOf(own);
  // As its operands lie: the file knows of no other layout.
  RuleSources plain = rules;
  plain.erase("layout");
  ChooseOptions choose;
  choose.mode = search::Mode::kEGraph;
  choose.budget = options.budget;
  choose.numerics = options.numerics;
  choose.prefix = "l0/" + own.name;
  search::Explanation unread;
  std::optional<search::SearchFailure> failure;
  std::string rule_error;
  const auto chosen = ChooseKernels(step, costs, plain, choose, unread, failure, rule_error);
  if (!chosen) return refuse("has no kernel");
  const size_t count = chosen->selection.kernels.size();
  if (count != 1) {
    return refuse("takes " + std::to_string(count) + " kernels, and the file holds one");
  }
  BuiltKernel built = BuildKernel(step, chosen->table, chosen->candidates, chosen->selection,
                                  chosen->selection.kernels.front());
  std::vector<uint32_t> place;
  for (const Binding& binding : built.bindings) {
    const int32_t input = chosen->table.values[binding.storage.value].input;
    place.push_back(input >= 0 ? static_cast<uint32_t>(input)
                               : static_cast<uint32_t>(own.operands.size()));
  }
  if (place.size() != own.operands.size() + 1) return refuse("does not depend on all operands");
  Kernel kernel = std::move(built.kernel);
  Reorder(kernel, place);
  kernel.name = own.name;
  kernel.span = own.hatch.span;
  auto read = KernelFromFile(own.hatch, kernel, "", diagnostics);
  if (!read) return false;
  if (read->kernel && !ComputesTheSame(kernel, *read->kernel)) {
    diagnostics
        .Error(Kind::kSafety, own.hatch.span,
               "the UOps of the file compute something else than '" + own.name + "'")
        .Fix("mend the kernel, or write an op that means what it computes");
    return false;
  }
  own.code = std::move(read->code);
  own.kernel = read->kernel ? *std::move(read->kernel) : std::move(kernel);
  return true;
}

}  // namespace l3c::l0::lower
