// L3 → L2: the method that is chosen, against brute force, under force, and when there is none.
#include "layers/l2/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "layers/l2/estimate.h"
#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/updates.h"
#include "layers/l3/domain.h"
#include "layers/l3/parse.h"
#include "layers/l3/verify.h"
#include "layers/support/units.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using testing::ReadSpec;

using search::LoweringOptions;
using search::LoweringResult;

std::string MnistWith(const std::string& properties) {
  std::string text(testing::kMnistSpec);
  const size_t begin = text.find("[depth");
  const size_t end = text.find("]\n", begin);
  return text.replace(begin, end + 1 - begin, "[" + properties + "]");
}

LoweringResult<Module> Lower(std::string_view text, const LoweringOptions& options = {}) {
  return LowerToL2(ReadSpec(text), {}, options);
}

// Without the runners-up, which most tests do not read.
LoweringOptions WinnerOnly() {
  LoweringOptions options;
  options.budget.top = 1;
  return options;
}

// The parts of a method that the documentation's trace shows.
std::string MethodOf(const LoweringResult<Module>& result) {
  if (!result.ok()) return std::string(search::FailureName(*result.failure));
  const Methods& m = result.best().methods.at(0);
  std::string text = PrintForm(m.sample, Family::kSample) + ";";
  for (size_t i = 1; i < m.infer.nodes.size(); ++i) {
    text += " " + PrintForm(m.infer.nodes[i].form, Family::kLayer);
  }
  text += "; " + PrintForm(m.update, Family::kUpdate) + "; " +
          PrintForm(m.losses.at(0).form, Family::kLoss) + "; " +
          std::to_string(m.phases.at(0).epochs);
  return text;
}

constexpr char kTrace[] =
    "epoch_shuffle(batch: 128); linear(784, 256) norm(layer) gelu linear(256, 256) norm(layer) "
    "gelu linear(256, 10) softmax; schedule(warmup: 1000, decay: cosine, inner: adam(lr: 3e-4)); "
    "ce; 10";

TEST(L2Search, ChoosesTheMethodOfTheDocumentation) {
  const auto result = Lower(testing::kMnistSpec);
  EXPECT_EQ(MethodOf(result), kTrace);
  support::Diagnostics diagnostics;
  ASSERT_EQ(result.candidates.size(), 8u);
  for (const auto& candidate : result.candidates) {
    EXPECT_TRUE(Verify(candidate.target, diagnostics)) << diagnostics.Render(false);
  }
  for (size_t i = 1; i < result.candidates.size(); ++i) {
    EXPECT_LE(result.candidates[i - 1].cost[0].value, result.candidates[i].cost[0].value);
    EXPECT_NE(PrintModule(result.candidates[i - 1].target),
              PrintModule(result.candidates[i].target));
  }
  const std::string text = PrintModule(result.best());
  EXPECT_EQ(PrintModule(testing::Read(text)), text);
}

// No choice hangs by a thread: a reference machine that is a quarter slower or a third faster in
// any one respect gives the same method, and so do scales of the priors that move as far.
TEST(L2Search, TheChoiceIsNoKnifesEdge) {
  const l3::Module spec = ReadSpec(testing::kMnistSpec);
  for (double by : {0.75, 1.333}) {
    for (double Priors::* figure :
         {&Priors::contraction_flops_per_second, &Priors::elementwise_flops_per_second,
          &Priors::bytes_per_second, &Priors::seconds_per_launch, &Priors::noise_scale,
          &Priors::width_scale}) {
      Priors priors = BuiltinPriors();
      priors.*figure *= by;
      LowerConstraints constraints;
      constraints.priors = &priors;
      EXPECT_EQ(MethodOf(LowerToL2(spec, constraints, WinnerOnly())), kTrace)
          << by << " " << priors.*figure;
    }
  }
  // Nor by any one factor: each may count a third less than it does.
  const Priors builtin = BuiltinPriors();
  std::vector<Priors> changed;
  auto vary = [&](auto get, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      changed.push_back(builtin);
      double& factor = get(changed.back(), i);
      factor = 1 + (factor - 1) * 2 / 3;
    }
  };
  vary([](Priors& p, size_t i) -> double& { return p.depth_factors[i]; },
       builtin.depth_factors.size());
  vary([](Priors& p, size_t i) -> double& { return p.norms[i].factor; }, builtin.norms.size());
  vary([](Priors& p, size_t i) -> double& { return p.activations[i].factor; },
       builtin.activations.size());
  vary([](Priors& p, size_t i) -> double& { return p.optimizers[i].factor; },
       builtin.optimizers.size());
  vary([](Priors& p, size_t i) -> double& { return p.decays[i].factor; }, builtin.decays.size());
  vary([](Priors& p, size_t i) -> double& { return p.losses[i].factor; }, builtin.losses.size());
  vary([](Priors& p, size_t) -> double& { return p.width_per_octave; }, 1);
  for (const Priors& priors : changed) {
    LowerConstraints constraints;
    constraints.priors = &priors;
    EXPECT_EQ(MethodOf(LowerToL2(spec, constraints, WinnerOnly())), kTrace);
  }
}

