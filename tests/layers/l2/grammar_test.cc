// Architectures for every pair of domains: the winner of the search against an enumeration that
// shares nothing with it but the priors' figures and the counts of a layer's work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "layers/l2/estimate.h"
#include "layers/l2/form.h"
#include "layers/l2/lower.h"
#include "layers/l2/objective.h"
#include "layers/l2/updates.h"
#include "layers/l3/domain.h"
#include "layers/l3/parse.h"
#include "layers/l3/verify.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using testing::ReadSpec;

struct Domains {
  std::string name, in, out, target;
  int64_t out_rows = 1;  // of a sequence
};

// in: image, sequence of numbers, sequence of tokens, table; out: dist, tensor, sequence, scalar.
std::vector<Domains> Pairs() {
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"image", "tensor(f32, [8, 8])"},
      {"sequence", "sequence(tensor(f32, [3]), 6)"},
      {"tokens", "sequence(scalar(u8), 6)"},
      {"table", "table(a: scalar(f32), b: tensor(f32, [4]), c: scalar(u8))"}};
  const std::vector<Domains> outputs = {
      {"dist", "", "dist(5)", "scalar(u8)", 1},
      {"tensor", "", "tensor(f32, [2, 3])", "tensor(f32, [2, 3])", 1},
      {"sequence", "", "sequence(tensor(f32, [2]), 6)", "sequence(tensor(f32, [2]), 6)", 6},
      {"classes", "", "sequence(dist(4), 6)", "sequence(scalar(u8), 6)", 6},
      {"scalar", "", "scalar(f32)", "scalar(f32)", 1}};
  std::vector<Domains> pairs;
  for (const auto& [name, in] : inputs) {
    for (Domains out : outputs) {
      out.name = name + " to " + out.name;
      out.in = in;
      pairs.push_back(std::move(out));
    }
  }
  return pairs;
}

std::string SpecOf(const Domains& d, const std::string& properties) {
  return "data d { x : " + d.in + " y : " + d.target + " }\nmodel m { in: d.x out: " + d.out +
         " properties: [" + properties +
         "] }\nloss l { fit: divergence(m.out, d.y) }\ngoal: minimize(l)\n";
}

class Enumeration {
 public:
  Enumeration(const l3::Module& spec, const Priors& priors)
      : p_(priors), model_(spec.models[0]), input_(*spec.DomainOf(model_.in[0])) {
    support::Diagnostics none;
    target_ = ResolveObjective(spec, "m", none)->terms[0].target_kind;
    for (int64_t w = p_.min_width; w <= *model_.width(); w *= 2) widths_.push_back(w);
    sequence_ = input_.kind == l3::Domain::Kind::kSequence;
    causal_ = model_.causal() || model_.autoregressive();
    for (const auto& property : model_.properties) {
      if (property.kind == l3::Property::Kind::kEquivariant) group_ = property.group;
    }
    // Turns and mirrors are had by a mean over all of them, whatever the network.
    const std::map<std::string, double> actions = {{"reflection", 2}, {"c4", 4}, {"d4", 8}};
    if (const auto it = actions.find(group_); it != actions.end()) {
      actions_ = group_;
      copies_ = it->second;
      group_.clear();
    }
    depth_ = std::min(*model_.depth(), static_cast<int64_t>(p_.depth_factors.size()));
    unrolls_ = sequence_ && *model_.depth() - static_cast<int64_t>(p_.depth_factors.size()) >=
                                l3::ExampleShape(input_)[0];
    out_ = model_.out;
    positions_out_ = out_.kind == l3::Domain::Kind::kSequence;
    causal_ = causal_ && positions_out_;
    classes_ = out_.kind == l3::Domain::Kind::kDist ||
               (positions_out_ && out_.parts[0].kind == l3::Domain::Kind::kDist);
  }

