// Kernels run by the UOp interpreter: slow, complete, and the oracle of every backend.
#pragma once

#include <memory>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::runtime {

class InterpreterKernels : public KernelTable {
 public:
  // `plan` must outlive the table.
  explicit InterpreterKernels(const l0::Plan& plan);
  ~InterpreterKernels() override;

  KernelFn Find(l0::KernelId kernel) const override;
  void* Context(l0::KernelId kernel) const override;

 private:
  struct Entry;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace l3c::runtime
