#include "layers/l2/space_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "egraph/extract/pareto.h"
#include "egraph/program.h"
#include "egraph/run.h"
#include "layers/search/saturation.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::l2 {
namespace {

using egraph::ClassRef;
using egraph::EGraphView;
using egraph::ENodeRef;

// Arguments of (Stage chain h rows columns channels kind width norm activation), of (Output chain h
// rows columns channels readout), and of (Embed width).
enum StageArg : size_t {
  kStageNumber = 1,
  kStageIn,
  kStageKind = kStageIn + 3,
  kStageWidth,
  kStageNorm,
  kStageActivation
};
enum OutputArg : size_t { kOutputHidden = 1, kOutputIn, kOutputReadout = kOutputIn + 3 };
constexpr size_t kEmbedWidth = 0;

}  // namespace

SpaceGraph::SpaceGraph(const Space& space, const Scorer& scorer, const search::Budget& budget,
                       const std::vector<search::AddedRules>& added)
    : space_(space), scorer_(scorer), budget_work_(budget.work) {
  const rewrites::RuleFile* file = rewrites::Find("lower_l3_l2");
  const auto loaded = egraph::LoadProgram(graph_, file->text, file->path);
  if (!loaded.ok()) throw std::logic_error(loaded.status.ToString());
  first_added_ = static_cast<uint32_t>(graph_.rule_count());
  // They have been tried on these terms already.
  const std::string wrong = search::LoadAddedRules(graph_, added, "l3->l2");
  if (!wrong.empty()) throw std::logic_error(wrong);

  auto fact = [&](std::string_view relation, std::initializer_list<int64_t> values) {
    std::vector<egraph::Value> row;
    for (int64_t v : values) row.push_back(graph_.I64(v));
    graph_.Insert(graph_.FindFunction(relation), row);
  };
  auto indices = [&](std::string_view relation, size_t count) {
    for (size_t i = 0; i < count; ++i) fact(relation, {static_cast<int64_t>(i)});
  };
  const Priors& p = space.priors;
  if (space.tokens) {
    fact("Tokens", {space.extent.rows});
  } else {
    fact("Reads", {space.extent.rows, space.extent.columns, space.extent.channels});
  }
  fact("ChannelBound", {space.max_channels});
  fact("Positions", {space.out_rows, space.out_columns});
  fact("AskedCount", {static_cast<int64_t>(space.asked.size())});
  auto properties = [&](auto one) {
    fact("Kind", {NumberOf(one)});
    for (size_t i = 0; i < space.asked.size(); ++i) {
      if (Keeps(space, one, space.asked[i])) {
        fact("Keeps", {NumberOf(one), static_cast<int64_t>(i)});
      }
    }
  };
  indices("Asked", space.asked.size());
  for (StageKind kind : space.kinds) properties(kind);
  for (Readout readout : space.readouts) {
    properties(readout);
    fact("MayRead", {NumberOf(readout)});
  }
  fact("DepthBound", {space.max_stages});
  fact("WidthBound", {space.widths.empty() ? 0 : space.widths.back()});
  for (int64_t width : space.widths) fact("PowerOfTwo", {width});
  for (int64_t batch : p.batches) fact("Batch", {batch});
  indices("Norm", p.norms.size());
  indices("Activation", p.activations.size());
  for (size_t o = 0; o < p.optimizers.size(); ++o) {
    for (size_t r = 0; r < p.optimizers[o].rates.size(); ++r) {
      fact("LearningRate", {static_cast<int64_t>(o), static_cast<int64_t>(r)});
    }
  }
  indices("Warmup", p.warmups.size());
  indices("Decay", p.decays.size());
  fact("TermCount", {static_cast<int64_t>(space.fitting_losses.size())});
  for (size_t t = 0; t < space.fitting_losses.size(); ++t) {
    for (size_t l : space.fitting_losses[t]) {
      fact("Fits", {static_cast<int64_t>(t), static_cast<int64_t>(l)});
    }
  }
  for (int64_t epochs : p.epochs) fact("EpochCount", {epochs});

  egraph::Budget run;
  run.max_nodes = budget.egraph_nodes;
  run.max_matches = budget.work;
  const egraph::RunReport report = egraph::RunRuleset(graph_, graph_.FindRuleset("l3_to_l2"), run);
  work_ = report.matches;
  stop_reason_ = egraph::StopReasonName(report.stop);
  if (report.cut_short()) {
    timeout_ = search::CutShort(report, budget, "enumerating (" + stop_reason_ + ")",
                                "tighten depth(n) or width(n)");
  }
  view_ = std::make_unique<EGraphView>(graph_);
  ReadNetworkNodes();
}

