#include "egraph/extract/implications.h"

#include <algorithm>

namespace l3c::egraph {
namespace {

// Classes children first as far as cycles let them, by a depth-first walk.
std::vector<uint32_t> ChildrenFirst(const ChoiceProblem& p) {
  std::vector<uint32_t> order;
  std::vector<uint8_t> seen(p.class_count(), 0);
  struct Frame {
    uint32_t c;
    size_t node, child;
  };
  std::vector<Frame> stack;
  for (uint32_t root = 0; root < p.class_count(); ++root) {
    if (p.class_nodes[root].empty() || seen[root]) continue;
    seen[root] = 1;
    stack.push_back({root, 0, 0});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.node == p.class_nodes[top.c].size()) {
        order.push_back(top.c);
        stack.pop_back();
        continue;
      }
      const std::vector<uint32_t>& children = p.nodes[p.class_nodes[top.c][top.node]].children;
      if (top.child == children.size()) {
        ++top.node;
        top.child = 0;
        continue;
      }
      const uint32_t d = children[top.child++];
      if (seen[d]) continue;
      seen[d] = 1;
      stack.push_back({d, 0, 0});
    }
  }
  return order;
}

}  // namespace

void ClassSets::Assign(size_t rows, size_t classes, bool full) {
  words_ = (classes + 63) / 64;
  bits_.assign(rows * words_, full ? ~uint64_t{0} : 0);
}

Implications::Implications(const ChoiceProblem& problem, uint64_t max_work)
    : p_(problem), max_work_(max_work) {
  const size_t classes = p_.class_count();
  if (classes == 0 || classes > kMaxBits / classes) return;
  available_ = FindBelow() && FindOver();
}

void Implications::Contained(uint32_t n, std::vector<uint64_t>& result) const {
  result.assign(below_.words(), 0);
  for (uint32_t d : p_.nodes[n].children) {
    const std::span<const uint64_t> row = below_.Row(d);
    for (size_t w = 0; w < result.size(); ++w) result[w] |= row[w];
  }
}

bool Implications::FindBelow() {
  const size_t classes = p_.class_count();
  below_.Assign(classes, classes, /*full=*/true);
  const std::vector<uint32_t> order = ChildrenFirst(p_);
  std::vector<std::vector<uint32_t>> users(classes);  // classes
  for (uint32_t c : order) {
    for (uint32_t n : p_.class_nodes[c]) {
      for (uint32_t d : p_.nodes[n].children) {
        if (users[d].empty() || users[d].back() != c) users[d].push_back(c);
      }
    }
  }
  std::vector<uint8_t> stale(classes, 1);
  std::vector<uint64_t> all(below_.words()), one;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t c : order) {
      if (!stale[c]) continue;
      stale[c] = 0;
      std::fill(all.begin(), all.end(), ~uint64_t{0});
      for (uint32_t n : p_.class_nodes[c]) {
        work_ += below_.words() * (1 + p_.nodes[n].children.size());
        Contained(n, one);
        for (size_t w = 0; w < all.size(); ++w) all[w] &= one[w];
      }
      ClassSets::Set(all, c);
      const std::span<uint64_t> row = below_.Row(c);
      if (std::equal(all.begin(), all.end(), row.begin())) continue;
      std::copy(all.begin(), all.end(), row.begin());
      for (uint32_t user : users[c]) stale[user] = 1;
      changed = true;
    }
    if (work_ > max_work_) return false;
  }
  return true;
}

bool Implications::FindOver() {
  const size_t classes = p_.class_count();
  over_.Assign(classes, classes, /*full=*/true);
  std::vector<uint32_t> order = ChildrenFirst(p_);
  std::reverse(order.begin(), order.end());
  std::vector<std::vector<uint32_t>> users(classes);  // classes
  std::vector<uint8_t> anywhere(classes, 0);
  for (uint32_t c = 0; c < classes; ++c) anywhere[c] = p_.required[c];
  for (uint32_t c : order) {
    for (uint32_t n : p_.class_nodes[c]) {
      for (uint32_t d : p_.nodes[n].children) {
        if (users[d].empty() || users[d].back() != c) users[d].push_back(c);
      }
      // Needed is not below.
      for (uint32_t d : p_.nodes[n].needs) anywhere[d] = 1;
    }
  }
  std::vector<uint64_t> all(over_.words());
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t c : order) {
      const std::span<uint64_t> row = over_.Row(c);
      std::fill(all.begin(), all.end(), anywhere[c] || users[c].empty() ? 0 : ~uint64_t{0});
      for (uint32_t user : users[c]) {
        if (anywhere[c]) break;
        const std::span<const uint64_t> above = over_.Row(user);
        work_ += over_.words();
        for (size_t w = 0; w < all.size(); ++w) {
          all[w] &= above[w] | (w == user / 64 ? uint64_t{1} << user % 64 : 0);
        }
      }
      if (std::equal(all.begin(), all.end(), row.begin())) continue;
      std::copy(all.begin(), all.end(), row.begin());
      changed = true;
    }
    if (work_ > max_work_) return false;
  }
  return true;
}

}  // namespace l3c::egraph
