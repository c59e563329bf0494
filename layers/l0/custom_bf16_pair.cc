#include "layers/l0/custom_op.h"
#include "layers/tensor/bf16.h"

namespace l3c::l0 {

CustomOp Bf16PairOp() {
  CustomOp op;
  op.name = kBf16Pair;
  op.operands = {DType::kF32, DType::kF32};
  op.result = DType::kU32;
  op.work = [](std::span<const tensor::Shape* const>) {
    KernelWork work;
    work.simple_flops = 6;  // two roundings and a shift
    return work;
  };
  op.evaluate = [](const CustomArguments& given) {
    return Number{.i = tensor::Bf16Pair(static_cast<float>(given.operands[0].f),
                                        static_cast<float>(given.operands[1].f))};
  };
  return op;
}

}  // namespace l3c::l0
