#include "tests/layers/l0/lower/step_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "cost/machine.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/kernel_verify.h"
#include "layers/l0/uop_interpreter.h"

namespace l3c::l0::lower {

using tensor::Array;
using tensor::DType;

Step StepOf(const tensor::Graph& graph) {
  Step step;
  step.name = "test";
  std::vector<tensor::NodeId> ids;
  step.graph = tensor::ExpandDerived(graph, ids);
  std::map<std::string, uint32_t> states;
  for (tensor::NodeId id : graph.inputs()) {
    StepInput input;
    input.node = ids[id];
    input.field = graph.node(id).name;
    if (input.field.starts_with("s_")) {
      input.kind = StepInput::Kind::kState;
      input.state = static_cast<uint32_t>(states.size());
      states[input.field] = input.state;
    }
    step.inputs.push_back(input);
  }
  for (const tensor::Output& output : graph.outputs()) {
    StepOutput out;
    out.node = ids[output.node];
    out.name = output.name;
    auto it = states.find(output.name);
    if (it != states.end()) {
      out.kind = StepOutput::Kind::kState;
      out.state = it->second;
    }
    step.outputs.push_back(out);
  }
  return step;
}

std::optional<LoweredForTest> LowerForTest(const tensor::Graph& graph, const TestOptions& options,
                                           std::string* failure_text) {
  return LowerForTest(StepOf(graph), options, failure_text);
}

std::optional<LoweredForTest> LowerForTest(Step step, const TestOptions& options,
                                           std::string* failure_text) {
  LoweredForTest lowered;
  lowered.step = std::move(step);
  l1::SystemNode node;
  node.cores = options.cores;
  node.features = options.features;
  const cost::CpuMachine machine = cost::MachineOf(node);
  const cost::CpuCostModel costs(machine);
  ChooseOptions choose;
  choose.mode = options.mode;
  choose.forced = options.forced;
  choose.budget = options.budget;
  choose.explain = options.explain;
  choose.numerics = options.numerics;
  choose.prefix = "l0/test";
  std::optional<search::SearchFailure> failure;
  std::string rule_error;
  auto chosen = ChooseKernels(lowered.step, costs, options.rules, choose, lowered.explanation,
                              failure, rule_error);
  std::string text = rule_error;
  if (failure) {
    text += search::FailureName(*failure);
    if (auto* none = std::get_if<search::NoCandidates>(&*failure)) text += ": " + none->reason;
  }
  if (failure_text) *failure_text = text;
  if (!chosen) {
    if (!failure_text) ADD_FAILURE() << text;
    return std::nullopt;
  }
  lowered.chosen = std::move(*chosen);
  lowered.plan =
      PlanStep(lowered.step, lowered.chosen, costs, choose, lowered.explanation, failure);
  if (failure) {
    if (!failure_text) ADD_FAILURE() << "no schedule";
    return std::nullopt;
  }
  return lowered;
}

namespace {

std::vector<unsigned char> ToBytes(const Array& a) {
  const int64_t n = tensor::NumElements(a.shape);
  std::vector<unsigned char> bytes(static_cast<size_t>(n) * tensor::SizeOf(a.dtype));
  for (int64_t i = 0; i < n; ++i) {
    unsigned char* at = bytes.data() + static_cast<size_t>(i) * tensor::SizeOf(a.dtype);
    auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (a.dtype) {
      case DType::kF32:
        put(static_cast<float>(a.floats[i]));
        break;
      case DType::kF64:
        put(a.floats[i]);
        break;
      case DType::kBool:
      case DType::kU8:
        put(static_cast<uint8_t>(a.ints[i]));
        break;
      case DType::kI32:
      case DType::kU32:
        put(static_cast<int32_t>(a.ints[i]));
        break;
      case DType::kI64:
      case DType::kU64:
        put(a.ints[i]);
        break;
    }
  }
  return bytes;
}

Array FromBytes(const std::vector<unsigned char>& bytes, DType dtype, const tensor::Shape& shape) {
  Array a = Array::Zeros(dtype, shape);
  const int64_t n = tensor::NumElements(shape);
  for (int64_t i = 0; i < n; ++i) {
    const unsigned char* at = bytes.data() + static_cast<size_t>(i) * tensor::SizeOf(dtype);
    auto get = [&]<typename T>(T value) {
      std::memcpy(&value, at, sizeof value);
      return value;
    };
    switch (dtype) {
      case DType::kF32:
        a.floats[i] = get(float{});
        break;
      case DType::kF64:
        a.floats[i] = get(double{});
        break;
      case DType::kBool:
      case DType::kU8:
        a.ints[i] = get(uint8_t{});
        break;
      case DType::kI32:
        a.ints[i] = get(int32_t{});
        break;
      case DType::kU32:
        a.ints[i] = get(uint32_t{});
        break;
      case DType::kI64:
      case DType::kU64:
        a.ints[i] = get(int64_t{});
        break;
    }
  }
  return a;
}

}  // namespace

void InterpretKernel(const Kernel& kernel, void* const* params) {
  Run(kernel, params, 0, NumBlocks(kernel));
}

std::vector<Array> RunLowered(const LoweredForTest& lowered, const std::vector<Array>& inputs,
                              const KernelRunner& run) {
  const ValueTable& table = lowered.chosen.table;
  std::map<Binding, std::vector<unsigned char>> memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Binding binding;
    if (lowered.step.inputs[i].kind == StepInput::Kind::kState) {
      binding.state = static_cast<int32_t>(lowered.step.inputs[i].state);
    } else {
      binding.storage = {table.inputs[i], -1};
    }
    memory[binding] = ToBytes(inputs[i]);
  }
  for (const Launch& launch : lowered.plan.launches) {
    support::Diagnostics diagnostics;
    EXPECT_TRUE(VerifyKernel(launch.kernel, diagnostics))
        << diagnostics.Render(false) << PrintKernel(launch.kernel);
    if (diagnostics.has_errors()) return {};
    std::vector<void*> params;
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      const Param& param = launch.kernel.params[p];
      std::vector<unsigned char>& bytes = memory[launch.bindings[p]];
      const size_t size =
          static_cast<size_t>(tensor::NumElements(param.shape)) * tensor::SizeOf(param.dtype);
      if (bytes.size() != size) {
        EXPECT_EQ(param.access, Access::kOut) << "read before written: " << param.name;
        bytes.assign(size, 0xff);
      }
      params.push_back(bytes.data());
    }
    run(launch.kernel, params.data());
  }
  const auto stored = [&](const Storage& storage) {
    Binding binding;
    const Value& value = table.values[storage.value];
    if (storage.kernel < 0 && lowered.step.inputs[value.input].kind == StepInput::Kind::kState) {
      binding.state = static_cast<int32_t>(lowered.step.inputs[value.input].state);
    } else {
      binding.storage = storage;
    }
    return binding;
  };
  for (const ChosenCopy& copy : lowered.plan.copies) {
    Binding to;
    to.state = static_cast<int32_t>(copy.state);
    memory[to] = memory.at(stored(copy.from));
  }
  std::vector<Array> outputs;
  for (size_t o = 0; o < lowered.step.outputs.size(); ++o) {
    const StepOutput& output = lowered.step.outputs[o];
    const Value& value = table.values[table.outputs[o]];
    if (output.kind == StepOutput::Kind::kState) {
      Binding binding;
      binding.state = static_cast<int32_t>(output.state);
      outputs.push_back(FromBytes(memory.at(binding), value.dtype, value.shape));
    } else {
      outputs.push_back(
          FromBytes(memory.at(stored(lowered.plan.reports[o])), value.dtype, value.shape));
    }
  }
  return outputs;
}

