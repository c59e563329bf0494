#include "layers/l0/gpu_launch.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace l3c::l0 {
namespace {

// Of the partial results that the warps of a block exchange; the widest dtype has as many.
constexpr int64_t kSlotBytes = 8;

std::string Quoted(const Axis& axis) { return "'" + axis.name + "'"; }

class Checker {
 public:
  Checker(const Kernel& kernel, const std::vector<AxisSet>& free)
      : kernel_(kernel), free_(free), launch_(*kernel.launch) {}

  std::optional<LaunchFault> Run() {
    CheckFigures();
    if (fault_) return fault_;
    for (UopId id = 0; id < kernel_.uops.size() && !fault_; ++id) {
      const Uop& uop = kernel_.uops[id];
      CheckScope(id);
      if (uop.in_tiles) Fail(id, "sums in tiles are not for threads of a GPU");
      if (uop.staged) Fail(id, "staged values are not for threads of a GPU");
      if (uop.op == UOp::kReduce && Folds(uop)) CheckMeeting(id);
      if (uop.op == UOp::kStore) CheckStore(id);
    }
    return fault_;
  }

 private:
  void Fail(std::optional<UopId> uop, std::string message, bool bound = false) {
    if (!fault_) fault_ = LaunchFault{uop, bound, std::move(message)};
  }

  const Axis& AxisOf(AxisId axis) const { return kernel_.axes[axis]; }

  // The axes of a set that are dealt out along `across`.
  AxisSet Along(AxisSet set, Across across) const {
    AxisSet along = 0;
    for (AxisId axis : AxesIn(set)) {
      if (AxisOf(axis).across == across) along |= AxisBit(axis);
    }
    return along;
  }
  AxisSet DealtOut(AxisSet set) const { return Along(set, Across::kX) | Along(set, Across::kY); }

  bool Folds(const Uop& reduce) const {
    return std::any_of(reduce.axes.begin(), reduce.axes.end(),
                       [&](AxisId axis) { return AxisOf(axis).across != Across::kNone; });
  }

  void CheckFigures() {
    const int64_t threads = launch_.x * launch_.y * launch_.z;
    if (threads > kMaxGpuThreads) {
      return Fail({},
                  "its thread blocks have " + std::to_string(threads) + " threads, more than " +
                      std::to_string(kMaxGpuThreads),
                  true);
    }
    if (!std::has_single_bit(static_cast<uint64_t>(launch_.x))) {
      return Fail({}, "the threads along x are a power of two");
    }
    if (launch_.z > 1 && launch_.x * launch_.y > kGpuWarp) {
      return Fail({}, "blocks lie side by side only where each is of one warp at most");
    }
    const int64_t grid = (NumBlocks(kernel_) + launch_.z - 1) / launch_.z;
    if (grid > kMaxGpuGrid) {
      return Fail({}, "it has more than " + std::to_string(kMaxGpuGrid) + " thread blocks", true);
    }
    if (launch_.grid != grid) {
      return Fail({}, "its grid has " + std::to_string(grid) + " thread blocks, not " +
                          std::to_string(launch_.grid));
    }
    const int64_t shared = SharedBytes(kernel_, {launch_.arch, launch_.x, launch_.y, launch_.z});
    if (shared > kMaxGpuShared) {
      return Fail({},
                  "its threads share " + std::to_string(shared) + " bytes, more than " +
                      std::to_string(kMaxGpuShared),
                  true);
    }
    if (launch_.shared != shared) {
      return Fail({}, "its threads share " + std::to_string(shared) + " bytes, not " +
                          std::to_string(launch_.shared));
    }
    for (const Axis& axis : kernel_.axes) {
      if (axis.kind == AxisKind::kReduce && axis.across == Across::kY) {
        return Fail({}, "axis " + Quoted(axis) + " is summed along y; sums are folded along x");
      }
    }
  }

  void CheckScope(UopId id) {
    const Uop& uop = kernel_.uops[id];
    AxisSet set = free_[id];
    if (uop.op == UOp::kReduce) {
      set |= free_[uop.src[0]];
      for (AxisId axis : uop.axes) set |= AxisBit(axis);
    }
    for (Across across : {Across::kX, Across::kY}) {
      const std::vector<AxisId> axes = AxesIn(Along(set, across));
      if (axes.size() < 2) continue;
      Fail(id, "axes " + Quoted(AxisOf(axes[0])) + " and " + Quoted(AxisOf(axes[1])) +
                   " are dealt out to the same threads");
    }
  }

  // Everything that reads `id`, itself included.
  std::vector<bool> Readers(UopId id) const {
    std::vector<bool> readers(kernel_.uops.size(), false);
    readers[id] = true;
    for (UopId other = id + 1; other < kernel_.uops.size(); ++other) {
      for (UopId operand : kernel_.uops[other].src) {
        if (readers[operand]) readers[other] = true;
      }
    }
    return readers;
  }

