// A site: where the model may be computed. It is a node; several nodes that share the rows of a
// batch equally (data parallel); or several nodes that have some layers each, in their order, and
// work on one part of the batch after the other (stages).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace l3c::l1 {

struct Site {
  std::string label;  // unique: "gpu_0", "gpu_0+gpu_1", "gpu_0>gpu_1" (stages), "cpu_0@ram_1"
  std::string name;   // as it is told: without the memory
  std::string place;  // "ram_0"; of several nodes the label: where its values are
  std::vector<uint32_t> nodes;     // one, or those that share the work
  std::vector<uint32_t> memories;  // by node
  // One node and another memory than its first: batches may be drawn into it and state may lie in
  // it, but what the node computes is left in the first.
  bool beside = false;
  bool in_stages = false;
  // Of stages: how many layers each has (place_cuts.h); and the most bytes of parameters and
  // gradients that a node has in any of them.
  std::vector<std::vector<size_t>> cuts;
  std::vector<double> most;
  bool all_cuts = true;  // no other cut fits

  size_t parts() const { return nodes.size(); }
  bool shares_batch() const { return parts() > 1 && !in_stages; }
};

}  // namespace l3c::l1
