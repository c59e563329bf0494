#include "egraph/extract/part_solver.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/choice_rows.h"
#include "egraph/extract/cost.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/local_search.h"

namespace l3c::egraph {
namespace {

constexpr double kTolerance = ChoiceRows::kTolerance;
constexpr int kMaxRelaxations = 200;
// Of those, the ones that look for path cuts, and the e-nodes looked at by each. They end where so
// many in turn have closed less than that share of the gap.
constexpr int kMaxPathRounds = 60, kMaxStalled = 3;
constexpr double kLeastGain = 0.005;
constexpr uint64_t kPathWork = 20'000'000;
// Runs of branch and bound that end in cycles before all cycles are excluded beforehand.
constexpr int kMaxCyclicRuns = 3;
// Components of more classes are left to cycle cuts: steps of an order this long are too close to
// the solvers' tolerance.
constexpr size_t kMaxOrdered = 2000;
// Steps of the local search for each e-node: at first, where the relaxation may take all the time
// there is, and where it has not closed the gap.
constexpr double kFirstEffort = 200;
constexpr size_t kManyNodes = 2000;
constexpr double kMoreEffort = 2000;
// Parts up to here that a few branches with cuts do not settle are branched on without: many cheap
// nodes may beat few strong ones there. In shares of the time left, and in branches.
constexpr size_t kFewNodes = 1000;
constexpr double kFewShare = 0.25, kCutlessShare = 0.6;
constexpr uint64_t kFewBranches = 300, kCutlessBranches = 20'000;
// Costs that are multiples of one number, up to so many times that, are scaled by it, so that a
// better choice is better by one.
constexpr double kMaxMultiple = 1e6;
// Of the largest cost: multiples that were read from decimal figures, or summed, are off by less.
constexpr double kRounding = 1e-12;

using Cycle = ClassCycle;

// The largest number that all costs are multiples of; 0 where there is none, or it is too small.
double CommonStep(std::span<const double> costs, double largest) {
  const double rounding = kRounding * largest;
  double step = 0;
  for (double x : costs) {
    // Euclid's algorithm.
    for (x = std::abs(x); x > rounding;) {
      const double rest = step > 0 ? std::fmod(step, x) : 0;
      step = x;
      x = std::min(rest, std::abs(step - rest)) <= rounding ? 0 : rest;
    }
    if (step > 0 && step * kMaxMultiple < largest) return 0;
  }
  if (!(step > 0)) return 0;
  step = largest / std::round(largest / step);
  const bool holds = std::all_of(costs.begin(), costs.end(), [&](double x) {
    return std::abs(x - std::round(x / step) * step) <= rounding;
  });
  return holds ? step : 0;
}

}  // namespace

// In here costs are scaled so that the largest is 1, or all are whole numbers.
class PartSolver::Part {
 public:
  Part(PartSolver& owner, const ChoiceProblem& problem)
      : owner_(owner), p_(problem), rows_of_(problem) {
    double largest = 0;
    for (uint32_t n : nodes_) {
      costs_.push_back(p_.nodes[n].cost);
      largest = std::max(largest, std::abs(costs_.back()));
    }
    if (const double step = CommonStep(costs_, largest); step > 0) {
      scale_ = step;
      step_ = 1;
    } else if (largest > 0) {
      scale_ = largest;
    }
    scaled_.assign(p_.nodes.size(), 0);
    for (size_t j = 0; j < costs_.size(); ++j) {
      costs_[j] /= scale_;
      if (step_ > 0) costs_[j] = std::round(costs_[j]);
      scaled_[nodes_[j]] = costs_[j];
      least_ += std::min(0.0, costs_[j]);
    }
  }

  ChoiceAnswer Solve() {
    best_.bound = least_;
    Search({}, nodes_.size() > kManyNodes ? kMoreEffort : kFirstEffort);
    if (!Proven() && !SolveWithoutDear()) {
      if (LinearSolver::Available()) {
        SolveLinear();
      } else {
        owner_.counts_.out_of_work = true;
      }
    }
    best_.cost *= scale_;
    best_.bound *= scale_;
    return std::move(best_);
  }

