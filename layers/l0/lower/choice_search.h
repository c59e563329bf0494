// The search for the cheapest choice of kernels, and for the cheapest with something forced.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/extract.h"
#include "egraph/extract/refine.h"

namespace l3c::l0::lower {

class ChoiceSearch {
 public:
  using Choice = std::pair<egraph::ClassRef, egraph::ENodeRef>;

  // `joint` false: each class takes what is best for itself, bottom-up (greedy, and where there is
  // nothing to choose). `extractor` must outlive the search.
  ChoiceSearch(const egraph::Extractor& extractor, std::vector<egraph::ClassRef> roots, bool joint,
               uint64_t max_work);

  bool feasible() const { return best_.feasible; }
  const egraph::Extraction& Best() const { return best_; }
  // The best found when the classes take these e-nodes and are wanted for themselves, starting from
  // Best(): the same choices give the same result, however they are asked for. Nothing when it
  // cannot be.
  std::optional<egraph::Extraction> With(const std::vector<Choice>& choices);
  // Improves what comes of taking all these e-nodes at once, and keeps it where it is better than
  // Best(). Choices that pay only together are found so. Nothing happens where there is no joint
  // search.
  void TryTogether(const std::vector<Choice>& choices);
  // The same, but what depends on the choices is settled around them one after the other first.
  void TryFixed(const std::vector<Choice>& choices);
  // From now on these e-nodes are taken, in Best() and in whatever With() finds.
  // False where they cannot be; nothing is changed then.
  bool Require(const std::vector<Choice>& choices);
  uint64_t work() const;
  // Of that, until there was a first choice: it is made whatever the bound is.
  uint64_t first_work() const { return first_work_; }
  bool spent() const { return work() >= max_work_; }

 private:
  // What a search may take that would like so much.
  uint64_t Within(uint64_t wanted) const;

  const egraph::Extractor& extractor_;
  const uint64_t max_work_;
  std::vector<egraph::ClassRef> roots_;
  std::vector<Choice> required_;
  std::unique_ptr<egraph::Refiner> refiner_;  // of a joint search
  egraph::Refiner::Saved saved_;
  egraph::Extraction best_;
  uint64_t work_ = 0;
  uint64_t first_work_ = 0;
};

}  // namespace l3c::l0::lower
