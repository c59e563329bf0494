// Updates of phases, turns and several models, step by step against their formulas: which steps
// each counts, whose state it goes on with, what evaluation reads.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/interpreter.h"
#include "layers/tensor/philox.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

using tensor::Array;
using tensor::DType;
using Numbers = std::vector<double>;
using Values = std::map<std::string, Numbers>;

constexpr char kNetwork[] = "sequential [ linear(2, 3), tanh, linear(3, 1) ]";
const std::vector<std::string> kParameters = {"linear1_weight", "linear1_bias", "linear2_weight",
                                              "linear2_bias"};

std::string Model(const std::string& name, const std::string& in) {
  return "model " + name + " {\n    in:  " + in +
         "\n    out: tensor(f32, [1])\n    properties: []\n}\n";
}

std::string Methods(const std::string& model, const std::string& infer, const std::string& update,
                    const std::string& more = "") {
  return "methods for " + model + " {\n    sample: epoch_shuffle(batch: 4)\n    infer: " + infer +
         "\n    backward: autodiff(mode: reverse)\n    update: " + update + "\n" + more + "}\n";
}

std::string Loss(const std::string& name, const std::string& model) {
  return "loss " + name + " {\n    fit: divergence(" + model +
         ".out, d.y), weight: 1.0\n    combine: weighted_sum\n}\n";
}

constexpr char kData[] = "data d {\n    x : tensor(f32, [2])\n    y : tensor(f32, [1])\n}\n";

// One model, trained as `update` and `phases` say.
std::string Alone(const std::string& update, const std::string& phases,
                  const std::string& goal = "goal: minimize(l)\n") {
  return kData + Model("m", "d.x") + Loss("l", "m") + goal +
         Methods("m", kNetwork, update, "    phases [ " + phases + " ]\n");
}

Program LowerText(const std::string& text, const System& system = TestHost()) {
  LowerOptions options;
  options.system = system;
  options.isas = {"x86_64", "cuda"};
  options.data["d"] = {"data/d", {{"train", 40}, {"test", 4}}};
  auto result = Lower(ParseL2(text), options);
  EXPECT_TRUE(result.ok());
  if (!result.ok()) return {};
  // What is written reads back, and is sound.
  const std::string printed = PrintProgram(result.best());
  const auto again = ParseText(printed);
  EXPECT_TRUE(again);
  if (again) {
    EXPECT_EQ(PrintProgram(*again), printed);
  }
  return result.best();
}

// A batch of its own for each number.
std::map<std::string, Array> Batch(uint64_t number) {
  tensor::PhiloxStream random(number);
  Array x = Array::Zeros(DType::kF32, {4, 2});
  Array y = Array::Zeros(DType::kF32, {4, 1});
  for (double& v : x.floats) v = random.NextNormal();
  for (double& v : y.floats) v = random.NextNormal();
  return {{"x", x}, {"y", y}, {"mask", Array::Floats(DType::kF32, {4}, Numbers(4, 1.0))}};
}

// Training in f64, and what the steps computed.
class Training {
 public:
  explicit Training(const std::string& text)
      : program_(LowerText(text)), interpreter_(program_, 1, tensor::Precision::kOracle) {}

  // The gradients of one step of a pipeline, by parameter.
  Values Step(const std::string& pipeline) {
    results_ = interpreter_.Run(*FindPipeline(program_, pipeline), Batch(++steps_));
    Values gradients;
    for (const std::string& name : kParameters) {
      const auto at = results_.find(name + "_grad");
      if (at != results_.end()) gradients[name] = at->second.floats;
    }
    return gradients;
  }
  double Evaluate(uint64_t batch) {
    results_ = interpreter_.Run(*FindPipeline(program_, "test"), Batch(batch));
    return results_.at("loss_sum").floats[0] / results_.at("rows").floats[0];
  }
  const Numbers& State(const std::string& name) const {
    return interpreter_.State("model_state", name).floats;
  }
  Values Parameters() const {
    Values all;
    for (const std::string& name : kParameters) all[name] = State(name);
    return all;
  }
  void Set(const Values& values) {
    for (const auto& [name, numbers] : values) {
      Array array = interpreter_.State("model_state", name);
      array.floats = numbers;
      interpreter_.SetState("model_state", name, array);
    }
  }
  const std::map<std::string, Array>& results() const { return results_; }