void SpaceGraph::ReadNetworkNodes() {
  const egraph::FunctionId stage = graph_.FindFunction("Stage");
  const egraph::FunctionId output = graph_.FindFunction("Output");
  const egraph::FunctionId embed = graph_.FindFunction("Embed");
  nodes_.resize(view_->node_count());
  auto width_index = [&](int64_t width) {
    const auto found = std::lower_bound(space_.widths.begin(), space_.widths.end(), width);
    return static_cast<size_t>(found - space_.widths.begin());
  };
  for (uint32_t n = 0; n < view_->node_count(); ++n) {
    const ENodeRef node{n};
    NetworkNode& found = nodes_[n];
    const auto args = view_->NodeArgs(node);
    auto number = [&](size_t i) { return graph_.AsI64(args[i]); };
    auto extent = [&](size_t i) { return Extent{number(i), number(i + 1), number(i + 2)}; };
    if (view_->NodeFunction(node) == stage) {
      found.position = static_cast<size_t>(number(kStageNumber)) - 1;
      found.stage.kind = StageKindOf(number(kStageKind));
      found.stage.width = width_index(number(kStageWidth));
      found.stage.norm = static_cast<size_t>(number(kStageNorm));
      found.stage.activation = static_cast<size_t>(number(kStageActivation));
      found.piece =
          &scorer_.Hidden(found.position == 0 && !space_.tokens, extent(kStageIn), found.stage);
    } else if (view_->NodeFunction(node) == output) {
      found.output = true;
      found.position = static_cast<size_t>(number(kOutputHidden));
      found.readout = static_cast<Readout>(number(kOutputReadout) - NumberOf(Readout::kFlat));
      found.piece = &scorer_.Output(found.position, extent(kOutputIn), found.readout);
    } else if (view_->NodeFunction(node) == embed) {
      found.embedding = true;
      found.stage.width = width_index(number(kEmbedWidth));
      found.piece = &scorer_.Embedding(found.stage.width);
    }
  }
  std::vector<std::pair<size_t, uint32_t>> lengths;
  const egraph::FunctionId input = graph_.FindFunction("Input");
  for (uint32_t c = 0; c < view_->class_count(); ++c) {
    const ENodeRef first = view_->FirstNode(ClassRef{c});
    const egraph::FunctionId function = view_->NodeFunction(first);
    if (function == input || function == embed) lengths.emplace_back(0, c);
    if (function == stage) lengths.emplace_back(nodes_[first.index].position + 1, c);
    if (function == output) lengths.emplace_back(std::numeric_limits<size_t>::max(), c);
  }
  std::sort(lengths.begin(), lengths.end());
  // Without a readout nothing is a network.
  if (!lengths.empty() && lengths.back().first != std::numeric_limits<size_t>::max()) {
    lengths.clear();
  }
  for (const auto& [length, c] : lengths) by_length_.push_back(ClassRef{c});
  for (const NetworkNode& node : nodes_) {
    log_steps_.push_back(node.piece == nullptr ? 0 : node.piece->log_steps);
    parameters_.push_back(node.piece == nullptr ? 0
                                                : static_cast<double>(node.piece->work.parameters));
    latency_.push_back(node.piece == nullptr ? 0 : node.piece->latency);
  }
  if (const auto budget = space_.model->param_budget()) {
    bounds_.push_back({&parameters_, static_cast<double>(*budget)});
  }
  if (const auto budget = space_.model->latency_budget()) bounds_.push_back({&latency_, *budget});
}

ClassRef SpaceGraph::ClassOf(std::string_view request) const {
  const auto value = graph_.Lookup(graph_.FindFunction(request), {});
  return value ? view_->ClassOf(*value) : ClassRef();
}

double SpaceGraph::CountCandidates() const {
  const ClassRef method = ClassOf("MethodWanted");
  return method.valid() ? egraph::CountTerms(*view_, method) : 0;
}

