// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace l3c::tensor {

enum class DType : uint8_t { kBool, kU8, kI32, kI64, kU32, kU64, kF32, kF64 };

std::string_view DTypeName(DType dtype);  // "bool", "u8", …, "f64"
std::optional<DType> ParseDType(std::string_view name);
size_t SizeOf(DType dtype);  // bytes; bool takes one
bool IsFloat(DType dtype);

// Extents, outermost first. A scalar has the empty shape.
using Shape = std::vector<int64_t>;

// Product of the extents (1 for a scalar). Shapes are bounded when a graph is built
// (kMaxRank, kMaxElements), so this cannot overflow.
int64_t NumElements(const Shape& shape);
std::string ShapeToString(const Shape& shape);  // "[128, 784]"
inline constexpr int kMaxRank = 8;
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

}  // namespace l3c::tensor
