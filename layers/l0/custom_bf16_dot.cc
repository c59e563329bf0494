#include "layers/l0/custom_op.h"
#include "layers/tensor/bf16.h"

namespace l3c::l0 {

CustomOp Bf16DotOp() {
  CustomOp op;
  op.name = kBf16Dot;
  op.operands = {DType::kU32, DType::kU32};
  op.work = [](std::span<const tensor::Shape* const>) {
    KernelWork work;
    work.bf16_dots = 1;
    return work;
  };
  op.evaluate = [](const CustomArguments& given) {
    const double product = tensor::Bf16Product(static_cast<uint32_t>(given.operands[0].i),
                                               static_cast<uint32_t>(given.operands[1].i));
    return Number{.f = given.widen ? product : static_cast<double>(static_cast<float>(product))};
  };
  return op;
}

}  // namespace l3c::l0
