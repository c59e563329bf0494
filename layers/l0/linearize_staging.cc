#include <algorithm>
#include <vector>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {

void Linearizer::PrepareStages() {
  const auto axes = static_cast<AxisId>(kernel_.axes.size());
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    const Uop& uop = kernel_.uops[id];
    if (!uop.staged) continue;
    Stage stage;
    stage.value = id;
    stage.staging = *StagingOf(kernel_, id, free_);
    stage.local = static_cast<uint32_t>(kernel_.params.size() + out_.locals.size());
    int64_t stride = kernel_.axes[stage.staging.axis].tile;
    for (size_t i = stage.staging.reduce.size(); i-- > 0;) {
      const AxisId axis = stage.staging.reduce[i];
      stage.index.terms.emplace_back(axis, stride);
      stride *= kernel_.axes[axis].extent;
    }
    if (stage.staging.whole_block) {
      stage.index.terms.emplace_back(stage.staging.axis, stage.staging.sum);
    }
    if (stage.staging.whole_block && !stage.staging.each) {
      // An axis beyond the kernel's: minus where the block's copy would begin.
      stage.index.terms.emplace_back(axes + static_cast<AxisId>(stages_.size()), 1);
    }
    std::sort(stage.index.terms.begin(), stage.index.terms.end());
    out_.locals.push_back({uop.dtype, stage.staging.elements});
    stages_.push_back(std::move(stage));
  }
  state_.resize(axes + stages_.size());
}

const Linearizer::Stage* Linearizer::StageOf(UopId id) const {
  if (!kernel_.uops[id].staged || copying_ == id) return nullptr;
  return &*std::find_if(stages_.begin(), stages_.end(),
                        [&](const Stage& stage) { return stage.value == id; });
}

void Linearizer::EmitBlockStages() {
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    if (!stage.staging.whole_block || stage.staging.each) continue;
    const AxisId axis = stage.staging.axis;
    const Reg low = grid_[axis].low;
    if (low != kNoReg) {
      AxisState& origin = state_[kernel_.axes.size() + s];
      origin.level = static_cast<int>(chain_.size()) - 1;
      origin.base = Scaled(kNoReg, low, -stage.staging.sum, 0);
    }
    BeginCopy(stage);
    EmitAxis(axis, {stage.value}, [&] { EmitCopy(stage, 0); });
    EndCopy();
  }
}

bool Linearizer::Reaches(std::vector<UopId> roots, UopId id) const {
  std::vector<bool> seen(kernel_.uops.size(), false);
  while (!roots.empty()) {
    const UopId root = roots.back();
    roots.pop_back();
    if (root == id) return true;
    if (seen[root]) continue;
    seen[root] = true;
    roots.insert(roots.end(), kernel_.uops[root].src.begin(), kernel_.uops[root].src.end());
  }
  return false;
}

void Linearizer::EmitTileStages(AxisId axis, const std::vector<UopId>& roots) {
  if (copying_) return;
  for (const Stage& stage : stages_) {
    if (!Reaches(roots, stage.value)) continue;
    const bool whole = stage.staging.each == axis;
    if (!whole && (stage.staging.axis != axis || stage.staging.whole_block)) continue;
    BeginCopy(stage);
    if (whole) {
      EmitAxis(stage.staging.axis, {stage.value}, [&] { EmitCopy(stage, 0); });
    } else {
      EmitCopy(stage, 0);
    }
    EndCopy();
  }
}

void Linearizer::BeginCopy(const Stage& stage) {
  copying_ = stage.value;
  const int64_t lanes = LanesOf(free_[stage.value]);
  if (lanes == 1) return;
  // Where loads have their neighbours along the sum, as many of those as lanes are transposed.
  for (UopId id = 0; id <= stage.value; ++id) {
    const Uop& uop = kernel_.uops[id];
    if (uop.op != UOp::kLoad || !Reaches({stage.value}, id)) continue;
    if (CoefficientOf(uop.index, stage.staging.axis) == 1) continue;
    for (AxisId axis : stage.staging.reduce) {
      if (CoefficientOf(uop.index, axis) != 1) continue;
      copied_rows_ = axis;
      copied_tile_ = lanes;
    }
  }
}

void Linearizer::EndCopy() {
  copying_.reset();
  copied_rows_ = kNoAxis;
}

void Linearizer::EmitCopy(const Stage& stage, size_t depth) {
  if (full_) return;
  if (depth < stage.staging.reduce.size()) {
    EmitAxis(stage.staging.reduce[depth], {stage.value}, [&] { EmitCopy(stage, depth + 1); });
    return;
  }
  ForPoints(free_[stage.value], [&] {
    LinearOp store = Op(UOp::kStore);
    store.b = Wide(stage.value, LanesOf(free_[stage.value]));
    store.param = stage.local;
    const Address address = StagedAddress(stage);
    store.a = address.reg;
    store.offset = address.offset;
    Append(store);
  });
}

Reg Linearizer::EmitStagedLoad(const Stage& stage) {
  const Address address = StagedAddress(stage);
  LinearOp load = Op(UOp::kLoad);
  load.param = stage.local;
  load.a = address.reg;
  load.offset = address.offset;
  return Append(load, kernel_.uops[stage.value].dtype, LanesOf(free_[stage.value]));
}

Address Linearizer::StagedAddress(const Stage& stage) {
  Address address;
  address.reg = Prefix(stage.index);
  for (const auto& [axis, coefficient] : stage.index.terms) {
    const AxisState& state = state_[axis];
    // Points of the tile lie side by side, tiles a whole sum apart.
    const int64_t points = axis == stage.staging.axis ? 0 : state.point * state.lanes;
    address.offset += coefficient * (state.base_constant + points);
  }
  const AxisState& tiled = state_[stage.staging.axis];
  address.offset += tiled.point * tiled.lanes;
  return address;
}

}  // namespace l3c::l0
