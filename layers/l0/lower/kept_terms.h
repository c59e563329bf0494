// The choice between saving and computing again as terms of rewrites/checkpointing.egg, and the
// extraction of the one that the search has found.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/extract.h"
#include "egraph/run.h"
#include "egraph/view.h"
#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/launch_graph.h"
#include "layers/l0/lower/repeat_search.h"

namespace l3c::l0::lower {

// A value of the forward pass as a launch reads it.
struct KeptRead {
  int32_t value = 0;
  int32_t segment = 0;  // the launch's position
  egraph::ClassRef kept;
  egraph::ENodeRef save, recompute;  // invalid: the rules give no such alternative
};

class KeptTerms {
 public:
  // Before so many launches at most may others run again, and before fewer where the budget has no
  // room for the terms; of more, each is the first of a stretch of equal length.
  static constexpr int32_t kMostSegments = 256;

  // `rules`: the text that declares the terms, then others of the ruleset `checkpoint`.
  KeptTerms(const LaunchGraph& graph, const std::vector<RuleSource>& rules,
            egraph::Numerics numerics, const egraph::Budget& budget);
  ~KeptTerms();

  // "" when the graph is there to be asked; else what is wrong with the rules or the budget.
  const std::string& error() const { return error_; }
  const egraph::RunReport& report() const { return report_; }

  // What may run again and where, as the e-nodes say.
  const RepeatOptions& options() const { return options_; }
  const std::vector<KeptRead>& reads() const { return reads_; }
  // The terms that say what `repeats` does.
  egraph::Extraction Extract(const Repeats& repeats) const;
  // What the terms of an extraction run again.
  Repeats Read(const egraph::Extraction& extraction) const;
  const egraph::Rule& RuleOf(egraph::ENodeRef node) const;
  // Terms for the whole backward pass, counted on the graph.
  double CountChoices() const;

 private:
  class Seconds;
  void Assert(const LaunchGraph& graph, uint64_t max_rows);
  void Find(const LaunchGraph& graph);

  egraph::EGraph egraph_;
  std::string error_;
  egraph::RunReport report_;
  std::unique_ptr<egraph::EGraphView> view_;
  std::unique_ptr<Seconds> costs_;
  std::unique_ptr<egraph::Extractor> extractor_;
  std::vector<int32_t> makers_;  // by value
  size_t ops_ = 0;
  RepeatOptions options_;
  std::vector<KeptRead> reads_;
  std::vector<egraph::ClassRef> roots_;
};

}  // namespace l3c::l0::lower
