#include "layers/l0/stored_elements.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "layers/l0/kernel_axes.h"
#include "layers/tensor/dtype.h"

namespace l3c::l0 {
namespace {

ElementRuns Merged(ElementRuns runs) {
  std::sort(runs.begin(), runs.end());
  ElementRuns merged;
  for (const auto& run : runs) {
    if (!merged.empty() && run.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, run.second);
    } else {
      merged.push_back(run);
    }
  }
  return merged;
}

struct Step {
  AxisId axis = 0;
  int64_t coefficient = 0;
  int64_t extent = 1;
};

// Walks the points of one store.
class StoreWalk {
 public:
  StoreWalk(const Kernel& kernel, const Uop& store, AxisSet free) : store_(store) {
    first_ = store.index.constant;
    const AxisSet guarded = AxesOf(store.guards);
    for (AxisId axis : AxesIn(free)) {
      const int64_t extent = kernel.axes[axis].extent;
      if (extent <= 0) empty_ = true;
      const int64_t coefficient = CoefficientOf(store.index, axis);
      const bool matters = coefficient != 0 || (guarded & AxisBit(axis)) != 0;
      if (extent > 1 && matters) steps_.push_back({axis, coefficient, extent});
    }
    point_.assign(kernel.axes.size(), 0);
    if (!store.guards.empty()) return;
    // Without guards only the set of offsets counts: every step can go upwards, and steps that
    // follow on each other make one run.
    for (Step& step : steps_) {
      if (step.coefficient > 0) continue;
      first_ += step.coefficient * (step.extent - 1);
      step.coefficient = -step.coefficient;
    }
    std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
      return a.coefficient != b.coefficient ? a.coefficient > b.coefficient : a.axis < b.axis;
    });
    while (!steps_.empty() && steps_.back().coefficient <= run_) {
      run_ += steps_.back().coefficient * (steps_.back().extent - 1);
      steps_.pop_back();
    }
  }

  // Nothing when it would take more than `budget` steps, which it lowers.
  std::optional<ElementRuns> Run(int64_t& budget) {
    if (empty_) return ElementRuns{};
    for (int64_t left = budget; const Step& step : steps_) {
      left /= step.extent;
      if (left <= 0) return std::nullopt;
    }
    Visit(0, first_);
    budget -= visited_;
    return Merged(std::move(runs_));
  }

 private:
  void Visit(size_t depth, int64_t offset) {
    if (depth < steps_.size()) {
      const Step& step = steps_[depth];
      for (int64_t i = 0; i < step.extent; ++i) {
        point_[step.axis] = i;
        Visit(depth + 1, offset + step.coefficient * i);
      }
      return;
    }
    ++visited_;
    for (const Guard& guard : store_.guards) {
      int64_t value = guard.expression.constant;
      for (const auto& [axis, coefficient] : guard.expression.terms) {
        value += coefficient * point_[axis];
      }
      if (value < guard.low || value >= guard.high) return;
    }
    if (!runs_.empty() && runs_.back().second == offset) {
      runs_.back().second += run_;
    } else {
      runs_.push_back({offset, offset + run_});
    }
  }

  const Uop& store_;
  std::vector<Step> steps_;
  std::vector<int64_t> point_;
  int64_t first_ = 0;
  int64_t run_ = 1;
  int64_t visited_ = 0;
  bool empty_ = false;
  ElementRuns runs_;
};

}  // namespace

int64_t CountElements(const ElementRuns& runs) {
  int64_t count = 0;
  for (const auto& [begin, end] : runs) count += end - begin;
  return count;
}

ElementRuns UnionOf(const ElementRuns& a, const ElementRuns& b) {
  ElementRuns both = a;
  both.insert(both.end(), b.begin(), b.end());
  return Merged(std::move(both));
}

ElementRuns StoredElements(const Kernel& kernel, uint32_t param) {
  const ElementRuns all = {{0, tensor::NumElements(kernel.params[param].shape)}};
  const std::vector<AxisSet> free = FreeAxes(kernel);
  ElementRuns stored;
  int64_t budget = kMaxStoreSteps;
  for (size_t id = 0; id < kernel.uops.size(); ++id) {
    const Uop& uop = kernel.uops[id];
    if (uop.op != UOp::kStore || uop.param != param) continue;
    if (IsDynamic(uop)) return all;
    const auto runs = StoreWalk(kernel, uop, free[id]).Run(budget);
    if (!runs) return all;
    stored = UnionOf(stored, *runs);
    if (stored.size() > kMaxElementRuns) return all;
  }
  return stored;
}

}  // namespace l3c::l0