TEST(L2Search, BoundsAreKept) {
  for (const char* properties :
       {"depth(1)", "depth(2), width(64)", "depth(3), width(128), param_budget(50K)",
        "depth(8), width(32)", "width(5), depth(3)", "param_budget(20K)", "latency_budget(20us)",
        "depth(4), param_budget(100K), latency_budget(0.025)", ""}) {
    LoweringOptions options;
    options.budget.top = 2;
    const auto result = Lower(MnistWith(properties), options);
    ASSERT_TRUE(result.ok()) << properties;
    support::Diagnostics diagnostics;
    for (const auto& candidate : result.candidates) {
      EXPECT_TRUE(Verify(candidate.target, diagnostics)) << properties << "\n"
                                                         << diagnostics.Render(false);
    }
  }
}

TEST(L2Search, SameInputSameBytes) {
  const auto a = Lower(testing::kMnistSpec, WinnerOnly());
  const auto b = Lower(testing::kMnistSpec, WinnerOnly());
  EXPECT_EQ(PrintModule(a.best()), PrintModule(b.best()));
  EXPECT_EQ(search::RenderExplanationJson(a.explanation),
            search::RenderExplanationJson(b.explanation));
}

TEST(L2Search, ForcingALoserGivesItAtTheCostThatWasExplained) {
  const auto result = Lower(testing::kMnistSpec, WinnerOnly());
  size_t forced = 0;
  for (const search::Decision& decision : result.explanation.decisions) {
    EXPECT_FALSE(decision.rules.empty()) << decision.id;
    for (const search::Loser& loser : decision.losers) {
      LoweringOptions options = WinnerOnly();
      options.forced[decision.id] = loser.label;
      const auto again = Lower(testing::kMnistSpec, options);
      ASSERT_TRUE(again.ok()) << decision.id << " = " << loser.label;
      const search::Decision* chosen = again.explanation.Find(decision.id);
      ASSERT_NE(chosen, nullptr) << decision.id;
      EXPECT_EQ(chosen->chosen, loser.label);
      EXPECT_TRUE(chosen->forced);
      ASSERT_EQ(chosen->cost.size(), loser.cost.size());
      for (size_t i = 0; i < loser.cost.size(); ++i) {
        EXPECT_EQ(chosen->cost[i].value, loser.cost[i].value) << decision.id << " " << loser.label;
      }
      EXPECT_GE(loser.difference[0].value, 0) << decision.id << " " << loser.label;
      EXPECT_FALSE(loser.decided_by.empty());
      ++forced;
    }
  }
  EXPECT_GT(forced, 30u);
}

TEST(L2Search, GreedyIsNoBetterAndOffIsNoBetterThanGreedy) {
  for (const char* properties : {"depth(3), width(512), param_budget(500K)", "depth(4)", ""}) {
    double last = 0;
    for (search::Mode mode : {search::Mode::kEGraph, search::Mode::kGreedy, search::Mode::kOff}) {
      LoweringOptions options = WinnerOnly();
      options.mode = mode;
      const auto result = Lower(MnistWith(properties), options);
      ASSERT_TRUE(result.ok());
      EXPECT_GE(result.candidates[0].cost[0].value, last * (1 - 1e-12));
      last = result.candidates[0].cost[0].value;
    }
  }
}

