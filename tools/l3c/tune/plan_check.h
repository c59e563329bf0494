// Whether the code of a plan computes what its kernels mean.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::tools::tune {

// Runs some training steps on random data and holds the code of every kernel that they call, but
// those in `known`, against the interpreter (checking_kernels.h). Kernels that hold are added to
// `known`, by the digest of their text. Kernels that no training step calls are tried on random
// operands (code_trial.h) where `best` does not have them. "" where all hold; else the kernel and
// how it differs, or why it could not be compared.
std::string CheckKernels(const l0::Plan& plan, const runtime::KernelTable& kernels,
                         const l0::Plan& best, const std::string& numerics,
                         std::set<std::string>& known);

// The losses of the first steps of two plans of one program on the same data, within what the class
// of numerics allows. "" where they agree.
std::string CompareSums(const std::vector<double>& expected, const std::vector<double>& found,
                        const std::string& numerics);

}  // namespace l3c::tools::tune
