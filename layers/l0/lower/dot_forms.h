// The forms in which a contraction can run: which stored values its factors are loaded from, and
// under which schedule.
//
// A factor that is a view (a transposed weight) can be loaded through the view from what lies in
// memory, or from a stored copy in the wanted order. For each pair the schedules of the bare
// contraction are costed, and the best few are kept as alternatives.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "layers/l0/lower/choose.h"

namespace l3c::l0::lower {

class DotForms {
 public:
  static constexpr size_t kSchedulesKept = 3;

  DotForms(const ValueTable& table, const std::vector<bool>& stored, const KernelCostModel& costs)
      : table_(table), stored_(stored), costs_(costs) {}

  // Indices into all().
  const std::vector<uint32_t>& Of(ValueId matmul, uint32_t definition);
  const std::vector<DotForm>& all() const { return forms_; }
  uint64_t pruned() const { return pruned_; }  // schedules that were not kept

 private:
  // Values from which the factor can be loaded.
  std::vector<ValueId> Readable(ValueId factor) const;

  const ValueTable& table_;
  const std::vector<bool>& stored_;
  const KernelCostModel& costs_;
  std::vector<DotForm> forms_;
  uint64_t pruned_ = 0;
  std::map<std::pair<ValueId, uint32_t>, std::vector<uint32_t>> by_matmul_;
};

// Makes `product` the product that a contraction by `op` sums.
void SetProduct(Uop& product, tensor::Op op);

// The map of `target`, from which `from` is reached through views only, at the point where `from`
// has map `at`. Nothing when no chain of views is affine there.
std::optional<IndexMap> MapThroughViews(const ValueTable& table, ValueId from, ValueId target,
                                        const IndexMap& at, std::span<const int64_t> extents);

}  // namespace l3c::l0::lower
