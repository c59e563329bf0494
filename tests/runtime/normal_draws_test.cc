// Many draws at a time are those that come one by one, to the bit.
#include "runtime/normal_draws.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "layers/tensor/philox.h"

namespace l3c::runtime {
namespace {

TEST(NormalDraws, AreThoseOfTheStreamToTheBit) {
  if (!HasVectorDraws()) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const uint64_t stream : {uint64_t{3}, (uint64_t{5} << 40) + 9}) {
    const uint64_t seed = 0x0123456789abcdef + stream;
    std::vector<float> one_by_one(20'001);
    tensor::FillNormal(seed, stream, 0.25f, 0.125f, one_by_one);
    std::vector<float> parts(one_by_one.size());
    const std::span<float> all(parts);
    FillNormalByVectors(seed, stream, 0, 0.25f, 0.125f, all.subspan(0, 64));
    FillNormalByVectors(seed, stream, 64, 0.25f, 0.125f, all.subspan(64));
    EXPECT_EQ(std::memcmp(parts.data(), one_by_one.data(), 4 * parts.size()), 0);
  }
}

}  // namespace
}  // namespace l3c::runtime