// ---- Brute force -------------------------------------------------------------------------------

// An enumeration of the same space that shares nothing with the search but the figures of the
// priors and the counts of a layer's work. Factors are multiplied, not added as logarithms.
class BruteForce {
 public:
  BruteForce(const l3::Module& spec, const Priors& priors)
      : p_(priors),
        model_(spec.models[0]),
        features_(l3::NumElements(*spec.DomainOf(model_.in[0]))) {
    outputs_ = l3::NumElements(model_.out);
    distribution_ = model_.out.kind == l3::Domain::Kind::kDist;
    support::Diagnostics none;
    target_ = ResolveObjective(spec, model_.name, none)->terms[0].target_kind;
    const int64_t bound = std::min(model_.width().value_or(p_.max_width), p_.max_width);
    for (int64_t w = 1; w <= bound; w *= 2) {
      if (w >= p_.min_width || 2 * w > bound) widths_.push_back(w);
    }
  }

  // Scores of the best `kTop` methods, in order; fewer where there are not as many.
  static constexpr size_t kTop = 8;
  std::vector<double> Run() {
    for (size_t o = 0; o < p_.optimizers.size(); ++o) {
      update_.push_back(EstimateUpdate(p_.optimizers[o].forms[0]));
      rests_.push_back(RestsOf(o));
    }
    const int64_t known = static_cast<int64_t>(p_.depth_factors.size());
    max_hidden_ = std::min(model_.depth().value_or(known), known) - 1;
    Extend(0, features_, 1, {});
    return best_;
  }

 private:
  LayerWork Work(const std::string& text, int64_t in) {
    support::SourceFile source("layer", text);
    support::Diagnostics diagnostics(&source);
    support::ParserBase parser(source, diagnostics);
    const Form form = *ParseForm(parser, Family::kLayer);
    return EstimateLayer(*FindLayer(form.name), form, std::vector<Shape>{{in}});
  }

  double SecondsOf(const search::StepWork& w) const {
    return w.contraction_flops / p_.contraction_flops_per_second +
           w.elementwise_flops / p_.elementwise_flops_per_second + w.bytes / p_.bytes_per_second +
           w.launches * p_.seconds_per_launch;
  }

  static void Keep(std::vector<double>& best, double value) {
    if (best.size() == kTop && value >= best.back()) return;
    best.insert(std::upper_bound(best.begin(), best.end(), value), value);
    if (best.size() > kTop) best.pop_back();
  }

  // The least factors of every combination of what changes nothing but the steps, the slow way.
  std::vector<double> RestsOf(size_t o) {
    std::vector<double> best;
    const OptimizerPrior& prior = p_.optimizers[o];
    for (double rate : prior.rates) {
      for (int64_t warmup : p_.warmups) {
        for (const DecayPrior& decay : p_.decays) {
          for (const FormPrior& loss : p_.losses) {
            if (!FindLoss(loss.form->name)->accepts(target_)) continue;
            for (int64_t epochs : p_.epochs) {
              double f = prior.factor * decay.factor * loss.factor;
              f *= 1 + p_.rate_curvature * std::pow(std::log10(rate / prior.best_rate), 2);
              if (warmup > 0 && prior.settling_steps) {
                f *=
                    1 - p_.warmup_gain *
                            std::max(0.0, 1 - std::abs(std::log10(warmup / *prior.settling_steps)));
              } else if (warmup > 0) {
                f *= p_.warmup_idle;
              }
              f *= std::pow(p_.epochs_per_octave,
                            std::abs(std::log2(static_cast<double>(epochs) / p_.usual_epochs)));
              Keep(best, f);
            }
          }
        }
      }
    }
    return best;
  }

