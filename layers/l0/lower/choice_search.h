// The search for the cheapest choice of kernels, and for the cheapest with something forced.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/extract.h"
#include "egraph/extract/refine.h"
#include "layers/search/lowering.h"

namespace l3c::l0::lower {

class ChoiceSearch {
 public:
  using Choice = std::pair<egraph::ClassRef, egraph::ENodeRef>;

  // kOff: each class takes what is best for itself, bottom-up; there is next to nothing to choose.
  // kGreedy: from the choice of the least `ranks` (by e-node; unfused.h), one place after the other
  // takes what makes the whole cheaper, until no place can.
  // kEGraph: several places at once, from the bottom-up choice; never dearer than kGreedy as long
  // as there is work left. `extractor` must outlive the search.
  ChoiceSearch(const egraph::Extractor& extractor, std::vector<egraph::ClassRef> roots,
               search::Mode mode, std::vector<uint8_t> ranks, uint64_t max_work);

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
  // Improves what the local search of kGreedy ends with, and keeps it where it is better than
  // Best(). Nothing happens where there is no joint search.
  void TryLocal();
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

  bool joint() const { return refiner_ && mode_ == search::Mode::kEGraph; }
  bool HasAny(egraph::ClassRef c) const;  // an e-node of finite cost
  // Brings the refiner to the end of the local search.
  void StartLocally();

  const egraph::Extractor& extractor_;
  const search::Mode mode_;
  const std::vector<uint8_t> ranks_;
  const uint64_t max_work_;
  std::vector<egraph::ClassRef> roots_;
  std::vector<Choice> required_;
  std::unique_ptr<egraph::Refiner> refiner_;  // not of kOff
  egraph::Refiner::Saved saved_;
  egraph::Extraction best_;
  uint64_t work_ = 0;
  uint64_t first_work_ = 0;
};

}  // namespace l3c::l0::lower
