// The buffers of a kernel, filled at random, and how the results of two ways to run it compare.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "layers/l0/kernel.h"

namespace l3c::testing {

// The buffers of one launch. Padding behind each catches stores out of bounds.
class Buffers {
 public:
  static constexpr size_t kGuard = 256;

  Buffers(const l0::Kernel& kernel, uint32_t seed) : kernel_(&kernel) {
    std::mt19937 random(seed);
    for (const l0::Param& param : kernel.params) {
      const size_t count = static_cast<size_t>(tensor::NumElements(param.shape));
      std::vector<std::byte> data(count * tensor::SizeOf(param.dtype) + kGuard, std::byte{0xcd});
      for (size_t i = 0; i < count; ++i) Fill(data.data(), i, param.dtype, random);
      data_.push_back(std::move(data));
    }
  }

  std::vector<void*> Pointers() {
    std::vector<void*> pointers;
    for (auto& data : data_) pointers.push_back(data.data());
    return pointers;
  }

  template <typename T>
  T* Data(size_t param) {
    return reinterpret_cast<T*>(data_[param].data());
  }
  size_t Count(size_t param) const {
    return static_cast<size_t>(tensor::NumElements(kernel_->params[param].shape));
  }

  bool operator==(const Buffers& other) const { return data_ == other.data_; }

  void ExpectGuards() const {
    for (size_t p = 0; p < data_.size(); ++p) {
      for (size_t i = data_[p].size() - kGuard; i < data_[p].size(); ++i) {
        ASSERT_EQ(data_[p][i], std::byte{0xcd}) << kernel_->params[p].name << " overrun";
      }
    }
  }

  // Norm-wise for floats (NaN and infinities in the same places), equal for the rest.
  void ExpectNear(Buffers& other, double tolerance) {
    for (size_t p = 0; p < data_.size(); ++p) {
      const std::string& name = kernel_->params[p].name;
      if (kernel_->params[p].dtype == tensor::DType::kF32) {
        CompareFloats(Data<float>(p), other.Data<float>(p), Count(p), tolerance, name);
      } else if (kernel_->params[p].dtype == tensor::DType::kF64) {
        CompareFloats(Data<double>(p), other.Data<double>(p), Count(p), tolerance, name);
      } else {
        EXPECT_EQ(data_[p], other.data_[p]) << name;
      }
    }
  }

 private:
  static void Fill(std::byte* data, size_t i, tensor::DType dtype, std::mt19937& random) {
    std::uniform_real_distribution<double> real(-2, 2);
    std::uniform_int_distribution<int> small(-9, 40);
    switch (dtype) {
      case tensor::DType::kBool:
        reinterpret_cast<uint8_t*>(data)[i] = small(random) & 1;
        break;
      case tensor::DType::kU8:
        reinterpret_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(small(random));
        break;
      case tensor::DType::kI32:
      case tensor::DType::kU32:
        reinterpret_cast<int32_t*>(data)[i] = small(random);
        break;
      case tensor::DType::kI64:
      case tensor::DType::kU64:
        reinterpret_cast<int64_t*>(data)[i] = small(random);
        break;
      case tensor::DType::kF32:
        reinterpret_cast<float*>(data)[i] = static_cast<float>(real(random));
        break;
      case tensor::DType::kF64:
        reinterpret_cast<double*>(data)[i] = real(random);
        break;
    }
  }

  template <typename T>
  static void CompareFloats(const T* x, const T* y, size_t count, double tolerance,
                            const std::string& name) {
    double norm = 0;
    double difference = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
        ASSERT_TRUE(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))
            << name << "[" << i << "]: " << x[i] << " and " << y[i];
        continue;
      }
      norm += static_cast<double>(x[i]) * x[i];
      difference += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
    }
    // Elements are sums of terms of about one, which may cancel.
    const double scale = std::sqrt(norm) + std::sqrt(static_cast<double>(count));
    EXPECT_LE(std::sqrt(difference), tolerance * scale) << name;
  }

  const l0::Kernel* kernel_;
  std::vector<std::vector<std::byte>> data_;
};

}  // namespace l3c::testing
