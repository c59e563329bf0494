#include "layers/l0/lower/choice_search.h"

#include <algorithm>

namespace l3c::l0::lower {

using egraph::ClassRef;

namespace {

// Classes looked at: less than a tenth of a second for a step of thirty kernels, where most of the
// gain comes early, and a bound for large ones. What is forced only has its surroundings put right.
constexpr uint64_t kImproveWorkPerNode = 250;
constexpr uint64_t kImproveWork = 20'000'000;
constexpr uint64_t kForcedWork = 400'000;
// What a trial of several choices at once may take of it, how near it must come to be improved
// more, and what that may take: there are up to eight trials, and all together have the budget of
// work.
constexpr uint64_t kShareOfATrial = 8;
constexpr uint64_t kShareOfAPromise = 4;
constexpr double kNearlyAsGood = 1.01;

uint64_t ImproveWork(const egraph::Extractor& extractor) {
  return std::min(kImproveWork, kImproveWorkPerNode * extractor.view().node_count());
}

}  // namespace

ChoiceSearch::ChoiceSearch(const egraph::Extractor& extractor, std::vector<ClassRef> roots,
                           search::Mode mode, std::vector<uint8_t> ranks, uint64_t max_work)
    : extractor_(extractor),
      mode_(mode),
      ranks_(std::move(ranks)),
      max_work_(max_work),
      roots_(std::move(roots)) {
  if (mode != search::Mode::kOff) {
    refiner_ = std::make_unique<egraph::Refiner>(extractor);
    // Else not the graph that the rules of this folder make; the general search knows about cycles.
    if (!refiner_->acyclic()) refiner_.reset();
  }
  if (refiner_ && mode == search::Mode::kGreedy) {
    for (ClassRef root : roots_) {
      if (!HasAny(root)) return;
    }
    StartLocally();
    saved_ = refiner_->Save();
    best_ = refiner_->Result(roots_);
    first_work_ = work();
    return;
  }
  egraph::ExtractOptions bottom_up;
  bottom_up.max_work = 0;
  const bool general = mode == search::Mode::kEGraph && !refiner_;
  best_ = extractor.GreedyDag(roots_, general ? egraph::ExtractOptions() : bottom_up);
  work_ += best_.work;
  first_work_ = work_;
  if (!best_.feasible || !refiner_) return;
  std::vector<ClassRef> all;
  for (uint32_t c = 0; c < extractor.view().class_count(); ++c) all.push_back(ClassRef{c});
  const egraph::Extraction base = extractor.Tree(all);
  refiner_->Start(best_, base.choice);
  first_work_ = work();
  refiner_->Improve(Within(ImproveWork(extractor)));
  saved_ = refiner_->Save();
  best_ = refiner_->Result(roots_);
}

bool ChoiceSearch::HasAny(ClassRef c) const {
  const uint32_t first = extractor_.view().FirstNode(c).index;
  for (uint32_t n = first; n < first + extractor_.view().NodeCountOf(c); ++n) {
    if (refiner_->Possible(egraph::ENodeRef{n})) return true;
  }
  return false;
}

void ChoiceSearch::StartLocally() {
  const egraph::EGraphView& view = extractor_.view();
  egraph::Extraction start;
  start.roots = roots_;
  start.choice.assign(view.class_count(), egraph::ENodeRef{});
  const auto price = [&](egraph::ENodeRef n) { return extractor_.NodeObjective(n); };
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    const egraph::ENodeRef node{n};
    if (!refiner_->Possible(node)) continue;
    egraph::ENodeRef& taken = start.choice[view.NodeClass(node).index];
    if (!taken.valid() || ranks_[n] < ranks_[taken.index] ||
        (ranks_[n] == ranks_[taken.index] && price(node) < price(taken))) {
      taken = node;
    }
  }
  refiner_->Start(start, start.choice);
  refiner_->Descend(Within(ImproveWork(extractor_)));
}

