// The static checks, from the parts to the whole: names and ids first, since everything else reads
// through them; then pools and slots, kernels, commands one by one, what metrics and checkpoints
// refer to, control. A plan that passes all of them is rehearsed (plan_rehearsal.h).
#include "layers/l0/plan_verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/control_verify.h"
#include "layers/l0/kernel_verify.h"
#include "layers/l0/plan_rehearsal.h"
#include "layers/l0/plan_verify_parts.h"

namespace l3c::l0 {
namespace {

using support::Diagnostic;
using support::Diagnostics;
using support::Kind;
using support::Span;

class Verifier {
 public:
  Verifier(const Plan& plan, Diagnostics& diagnostics) : plan_(plan), diagnostics_(diagnostics) {}

  void Verify() {
    CheckNamesAndIds(plan_, diagnostics_);
    if (diagnostics_.has_errors()) return;
    CheckMemory(plan_, diagnostics_);
    CheckData(plan_, diagnostics_);
    for (const Kernel& kernel : plan_.kernels) VerifyKernel(kernel, diagnostics_);
    CheckCode();
    for (const Sequence& sequence : plan_.sequences) CheckSequence(sequence);
    CheckSlots();
    CheckLines(plan_, diagnostics_);
    CheckTokens();
    CheckMetrics();
    CheckCheckpoint();
    CheckUses();
    if (plan_.control.empty()) {
      Error(Kind::kLiveness, {}, "the plan has no control unit, so nothing ever runs");
    }
    bool control_sound = true;
    for (const ControlUnit& unit : plan_.control) {
      control_sound = VerifyControl(unit, plan_, diagnostics_) && control_sound;
    }
    if (control_sound) {
      for (const ControlUnit& unit : plan_.control) CheckPipeline(unit);
      CheckReached();
    }
    if (diagnostics_.has_errors()) return;
    for (const ControlUnit& unit : plan_.control) Rehearse(plan_, unit, diagnostics_);
  }

 private:
  Diagnostic& Error(Kind kind, Span span, const std::string& message) {
    return diagnostics_.Error(kind, span, message);
  }

  // Of a kernel there is one code; a shared object is the one that the plan was made with.
  void CheckCode() {
    std::vector<const KernelCode*> of(plan_.kernels.size());
    for (const KernelCode& code : plan_.code) {
      const KernelCode*& first = of[code.kernel];
      if (first != nullptr) {
        Error(Kind::kConsistency, code.span,
              "kernel '" + plan_.kernels[code.kernel].name + "' has two codes")
            .With({first->span, "the other one"});
        continue;
      }
      first = &code;
      if (code.form != KernelCode::Form::kObject) continue;
      const std::optional<uint64_t> digest = DigestOfFile(code.path);
      if (!digest) {
        Error(Kind::kEnvironment, code.span, "cannot read '" + code.path + "'");
      } else if (*digest != code.digest) {
        Error(Kind::kConsistency, code.span,
              "'" + code.path + "' is another shared object than the one that the plan names");
      }
    }
  }

  // ---- Memory --------------------------------------------------------------------------------

  // Slots that share bytes: in a window, and in an arena if no sequence has both alive at once.
  // Sharing between sequences and in a window is right when the order of commands is, which the
  // rehearsal looks at.
  void CheckSlots() {
    std::vector<BufferId> order(plan_.buffers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<BufferId>(i);
    std::sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
      const Buffer &x = plan_.buffers[a], &y = plan_.buffers[b];
      return std::tuple(x.pool, x.offset, a) < std::tuple(y.pool, y.offset, b);
    });
    int64_t pairs = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Buffer& a = plan_.buffers[order[i]];
      for (size_t j = i + 1; j < order.size(); ++j) {
        const Buffer& b = plan_.buffers[order[j]];
        if (b.pool != a.pool || b.offset >= a.offset + a.size) break;
        if (++pairs > kMaxSlotPairs) {
          Error(Kind::kResourceBound, b.span,
                "more than " + std::to_string(kMaxSlotPairs) + " pairs of buffers share bytes");
          return;
        }
        if (b.size == 0 || a.last_use < b.first_use || b.last_use < a.first_use) continue;
        const Pool& pool = plan_.pools[a.pool];
        if (pool.kind == PoolKind::kWindow || pool.kind == PoolKind::kExchange) continue;
        if (pool.kind == PoolKind::kArena && !UsedTogether(order[i], order[j])) continue;
        Error(Kind::kSafety, b.span,
              "buffers '" + a.name + "' and '" + b.name + "' share bytes of pool '" + pool.name +
                  "' while both live")
            .With({a.span, "'" + a.name + "' takes bytes " + std::to_string(a.offset) + " to " +
                               std::to_string(a.offset + a.size)});
        if (diagnostics_.all().size() >= Diagnostics::kMaxReported) return;
      }
    }
  }