std::vector<bool> SpaceGraph::Mask(const Restriction& restriction) const {
  const std::string prefix = "l2/" + space_.model->name + "/";
  const Priors& p = space_.priors;
  struct Stage {
    std::vector<bool> kind, width, norm, activation;
    bool no_width = false, no_activation = false;  // what has none is legal too
  };
  const std::vector<StageKind> kinds = LegalKinds(space_);
  const std::vector<Readout> readouts = LegalReadouts(space_);
  auto allows = [&](bool choice, const std::string& id, std::string_view label) {
    return !choice || restriction.Allows(id, std::string(label));
  };
  std::vector<bool> hidden;  // by number of hidden stages
  std::vector<Stage> stages;
  std::vector<bool> embed;
  for (int64_t w : space_.widths) {
    embed.push_back(allows(space_.tokens, prefix + "embed.width", support::PrintInteger(w)));
  }
  std::vector<bool> readout(kReadouts);
  for (Readout r : readouts) {
    readout[static_cast<size_t>(r)] =
        allows(readouts.size() > 1, prefix + "readout", ReadoutName(r));
  }
  for (int64_t d = 1; d <= space_.max_stages; ++d) {
    const size_t at = static_cast<size_t>(d);
    hidden.push_back(restriction.Allows(prefix + "depth", std::to_string(d)));
    if (d == space_.max_stages) break;
    const std::string layer = prefix + "layer" + std::to_string(at) + ".";
    Stage& stage = stages.emplace_back();
    stage.kind.resize(kStageKinds);
    for (StageKind kind : kinds) {
      stage.kind[static_cast<size_t>(kind)] =
          allows(kinds.size() > 1, layer + "kind", StageKindName(kind));
    }
    for (int64_t w : space_.widths) {
      stage.width.push_back(restriction.Allows(layer + "width", support::PrintInteger(w)));
    }
    for (const FormPrior& norm : p.norms) {
      stage.norm.push_back(restriction.Allows(layer + "norm", norm.label));
    }
    for (const FormPrior& act : p.activations) {
      stage.activation.push_back(restriction.Allows(layer + "activation", act.label));
    }
    stage.no_width = !restriction.required.contains(layer + "width");
    stage.no_activation = !restriction.required.contains(layer + "activation");
  }
  // A network that lacks a layer has none of its choices.
  for (size_t layer = 1; layer < hidden.size(); ++layer) {
    const std::string id = prefix + "layer" + std::to_string(layer) + ".";
    auto it = restriction.required.lower_bound(id);
    if (it == restriction.required.end() || !it->first.starts_with(id)) continue;
    for (size_t h = 0; h < layer; ++h) hidden[h] = false;
  }
  std::vector<bool> mask(nodes_.size(), true);
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const NetworkNode& node = nodes_[n];
    if (node.piece == nullptr) continue;
    if (node.output) {
      mask[n] = hidden[node.position] && readout[static_cast<size_t>(node.readout)];
    } else if (node.embedding) {
      mask[n] = embed[node.stage.width];
    } else {
      const Stage& stage = stages[node.position];
      const StageKind kind = node.stage.kind;
      mask[n] =
          stage.kind[static_cast<size_t>(kind)] && stage.norm[node.stage.norm] &&
          (HasWidth(kind) ? stage.width[node.stage.width] : stage.no_width) &&
          (HasActivation(kind) ? stage.activation[node.stage.activation] : stage.no_activation);
    }
  }
  return mask;
}

SpaceGraph::Costs SpaceGraph::CostsOf(size_t batch, size_t optimizer) {
  auto [it, fresh] = seconds_.try_emplace(std::pair(batch, optimizer));
  if (fresh) {
    for (const NetworkNode& node : nodes_) {
      it->second.push_back(
          node.piece == nullptr
              ? 0
              : scorer_.Seconds(node.piece->work, space_.priors.batches[batch], optimizer));
    }
  }
  return {&log_steps_, &it->second};
}

double SpaceGraph::Point::score() const { return steps + std::log(time); }