  // The least predicted time; infinite when there is no network.
  double Run() {
    const Shape shape = l3::ExampleShape(input_);
    const bool tokens = sequence_ && input_.parts[0].kind == l3::Domain::Kind::kScalar &&
                        input_.parts[0].dtype == tensor::DType::kU8;
    if (!tokens) {
      Extend({shape, {}, 1, 0, true});
      return best_;
    }
    for (int64_t w : widths_) {
      State state{shape, {}, 1 + std::pow(p_.width_scale, 2) * 256.0 / double(w * w), 0, false};
      state = After(state, "embed(256, " + Text(w) + ")");
      if (group_ != "permutation")
        state = After(state, "position(learned, " + Text(shape[0]) + ")");
      Extend(state);
    }
    return best_;
  }

 private:
  struct State {
    Shape shape;
    std::vector<LayerWork> work;
    double factor = 1;
    int64_t hidden = 0;
    bool first = true;  // nothing before but the input
  };

  static std::string Text(int64_t n) { return std::to_string(n); }

  State After(State state, const std::string& layer) const {
    support::SourceFile source("layer", layer);
    support::Diagnostics diagnostics(&source);
    support::ParserBase parser(source, diagnostics);
    const Form form = *ParseForm(parser, Family::kLayer);
    const LayerEntry& entry = *FindLayer(form.name);
    std::string error;
    const std::vector<Shape> operands = {state.shape};
    state.work.push_back(EstimateLayer(entry, form, operands));
    const auto shape = entry.shape(form, operands, &error);
    EXPECT_TRUE(shape) << layer << ": " << error;
    state.shape = *shape;
    return state;
  }

  // The sum with what a block has skipped.
  State Joined(State state) const {
    const LayerEntry& add = *FindLayer("add");
    const std::vector<Shape> both = {state.shape, state.shape};
    state.work.push_back(EstimateLayer(add, MakeForm(add.form, {}), both));
    return state;
  }