  bool UsedTogether(BufferId a, BufferId b) const {
    auto x = users_.find(a), y = users_.find(b);
    if (x == users_.end() || y == users_.end()) return false;
    return std::any_of(x->second.begin(), x->second.end(),
                       [&](size_t sequence) { return y->second.count(sequence) > 0; });
  }

  // ---- Commands ------------------------------------------------------------------------------

  void CheckSequence(const Sequence& sequence) {
    const auto index = static_cast<size_t>(&sequence - plan_.sequences.data());
    std::set<BufferId> written;  // of arenas, in this run of the sequence
    for (size_t at = 0; at < sequence.commands.size(); ++at) {
      const Command& command = sequence.commands[at];
      const StreamKind stream = plan_.streams[sequence.stream].kind;
      std::vector<BufferId> reads, writes;
      switch (command.kind) {
        case CommandKind::kLaunch:
          if (stream != StreamKind::kCompute) Misplaced(sequence, command, "launch", "compute");
          CheckLaunch(command, reads, writes);
          break;
        case CommandKind::kLoad:
          if (stream != StreamKind::kLoader) Misplaced(sequence, command, "load", "loader");
          CheckLoad(command, writes);
          break;
        case CommandKind::kCopy:
          CheckCopy(command);
          reads = {command.args[0]};
          writes = {command.args[1]};
          break;
        case CommandKind::kReport:
          CheckReport(command, reads);
          break;
        case CommandKind::kPublish:
          if (!IsPlanName(command.split)) {
            Error(Kind::kConsistency, command.span, "a publish command names no split");
          }
          published_.insert(command.split);
          break;
        case CommandKind::kWait:
          waiters_[command.token].insert(sequence.stream);
          break;
        case CommandKind::kSignal:
          signallers_[command.token].insert(sequence.stream);
          break;
        case CommandKind::kCheckpoint:
        case CommandKind::kComplete:
          break;
      }
      for (BufferId id : reads) Use(id, index, at, command, written.count(id) > 0);
      for (BufferId id : writes) {
        Use(id, index, at, command, true);
        written.insert(id);
      }
    }
  }

  void Misplaced(const Sequence& sequence, const Command& command, std::string_view what,
                 std::string_view kind) {
    Error(Kind::kConsistency, command.span,
          "a " + std::string(what) + " command on stream '" + plan_.streams[sequence.stream].name +
              "', which is no " + std::string(kind) + " stream");
  }

  void Use(BufferId id, size_t sequence, size_t at, const Command& command, bool defined) {
    users_[id].insert(sequence);
    const Buffer& buffer = plan_.buffers[id];
    if (plan_.pools[buffer.pool].kind != PoolKind::kArena) return;
    const auto position = static_cast<int64_t>(at);
    const std::string where =
        "command " + std::to_string(at) + " of sequence '" + plan_.sequences[sequence].name + "'";
    if (position < buffer.first_use || position > buffer.last_use) {
      Error(Kind::kSafety, command.span,
            where + " uses buffer '" + buffer.name + "' outside its life, " +
                std::to_string(buffer.first_use) + ".." + std::to_string(buffer.last_use))
          .With({buffer.span, "'" + buffer.name + "' is declared here"});
    } else if (!defined) {
      Error(Kind::kSafety, command.span,
            where + " reads buffer '" + buffer.name + "' before the sequence has written it");
    }
  }

