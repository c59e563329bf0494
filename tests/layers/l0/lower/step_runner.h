// Runs what the lowering made of a tensor program with the UOp interpreter, and the tensor
// interpreter beside it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/step.h"
#include "layers/l0/lower/step_plan.h"
#include "layers/tensor/interpreter.h"

namespace l3c::l0::lower {

// A step from a graph: inputs named "s_…" are state, others batch fields; outputs named "s_…" are
// the new state, others are reported.
Step StepOf(const tensor::Graph& graph);

struct LoweredForTest {
  Step step;
  ChooseResult chosen;
  StepPlan plan;
  search::Explanation explanation;
};

struct TestOptions {
  search::Mode mode = search::Mode::kEGraph;
  search::ForcedChoices forced;
  bool explain = false;
  RuleSources rules = EmbeddedRules();
  int64_t cores = 2;
  search::Budget budget;
  egraph::Numerics numerics = egraph::Numerics::kReassoc;
  std::vector<std::string> features;  // of the machine; empty: all that is known of
};

// Fails the test and gives nothing when there is no plan; `failure` then says why.
std::optional<LoweredForTest> LowerForTest(const tensor::Graph& graph, const TestOptions& options,
                                           std::string* failure = nullptr);
std::optional<LoweredForTest> LowerForTest(Step step, const TestOptions& options,
                                           std::string* failure = nullptr);

// Runs a kernel over all of its blocks.
using KernelRunner = std::function<void(const Kernel& kernel, void* const* params)>;
void InterpretKernel(const Kernel& kernel, void* const* params);

// The outputs, in the order of the step. Checks every kernel with VerifyKernel.
std::vector<tensor::Array> RunLowered(const LoweredForTest& lowered,
                                      const std::vector<tensor::Array>& inputs,
                                      const KernelRunner& run = InterpretKernel);

// Random inputs for a graph: floats normal, integers small and not negative.
std::vector<tensor::Array> RandomInputs(const tensor::Graph& graph, uint64_t seed);

// Lowers, runs and compares with the tensor interpreter, norm-wise 1e-5.
void ExpectSameAsInterpreter(const tensor::Graph& graph, const TestOptions& options, uint64_t seed);

// Kernels whose stores include a value of the name.
std::vector<const Launch*> KernelsStoring(const LoweredForTest& lowered, const std::string& name);
bool Reads(const LoweredForTest& lowered, const Launch& launch, const std::string& name);
std::string Describe(const LoweredForTest& lowered);

}  // namespace l3c::l0::lower
