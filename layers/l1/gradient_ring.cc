#include "layers/l1/gradient_ring.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace l3c::l1 {

using tensor::Graph;
using tensor::NodeId;

TensorType TypeOfSum(const RowShares& shares, size_t sum) {
  const Graph& graph = shares.parts[0].graph;
  const auto output =
      std::find_if(graph.outputs().begin(), graph.outputs().end(),
                   [&](const tensor::Output& o) { return o.name == shares.sums[sum].parts[0]; });
  const tensor::Node& node = graph.node(output->node);
  return {node.dtype, node.shape};
}

Buckets BucketsOf(const RowShares& shares) {
  std::vector<double> bytes;
  for (size_t sum = 0; sum < shares.sums.size(); ++sum) {
    bytes.push_back(BucketBytes(shares, {sum}));
  }
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  Buckets buckets(shares.parts.size());
  std::vector<double> weight(buckets.size(), 0);
  for (size_t sum : order) {
    const auto lightest = std::min_element(weight.begin(), weight.end());
    *lightest += bytes[sum];
    buckets[static_cast<size_t>(lightest - weight.begin())].push_back(sum);
  }
  for (std::vector<size_t>& bucket : buckets) std::sort(bucket.begin(), bucket.end());
  return buckets;
}

double BucketBytes(const RowShares& shares, const std::vector<size_t>& bucket) {
  double bytes = 0;
  for (size_t sum : bucket) {
    const TensorType type = TypeOfSum(shares, sum);
    bytes += static_cast<double>(ByteSize(type.dtype, type.shape));
  }
  return bytes;
}

std::string PartialName(const RowShares& shares, size_t sum, size_t bucket, size_t hops) {
  if (hops == 0) return shares.sums[sum].parts[bucket];
  return shares.sums[sum].name + "_ring_" + std::to_string(hops);
}

SharedGraph AddHop(const RowShares& shares, const Buckets& buckets, size_t bucket, size_t hops) {
  Graph to;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, NodeId>> outputs;
  const size_t own = (bucket + hops) % buckets.size();
  for (size_t sum : buckets[bucket]) {
    const TensorType type = TypeOfSum(shares, sum);
    const auto input = [&](const std::string& name) {
      args.push_back(name);
      return to.AddInput(name, type.dtype, type.shape);
    };
    const NodeId so_far = input(PartialName(shares, sum, bucket, hops - 1));
    const NodeId more = input(shares.sums[sum].parts[own]);
    const std::string name = PartialName(shares, sum, bucket, hops);
    outputs.emplace_back(name, to.Add(tensor::Op::kAdd, {so_far, more}, {}, name));
  }
  for (const auto& [name, id] : outputs) to.AddOutput(name, id);
  return FinishShared(std::move(to), std::move(args));
}

SharedGraph WithoutOutputs(const SharedGraph& graph, const std::set<std::string>& outputs) {
  const Graph& from = graph.graph;
  std::vector<bool> needed(from.size());
  for (const tensor::Output& output : from.outputs()) {
    if (!outputs.contains(output.name)) needed[output.node] = true;
  }
  for (NodeId id = static_cast<NodeId>(from.size()); id-- > 0;) {
    if (!needed[id]) continue;
    for (NodeId input : from.node(id).inputs) needed[input] = true;
  }
  Graph to;
  std::vector<NodeId> ids(from.size());
  for (NodeId id = 0; id < from.size(); ++id) {
    if (!needed[id]) continue;
    const tensor::Node& node = from.node(id);
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs) inputs.push_back(ids[input]);
    ids[id] = node.op == tensor::Op::kInput
                  ? to.AddInput(node.name, node.dtype, node.shape, node.span)
                  : to.Add(node.op, std::move(inputs), node.attr, node.name, node.span);
  }
  for (const tensor::Output& output : from.outputs()) {
    if (!outputs.contains(output.name)) to.AddOutput(output.name, ids[output.node]);
  }
  std::vector<std::string> args;
  for (const std::string& arg : graph.args) {
    if (needed[*from.Find(arg)]) args.push_back(arg);
  }
  return FinishShared(std::move(to), std::move(args));
}

}  // namespace l3c::l1
