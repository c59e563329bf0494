#include "layers/l0/kernel.h"

#include <algorithm>

#include "layers/l0/custom_op.h"
#include "layers/l0/kernel_axes.h"

namespace l3c::l0 {
namespace {

double PointsOf(const Kernel& kernel, AxisSet set) {
  double points = 1;
  for (AxisId axis : AxesIn(set)) points *= static_cast<double>(kernel.axes[axis].extent);
  return points;
}

double ElementsOf(const Param& param) {
  double elements = 1;
  for (int64_t extent : param.shape) elements *= static_cast<double>(extent);
  return elements;
}

}  // namespace

bool IsProduct(const Uop& uop) {
  if (uop.op == UOp::kCustom) return uop.custom == kBf16Dot;
  return uop.op == UOp::kMul && tensor::IsFloat(uop.dtype);
}

int64_t NumBlocks(const Kernel& kernel) {
  int64_t blocks = 1;
  for (const Axis& axis : kernel.axes) {
    if (axis.kind != AxisKind::kGrid) continue;
    blocks *= (axis.extent + axis.block - 1) / axis.block;
  }
  return blocks;
}

std::vector<ParamBytes> CountBytes(const Kernel& kernel) {
  const std::vector<AxisSet> free = FreeAxes(kernel);
  std::vector<ParamBytes> counted(kernel.params.size());
  for (UopId id = 0; id < kernel.uops.size(); ++id) {
    const Uop& uop = kernel.uops[id];
    if (uop.op == UOp::kCustom && !uop.memory.empty()) {
      const auto ranges = FindCustomOp(uop.custom)->footprint(CustomShapes(kernel, uop));
      for (size_t i = 0; i < ranges.size(); ++i) {
        const Param& param = kernel.params[uop.memory[i]];
        const auto element = static_cast<double>(SizeOf(param.dtype));
        ParamBytes& own = counted[uop.memory[i]];
        own.read =
            std::min(ElementsOf(param) * element,
                     own.read + element * static_cast<double>(ranges[i].end - ranges[i].begin));
      }
    }
    if (uop.op != UOp::kLoad && uop.op != UOp::kStore) continue;
    const Param& param = kernel.params[uop.param];
    const auto element = static_cast<double>(SizeOf(param.dtype));
    const double bytes = PointsOf(kernel, free[id]) * element;
    const double most = ElementsOf(param) * element;
    ParamBytes& own = counted[uop.param];
    if (uop.op == UOp::kLoad || uop.accumulate) own.read = std::min(most, own.read + bytes);
    if (uop.op == UOp::kStore) own.written = std::min(most, own.written + bytes);
  }
  return counted;
}

namespace {

constexpr AxisSet kAllAxes = ~AxisSet{0};

// Of the uops that are evaluated over one of `along`.
KernelWork CountOperations(const Kernel& kernel, AxisSet along) {
  const std::vector<AxisSet> free = FreeAxes(kernel);
  KernelWork work;

  std::vector<int> uses(kernel.uops.size(), 0);
  for (const Uop& uop : kernel.uops) {
    for (UopId operand : uop.src) ++uses[operand];
  }
  // A product that only a sum reads costs nothing beside that sum's multiply-add.
  const auto fuses = [&](UopId product) {
    return IsProduct(kernel.uops[product]) && uses[product] == 1;
  };

  for (UopId id = 0; id < kernel.uops.size(); ++id) {
    const Uop& uop = kernel.uops[id];
    AxisSet scope = free[id];
    for (AxisId axis : uop.axes) scope |= AxisBit(axis);
    if ((scope & along) == 0 && along != kAllAxes) continue;
    const double points = PointsOf(kernel, scope);
    switch (uop.op) {
      case UOp::kStore:
        if (uop.accumulate) work.simple_flops += points;
        break;
      case UOp::kAdd:
      case UOp::kReduce: {
        bool multiply_add = false;
        bool pairs = false;
        if (uop.op == UOp::kAdd || uop.fold == Fold::kAdd) {
          for (UopId operand : uop.src) {
            if (multiply_add || !fuses(operand)) continue;
            multiply_add = true;
            pairs = kernel.uops[operand].op == UOp::kCustom;
            (pairs ? work.bf16_dots : work.simple_flops) -= PointsOf(kernel, free[operand]);
          }
        }
        (pairs ? work.bf16_dots : multiply_add ? work.multiply_adds : work.simple_flops) += points;
        break;
      }
      case UOp::kReciprocal:
      case UOp::kSqrt:
      case UOp::kMod:
        work.divides += points;
        break;
      case UOp::kExp2:
      case UOp::kLog2:
      case UOp::kSin:
        work.transcendentals += points;
        break;
      case UOp::kCustom: {
        const KernelWork once = FindCustomOp(uop.custom)->work(CustomShapes(kernel, uop));
        work.multiply_adds += once.multiply_adds * points;
        work.bf16_dots += once.bf16_dots * points;
        work.simple_flops += once.simple_flops * points;
        work.divides += once.divides * points;
        work.transcendentals += once.transcendentals * points;
        break;
      }
      case UOp::kMul:
      case UOp::kNeg:
      case UOp::kMax:
      case UOp::kCmpLt:
      case UOp::kCmpNe:
      case UOp::kWhere:
      case UOp::kCast:
        work.simple_flops += points;
        break;
      default:
        break;
    }
  }
  work.simple_flops = std::max(work.simple_flops, 0.0);
  return work;
}

}  // namespace

KernelWork CountWork(const Kernel& kernel) {
  KernelWork work = CountOperations(kernel, kAllAxes);
  for (const ParamBytes& bytes : CountBytes(kernel)) {
    work.bytes_read += bytes.read;
    work.bytes_written += bytes.written;
  }
  return work;
}

KernelWork CountWork(const Kernel& kernel, const std::vector<AxisId>& along) {
  AxisSet axes = 0;
  for (AxisId axis : along) axes |= AxisBit(axis);
  return CountOperations(kernel, axes);
}

}  // namespace l3c::l0
