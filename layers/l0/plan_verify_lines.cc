// Slots of an arena may share cache lines (plan.h). What is checked here costs no bits: threads
// that write different bytes of one line wait for one another.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/plan_verify.h"
#include "layers/l0/plan_verify_parts.h"

namespace l3c::l0 {
namespace {

using support::Diagnostics;
using support::Kind;

class Lines {
 public:
  Lines(const Plan& plan, Diagnostics& diagnostics) : plan_(plan), diagnostics_(diagnostics) {}

  void Check() {
    FindNeighbours();
    if (neighbours_.empty()) return;
    for (const Sequence& sequence : plan_.sequences) FindUses(sequence);
    CheckStreams();
    for (const Sequence& sequence : plan_.sequences) CheckLaunches(sequence);
  }

 private:
  // Of two that share a line, one ends and the other begins within it.
  void FindNeighbours() {
    std::map<std::pair<PoolId, int64_t>, std::vector<BufferId>> ends;  // in a line
    int64_t pairs = 0;
    for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
      const Buffer& buffer = plan_.buffers[id];
      if (buffer.size == 0 || plan_.pools[buffer.pool].kind != PoolKind::kArena) continue;
      const int64_t last = buffer.offset + buffer.size - 1;
      if ((last + 1) % kAlignment != 0) ends[{buffer.pool, last / kAlignment}].push_back(id);
    }
    for (BufferId b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& later = plan_.buffers[b];
      if (later.size == 0 || later.offset % kAlignment == 0) continue;
      const auto line = ends.find({later.pool, later.offset / kAlignment});
      if (line == ends.end()) continue;
      for (BufferId a : line->second) {
        const Buffer& earlier = plan_.buffers[a];
        if (earlier.offset + earlier.size > later.offset) continue;
        if (++pairs > kMaxSlotPairs) {
          diagnostics_.Error(
              Kind::kResourceBound, later.span,
              "more than " + std::to_string(kMaxSlotPairs) + " pairs of buffers share cache lines");
          neighbours_.clear();
          return;
        }
        neighbours_[a].push_back(b);
        neighbours_[b].push_back(a);
      }
    }
  }

  void FindUses(const Sequence& sequence) {
    const auto use = [&](BufferId id) {
      if (neighbours_.count(id) > 0) users_[id].insert(&sequence);
    };
    for (const Command& command : sequence.commands) {
      for (BufferId id : command.args) use(id);
      for (BufferId id : command.mask) use(id);
      for (const auto& [name, id] : command.fields) use(id);
      for (const auto& [name, id] : command.values) use(id);
    }
  }

  void CheckStreams() {
    for (const auto& [a, others] : neighbours_) {
      for (BufferId b : others) {
        const bool apart = std::any_of(users_[a].begin(), users_[a].end(), [&](const Sequence* x) {
          return std::any_of(users_[b].begin(), users_[b].end(),
                             [&](const Sequence* y) { return x->stream != y->stream; });
        });
        if (a > b || !apart) continue;
        Report(a, b, plan_.buffers[b].span, "and are used by different streams");
      }
    }
  }

  void CheckLaunches(const Sequence& sequence) {
    for (size_t at = 0; at < sequence.commands.size(); ++at) {
      const Command& command = sequence.commands[at];
      if (command.kind != CommandKind::kLaunch) continue;
      const Kernel& kernel = plan_.kernels[command.kernel];
      const int64_t blocks = NumBlocks(kernel);
      if (blocks < 2) continue;
      for (size_t p = 0; p < std::min(kernel.params.size(), command.args.size()); ++p) {
        if (kernel.params[p].access == Access::kIn) continue;
        const auto found = neighbours_.find(command.args[p]);
        if (found == neighbours_.end()) continue;
        for (BufferId other : found->second) {
          const Buffer& beside = plan_.buffers[other];
          const auto position = static_cast<int64_t>(at);
          if (position < beside.first_use || position > beside.last_use) continue;
          if (users_[other].count(&sequence) == 0) continue;
          Report(found->first, other, command.span,
                 "while the first is written in " + std::to_string(blocks) + " blocks of kernel '" +
                     kernel.name + "'");
        }
      }
    }
  }

  void Report(BufferId a, BufferId b, support::Span span, const std::string& how) {
    diagnostics_
        .Error(Kind::kSafety, span,
               "buffers '" + plan_.buffers[a].name + "' and '" + plan_.buffers[b].name +
                   "' lie in one line of " + std::to_string(kAlignment) + " bytes " + how)
        .With({plan_.buffers[a].span, "'" + plan_.buffers[a].name + "' is declared here"});
  }

  const Plan& plan_;
  Diagnostics& diagnostics_;
  std::map<BufferId, std::vector<BufferId>> neighbours_;
  std::map<BufferId, std::set<const Sequence*>> users_;
};

}  // namespace

void CheckLines(const Plan& plan, Diagnostics& diagnostics) { Lines(plan, diagnostics).Check(); }

}  // namespace l3c::l0
