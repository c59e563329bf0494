// The search for a method, in order:
//
//   1. BuildSpace    what the specification and the priors leave to choose from
//   2. SpaceGraph    all candidates in one e-graph; counting them is a pass over it
//   3. Best          for each batch and optimiser, the best network, with the best of the other
//                    choices
//   4. Top           the best few, for the next lowering to tell apart; Rerank, by their plans
//   5. Explain       for each choice made, the best candidate under every other label of it
#include "layers/l2/lower.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/candidate.h"
#include "layers/l2/form.h"
#include "layers/l2/front.h"
#include "layers/l2/rerank.h"
#include "layers/l2/score.h"
#include "layers/l2/search_failures.h"
#include "layers/l2/searcher.h"
#include "layers/l2/space_builder.h"
#include "layers/l2/space_graph.h"
#include "layers/l2/verify.h"
#include "layers/l3/simplify.h"
#include "layers/search/saturation.h"
#include "layers/support/printer.h"
#include "rewrites/rewrites.h"

namespace l3c::l2 {
namespace {

using search::NoCandidates;
using search::SearchFailure;

constexpr char kFrontDecision[] = "l2/goal.front";

// What annotations fix must be sound in the methods that they land in; the candidates in which it
// is not are dropped.
std::optional<SearchFailure> CheckAnnotations(const l3::Module& spec,
                                              std::vector<search::Candidate<Module>>& candidates) {
  const auto annotated =
      std::find_if(spec.models.begin(), spec.models.end(),
                   [&](const l3::Model& model) { return spec.hints.contains(model.name); });
  if (annotated == spec.models.end()) return std::nullopt;
  std::optional<SearchFailure> first;
  std::erase_if(candidates, [&](const search::Candidate<Module>& candidate) {
    support::Diagnostics diagnostics;
    if (Verify(candidate.target, diagnostics)) return false;
    const support::Diagnostic& error = diagnostics.all().front();
    if (!first) {
      first = NoCandidates{error.message, error.fix.empty() ? error.label : error.fix,
                           spec.hints.at(annotated->name).front().span};
    }
    return true;
  });
  return candidates.empty() ? first : std::nullopt;
}

// One model's methods, best first; each candidate holds them alone.
search::LoweringResult<Module> LowerModel(const l3::Module& spec, const l3::Model& model,
                                          const LowerConstraints& constraints, const Methods* first,
                                          const search::LoweringOptions& options) {
  search::LoweringResult<Module> result;
  search::Explanation& explanation = result.explanation;
  explanation.lowering = "l3->l2";
  explanation.report.work_budget = options.budget.work;
  explanation.report.stop_reason = "not started";

  const Priors& priors = constraints.priors != nullptr ? *constraints.priors : BuiltinPriors();
  Space space;
  result.failure = BuildSpace(spec, model, priors, constraints.rows, first, explanation, space);
  if (result.failure) return result;
  const ReferenceMachine reference(space.priors);
  const Scorer scorer(space, constraints.estimator != nullptr ? *constraints.estimator : reference);

  if (rewrites::Find("lower_l3_l2") == nullptr) {
    result.failure = NoCandidates{"the rules of rewrites/lower_l3_l2.egg are not in this build",
                                  "build with the rule file",
                                  {}};
    return result;
  }
  SpaceGraph graph(space, scorer, options.budget, options.rules);
  Searcher searcher(space, scorer, graph, options);
  auto report = [&] {
    explanation.report.egraph_nodes = graph.node_count();
    explanation.report.egraph_classes = graph.class_count();
    explanation.report.work = graph.work();
    explanation.report.stop_reason = graph.stop_reason();
    explanation.report.scored = searcher.scored();
  };
  report();
  if (graph.timeout()) {
    result.failure = *graph.timeout();
    return result;
  }
  explanation.report.candidates = graph.CountCandidates();
  result.failure = searcher.CheckForced();
  if (result.failure) return result;

  auto timeout = [&](std::string doing) {
    return search::OutOf("work", graph.work(), options.budget.work, std::move(doing),
                         "tighten depth(n) or width(n)");
  };
  std::vector<Scored> found;
  if (options.mode == search::Mode::kEGraph) {
    if (auto best = searcher.Best(searcher.forced())) found.push_back(std::move(*best));
  } else {
    auto one = options.mode == search::Mode::kGreedy ? searcher.Greedy() : searcher.First();
    if (one) found.push_back(std::move(*one));
  }
  report();
  if (graph.exhausted()) {
    result.failure = timeout("extracting");
    return result;
  }
  if (found.empty()) {
    result.failure = Infeasible(space, graph, searcher.forced());
    return result;
  }
  const uint64_t scored = searcher.scored();
  if (options.mode == search::Mode::kEGraph && scored > options.budget.candidates) {
    result.failure = TooMany(space, scored, options.budget.candidates);
    return result;
  }
  if (options.mode == search::Mode::kEGraph) {
    found = searcher.Top(std::move(found.front()), options.budget.top);
  }
  if (options.mode == search::Mode::kEGraph && constraints.simulate && spec.models.size() == 1 &&
      found.size() > 1) {
    result.failure = Rerank(space, constraints.simulate, options.forced, found, explanation);
  } else if (options.forced.contains(PlanDecision(space))) {
    result.failure = NoCandidates{
        "there is no decision '" + PlanDecision(space) + "' to force: nothing is left to reorder",
        "leave it out",
        {}};
  }
  if (result.failure) return result;
  searcher.Explain(found.front(), options.mode == search::Mode::kEGraph, explanation);
  graph.Trace(explanation);
  report();
  explanation.report.scored = scored;
  if (graph.exhausted()) {
    explanation.report.stop_reason += "; the work budget ended while losers were compared";
  }
  for (const Scored& candidate : found) {
    result.candidates.push_back({Build(space, candidate.choice), scorer.Cost(candidate.score)});
  }
  return result;
}

// What the search for one more model adds to the whole.
void Join(search::Explanation& all, search::Explanation one) {
  for (search::Decision& d : one.decisions) all.decisions.push_back(std::move(d));
  for (search::Pruned& p : one.pruned) all.pruned.push_back(std::move(p));
  all.report.egraph_nodes += one.report.egraph_nodes;
  all.report.egraph_classes += one.report.egraph_classes;
  all.report.work += one.report.work;
  all.report.scored += one.report.scored;
  all.report.candidates *= one.report.candidates;
}

// Forced choices of the other models are not this one's to refuse.
search::LoweringOptions OptionsFor(const l3::Module& spec, const l3::Model& model,
                                   const search::LoweringOptions& options) {
  search::LoweringOptions own = options;
  std::erase_if(own.forced, [&](const auto& choice) {
    return std::any_of(spec.models.begin(), spec.models.end(), [&](const l3::Model& other) {
      return other.name != model.name && choice.first.starts_with("l2/" + other.name + "/");
    });
  });
  return own;
}

// For a goal that is no front.
search::LoweringResult<Module> LowerGoal(const l3::Module& spec,
                                         const LowerConstraints& constraints,
                                         const search::LoweringOptions& options) {
  search::LoweringResult<Module> result;
  for (const l3::Model& model : spec.models) {
    const bool is_first = &model == &spec.models.front();
    const Methods* first = is_first ? nullptr : &result.candidates.front().target.methods.front();
    auto one = LowerModel(spec, model, constraints, first, OptionsFor(spec, model, options));
    if (is_first) {
      result = std::move(one);
    } else {
      Join(result.explanation, std::move(one.explanation));
      result.failure = std::move(one.failure);
    }
    if (result.failure) return result;
    if (is_first) continue;
    // The others of the first model's candidates keep what its best is sampled by and for how long.
    const Methods best = result.candidates.front().target.methods.front();
    std::erase_if(result.candidates, [&](const auto& candidate) {
      const Methods& methods = candidate.target.methods.front();
      return !SameForm(methods.sample, best.sample) ||
             methods.phases.front().epochs != best.phases.front().epochs;
    });
    for (auto& candidate : result.candidates) {
      candidate.target.methods.push_back(one.best().methods.front());
      for (search::CostComponent& c : candidate.cost) {
        for (const search::CostComponent& other : one.candidates.front().cost) {
          if (c.name == other.name && c.name != "steps") c.value += other.value;
        }
      }
    }
  }
  if (spec.models.empty()) {
    result.failure = NoCandidates{"the specification has no model", "declare one", {}};
    return result;
  }
  result.failure = CheckAnnotations(spec, result.candidates);
  return result;
}

// The point that is picked or forced; the middle when none is.
std::optional<size_t> PointOf(const std::vector<FrontPoint>& front, std::optional<size_t> pick,
                              const search::ForcedChoices& forced) {
  if (pick) return *pick >= 1 && *pick <= front.size() ? std::optional(*pick - 1) : std::nullopt;
  const auto choice = forced.find(kFrontDecision);
  if (choice == forced.end()) return MiddleOf(front);
  for (size_t i = 0; i < front.size(); ++i) {
    if (front[i].label == choice->second) return i;
  }
  return std::nullopt;
}

}  // namespace

search::LoweringResult<Module> LowerToL2(const l3::Module& written,
                                         const LowerConstraints& constraints,
                                         const search::LoweringOptions& options) {
  const l3::Module spec = l3::Simplify(written);
  const std::vector<FrontPoint> front = Front(spec);
  if (front.empty() && !constraints.pick) return LowerGoal(spec, constraints, options);
  search::LoweringResult<Module> result;
  result.explanation.lowering = "l3->l2";
  if (front.empty()) {
    result.failure = NoCandidates{"there is no front to pick from: the goal is one loss",
                                  "leave out --pick, or write goal: pareto([…])", spec.goal.span};
    return result;
  }
  const auto at = PointOf(front, constraints.pick, options.forced);
  if (!at) {
    std::vector<std::string> points;
    for (size_t i = 0; i < front.size(); ++i) {
      points.push_back(std::to_string(i + 1) + ": " + front[i].label);
    }
    result.failure =
        NoCandidates{"the front has " + std::to_string(front.size()) + " points, and not that one",
                     "points: " + support::Join(points), spec.goal.span};
    return result;
  }
  search::LoweringOptions rest = options;
  rest.forced.erase(kFrontDecision);
  result = LowerGoal(AtPoint(spec, front[*at]), constraints, rest);
  if (result.failure) return result;
  // Every point takes the same steps of the same work; which is wanted is the user's to say.
  search::Decision decision;
  decision.id = kFrontDecision;
  decision.chosen = front[*at].label;
  decision.cost = result.candidates.front().cost;
  decision.forced = constraints.pick || options.forced.contains(kFrontDecision);
  for (size_t i = 0; i < front.size(); ++i) {
    if (i == *at) continue;
    search::Loser other;
    other.label = front[i].label;
    other.cost = decision.cost;
    other.difference = search::Difference(other.cost, decision.cost);
    other.decided_by = "--pick " + std::to_string(i + 1) + " takes it";
    decision.losers.push_back(std::move(other));
  }
  auto& decisions = result.explanation.decisions;
  decisions.insert(decisions.begin(), std::move(decision));
  return result;
}

}  // namespace l3c::l2
