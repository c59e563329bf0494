#include "egraph/extract/dag.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "egraph/extract/cost.h"

namespace l3c::egraph {
namespace {

// Sums of the same prices in another order differ in the last bits; that is no improvement.
bool Less(double a, double b) { return b < kInfinity ? a < b - 1e-12 * b : a < b; }

}  // namespace

DagSearch::DagSearch(const NodeGraph& view, const UserIndex& users, std::span<const double> prices,
                     std::span<const ClassRef> roots, std::span<const ENodeRef> forced,
                     uint64_t max_work)
    : view_(view),
      users_(users),
      prices_(prices.begin(), prices.end()),
      roots_(roots),
      forced_(forced.begin(), forced.end()),
      max_work_(max_work),
      pass_(view, users) {
  forced_.resize(view.class_count());
  fixed_.assign(view.class_count(), 0);
  for (size_t c = 0; c < fixed_.size(); ++c) fixed_[c] = forced_[c].valid();
  colors_.assign(view.class_count(), 0);
  ForbidUnreachable();
  sharers_.assign(view.class_count(), 0);
  for (uint32_t c = 0; c < sharers_.size(); ++c) {
    // E-nodes are numbered class by class, so users of one class are neighbours.
    uint32_t last = ClassRef::kNone;
    for (ENodeRef user : users.Users(ClassRef{c})) {
      if (!(prices_[user.index] < kInfinity)) continue;
      const uint32_t k = view.NodeClass(user).index;
      sharers_[c] += k != last;
      last = k;
    }
  }
}

// What no root can use need not be priced at every pass.
void DagSearch::ForbidUnreachable() {
  std::vector<uint8_t> reachable(view_.class_count(), 0);
  std::vector<uint32_t> todo;
  const auto visit = [&](ClassRef c) {
    if (!c.valid() || reachable[c.index]) return;
    reachable[c.index] = 1;
    todo.push_back(c.index);
  };
  for (ClassRef root : roots_) visit(root);
  while (!todo.empty()) {
    const ClassRef c{todo.back()};
    todo.pop_back();
    for (uint32_t i = 0; i < view_.NodeCountOf(c); ++i) {
      const ENodeRef n{view_.FirstNode(c).index + i};
      if (!(prices_[n.index] < kInfinity)) continue;
      for (ClassRef child : view_.NodeChildren(n)) visit(child);
    }
  }
  for (uint32_t n = 0; n < prices_.size(); ++n) {
    if (!reachable[view_.NodeClass(ENodeRef{n}).index]) prices_[n] = kInfinity;
  }
}

bool DagSearch::OutOfWork() {
  exhausted_ |= work_ > max_work_;
  return exhausted_;
}

bool DagSearch::IsReached(const Solution& s, uint32_t c) const {
  return std::binary_search(s.reached.begin(), s.reached.end(), c);
}

void DagSearch::Measure(std::span<const ENodeRef> choice, Solution& result, ClassRef extra) {
  const uint32_t open = 2 * ++epoch_;
  const uint32_t done = open + 1;
  result.reached.clear();
  result.valid = false;
  result.total = kInfinity;
  stack_.clear();
  const size_t root_count = roots_.size() + (extra.valid() ? 1 : 0);
  for (size_t r = 0; r < root_count; ++r) {
    const ClassRef root = r < roots_.size() ? roots_[r] : extra;
    if (!root.valid() || !choice[root.index].valid()) return;
    if (colors_[root.index] == done) continue;
    stack_.emplace_back(root.index, 0);
    colors_[root.index] = open;
    while (!stack_.empty()) {
      auto& [c, next] = stack_.back();
      const std::span<const ClassRef> children = view_.NodeChildren(choice[c]);
      while (next < children.size() && colors_[children[next].index] == done) ++next;
      if (next == children.size()) {
        colors_[c] = done;
        result.reached.push_back(c);
        stack_.pop_back();
        continue;
      }
      const uint32_t child = children[next].index;
      // Met again while open: the choice would need itself.
      if (colors_[child] == open || !choice[child].valid()) return;
      colors_[child] = open;
      stack_.emplace_back(child, 0);
    }
  }
  work_ += result.reached.size();
  double total = 0;
  for (uint32_t c : result.reached) total += prices_[choice[c].index];
  result.total = total;
  result.valid = total < kInfinity;
}

void DagSearch::SwapDescent(Solution& s, std::span<const ENodeRef> base) {
  if (!s.valid) return;
  std::sort(s.reached.begin(), s.reached.end());
  // What is not reached holds the greedy choice, so that this is what a swap reaches anew.
  const auto reset_unreached = [&] {
    size_t r = 0;
    for (uint32_t c = 0; c < s.choice.size(); ++c) {
      if (r < s.reached.size() && s.reached[r] == c) {
        ++r;
      } else {
        s.choice[c] = base[c];
      }
    }
  };
  reset_unreached();
  for (bool improved = true; improved && !OutOfWork();) {
    improved = false;
    // A copy: an accepted swap changes what is reached.
    const std::vector<uint32_t> reached = s.reached;
    for (uint32_t c : reached) {
      const uint32_t first = view_.FirstNode(ClassRef{c}).index;
      const uint32_t count = view_.NodeCountOf(ClassRef{c});
      if (count == 1 || fixed_[c]) continue;
      for (uint32_t n = first; n < first + count && !OutOfWork(); ++n) {
        const ENodeRef before = s.choice[c];
        if (before.index == n || !(prices_[n] < kInfinity)) continue;
        s.choice[c] = ENodeRef{n};
        Measure(s.choice, scratch_);
        if (!scratch_.valid || !Less(scratch_.total, s.total)) {
          s.choice[c] = before;
          continue;
        }
        std::swap(s.reached, scratch_.reached);
        std::sort(s.reached.begin(), s.reached.end());
        s.total = scratch_.total;
        reset_unreached();
        improved = true;
        if (!IsReached(s, c)) break;
      }
    }
  }
}

DagSearch::Solution DagSearch::FromPass(std::span<const double> prices) {
  pass_.Run(Pass::Sharing::kDag, {prices, forced_, free_}, &work_);
  Solution s;
  s.choice.assign(pass_.choice().begin(), pass_.choice().end());
  Measure(s.choice, s);
  SwapDescent(s, base_choice_);
  return s;
}

bool DagSearch::Adopt(Solution&& s) {
  if (!s.valid || (best_.valid && !Less(s.total, best_.total))) return false;
  best_ = std::move(s);
  return true;
}

void DagSearch::MarkFree() {
  free_.assign(view_.class_count(), 0);
  for (uint32_t k : opened_) {
    for (uint32_t c : base_terms_[k]) free_[c] = 1;
  }
}

// The moves go round: after an improvement the next class is tried, and only a whole round without
// one says that there is none.

bool DagSearch::TryJoining() {
  const auto count = static_cast<uint32_t>(sharers_.size());
  Solution s;
  for (uint32_t tried = 0; tried < count; ++tried) {
    const ClassRef k{next_to_join_};
    next_to_join_ = (next_to_join_ + 1) % count;
    if (sharers_[k.index] < 2 || IsReached(best_, k.index)) continue;
    if (OutOfWork()) return false;
    s.choice = best_.choice;
    work_ += count / 8;
    Measure(s.choice, s, k);
    if (!s.valid) continue;
    bool joined = false;
    for (ENodeRef user : users_.Users(k)) {
      const uint32_t c = view_.NodeClass(user).index;
      if (fixed_[c] || !(prices_[user.index] < kInfinity) || !IsReached(best_, c)) continue;
      const ENodeRef before = std::exchange(s.choice[c], user);
      Measure(s.choice, scratch_, k);
      if (scratch_.valid && Less(scratch_.total, s.total)) {
        s.total = scratch_.total;
        joined = true;
      } else {
        s.choice[c] = before;
      }
    }
    if (!joined) continue;
    Measure(s.choice, s);
    SwapDescent(s, base_choice_);
    if (Adopt(std::move(s))) return true;
  }
  return false;
}

bool DagSearch::Uses(ENodeRef n, uint32_t c) const {
  const std::span<const ClassRef> children = view_.NodeChildren(n);
  return std::find(children.begin(), children.end(), ClassRef{c}) != children.end();
}

bool DagSearch::TryLeaving() {
  const auto count = static_cast<uint32_t>(sharers_.size());
  Solution s;
  for (uint32_t tried = 0; tried < count; ++tried) {
    const uint32_t k = next_to_leave_;
    next_to_leave_ = (next_to_leave_ + 1) % count;
    if (sharers_[k] < 2 || !IsReached(best_, k)) continue;
    if (OutOfWork()) return false;
    s.choice = best_.choice;
    work_ += count / 8;
    uint32_t left = 0;
    bool stuck = false;
    for (ENodeRef user : users_.Users(ClassRef{k})) {
      const ClassRef c = view_.NodeClass(user);
      if (s.choice[c.index] != user || !IsReached(best_, c.index)) continue;
      // The least of the others, even if it is dearer: the gain comes with the last user.
      ENodeRef least;
      double least_total = kInfinity;
      for (uint32_t i = 0; i < view_.NodeCountOf(c) && !fixed_[c.index]; ++i) {
        const ENodeRef n{view_.FirstNode(c).index + i};
        if (!(prices_[n.index] < kInfinity) || Uses(n, k)) continue;
        s.choice[c.index] = n;
        Measure(s.choice, scratch_);
        if (!scratch_.valid || !(scratch_.total < least_total)) continue;
        least = n;
        least_total = scratch_.total;
      }
      stuck = !least.valid();
      if (stuck) break;
      s.choice[c.index] = least;
      ++left;
    }
    // With one user this was a swap, and swaps have been tried.
    if (stuck || left < 2) continue;
    Measure(s.choice, s);
    SwapDescent(s, base_choice_);
    if (Adopt(std::move(s))) return true;
  }
  return false;
}

bool DagSearch::TryOpening() {
  const auto count = static_cast<uint32_t>(sharers_.size());
  for (uint32_t tried = 0; tried < count; ++tried) {
    const uint32_t k = next_to_open_;
    next_to_open_ = (next_to_open_ + 1) % count;
    if (sharers_[k] < 2 || !base_choice_[k].valid() || IsReached(best_, k)) continue;
    if (OutOfWork()) return false;
    opened_.push_back(k);
    MarkFree();
    if (Adopt(FromPass(prices_))) return true;
    opened_.pop_back();
  }
  return false;
}

bool DagSearch::TryClosing() {
  for (size_t tried = 0; tried < opened_.size(); ++tried) {
    if (OutOfWork()) return false;
    // From the front to the back: in the end every one has been left out once.
    const uint32_t k = opened_.front();
    opened_.erase(opened_.begin());
    MarkFree();
    if (Adopt(FromPass(prices_))) return true;
    opened_.push_back(k);
  }
  return false;
}

bool DagSearch::TryForcing() {
  MarkFree();
  const auto count = static_cast<uint32_t>(forced_.size());
  for (uint32_t tried = 0; tried < count; ++tried) {
    const uint32_t c = next_to_force_;
    next_to_force_ = (next_to_force_ + 1) % count;
    const uint32_t nodes = view_.NodeCountOf(ClassRef{c});
    if (fixed_[c] || nodes == 1 || !IsReached(best_, c)) continue;
    const uint32_t first = view_.FirstNode(ClassRef{c}).index;
    const ENodeRef before = forced_[c];
    for (uint32_t n = first; n < first + nodes; ++n) {
      if (best_.choice[c].index == n || !(prices_[n] < kInfinity)) continue;
      if (OutOfWork()) return false;
      forced_[c] = ENodeRef{n};
      if (Adopt(FromPass(prices_))) return true;
      forced_[c] = before;
    }
  }
  return false;
}

std::vector<double> DagSearch::SharedPrices() const {
  std::vector<double> shared(prices_.begin(), prices_.end());
  for (uint32_t n = 0; n < shared.size(); ++n) {
    shared[n] /= std::max(1u, sharers_[view_.NodeClass(ENodeRef{n}).index]);
  }
  return shared;
}

DagSearch::Solution DagSearch::FromRootsInTurn() {
  Solution s;
  s.choice = base_choice_;
  free_.assign(view_.class_count(), 0);
  std::vector<ENodeRef> forced = forced_;
  for (ClassRef root : roots_) {
    pass_.Run(Pass::Sharing::kDag, {prices_, forced, free_}, &work_);
    if (!pass_.choice()[root.index].valid()) return s;
    for (uint32_t c : pass_.Closure(root)) {
      free_[c] = 1;
      forced[c] = s.choice[c] = pass_.choice()[c];
    }
  }
  Measure(s.choice, s);
  SwapDescent(s, base_choice_);
  return s;
}

void DagSearch::Run() {
  free_.assign(view_.class_count(), 0);
  pass_.Run(Pass::Sharing::kTree, {prices_, forced_, {}}, &work_);
  Solution tree;
  tree.choice.assign(pass_.choice().begin(), pass_.choice().end());
  base_choice_ = tree.choice;
  Measure(tree.choice, tree);
  best_ = tree;
  // Not even trees: some root has no term.
  if (!tree.valid) return;
  std::sort(best_.reached.begin(), best_.reached.end());

  pass_.Run(Pass::Sharing::kDag, {prices_, forced_, {}}, &work_);
  if (pass_.truncated()) {
    // Too large for passes that know what is shared: swaps from the tree optimum must do.
    SwapDescent(tree, base_choice_);
    Adopt(std::move(tree));
    exhausted_ = true;
    return;
  }
  base_choice_.assign(pass_.choice().begin(), pass_.choice().end());
  base_terms_.resize(view_.class_count());
  for (uint32_t c = 0; c < base_terms_.size(); ++c) {
    const std::span<const uint32_t> term = pass_.Closure(ClassRef{c});
    base_terms_[c].assign(term.begin(), term.end());
  }
  Solution greedy;
  greedy.choice = base_choice_;
  Measure(greedy.choice, greedy);
  SwapDescent(greedy, base_choice_);
  Adopt(std::move(greedy));
  SwapDescent(tree, base_choice_);
  Adopt(std::move(tree));
  if (!OutOfWork()) Adopt(FromPass(SharedPrices()));
  if (!OutOfWork() && roots_.size() > 1) Adopt(FromRootsInTurn());
  for (bool improved = true; improved && !OutOfWork();) {
    improved = false;
    while (TryJoining() || TryLeaving()) improved = true;
    while (TryOpening()) improved = true;
    while (TryClosing()) improved = true;
    while (TryForcing()) improved = true;
  }
}

}  // namespace l3c::egraph