std::optional<SpaceGraph::Point> SpaceGraph::Least(double a, double b, const Costs& costs,
                                                   const std::vector<bool>& mask) {
  struct Best {
    double key = std::numeric_limits<double>::infinity();
    double steps = 0;
    double time = 0;
    ENodeRef node;
  };
  std::vector<Best> best(view_->class_count());
  for (ClassRef c : by_length_) {
    Best& own = best[c.index];
    for (uint32_t i = 0; i < view_->NodeCountOf(c); ++i) {
      const ENodeRef n{view_->FirstNode(c).index + i};
      if (!mask[n.index]) continue;
      Best with;
      with.node = n;
      with.steps = (*costs.steps)[n.index];
      with.time = (*costs.time)[n.index];
      if (!nodes_[n.index].leaf()) {
        const Best& chain = best[view_->NodeChildren(n)[0].index];
        if (!chain.node.valid()) continue;
        with.steps = chain.steps + with.steps;
        with.time = chain.time + with.time;
      }
      with.key = a * with.steps + b * with.time;
      const double tie = a == 0 ? with.steps - own.steps : with.time - own.time;
      if (!own.node.valid() || with.key < own.key || (with.key == own.key && tie < 0)) own = with;
    }
  }
  work_ += by_length_.size();
  exhausted_ = exhausted_ || work_ > budget_work_;
  if (by_length_.empty() || !best[by_length_.back().index].node.valid()) return std::nullopt;
  Point point;
  ClassRef at = by_length_.back();
  point.steps = best[at.index].steps;
  point.time = best[at.index].time;
  for (;;) {
    const ENodeRef n = best[at.index].node;
    point.nodes.push_back(n);
    if (nodes_[n.index].leaf()) return point;
    at = view_->NodeChildren(n)[0];
  }
}

std::optional<SpaceGraph::Point> SpaceGraph::LeastScore(const Costs& costs,
                                                        const std::vector<bool>& mask) {
  auto first = Least(1, 0, costs, mask);
  if (!first) return std::nullopt;
  auto last = Least(0, 1, costs, mask);
  Point best = first->score() <= last->score() ? *first : *last;
  // Pairs of corners, fewer steps first; what lies between them is still open.
  std::vector<std::pair<Point, Point>> open = {{std::move(*first), std::move(*last)}};
  while (!open.empty() && !exhausted_) {
    auto [p, q] = std::move(open.back());
    open.pop_back();
    const double steps = q.steps - p.steps;
    const double time = p.time - q.time;
    // Equal but for rounding, or no point between them could be better than the best.
    if (!(steps > 1e-12 * std::abs(q.steps)) || !(time > 1e-12 * p.time)) continue;
    if (p.steps + std::log(q.time) >= best.score()) continue;
    auto between = Least(time, steps, costs, mask);
    const double line = time * p.steps + steps * p.time;
    const double found = time * between->steps + steps * between->time;
    if (!(found < line - 1e-12 * std::abs(line))) continue;
    if (between->score() < best.score()) best = *between;
    open.emplace_back(p, *between);
    open.emplace_back(std::move(*between), std::move(q));
  }
  return best;
}

double SpaceGraph::Load(const Point& point, const std::vector<double>& load) const {
  double sum = 0;
  // The nodes are from the output to the input.
  for (size_t i = point.nodes.size(); i-- > 0;) sum += load[point.nodes[i].index];
  return sum;
}

bool SpaceGraph::Within(const Point& point) const {
  return std::all_of(bounds_.begin(), bounds_.end(),
                     [&](const Bound& bound) { return Load(point, *bound.load) <= bound.budget; });
}

std::vector<double> SpaceGraph::WithPrices(const std::vector<double>& steps,
                                           std::span<const double> prices) const {
  std::vector<double> priced = steps;
  for (size_t b = 0; b < bounds_.size(); ++b) {
    for (size_t n = 0; n < priced.size(); ++n) priced[n] += prices[b] * (*bounds_[b].load)[n];
  }
  return priced;
}

SpaceGraph::Priced SpaceGraph::PriceBounds(const Costs& costs, const std::vector<bool>& mask) {
  Priced result;
  result.prices.resize(bounds_.size());
  double highest = -std::numeric_limits<double>::infinity();
  // Of two bounds, one may be the tighter by far.
  std::vector<std::vector<double>> shares = {{1}};
  if (bounds_.size() == 2) shares = {{1, 1}, {1, 0}, {0, 1}};
  for (const std::vector<double>& share : shares) {
    // From prices at which a whole budget is worth a hundredth of a factor e, to many factors.
    for (double worth = 0.01; worth < 1000 && !exhausted_; worth *= 1.5) {
      std::vector<double> prices;
      double all = 0;
      for (size_t b = 0; b < bounds_.size(); ++b) {
        prices.push_back(share[b] * worth / bounds_[b].budget);
        all += share[b] * worth;
      }
      const std::vector<double> priced = WithPrices(*costs.steps, prices);
      auto point = LeastScore({&priced, costs.time}, mask);
      if (!point) break;
      if (const double bound = point->score() - all; bound > highest) {
        highest = bound;
        result.prices = prices;
      }
      if (!Within(*point)) continue;
      point->steps = Load(*point, *costs.steps);
      if (!result.network || point->score() < result.network->score()) {
        result.network = std::move(point);
      }
    }
  }
  return result;
}

