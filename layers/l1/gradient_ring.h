// Gradients of nodes that share a batch, added up in a ring: a reduce-scatter and an all-gather.
//
// The sums are dealt into as many buckets as there are nodes, whole, each to the lightest so far,
// the largest first. Bucket b starts at node b: in hop h = 0 … n − 2 of the reduce-scatter node
// b + h hands it to node b + h + 1 (all modulo n), which adds its own parts; node b − 1 has it
// whole. In the all-gather it goes on from there, once more past every node. In each hop every node
// sends and receives one bucket, so that links work at the same time.
//
//   sum of x in bucket b   (((x_b + x_{b+1}) + x_{b+2}) + …) + x_{b−1}
//
// The order is fixed by the text, so the bits depend on nothing else; to one node's, and to that of
// `reduce` in row_shares.h, the class is reassoc.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l1/row_shares.h"

namespace l3c::l1 {

// Indices of sums, ascending, by bucket; buckets may be empty.
using Buckets = std::vector<std::vector<size_t>>;
Buckets BucketsOf(const RowShares& shares);
double BucketBytes(const RowShares& shares, const std::vector<size_t>& bucket);
TensorType TypeOfSum(const RowShares& shares, size_t sum);

// What a sum is called when so many hops of the reduce-scatter have added to it; 0: a node's part.
std::string PartialName(const RowShares& shares, size_t sum, size_t bucket, size_t hops);
// Adds the parts of node `own` to what comes in, for hop `hops` of a bucket.
SharedGraph AddHop(const RowShares& shares, const Buckets& buckets, size_t bucket, size_t hops);

// What stands behind the sums, but for what is reported, which one node alone does.
SharedGraph WithoutOutputs(const SharedGraph& graph, const std::set<std::string>& outputs);

}  // namespace l3c::l1
