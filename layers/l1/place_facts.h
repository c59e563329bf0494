// What the rules of placement start from: the facts of a system and of a step, as text of the
// e-graph language, and what there is to choose from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l1/place.h"
#include "layers/l1/place_model.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::l1 {

// Ids of the decisions.
inline constexpr char kStateId[] = "l1/state";
inline constexpr char kResident[] = "resident";
inline constexpr char kPartitionId[] = "l1/partition";
inline constexpr char kCutId[] = "l1/cut";
inline constexpr char kMicroId[] = "l1/micro_batches";
inline constexpr char kGradientsId[] = "l1/gradients";
inline constexpr char kGather[] = "gather";
inline constexpr char kRing[] = "ring";
inline constexpr char kStagingId[] = "l1/staging";
inline constexpr char kStagesId[] = "l1/stages";
inline constexpr char kDepthId[] = "l1/pipeline_depth";
// Why there are no partitions under `--numerics exact`.
inline constexpr char kWhyOutOfOrder[] =
    "gradients would add up in another order, which --numerics exact forbids";
std::string NodeDecision(const std::string& operation);  // "l1/node.load", …
std::string PartitionOf(const Site& site);               // "whole", "data(2)", "stages(2)"

struct PlacementFacts {
  std::string text;
  uint32_t storage = 0;   // where the data lie
  int64_t max_depth = 1;  // steps in flight
  std::vector<Site> sites;
  std::vector<uint32_t> homes;     // memories that the state may lie in, whole
  std::vector<uint32_t> near;      // memories that nodes leave in what they compute
  std::vector<uint32_t> stagings;  // memories that batches may be staged in
  // A memory that the state may rest in, to be brought in turns to where a site works.
  struct Stream {
    uint32_t rests = 0;
    const Site* site = nullptr;  // of `sites`
  };
  std::vector<Stream> streams;
  std::map<std::string, std::vector<std::string>> choices;  // by decision, in order
  std::map<std::string, const Site*> site_at;               // by place
  std::map<std::string, const Site*> site_named;            // by label
  std::map<std::string, std::string> why_not;               // by site's name, where it is none
  std::string why_one_node;  // where several may not compute with state that is brought in
  std::string why_no_ring;   // of the first site that has no room for the state on each node
  std::map<int64_t, std::string> why_not_depth;
  std::set<std::string> out_of_order;  // partitions that would add up in another order
  std::vector<search::Pruned> pruned;
  std::optional<search::NoCandidates> failure;  // else there is something to choose from

  // A home that no node leaves in what it computes: a node reads the state there in place.
  bool IsBeside(uint32_t home) const;
  // By decision; empty where nothing is to be chosen.
  const std::vector<std::string>& ChoicesOf(const std::string& decision) const;
};

// `isas`, `max_depth`, `options`: as for Place(). What is returned points into itself.
std::unique_ptr<PlacementFacts> FactsOf(const System& system, const StepDemand& demand,
                                        const PlacementModel& model,
                                        const std::vector<std::string>& isas, int64_t max_depth,
                                        const search::LoweringOptions& options);

}  // namespace l3c::l1