 private:
  Program program_;
  Interpreter interpreter_;
  std::map<std::string, Array> results_;
  uint64_t steps_ = 0;
};

void ExpectNear(const Values& found, const Values& expected) {
  for (const auto& [name, numbers] : expected) {
    const Numbers& own = found.at(name);
    ASSERT_EQ(own.size(), numbers.size());
    // Coefficients such as 0.9 are f32, the arithmetic is f64.
    for (size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], numbers[i], 1e-6) << name << i;
  }
}

// Adam with a count for each parameter, as torch.optim.Adam keeps it.
class Adam {
 public:
  explicit Adam(double rate) : rate_(rate) {}
  void Step(const Values& gradients, Values& parameters) {
    for (const auto& [name, g] : gradients) {
      Numbers& m = m_[name];
      Numbers& v = v_[name];
      m.resize(g.size());
      v.resize(g.size());
      const int t = ++steps_[name];
      for (size_t i = 0; i < g.size(); ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        parameters[name][i] -= rate_ * (m[i] / (1 - std::pow(0.9, t))) /
                               (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      }
    }
  }

 private:
  double rate_;
  std::map<std::string, int> steps_;
  Values m_, v_;
};

TEST(L1Updates, AdamCountsTheStepsThatItsOwnStateHasSeen) {
  Training training(Alone("adam(lr: 0.01)", "a(steps: 3, frozen: [linear1]), b(steps: 4)"));
  Values expected = training.Parameters();
  Adam adam(0.01);
  for (int step = 0; step < 7; ++step) {
    const Values before = training.Parameters();
    const Values gradients = training.Step(step < 3 ? "train" : "train_2");
    EXPECT_EQ(gradients.size(), step < 3 ? 2u : 4u);
    adam.Step(gradients, expected);
    ExpectNear(training.Parameters(), expected);
    if (step != 3) continue;
    // Adam's first step moves each number by the learning rate, whatever came before.
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(std::abs(training.State("linear1_weight")[i] - before.at("linear1_weight")[i]),
                  0.01, 1e-5);
    }
  }
}

TEST(L1Updates, AdamAfterAnotherUpdateBeginsAtItsFirstStep) {
  Training training(Alone("adam(lr: 0.01)",
                          "a(steps: 5, update: sgd(lr: 0.1)), b(steps: 3), "
                          "c(steps: 2, update: sgd(lr: 0.1)), e(steps: 2)"));
  Values expected = training.Parameters();
  Adam adam(0.01);
  for (int step = 0; step < 12; ++step) {
    const bool sgd = step < 5 || (step >= 8 && step < 10);
    const Values gradients = training.Step(sgd ? "train" : "train_2");
    if (sgd) {
      for (auto& [name, numbers] : expected) {
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= 0.1 * gradients.at(name)[i];
      }
    } else {
      adam.Step(gradients, expected);
    }
    ExpectNear(training.Parameters(), expected);
  }
}

// Lion and Adam both keep an m, of which neither is the other's.
TEST(L1Updates, UpdatesOfDifferentKindsKeepStateApart) {
  Training training(Alone("adam(lr: 0.01)", "a(steps: 3, update: lion(lr: 0.01)), b(steps: 3)"));
  for (int step = 0; step < 3; ++step) training.Step("train");
  Values expected = training.Parameters();
  Adam adam(0.01);
  for (int step = 0; step < 3; ++step) {
    adam.Step(training.Step("train_2"), expected);
    ExpectNear(training.Parameters(), expected);
  }
}