  void Extend(int64_t hidden, int64_t in, double factor, std::vector<LayerWork> work) {
    Finish(hidden, in, factor, work);
    if (hidden == max_hidden_) return;
    for (int64_t w : widths_) {
      for (const FormPrior& norm : p_.norms) {
        for (const FormPrior& act : p_.activations) {
          double f = factor * norm.factor * act.factor;
          const double ratio = static_cast<double>(w) / static_cast<double>(in);
          f *= hidden == 0 ? 1 + std::pow(p_.width_scale, 2) * static_cast<double>(in) /
                                     (static_cast<double>(w) * static_cast<double>(w))
                           : std::pow(p_.width_per_octave, std::abs(std::log2(ratio)));
          auto longer = work;
          longer.push_back(
              Work("linear(" + std::to_string(in) + ", " + std::to_string(w) + ")", in));
          if (norm.form) longer.push_back(Work(norm.label, w));
          if (act.form) longer.push_back(Work(act.label, w));
          Extend(hidden + 1, w, f, std::move(longer));
        }
      }
    }
  }

  void Finish(int64_t hidden, int64_t in, double factor, std::vector<LayerWork> work) {
    work.push_back(
        Work("linear(" + std::to_string(in) + ", " + std::to_string(outputs_) + ")", in));
    if (distribution_) work.push_back(Work("softmax", outputs_));
    int64_t parameters = 0;
    double latency = 0;
    for (const LayerWork& w : work) {
      parameters += w.parameters;
      latency += SecondsOf(w.per_sample) + SecondsOf(w.per_step);
    }
    if (model_.latency_budget() && latency > *model_.latency_budget()) return;
    if (model_.param_budget() && parameters > *model_.param_budget()) return;
    factor *= p_.depth_factors[static_cast<size_t>(hidden)];
    for (int64_t batch : p_.batches) {
      for (size_t o = 0; o < p_.optimizers.size(); ++o) {
        double seconds = 0;
        auto add = [&](const search::StepWork& w, double times) {
          seconds += times * SecondsOf(w);
        };
        for (const LayerWork& forward : work) {
          const LayerWork w = WithBackward(forward);
          add(w.per_sample, static_cast<double>(batch));
          add(w.per_step, 1);
        }
        add(update_[o], static_cast<double>(parameters));
        const double shared =
            seconds * p_.base_steps * factor * (1 + p_.noise_scale / static_cast<double>(batch));
        for (double rest : rests_[o]) Keep(best_, shared * rest);
      }
    }
  }

  const Priors& p_;
  const l3::Model& model_;
  int64_t features_ = 0;
  int64_t outputs_ = 0;
  bool distribution_ = false;
  TargetKind target_ = TargetKind::kTensor;
  int64_t max_hidden_ = 0;
  std::vector<int64_t> widths_;
  std::vector<search::StepWork> update_;
  std::vector<std::vector<double>> rests_;  // by optimiser
  std::vector<double> best_;
};

