#include "layers/l0/lower/launch_order.h"

#include <gtest/gtest.h>

#include <deque>

namespace l3c::l0::lower {
namespace {

// A list of launches, each of what it reads and makes; values are f32 vectors.
class Step {
 public:
  ValueId Add(int64_t elements) {
    Value value;
    value.shape = {elements};
    table_.values.push_back(value);
    return static_cast<ValueId>(table_.values.size() - 1);
  }

  void Launch(const std::vector<ValueId>& reads, const std::vector<ValueId>& makes) {
    Kernel& kernel = kernels_.emplace_back();
    std::vector<Binding>& bindings = bindings_.emplace_back();
    const auto use = [&](ValueId value, Access access) {
      kernel.params.push_back({"p", access, DType::kF32, table_.values[value].shape});
      bindings.push_back({{value, 0, 0}, -1});
    };
    for (ValueId value : reads) use(value, Access::kIn);
    for (ValueId value : makes) use(value, Access::kOut);
    launches_.push_back({&kernel, &bindings});
  }

  std::vector<size_t> Order() const { return OrderLaunches(launches_, table_).value(); }

 private:
  ValueTable table_;
  std::deque<Kernel> kernels_;
  std::deque<std::vector<Binding>> bindings_;
  std::vector<LaunchToOrder> launches_;
};

TEST(OrderLaunches, WhatIsLargeIsMadeWhereItIsRead) {
  Step step;
  const ValueId small = step.Add(1), large = step.Add(100), end = step.Add(1), last = step.Add(1);
  step.Launch({}, {large});
  step.Launch({}, {small});
  step.Launch({small}, {end});
  step.Launch({end, large}, {last});
  EXPECT_EQ(step.Order(), (std::vector<size_t>{1, 2, 0, 3}));
}

// Sums over rows, of many small products: each is scaled as soon as it is there, though what makes
// the next product would free more.
TEST(OrderLaunches, WhatFreesMemoryDoesNotWait) {
  Step step;
  const ValueId rows = step.Add(16), scale = step.Add(1);
  std::vector<ValueId> scaled;
  for (int i = 0; i < 4; ++i) {
    const ValueId product = step.Add(48), sums = step.Add(16);
    scaled.push_back(step.Add(1));
    step.Launch({}, {product});
    step.Launch({product}, {sums});
    step.Launch({sums, scale}, {scaled.back()});
  }
  step.Launch({}, {rows});
  step.Launch({rows}, {scale});
  step.Launch(scaled, {step.Add(1)});
  EXPECT_EQ(step.Order(), (std::vector<size_t>{12, 13, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14}));
}

}  // namespace
}  // namespace l3c::l0::lower