  void CheckLaunch(const Command& command, std::vector<BufferId>& reads,
                   std::vector<BufferId>& writes) {
    const Kernel& kernel = plan_.kernels[command.kernel];
    launched_.insert(command.kernel);
    if (command.args.size() != kernel.params.size()) {
      Error(Kind::kSafety, command.span,
            "kernel '" + kernel.name + "' has " + std::to_string(kernel.params.size()) +
                " parameters and is given " + std::to_string(command.args.size()) + " buffers");
      return;
    }
    std::map<BufferId, size_t> given;
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      const Param& param = kernel.params[i];
      const Buffer& buffer = plan_.buffers[command.args[i]];
      const std::string title = "buffer '" + buffer.name + "', given to parameter '" + param.name +
                                "' of kernel '" + kernel.name + "',";
      if (buffer.dtype != param.dtype) {
        Error(Kind::kSafety, command.span,
              title + " holds " + std::string(tensor::DTypeName(buffer.dtype)) + ", not " +
                  std::string(tensor::DTypeName(param.dtype)));
      }
      if (tensor::NumElements(buffer.shape) != tensor::NumElements(param.shape)) {
        Error(Kind::kSafety, command.span,
              title + " has the extents " + tensor::ShapeToString(buffer.shape) + ", not " +
                  tensor::ShapeToString(param.shape));
      }
      if (param.access != Access::kOut) reads.push_back(command.args[i]);
      if (param.access != Access::kIn) writes.push_back(command.args[i]);
      auto [it, first] = given.emplace(command.args[i], i);
      if (!first &&
          (param.access != Access::kIn || kernel.params[it->second].access != Access::kIn)) {
        Error(Kind::kSafety, command.span,
              title + " is also its parameter '" + kernel.params[it->second].name +
                  "', and one of the two is written");
      }
    }
  }

  void CheckLoad(const Command& command, std::vector<BufferId>& writes) {
    const Sampler& sampler = plan_.samplers[command.sampler];
    const DataSource& source = plan_.sources[sampler.source];
    sampled_.insert(command.sampler);
    if (command.fields.size() > kMaxFields) {
      Error(Kind::kResourceBound, command.span,
            "a load of more than " + std::to_string(kMaxFields) + " fields");
      return;
    }
    const auto check = [&](const std::string& title, BufferId id, DType dtype, int64_t elements) {
      const Buffer& buffer = plan_.buffers[id];
      if (buffer.dtype != dtype || tensor::NumElements(buffer.shape) != elements) {
        Error(Kind::kSafety, command.span,
              title + " of a batch is " + std::to_string(elements) + " elements of " +
                  std::string(tensor::DTypeName(dtype)) + "; buffer '" + buffer.name + "' has " +
                  std::to_string(tensor::NumElements(buffer.shape)) + " of " +
                  std::string(tensor::DTypeName(buffer.dtype)));
      }
      if (std::find(writes.begin(), writes.end(), id) != writes.end()) {
        Error(Kind::kSafety, command.span,
              "buffer '" + buffer.name + "' is written twice by one load");
      }
      writes.push_back(id);
    };
    for (const auto& [name, id] : command.fields) {
      auto field =
          std::find_if(source.fields.begin(), source.fields.end(),
                       [&, &wanted = name](const FieldSource& f) { return f.field == wanted; });
      if (field == source.fields.end()) {
        Error(Kind::kSafety, command.span,
              "data source '" + source.name + "' has no field '" + name + "'");
        continue;
      }
      check("field '" + name + "'", id, field->dtype,
            sampler.batch * tensor::NumElements(field->shape));
    }
    if (command.mask.size() > 1) Error(Kind::kSafety, command.span, "a load has one mask at most");
    if (!command.mask.empty()) check("the mask", command.mask[0], DType::kF32, sampler.batch);
  }

  void CheckCopy(const Command& command) {
    const Buffer& from = plan_.buffers[command.args[0]];
    const Buffer& to = plan_.buffers[command.args[1]];
    if (from.dtype != to.dtype || from.size != to.size) {
      Error(Kind::kSafety, command.span,
            "a copy from '" + from.name + "' to '" + to.name + "', which differ in type or size");
    }
    if (command.args[0] == command.args[1]) {
      Error(Kind::kSafety, command.span, "a copy of '" + from.name + "' to itself");
    }
  }

  void CheckReport(const Command& command, std::vector<BufferId>& reads) {
    if (!IsPlanName(command.split)) {
      Error(Kind::kConsistency, command.span, "a report command names no split");
    }
    for (const auto& [name, id] : command.values) {
      const Buffer& buffer = plan_.buffers[id];
      if (buffer.dtype != DType::kF32 || tensor::NumElements(buffer.shape) != 1) {
        Error(Kind::kSafety, command.span,
              "buffer '" + buffer.name + "' is reported and is not one f32");
      }
      if (!IsPlanName(name))
        Error(Kind::kConsistency, command.span, "a reported value has no name");
      reported_.insert({command.split, name});
      reads.push_back(id);
    }
  }

  // ---- The whole -----------------------------------------------------------------------------

  void CheckTokens() {
    for (size_t t = 0; t < plan_.tokens.size(); ++t) {
      const Token& token = plan_.tokens[t];
      const auto id = static_cast<TokenId>(t);
      const std::string title = "token '" + token.name + "'";
      const std::set<StreamId>& waiters = waiters_[id];
      const std::set<StreamId>& signallers = signallers_[id];
      if (token.initial < 0) {
        Error(Kind::kConsistency, token.span, title + " begins below zero");
      }
      if (waiters.empty()) {
        Error(Kind::kLiveness, token.span,
              title + (signallers.empty() ? " is neither waited for nor signalled"
                                          : " is signalled and never waited for"));
      } else if (signallers.empty()) {
        Error(Kind::kLiveness, token.span, title + " is waited for and never signalled");
      }
      if (waiters.size() > 1 || signallers.size() > 1) {
        Error(Kind::kSafety, token.span,
              title + (waiters.size() > 1 ? " is waited for by" : " is signalled by") +
                  " more than one stream, so that their order would depend on timing");
      }
    }
  }

  void CheckMetrics() {
    std::set<std::pair<std::string, std::string>> names;
    for (const Metric& metric : plan_.metrics) {
      const std::string title = "metric '" + metric.name + "(" + metric.split + ")'";
      if (!IsPlanName(metric.name) || !IsPlanName(metric.split) ||
          !names.insert({metric.split, metric.name}).second) {
        Error(Kind::kConsistency, metric.span, title + " is declared twice or has no name");
      }
      for (const std::string& name : {metric.numerator, metric.denominator}) {
        if (reported_.count({metric.split, name}) > 0) continue;
        Error(
            Kind::kConsistency, metric.span,
            title + " reads '" + name + "', which no report of split '" + metric.split + "' gives");
      }
    }
    std::set<std::string> splits;
    for (const auto& [split, name] : reported_) splits.insert(split);
    for (const std::string& split : splits) {
      if (published_.count(split) > 0) continue;
      Error(Kind::kLiveness, {}, "what is reported of split '" + split + "' is never published");
    }
  }

  void CheckCheckpoint() {
    std::set<BufferId> kept;
    for (const auto* list : {&plan_.parameters, &plan_.optimiser_state}) {
      for (BufferId id : *list) {
        const Buffer& buffer = plan_.buffers[id];
        if (!kept.insert(id).second) {
          Error(Kind::kConsistency, buffer.span,
                "buffer '" + buffer.name + "' is kept twice by a checkpoint");
        }
        if (plan_.pools[buffer.pool].kind != PoolKind::kPersistent) {
          Error(Kind::kConsistency, buffer.span,
                "buffer '" + buffer.name + "' is kept by a checkpoint and does not persist");
        }
      }
    }
  }

  // Nothing is declared for nobody.
  void CheckUses() {
    std::set<BufferId> touched(plan_.parameters.begin(), plan_.parameters.end());
    touched.insert(plan_.optimiser_state.begin(), plan_.optimiser_state.end());
    for (const auto& [id, users] : users_) touched.insert(id);
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (touched.count(static_cast<BufferId>(i)) > 0) continue;
      Error(Kind::kLiveness, plan_.buffers[i].span,
            "buffer '" + plan_.buffers[i].name + "' takes memory and no command uses it");
    }
    for (size_t i = 0; i < plan_.kernels.size(); ++i) {
      if (launched_.count(static_cast<KernelId>(i)) > 0) continue;
      Error(Kind::kLiveness, plan_.kernels[i].span,
            "kernel '" + plan_.kernels[i].name + "' is never launched");
    }
    for (size_t i = 0; i < plan_.samplers.size(); ++i) {
      if (sampled_.count(static_cast<SamplerId>(i)) > 0) continue;
      Error(Kind::kLiveness, plan_.samplers[i].span,
            "sampler '" + plan_.samplers[i].name + "' feeds no load");
    }
  }

  // Every sequence is pushed by some control unit.
  void CheckReached() {
    std::set<SequenceId> pushed;
    for (const ControlUnit& unit : plan_.control) {
      for (SequenceId id : PushedSequences(unit)) pushed.insert(id);
    }
    for (size_t i = 0; i < plan_.sequences.size(); ++i) {
      if (pushed.count(static_cast<SequenceId>(i)) > 0) continue;
      Error(Kind::kLiveness, plan_.sequences[i].span,
            "sequence '" + plan_.sequences[i].name + "' is pushed by no control unit");
    }
  }

  // A unit that keeps n batches of a sampler in flight has n staging sets for it: the n sequences
  // that load them write different bytes.
  void CheckPipeline(const ControlUnit& unit) {
    std::map<SamplerId, std::vector<SequenceId>> loads;
    for (SequenceId id : PushedSequences(unit)) {
      std::set<SamplerId> samplers;
      for (const Command& command : plan_.sequences[id].commands) {
        if (command.kind == CommandKind::kLoad) samplers.insert(command.sampler);
      }
      for (SamplerId sampler : samplers) loads[sampler].push_back(id);
    }
    for (const auto& [sampler, sequences] : loads) {
      std::map<BufferId, SequenceId> owner;
      size_t sets = sequences.size();
      const Command* shared = nullptr;
      for (SequenceId id : sequences) {
        bool own = true;
        for (const Command& command : plan_.sequences[id].commands) {
          if (command.kind != CommandKind::kLoad) continue;
          for (const auto& [field, buffer] : command.fields) {
            auto [it, added] = owner.emplace(buffer, id);
            if (added || it->second == id) continue;
            own = false;
            shared = &command;
          }
        }
        if (!own) --sets;
      }
      if (shared == nullptr) continue;
      Error(Kind::kResourceBound, shared->span,
            "control unit '" + unit.name + "' keeps " + std::to_string(sequences.size()) +
                " batches of sampler '" + plan_.samplers[sampler].name +
                "' in flight, and there are staging buffers for " + std::to_string(sets));
    }
  }

  const Plan& plan_;
  Diagnostics& diagnostics_;
  std::map<BufferId, std::set<size_t>> users_;  // the sequences that use a buffer
  std::map<TokenId, std::set<StreamId>> waiters_, signallers_;
  std::set<std::pair<std::string, std::string>> reported_;  // (split, name)
  std::set<std::string> published_;
  std::set<KernelId> launched_;
  std::set<SamplerId> sampled_;
};

}  // namespace

bool VerifyPlan(const Plan& plan, Diagnostics& diagnostics) {
  Verifier(plan, diagnostics).Verify();
  return !diagnostics.has_errors();
}

}  // namespace l3c::l0
