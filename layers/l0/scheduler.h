// How CandidateSchedules finds the schedules of one kernel.
//
//   kernel_schedule.cc    what a kernel is, and schedules that follow from contiguity alone
//   schedule_matmul.cc    register tiles of products, and what of them is staged
//   schedule_tiles.cc     products of bfloat16 that are made in tiles
//   schedule_threads.cc   for the threads of a GPU
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_schedule.h"

namespace l3c::l0 {

class Scheduler {
 public:
  Scheduler(const Kernel& kernel, const ScheduleTarget& target);

  KernelClass Class() const;

  std::vector<Schedule> Candidates();

 private:
  // A reduction of a product whose factors have axes of their own.
  struct Contraction {
    UopId reduce = 0;
    AxisSet rows = 0;     // axes of factor a alone
    AxisSet columns = 0;  // of factor b alone
    AxisSet batch = 0;    // loop axes of both
    AxisSet bound = 0;
    UopId a = 0;
    UopId b = 0;
  };
  static constexpr size_t kMaxCandidates = 8;

  static int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
  // That is at most `n`, which is at least one.
  static int64_t LargestPowerOfTwo(int64_t n) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
  }
  static AxisSet SetOf(const std::vector<AxisId>& axes) {
    AxisSet set = 0;
    for (AxisId axis : axes) set |= AxisBit(axis);
    return set;
  }
  int64_t Extent(AxisId axis) const { return kernel_.axes[axis].extent; }
  AxisSet AllAxes() const { return (AxisSet{1} << kernel_.axes.size()) - 1; }

  double Points(AxisSet set) const;

  // The axes over which a uop is evaluated.
  AxisSet ScopeOf(UopId id) const;

  // Everything that `root` reads, itself included.
  std::vector<UopId> ConeOf(UopId root) const;

  // How well the accesses among `uops` suit lanes along `axis`: each counts its points, for when
  // its neighbours are neighbours in memory, against when they are not.
  double Contiguity(AxisId axis, const std::vector<UopId>& uops) const;

  std::optional<AxisId> BestOf(AxisSet set, const std::vector<UopId>& uops) const;

  // The reduce axis along which a reduction reads neighbours, if it is better than the loop axes.
  std::optional<AxisId> BestReduceAxis(UopId reduce) const;

  // Where nothing is read along the sum, such as a comparison of each index with a label, its last
  // axis will do, if it is long enough.
  std::optional<AxisId> FreeReduceAxis(UopId reduce) const;

  // ---- Building -----------------------------------------------------------------------------

  Schedule Start(std::string name) const;

  void SetVector(Schedule& schedule, AxisId axis, int64_t registers) const;

  bool HasVector(const Schedule& schedule, AxisSet set) const;

  // Lanes wherever neighbours are contiguous: first along the stores, then along the reductions
  // that have none yet.
  void SetVectors(Schedule& schedule, int64_t registers) const;

  // Lanes along what the stores have side by side, whatever the loads want; one register.
  void SetStoreVectors(Schedule& schedule) const;

  // No value would have lanes along two axes.
  bool VectorFits(const Schedule& schedule, AxisId axis) const;

  // Makes `axis` a grid axis, cut into whole tiles: the largest blocks, up to a few for each
  // worker, with which the worker that gets most finishes soonest.
  void SetGrid(Schedule& schedule, AxisId axis) const;

  // The first axis with enough iterations for all workers, or else the one with the most.
  std::optional<AxisId> GridAxis(const Schedule& schedule) const;

  // Completes the order and the figures; keeps the schedule unless it is illegal (then false) or
  // known already.
  bool Keep(Schedule schedule, std::vector<AxisId> first = {});

  static bool Same(const std::vector<AxisSchedule>& x, const std::vector<AxisSchedule>& y);

  // Of the widest scope: points over (registers × lanes).
  double LaneUse(const Schedule& schedule) const;

  // ---- Elementwise and column sums ----------------------------------------------------------

