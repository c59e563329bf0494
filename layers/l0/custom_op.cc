#include "layers/l0/custom_op.h"

#include <algorithm>

namespace l3c::l0 {

std::span<const CustomOp> CustomOps() {
  static const std::vector<CustomOp> ops = {
      PhiloxOp(),
      Bf16PairOp(),
      Bf16DotOp(),
      CsrDotOp(),
  };
  return ops;
}

const CustomOp* FindCustomOp(std::string_view name) {
  const std::span<const CustomOp> ops = CustomOps();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const CustomOp& op) { return op.name == name; });
  return found == ops.end() ? nullptr : &*found;
}

std::vector<const tensor::Shape*> CustomShapes(const Kernel& kernel, const Uop& uop) {
  std::vector<const tensor::Shape*> shapes;
  for (uint32_t param : uop.memory) shapes.push_back(&kernel.params[param].shape);
  return shapes;
}

}  // namespace l3c::l0
