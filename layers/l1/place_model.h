// What a placement takes: the time of its parts and the bytes in each memory.
//
//   transfer   bytes over the bandwidth of the widest path, and kTransferLatency for each copy
//              between two memories (what is read from storage is read ahead)
//   compute    the longer of operations over throughput and bytes over bandwidth
//   memory     what lies in a memory at once; a choice that needs more than there is, is none
//
// Where the model may be computed is a site (place_sites.h). Of nodes that share a batch, each has
// the parameters carried to it and its gradients carried back and added up where the state lies,
// one copy after the other; or each has all of the state and they add the gradients up in a ring.
// Of stages, each has those of its layers, counted as if all went over the slowest of the links.
// With m parts of a batch and p stages a step takes (m + p − 1) / m of what the slowest stage
// takes: the bubble is (p − 1) / (m + p − 1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l1/place.h"
#include "layers/l1/place_site.h"

namespace l3c::l1 {

// Assumed: what a copy and what a hand-over between two stages cost beside the bytes.
inline constexpr double kTransferLatency = 10e-6;  // s
inline constexpr double kHandOver = 5e-6;          // s
// Of a step whose intermediate values do not fit: the forward pass runs once more, a third of
// forward and backward.
inline constexpr double kRecomputeFactor = 4.0 / 3;

class PlacementModel {
 public:
  PlacementModel(const System& system, const StepDemand& demand)
      : system_(system), demand_(demand) {}

  const std::string& Name(uint32_t node) const { return system_.nodes[node].name; }

  // Seconds of an operation of a step on a node that works in a memory.
  double LoadTime(uint32_t node, uint32_t memory) const;
  double ModelTime(const Site& site) const;  // not of stages
  double StagesTime(const Site& site, const std::vector<size_t>& cut, int64_t micro_batches) const;
  // Of one stage with the layers from `first` to before `end`: all parts of a batch, no bubble.
  double StageTime(const Site& site, size_t stage, size_t first, size_t end,
                   int64_t micro_batches) const;
  double UpdateTime(uint32_t node, uint32_t memory) const;
  // From the storage into the memory that a batch is staged in; infinity without a path.
  double ReadTime(uint32_t storage, uint32_t staging) const;
  // A batch from where it is staged to where the model is computed.
  double BatchTime(uint32_t staging, const Site& site) const;
  double ParameterTime(uint32_t home, const Site& site) const;
  double GradientTime(const Site& site, uint32_t home) const;
  // What reading parameters in a memory takes longer than in the one that a site works in.
  double ReadInPlaceTime(uint32_t home, const Site& site) const;
  // Gradients added up in a ring: with n nodes, n − 1 hops that add and n − 1 that hand on, each as
  // long as its slowest link takes for the largest of n buckets (gradient_ring.h).
  double RingTime(const Site& site) const;
  // The same update on each node of a site.
  double ReplicatedUpdateTime(const Site& site) const;

  // Bytes in each memory with so many steps in flight, by node; what does not fit is told by the
  // first memory, in their order, that is too small.
  struct Need {
    std::map<uint32_t, double> bytes;
    bool tight = false;  // only with intermediate values computed anew
    std::string too_small;
  };
  // `in_place`: the site reads the state where it lies, and leaves its gradients in its own memory.
  Need NeedOf(int64_t depth, uint32_t staging, uint32_t home, const Site& site,
              bool in_place = false) const;
  // With all of the state in each memory of a site that shares a batch.
  Need NeedReplicated(int64_t depth, uint32_t staging, const Site& site) const;
  // With the state at rest in another memory, of which two layers' are there at once, counted by
  // the largest parameter with its optimiser state and gradient.
  Need NeedStreamed(int64_t depth, uint32_t staging, uint32_t rests, const Site& site) const;
  // Seconds of the model and of the update on a site that the state is brought to and taken from:
  // the longer of computing and transfers. Parameters come twice, forwards and backwards, and with
  // their optimiser state for the update.
  double StreamedModelTime(uint32_t rests, const Site& site) const;
  double StreamedUpdateTime(uint32_t rests, const Site& site) const;
  // Whether bytes can flow both ways.
  bool CanStream(uint32_t rests, uint32_t memory) const;
  bool StateFits(uint32_t memory) const;
  double Capacity(uint32_t memory) const;
  // Of the widest path; infinity within a memory, 0 without a path.
  double PathRate(uint32_t from, uint32_t to) const;
  // Whether each node of a site reads and writes a memory directly.
  bool Reaches(const Site& site, uint32_t memory) const;

 private:
  std::string StateTooLarge(uint32_t memory) const;
  void CheckRoom(Need& need, const std::map<uint32_t, double>& intermediate) const;
  // Rate between a compute node and a memory that it computes in.
  double LocalRate(uint32_t node, uint32_t memory) const;
  // The best that any node computes in the memory with.
  double MemoryRate(uint32_t memory) const;
  double CopyTime(double bytes, uint32_t from, uint32_t to) const;
  // Over the slowest link between a memory and a site's.
  double SlowestCopy(double bytes, uint32_t memory, const Site& site, bool back) const;

  const System& system_;
  const StepDemand& demand_;
  mutable std::map<std::pair<uint32_t, uint32_t>, double> rates_;
};

// Bandwidth of the widest path between two nodes that passes through no other place that holds
// bytes; 0 when there is none.
double WidestPath(const System& system, uint32_t from, uint32_t to);

}  // namespace l3c::l1
