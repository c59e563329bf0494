#include "runtime/init.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "layers/tensor/philox.h"
#include "runtime/normal_draws.h"

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

// A part of a buffer: so many elements, from `first` on.
constexpr int64_t kPart = int64_t{1} << 16;
struct Part {
  const l0::InitOp* op;
  DType dtype;
  std::byte* out;  // of the part
  int64_t first;
  int64_t count;
};

// Draws that are made one by one follow one another from the beginning of the buffer.
bool ComesInParts(const l0::InitOp& op) {
  return op.kind == l0::InitKind::kZeros || op.kind == l0::InitKind::kConstant ||
         (op.kind == l0::InitKind::kNormal && HasVectorDraws());
}

void FillRandom(const Part& part, std::span<float> out) {
  const l0::InitOp& op = *part.op;
  const auto a = static_cast<float>(op.a), b = static_cast<float>(op.b);
  if (op.kind == l0::InitKind::kUniform) {
    tensor::FillUniform(op.seed, op.key, a, b, out);
  } else if (HasVectorDraws()) {
    FillNormalByVectors(op.seed, op.key, static_cast<uint64_t>(part.first), a, b, out);
  } else {
    tensor::FillNormal(op.seed, op.key, a, b, out);
  }
}

void Fill(const Part& part) {
  const l0::InitOp& op = *part.op;
  if (op.kind == l0::InitKind::kZeros) {
    std::memset(part.out, 0, static_cast<size_t>(part.count) * tensor::SizeOf(part.dtype));
  } else if (op.kind == l0::InitKind::kConstant) {
    FillConstant(part.dtype, part.out, part.count, op.a);
  } else if (part.dtype == DType::kF32) {
    FillRandom(part, {reinterpret_cast<float*>(part.out), static_cast<size_t>(part.count)});
  } else {
    // f64: the same draws, widened.
    std::vector<float> draws(static_cast<size_t>(part.count));
    FillRandom(part, draws);
    std::copy(draws.begin(), draws.end(), reinterpret_cast<double*>(part.out));
  }
}

// As a kernel of the team, a block a part.
void FillParts(void* const* params, int64_t begin, int64_t end) {
  const auto* parts = static_cast<const Part*>(params[0]);
  for (int64_t i = begin; i < end; ++i) Fill(parts[i]);
}

}  // namespace

void RunInit(const l0::Plan& plan, const Memory& memory, WorkerTeam& team) {
  std::vector<Part> parts;
  for (const l0::InitOp& op : plan.init) {
    const l0::Buffer& buffer = plan.buffers[op.buffer];
    const int64_t count = tensor::NumElements(buffer.shape);
    const auto element = static_cast<int64_t>(tensor::SizeOf(buffer.dtype));
    const int64_t step = ComesInParts(op) ? kPart : count;
    for (int64_t first = 0; first < count; first += step) {
      parts.push_back({&op, buffer.dtype, memory.Address(op.buffer) + first * element, first,
                       std::min(step, count - first)});
    }
  }
  void* params[] = {parts.data()};
  team.Run(FillParts, params, static_cast<int64_t>(parts.size()));
}

}  // namespace l3c::runtime