std::vector<SpaceGraph::Hull> SpaceGraph::RestHulls(const Costs& costs,
                                                    const std::vector<bool>& mask) const {
  std::vector<Hull> hulls(view_->class_count());
  hulls[by_length_.back().index] = {{0, 0}};
  for (size_t i = by_length_.size(); i-- > 0;) {
    const ClassRef c = by_length_[i];
    // All that follow this class have been seen: what was gathered becomes a hull.
    Hull& own = hulls[c.index];
    std::sort(own.begin(), own.end());
    size_t corners = 0;
    for (const auto& point : own) {
      if (corners > 0 && point.second >= own[corners - 1].second) continue;
      // The corner before is none if it lies on or above the line past it.
      while (corners > 1) {
        const auto& a = own[corners - 2];
        const auto& b = own[corners - 1];
        const double turn = (b.first - a.first) * (point.second - a.second) -
                            (b.second - a.second) * (point.first - a.first);
        if (turn > 0) break;
        --corners;
      }
      own[corners++] = point;
    }
    own.resize(corners);
    for (uint32_t k = 0; k < view_->NodeCountOf(c); ++k) {
      const ENodeRef n{view_->FirstNode(c).index + k};
      if (!mask[n.index] || nodes_[n.index].leaf()) continue;
      Hull& before = hulls[view_->NodeChildren(n)[0].index];
      for (const auto& [steps, time] : own) {
        before.emplace_back(steps + (*costs.steps)[n.index], time + (*costs.time)[n.index]);
      }
    }
  }
  return hulls;
}

std::vector<double> SpaceGraph::LeastToFollow(const std::vector<double>& load,
                                              const std::vector<bool>& mask) const {
  std::vector<double> rest(view_->class_count(), std::numeric_limits<double>::infinity());
  rest[by_length_.back().index] = 0;
  for (size_t i = by_length_.size(); i-- > 0;) {
    const ClassRef c = by_length_[i];
    for (uint32_t k = 0; k < view_->NodeCountOf(c); ++k) {
      const ENodeRef n{view_->FirstNode(c).index + k};
      if (!mask[n.index] || nodes_[n.index].leaf()) continue;
      double& before = rest[view_->NodeChildren(n)[0].index];
      before = std::min(before, rest[c.index] + load[n.index]);
    }
  }
  return rest;
}

std::optional<SpaceGraph::Point> SpaceGraph::LeastWithinBudget(const Costs& costs,
                                                               const std::vector<bool>& mask) {
  const Priced priced = PriceBounds(costs, mask);
  // The slack is for sums taken in another order.
  const double known =
      priced.network ? priced.network->score() + 1e-9 : std::numeric_limits<double>::infinity();
  const std::vector<double> steps_with_price = WithPrices(*costs.steps, priced.prices);
  const std::vector<Hull> plain = RestHulls(costs, mask);
  const std::vector<Hull> with_price = RestHulls({&steps_with_price, costs.time}, mask);
  std::vector<std::vector<double>> to_follow;  // by bound, by class
  for (const Bound& b : bounds_) to_follow.push_back(LeastToFollow(*b.load, mask));
  auto bound = [](const Hull& rest, double steps, double time) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [l, t] : rest) least = std::min(least, steps + l + std::log(time + t));
    return least;
  };

  struct Chain {
    double steps = 0, time = 0;
    std::array<double, 2> loads = {};  // by bound
    ENodeRef node;
    uint32_t before = 0;  // chain of the class one shorter
  };
  std::vector<std::vector<Chain>> chains(view_->class_count());
  for (ClassRef c : by_length_) {
    std::vector<Chain>& own = chains[c.index];
    for (uint32_t k = 0; k < view_->NodeCountOf(c) && !exhausted_; ++k) {
      const ENodeRef n{view_->FirstNode(c).index + k};
      if (!mask[n.index]) continue;
      const bool leaf = nodes_[n.index].leaf();
      const std::vector<Chain> none = {{0, 0, {}, n, 0}};
      const std::vector<Chain>& shorter = leaf ? none : chains[view_->NodeChildren(n)[0].index];
      for (uint32_t i = 0; i < shorter.size(); ++i) {
        Chain chain{shorter[i].steps + (*costs.steps)[n.index],
                    shorter[i].time + (*costs.time)[n.index], shorter[i].loads, n, i};
        bool within = true;
        double price = 0;
        for (size_t b = 0; b < bounds_.size(); ++b) {
          chain.loads[b] += (*bounds_[b].load)[n.index];
          const double rest = to_follow[b][c.index];
          // What is still to come is a sum taken in another order: it may round up.
          const double budget = bounds_[b].budget * (rest > 0 ? 1 + 1e-12 : 1);
          within = within && chain.loads[b] + rest <= budget;
          price += priced.prices[b] * (chain.loads[b] - bounds_[b].budget);
        }
        if (!within) continue;
        if (bound(plain[c.index], chain.steps, chain.time) > known) continue;
        if (bound(with_price[c.index], chain.steps + price, chain.time) > known) continue;
        own.push_back(chain);
      }
      work_ += shorter.size();
      exhausted_ = exhausted_ || work_ > budget_work_;
    }
    std::stable_sort(own.begin(), own.end(), [](const Chain& a, const Chain& b) {
      return std::tie(a.steps, a.time, a.loads) < std::tie(b.steps, b.time, b.loads);
    });
    size_t kept = 0;
    for (const Chain& chain : own) {
      const bool beaten = std::any_of(
          own.begin(), own.begin() + static_cast<ptrdiff_t>(kept), [&](const Chain& other) {
            return other.time <= chain.time && other.loads[0] <= chain.loads[0] &&
                   other.loads[1] <= chain.loads[1];
          });
      work_ += kept / 8;
      if (!beaten) own[kept++] = chain;
    }
    own.resize(kept);
  }
  const Chain* best = nullptr;
  for (const Chain& chain : chains[by_length_.back().index]) {
    if (best == nullptr ||
        chain.steps + std::log(chain.time) < best->steps + std::log(best->time)) {
      best = &chain;
    }
  }
  if (best == nullptr) return priced.network;
  Point point;
  point.steps = best->steps;
  point.time = best->time;
  for (ClassRef at = by_length_.back();;) {
    point.nodes.push_back(best->node);
    if (nodes_[best->node.index].leaf()) return point;
    at = view_->NodeChildren(best->node)[0];
    best = &chains[at.index][best->before];
  }
}

