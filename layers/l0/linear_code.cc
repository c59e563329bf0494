#include "layers/l0/linear_code.h"

#include <utility>

namespace l3c::l0 {

LinearOp LinearCode::Op(UOp op) {
  LinearOp linear;
  linear.op = op;
  return linear;
}

Reg LinearCode::NewReg(DType dtype, int64_t lanes) {
  out_.registers.push_back({dtype, static_cast<uint16_t>(lanes), 0, false});
  return static_cast<Reg>(out_.registers.size() - 1);
}

Reg LinearCode::NewTile(DType dtype, int64_t rows, int64_t lanes) {
  const Reg reg = NewReg(dtype, lanes);
  out_.registers[reg].rows = static_cast<uint16_t>(rows);
  return reg;
}

void LinearCode::Append(const LinearOp& op) {
  if (out_.ops.size() >= kMaxLinearOps) {
    full_ = true;
    return;
  }
  out_.ops.push_back(op);
}

Reg LinearCode::Append(LinearOp op, DType dtype, int64_t lanes) {
  op.dst = NewReg(dtype, lanes);
  Append(op);
  return op.dst;
}

void LinearCode::Assign(LinearOp op, Reg dst) {
  op.dst = dst;
  out_.registers[dst].reassigned = true;
  Append(op);
}

Reg LinearCode::Unary(UOp op, Reg a, DType dtype, int64_t lanes) {
  LinearOp linear = Op(op);
  linear.a = a;
  return Append(linear, dtype, lanes);
}

Reg LinearCode::Binary(UOp op, Reg a, Reg b, DType dtype, int64_t lanes) {
  LinearOp linear = Op(op);
  linear.a = a;
  linear.b = b;
  return Append(linear, dtype, lanes);
}

Reg LinearCode::Scaled(Reg a, Reg b, int64_t scale, int64_t offset) {
  LinearOp op = Op(UOp::kIndex);
  op.a = a;
  op.b = b;
  op.scale = scale;
  op.offset = offset;
  return Append(op, DType::kI64, 1);
}

Reg LinearCode::IntConst(int64_t value) {
  LinearOp op = Op(UOp::kConst);
  op.integer = value;
  return Append(op, DType::kI64, 1);
}

Reg LinearCode::BoolConst(bool value) {
  LinearOp op = Op(UOp::kConst);
  op.integer = value ? 1 : 0;
  return Append(op, DType::kBool, 1);
}

}  // namespace l3c::l0
