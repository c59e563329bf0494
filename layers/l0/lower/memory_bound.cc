#include "layers/l0/lower/memory_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "layers/l0/lower/arena.h"
#include "layers/support/units.h"

namespace l3c::l0::lower {

std::vector<int64_t> ShareBytes(const std::vector<int64_t>& wanted, int64_t bytes) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<int64_t> shares(wanted.size());
  int64_t left = std::max<int64_t>(0, bytes);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto others = static_cast<int64_t>(order.size() - i);
    shares[order[i]] = std::min(wanted[order[i]], left / others);
    left -= shares[order[i]];
  }
  return shares;
}

void MemoryBound::Place::Add(const Pool& pool) {
  total += pool.size;
  if (pool.kind == PoolKind::kPersistent) state += pool.size;
  if (pool.kind == PoolKind::kStaging) staging += pool.size;
  if (pool.kind == PoolKind::kWindow) window += pool.size;
}

MemoryBound::MemoryBound(const Plan& plan, const l1::System& system, std::optional<int64_t> asked) {
  std::vector<Place> places;
  Place all;
  if (asked) all.bound = *asked;
  for (const Pool& pool : plan.pools) {
    all.Add(pool);
    auto place = std::find_if(places.begin(), places.end(),
                              [&](const Place& p) { return p.name == pool.node; });
    if (place == places.end()) {
      places.emplace_back().name = pool.node;
      place = places.end() - 1;
      place->memory = l1::FindNode(system, pool.node);
      if (place->memory) place->where = system.nodes[*place->memory].span;
      if (pool.capacity > 0) place->bound = pool.capacity;
    }
    place->Add(pool);
  }
  const auto excess = [](const Place& p) { return p.total - p.bound; };
  if (asked || places.empty()) places.insert(places.begin(), all);
  place_ = *std::max_element(places.begin(), places.end(),
                             [&](const Place& a, const Place& b) { return excess(a) < excess(b); });
}

bool MemoryBound::Keep(std::vector<BoundStep>& steps, std::string_view evidence,
                       const RuleSources& rules, search::Explanation& explanation,
                       std::optional<search::SearchFailure>& failure, std::string& rule_error,
                       int64_t& needed) const {
  std::vector<int64_t> wanted;
  for (const BoundStep& step : steps) {
    wanted.push_back(PackArena(*step.plan, *step.table).BytesIn(place_.memory));
  }
  std::vector<int64_t> shares(steps.size(), kNoBound);
  std::vector<int64_t> least(steps.size(), 0);
  const bool bounded = place_.bound != kNoBound;
  const int64_t arenas = bounded ? place_.bound - Fixed() : kNoBound;
  // A pipeline that cannot do with its share gets what it needs, and the others share the rest.
  for (size_t round = 0; round <= steps.size(); ++round) {
    if (bounded) {
      const int64_t reserved = std::accumulate(least.begin(), least.end(), int64_t{0});
      std::vector<int64_t> more = wanted;
      for (size_t i = 0; i < more.size(); ++i) {
        if (least[i] > 0) more[i] = 0;
      }
      shares = ShareBytes(more, arenas - reserved);
      for (size_t i = 0; i < more.size(); ++i) shares[i] += least[i];
      // What nobody wants is there for what is forced.
      const int64_t left = arenas - std::accumulate(shares.begin(), shares.end(), int64_t{0});
      for (int64_t& share : shares) {
        share += std::max<int64_t>(0, left) / static_cast<int64_t>(shares.size());
      }
    }
    bool again = false;
    std::vector<StepPlan> plans;
    search::Explanation decided = explanation;
    for (size_t i = 0; i < steps.size(); ++i) {
      RecomputeFailure why;
      auto plan = PlanWithin({shares[i], place_.memory}, *steps[i].plan, *steps[i].table, rules,
                             *steps[i].options, evidence, decided, why);
      if (plan) {
        plans.push_back(*std::move(plan));
        continue;
      }
      if (!why.rule_error.empty()) {
        rule_error = why.rule_error;
        return false;
      }
      if (why.timeout) {
        failure = *why.timeout;
        return false;
      }
      if (!why.forced.empty()) {
        failure = search::NoCandidates{why.forced, "see --explain for the ids and labels", {}};
        return false;
      }
      least[i] = why.needed;
      again = true;
    }
    if (!again) {
      for (size_t i = 0; i < steps.size(); ++i) *steps[i].plan = std::move(plans[i]);
      explanation = std::move(decided);
      return true;
    }
    // Whether what is known to be needed is more than there is.
    const int64_t reserved = std::accumulate(least.begin(), least.end(), int64_t{0});
    if (reserved > arenas) break;
  }
  // What each needs at least, also of those that had enough.
  needed = Fixed();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (least[i] == 0) {
      RecomputeFailure why;
      search::Explanation ignored;
      ChooseOptions quiet = *steps[i].options;
      quiet.explain = false;
      PlanWithin({0, place_.memory}, *steps[i].plan, *steps[i].table, rules, quiet, evidence,
                 ignored, why);
      least[i] = why.needed;
    }
    needed += least[i];
  }
  return false;
}

void MemoryBound::Report(int64_t needed, support::Diagnostics& diagnostics) const {
  const auto bytes = [](int64_t n) { return support::PrintInteger(n); };
  const int64_t results = needed - Fixed();
  const std::string have = bytes(place_.bound);
  diagnostics
      .Error(support::Kind::kResourceBound, place_.where,
             "the plan needs about " + bytes(needed) + " bytes of memory " +
                 (place_.asked() ? "at least, and --memory gives it " + have
                                 : "'" + place_.name + "' at least, which has " + have))
      .With({{},
             bytes(place_.state) + " of state, " +
                 (place_.window > 0 ? bytes(place_.window) + " of state brought in, " : "") +
                 bytes(place_.staging) + " of batches in flight, and " + bytes(results) +
                 " of results, with as much computed again as there can be; found to a hundredth"})
      .Fix((place_.asked() ? "write --memory " + bytes(needed) + "B"
                           : "give '" + place_.name + "' " + bytes(needed) + "B") +
           " or more, or train with smaller batches");
}

}  // namespace l3c::l0::lower