  void Vectors();

  // An axis along which some load is contiguous that is not so along an axis with lanes: with a
  // tile of it, such loads read whole rows and are transposed in registers.
  std::optional<AxisId> TransposedAxis(const Schedule& schedule) const;

  // ---- Rows ---------------------------------------------------------------------------------

  void Rows();

  // The order of the axes for sums that are added up in memory: those that more of the sums keep
  // outside, so that each stays at one place for as long as it can; the columns innermost.
  std::vector<AxisId> RowsOutside(const Schedule& schedule) const;

  // ---- Matmul -------------------------------------------------------------------------------

  std::optional<Contraction> FindContraction() const;

  AxisId LongestOf(AxisSet set) const;

  void Matmul();

  // Lanes along the columns though they are strided in b; as many rows as registers hold.
  void Gathered(const Contraction& c);

  // Tiles of 16×16 sums (tile_product.h), where the factors lie as they are read.
  void Tiles(const Contraction& c);

  // Accumulators of `rows` × `vectors` registers; a row broadcasts a, the vectors load b.
  void Outer(const Contraction& c, AxisId across);

  // Whether the lines that a tile of `down` reads along the sum share so few sets of the second
  // cache that they are gone when the next tile, in the same lines, wants them: a transposed factor
  // whose rows are a power of two apart.
  bool FallsOnFewSets(const Contraction& c, AxisId down) const;

  // For such a factor: a block of its rows is copied, then a panel of columns for each of the tiles
  // beside it. False where that is illegal or there is no such block.
  bool Blocked(const Schedule& tiled, const Contraction& c, AxisId across, AxisId down);

  // A block of rows of a product whose sum has `sum` points, beside panels of `columns` columns:
  // the largest divisor of the axis, of few bytes and made of tiles of `tile` rows; 0 without one.
  int64_t RowsOfBlock(AxisId down, int64_t tile, double sum, double columns) const;

  // How much longer the busiest worker takes than a fair share, when `extent` is dealt out in
  // tiles.
  double Imbalance(int64_t extent, int64_t tile) const;

  // Cycles for one step of k over the whole output, in units of a vector multiply-add: full tiles
  // and remainders each as long as the slower of multiply-adds, loads (two a cycle, as many as
  // multiply-adds) and the latency of a chain of sums (4 cycles, 2 a cycle: 8 in flight).
  static double OuterCost(int64_t rows, int64_t vectors, int64_t r, int64_t v);

  bool IsStoredAlong(AxisId axis) const;

  // Lanes along the sum; rows × columns accumulators of one register each, whose sums are packed
  // into a register a row where they are stored that way.
  void Dot(Contraction c);

  // `outer` becomes the grid where the stores allow it, else `inner`. False when that is illegal.
  bool AddGrid(const Schedule& schedule, const Contraction& c, AxisId outer, AxisId inner);

  // ---- Threads of a GPU -----------------------------------------------------------------------

  void Threads();

  // A thread for each `vector` neighbours of what is stored; loops and sums run inside of it.
  void ThreadEach(int64_t vector);

  // Threads along x share the sums and the loops of a row, of which `z` lie side by side.
  void ThreadRows(const GpuThreads& threads, int64_t vector);

  // Loop axes that every store and every reduction which is made for stores has.
  AxisSet RowAxes() const;

  // Of `set` the axis to be dealt out: the one that is contiguous, or else the longest.
  std::optional<AxisId> AxisToDeal(AxisSet set, const std::vector<UopId>& uops) const;

  void DealOut(Schedule& schedule, AxisId axis, int64_t vector) const;

  const Kernel& kernel_;
  const ScheduleTarget target_;
  const std::vector<AxisSet> free_;
  int64_t lanes_ = 16;
  double work_ = 0;           // points of the widest loop nest
  std::vector<AxisId> grid_;  // axes that may be split between workers
  std::optional<Contraction> contraction_;
  std::vector<Schedule> found_;
};

}  // namespace l3c::l0
