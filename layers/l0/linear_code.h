// The list of a linear kernel while it grows: registers and ops, and the arithmetic that is
// appended often.
#pragma once

#include <cstdint>

#include "layers/l0/linearize.h"

namespace l3c::l0 {

class LinearCode {
 public:
  static LinearOp Op(UOp op);
  Reg NewReg(DType dtype, int64_t lanes);
  Reg NewTile(DType dtype, int64_t rows, int64_t lanes);
  void Append(const LinearOp& op);
  Reg Append(LinearOp op, DType dtype, int64_t lanes);
  void Assign(LinearOp op, Reg dst);
  Reg Unary(UOp op, Reg a, DType dtype, int64_t lanes);
  Reg Binary(UOp op, Reg a, Reg b, DType dtype, int64_t lanes);
  // a + scale·b + offset
  Reg Scaled(Reg a, Reg b, int64_t scale, int64_t offset);
  Reg IntConst(int64_t value);
  Reg BoolConst(bool value);

 protected:
  LinearKernel out_;
  bool full_ = false;
};

}  // namespace l3c::l0