  // The same of a network, which is read as the whole of a model.
  State AfterNetwork(State state, const std::string& network, int64_t width) const {
    std::string in;
    for (int64_t extent : state.shape) in += (in.empty() ? "" : ", ") + Text(extent);
    const std::string out = "tensor(f32, [" + Text(width) + "])";
    const Module module = testing::Read(
        "# l3c l2 v1\ndata d { x : tensor(f32, [" + in + "]) y : " + out +
        " }\nmodel n { in: d.x out: " + out +
        " properties: [] }\nloss l { fit: divergence(n.out, d.y) }\ngoal: minimize(l)\n"
        "methods for n { sample: epoch_shuffle(batch: 8) infer: " +
        network + " backward: autodiff(mode: reverse) update: sgd(lr: 0.1) }\n");
    const InferGraph& infer = module.methods[0].infer;
    for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
      state.work.push_back(EstimateNode(infer, i));
    }
    state.shape = {width};
    return state;
  }

  void Then(State state, double factor) {
    state.factor *= factor;
    ++state.hidden;
    state.first = false;
    Extend(state);
  }

  // Stages that are networks of their own: recurrent, mixture; and a skip around a dense one.
  void Networks(const State& state, bool is_sequence, int64_t channels, bool asked) {
    const Shape& s = state.shape;
    auto kind = [&](StageKind k) { return p_.kind_factors[static_cast<size_t>(k)]; };
    for (const FormPrior& norm : p_.norms) {
      const std::string normed = norm.form ? norm.label + ", " : "";
      for (int64_t w : widths_) {
        if (is_sequence && unrolls_ && !asked) {
          Then(AfterNetwork(state,
                            "recurrent(cell: sequential [linear(" + Text(channels + w) + ", " +
                                Text(w) + "), " + normed + "tanh], steps: " + Text(s[0]) + ")",
                            w),
               norm.factor * WidthFactor(state.first, channels, w) * kind(StageKind::kRecurrent));
        }
      }
      for (const FormPrior& act : p_.activations) {
        for (int64_t w : widths_) {
          if (s.size() == 1 && !asked) {
            const std::string expert = "sequential [linear(" + Text(s[0]) + ", " + Text(w) + "), " +
                                       normed + act.label + "]";
            Then(AfterNetwork(state,
                              "mixture(experts: [" + expert + ", " + expert + ", " + expert + ", " +
                                  expert + "], gate: sequential [linear(" + Text(s[0]) +
                                  ", 4), softmax])",
                              w),
                 norm.factor * act.factor * WidthFactor(state.first, s[0], w) *
                     kind(StageKind::kMixture));
          }
          if ((s.size() == 1 || is_sequence) && channels == w) {
            State next = norm.form ? After(state, norm.label) : state;
            next = After(next, "linear(" + Text(w) + ", " + Text(w) + ")");
            next = After(next, act.label);
            next = Joined(next);
            Then(next, norm.factor * act.factor * WidthFactor(state.first, w, w) *
                           kind(StageKind::kResidual) *
                           (is_sequence ? kind(StageKind::kPointwise) : 1));
          }
        }
      }
    }
  }

  double WidthFactor(bool fresh, int64_t seen, int64_t w) const {
    if (fresh) return 1 + std::pow(p_.width_scale, 2) * double(seen) / double(w * w);
    return std::pow(p_.width_per_octave, std::abs(std::log2(double(w) / double(seen))));
  }

  void Norms(const State& from, const std::string& layer, double factor, const std::string& end) {
    for (const FormPrior& norm : p_.norms) {
      for (const FormPrior& act : p_.activations) {
        State state = After(from, layer);
        state.factor *= factor * norm.factor * act.factor;
        if (norm.form) state = After(state, norm.label);
        if (act.form) state = After(state, act.label);
        if (!end.empty()) state = After(state, end);
        ++state.hidden;
        state.first = false;
        Extend(state);
      }
    }
  }

  void Extend(const State& state) {
    Finish(state);
    if (state.hidden + 1 >= depth_) return;
    const Shape& s = state.shape;
    const int64_t all = tensor::NumElements(s);
    const bool asked = causal_ || !group_.empty();
    const bool is_sequence = sequence_ && s.size() == 2 && s[0] > 1;
    const bool is_image = !sequence_ && s.size() >= 2 && s[0] > 2 && s[1] > 2;
    const int64_t channels = is_image ? (s.size() == 3 ? s[2] : 1) : s.back();
    auto kind = [&](StageKind k) { return p_.kind_factors[static_cast<size_t>(k)]; };
    Networks(state, is_sequence, channels, asked);
    for (int64_t w : widths_) {
      if (!asked) {
        const bool positions = is_sequence || (!sequence_ && s.size() >= 2);
        Norms(state, "linear(" + Text(all) + ", " + Text(w) + ")",
              WidthFactor(state.first || positions, all, w) *
                  (positions ? kind(StageKind::kDense) : 1),
              "");
      }
      if (is_sequence) {
        Norms(state, "linear(" + Text(channels) + ", " + Text(w) + ")",
              WidthFactor(state.first, channels, w) * kind(StageKind::kPointwise), "");
      }
      const std::string conv =
          "conv(" + Text(channels) + ", " + Text(w) + ", kernel: 3, padding: 1)";
      const bool translation = group_ == "translation" && !causal_;
      if (is_sequence && s[0] > 2 && w <= p_.max_channels && (!asked || translation)) {
        Norms(state, conv, WidthFactor(state.first, channels, w) * kind(StageKind::kLine), "");
      }
      if (is_image && w <= p_.max_channels && translation) {
        Norms(state, conv, WidthFactor(state.first, channels, w) * kind(StageKind::kPlane), "");
      } else if (is_image && w <= p_.max_channels && !asked && s[0] > 3 && s[1] > 3) {
        Norms(state, conv, WidthFactor(state.first, channels, w) * kind(StageKind::kHalving),
              "pool(max, 2)");
      }
      if (is_sequence && channels == w && group_ != "translation") {
        for (const FormPrior& norm : p_.norms) {
          State next = state;
          if (norm.form) next = After(next, norm.label);
          int64_t heads = 1;
          while (heads < 8 && w / (2 * heads) >= 16) heads *= 2;
          next = After(
              next, "attn(" + Text(heads) + ", " + Text(w) + (causal_ ? ", causal: true)" : ")"));
          next = Joined(next);
          next.factor *= norm.factor * kind(StageKind::kAttention);
          ++next.hidden;
          next.first = false;
          Extend(next);
        }
      }
    }
  }

  void Finish(const State& state) {
    const Shape& s = state.shape;
    const int64_t all = tensor::NumElements(s);
    const int64_t outputs = l3::NumElements(out_);
    const bool asked = causal_ || !group_.empty();
    const std::string flat = "linear(" + Text(all) + ", " + Text(outputs) + ")";
    if (positions_out_ && sequence_ && out_.size == input_.size) {
      if (s.size() == 2 && s[0] == out_.size) {
        End(After(state, "linear(" + Text(s[1]) + ", " + Text(outputs / out_.size) + ")"));
      }
      return;
    }
    if (positions_out_ && classes_) {
      if (!asked) End(After(After(state, flat), "positions(" + Text(out_.size) + ")"));
      return;
    }
    if (!asked) End(After(state, flat));
    const bool square = s.size() == 3 && s[0] == s[1];
    const bool line = sequence_ && s.size() == 2 && s[0] > 1;
    if ((square || line) && s[0] > 1 && !causal_) {
      State pooled = After(state, "pool(avg, " + Text(s[0]) + ")");
      pooled.factor *= p_.mean_readout;
      End(After(pooled, "linear(" + Text(s.back()) + ", " + Text(outputs) + ")"));
    }
  }

  double SecondsOf(const search::StepWork& w) const {
    return w.contraction_flops / p_.contraction_flops_per_second +
           w.elementwise_flops / p_.elementwise_flops_per_second + w.bytes / p_.bytes_per_second +
           w.launches * p_.seconds_per_launch;
  }

  void End(State state) {
    for (LayerWork& w : state.work) w = Times(w, copies_);
    if (!actions_.empty()) {
      for (int turns = 0; turns < (actions_ == "reflection" ? 1 : 4); ++turns) {
        for (const bool mirrored : {false, true}) {
          if (mirrored && actions_ == "c4") continue;
          Form form =
              MakeForm(FindLayer("acted")->form,
                       {{"turns", int64_t{turns}}, {"mirrored", mirrored}, {"axis", int64_t{0}}});
          const std::vector<Shape> operands = {l3::ExampleShape(input_)};
          state.work.push_back(EstimateLayer(*FindLayer("acted"), form, operands));
        }
      }
      const LayerEntry& mean = *FindLayer("mean_of_actions");
      const Form form = MakeForm(mean.form, {{"group", actions_}, {"axis", int64_t{0}}});
      const std::vector<Shape> operands(static_cast<size_t>(copies_), state.shape);
      state.work.push_back(EstimateLayer(mean, form, operands));
    }
    if (classes_) state = After(state, "softmax");
    int64_t parameters = 0;
    for (const LayerWork& w : state.work) parameters += w.parameters;
    if (model_.param_budget() && parameters > *model_.param_budget()) return;
    const double factor = state.factor * p_.depth_factors[static_cast<size_t>(state.hidden)];
    for (int64_t batch : p_.batches) {
      for (const OptimizerPrior& optimizer : p_.optimizers) {
        double seconds = double(parameters) * SecondsOf(EstimateUpdate(optimizer.forms[0]));
        for (const LayerWork& forward : state.work) {
          const LayerWork w = WithBackward(forward);
          seconds += double(batch) * SecondsOf(w.per_sample) + SecondsOf(w.per_step);
        }
        const double rest = optimizer.factor * (1 + p_.noise_scale / double(batch)) *
                            p_.decays[0].factor * LossFactor();
        best_ = std::min(best_, p_.base_steps * factor * rest * seconds);
      }
    }
  }

  // Done so many times with the same parameters.
  static LayerWork Times(LayerWork work, double times) {
    for (search::StepWork* part : {&work.per_sample, &work.per_step}) {
      part->contraction_flops *= times;
      part->elementwise_flops *= times;
      part->bytes *= times;
      part->launches *= times;
    }
    return work;
  }

  double LossFactor() const {
    double best = std::numeric_limits<double>::infinity();
    for (const FormPrior& loss : p_.losses) {
      if (FindLoss(loss.form->name)->accepts(target_)) best = std::min(best, loss.factor);
    }
    return best;
  }

  const Priors& p_;
  const l3::Model& model_;
  const l3::Domain& input_;
  l3::Domain out_;
  TargetKind target_ = TargetKind::kTensor;
  std::vector<int64_t> widths_;
  bool sequence_ = false, causal_ = false, positions_out_ = false, classes_ = false;
  std::string group_, actions_;
  double copies_ = 1;
  int64_t depth_ = 0;
  bool unrolls_ = false;
  double best_ = std::numeric_limits<double>::infinity();
};

