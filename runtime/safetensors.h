// The safetensors format: eight bytes of header length (little-endian), a JSON header of
// name → { dtype, shape, data_offsets }, then the tensors' bytes without gaps.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/tensor/dtype.h"

namespace l3c::runtime {

struct TensorView {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  std::span<const std::byte> bytes;
};

// Writes the file, in this order, syncs it, and returns its SHA-256.
absl::StatusOr<std::string> WriteSafetensors(const std::string& path,
                                             const std::vector<TensorView>& tensors);

struct StoredTensor {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  std::vector<std::byte> bytes;
};

// Everything is checked: lengths, offsets, types. Messages begin with the path.
absl::StatusOr<std::map<std::string, StoredTensor>> ReadSafetensors(const std::string& path);

}  // namespace l3c::runtime