 private:
  // --- Choices.

  // Cost of what the required classes reach, and only that kept; infinity if some class lacks one
  // or is below itself.
  double Measure(std::vector<uint32_t>& choice) const {
    std::vector<uint8_t> state(p_.class_count(), 0);  // 1 open, 2 done
    std::vector<uint32_t> kept(p_.class_count(), kNone), wanted;
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (p_.required[c]) wanted.push_back(c);
    }
    std::vector<std::pair<uint32_t, uint32_t>> stack;
    double total = 0;
    while (!wanted.empty()) {
      const uint32_t root = wanted.back();
      wanted.pop_back();
      if (state[root] == 2) continue;
      const auto enter = [&](uint32_t c) {
        if (choice[c] == kNone) return false;
        const ChoiceNode& n = p_.nodes[choice[c]];
        state[c] = 1;
        kept[c] = choice[c];
        total += costs_[column_[choice[c]]];
        wanted.insert(wanted.end(), n.needs.begin(), n.needs.end());
        stack.emplace_back(c, 0);
        return true;
      };
      if (!enter(root)) return kInfinity;
      while (!stack.empty()) {
        auto& [c, next] = stack.back();
        const std::vector<uint32_t>& children = p_.nodes[choice[c]].children;
        if (next == children.size()) {
          state[c] = 2;
          stack.pop_back();
          continue;
        }
        const uint32_t child = children[next++];
        if (state[child] == 1) return kInfinity;
        if (state[child] == 0 && !enter(child)) return kInfinity;
      }
    }
    choice = std::move(kept);
    return total;
  }

  // Local search from the terms that are cheap under `guide` (by column, ≥ 0; empty: the costs),
  // and from the best choice there is. `effort` times the e-nodes is how many steps it may take.
  bool Search(std::span<const double> guide, double effort) {
    if (!search_) search_ = std::make_unique<LocalSearch>(p_, scaled_, owner_.limits_.time);
    const auto work =
        static_cast<uint64_t>(std::min(effort * static_cast<double>(nodes_.size()) + 1000,
                                       static_cast<double>(owner_.limits_.max_search_work)));
    std::vector<double> by_node;
    if (!guide.empty()) {
      by_node.assign(p_.nodes.size(), 0);
      for (size_t j = 0; j < guide.size(); ++j) by_node[nodes_[j]] = std::max(0.0, guide[j]);
    }
    if (!search_->Start(by_node)) return false;
    search_->Descend(work);
    const bool started_better = !best_.feasible || search_->total() < best_.cost;
    if (!started_better) search_->StartFrom(best_.choice);
    search_->Kick(work);
    return Improve(search_->Choice());
  }

  // Takes the choice if it is allowed and better.
  bool Improve(std::vector<uint32_t> choice) {
    if (choice.empty()) return false;
    const double cost = Measure(choice);
    if (!(cost < best_.cost)) return false;
    if (AddViolated(choice)) return false;
    best_.feasible = true;
    best_.cost = cost;
    best_.choice = std::move(choice);
    return true;
  }

  // True when the choice violates a bound; lazy ones become rows.
  bool AddViolated(std::span<const uint32_t> choice) {
    std::vector<uint8_t> chosen(p_.nodes.size(), 0);
    for (uint32_t n : choice) {
      if (n != kNone) chosen[n] = 1;
    }
    for (const NodeBound& bound : owner_.bounds_) {
      double use = 0;
      for (const auto& [n, x] : bound.terms) use += chosen[n] ? x : 0;
      if (use > bound.limit + kTolerance * std::abs(bound.limit)) return true;
    }
    if (!owner_.lazy_) return false;
    const std::vector<NodeBound> violated = owner_.lazy_(choice);
    for (const NodeBound& bound : violated) AddBound(bound);
    owner_.counts_.lazy_bounds += violated.size();
    return !violated.empty();
  }

  void AddBound(const NodeBound& bound) {
    LinearRow row{{}, -kInfinity, bound.limit};
    for (const auto& [n, x] : bound.terms) {
      if (column_[n] != kNone && x != 0) row.terms.emplace_back(column_[n], x);
    }
    pending_.push_back(std::move(row));
  }