std::optional<Choice> SpaceGraph::Network(size_t batch, size_t optimizer,
                                          const Restriction& restriction) {
  const std::vector<bool> mask = Mask(restriction);
  const Costs costs = CostsOf(batch, optimizer);
  auto best = LeastScore(costs, mask);
  if (best && !Within(*best)) best = LeastWithinBudget(costs, mask);
  if (!best) return std::nullopt;
  return Decode(best->nodes);
}

double SpaceGraph::LeastLogScore(size_t batch, size_t optimizer) {
  const auto best = LeastScore(CostsOf(batch, optimizer), Mask({}));
  return best ? best->score() : std::numeric_limits<double>::infinity();
}

std::optional<int64_t> SpaceGraph::FewestParameters(const Restriction& restriction) {
  const auto least = Least(0, 1, {&log_steps_, &parameters_}, Mask(restriction));
  if (!least) return std::nullopt;
  return static_cast<int64_t>(Load(*least, parameters_));
}

std::optional<double> SpaceGraph::LeastLatency(const Restriction& restriction) {
  const auto least = Least(0, 1, {&log_steps_, &latency_}, Mask(restriction));
  if (!least) return std::nullopt;
  return Load(*least, latency_);
}

Choice SpaceGraph::Decode(std::span<const ENodeRef> nodes) const {
  Choice choice;
  for (ENodeRef n : nodes) {
    const NetworkNode& node = nodes_[n.index];
    if (node.piece == nullptr) continue;
    if (node.output) {
      choice.hidden.resize(node.position);
      choice.readout = node.readout;
    } else if (node.embedding) {
      choice.embed = node.stage.width;
    } else {
      choice.hidden[node.position] = node.stage;
    }
  }
  return choice;
}

std::vector<search::RuleUse> SpaceGraph::RulesFor(std::string_view constructor,
                                                  std::string_view fact) const {
  std::vector<search::RuleUse> uses;
  auto add = [&](std::string_view function) {
    const egraph::FunctionId id = graph_.FindFunction(function);
    std::optional<egraph::RuleId> first;
    graph_.ForEachRow(id, [&](const egraph::Row& row) {
      if (!first) first = row.rule();
    });
    if (!first || *first == egraph::kInitial) return;
    const egraph::Rule& rule = graph_.rule(*first);
    uses.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
  };
  if (!fact.empty()) add(fact);
  add(constructor);
  return uses;
}

}  // namespace l3c::l2