  // Where threads meet, none may be elsewhere: in the loop of an axis that is dealt out some have
  // an iteration more than others.
  void CheckMeeting(UopId id) {
    const std::vector<bool> readers = Readers(id);
    const AxisSet needed = free_[id];
    for (UopId other = 0; other < kernel_.uops.size(); ++other) {
      const Uop& uop = kernel_.uops[other];
      if (!readers[other]) continue;
      AxisSet around = 0;
      if (uop.op == UOp::kStore) {
        for (AxisId axis : AxesIn(free_[other])) {
          if (needed >> axis != 0) around |= AxisBit(axis);
        }
      } else if (uop.op == UOp::kReduce && other != id) {
        AxisSet bound = 0;
        for (AxisId axis : uop.axes) bound |= AxisBit(axis);
        if ((bound & needed) != 0) around = bound;
      }
      if (const AxisSet apart = DealtOut(around)) {
        Fail(id, "its threads meet in the loop of axis " + Quoted(AxisOf(AxesIn(apart).front())) +
                     ", which is dealt out to them");
      }
    }
  }

  void CheckStore(UopId id) {
    const Uop& store = kernel_.uops[id];
    const AxisSet dealt = DealtOut(free_[id]);
    bool read = false;
    bool again = false;
    for (UopId other = 0; other < kernel_.uops.size(); ++other) {
      const Uop& uop = kernel_.uops[other];
      if (uop.param != store.param || other == id) continue;
      read |= uop.op == UOp::kLoad;
      again |= uop.op == UOp::kStore;
    }
    const bool everywhere = (launch_.x == 1 || Along(free_[id], Across::kX) != 0) &&
                            (launch_.y == 1 || Along(free_[id], Across::kY) != 0);
    if (read && !everywhere) {
      return Fail(id, "its threads read what one of them stores to");
    }
    if (dealt == 0) return;
    const Axis& axis = AxisOf(AxesIn(dealt).front());
    if (store.accumulate || again || !IsOneToOne(store, free_[id])) {
      Fail(id, "threads that axis " + Quoted(axis) + " is dealt out to store to the same elements");
    }
  }

  // Different points of the free axes store to different elements: sorted by size, each coefficient
  // exceeds what the smaller terms can add up to.
  bool IsOneToOne(const Uop& store, AxisSet free) const {
    if (IsDynamic(store) || free != AxesOf(store.index)) return false;
    std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient, extent
    for (const auto& [axis, coefficient] : store.index.terms) {
      terms.emplace_back(std::abs(coefficient), AxisOf(axis).extent);
    }
    std::sort(terms.begin(), terms.end());
    int64_t reach = 0;
    for (const auto& [coefficient, extent] : terms) {
      if (extent <= 1) continue;
      if (coefficient <= reach) return false;
      reach += coefficient * (extent - 1);
    }
    return true;
  }

  const Kernel& kernel_;
  const std::vector<AxisSet>& free_;
  const GpuLaunch launch_;
  std::optional<LaunchFault> fault_;
};

}  // namespace

int64_t ThreadsAlong(const GpuLaunch& launch, Across across) {
  return across == Across::kX ? launch.x : across == Across::kY ? launch.y : 1;
}

int64_t SharedBytes(const Kernel& kernel, const GpuThreads& threads) {
  if (threads.x <= kGpuWarp) return 0;
  for (const Uop& uop : kernel.uops) {
    if (uop.op != UOp::kReduce) continue;
    for (AxisId axis : uop.axes) {
      if (kernel.axes[axis].across == Across::kX) {
        return threads.x / kGpuWarp * threads.y * kSlotBytes;
      }
    }
  }
  return 0;
}

std::optional<GpuLaunch> LaunchOf(const Kernel& kernel, const std::optional<GpuThreads>& threads) {
  if (!threads) return std::nullopt;
  GpuLaunch launch;
  launch.arch = threads->arch;
  launch.x = threads->x;
  launch.y = threads->y;
  launch.z = threads->z;
  launch.grid = (NumBlocks(kernel) + launch.z - 1) / launch.z;
  launch.shared = SharedBytes(kernel, *threads);
  return launch;
}

std::optional<LaunchFault> CheckLaunch(const Kernel& kernel, const std::vector<AxisSet>& free) {
  if (kernel.launch) return Checker(kernel, free).Run();
  for (const Axis& axis : kernel.axes) {
    if (axis.across == Across::kNone) continue;
    return LaunchFault{
        {}, false, "axis " + Quoted(axis) + " is dealt out to threads, but there is no launch"};
  }
  return std::nullopt;
}

}  // namespace l3c::l0
