// Whether the code of a plan computes what its kernels mean.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::tools::tune {

// Holds the code of every kernel that is not in `known` against the interpreter of its UOps, on
// random operands: in full where that takes a moment, else on some blocks of its iteration space,
// among them the first and the last one along every axis, where tails and masks are. Kernels that
// hold are added to `known`, by the digest of their text. "" where all do; else the kernel and how
// it differs, or why it could not be compared.
std::string CheckKernels(const l0::Plan& plan, const runtime::KernelTable& kernels, bool fast,
                         std::set<std::string>& known);

// The losses of the first steps of two plans of one program on the same data, within what the class
// of numerics allows. "" where they agree.
std::string CompareSums(const std::vector<double>& expected, const std::vector<double>& found,
                        const std::string& numerics);

}  // namespace l3c::tools::tune
