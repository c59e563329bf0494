// A part of a shared training graph (row_shares.h) laid out along the depth of the model, and cut
// into stages: the forward pass of one after the other, then their backward passes in reverse.
//
// A layer begins with each contraction of the batch's values with state, or look-up in state; what
// stands between two of them belongs to the one before. A gradient is computed in the layer of its
// parameter, and what leads to it in that of what it is needed for, unless a later layer's
// parameters are read. So values go forwards in the forward pass and backwards in the backward
// pass, whatever the cut.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "layers/l1/place.h"
#include "layers/l1/row_shares.h"

namespace l3c::l1 {

// At most so many layers are told apart: of more, neighbours are taken together.
inline constexpr size_t kMaxLayers = 64;

// One stage's forward or backward pass on one part of a batch.
struct StageUnit {
  size_t stage = 0;
  bool backward = false;
  // Arguments and outputs by name: shares, what all parts take, what other units give (`x_2` of
  // part 2), parts of sums. The other inputs are state.
  SharedGraph graph;
};

class ModelStages {
 public:
  // `reported`: outputs of the whole graph that the forward pass gives.
  ModelStages(const RowShares& shares, const std::set<std::string>& reported);

  size_t layers() const { return work_.size(); }
  // Of a whole batch, by layer.
  const std::vector<LayerWork>& work() const { return work_; }

  // `stage_of`: by layer, ascending from 0. In the order in which they run.
  std::vector<StageUnit> Cut(size_t part, const std::vector<size_t>& stage_of) const;
  // The stage of a sum: that of the unit which gives its parts.
  std::vector<size_t> StagesOfSums(const std::vector<size_t>& stage_of) const;

 private:
  void FindForward(const std::set<std::string>& reported);
  void FindForwardLayers();
  void FindBackwardLayers();
  void MergeLayers();
  void Measure();
  bool StartsLayer(const tensor::Node& node) const;

  const RowShares& shares_;
  const tensor::Graph& graph_;  // of the first part: the others are like it
  std::vector<bool> of_batch_;  // the others are computed wherever they are used
  std::vector<bool> forward_;
  std::vector<size_t> layer_;  // of those of the batch; of others: of the parameters in them
  std::vector<LayerWork> work_;
};

}  // namespace l3c::l1
