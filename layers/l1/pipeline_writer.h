// The stages, graphs and pipelines of a placed training: what draws batches, carries them to where
// they are used, computes on them, and brings the gradients to the state.
//
//   whole    load -> (transfer ->) (carry ->) graph -> (return ->) messages
//   shared   load -> cut -> scatter -> for each part (carry ->) graph_n -> gather -> reduce ->
//            messages
//   ring     load -> cut -> scatter -> for each part graph_n -> for each hop (ring_n -> the nodes'
//            add_n) -> spread -> for each node reduce_n -> messages to its own actor
//   stages   load -> cut -> for each stage (carry ->) weights_n; for each part of the batch its
//            forward passes, then for each its backward passes, a carry before each that takes
//            something from another memory; sum_n of each stage -> gather -> reduce -> messages
//
// A stage `carry_…` copies parameters, or values of another node; all stages run on the loader's
// node. What is on both sides of a hand-over is not copied.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "layers/l1/gradient_ring.h"
#include "layers/l1/ir.h"
#include "layers/l1/model_stages.h"
#include "layers/l1/place.h"
#include "layers/l1/row_shares.h"
#include "layers/l1/stage_body.h"

namespace l3c::l1 {

// A buffer that a loading stage hands on: its name, its type, and the field it is read from.
struct StagedBuffer {
  std::string name;
  std::string field;
  TensorType type;
};

// A tensor graph of the program and what it is handed.
struct Computation {
  std::string name;
  SharedGraph graph;
  std::vector<StagedBuffer> buffers;                         // of its arguments, in their order
  std::vector<std::pair<std::string, std::string>> windows;  // (actor, window) that it reads
  std::vector<std::string> messages;  // "actor.message", sent when it is done
  std::set<std::string> reported;     // outputs that metrics read
  // Kernels of their own for values of the graph, as in TensorGraph; the graph is whole then.
  std::vector<std::pair<std::string, support::EscapeHatch>> kernels;
};

std::string Numbered(const std::string& name, size_t number);  // "x_2"
// The actor with a node's copy of the state of another actor; node 0 has that itself.
std::string ReplicaName(const std::string& actor, size_t node);

class PipelineWriter {
 public:
  // Both must outlive this. The program has its actors, with their windows but for the readers.
  PipelineWriter(const Placement& place, Program& program) : place_(place), program_(program) {}

  // `loader`: draws the batches; its body is written here. The graphs run on `node` in `memory`;
  // where the state must be carried to them there is one.
  void AddWhole(const std::string& name, Stage loader, const std::vector<Computation>& graphs,
                uint32_t node, uint32_t memory);
  void AddShared(const std::string& name, Stage loader, const Computation& computation,
                 const RowShares& shares);
  // Of a replicated placement: the actors of all nodes are there.
  void AddRing(const std::string& name, Stage loader, const Computation& computation,
               const RowShares& shares);
  void AddStages(const std::string& name, Stage loader, const Computation& computation,
                 const RowShares& shares);
  // Names whoever reads a window, when all pipelines have been added.
  void NameReaders();

 private:
  void Begin(const std::string& name);
  void AddStage(Stage stage);
  void AddGraph(const std::string& name, const SharedGraph& graph, uint32_t node,
                const std::vector<std::pair<std::string, std::string>>& windows, bool travels);
  void AddMessages(const Computation& computation);
  Stage OnLoader(const std::string& name) const;

  void FillLoader(Stage& stage, const std::vector<Computation>& graphs,
                  const std::vector<std::string>& receivers, uint32_t memory,
                  const std::string& transfer) const;
  Stage Transfer(const std::string& name, const std::vector<Computation>& graphs,
                 const std::vector<std::string>& receivers, uint32_t memory) const;
  // `buffers`: what it takes and hands on, by the graph's arguments.
  Stage CarryState(const std::string& name, const std::string& to, const SharedGraph& graph,
                   const std::vector<std::string>& buffers,
                   const std::vector<std::pair<std::string, std::string>>& windows,
                   uint32_t memory) const;
  Stage ReturnGradients(const std::string& name, const Computation& computation,
                        uint32_t memory) const;
  Stage Scatter(const std::string& name, const Computation& computation,
                const RowShares& shares) const;
  // Carries arguments of a graph, each from where it is, to a memory.
  Stage Gather(const std::string& name, const std::string& to, const SharedGraph& graph,
               uint32_t memory) const;

  // Of a batch that is shared, up to where each part has its rows.
  void BeginShared(const std::string& name, Stage loader, const Computation& computation,
                   const RowShares& shares);
  // Of a ring (pipeline_writer_ring.cc).
  static std::vector<std::pair<std::string, std::string>> WindowsAt(const Computation& computation,
                                                                    size_t node);
  void AddRingHop(const std::string& name, const RowShares& shares, const Buckets& buckets,
                  size_t hop);
  Stage Spread(const std::string& name, const RowShares& shares, const Buckets& buckets,
               const std::vector<SharedGraph>& rest) const;
  // Of stages.
  void AddWeights(const std::string& name, size_t stage, const Computation& computation,
                  const std::vector<StageUnit>& units);
  void AddUnit(const std::string& name, const StageUnit& unit, const Computation& computation);
  // State that a graph reads becomes an argument, with the names that `weights_…` gives it there.
  SharedGraph WithWeights(const SharedGraph& graph, size_t stage) const;

  void Gives(const SharedGraph& graph, uint32_t memory);
  // Whether a node reads and writes a memory directly.
  bool Reaches(uint32_t node, uint32_t memory) const;
  bool Travels(size_t part) const {
    return !place_.replicated && !Reaches(place_.model[part], place_.home);
  }

  const Placement& place_;
  Program& program_;
  Pipeline pipeline_;
  std::map<std::string, uint32_t> at_;  // by output of a graph: the memory it is in
};

}  // namespace l3c::l1
