// Random kernels under random schedules.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_axes.h"

namespace l3c::testing {

// Axes i (grid), j (loop), k and l (reduce); a few loads over random subsets of them, transposed,
// sliced, padded or gathered; a random DAG; reductions; stores over (i, j) and over i.
class RandomKernel {
  using Axis = l0::Axis;
  using AxisId = l0::AxisId;
  using AxisKind = l0::AxisKind;
  using AxisSet = l0::AxisSet;
  using Kernel = l0::Kernel;
  using Uop = l0::Uop;
  using UOp = l0::UOp;
  using UopId = l0::UopId;
  using DType = tensor::DType;

 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {}

  Kernel Float() {
    Begin();
    for (int i = 0; i < 4; ++i) AddLoad(DType::kF32);
    for (int i = 0; i < 10; ++i) AddFloat();
    Finish(DType::kF32);
    return kernel_;
  }

  Kernel Integer(DType dtype) {
    Begin();
    for (int i = 0; i < 3; ++i) AddLoad(dtype);
    for (int i = 0; i < 8; ++i) AddInteger(dtype);
    Finish(dtype);
    return kernel_;
  }

 private:
  int64_t Pick(std::initializer_list<int64_t> choices) {
    return choices.begin()[std::uniform_int_distribution<size_t>(0, choices.size() - 1)(random_)];
  }
  bool Chance(int percent) { return std::uniform_int_distribution<int>(0, 99)(random_) < percent; }

  void Begin() {
    kernel_ = {};
    values_.clear();
    kernel_.name = "random";
    const auto axis = [&](const char* name, AxisKind kind) {
      Axis a;
      a.name = name;
      a.kind = kind;
      a.extent = Pick({1, 2, 3, 7, 10, 16, 17, 33});
      kernel_.axes.push_back(a);
    };
    axis("i", AxisKind::kGrid);
    axis("j", AxisKind::kLoop);
    axis("k", AxisKind::kReduce);
    axis("l", AxisKind::kReduce);
    Schedule();
  }

  void Schedule() {
    auto& axes = kernel_.axes;
    axes[0].block = Pick({1, 2, 5, 40});
    axes[0].tile = Pick({1, 2, 3});
    const int lanes_on = static_cast<int>(Pick({0, 1, 2, 3}));  // none, j, k, i
    axes[1].tile = Pick({1, 2, 3});
    axes[2].tile = Pick({1, 2, 4});
    axes[3].tile = Pick({1, 3});
    if (lanes_on == 0) return;
    Axis& wide = axes[lanes_on == 1 ? 1 : lanes_on == 2 ? 2 : 0];
    wide.vector = Pick({2, 4, 8, 16});
    wide.tile *= wide.vector;
    if (lanes_on == 3) wide.block = Pick({16, 5, 40});
  }

  UopId Append(UOp op, DType dtype, std::vector<UopId> src) {
    Uop uop;
    uop.op = op;
    uop.dtype = dtype;
    uop.src = std::move(src);
    return Append(uop);
  }
  UopId Append(const Uop& uop) {
    kernel_.uops.push_back(uop);
    return static_cast<UopId>(kernel_.uops.size() - 1);
  }
  UopId Const(DType dtype, double number) {
    Uop uop;
    uop.op = UOp::kConst;
    uop.dtype = dtype;
    uop.number = number;
    uop.integer = static_cast<int64_t>(number);
    return Append(uop);
  }

