#include "layers/l1/step_demand.h"

#include <algorithm>
#include <string>
#include <utility>

#include "layers/l1/gradient_ring.h"
#include "layers/l1/graph_work.h"
#include "layers/l1/model_stages.h"
#include "layers/l1/place_sites.h"
#include "layers/l1/row_shares.h"

namespace l3c::l1 {

using tensor::DType;

namespace {

// How the work can be shared by so many nodes.
void MeasureShares(const Training& training, const std::vector<LayerKernel>& kernels, int64_t nodes,
                   StepDemand& demand) {
  const int64_t most = std::min<int64_t>(nodes, kMaxSharing);
  if (!kernels.empty()) {
    // A kernel is for the layer as it stands, on a whole batch.
    for (int64_t parts = 2; parts <= most; ++parts) {
      demand.why_not_shared[parts] = "a kernel of its own computes " + kernels[0].where;
    }
    return;
  }
  const auto share = [&](int64_t parts) {
    std::vector<RowShares> all;
    std::string why;
    for (const Compute& compute : training.train) {
      auto shares = ShareRows(compute.graph, training.ArgsOf(compute), training.batch, parts, &why);
      if (!shares) {
        demand.why_not_shared[parts] = why;
        return std::vector<RowShares>{};
      }
      all.push_back(*std::move(shares));
    }
    return all;
  };
  for (int64_t parts = 2; parts <= most; ++parts) {
    const std::vector<RowShares> shares = share(parts);
    if (shares.empty()) continue;
    demand.shares.push_back(parts);
    for (const std::vector<size_t>& bucket : BucketsOf(shares[0])) {
      double& largest = demand.largest_bucket[parts];
      largest = std::max(largest, BucketBytes(shares[0], bucket));
    }
  }
  for (int64_t parts : {2, 4, 8}) {
    const std::vector<RowShares> shares = share(parts);
    if (shares.empty()) break;
    demand.micro_batches.push_back(parts);
    if (parts > 2) continue;
    // The layers are those of the first graph: variants of it have the same.
    demand.layers = ModelStages(shares[0], training.train[0].Reported()).work();
  }
}

}  // namespace

StepDemand DemandOf(const Training& training, const System& system,
                    const std::vector<LayerKernel>& kernels) {
  StepDemand demand;
  for (const Compute& compute : training.train) {
    demand.model_flops += CountFlops(compute.graph);
    demand.activation_bytes = std::max(demand.activation_bytes, PeakBytes(compute.graph));
  }
  const auto computing =
      std::count_if(system.nodes.begin(), system.nodes.end(),
                    [](const SystemNode& node) { return node.kind == NodeKind::kCompute; });
  if (training.forward.turns.size() == 1 && computing > 1)
    MeasureShares(training, kernels, computing, demand);
  if (training.forward.turns.size() > 1) {
    demand.why_beside_state = "each turn of the goal reads the state as the turn before leaves it";
  }
  for (const auto& variants : training.updates.graphs) {
    demand.update_flops += CountFlops(variants.front().graph);
  }
  for (NodeId id : training.TrainInputs()) {
    const tensor::Node& node = training.forward.graph.node(id);
    demand.batch_bytes += static_cast<double>(ByteSize(node.dtype, node.shape));
  }
  for (const l2::Parameter& p : training.forward.parameters) {
    const auto bytes = static_cast<double>(ByteSize(DType::kF32, p.shape));
    demand.parameter_bytes += bytes;
    demand.largest_bytes = std::max(demand.largest_bytes, bytes);
    ++demand.parameters;
  }
  demand.gradient_bytes = demand.parameter_bytes;
  demand.state_bytes = demand.parameter_bytes + 8;  // and the step
  for (size_t m = 0; m < training.module->methods.size(); ++m) {
    for (const l2::UpdateStateField& field : training.updates.StateOf(m)) {
      demand.state_bytes += static_cast<double>(ByteSize(field.dtype, field.shape));
    }
  }
  return demand;
}

}  // namespace l3c::l1