std::vector<Array> RandomInputs(const tensor::Graph& graph, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<Array> arrays;
  for (tensor::NodeId id : graph.inputs()) {
    const tensor::Node& node = graph.node(id);
    Array a = Array::Zeros(node.dtype, node.shape);
    for (double& x : a.floats) x = static_cast<float>(normal(engine));
    for (int64_t& i : a.ints) i = static_cast<int64_t>(engine() % 4);
    arrays.push_back(std::move(a));
  }
  return arrays;
}

void ExpectSameAsInterpreter(const tensor::Graph& graph, const TestOptions& options,
                             uint64_t seed) {
  const auto lowered = LowerForTest(graph, options);
  if (!lowered) return;
  const std::vector<Array> inputs = RandomInputs(graph, seed);
  const std::vector<Array> want = tensor::Evaluate(graph, inputs, tensor::Precision::kOwnDType);
  const std::vector<Array> got = RunLowered(*lowered, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    double norm = 0;
    double error = 0;
    for (size_t i = 0; i < want[o].floats.size(); ++i) {
      norm += want[o].floats[i] * want[o].floats[i];
      const double e = want[o].floats[i] - got[o].floats[i];
      error += e * e;
    }
    EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm) + 1e-7)
        << "output " << graph.outputs()[o].name << ", mode " << search::ModeName(options.mode)
        << "\n"
        << Describe(*lowered);
    EXPECT_EQ(want[o].ints, got[o].ints) << "output " << graph.outputs()[o].name;
  }
}

std::vector<const Launch*> KernelsStoring(const LoweredForTest& lowered, const std::string& name) {
  std::vector<const Launch*> found;
  for (const Launch& launch : lowered.plan.launches) {
    for (const std::string& origin : launch.kernel.origin) {
      if (origin == name) found.push_back(&launch);
    }
  }
  return found;
}

bool Reads(const LoweredForTest& lowered, const Launch& launch, const std::string& name) {
  for (size_t p = 0; p < launch.bindings.size(); ++p) {
    if (launch.kernel.params[p].access == Access::kOut) continue;
    const Binding& b = launch.bindings[p];
    if (b.storage.value >= 0 && lowered.chosen.table.values[b.storage.value].name == name) {
      return true;
    }
    if (b.state >= 0) {
      for (const StepInput& input : lowered.step.inputs) {
        if (input.kind == StepInput::Kind::kState && static_cast<int32_t>(input.state) == b.state &&
            input.field == name) {
          return true;
        }
      }
    }
  }
  return false;
}

std::string Describe(const LoweredForTest& lowered) {
  std::string text;
  for (const Launch& launch : lowered.plan.launches) text += PrintKernel(launch.kernel);
  return text;
}

}  // namespace l3c::l0::lower
