#include "layers/l1/verify.h"

#include <algorithm>

#include "layers/l1/text.h"
#include "layers/l1/verifier.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::l1 {

using support::Kind;

std::string Text(const TensorType& type) { return tensor::TypeToString(type.dtype, type.shape); }

Buffers BuffersOf(const Stage& stage) {
  Buffers buffers;
  for (const BufferParam& p : stage.params)
    buffers[p.name] = {{p.dtype, p.shape}, p.region, p.span};
  ForEachStatement(stage.body, [&](const Statement& s) {
    if (s.kind == StatementKind::kAlloc) buffers[s.buffer] = {{s.dtype, s.shape}, s.region, s.span};
  });
  return buffers;
}

namespace {

Receiver::Slot SlotOf(const tensor::Graph& graph, const std::string& arg) {
  const tensor::Node& node = graph.node(*graph.Find(arg));
  return {arg, {node.dtype, node.shape}, std::nullopt};
}

}  // namespace

bool Verifier::Run() {
  const size_t before = diagnostics_.all().size();
  const auto clean = [&] { return diagnostics_.all().size() == before; };
  // Later checks follow names and node numbers that these have found good.
  CheckEdges();
  if (!clean() || IsSystemFragment(program_)) return clean();
  CheckReferences();
  if (!clean()) return false;
  CheckPlaces();
  CheckTransfers();
  CheckScheduled();
  CheckSampling();
  CheckForwards();
  CheckPipelineLinks();
  CheckSteps();
  CheckWindows();
  CheckStateTypes();
  CheckReplicas();
  CheckRegions();
  CheckConservation();
  CheckReachability();
  CheckPersistentMemory();
  CheckFiniteness();
  // What runs follows from the rest.
  if (clean()) CheckMetrics();
  return clean();
}

support::Diagnostic& Verifier::Error(Kind kind, Span span, std::string message) {
  return diagnostics_.Error(kind, span, std::move(message));
}

std::optional<Receiver> Verifier::FindReceiver(const std::string& name) const {
  Receiver receiver;
  if (const Stage* stage = index_.FindStage(name)) {
    receiver.node = stage->node;
    receiver.span = stage->span;
    for (const BufferParam& p : stage->params) {
      receiver.slots.push_back({p.name, {p.dtype, p.shape}, p.region});
    }
    return receiver;
  }
  if (const TensorGraph* graph = index_.FindGraph(name)) {
    receiver.node = graph->node;
    receiver.span = graph->span;
    for (const std::string& arg : graph->args) {
      receiver.slots.push_back(SlotOf(graph->graph, arg));
    }
    return receiver;
  }
  if (const HandlerRef* ref = index_.FindHandler(name)) {
    receiver.node = ref->actor->node;
    receiver.span = ref->handler->span;
    for (const std::string& arg : ref->handler->args) {
      receiver.slots.push_back(SlotOf(ref->handler->graph, arg));
    }
    return receiver;
  }
  return std::nullopt;
}

bool Verify(const Program& program, support::Diagnostics& diagnostics) {
  return Verifier(program, diagnostics).Run();
}

bool VerifyTrains(const Program& program, support::Diagnostics& diagnostics) {
  if (IsSystemFragment(program)) return true;
  const bool trains =
      std::any_of(program.actors.begin(), program.actors.end(), [](const Actor& actor) {
        return std::any_of(actor.state.begin(), actor.state.end(),
                           [](const StateField& field) { return field.parameter; });
      });
  if (trains) return true;
  const bool none = program.actors.empty();
  diagnostics
      .Error(Kind::kLiveness, none ? program.schedule.span : program.actors.front().span,
             none ? "there is nothing to train: there is no actor"
                  : "there is nothing to train: no state field is a 'param'")
      .Fix("mark what training changes, as in `w : tensor(f32, [4]), init: zeros, param`");
  return false;
}

}  // namespace l3c::l1
