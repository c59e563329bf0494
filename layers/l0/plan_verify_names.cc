#include "layers/l0/plan_verify_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/plan_verify.h"

namespace l3c::l0 {

bool IsPlanName(const std::string& text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}
namespace {

using support::Diagnostics;
using support::Kind;
using support::Span;

class PlanNames {
 public:
  PlanNames(const Plan& plan, Diagnostics& diagnostics) : plan_(plan), diagnostics_(diagnostics) {}

  template <class T>
  void CheckNamesOf(std::string_view what, const std::vector<T>& things) {
    std::map<std::string, Span> seen;
    for (const T& thing : things) {
      const std::string title = std::string(what) + " '" + thing.name + "'";
      if (!IsPlanName(thing.name)) {
        diagnostics_.Error(Kind::kConsistency, thing.span,
                           title + ": a name is letters, digits and underscores");
      }
      auto [it, added] = seen.emplace(thing.name, thing.span);
      if (added) continue;
      diagnostics_.Error(Kind::kConsistency, thing.span, title + " is declared twice")
          .With({it->second, "'" + thing.name + "' is declared here"});
    }
  }

  void CheckNames() {
    if (!IsPlanName(plan_.name)) {
      diagnostics_.Error(Kind::kConsistency, {},
                         "the plan's name '" + plan_.name + "' is not a name");
    }
    CheckNamesOf("pool", plan_.pools);
    CheckNamesOf("buffer", plan_.buffers);
    CheckNamesOf("kernel", plan_.kernels);
    CheckNamesOf("data source", plan_.sources);
    CheckNamesOf("sampler", plan_.samplers);
    CheckNamesOf("token", plan_.tokens);
    CheckNamesOf("stream", plan_.streams);
    CheckNamesOf("sequence", plan_.sequences);
    CheckNamesOf("phase", plan_.phases);
    CheckNamesOf("control unit", plan_.control);
    if (plan_.sequences.size() >= size_t{1} << kSequenceBits) {
      diagnostics_.Error(Kind::kResourceBound, {}, "more sequences than a descriptor can name");
    }
    if (plan_.streams.size() > kMaxStreams) {
      diagnostics_.Error(Kind::kResourceBound, {},
                         "more than " + std::to_string(kMaxStreams) + " streams");
    }
    for (const DataSource& source : plan_.sources) {
      if (source.fields.size() <= kMaxFields) continue;
      diagnostics_.Error(Kind::kResourceBound, source.span,
                         "data source '" + source.name + "' has more than " +
                             std::to_string(kMaxFields) + " fields");
    }
    for (const Token& token : plan_.tokens) {
      if (token.initial <= kMaxTokenCount) continue;
      diagnostics_.Error(
          Kind::kResourceBound, token.span,
          "token '" + token.name + "' begins with more than " + std::to_string(kMaxTokenCount));
    }
  }

  template <class T>
  bool CheckId(std::string_view what, uint64_t id, const std::vector<T>& things, Span span) {
    if (id < things.size()) return true;
    diagnostics_.Error(Kind::kSafety, span,
                       std::string(what) + " " + std::to_string(id) +
                           " does not exist; there are " + std::to_string(things.size()));
    return false;
  }

  void CheckIds() {
    for (const Buffer& buffer : plan_.buffers) {
      CheckId("pool", buffer.pool, plan_.pools, buffer.span);
    }
    for (const KernelCode& code : plan_.code) {
      CheckId("kernel", code.kernel, plan_.kernels, code.span);
    }
    for (const InitOp& op : plan_.init) CheckId("buffer", op.buffer, plan_.buffers, op.span);
    for (const Sampler& sampler : plan_.samplers) {
      CheckId("data source", sampler.source, plan_.sources, sampler.span);
    }
    for (BufferId id : plan_.parameters) CheckId("buffer", id, plan_.buffers, {});
    for (BufferId id : plan_.optimiser_state) CheckId("buffer", id, plan_.buffers, {});
    for (const Sequence& sequence : plan_.sequences) {
      CheckId("stream", sequence.stream, plan_.streams, sequence.span);
      for (const Command& command : sequence.commands) CheckCommandIds(command);
    }
  }

  void CheckCommandIds(const Command& command) {
    for (BufferId id : command.args) CheckId("buffer", id, plan_.buffers, command.span);
    for (BufferId id : command.mask) CheckId("buffer", id, plan_.buffers, command.span);
    for (const auto& [name, id] : command.fields) {
      CheckId("buffer", id, plan_.buffers, command.span);
    }
    for (const auto& [name, id] : command.values) {
      CheckId("buffer", id, plan_.buffers, command.span);
    }
    switch (command.kind) {
      case CommandKind::kLaunch:
        CheckId("kernel", command.kernel, plan_.kernels, command.span);
        break;
      case CommandKind::kLoad:
        CheckId("sampler", command.sampler, plan_.samplers, command.span);
        break;
      case CommandKind::kWait:
      case CommandKind::kSignal:
        CheckId("token", command.token, plan_.tokens, command.span);
        break;
      case CommandKind::kCopy:
        if (command.args.size() != 2) {
          diagnostics_.Error(Kind::kSafety, command.span, "a copy takes two buffers");
        }
        break;
      case CommandKind::kReport:
      case CommandKind::kCheckpoint:
      case CommandKind::kPublish:
      case CommandKind::kComplete:
        break;
    }
  }

 private:
  const Plan& plan_;
  Diagnostics& diagnostics_;
};

}  // namespace

void CheckNamesAndIds(const Plan& plan, support::Diagnostics& diagnostics) {
  PlanNames names(plan, diagnostics);
  names.CheckNames();
  names.CheckIds();
}

}  // namespace l3c::l0
