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
namespace {

using support::Diagnostics;
using support::Kind;

class PlanMemory {
 public:
  PlanMemory(const Plan& plan, Diagnostics& diagnostics) : plan_(plan), diagnostics_(diagnostics) {}

  void CheckPools() {
    struct Node {
      int64_t capacity = 0;
      double used = 0;
      const Pool* first = nullptr;
    };
    std::map<std::string, Node> nodes;
    for (const Pool& pool : plan_.pools) {
      if (!IsPlanName(pool.node)) {
        diagnostics_.Error(Kind::kConsistency, pool.span,
                           "pool '" + pool.name + "' is on no memory node");
      }
      if (pool.size < 0 || pool.capacity < 0) {
        diagnostics_.Error(Kind::kResourceBound, pool.span,
                           "pool '" + pool.name + "' has a negative size");
        continue;
      }
      Node& node = nodes[pool.node];
      if (node.first == nullptr) {
        node.capacity = pool.capacity;
        node.first = &pool;
      } else if (node.capacity != pool.capacity) {
        diagnostics_
            .Error(Kind::kConsistency, pool.span,
                   "pool '" + pool.name + "' gives node '" + pool.node + "' another capacity")
            .With({node.first->span, "than pool '" + node.first->name + "' does"});
      }
      node.used += static_cast<double>(pool.size);
    }
    for (const auto& [name, node] : nodes) {
      if (node.used <= static_cast<double>(node.capacity)) continue;
      diagnostics_.Error(Kind::kResourceBound, node.first->span,
                         "the pools on node '" + name + "' take " +
                             std::to_string(static_cast<int64_t>(node.used)) + " bytes of " +
                             std::to_string(node.capacity));
    }
  }

  void CheckBuffers() {
    for (const Buffer& buffer : plan_.buffers) {
      const std::string title = "buffer '" + buffer.name + "'";
      const Pool& pool = plan_.pools[buffer.pool];
      double elements = 1;
      bool extents = buffer.shape.size() <= static_cast<size_t>(tensor::kMaxRank);
      for (int64_t extent : buffer.shape) {
        extents = extents && extent >= 0 && extent <= tensor::kMaxElements;
        elements *= static_cast<double>(extent);
      }
      if (!extents || elements > static_cast<double>(tensor::kMaxElements)) {
        diagnostics_.Error(Kind::kResourceBound, buffer.span, title + " has an impossible shape");
        continue;
      }
      const auto bytes =
          tensor::NumElements(buffer.shape) * static_cast<int64_t>(tensor::SizeOf(buffer.dtype));
      if (buffer.size != bytes) {
        diagnostics_.Error(Kind::kConsistency, buffer.span,
                           title + " has a slot of " + std::to_string(buffer.size) + " bytes for " +
                               std::to_string(bytes) + " bytes of elements");
        continue;
      }
      // Lines are shared in arenas, whose commands come one after the other.
      const int64_t alignment = pool.kind == PoolKind::kArena
                                    ? static_cast<int64_t>(tensor::SizeOf(buffer.dtype))
                                    : kAlignment;
      if (buffer.offset < 0 || buffer.offset % alignment != 0) {
        diagnostics_.Error(Kind::kSafety, buffer.span,
                           title + " begins at " + std::to_string(buffer.offset) +
                               ", which is no multiple of " + std::to_string(alignment));
      } else if (buffer.offset > pool.size - buffer.size) {
        diagnostics_
            .Error(Kind::kResourceBound, buffer.span,
                   title + " ends at byte " + std::to_string(buffer.offset + buffer.size) +
                       " of pool '" + pool.name + "', which has " + std::to_string(pool.size))
            .With({pool.span, "pool '" + pool.name + "' is declared here"});
      }
      if (buffer.first_use < 0 || buffer.last_use < buffer.first_use) {
        diagnostics_.Error(Kind::kConsistency, buffer.span,
                           title + " ends its life before it begins");
      }
      if (pool.kind != PoolKind::kArena &&
          (buffer.first_use != 0 || buffer.last_use != kWholeRun)) {
        diagnostics_.Error(
            Kind::kConsistency, buffer.span,
            title + " lives for the whole run in pool '" + pool.name + "', not a part of it");
      }
    }
  }

  void CheckInit() {
    std::set<BufferId> seen;
    for (const InitOp& op : plan_.init) {
      const Buffer& buffer = plan_.buffers[op.buffer];
      const std::string title = "buffer '" + buffer.name + "'";
      if (!seen.insert(op.buffer).second) {
        diagnostics_.Error(Kind::kConsistency, op.span, title + " is initialised twice");
      }
      const PoolKind kind = plan_.pools[buffer.pool].kind;
      if (kind == PoolKind::kArena || kind == PoolKind::kWindow || kind == PoolKind::kExchange) {
        diagnostics_.Error(Kind::kSafety, op.span,
                           title + " lies in " +
                               (kind == PoolKind::kArena    ? "an arena"
                                : kind == PoolKind::kWindow ? "a window"
                                                            : "an exchange") +
                               ", where no initial value stays");
      }
      const bool random = op.kind == InitKind::kNormal || op.kind == InitKind::kUniform;
      if (random && !tensor::IsFloat(buffer.dtype)) {
        diagnostics_.Error(Kind::kConsistency, op.span,
                           title + " of integers cannot take random reals as initial values");
      }
      if (!std::isfinite(op.a) || !std::isfinite(op.b) ||
          (op.kind == InitKind::kNormal && op.b < 0) ||
          (op.kind == InitKind::kUniform && op.b < op.a)) {
        diagnostics_.Error(Kind::kConsistency, op.span,
                           "the initial distribution of " + title + " has impossible parameters");
      }
    }
  }

 private:
  const Plan& plan_;
  Diagnostics& diagnostics_;
};

}  // namespace

void CheckMemory(const Plan& plan, support::Diagnostics& diagnostics) {
  PlanMemory memory(plan, diagnostics);
  memory.CheckPools();
  memory.CheckBuffers();
  memory.CheckInit();
}

}  // namespace l3c::l0
