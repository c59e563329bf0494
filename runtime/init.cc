#include "runtime/init.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "layers/tensor/philox.h"

namespace l3c::runtime {
namespace {

using tensor::DType;

template <class T>
void FillAs(std::byte* out, int64_t count, double value) {
  std::fill_n(reinterpret_cast<T*>(out), count, static_cast<T>(value));
}

void FillConstant(DType dtype, std::byte* out, int64_t count, double value) {
  switch (dtype) {
    case DType::kBool:
      return FillAs<uint8_t>(out, count, value != 0 ? 1 : 0);
    case DType::kU8:
      return FillAs<uint8_t>(out, count, value);
    case DType::kI32:
      return FillAs<int32_t>(out, count, value);
    case DType::kI64:
      return FillAs<int64_t>(out, count, value);
    case DType::kU32:
      return FillAs<uint32_t>(out, count, value);
    case DType::kU64:
      return FillAs<uint64_t>(out, count, value);
    case DType::kF32:
      return FillAs<float>(out, count, value);
    case DType::kF64:
      return FillAs<double>(out, count, value);
  }
}

void FillRandom(const l0::InitOp& op, std::span<float> out) {
  const auto a = static_cast<float>(op.a), b = static_cast<float>(op.b);
  if (op.kind == l0::InitKind::kNormal) {
    tensor::FillNormal(op.seed, op.key, a, b, out);
  } else {
    tensor::FillUniform(op.seed, op.key, a, b, out);
  }
}

}  // namespace

void RunInit(const l0::Plan& plan, const Memory& memory) {
  for (const l0::InitOp& op : plan.init) {
    const l0::Buffer& buffer = plan.buffers[op.buffer];
    std::byte* out = memory.Address(op.buffer);
    const int64_t count = tensor::NumElements(buffer.shape);
    if (op.kind == l0::InitKind::kZeros) {
      std::memset(out, 0, static_cast<size_t>(buffer.size));
    } else if (op.kind == l0::InitKind::kConstant) {
      FillConstant(buffer.dtype, out, count, op.a);
    } else if (buffer.dtype == DType::kF32) {
      FillRandom(op, {reinterpret_cast<float*>(out), static_cast<size_t>(count)});
    } else {
      // f64: the same draws, widened.
      std::vector<float> draws(static_cast<size_t>(count));
      FillRandom(op, draws);
      std::copy(draws.begin(), draws.end(), reinterpret_cast<double*>(out));
    }
  }
}

}  // namespace l3c::runtime