  // --- Bounds.

  // Relative. Sums of costs of both signs are no closer known than their terms, which are about 1.
  double Close() const {
    const double cost = std::abs(best_.cost);
    return kTolerance * (least_ < 0 ? std::max(1.0, cost) : cost);
  }
  bool Proven() const { return best_.feasible && best_.cost - best_.bound <= Close(); }
  // A choice worth finding costs less than this.
  double Cutoff() const {
    return best_.feasible ? best_.cost - (step_ > 0 ? step_ - kTolerance : Close() / 2) : kInfinity;
  }
  void RaiseBound(double bound) {
    if (step_ > 0) bound = std::ceil(bound - kTolerance * std::max(1.0, std::abs(bound))) * step_;
    bound = std::min(bound, best_.cost);
    best_.bound = std::max(best_.bound, bound);
  }

  // --- The linear program.

  // Adds the cycles not seen before as rows; false when there was none.
  bool AddCycles(std::vector<Cycle> cycles) {
    bool any = false;
    for (Cycle& cycle : cycles) {
      std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
      if (!seen_cycles_.insert(cycle).second) continue;
      pending_.push_back(rows_of_.Exclude(cycle));
      ++owner_.counts_.cycle_cuts;
      any = true;
    }
    return any;
  }

  // An acyclic choice among the e-nodes of value 1; empty when there is none, and then `cycles`
  // says why. It costs what the values do unless there are cycles.
  std::vector<uint32_t> Pick(std::span<const double> values, std::vector<Cycle>& cycles) const {
    std::vector<uint32_t> choice(p_.class_count(), kNone), missing(p_.nodes.size(), 0), ready;
    std::vector<uint32_t> chosen(p_.class_count(), kNone);
    std::vector<std::vector<uint32_t>> users(p_.class_count());
    for (uint32_t n : nodes_) {
      if (values[column_[n]] < 0.5) continue;
      const ChoiceNode& node = p_.nodes[n];
      chosen[node.cls] = n;
      missing[n] = static_cast<uint32_t>(node.children.size());
      for (uint32_t d : node.children) users[d].push_back(n);
      if (missing[n] == 0) ready.push_back(n);
    }
    while (!ready.empty()) {
      const uint32_t n = ready.back();
      ready.pop_back();
      const uint32_t c = p_.nodes[n].cls;
      if (choice[c] != kNone) continue;
      choice[c] = n;
      for (uint32_t user : users[c]) {
        if (--missing[user] == 0) ready.push_back(user);
      }
    }
    const std::vector<uint32_t> picked = choice;
    if (!(Measure(choice) < kInfinity)) choice.clear();
    // A cycle that nothing reaches matters only if it pays.
    if (!choice.empty() && !p_.HasNegativeCosts()) return choice;
    std::vector<uint32_t> mark(p_.class_count(), kNone);
    for (uint32_t start = 0; start < p_.class_count(); ++start) {
      Cycle path;
      uint32_t c = start;
      while (c != kNone && chosen[c] != kNone && picked[c] == kNone && mark[c] == kNone) {
        mark[c] = start;
        path.push_back(c);
        uint32_t next = kNone;
        for (uint32_t d : p_.nodes[chosen[c]].children) {
          if (picked[d] == kNone) next = d;
        }
        c = next;
      }
      if (c == kNone || path.empty() || mark[c] != start) continue;
      path.erase(path.begin(), std::find(path.begin(), path.end(), c));
      if (path.size() > 1) cycles.push_back(std::move(path));
    }
    return choice;
  }

  void Flush(LinearSolver& solver) {
    solver.AddRows(pending_);
    rows_.insert(rows_.end(), std::make_move_iterator(pending_.begin()),
                 std::make_move_iterator(pending_.end()));
    pending_.clear();
  }