// Few choices of everything, so that an enumeration ends.
Priors SmallPriors(const std::function<int(int, int)>& pick) {
  Priors p = BuiltinPriors();
  auto shake = [&](double& figure) { figure *= std::exp2(pick(-200, 200) / 100.0); };
  auto factor = [&](double& figure) { figure = 1 + pick(0, 100) / 100.0; };
  p.norms.resize(2);
  p.activations.resize(1);
  p.batches = {32, 256};
  p.optimizers.resize(1);
  p.optimizers[0].rates.resize(1);
  p.optimizers[0].forms.resize(1);
  p.optimizers[0].best_rate = p.optimizers[0].rates[0];
  p.warmups = {0};
  p.decays.resize(1);
  p.epochs = {p.usual_epochs};
  shake(p.contraction_flops_per_second);
  shake(p.elementwise_flops_per_second);
  shake(p.bytes_per_second);
  shake(p.seconds_per_launch);
  p.depth_factors.resize(3);
  for (auto& f : p.depth_factors) factor(f);
  for (auto& f : p.norms) factor(f.factor);
  for (auto& f : p.kind_factors) factor(f);
  factor(p.width_per_octave);
  return p;
}

TEST(L2Grammar, TheWinnerIsThatOfAnEnumerationForEveryPairOfDomains) {
  std::mt19937 random(7);
  const std::function<int(int, int)> pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (const Domains& pair : Pairs()) {
    for (int trial = 0; trial < 2; ++trial) {
      // With a depth of 12 as many stages as the priors cover, and recurrences.
      constexpr int kDepths[] = {1, 2, 3, 12};
      std::string properties = "depth(" + std::to_string(kDepths[pick(0, 3)]) + "), width(" +
                               std::to_string(pick(0, 1) == 0 ? 16 : 40) + ")";
      if (pick(0, 2) == 0) {
        properties += ", param_budget(" + std::to_string(pick(4, 60) * 100) + ")";
      }
      const std::string text = SpecOf(pair, properties);
      const l3::Module spec = ReadSpec(text);
      const Priors priors = SmallPriors(pick);
      const double expected = Enumeration(spec, priors).Run();
      LowerConstraints constraints;
      constraints.priors = &priors;
      search::LoweringOptions options;
      options.budget.top = 2;
      const auto result = LowerToL2(spec, constraints, options);
      if (std::isinf(expected)) {
        EXPECT_FALSE(result.ok()) << pair.name << "\n" << text;
        continue;
      }
      ASSERT_TRUE(result.ok()) << pair.name << "\n" << text;
      EXPECT_NEAR(result.candidates[0].cost[0].value / expected, 1, 1e-9)
          << pair.name << "\n"
          << PrintModule(result.best());
      for (const auto& candidate : result.candidates) {
        const std::string printed = PrintModule(candidate.target);
        EXPECT_EQ(PrintModule(testing::Read(printed)), printed) << pair.name;
      }
    }
  }
}