// The one phase that there is says how it updates.
TEST(L1Updates, APhaseAloneUpdatesAsItSays) {
  Training training(
      Alone("adam(lr: 0.01)", "a(steps: 2, frozen: [linear1], update: sgd(lr: 0.1))"));
  Values expected = training.Parameters();
  for (int step = 0; step < 2; ++step) {
    for (const auto& [name, g] : training.Step("train")) {
      for (size_t i = 0; i < g.size(); ++i) expected[name][i] -= 0.1 * g[i];
    }
    ExpectNear(training.Parameters(), expected);
  }
}

// e ← 0.9e + 0.1p after every step, of everything, frozen or not; evaluation reads e/(1 − 0.9ᵗ).
TEST(L1Updates, EvaluationReadsTheMeansOfFrozenLayersToo) {
  for (const std::string phases : {"a(steps: 3, frozen: [linear1]), b(steps: 2)",
                                   "a(steps: 2), b(steps: 3, frozen: [linear2])"}) {
    Training training(Alone("ema(decay: 0.9, inner: sgd(lr: 0.3))", phases));
    const int first = phases[9] - '0';
    Values mean;
    double weight = 0;
    for (int step = 0; step < 5; ++step) {
      training.Step(step < first ? "train" : "train_2");
      for (const auto& [name, numbers] : training.Parameters()) {
        mean[name].resize(numbers.size());
        for (size_t i = 0; i < numbers.size(); ++i) {
          mean[name][i] = 0.9 * mean[name][i] + 0.1 * numbers[i];
        }
      }
      weight = 0.9 * weight + 0.1;
      const double found = training.Evaluate(99);
      // The same network without a mean.
      Training plain(Alone("sgd(lr: 0.3)", "a(steps: 5)"));
      Values read = mean;
      for (auto& [name, numbers] : read) {
        for (double& v : numbers) v /= weight;
      }
      plain.Set(read);
      EXPECT_NEAR(found, plain.Evaluate(99), 1e-6) << phases << " " << step;
    }
  }
}

// Two turns update the model twice in every step, so its schedule is twice as long.
TEST(L1Updates, AScheduleEndsWithTheLastUpdateOfTheLastStep) {
  const std::string text = Alone("schedule(decay: linear, inner: sgd(lr: 0.2))", "a(steps: 4)",
                                 "goal: alternate([minimize(l), minimize(l)])\n");
  EXPECT_NE(PrintProgram(LowerText(text)).find("8.0"), std::string::npos);
  Training training(text);
  for (int step = 0; step < 4; ++step) {
    const Values before = training.Parameters();
    training.Step("train");
    EXPECT_NE(training.Parameters(), before) << step;
  }
  // Beyond the end the rate is zero.
  const Values after = training.Parameters();
  training.Step("train");
  EXPECT_EQ(training.Parameters(), after);
}

std::string Pair(const std::string& first, const std::string& second, const std::string& update,
                 const std::string& goal) {
  return kData + Model("a", "d.x") + Model("b", "a.out") + Loss("la", "a") + Loss("lb", "b") +
         goal + Methods("a", first, update) + Methods("b", second, update);
}

TEST(L1Updates, TwoModelsAreEvaluatedByTheirOwnMeans) {
  const std::string goal =
      "goal: alternate([minimize(la, models: [a]), minimize(lb, models: [b])])\n";
  const Program program =
      LowerText(Pair("linear(2, 1)", "linear(1, 1)", "ema(decay: 0.5, inner: sgd(lr: 0.1))", goal));
  const Program plain = LowerText(Pair("linear(2, 1)", "linear(1, 1)", "sgd(lr: 0.1)", goal));
  Interpreter training(program, 1, tensor::Precision::kOracle);
  Interpreter reference(plain, 1, tensor::Precision::kOracle);
  const std::vector<std::pair<std::string, std::string>> state = {{"a_state", "a_linear1_weight"},
                                                                  {"a_state", "a_linear1_bias"},
                                                                  {"b_state", "b_linear1_weight"},
                                                                  {"b_state", "b_linear1_bias"}};
  std::map<std::string, Numbers> mean;
  double weight = 0;
  for (uint64_t step = 0; step < 3; ++step) {
    training.Run(*FindPipeline(program, "train"), Batch(step));
    weight = 0.5 * weight + 0.5;
    for (const auto& [actor, name] : state) {
      Array own = training.State(actor, name);
      Numbers& sum = mean[name];
      sum.resize(own.floats.size());
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] = 0.5 * sum[i] + 0.5 * own.floats[i];
        own.floats[i] = sum[i] / weight;
      }
      reference.SetState(actor, name, own);
    }
    const auto found = training.Run(*FindPipeline(program, "test"), Batch(50));
    const auto expected = reference.Run(*FindPipeline(plain, "test"), Batch(50));
    for (const std::string name : {"loss_sum", "lb_loss_sum"}) {
      EXPECT_NEAR(found.at(name).floats[0], expected.at(name).floats[0], 1e-6) << name << step;
    }
  }
}