TEST(L2Search, TheBestEightAreThoseOfBruteForceOnRandomSpecifications) {
  std::mt19937 random(20);
  auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  int feasible = 0, bounded = 0, hurried = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const int64_t features = pick(1, 200);
    const bool classes = pick(0, 1) == 1;
    const int64_t outputs = pick(2, 30);
    std::string properties =
        "depth(" + std::to_string(pick(1, 3)) + "), width(" + std::to_string(pick(3, 70)) + ")";
    if (pick(0, 2) > 0) {
      properties += ", param_budget(" + std::to_string(pick(1, 6) * (features + 40) * 8) + ")";
      ++bounded;
    }
    if (pick(0, 2) == 0) {
      properties += ", latency_budget(" + std::to_string(pick(5, 40)) + "us)";
      ++hurried;
    }
    const std::string n = std::to_string(outputs);
    const std::string text =
        "data d { x : tensor(f32, [" + std::to_string(features) +
        "]) y : " + (classes ? "tensor(u8, [1])" : "tensor(f32, [" + n + "])") +
        " }\nmodel m { in: d.x out: " + (classes ? "dist(" + n + ")" : "tensor(f32, [" + n + "])") +
        " properties: [" + properties +
        "] }\nloss l { fit: divergence(m.out, d.y) }\ngoal: minimize(l)\n";
    const l3::Module spec = ReadSpec(text);
    // Other figures every time, so that all kinds of trade-offs occur.
    Priors priors = BuiltinPriors();
    auto shake = [&](double& figure) {
      figure *= std::exp2(static_cast<double>(pick(-200, 200)) / 100);
    };
    auto factor = [&](double& figure) { figure = 1 + static_cast<double>(pick(0, 100)) / 100; };
    shake(priors.contraction_flops_per_second);
    shake(priors.elementwise_flops_per_second);
    shake(priors.bytes_per_second);
    shake(priors.seconds_per_launch);
    shake(priors.noise_scale);
    shake(priors.width_scale);
    for (auto& f : priors.depth_factors) factor(f);
    for (auto& f : priors.norms) factor(f.factor);
    for (auto& f : priors.activations) factor(f.factor);
    for (auto& f : priors.optimizers) factor(f.factor);
    factor(priors.width_per_octave);

    const std::vector<double> expected = BruteForce(spec, priors).Run();
    LowerConstraints constraints;
    constraints.priors = &priors;
    const auto result = LowerToL2(spec, constraints, {});
    if (expected.empty()) {
      ASSERT_FALSE(result.ok()) << text;
      EXPECT_EQ(search::FailureName(*result.failure), "NoCandidates") << text;
      continue;
    }
    ++feasible;
    ASSERT_TRUE(result.ok()) << text;
    ASSERT_EQ(result.candidates.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.candidates[i].cost[0].value / expected[i], 1, 1e-9) << i << "\n" << text;
    }
    // What was built costs what was said.
    const MethodEstimate estimate = EstimateMethod(result.best().methods[0]);
    EXPECT_EQ(static_cast<double>(estimate.parameters), result.candidates[0].cost[4].value);
  }
  EXPECT_GT(feasible, 30);
  EXPECT_GT(bounded, 20);
  EXPECT_GT(hurried, 10);
}

// ---- Failures ----------------------------------------------------------------------------------

std::string FailureText(const LoweringResult<Module>& result) {
  if (result.ok()) return "ok";
  support::Diagnostics diagnostics;
  search::ReportFailure(*result.failure, {}, diagnostics);
  return std::string(search::FailureName(*result.failure)) + ": " + diagnostics.Render(false);
}

TEST(L2Search, ABudgetTooTightNamesTheSmallestCandidate) {
  const std::string text = FailureText(Lower(MnistWith("depth(1), width(512), param_budget(5K)")));
  EXPECT_NE(text.find("NoCandidates"), std::string::npos) << text;
  EXPECT_NE(text.find("smallest candidate has 7850 parameters"), std::string::npos) << text;
  EXPECT_NE(text.find("raise param_budget to 7850"), std::string::npos) << text;
  // Convolutions share their weights: with them far less is enough.
  EXPECT_TRUE(Lower(MnistWith("depth(3), width(512), param_budget(5K)"), WinnerOnly()).ok());
}

