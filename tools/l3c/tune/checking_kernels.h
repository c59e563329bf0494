// A kernel table that holds the code of another one against the interpreter while steps run.
//
// Each kernel is looked at once, at its second call, when state and operands are those of training:
// the interpreter computes some points of it from a copy of the operands, always the first and the
// last one along every grid axis, where tails and masks are, and what the code gave there is
// compared; sums within a point are whole. The interpreter runs in f32 and in f64; the code may be
// as far from the latter as the class of numerics allows, or four times as far as the interpreter
// in f32 is, where the operands leave no more.
//
// Kernels must be called by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::tools::tune {

class CheckingKernels : public runtime::KernelTable {
 public:
  // Both must outlive the table. `tolerance`: norm-wise, of what a kernel writes to a buffer.
  // `skip`: kernels that are not looked at.
  CheckingKernels(const l0::Plan& plan, const runtime::KernelTable& kernels, double tolerance,
                  const std::vector<bool>& skip);
  ~CheckingKernels() override;

  runtime::KernelFn Find(l0::KernelId kernel) const override;
  void* Context(l0::KernelId kernel) const override;

  // After the run: whether all that was looked for of the kernel was compared.
  bool Compared(l0::KernelId kernel) const;
  std::string Fault() const;  // of the first kernel that differs; "" where none does

 private:
  struct Entry;
  static void Call(void* const* params, int64_t begin, int64_t end);

  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace l3c::tools::tune
