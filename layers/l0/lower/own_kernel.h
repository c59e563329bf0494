// A value that a kernel of the user's computes: #[l0::kernel("FILE")] before a `let` of L1.
//
// It is opaque to everything above L0. The step's graph has it as an input that is made from others
// of its values (step.h), so that no rule looks inside and no kernel computes it but its own; its
// operands and itself are kept in memory. What it means is a graph of its own, which has to make
// one kernel. That kernel's UOps, on one block, are what the file is held against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_code.h"
#include "layers/support/diagnostics.h"
#include "layers/support/escape_hatch.h"
#include "layers/tensor/graph.h"

namespace l3c::l0::lower {

struct OwnKernel {
  static constexpr size_t kMaxOperands = 3;

  std::string name;                      // of the let
  tensor::NodeId node = 0;               // an input of the step's graph
  std::vector<tensor::NodeId> operands;  // of the step's graph; each once
  tensor::Graph meaning;                 // its inputs are the operands, its output the value
  support::EscapeHatch hatch;
  // Known when MakeOwnKernel has run.
  Kernel kernel;  // its parameters are the operands in order, then the value
  std::optional<KernelCode> code;
};

}  // namespace l3c::l0::lower
