// The verifier's checks, one function for each row of the table in verify.h, and what they share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
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

// "graph", "actor.message".
std::string TargetOf(const Statement& forward);
std::string Text(const TensorType& type);

class Verifier {
 public:
  Verifier(const Program& program, support::Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  bool Run();

 private:
  support::Diagnostic& Error(support::Kind kind, Span span, std::string message);
  const System& system() const { return program_.system; }
  const std::string& NodeName(uint32_t node) const { return system().nodes[node].name; }
  std::optional<Receiver> FindReceiver(const std::string& name) const;

  // ---- Topology consistency (verify_references.cc) ----------------------------------------------
  void CheckEdges();
  void CheckTransfers();

  // ---- Reference resolution (verify_references.cc) ----------------------------------------------
  void Unknown(Span span, const std::string& what, const std::string& name);
  void CheckReferences();
  void CheckArgs(const tensor::Graph& graph, const std::vector<std::string>& args, Span span);
  void CheckStageReferences(const Stage& stage);
  void CheckScheduled();

  // ---- Forwarding signatures (verify_flow.cc) ---------------------------------------------------
  void CheckSampling();
  void CheckRead(const Stage& stage, const Statement& s, const Buffers& buffers);
  void CheckForwards();
  void CheckPipelineLinks();
  void CheckByName(const TensorGraph& graph, const Reference& next);
  bool HasBatch(const Pipeline& pipeline, size_t link) const;

  // ---- Window separation (verify_state.cc) ------------------------------------------------------
  void CheckWindows();
  void CheckOrder(const Pipeline& pipeline, const TensorGraph& graph, const Actor& actor);
  void CheckEvaluation(const Phase& phase);

  // ---- Shape propagation (verify_state.cc) ------------------------------------------------------
  void CheckStateTypes();
  const StateField* WindowField(const TensorGraph& graph, const std::string& name) const;

  // ---- Region provenance (verify_flow.cc) -------------------------------------------------------
  std::string MemoriesText(uint32_t node) const;
  bool IsLocal(uint32_t node, uint32_t region) const;
  void CheckRegions();
  bool Share(uint32_t a, uint32_t b) const;
  void CheckForwardRegions(const Statement& s, const Buffers& buffers);
  void CheckGraphRegions(const TensorGraph& graph, const Receiver& receiver, const Reference& next);

  // ---- Buffer conservation (verify_flow.cc) -----------------------------------------------------
  void CheckConservation();

  // ---- Tensor reachability (verify_state.cc) ----------------------------------------------------
  void CheckReachability();
  void CheckReachable(const tensor::Graph& graph, const std::vector<std::string>& args,
                      const std::string& where, Span fallback);

  // ---- Persistent memory (verify_state.cc) ------------------------------------------------------
  void CheckPersistentMemory();

  // ---- Finiteness (verify_flow.cc) --------------------------------------------------------------
  void CheckFiniteness();

  const Program& program_;
  support::Diagnostics& diagnostics_;
};

}  // namespace l3c::l1