TEST(L2Grammar, StagesThatAreNetworksCanBeForced) {
  const Domains forecast{"", "sequence(tensor(f32, [3]), 6)", "scalar(f32)", "scalar(f32)", 1};
  const Domains table{"", "table(a: scalar(f32), b: tensor(f32, [4]))", "dist(3)", "scalar(u8)", 1};
  struct Case {
    Domains domains;
    std::string id, kind, written;
  };
  for (const Case& c : {Case{forecast, "layer1.kind", "recurrent", "recurrent("},
                        Case{table, "layer1.kind", "mixture", "mixture("},
                        Case{table, "layer2.kind", "residual", "residual ["}}) {
    // Without a bound on the depth, as a recurrence counts as often as it is unrolled.
    const l3::Module spec = ReadSpec(SpecOf(c.domains, "width(16)"));
    search::LoweringOptions options;
    options.forced = {{"l2/m/" + c.id, c.kind}};
    const auto result = LowerToL2(spec, {}, options);
    ASSERT_TRUE(result.ok()) << c.kind;
    const std::string text = PrintModule(result.best());
    EXPECT_NE(text.find(c.written), std::string::npos) << text;
    EXPECT_EQ(PrintModule(testing::Read(text)), text);
  }
  // With one that is too small it is said why there is none.
  const auto bounded = LowerToL2(ReadSpec(SpecOf(forecast, "depth(3), width(16)")), {}, {});
  ASSERT_TRUE(bounded.ok());
  const auto& pruned = bounded.explanation.pruned;
  EXPECT_TRUE(std::any_of(pruned.begin(), pruned.end(), [](const search::Pruned& p) {
    return p.what == "recurrent stages over 6 elements" &&
           p.why.find("depth(14)") != std::string::npos;
  }));
}