TEST(L2Search, ALatencyTooShortNamesTheSmallestCandidate) {
  const LoweringResult<Module> linear = Lower(MnistWith("depth(1)"), WinnerOnly());
  const double least = ForwardLatency(linear.best().methods[0].infer, BuiltinPriors());
  const auto failed = Lower(MnistWith("depth(3), width(512), latency_budget(1us)"));
  const std::string text = FailureText(failed);
  EXPECT_NE(text.find("NoCandidates"), std::string::npos) << text;
  EXPECT_NE(text.find(LatencyText(least) + ", latency_budget(1us)"), std::string::npos) << text;
  EXPECT_GT(std::get<search::NoCandidates>(*failed.failure).where.begin, 0u);
  // Exactly what is said to be needed is enough.
  const auto found = Lower(MnistWith("depth(3), latency_budget(" + LatencyText(least) + ")"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.best().methods[0].infer.nodes.size(),
            linear.best().methods[0].infer.nodes.size());
}

TEST(L2Search, LatencyExcludesTheSlower) {
  const auto free = Lower(testing::kMnistSpec, WinnerOnly());
  const double usual = ForwardLatency(free.best().methods[0].infer, BuiltinPriors());
  const double budget = usual / 1.5;
  const std::string properties = "depth(3), width(512), param_budget(500K), latency_budget(" +
                                 support::PrintSeconds(budget) + ")";
  for (search::Mode mode : {search::Mode::kEGraph, search::Mode::kGreedy, search::Mode::kOff}) {
    LoweringOptions options;
    options.mode = mode;
    const auto result = Lower(MnistWith(properties), options);
    ASSERT_TRUE(result.ok()) << FailureText(result);
    for (const auto& candidate : result.candidates) {
      EXPECT_LE(ForwardLatency(candidate.target.methods[0].infer, BuiltinPriors()),
                budget * (1 + 1e-12));
    }
  }
  // A method written by hand is held to it as well.
  Module slow = free.best();
  slow.spec = ReadSpec(MnistWith(properties));
  support::Diagnostics diagnostics;
  EXPECT_FALSE(Verify(slow, diagnostics));
  EXPECT_NE(diagnostics.Render(false).find("latency_budget"), std::string::npos);
}

TEST(L2Search, FewRowsTrainForMoreEpochs) {
  auto lower = [](std::optional<int64_t> rows) {
    LowerConstraints constraints;
    constraints.rows = rows;
    return LowerToL2(ReadSpec(testing::kMnistSpec), constraints, {});
  };
  const auto unknown = lower(std::nullopt);
  const auto many = lower(60000);
  ASSERT_EQ(many.candidates.size(), unknown.candidates.size());
  for (size_t i = 0; i < many.candidates.size(); ++i) {
    EXPECT_EQ(PrintModule(many.candidates[i].target), PrintModule(unknown.candidates[i].target));
  }
  struct Case {
    int64_t rows, epochs, every;
    std::vector<std::string> others;
  };
  for (const Case& c :
       {Case{120, 4000, 400, {"12000", "1200"}}, Case{1500, 334, 33, {"1002", "101"}}}) {
    const auto result = lower(c.rows);
    ASSERT_TRUE(result.ok());
    const Phase& phase = result.best().methods[0].phases.at(0);
    EXPECT_EQ(phase.epochs, c.epochs);
    EXPECT_EQ(phase.eval_every, c.every);
    EXPECT_EQ(phase.checkpoint_every, c.every);
    EXPECT_GE(TotalSteps(result.best().methods[0], c.rows), 4000);
    for (const auto& candidate : result.candidates) {
      support::Diagnostics diagnostics;
      EXPECT_TRUE(Verify(candidate.target, diagnostics)) << diagnostics.Render(false);
    }
    const auto& decisions = result.explanation.decisions;
    const auto epochs = std::find_if(decisions.begin(), decisions.end(), [](const auto& d) {
      return d.id == "l2/classify/phases.epochs";
    });
    ASSERT_NE(epochs, decisions.end());
    EXPECT_EQ(epochs->chosen, std::to_string(c.epochs));
    std::vector<std::string> losers;
    for (const auto& loser : epochs->losers) losers.push_back(loser.label);
    EXPECT_EQ(losers, c.others);
    // A loser can be forced.
    LowerConstraints constraints;
    constraints.rows = c.rows;
    LoweringOptions options = WinnerOnly();
    options.forced[epochs->id] = c.others[0];
    const auto forced = LowerToL2(ReadSpec(testing::kMnistSpec), constraints, options);
    ASSERT_TRUE(forced.ok());
    EXPECT_EQ(std::to_string(forced.best().methods[0].phases[0].epochs), c.others[0]);
  }
}

TEST(L2Search, TooManyToScoreNamesTheLoosestConstraint) {
  LoweringOptions options;
  options.budget.candidates = 3;
  const std::string text =
      FailureText(Lower(MnistWith("depth(5), width(512), param_budget(100K)"), options));
  EXPECT_NE(text.find("TooManyCandidates"), std::string::npos) << text;
  EXPECT_NE(text.find("depth(5) is the loosest constraint"), std::string::npos) << text;
}

TEST(L2Search, WorkRunsOutWithATimeout) {
  for (uint64_t work : {10u, 100u, 1000u}) {
    LoweringOptions options;
    options.budget.work = work;
    const std::string text = FailureText(Lower(testing::kMnistSpec, options));
    EXPECT_NE(text.find("Timeout"), std::string::npos) << text;
  }
  LoweringOptions options;
  options.budget.egraph_nodes = 100;
  const std::string text = FailureText(Lower(testing::kMnistSpec, options));
  EXPECT_NE(text.find("the budget of nodes ran out"), std::string::npos) << text;
  EXPECT_NE(text.find("of 100 spent"), std::string::npos) << text;
}

TEST(L2Search, ForcingWhatIsNotThereSaysWhatIs) {
  LoweringOptions options;
  options.forced["l2/classify/layer1.width"] = "300";
  EXPECT_NE(FailureText(Lower(testing::kMnistSpec, options)).find("choices: 16, 32"),
            std::string::npos);
  options.forced = {{"l2/classify/layer9.width", "256"}};
  EXPECT_NE(FailureText(Lower(testing::kMnistSpec, options)).find("no decision"),
            std::string::npos);
  options.forced = {{"l2/classify/layer1.width", "512"}, {"l2/classify/layer2.width", "512"}};
  EXPECT_NE(FailureText(Lower(testing::kMnistSpec, options)).find("NoCandidates"),
            std::string::npos);
  // Decisions of other lowerings are none of ours.
  options.forced = {{"l0/kernel3.group", "split"}};
  EXPECT_EQ(MethodOf(Lower(testing::kMnistSpec, options)), kTrace);
}

TEST(L2Search, ASymmetryThatNoStageKeepsIsHadByTheMeanOverItsActions) {
  const auto result =
      Lower(MnistWith("depth(2), width(64), equivariant(c4), equivariant(reflection)"));
  ASSERT_TRUE(result.ok()) << FailureText(result);
  const std::string method = MethodOf(result);
  EXPECT_NE(method.find("mean_of_actions(group: d4"), std::string::npos) << method;
}

TEST(L2Search, WhatCannotBeHonouredIsRefused) {
  std::string text = MnistWith("depth(2), equivariant(c4)");
  text.replace(text.find("[28, 28]"), 8, "[4, 7, 28, 28]");
  EXPECT_NE(FailureText(Lower(text)).find("square image"), std::string::npos);
}

TEST(L2Search, DomainsTooLargeForAnyNetworkAreRefused) {
  std::string text(testing::kMnistSpec);
  text.replace(text.find("[28, 28]"), 8, "[8192, 8192]");
  EXPECT_NE(FailureText(Lower(text)).find("more than linear layers can join"), std::string::npos);
}

// What a specification says twice is trained once, with the weight of both.
TEST(L2Search, TheSpecificationIsSimplifiedFirst) {
  std::string text(testing::kMnistSpec);
  text.insert(text.find("    combine:"), "    again: norm(classify.params, p=1), weight: 1e-4\n");
  const auto result = Lower(text, WinnerOnly());
  ASSERT_TRUE(result.ok()) << FailureText(result);
  const l3::Loss& loss = result.best().spec.losses.at(0);
  ASSERT_EQ(loss.terms.size(), 2u);
  EXPECT_EQ(loss.terms[1].name, "sparse");
  EXPECT_EQ(loss.terms[1].weight, 2e-4);
}

// The rank by whole plans can be forced beside other choices, and only where there is one.
TEST(L2Search, ThePlansRankIsForcedWhateverElseIs) {
  const l3::Module spec = ReadSpec(testing::kMnistSpec);
  LowerConstraints constraints;
  constraints.simulate = [](const Module&) { return 1.0; };
  auto lower = [&](const search::ForcedChoices& forced) {
    LoweringOptions options;
    options.forced = forced;
    return LowerToL2(spec, constraints, options);
  };
  const auto free = lower({{"l2/classify/update.optimizer", "adam"}});
  ASSERT_TRUE(free.ok()) << FailureText(free);
  const std::string id = "l2/classify/plan";
  const auto third = lower({{"l2/classify/update.optimizer", "adam"}, {id, "3"}});
  ASSERT_TRUE(third.ok()) << FailureText(third);
  EXPECT_EQ(third.explanation.Find(id)->chosen, "3");
  EXPECT_TRUE(third.explanation.Find(id)->forced);
  EXPECT_NE(PrintModule(third.best()), PrintModule(free.best()));
  const auto missing = lower({{id, "99"}});
  EXPECT_NE(FailureText(missing).find("candidates: 1 to 8"), std::string::npos);
  // Without whole plans there is no such decision.
  LoweringOptions options;
  options.forced = {{id, "1"}};
  EXPECT_NE(FailureText(Lower(testing::kMnistSpec, options)).find("no decision '" + id + "'"),
            std::string::npos);
}

// What an annotation fixes is checked in the whole of several models, too.
TEST(L2Search, AnnotationsOfSeveralModelsAreChecked) {
  const std::string spec =
      "data d {\n    x : tensor(f32, [4])\n    y : tensor(f32, [2])\n}\n"
      "model a {\n    #[l2::backward(dfa(feedback_dim: 4))]\n"
      "    in:  d.x\n    out: tensor(f32, [3])\n    properties: [depth(2)]\n}\n"
      "model b {\n    in:  a.out\n    out: tensor(f32, [2])\n    properties: [depth(1)]\n}\n"
      "loss l {\n    fit: divergence(b.out, d.y), weight: 1.0\n    combine: weighted_sum\n}\n"
      "goal: minimize(l)\n";
  const auto result = Lower(spec, WinnerOnly());
  EXPECT_FALSE(result.ok());
  EXPECT_NE(FailureText(result).find("dfa cannot train this network"), std::string::npos)
      << FailureText(result);
}

TEST(L2Search, AnAnnotationFixesALoss) {
  auto with = [](const std::string& form) {
    std::string spec(testing::kMnistSpec);
    const size_t term = spec.find("    ce:");
    EXPECT_NE(term, std::string::npos);
    spec.insert(term, "    #[l2::loss(" + form + ")]\n");
    return Lower(spec, WinnerOnly());
  };
  const auto smoothed = with("ce(label_smoothing: 0.125)");
  ASSERT_TRUE(smoothed.ok()) << FailureText(smoothed);
  const std::string text = PrintModule(smoothed.best());
  EXPECT_NE(text.find("ce(label_smoothing: 0.125)"), std::string::npos) << text;
  EXPECT_NE(FailureText(with("huber(delta: 1.0)")).find("does not compare"), std::string::npos)
      << FailureText(with("huber(delta: 1.0)"));
  EXPECT_NE(FailureText(with("crossing")).find("crossing"), std::string::npos);
}

TEST(L2Search, AnnotationsFixAPart) {
  std::string text(testing::kMnistSpec);
  text.insert(text.find("    in:"),
              "    #[l2::update(sgd(lr: 0.05))]\n    #[l2::sample(epoch_shuffle(batch: 50))]\n");
  const auto result = Lower(text);
  const std::string method = MethodOf(result);
  EXPECT_NE(method.find("epoch_shuffle(batch: 50)"), std::string::npos) << method;
  EXPECT_NE(method.find("; sgd(lr: 0.05);"), std::string::npos) << method;
  auto with = [](const std::string& hatch) {
    std::string spec(testing::kMnistSpec);
    spec.insert(spec.find("    in:"), "    #[l2::" + hatch + "]\n");
    return Lower(spec, WinnerOnly());
  };
  const auto evolved = with("backward(evolution(pop: 50))");
  ASSERT_TRUE(evolved.ok()) << FailureText(evolved);
  EXPECT_EQ(evolved.best().methods[0].backward.name, "evolution");
  EXPECT_NE(FailureText(with("backward(autodiff(mode: forward))")).find("autodiff(mode: reverse)"),
            std::string::npos);
  EXPECT_NE(FailureText(with("infer(linear(784, 10))")).find("not supported yet"),
            std::string::npos);
  std::string bad(testing::kMnistSpec);
  bad.insert(bad.find("    in:"), "    #[l2::backward(evolution(population: 50))]\n");
  EXPECT_NE(FailureText(Lower(bad)).find("population"), std::string::npos);
}

}  // namespace
}  // namespace l3c::l2