  // The same program with a place in an order, from 0 to 1, for each class on a cycle: a class
  // comes after those that its e-node uses. Nullptr where no component is small enough.
  std::unique_ptr<LinearSolver> Ordered() const {
    std::map<uint32_t, size_t> sizes;
    for (uint32_t component : component_) {
      if (component != kNone) ++sizes[component];
    }
    std::vector<double> costs(costs_);
    std::vector<uint32_t> place(p_.class_count(), kNone);
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (component_[c] == kNone || sizes[component_[c]] > kMaxOrdered) continue;
      place[c] = static_cast<uint32_t>(costs.size());
      costs.push_back(0);
    }
    if (costs.size() == costs_.size()) return nullptr;
    std::vector<uint8_t> whole(costs_.size(), 1);
    whole.resize(costs.size(), 0);
    auto solver = std::make_unique<LinearSolver>(costs, whole);
    std::vector<LinearRow> rows = rows_;
    for (uint32_t c = 0; c < p_.class_count(); ++c) {
      if (place[c] == kNone) continue;
      const double step = 1.0 / static_cast<double>(sizes[component_[c]]);
      for (const auto& [d, columns] : rows_of_.EdgesFrom(c, true)) {
        if (component_[d] != component_[c]) continue;
        // place(c) − place(d) ≥ step where the edge is chosen, ≥ −1 where not.
        LinearRow row{{{place[c], 1}, {place[d], -1}}, -1, kInfinity};
        for (uint32_t j : columns) row.terms.emplace_back(j, -1 - step);
        rows.push_back(std::move(row));
      }
    }
    solver->AddRows(rows);
    return solver;
  }

  void SolveLinear() {
    LinearSolver solver(costs_, std::vector<uint8_t>(costs_.size(), 1));
    std::vector<LinearRow> rows = rows_of_.Required();
    rows.insert(rows.end(), pending_.begin(), pending_.end());
    pending_.clear();
    solver.AddRows(rows);
    rows_ = std::move(rows);
    for (const NodeBound& bound : owner_.bounds_) AddBound(bound);
    AddCycles(rows_of_.PairCycles());
    Flush(solver);
    bool relaxed = false;
    int path_rounds = 0, stalled = 0;
    double bound_before = 0;
    for (int round = 0; round < kMaxRelaxations; ++round) {
      const double seconds = owner_.SecondsLeft();
      if (seconds <= 0) return;
      const LinearStatus status = solver.SolveRelaxation(owner_.limits_.time);
      if (status == LinearStatus::kInfeasible) return NothingElse();
      RaiseBound(solver.bound());
      if (status == LinearStatus::kStopped) {
        owner_.SecondsLeft();
        break;
      }
      relaxed = true;
      if (Proven()) return;
      std::vector<Cycle> cycles;
      const std::span<const double> values = solver.values();
      const bool whole = std::all_of(values.begin(), values.end(),
                                     [](double x) { return x < kTolerance || x > 1 - kTolerance; });
      if (whole) {
        Improve(Pick(values, cycles));
        if (Proven()) return;
      }
      if (cycles.empty()) cycles = rows_of_.FractionalCycles(values);
      AddCycles(std::move(cycles));
      for (LinearRow& row : rows_of_.Contained(values)) pending_.push_back(std::move(row));
      for (LinearRow& row : rows_of_.Unused(values)) pending_.push_back(std::move(row));
      if (pending_.empty() && path_rounds < kMaxPathRounds && stalled < kMaxStalled) {
        // The first one has nothing to be measured by.
        const double gained = solver.bound() - bound_before;
        const bool stalls = path_rounds > 0 && gained < kLeastGain * (best_.cost - solver.bound());
        stalled = stalls ? stalled + 1 : 0;
        bound_before = solver.bound();
        ++path_rounds;
        for (LinearRow& row : rows_of_.Paths(values, kPathWork, owner_.limits_.time)) {
          pending_.push_back(std::move(row));
        }
      }
      const bool cut = !pending_.empty();
      Flush(solver);
      if (!cut) break;
    }
    if (relaxed) {
      std::vector<double> prices(costs_);
      for (size_t j = 0; j < prices.size(); ++j) prices[j] *= 1 - solver.values()[j];
      if (Search(prices, kMoreEffort) && Proven()) return;
      Flush(solver);
      if (SolvePricedOut(solver)) return;
    }
    Branch(solver);
  }

  // Nothing is cheaper than what is there.
  void NothingElse() {
    if (best_.feasible) {
      best_.bound = best_.cost;
    } else {
      best_.infeasible = true;
    }
  }

  // E-nodes that alone cost more than the best choice go, where they are many, or where costs are
  // scaled so that the best one costs too little: the solvers' tolerances are relative to 1.
  bool SolveWithoutDear() {
    if (least_ < 0) return false;
    const bool little = step_ == 0 && best_.cost < 0.5;
    return SolveRest([&](uint32_t n) { return scaled_[n] > best_.cost; }, little ? 1 : Many());
  }

  // What the relaxation excludes from a better choice goes, where that is much.
  bool SolvePricedOut(const LinearSolver& solver) {
    const double most = Cutoff() + kTolerance * std::max(1.0, std::abs(best_.cost));
    return SolveRest(
        [&](uint32_t n) { return solver.bound() + solver.added()[column_[n]] >= most; }, Many());
  }

  // So many e-nodes less are worth another start.
  size_t Many() const { return 1 + nodes_.size() / 20; }

  // Takes out e-nodes that are in no better choice and starts afresh on the rest. False, and
  // nothing done, where there are fewer than `least`.
  template <typename Excluded>
  bool SolveRest(Excluded&& excluded, size_t least) {
    if (!best_.feasible || owner_.bounded()) return false;
    ChoiceProblem rest = p_;
    size_t removed = 0;
    for (uint32_t n : nodes_) {
      if (!excluded(n)) continue;
      rest.nodes[n].alive = false;
      ++removed;
    }
    if (removed < least) return false;
    for (auto& nodes : rest.class_nodes) {
      std::erase_if(nodes, [&](uint32_t n) { return !rest.nodes[n].alive; });
    }
    ChoiceAnswer answer = owner_.Solve(std::move(rest));
    answer.cost /= scale_;
    answer.bound /= scale_;
    if (answer.infeasible) {
      NothingElse();
      return true;
    }
    RaiseBound(std::min(answer.bound, best_.cost));
    if (answer.feasible && answer.cost < best_.cost) {
      best_.cost = answer.cost;
      best_.choice = std::move(answer.choice);
    }
    best_.bound = std::min(best_.bound, best_.cost);
    return true;
  }

  LinearSolver::Integer SolveInteger(const LinearSolver& solver) {
    const PartSolver::Limits& limits = owner_.limits_;
    const auto run = [&](double share, uint64_t branches, bool cuts) {
      TimeLimit time = limits.time;
      if (!time.unlimited()) time = TimeLimit(time.kind(), share * time.SecondsLeft());
      const uint64_t left =
          limits.max_branch_nodes - std::min(limits.max_branch_nodes, owner_.counts_.branch_nodes);
      LinearSolver::Integer found =
          solver.SolveInteger(Cutoff(), time, std::min(branches, left), cuts);
      owner_.counts_.branch_nodes += std::max<uint64_t>(1, found.branch_nodes);
      return found;
    };
    if (nodes_.size() <= kFewNodes) {
      for (const bool cuts : {true, false}) {
        LinearSolver::Integer found =
            cuts ? run(kFewShare, kFewBranches, true) : run(kCutlessShare, kCutlessBranches, false);
        if (found.status != LinearStatus::kStopped) return found;
        RaiseBound(found.bound);
        std::vector<Cycle> ignored;
        if (!found.values.empty()) Improve(Pick(found.values, ignored));
        if (owner_.SecondsLeft() <= 0) return found;
      }
    }
    return run(1, std::numeric_limits<uint64_t>::max(), true);
  }

  void Branch(LinearSolver& relaxed) {
    std::unique_ptr<LinearSolver> ordered;
    for (int run = 0;; ++run) {
      if (run == kMaxCyclicRuns) ordered = Ordered();
      LinearSolver& solver = ordered ? *ordered : relaxed;
      const double seconds = owner_.SecondsLeft();
      const uint64_t used = owner_.counts_.branch_nodes;
      if (seconds <= 0) return;
      if (used >= owner_.limits_.max_branch_nodes) {
        owner_.counts_.out_of_work = true;
        return;
      }
      const LinearSolver::Integer found = SolveInteger(solver);
      if (found.status == LinearStatus::kInfeasible) return NothingElse();
      RaiseBound(found.bound);
      if (found.values.empty()) {
        if (owner_.SecondsLeft() > 0) owner_.counts_.out_of_work = true;
        return;
      }
      std::vector<Cycle> cycles;
      const bool improved = Improve(Pick(found.values, cycles));
      const bool cut = AddCycles(std::move(cycles)) || !pending_.empty();
      if (improved && !cut && found.status == LinearStatus::kOptimal) {
        best_.bound = best_.cost;
        return;
      }
      if (found.status == LinearStatus::kStopped) {
        if (owner_.SecondsLeft() > 0) owner_.counts_.out_of_work = true;
        return;
      }
      if (!cut) {
        // Neither better nor excluded: the solver's tolerances, not ours.
        owner_.counts_.out_of_work = true;
        return;
      }
      // A choice with those cycles mended may be better than what there is.
      std::vector<double> prices(costs_);
      for (size_t j = 0; j < prices.size(); ++j) prices[j] *= 1 - found.values[j];
      Search(prices, kFirstEffort);
      Flush(solver);
      if (Proven()) return;
    }
  }

  PartSolver& owner_;
  const ChoiceProblem& p_;
  ChoiceRows rows_of_;
  const std::vector<uint32_t>& column_ = rows_of_.columns();  // by e-node
  const std::vector<uint32_t>& nodes_ = rows_of_.nodes();     // by column
  const std::vector<uint32_t>& component_ = rows_of_.components();
  std::vector<double> costs_;   // by column, scaled
  std::vector<double> scaled_;  // by e-node
  std::unique_ptr<LocalSearch> search_;
  double scale_ = 1;
  double step_ = 0;   // what two different costs differ by at least; 0 when unknown
  double least_ = 0;  // no choice costs less
  ChoiceAnswer best_;
  std::set<Cycle> seen_cycles_;
  std::vector<LinearRow> rows_;     // of the solver
  std::vector<LinearRow> pending_;  // not in it yet
};

