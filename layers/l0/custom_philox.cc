#include "layers/l0/custom_op.h"
#include "layers/tensor/philox.h"

namespace l3c::l0 {

CustomOp PhiloxOp() {
  CustomOp op;
  op.name = kPhilox;
  op.operands = {DType::kU64, DType::kI64};
  op.work = [](std::span<const tensor::Shape* const>) {
    KernelWork work;
    work.simple_flops = 100;  // ten rounds of two products
    return work;
  };
  op.evaluate = [](const CustomArguments& given) {
    return Number{.f = tensor::UniformAt(static_cast<uint64_t>(given.operands[0].i),
                                         static_cast<uint64_t>(given.operands[1].i))};
  };
  return op;
}

}  // namespace l3c::l0
