#include "egraph/extract/refine.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace l3c::egraph {

Refiner::Refiner(const Extractor& extractor)
    : extractor_(extractor), view_(extractor.view()), tried_(choice_, uses_) {
  const size_t classes = view_.class_count();
  const size_t nodes = view_.node_count();
  possible_.assign(nodes, 0);
  nodes_.resize(nodes);
  size_t edges = 0;
  for (uint32_t n = 0; n < nodes; ++n) {
    const auto children = view_.NodeChildren(ENodeRef{n});
    nodes_[n] = {extractor.NodeObjective(ENodeRef{n}), children.data(), children.size()};
    edges += children.size();
  }
  // Each class is left through one e-node at a time, so no more than this waits at once.
  stack_.resize(edges + 1);
  // Children before parents; what is met while open closes a cycle.
  enum : uint8_t { kUnseen, kOpen, kDone };
  std::vector<uint8_t> state(classes, kUnseen);
  std::vector<uint8_t> feasible(classes, 0);
  struct Frame {
    uint32_t c;
    uint32_t n;
    uint32_t child;
  };
  std::vector<Frame> stack;
  for (uint32_t root = 0; root < classes; ++root) {
    if (state[root] != kUnseen) continue;
    state[root] = kOpen;
    stack.push_back({root, view_.FirstNode(ClassRef{root}).index, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const uint32_t first = view_.FirstNode(ClassRef{frame.c}).index;
      const uint32_t count = view_.NodeCountOf(ClassRef{frame.c});
      if (frame.n == first + count) {
        for (uint32_t n = first; n < first + count; ++n) {
          bool possible = Price(n) < std::numeric_limits<double>::infinity();
          for (ClassRef child : view_.NodeChildren(ENodeRef{n})) {
            possible = possible && child.valid() && feasible[child.index];
          }
          possible_[n] = possible;
          feasible[frame.c] |= possible_[n];
        }
        state[frame.c] = kDone;
        stack.pop_back();
        continue;
      }
      const auto children = view_.NodeChildren(ENodeRef{frame.n});
      if (frame.child == children.size()) {
        ++frame.n;
        frame.child = 0;
        continue;
      }
      const ClassRef child = children[frame.child++];
      if (!child.valid() || state[child.index] == kDone) continue;
      if (state[child.index] == kOpen) {
        acyclic_ = false;
        return;
      }
      state[child.index] = kOpen;
      stack.push_back({child.index, view_.FirstNode(child).index, 0});
    }
  }
  std::vector<std::vector<uint32_t>> users(classes);
  for (uint32_t n = 0; n < nodes; ++n) {
    if (!possible_[n]) continue;
    for (ClassRef child : view_.NodeChildren(ENodeRef{n})) {
      std::vector<uint32_t>& of = users[child.index];
      if (of.empty() || of.back() != n) of.push_back(n);
    }
  }
  user_first_.push_back(0);
  for (uint32_t c = 0; c < classes; ++c) {
    users_.insert(users_.end(), users[c].begin(), users[c].end());
    user_first_.push_back(static_cast<uint32_t>(users_.size()));
    uint32_t sharers = 0;
    uint32_t last = kNone;
    for (uint32_t n : users[c]) {
      const uint32_t user = view_.NodeClass(ENodeRef{n}).index;
      sharers += user != last;
      last = user;
    }
    if (sharers >= 2) shared_.push_back(c);
    const uint32_t first = view_.FirstNode(ClassRef{c}).index;
    uint32_t ways = 0;
    for (uint32_t n = first; n < first + view_.NodeCountOf(ClassRef{c}); ++n) ways += possible_[n];
    if (ways >= 2) choosable_.push_back(c);
  }
  swappable_.assign(nodes, 0);
  for (uint32_t c : choosable_) {
    const uint32_t first = view_.FirstNode(ClassRef{c}).index;
    for (uint32_t n = first; n < first + view_.NodeCountOf(ClassRef{c}); ++n) {
      swappable_[n] = possible_[n];
    }
  }
}

void Refiner::Start(const Extraction& start, std::span<const ENodeRef> base) {
  choice_.assign(view_.class_count(), kNone);
  for (uint32_t c = 0; c < choice_.size(); ++c) {
    const ENodeRef n = start.choice[c].valid() ? start.choice[c] : base[c];
    choice_[c] = n.valid() ? n.index : kNone;
    // Where neither says, any e-node that can be had.
    const uint32_t first = view_.FirstNode(ClassRef{c}).index;
    for (uint32_t i = first; choice_[c] == kNone && i < first + view_.NodeCountOf(ClassRef{c});
         ++i) {
      if (possible_[i]) choice_[c] = i;
    }
  }
  uses_.assign(view_.class_count(), 0);
  fixed_.assign(view_.class_count(), 0);
  journal_.clear();
  total_ = 0;
  for (ClassRef root : start.roots) Acquire(root.index);
  touches_ = 0;
  tried_.Reset(swappable_);
}

// What is in use already is counted where it is met; only what is not waits for its turn.
void Refiner::Acquire(uint32_t c) {
  TriedSwaps::Touch* touch = Touches();
  const TriedSwaps::Touch* const first = touch;
  uint32_t* top = stack_.data();
  *top++ = c;
  while (top != stack_.data()) {
    const uint32_t at = *--top;
    *touch++ = {at, uses_[at]};
    if (uses_[at]++ != 0) continue;
    reached_new_.push_back(at);
    const Node& node = nodes_[choice_[at]];
    total_ += node.price;
    for (const ClassRef child : node.Children()) {
      if (uses_[child.index] == 0) {
        *top++ = child.index;
      } else {
        *touch++ = {child.index, uses_[child.index]++};
      }
    }
  }
  Touched(static_cast<size_t>(touch - first));
}

void Refiner::Release(uint32_t c) {
  TriedSwaps::Touch* touch = Touches();
  const TriedSwaps::Touch* const first = touch;
  uint32_t* top = stack_.data();
  *top++ = c;
  while (top != stack_.data()) {
    const uint32_t at = *--top;
    *touch++ = {at, --uses_[at]};
    if (uses_[at] != 0) continue;
    const Node& node = nodes_[choice_[at]];
    total_ -= node.price;
    for (const ClassRef child : node.Children()) {
      if (uses_[child.index] == 1) {
        *top++ = child.index;
      } else {
        *touch++ = {child.index, --uses_[child.index]};
      }
    }
  }
  Touched(static_cast<size_t>(touch - first));
}

// First what is new, then what is left, so that what both use stays.
void Refiner::Swap(uint32_t c, uint32_t n) {
  const uint32_t before = choice_[c];
  journal_.emplace_back(c, before);
  *Touches() = {c, uses_[c]};
  ++touches_;
  if (uses_[c] == 0) {
    choice_[c] = n;
    return;
  }
  for (ClassRef child : nodes_[n].Children()) Acquire(child.index);
  choice_[c] = n;
  total_ += Price(n) - Price(before);
  for (ClassRef child : nodes_[before].Children()) Release(child.index);
}

void Refiner::Undo(const Mark& mark) {
  const size_t touches = touches_;  // nothing is met that was not on the way here
  while (journal_.size() > mark.journal) {
    const auto [c, before] = journal_.back();
    Swap(c, before);
    journal_.pop_back();  // of this swap
    journal_.pop_back();
  }
  total_ = mark.total;  // to the bit
  touches_ = touches;
}

Refiner::Mark Refiner::BeginMove() {
  touches_ = 0;
  reached_new_.clear();
  return Here();
}

bool Refiner::Keep(const Mark& mark) {
  if (!Less(total_, mark.total)) {
    Undo(mark);
    return false;
  }
  tried_.Moved(AllTouches());
  return true;
}

void Refiner::TakeBack(const Mark& mark) {
  Undo(mark);
  touches_ = mark.touches;
}

TriedSwaps::Touch* Refiner::Touches() {
  // As many as one walk can add, and the class of a swap.
  const size_t most = touches_ + stack_.size() + 1;
  if (log_.size() < most) log_.resize(2 * most);
  return log_.data() + touches_;
}

void Refiner::Settle(size_t mark_new) {
  for (size_t i = mark_new; i < reached_new_.size() && reached_new_.size() < mark_new + 4096; ++i) {
    const uint32_t c = reached_new_[i];
    if (uses_[c] == 0 || fixed_[c]) continue;
    const uint32_t first = view_.FirstNode(ClassRef{c}).index;
    const uint32_t count = view_.NodeCountOf(ClassRef{c});
    for (uint32_t n = first; count > 1 && n < first + count; ++n) {
      if (!possible_[n] || n == choice_[c]) continue;
      const Mark mark = Here();
      const size_t mark_inner = reached_new_.size();
      Swap(c, n);
      if (Less(total_, mark.total)) continue;
      Undo(mark);
      reached_new_.resize(mark_inner);
    }
  }
}

bool Refiner::TryAgain(uint32_t c, uint64_t limit) {
  const uint32_t first = view_.FirstNode(ClassRef{c}).index;
  for (uint32_t n = first; n < first + view_.NodeCountOf(ClassRef{c}); ++n) {
    if (uses_[c] == 0 || n == choice_[c] || !possible_[n] || work_ > limit) continue;
    const Mark mark = BeginMove();
    const uint8_t was_fixed = std::exchange(fixed_[c], 1);
    tried_.BeginTrial();
    Swap(c, n);
    Settle(0);
    tried_.Moved(AllTouches());
    for (int round = 0; round < 2 && SwapRound(limit); ++round) {
    }
    fixed_[c] = was_fixed;
    if (Less(total_, mark.total)) {
      tried_.KeepTrial();
      return true;
    }
    Undo(mark);
    tried_.EndTrial();
  }
  return false;
}

bool Refiner::TrySwap(uint32_t c, uint32_t n) {
  const Mark mark = BeginMove();
  Swap(c, n);
  if (!Less(total_, mark.total)) Settle(0);
  if (Keep(mark)) return true;
  if (!tried_.in_trial()) tried_.InVain(n, c, AllTouches());
  return false;
}

bool Refiner::SwapRound(uint64_t limit) {
  bool improved = false;
  const auto count = static_cast<uint32_t>(view_.node_count());
  for (uint32_t n = tried_.Next(0); n < count; n = tried_.Next(n + 1)) {
    const uint32_t c = view_.NodeClass(ENodeRef{n}).index;
    if (uses_[c] == 0 || fixed_[c] || n == choice_[c]) {
      if (!tried_.in_trial()) tried_.InVain(n, c, {});
      continue;
    }
    if (work_ > limit) return false;
    improved |= TrySwap(c, n);
  }
  return improved;
}

bool Refiner::MayBeJoined(uint32_t k) const {
  for (uint32_t u = user_first_[k]; u < user_first_[k + 1]; ++u) {
    const uint32_t n = users_[u];
    if (uses_[view_.NodeClass(ENodeRef{n}).index] != 0) return true;
    if (Price(n) == 0 && view_.NodeChildren(ENodeRef{n}).size() == 1) return true;
  }
  return false;
}

bool Refiner::TryOpen(uint32_t k) {
  if (uses_[k] != 0 || !MayBeJoined(k)) return false;
  const Mark mark = BeginMove();
  std::vector<uint32_t> taken = {k};
  Acquire(k);
  Settle(0);
  // Classes that are had for nothing once k is there: an e-node without a price around it alone.
  for (size_t i = 0; i < taken.size() && taken.size() < 256; ++i) {
    for (uint32_t u = user_first_[taken[i]]; u < user_first_[taken[i] + 1]; ++u) {
      const uint32_t n = users_[u];
      const uint32_t c = view_.NodeClass(ENodeRef{n}).index;
      if (Price(n) != 0 || view_.NodeChildren(ENodeRef{n}).size() != 1) continue;
      if (uses_[c] != 0 || fixed_[c]) continue;
      Swap(c, n);
      Acquire(c);
      taken.push_back(c);
    }
  }
  // Whoever gains joins; those that came along may be of use to others too.
  const std::vector<uint32_t> opened = reached_new_;
  for (uint32_t o : opened) {
    if (uses_[o] == 0) continue;
    for (uint32_t u = user_first_[o]; u < user_first_[o + 1]; ++u) {
      const uint32_t n = users_[u];
      const uint32_t c = view_.NodeClass(ENodeRef{n}).index;
      if (uses_[c] == 0 || fixed_[c] || choice_[c] == n) continue;
      const Mark inner = Here();
      Swap(c, n);
      if (!Less(total_, inner.total)) TakeBack(inner);
    }
  }
  for (uint32_t c : taken) Release(c);
  return Keep(mark);
}

bool Refiner::UsesClass(uint32_t n, uint32_t k) const {
  for (ClassRef child : view_.NodeChildren(ENodeRef{n})) {
    if (child.index == k) return true;
  }
  return false;
}

bool Refiner::TryClose(uint32_t k) {
  if (uses_[k] == 0) return false;
  const Mark mark = BeginMove();
  for (uint32_t u = user_first_[k]; u < user_first_[k + 1]; ++u) {
    const uint32_t user = users_[u];
    const uint32_t c = view_.NodeClass(ENodeRef{user}).index;
    if (uses_[c] == 0 || choice_[c] != user) continue;
    uint32_t best = kNone;
    double least = std::numeric_limits<double>::infinity();
    const uint32_t first = view_.FirstNode(ClassRef{c}).index;
    for (uint32_t n = first; !fixed_[c] && n < first + view_.NodeCountOf(ClassRef{c}); ++n) {
      if (!possible_[n] || UsesClass(n, k)) continue;
      const Mark inner = Here();
      Swap(c, n);
      if (total_ < least) {
        least = total_;
        best = n;
      }
      TakeBack(inner);
    }
    if (best == kNone) {
      Undo(mark);
      return false;
    }
    Swap(c, best);
  }
  Settle(0);
  return Keep(mark);
}

void Refiner::Improve(uint64_t max_work, bool again) {
  if (tried_.in_trial()) tried_.KeepTrial();
  const uint64_t limit = work_ + max_work;
  for (bool improved = true; improved && work_ <= limit;) {
    while (SwapRound(limit)) {
    }
    improved = false;
    for (uint32_t k : shared_) {
      if (work_ > limit) break;
      improved |= uses_[k] == 0 ? TryOpen(k) : TryClose(k);
    }
    if (improved || !again) continue;
    for (uint32_t c : choosable_) {
      if (work_ > limit) break;
      if (uses_[c] != 0 && !fixed_[c]) improved |= TryAgain(c, limit);
    }
  }
  journal_.clear();
}

bool Refiner::TryWithChild(uint32_t c, uint32_t n) {
  for (ClassRef child : view_.NodeChildren(ENodeRef{n})) {
    const uint32_t first = view_.FirstNode(child).index;
    const uint32_t count = view_.NodeCountOf(child);
    // What the swap reaches anew it has settled already.
    if (count == 1 || uses_[child.index] == 0 || fixed_[child.index]) continue;
    for (uint32_t m = first; m < first + count; ++m) {
      if (!possible_[m] || m == choice_[child.index]) continue;
      const Mark mark = BeginMove();
      Swap(c, n);
      Swap(child.index, m);
      if (!Less(total_, mark.total)) Settle(0);
      if (Keep(mark)) return true;
    }
  }
  return false;
}

void Refiner::Descend(uint64_t max_work) {
  if (tried_.in_trial()) tried_.KeepTrial();
  const uint64_t limit = work_ + max_work;
  for (bool improved = true; improved && work_ <= limit;) {
    while (SwapRound(limit)) {
    }
    improved = false;
    for (uint32_t c : choosable_) {
      const uint32_t first = view_.FirstNode(ClassRef{c}).index;
      for (uint32_t n = first; n < first + view_.NodeCountOf(ClassRef{c}); ++n) {
        if (uses_[c] == 0 || fixed_[c] || work_ > limit) break;
        if (n != choice_[c] && possible_[n]) improved |= TryWithChild(c, n);
      }
    }
    for (uint32_t k : shared_) {
      if (work_ > limit) break;
      improved |= TryClose(k);
    }
  }
  journal_.clear();
}

bool Refiner::Fix(ENodeRef n, uint64_t max_work, bool thorough) {
  if (!possible_[n.index]) return false;
  const uint32_t c = view_.NodeClass(n).index;
  if (!tried_.in_trial()) tried_.BeginTrial();
  BeginMove();
  Acquire(c);
  Swap(c, n.index);
  fixed_[c] = 1;
  Settle(0);
  tried_.Moved(AllTouches());
  if (thorough) {
    Improve(max_work);
  } else {
    const uint64_t limit = work_ + max_work;
    while (work_ <= limit && SwapRound(limit)) {
    }
    journal_.clear();
  }
  return true;
}

void Refiner::Restore(const Saved& saved) {
  choice_ = saved.choice;
  uses_ = saved.uses;
  fixed_ = saved.fixed;
  total_ = saved.total;
  journal_.clear();
  if (saved.base != 0 && saved.base == tried_.base()) {
    tried_.EndTrial();
  } else {
    tried_.Reset(swappable_);
  }
}

Extraction Refiner::Result(std::span<const ClassRef> roots) const {
  Extraction result;
  result.method = ExtractMethod::kGreedyDag;
  result.roots.assign(roots.begin(), roots.end());
  result.feasible = true;
  result.choice.assign(view_.class_count(), ENodeRef{});
  std::vector<uint8_t> done(view_.class_count(), 0);
  struct Frame {
    uint32_t c;
    uint32_t child;
  };
  std::vector<Frame> stack;
  double total = 0;
  for (ClassRef root : roots) {
    if (done[root.index]) continue;
    done[root.index] = 1;
    stack.push_back({root.index, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const ENodeRef n{choice_[frame.c]};
      const auto children = view_.NodeChildren(n);
      if (frame.child < children.size()) {
        const uint32_t child = children[frame.child++].index;
        if (!done[child]) {
          done[child] = 1;
          stack.push_back({child, 0});
        }
        continue;
      }
      result.choice[frame.c] = n;
      result.order.push_back(ClassRef{frame.c});
      result.cost += extractor_.NodeCost(n);
      total += Price(n.index);
      stack.pop_back();
    }
  }
  result.dag_cost = total;
  result.work = work_;
  return result;
}

}  // namespace l3c::egraph
