#include "layers/l0/lower/merge_passes.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "layers/l0/kernel_axes.h"

namespace l3c::l0::lower {
namespace {

class PassMerger {
 public:
  explicit PassMerger(Kernel& kernel) : kernel_(kernel), free_(FreeAxes(kernel)) {}

  void Run() {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      if (kernel_.uops[id].op == UOp::kReduce) Place(id);
    }
    if (!merged_) return;
    DropDuplicates();
    DropAxes();
  }

 private:
  // Reductions that share their axes.
  struct Pass {
    std::vector<AxisId> axes;
    std::vector<UopId> members;
  };

  void Place(UopId id) {
    const std::vector<AxisId> own = kernel_.uops[id].axes;
    for (Pass& pass : passes_) {
      if (!Joins(id, pass)) continue;
      for (size_t i = 0; i < own.size(); ++i) Rename(own[i], pass.axes[i]);
      pass.members.push_back(id);
      merged_ = true;
      return;
    }
    passes_.push_back({own, {id}});
  }

  bool Joins(UopId id, const Pass& pass) const {
    const std::vector<AxisId>& own = kernel_.uops[id].axes;
    if (own.size() != pass.axes.size()) return false;
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] == pass.axes[i]) return false;
      if (kernel_.axes[own[i]].extent != kernel_.axes[pass.axes[i]].extent) return false;
    }
    const std::set<UopId> cone = Cone(id);
    bool common = false;
    for (UopId member : pass.members) {
      if (free_[member] != free_[id] || cone.contains(member)) return false;
      common |= LoadsCommon(cone, own, Cone(member), pass.axes);
    }
    return common;
  }

  std::set<UopId> Cone(UopId root) const {
    std::set<UopId> cone;
    std::vector<UopId> open = {root};
    while (!open.empty()) {
      const UopId id = open.back();
      open.pop_back();
      if (!cone.insert(id).second) continue;
      const std::vector<UopId>& src = kernel_.uops[id].src;
      open.insert(open.end(), src.begin(), src.end());
    }
    return cone;
  }

  // An element that both load; and neither walks it across, which would be another use of lanes.
  bool LoadsCommon(const std::set<UopId>& a, const std::vector<AxisId>& a_axes,
                   const std::set<UopId>& b, const std::vector<AxisId>& b_axes) const {
    bool common = false;
    for (UopId x : a) {
      const Uop& load = kernel_.uops[x];
      if (load.op != UOp::kLoad) continue;
      if (CoefficientOf(load.index, a_axes.back()) > 1) return false;
      Uop moved = load;
      for (size_t i = 0; i < a_axes.size(); ++i) RenameIn(moved, a_axes[i], b_axes[i]);
      if (moved.index == load.index) continue;
      for (UopId y : b) common |= Same(moved, kernel_.uops[y]);
    }
    for (UopId y : b) {
      const Uop& load = kernel_.uops[y];
      if (load.op == UOp::kLoad && CoefficientOf(load.index, b_axes.back()) > 1) return false;
    }
    return common;
  }

  static void RenameIn(Affine& affine, AxisId from, AxisId to) {
    for (auto& [axis, coefficient] : affine.terms) {
      if (axis == from) axis = to;
    }
    std::sort(affine.terms.begin(), affine.terms.end());
  }

  static void RenameIn(Uop& uop, AxisId from, AxisId to) {
    RenameIn(uop.index, from, to);
    for (Guard& guard : uop.guards) RenameIn(guard.expression, from, to);
    if (uop.op == UOp::kRange && uop.axis == from) uop.axis = to;
    for (AxisId& axis : uop.axes) axis = axis == from ? to : axis;
  }

  void Rename(AxisId from, AxisId to) {
    for (Uop& uop : kernel_.uops) RenameIn(uop, from, to);
  }

  static bool Same(const Uop& a, const Uop& b) {
    return a.op == b.op && a.op != UOp::kStore && a.dtype == b.dtype && a.src == b.src &&
           a.param == b.param && a.index == b.index && a.dynamic_stride == b.dynamic_stride &&
           a.dynamic_extent == b.dynamic_extent && a.guards == b.guards &&
           std::memcmp(&a.number, &b.number, sizeof a.number) == 0 && a.integer == b.integer &&
           a.axis == b.axis && a.fold == b.fold && a.axes == b.axes && a.custom == b.custom &&
           a.memory == b.memory;
  }

  void DropDuplicates() {
    std::vector<UopId> renamed(kernel_.uops.size());
    std::vector<Uop> kept;
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      Uop uop = std::move(kernel_.uops[id]);
      for (UopId& operand : uop.src) operand = renamed[operand];
      const auto known = std::find_if(kept.begin(), kept.end(),
                                      [&](const Uop& other) { return Same(other, uop); });
      renamed[id] = static_cast<UopId>(known - kept.begin());
      if (known == kept.end()) kept.push_back(std::move(uop));
    }
    kernel_.uops = std::move(kept);
  }

  // The axes that nothing walks any more.
  void DropAxes() {
    std::vector<bool> used(kernel_.axes.size());
    const auto use = [&](const Affine& affine) {
      for (const auto& [axis, coefficient] : affine.terms) used[axis] = true;
    };
    for (const Uop& uop : kernel_.uops) {
      use(uop.index);
      for (const Guard& guard : uop.guards) use(guard.expression);
      if (uop.op == UOp::kRange) used[uop.axis] = true;
      for (AxisId axis : uop.axes) used[axis] = true;
    }
    for (AxisId axis = static_cast<AxisId>(kernel_.axes.size()); axis-- > 0;) {
      if (used[axis]) continue;
      kernel_.axes.erase(kernel_.axes.begin() + axis);
      for (AxisId above = axis + 1; above <= kernel_.axes.size(); ++above) Rename(above, above - 1);
    }
  }

  Kernel& kernel_;
  const std::vector<AxisSet> free_;
  std::vector<Pass> passes_;
  bool merged_ = false;
};

}  // namespace

void MergePasses(Kernel& kernel) { PassMerger(kernel).Run(); }

}  // namespace l3c::l0::lower
