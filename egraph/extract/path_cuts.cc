#include "egraph/extract/path_cuts.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "egraph/extract/cost.h"

namespace l3c::egraph {
namespace {

constexpr double kNothing = 1e-7;
constexpr double kMinViolation = 0.01;
constexpr size_t kMaxCuts = 200;

}  // namespace

PathCuts::PathCuts(const ChoiceProblem& problem, const Implications& implications,
                   std::span<const uint32_t> columns)
    : p_(problem), implications_(implications), columns_(columns) {
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    if (p_.required[c]) required_.push_back(c);
  }
}

void PathCuts::Build(std::span<const double> values) {
  arcs_.clear();
  class_arcs_.assign(p_.class_count(), {});
  users_.assign(p_.class_count(), {});
  chosen_.assign(p_.class_count(), 0);
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    for (uint32_t n : p_.class_nodes[c]) {
      const double value = values[columns_[n]];
      if (value <= kNothing) continue;
      chosen_[c] += value;
      const auto arc = static_cast<uint32_t>(arcs_.size());
      class_arcs_[c].push_back(arc);
      Arc& a = arcs_.emplace_back();
      a.node = n;
      a.value = value;
      a.to = p_.nodes[n].children;
      a.to.insert(a.to.end(), p_.nodes[n].needs.begin(), p_.nodes[n].needs.end());
      a.flow_to.assign(a.to.size(), 0);
      for (uint32_t i = 0; i < a.to.size(); ++i) users_[a.to[i]].push_back({arc, i});
    }
  }
  source_flow_.assign(arcs_.size(), 0);
  from_class_.assign(p_.class_count(), {});
  from_arc_.assign(arcs_.size(), {});
  class_mark_.assign(p_.class_count(), 0);
  arc_mark_.assign(arcs_.size(), 0);
  mark_ = 0;
}

// A shortest way along which more can flow. A class is reached from an e-node that uses it, or back
// from one of its own that carries flow; an e-node from its class, or back from what it uses.
double PathCuts::Augment(uint32_t d) {
  ++mark_;
  queue_.clear();
  const auto reach_class = [&](uint32_t c, Step from) {
    if (class_mark_[c] == mark_) return;
    class_mark_[c] = mark_;
    from_class_[c] = from;
    queue_.push_back({c, true});
  };
  const auto reach_arc = [&](uint32_t a, Step from) {
    if (arc_mark_[a] == mark_) return;
    arc_mark_[a] = mark_;
    from_arc_[a] = from;
    queue_.push_back({a, false});
  };
  if (sources_.empty()) {
    for (uint32_t c : required_) reach_class(c, {});
  }
  for (uint32_t a : sources_) {
    if (arcs_[a].value - source_flow_[a] > kNothing) reach_arc(a, {});
  }
  for (size_t head = 0; head < queue_.size(); ++head) {
    const auto [x, is_class] = queue_[head];
    ++work_;
    if (!is_class) {
      const Arc& arc = arcs_[x];
      for (uint32_t i = 0; i < arc.to.size(); ++i) reach_class(arc.to[i], {x, i});
      // What its class sends through it can be sent elsewhere.
      if (arc.flow > kNothing) reach_class(p_.nodes[arc.node].cls, {x, kNone});
      continue;
    }
    if (x == d) break;
    for (uint32_t a : class_arcs_[x]) {
      if (arcs_[a].value - arcs_[a].flow > kNothing) reach_arc(a, {x, kNone});
    }
    for (const User& user : users_[x]) {
      if (arcs_[user.arc].flow_to[user.place] > kNothing) reach_arc(user.arc, {x, user.place});
    }
  }
  if (class_mark_[d] != mark_) return 0;
  // Back along the way, twice: how much, then the change.
  double room = kInfinity;
  for (const bool change : {false, true}) {
    uint32_t x = d;
    bool is_class = true;
    while (true) {
      const Step from = is_class ? from_class_[x] : from_arc_[x];
      if (from.id == kNone) {
        if (!is_class) {
          if (change) source_flow_[x] += room;
          room = std::min(room, change ? room : arcs_[x].value - source_flow_[x]);
        }
        break;
      }
      if (is_class && from.place != kNone) {
        if (change) arcs_[from.id].flow_to[from.place] += room;
      } else if (is_class) {
        double& flow = arcs_[from.id].flow;
        room = change ? room : std::min(room, flow);
        if (change) flow -= room;
      } else if (from.place == kNone) {
        double& flow = arcs_[x].flow;
        room = change ? room : std::min(room, arcs_[x].value - flow);
        if (change) flow += room;
      } else {
        double& flow = arcs_[x].flow_to[from.place];
        room = change ? room : std::min(room, flow);
        if (change) flow -= room;
      }
      x = from.id;
      is_class = !is_class;
    }
  }
  return room;
}

