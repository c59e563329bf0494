// The one lowering pattern: source, constraints, budget → candidates of the target, best first, or
// the reason why there is none.
//
//   1. enumerate   encode the source, saturate the rules: all candidates share one e-graph
//   2. filter      legality is a premise of the rules, so nothing illegal is ever in a class;
//                  resources are bounds of the extraction
//   3. score       cost vectors, compared component by component
//   4. select      the best few, ordered, for the next lowering to tell apart
//
// Every lowering has the signature
//
//   LoweringResult<Target> Lower(const Source&, const TargetConstraints&, const LoweringOptions&)
//
// and fills the Explanation whether it succeeds or fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layers/search/decision.h"
#include "layers/support/diagnostics.h"

namespace l3c::search {

enum class Mode : uint8_t {
  kOff,     // the first legal candidate in the fixed order
  kGreedy,  // each choice locally best, in the order of the decisions
  kEGraph,  // the best of all candidates
};
std::optional<Mode> ParseMode(std::string_view text);  // "off", "greedy", "egraph"
std::string_view ModeName(Mode mode);

// Counted in work, never in time: the same source and budget stop at the same place.
struct Budget {
  // Rule matches and partial solutions. Telling who lost, and by how much, is beside it.
  uint64_t work = 50'000'000;
  uint64_t egraph_nodes = 500'000;
  bool nodes_given = false;      // by the caller: a search that could do with more takes no more
  uint64_t candidates = 10'000;  // that are scored one by one, after dominance pruning
  size_t top = 8;                // handed to the next lowering
};

// Decision id → label of the choice that must be taken.
using ForcedChoices = std::map<std::string, std::string>;

// A file of rules that the user brings: loaded after the built-in ones of its lowering.
struct AddedRules {
  std::string lowering;  // "l3->l2", "l2->l1", "l1->l0"; other lowerings leave it alone
  std::string file;
  std::string text;
};

struct LoweringOptions {
  Mode mode = Mode::kEGraph;
  Budget budget;
  ForcedChoices forced;  // ids of other lowerings are ignored
  std::vector<AddedRules> rules;
  bool keep_order = false;  // numerics class exact: nothing may add up in another order
};

// Nothing satisfies the constraints, or a forced choice does not exist.
struct NoCandidates {
  std::string reason;
  std::string hint;
  support::Span where;  // the constraint that excludes them, when one does
};
// Too many are left to score one by one.
struct TooManyCandidates {
  uint64_t count = 0;
  std::string loosest;  // the constraint whose tightening removes most
  std::string hint;
  support::Span where;
};
// A budget ran out.
struct Timeout {
  uint64_t spent = 0;
  uint64_t budget = 0;
  std::string doing;  // "saturating", "extracting"
  std::string hint;
  std::string resource = "work";  // of which: "work", "nodes"
};
using SearchFailure = std::variant<NoCandidates, TooManyCandidates, Timeout>;

// Reports the failure as error[resource-bound], with its hint as the fix.
void ReportFailure(const SearchFailure& failure, support::Span fallback,
                   support::Diagnostics& diagnostics);
std::string_view FailureName(const SearchFailure& failure);  // "NoCandidates", …

template <typename Target>
struct Candidate {
  Target target;
  CostVector cost;
};

template <typename Target>
struct LoweringResult {
  std::vector<Candidate<Target>> candidates;  // best first; empty when `failure` is set
  std::optional<SearchFailure> failure;
  // Beside diagnostics: there are candidates, but none fits into the memory that there is; what the
  // best would need at least.
  std::optional<int64_t> needed_bytes;
  Explanation explanation;

  bool ok() const { return !failure.has_value(); }
  const Target& best() const { return candidates.front().target; }
};

// Work of one training step, or of a part of it, as a lowering that knows no machine sees it.
struct StepWork {
  double contraction_flops = 0;  // multiply and add count two
  double elementwise_flops = 0;  // weighted by the op's cost, an add is one
  double bytes = 0;              // read and written in memory
  double launches = 0;           // kernels with a barrier after them

  StepWork& operator+=(const StepWork& other) {
    contraction_flops += other.contraction_flops;
    elementwise_flops += other.elementwise_flops;
    bytes += other.bytes;
    launches += other.launches;
    return *this;
  }
};

// Predicted time of a piece of a step. Additive over pieces. Implementations: the reference
// machine of cost/priors.json, which is the same everywhere, or a calibrated target.
class StepTimeEstimator {
 public:
  virtual ~StepTimeEstimator() = default;
  virtual double Seconds(const StepWork& work) const = 0;
  virtual std::string_view evidence() const = 0;  // "prior", "measured", …
};

}  // namespace l3c::search
