#include "layers/tensor/dtype.h"

#include <array>

namespace l3c::tensor {
namespace {

struct Entry {
  std::string_view name;
  size_t size;
  bool is_float;
};

// In the order of the enumeration.
constexpr std::array<Entry, 8> kEntries = {{{"bool", 1, false},
                                            {"u8", 1, false},
                                            {"i32", 4, false},
                                            {"i64", 8, false},
                                            {"u32", 4, false},
                                            {"u64", 8, false},
                                            {"f32", 4, true},
                                            {"f64", 8, true}}};

const Entry& EntryOf(DType dtype) { return kEntries[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view DTypeName(DType dtype) { return EntryOf(dtype).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

size_t SizeOf(DType dtype) { return EntryOf(dtype).size; }
bool IsFloat(DType dtype) { return EntryOf(dtype).is_float; }

int64_t NumElements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string ShapeToString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace l3c::tensor