  void AddLoad(DType dtype) {
    std::vector<AxisId> axes;
    for (AxisId axis = 0; axis < 4; ++axis) {
      if (Chance(axis < 2 ? 70 : 40)) axes.push_back(axis);
    }
    std::shuffle(axes.begin(), axes.end(), random_);
    Uop load;
    load.op = UOp::kLoad;
    load.dtype = dtype;
    load.param = static_cast<uint32_t>(kernel_.params.size());
    l0::Param param;
    param.name = "p" + std::to_string(load.param);
    param.dtype = dtype;
    int64_t stride = 1;
    int64_t elements = 1;
    for (size_t d = axes.size(); d-- > 0;) {
      const int64_t extent = kernel_.axes[axes[d]].extent;
      int64_t coefficient = stride;
      int64_t size = extent;
      if (Chance(15)) {  // a slice: every other one, from 1
        coefficient = 2 * stride;
        load.index.constant += stride;
        size = 2 * extent + 1;
      } else if (Chance(15)) {  // padded by one before and after
        size = std::max<int64_t>(extent - 2, 1);
        load.index.constant -= stride;
        load.guards.push_back({{-1, {{axes[d], 1}}}, 0, size});
      } else if (Chance(10)) {  // reversed
        coefficient = -stride;
        load.index.constant += stride * (extent - 1);
      }
      load.index.terms.emplace_back(axes[d], coefficient);
      stride *= size;
      elements *= size;
    }
    std::sort(load.index.terms.begin(), load.index.terms.end());
    if (Chance(15)) {  // gathered rows
      Uop index;
      index.op = UOp::kLoad;
      index.dtype = DType::kI32;
      index.param = load.param;
      l0::Param rows;
      rows.name = param.name + "_rows";
      rows.dtype = DType::kI32;
      const AxisId axis = static_cast<AxisId>(Pick({0, 1, 2}));
      rows.shape = {kernel_.axes[axis].extent};
      index.index.terms = {{axis, 1}};
      kernel_.params.push_back(rows);
      load.param = static_cast<uint32_t>(kernel_.params.size());
      load.src = {Append(index)};
      load.dynamic_stride = elements;
      load.dynamic_extent = 20;
      elements *= 20;
    }
    param.shape = {elements};
    kernel_.params.push_back(param);
    AddValue(Append(load), true);
  }

  // `exact`: no rounding, so that both ways to run agree to the bit and may branch on it.
  void AddValue(UopId id, bool exact) { values_.push_back({id, exact}); }
  struct ValueInfo {
    UopId id;
    bool exact;
  };
  ValueInfo Any() {
    return values_[std::uniform_int_distribution<size_t>(0, values_.size() - 1)(random_)];
  }

