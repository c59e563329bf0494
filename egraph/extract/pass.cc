#include "egraph/extract/pass.h"

#include <algorithm>
#include <limits>

#include "egraph/extract/cost.h"

namespace l3c::egraph {
UserIndex::UserIndex(const NodeGraph& view) {
  const auto nodes = static_cast<uint32_t>(view.node_count());
  distinct_.assign(nodes, 0);
  first_.assign(view.class_count() + 1, 0);
  std::vector<uint32_t> children;
  const auto distinct_children = [&](uint32_t n) {
    children.clear();
    for (ClassRef c : view.NodeChildren(ENodeRef{n})) children.push_back(c.index);
    std::sort(children.begin(), children.end());
    children.erase(std::unique(children.begin(), children.end()), children.end());
  };
  for (uint32_t n = 0; n < nodes; ++n) {
    distinct_children(n);
    if (!children.empty() && children.back() == ClassRef::kNone) {
      distinct_[n] = std::numeric_limits<uint32_t>::max();
      continue;
    }
    distinct_[n] = static_cast<uint32_t>(children.size());
    for (uint32_t c : children) ++first_[c + 1];
  }
  for (size_t c = 1; c < first_.size(); ++c) first_[c] += first_[c - 1];
  users_.resize(first_.back());
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (uint32_t n = 0; n < nodes; ++n) {
    if (distinct_[n] == std::numeric_limits<uint32_t>::max()) continue;
    distinct_children(n);
    for (uint32_t c : children) users_[next[c]++] = ENodeRef{n};
  }
}

double Pass::Price(const Input& input, ENodeRef n) const {
  const uint32_t c = view_.NodeClass(n).index;
  if (!input.forced.empty() && input.forced[c].valid() && input.forced[c] != n) return kInfinity;
  const double price = input.prices[n.index];
  if (!input.free.empty() && input.free[c] != 0 && price < kInfinity) return 0;
  return price;
}

double Pass::StampChildren(ENodeRef n, uint64_t* work) {
  ++stamp_;
  stamped_.clear();
  double sum = 0;
  for (ClassRef child : view_.NodeChildren(n)) {
    // A class that is stamped has brought its closure along.
    if (stamps_[child.index] == stamp_) continue;
    for (uint32_t c : closures_[child.index]) {
      if (stamps_[c] == stamp_) continue;
      stamps_[c] = stamp_;
      stamped_.push_back(c);
      sum += final_prices_[c];
    }
    *work += closures_[child.index].size();
  }
  return sum;
}

void Pass::Consider(Sharing sharing, const Input& input, ENodeRef n, uint64_t* work) {
  ++*work;
  double cost = Price(input, n);
  if (!(cost < kInfinity)) return;
  if (sharing == Sharing::kTree) {
    for (ClassRef child : view_.NodeChildren(n)) cost += costs_[child.index];
  } else {
    cost += StampChildren(n, work);
  }
  // Too much for a number is not yet too dear: all children have a finite term.
  heap_.push_back({std::min(cost, std::numeric_limits<double>::max()), n.index});
  std::push_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) {
    return a.cost > b.cost || (a.cost == b.cost && a.node > b.node);
  });
}

void Pass::Run(Sharing sharing, const Input& input, uint64_t* work) {
  const size_t classes = view_.class_count();
  choice_.assign(classes, ENodeRef{});
  costs_.assign(classes, kInfinity);
  final_prices_.assign(classes, kInfinity);
  closures_.resize(classes);
  for (auto& closure : closures_) closure.clear();
  stamps_.assign(classes, 0);
  stamp_ = 0;
  heap_.clear();
  truncated_ = false;
  size_t closure_entries = 0;
  missing_.resize(view_.node_count());
  for (uint32_t n = 0; n < missing_.size(); ++n) {
    missing_[n] = users_.DistinctChildren(ENodeRef{n});
    if (missing_[n] == 0) Consider(sharing, input, ENodeRef{n}, work);
  }
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) {
      return a.cost > b.cost || (a.cost == b.cost && a.node > b.node);
    });
    const Entry entry = heap_.back();
    heap_.pop_back();
    const ENodeRef n{entry.node};
    const ClassRef c = view_.NodeClass(n);
    if (choice_[c.index].valid()) continue;
    choice_[c.index] = n;
    costs_[c.index] = entry.cost;
    final_prices_[c.index] = Price(input, n);
    if (sharing == Sharing::kDag) {
      StampChildren(n, work);
      closures_[c.index].assign(stamped_.begin(), stamped_.end());
      closures_[c.index].push_back(c.index);
      closure_entries += closures_[c.index].size();
      if (closure_entries > kMaxClosureEntries) {
        truncated_ = true;
        return;
      }
    }
    for (ENodeRef user : users_.Users(c)) {
      if (--missing_[user.index] == 0 && !choice_[view_.NodeClass(user).index].valid()) {
        Consider(sharing, input, user, work);
      }
    }
  }
}

}  // namespace l3c::egraph