std::optional<egraph::Extraction> ChoiceSearch::With(const std::vector<Choice>& choices) {
  std::vector<ClassRef> wanted = roots_;
  for (const Choice& choice : choices) wanted.push_back(choice.first);
  if (!refiner_) {
    egraph::ExtractOptions options;
    options.max_work = 0;
    for (const Choice& choice : required_) options.forced[choice.first] = choice.second;
    for (const Choice& choice : choices) options.forced[choice.first] = choice.second;
    egraph::Extraction found = extractor_.GreedyDag(wanted, options);
    work_ += found.work;
    if (!found.feasible) return std::nullopt;
    return found;
  }
  refiner_->Restore(saved_);
  for (const Choice& choice : choices) {
    if (!refiner_->Fix(choice.second, std::min(kForcedWork, max_work_), /*thorough=*/false))
      return std::nullopt;
  }
  return refiner_->Result(wanted);
}

bool ChoiceSearch::Require(const std::vector<Choice>& choices) {
  std::optional<egraph::Extraction> found = With(choices);
  if (!found) return false;
  for (const Choice& choice : choices) {
    roots_.push_back(choice.first);
    required_.push_back(choice);
  }
  if (refiner_) {
    if (joint()) {
      refiner_->Improve(Within(kForcedWork));
    } else {
      refiner_->Descend(Within(kForcedWork));
    }
    saved_ = refiner_->Save();
    found = refiner_->Result(roots_);
  }
  best_ = *std::move(found);
  return true;
}

void ChoiceSearch::TryTogether(const std::vector<Choice>& choices) {
  if (!joint() || spent()) return;
  egraph::Extraction start = best_;
  std::vector<egraph::ENodeRef> base;
  for (const uint32_t n : saved_.choice) base.push_back(egraph::ENodeRef{n});
  bool different = false;
  for (const auto& [c, node] : choices) {
    if (!refiner_->Possible(node)) continue;
    different = different || base[c.index] != node;
    base[c.index] = node;
    if (start.choice[c.index].valid()) start.choice[c.index] = node;
  }
  if (!different) return;
  refiner_->Start(start, base);
  refiner_->Improve(Within(ImproveWork(extractor_) / kShareOfATrial), /*again=*/false);
  // The last moves bring a hundredth at most.
  if (!(refiner_->total() < kNearlyAsGood * saved_.total)) return;
  refiner_->Improve(Within(ImproveWork(extractor_) / kShareOfAPromise));
  if (!(refiner_->total() < saved_.total)) return;
  saved_ = refiner_->Save();
  best_ = refiner_->Result(roots_);
}

void ChoiceSearch::TryFixed(const std::vector<Choice>& choices) {
  if (!joint() || choices.empty() || spent()) return;
  // An attempt takes no more than half of what is left, so that it is not what ends the search.
  const uint64_t end = work() + (max_work_ - std::min(max_work_, work())) / 2;
  const auto within = [&](uint64_t wanted) {
    return std::min(wanted, end - std::min(end, work()));
  };
  const egraph::Refiner::Saved saved = saved_;
  refiner_->Restore(saved);
  for (const Choice& choice : choices) {
    if (within(kForcedWork) == 0) return;
    if (refiner_->Possible(choice.second)) {
      refiner_->Fix(choice.second, within(kForcedWork), /*thorough=*/false);
    }
  }
  const egraph::Extraction start = refiner_->Result(roots_);
  std::vector<egraph::ENodeRef> base;
  for (const uint32_t n : refiner_->Save().choice) base.push_back(egraph::ENodeRef{n});
  refiner_->Restore(saved);
  refiner_->Start(start, base);
  refiner_->Improve(within(ImproveWork(extractor_)));
  if (!(refiner_->total() < saved_.total)) return;
  saved_ = refiner_->Save();
  best_ = refiner_->Result(roots_);
}

void ChoiceSearch::TryLocal() {
  if (!joint() || spent()) return;
  StartLocally();
  if (!(refiner_->total() < saved_.total)) return;
  refiner_->Improve(Within(ImproveWork(extractor_) / kShareOfAPromise));
  saved_ = refiner_->Save();
  best_ = refiner_->Result(roots_);
}

uint64_t ChoiceSearch::Within(uint64_t wanted) const {
  return std::min(wanted, max_work_ - std::min(max_work_, work()));
}

uint64_t ChoiceSearch::work() const { return work_ + (refiner_ ? refiner_->work() : 0); }

}  // namespace l3c::l0::lower