  void AddFloat() {
    const DType f = DType::kF32;
    const ValueInfo x = Any();
    const ValueInfo y = Any();
    const bool exact = x.exact && y.exact;
    const UopId safe = Append(UOp::kAdd, f, {Append(UOp::kMul, f, {x.id, x.id}), Const(f, 0.5)});
    switch (Pick({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) {
      case 0:
        return AddValue(Append(UOp::kAdd, f, {x.id, y.id}), false);
      case 1:
        return AddValue(Append(UOp::kMul, f, {x.id, y.id}), false);
      case 2:
        return AddValue(Append(UOp::kMax, f, {x.id, y.id}), exact);
      case 3:
        return AddValue(Append(UOp::kNeg, f, {x.id}), x.exact);
      case 4:
        return AddValue(Append(UOp::kSin, f, {Append(UOp::kReciprocal, f, {safe})}), false);
      case 5:
        return AddValue(Append(UOp::kExp2, f, {Append(UOp::kReciprocal, f, {safe})}), false);
      case 6:
        return AddValue(Append(UOp::kLog2, f, {safe}), false);
      case 7:
        return AddValue(Append(UOp::kSqrt, f, {safe}), false);
      case 8:
        if (!exact) return;
        return AddValue(
            Append(UOp::kWhere, f, {Append(UOp::kCmpLt, DType::kBool, {x.id, y.id}), x.id, y.id}),
            true);
      case 9: {
        if (!x.exact) return;
        const UopId integer = Append(UOp::kCast, DType::kI32, {x.id});
        return AddValue(Append(UOp::kCast, f, {integer}), true);
      }
      case 10: {
        Uop range;
        range.op = UOp::kRange;
        range.dtype = DType::kI64;
        range.axis = static_cast<AxisId>(Pick({0, 1, 2, 3}));
        return AddValue(Append(UOp::kCast, f, {Append(range)}), true);
      }
      default:
        return AddReduce(x.id, f);
    }
  }

  void AddInteger(DType dtype) {
    const UopId x = Any().id;
    const UopId y = Any().id;
    switch (Pick({0, 1, 2, 3, 4, 5, 6, 7})) {
      case 0:
        return AddValue(Append(UOp::kAdd, dtype, {x, y}), true);
      case 1:
        return AddValue(Append(UOp::kMul, dtype, {x, y}), true);
      case 2:
        return AddValue(Append(UOp::kMax, dtype, {x, y}), true);
      case 3:
        if (dtype == DType::kBool) return;
        return AddValue(Append(UOp::kMod, dtype, {x, y}), true);
      case 4:
        if (dtype == DType::kBool) return;
        return AddValue(Append(UOp::kNeg, dtype, {x}), true);
      case 5: {
        const UopId less = Append(UOp::kCmpLt, DType::kBool, {x, y});
        return AddValue(Append(UOp::kWhere, dtype, {less, y, x}), true);
      }
      case 6: {
        const DType other =
            std::vector<DType>{DType::kU8,  DType::kI32, DType::kU32, DType::kI64,
                               DType::kU64, DType::kF64, DType::kBool}[static_cast<size_t>(
                Pick({0, 1, 2, 3, 4, 5, 6}))];
        return AddValue(Append(UOp::kCast, dtype, {Append(UOp::kCast, other, {x})}), true);
      }
      default:
        return AddReduce(x, dtype);
    }
  }

  void AddReduce(UopId operand, DType dtype) {
    const AxisSet bound = l0::FreeAxes(kernel_)[operand] & 0b1100;
    if (bound == 0) return;
    Uop reduce;
    reduce.op = UOp::kReduce;
    reduce.dtype = dtype;
    reduce.src = {operand};
    reduce.axes = l0::AxesIn(bound);
    reduce.fold = Chance(70) ? l0::Fold::kAdd : l0::Fold::kMax;
    AddValue(Append(reduce), false);
  }

  void Store(const char* name, UopId value, std::vector<AxisId> axes) {
    l0::Param param;
    param.name = name;
    param.access = l0::Access::kOut;
    param.dtype = kernel_.uops[value].dtype;
    Uop store;
    store.op = UOp::kStore;
    store.dtype = param.dtype;
    store.param = static_cast<uint32_t>(kernel_.params.size());
    store.src = {value};
    int64_t stride = 1;
    for (size_t d = axes.size(); d-- > 0;) {
      store.index.terms.emplace_back(axes[d], stride);
      stride *= kernel_.axes[axes[d]].extent;
    }
    std::sort(store.index.terms.begin(), store.index.terms.end());
    param.shape = {stride};
    kernel_.params.push_back(param);
    Append(store);
  }

  void Finish(DType dtype) {
    const size_t drawn = values_.size();
    for (size_t i = 0; i < drawn; ++i) AddReduce(values_[i].id, dtype);
    const std::vector<AxisSet> free = l0::FreeAxes(kernel_);
    std::optional<UopId> whole;
    std::optional<UopId> row;
    for (const ValueInfo& value : values_) {
      if (free[value.id] & 0b1100) continue;
      auto& sum = (free[value.id] & 0b10) ? whole : row;
      sum = sum ? Append(UOp::kAdd, dtype, {*sum, value.id}) : value.id;
    }
    if (whole && row && Chance(50)) whole = Append(UOp::kAdd, dtype, {*whole, *row});
    if (!whole && !row) row = Const(dtype, 1);
    if (whole)
      Store("y", *whole, Chance(50) ? std::vector<AxisId>{0, 1} : std::vector<AxisId>{1, 0});
    if (row) Store("z", *row, {0});
  }

  std::mt19937 random_;
  Kernel kernel_;
  std::vector<ValueInfo> values_;
};

}  // namespace l3c::testing
