#include "layers/l0/control.h"

namespace l3c::l0 {

bool HasResult(ControlOp op) {
  return op == ControlOp::kLoad || op == ControlOp::kHash || op == ControlOp::kArith ||
         op == ControlOp::kCmp || op == ControlOp::kQueuePop;
}

std::vector<Operand> Reads(const ControlInstruction& instruction) {
  switch (instruction.op) {
    case ControlOp::kLoad:
    case ControlOp::kHash:
    case ControlOp::kBranch:
    case ControlOp::kQueuePush:
      return {instruction.a};
    case ControlOp::kStore:
    case ControlOp::kArith:
    case ControlOp::kCmp:
      return {instruction.a, instruction.b};
    case ControlOp::kJump:
    case ControlOp::kQueuePop:
    case ControlOp::kTerminate:
      break;
  }
  return {};
}

bool Holds(CmpOp op, int64_t a, int64_t b) {
  switch (op) {
    case CmpOp::kEq:
      return a == b;
    case CmpOp::kNe:
      return a != b;
    case CmpOp::kLt:
      return a < b;
    case CmpOp::kGt:
      return a > b;
  }
  return false;
}

}  // namespace l3c::l0