TEST(L2Grammar, PropertiesAreHonoured) {
  struct Case {
    Domains domains;
    std::string property;
    bool found;
  };
  const std::string numbers = "sequence(tensor(f32, [3]), 6)";
  const std::string tokens = "sequence(scalar(u8), 6)";
  const Domains next{"", tokens, "sequence(dist(256), 6)", tokens, 6};
  const Domains set{"", numbers, "dist(3)", "scalar(u8)", 1};
  const Domains each{"", numbers, "sequence(tensor(f32, [2]), 6)", "sequence(tensor(f32, [2]), 6)",
                     6};
  const Domains image{"", "tensor(f32, [8, 8])", "dist(3)", "scalar(u8)", 1};
  std::mt19937 random(11);
  const std::function<int(int, int)> pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (const Case& c :
       {Case{next, "autoregressive", true}, Case{next, "causal", true}, Case{each, "causal", true},
        Case{set, "equivariant(permutation)", true}, Case{each, "equivariant(permutation)", true},
        Case{image, "equivariant(translation)", true}, Case{image, "equivariant(c4)", true},
        Case{image, "equivariant(d4)", true}, Case{image, "equivariant(reflection)", true},
        Case{set, "equivariant(reflection)", true}, Case{next, "equivariant(reflection)", false},
        Case{each, "equivariant(reflection)", false}}) {
    const l3::Module spec = ReadSpec(SpecOf(c.domains, "depth(3), width(16), " + c.property));
    const Priors priors = SmallPriors(pick);
    LowerConstraints constraints;
    constraints.priors = &priors;
    const auto result = LowerToL2(spec, constraints, {});
    ASSERT_EQ(result.ok(), c.found) << c.property;
    if (!c.found) continue;
    EXPECT_NEAR(result.candidates[0].cost[0].value / Enumeration(spec, priors).Run(), 1, 1e-9)
        << c.property << PrintModule(result.best());
    // The verifier, which looks at the layers alone, agrees.
    for (const auto& candidate : result.candidates) testing::Read(PrintModule(candidate.target));
  }
}

}  // namespace
}  // namespace l3c::l2