// What is not updated counts no steps: its dropout goes by those of what is.
TEST(L1Updates, DropoutOfAModelThatIsNotUpdatedDrawsAnewInEveryStep) {
  const Program program =
      LowerText(Pair("sequential [ dropout(0.5), linear(2, 1) ]", "linear(1, 1)", "sgd(lr: 0.0)",
                     "goal: alternate([minimize(lb, models: [b]), minimize(lb, models: [b])])\n"));
  Interpreter training(program, 1);
  std::set<double> losses;
  for (int step = 0; step < 8; ++step) {
    const auto found = training.Run(*FindPipeline(program, "train"), Batch(7));
    losses.insert(found.at("loss_sum").floats[0]);
  }
  EXPECT_GT(losses.size(), 3u);
}

// A curriculum counts steps, not updates.
TEST(L1Updates, ACurriculumLastsAsLongWithTwoTurns) {
  std::string text =
      Alone("sgd(lr: 0.0)", "a(steps: 4)", "goal: alternate([minimize(l), minimize(l)])\n");
  const std::string plain = "epoch_shuffle(batch: 4)";
  text.replace(text.find(plain), plain.size(),
               "curriculum([{ filter: max(d.x) < -100, duration: 2 }], batch: 4)");
  Training training(text);
  for (int step = 0; step < 4; ++step) {
    training.Step("train");
    EXPECT_EQ(training.results().at("loss_sum").floats[0] == 0, step < 2) << step;
  }
}

TEST(L1Updates, PhasesWithMessagesOfTheirOwnAreCarriedToAGpuToo) {
  const System system = ParseText(
                            "system box {\n"
                            "    node ssd_0 { kind: storage }\n"
                            "    node ram_0 { kind: memory, capacity: 32GB }\n"
                            "    node cpu_0 { kind: compute, isa: x86_64, cores: 1 }\n"
                            "    node gpu_0 { kind: compute, isa: cuda, vram: 24GB, sm: 84 }\n"
                            "    edges {\n"
                            "        ssd_0 -> ram_0 : bandwidth 2GB/s\n"
                            "        ram_0 <-> cpu_0 : bandwidth 50GB/s\n"
                            "        cpu_0 <-> gpu_0 : bandwidth 32GB/s\n"
                            "    }\n"
                            "}\n")
                            ->system;
  std::string text = Alone("sgd(lr: 0.1)", "a(steps: 3, frozen: [linear1]), b(steps: 3)");
  // Large enough to be worth a GPU.
  const std::string small = kNetwork;
  text.replace(text.find(small), small.size(),
               "sequential [ linear(2, 4096), tanh, linear(4096, 4096), tanh, linear(4096, 1) ]");
  text.replace(text.find("batch: 4"), 8, "batch: 40");
  const Program program = LowerText(text, system);
  ASSERT_NE(FindStage(program, "load_train_2"), nullptr);
  ASSERT_NE(FindStage(program, "transfer_train_2"), nullptr);
  EXPECT_EQ(FindStage(program, "load_train_2")->body.back().target, "transfer_train_2");
}

}  // namespace
}  // namespace l3c::l1
