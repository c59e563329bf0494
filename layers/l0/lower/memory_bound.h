// Keeps a plan within the memory that it may take.
//
// What a plan takes in a memory: the state and the batches in flight that lie there for the whole
// run, and an arena for each pipeline. Only arenas can be made smaller (recompute.h). Each memory
// of the system gives what it has; what the caller asks for bounds all of them together. Of these
// bounds the plan is kept within the one that it exceeds by most, or is nearest to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/lower/recompute.h"
#include "layers/l0/plan.h"
#include "layers/l1/ir.h"
#include "layers/search/lowering.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0::lower {

struct BoundStep {
  StepPlan* plan = nullptr;  // replaced by one that fits
  const ValueTable* table = nullptr;
  const ChooseOptions* options = nullptr;
};

class MemoryBound {
 public:
  // `plan`: put together with everything saved.
  MemoryBound(const Plan& plan, const l1::System& system, std::optional<int64_t> asked);

  bool Fits() const { return place_.total <= place_.bound; }
  int64_t taken() const { return place_.total; }  // bytes, in the memory that is bounded

  // Decides for all steps what is saved. False with `needed`, the bytes that the plan needs, or
  // with `failure` or `rule_error`.
  bool Keep(std::vector<BoundStep>& steps, std::string_view evidence, const RuleSources& rules,
            search::Explanation& explanation, std::optional<search::SearchFailure>& failure,
            std::string& rule_error, int64_t& needed) const;

  // That a plan needs more than there is.
  void Report(int64_t needed, support::Diagnostics& diagnostics) const;

 private:
  struct Place {
    std::string name;                // of the memory; "": all of them
    std::optional<uint32_t> memory;  // its number
    int64_t bound = kNoBound;
    support::Span where;
    int64_t state = 0;
    int64_t staging = 0;
    int64_t window = 0;  // for state of other memories
    int64_t total = 0;

    bool asked() const { return name.empty(); }  // by the caller, else by the system
    void Add(const Pool& pool);
  };
  int64_t Fixed() const { return place_.state + place_.staging + place_.window; }

  Place place_;
};

// Shares `bytes` among arenas that would like to have `wanted`: those that want least get it, the
// others as much as one another.
std::vector<int64_t> ShareBytes(const std::vector<int64_t>& wanted, int64_t bytes);

}  // namespace l3c::l0::lower