double PathCuts::Flow(uint32_t d, double wanted) {
  for (Arc& arc : arcs_) {
    arc.flow = 0;
    std::fill(arc.flow_to.begin(), arc.flow_to.end(), 0);
  }
  std::fill(source_flow_.begin(), source_flow_.end(), 0);
  double flow = 0;
  while (flow < wanted - kMinViolation) {
    const double more = Augment(d);
    if (more <= kNothing) break;
    flow += more;
  }
  return flow;
}

std::vector<LinearRow> PathCuts::Find(std::span<const double> values, uint64_t max_work,
                                      const TimeLimit& time) {
  Build(values);
  work_ = 0;
  std::vector<std::pair<double, LinearRow>> found;
  // What was reached in the last search is the set; `c` is kNone where the sources are what is
  // required.
  const auto take = [&](uint32_t c, uint32_t d, double violation) {
    const auto inside = [&](uint32_t to) { return class_mark_[to] == mark_; };
    const auto stays = [&](const ChoiceNode& node) {
      return std::all_of(node.children.begin(), node.children.end(), inside) &&
             std::all_of(node.needs.begin(), node.needs.end(), inside);
    };
    std::vector<std::pair<uint32_t, double>> terms;
    for (uint32_t n : p_.class_nodes[c == kNone ? d : c]) {
      if (c != kNone) {
        implications_.Contained(n, contained_);
        if (!ClassSets::Test(contained_, d) || !stays(p_.nodes[n])) continue;
      }
      terms.emplace_back(columns_[n], 1);
    }
    for (uint32_t k = 0; k < p_.class_count(); ++k) {
      if (!inside(k)) continue;
      for (uint32_t n : p_.class_nodes[k]) {
        if (!stays(p_.nodes[n])) terms.emplace_back(columns_[n], -1);
      }
    }
    std::sort(terms.begin(), terms.end());
    if (seen_.insert(terms).second) {
      found.emplace_back(violation, LinearRow{std::move(terms), -kInfinity, 0});
    }
  };
  const auto classes = static_cast<uint32_t>(p_.class_count());
  for (uint32_t i = 0; i < classes; ++i) {
    if (work_ > max_work || time.Passed()) break;
    const uint32_t c = next_class_;
    next_class_ = (next_class_ + 1) % classes;
    if (chosen_[c] < kMinViolation) continue;
    if (!p_.required[c]) {
      sources_.clear();
      const double flow = Flow(c, chosen_[c]);
      if (flow < chosen_[c] - kMinViolation) take(kNone, c, chosen_[c] - flow);
    }
    // By class: the arcs of c that contain it.
    std::vector<std::pair<uint32_t, uint32_t>> below;
    for (uint32_t a : class_arcs_[c]) {
      implications_.Contained(arcs_[a].node, contained_);
      for (size_t w = 0; w < contained_.size(); ++w) {
        for (uint64_t bits = contained_[w]; bits != 0; bits &= bits - 1) {
          below.emplace_back(static_cast<uint32_t>(64 * w + std::countr_zero(bits)), a);
        }
      }
    }
    std::sort(below.begin(), below.end());
    for (size_t first = 0; first < below.size();) {
      const uint32_t d = below[first].first;
      sources_.clear();
      double wanted = 0;
      bool direct = true;
      for (; first < below.size() && below[first].first == d; ++first) {
        sources_.push_back(below[first].second);
        wanted += arcs_[sources_.back()].value;
        direct &= std::binary_search(p_.nodes[arcs_[sources_.back()].node].children.begin(),
                                     p_.nodes[arcs_[sources_.back()].node].children.end(), d);
      }
      if (direct || wanted < kMinViolation || work_ > max_work) continue;
      const double flow = Flow(d, wanted);
      if (flow < wanted - kMinViolation) take(c, d, wanted - flow);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<LinearRow> rows;
  for (size_t i = 0; i < std::min(found.size(), kMaxCuts); ++i) {
    rows.push_back(std::move(found[i].second));
  }
  for (size_t i = kMaxCuts; i < found.size(); ++i) seen_.erase(found[i].second.terms);
  return rows;
}

}  // namespace l3c::egraph