void PartSolver::SetBounds(std::vector<NodeBound> bounds, LazyNodeBounds lazy) {
  bounds_ = std::move(bounds);
  lazy_ = std::move(lazy);
}

double PartSolver::SecondsLeft() {
  const double left = limits_.time.SecondsLeft();
  counts_.out_of_time |= left <= 0;
  return left;
}

ChoiceAnswer PartSolver::Solve(ChoiceProblem p) {
  ReducedChoice reduced =
      Reduce(p, bounded() ? Reductions::kFeasibility : Reductions::kAll, {.time = limits_.time});
  if (!reduced_size_) {
    reduced_size_.emplace(0, 0);
    for (const auto& nodes : p.class_nodes) {
      reduced_size_->first += !nodes.empty();
      reduced_size_->second += nodes.size();
    }
  }
  ChoiceAnswer answer;
  if (!reduced.feasible) {
    answer.infeasible = true;
    return answer;
  }
  if (bounded()) {
    ++counts_.parts;
    return Part(*this, p).Solve();
  }
  answer.feasible = true;
  answer.cost = answer.bound = reduced.fixed_cost;
  answer.choice = std::move(reduced.decided);
  for (const ChoicePart& part : Split(p)) {
    ++counts_.parts;
    const ChoiceAnswer own = Part(*this, part.problem).Solve();
    answer.feasible &= own.feasible;
    answer.infeasible |= own.infeasible;
    answer.cost += own.cost;
    answer.bound += own.bound;
    if (!own.feasible) continue;
    for (uint32_t c = 0; c < own.choice.size(); ++c) {
      if (own.choice[c] != kNone) answer.choice[part.classes[c]] = part.nodes[own.choice[c]];
    }
  }
  return answer;
}

}  // namespace l3c::egraph
