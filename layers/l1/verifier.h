// The verifier's checks, one function for each row of the table in verify.h, and what they share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l1/flow.h"
#include "layers/l1/ir.h"
#include "layers/l1/program_index.h"
#include "layers/support/diagnostics.h"

namespace l3c::l1 {

// A buffer of a stage, by name.
struct BufferInfo {
  TensorType type;
  uint32_t region = 0;
  Span span;
};
using Buffers = std::map<std::string, BufferInfo>;
Buffers BuffersOf(const Stage& stage);

// What may be handed over to, whatever it is.
struct Receiver {
  uint32_t node = 0;
  Span span;
  struct Slot {
    std::string name;
    TensorType type;
    std::optional<uint32_t> region;  // stages say where they expect it
  };
  std::vector<Slot> slots;
};

std::string Text(const TensorType& type);

class Verifier {
 public:
  Verifier(const Program& program, support::Diagnostics& diagnostics)
      : program_(program),
        diagnostics_(diagnostics),
        index_(program),
        topology_(program.system),
        flows_(program, index_) {}

  bool Run();

 private:
  support::Diagnostic& Error(support::Kind kind, Span span, std::string message);
  const System& system() const { return program_.system; }
  const std::string& NodeName(uint32_t node) const { return system().nodes[node].name; }
  std::optional<Receiver> FindReceiver(const std::string& name) const;

  // ---- Topology consistency (verify_references.cc) ----------------------------------------------
  void CheckEdges();
  void CheckPlaces();
  void CheckTransfers();

  // ---- Reference resolution (verify_references.cc) ----------------------------------------------
  void Unknown(Span span, const std::string& what, const std::string& name);
  void CheckReferences();
  void CheckArgs(const tensor::Graph& graph, const std::vector<std::string>& args, Span span);
  void CheckReads(const std::vector<std::pair<std::string, std::string>>& reads, Span span);
  void CheckStageReferences(const Stage& stage);
  void CheckScheduled();

  // ---- Forwarding signatures (verify_flow.cc) ---------------------------------------------------
  void CheckSampling();
  void CheckRead(const Stage& stage, const Statement& s, const Buffers& buffers);
  void CheckForwards();
  void CheckPipelineLinks();
  static std::pair<const TensorGraph*, const tensor::Output*> Producer(
      const std::vector<const TensorGraph*>& graphs, std::string_view name);
  void CheckByName(const std::vector<const TensorGraph*>& graphs, const Reference& next);

  // ---- What runs in a step (verify_step.cc) -----------------------------------------------------
  void CheckSteps();
  void CheckMetrics();
  void CheckStep(const Pipeline& pipeline, const std::vector<Reference>& links);
  void CheckForwardedOnce(const std::vector<Statement>& body,
                          std::map<std::string, const Statement*>& before,
                          std::vector<std::string>& entered);

  // ---- Window separation (verify_state.cc) ------------------------------------------------------
  void CheckWindows();
  void CheckGranted(const std::string& what, const std::string& name, Span span,
                    const std::vector<std::pair<std::string, std::string>>& reads);
  void CheckOrder(const std::vector<Reference>& links);
  void CheckEvaluation(const Phase& phase);
  void CheckReplicas();
  void CheckReplicaHandlers(const Actor& actor, const Actor& other);
  void CheckReplicaMessages(const Actor& actor, const Actor& other);

  // ---- Shape propagation (verify_state.cc) ------------------------------------------------------
  void CheckStateTypes();

  // ---- Region provenance (verify_flow.cc) -------------------------------------------------------
  std::string MemoriesText(uint32_t node) const;
  bool IsLocal(uint32_t node, uint32_t region) const { return topology_.IsLocal(node, region); }
  void CheckRegions();
  void CheckStageRegions(const Stage& stage, const Statement& s, const Buffers& buffers);
  void CheckForwardRegions(const Statement& s, const Buffers& buffers);
  void CheckGraphRegions(const std::vector<const TensorGraph*>& graphs, const Receiver& receiver,
                         const Reference& next);

  // ---- Buffer conservation (verify_conservation.cc) ---------------------------------------------
  void CheckConservation();

  // ---- Tensor reachability (verify_state.cc) ----------------------------------------------------
  void CheckReachability();
  void CheckReachable(const tensor::Graph& graph, const std::vector<std::string>& args,
                      const std::string& where, Span fallback);

  // ---- Persistent memory (verify_state.cc) ------------------------------------------------------
  void CheckPersistentMemory();

  void CheckValues(const Stage& stage);

  // ---- Finiteness (verify_flow.cc) --------------------------------------------------------------
  void CheckFiniteness();
  void ReportRound(const std::vector<std::pair<std::string, size_t>>& path, const std::string& to,
                   Span span);

  const Program& program_;
  support::Diagnostics& diagnostics_;
  const ProgramIndex index_;
  Topology topology_;
  const Flows flows_;
};

}  // namespace l3c::l1
