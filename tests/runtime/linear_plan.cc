#include "tests/runtime/linear_plan.h"

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "layers/l0/control_build.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "layers/support/units.h"
#include "layers/tensor/philox.h"

namespace l3c::runtime::testing {
namespace {

constexpr char kKernels[] = R"(
kernel predict(x: in f32 [8, 4], w: in f32 [4], b: in f32 [1], p: out f32 [8]) {
    axis i : grid 8 block 2
    axis j : reduce 4
    %0 = load x[4*i + j]
    %1 = load w[j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over j
    %4 = load b[0]
    %5 = add %3, %4
    store p[i], %5
}

kernel error(p: in f32 [8], y: in f32 [8], m: in f32 [8], e: out f32 [8]) {
    axis i : grid 8 block 1
    %0 = load p[i]
    %1 = load y[i]
    %2 = neg %1
    %3 = add %0, %2
    %4 = load m[i]
    %5 = mul %3, %4
    store e[i], %5
}

kernel loss(e: in f32 [8], m: in f32 [8], l: out f32 [1], n: out f32 [1]) {
    axis i : reduce 8
    %0 = load e[i]
    %1 = mul %0, %0
    %2 = reduce_add %1 over i
    %3 = load m[i]
    %4 = reduce_add %3 over i
    store l[0], %2
    store n[0], %4
}

kernel update_w(x: in f32 [8, 4], e: in f32 [8], n: in f32 [1], w: inout f32 [4],
                v: inout f32 [4]) {
    axis j : grid 4 block 1
    axis i : reduce 8
    %0 = load x[j + 4*i]
    %1 = load e[i]
    %2 = mul %0, %1
    %3 = reduce_add %2 over i
    %4 = load n[0]
    %5 = reciprocal %4
    %6 = mul %3, %5
    %7 = const f32 0.9
    %8 = load v[j]
    %9 = mul %7, %8
    %10 = add %9, %6
    store v[j], %10
    %11 = const f32 -0.05
    %12 = mul %11, %10
    %13 = load w[j]
    %14 = add %13, %12
    store w[j], %14
}

kernel update_b(e: in f32 [8], n: in f32 [1], b: inout f32 [1], v: inout f32 [1]) {
    axis i : reduce 8
    %0 = load e[i]
    %1 = reduce_add %0 over i
    %2 = load n[0]
    %3 = reciprocal %2
    %4 = mul %1, %3
    %5 = const f32 0.9
    %6 = load v[0]
    %7 = mul %5, %6
    %8 = add %7, %4
    store v[0], %8
    %9 = const f32 -0.05
    %10 = mul %9, %8
    %11 = load b[0]
    %12 = add %11, %10
    store b[0], %12
}
)";

}  // namespace

std::string LinearText(const std::string& folder, const LinearOptions& options) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  std::string buffers, tokens, sequences, loaders;
  for (int k = 0; k < options.depth; ++k) {
    const std::string n = number(k);
    const std::string loader = options.depth == 1 ? "loader" : "loader_" + n;
    loaders += loader + " : loader on cpu_0\n";
    buffers += "x_" + n + " : f32 [8, 4] in staging at " + number(256 * k) + " size 128\n";
    buffers += "y_" + n + " : f32 [8, 1] in staging at " + number(256 * k + 128) + " size 32\n";
    buffers += "m_" + n + " : f32 [8] in staging at " + number(256 * k + 192) + " size 32\n";
    tokens += "free_" + n + " : 1\nready_" + n + " : 0\n";
    for (const std::string what : {"train", "test"}) {
      sequences += "sequence load_" + what + "_" + n + " on " + loader + " {\nwait free_" + n +
                   "\nload " + what + " { x -> x_" + n + ", y -> y_" + n + " } mask m_" + n +
                   "\nsignal ready_" + n + "\n}\n";
      sequences += "sequence " + what + "_" + n + " on compute_0 {\nwait ready_" + n +
                   "\nlaunch predict(x_" + n + ", w, b -> p)\nlaunch error(p, y_" + n + ", m_" + n +
                   " -> e)\nlaunch loss(e, m_" + n + " -> l, n)\n";
      if (what == "train") {
        sequences += "launch update_w(x_" + n + ", e, n -> w, v_w)\n";
        sequences += "launch update_b(e, n -> b, v_b)\n";
      }
      sequences += "signal free_" + n + "\nreport " + what + " { squares: l, rows: n }\n}\n";
    }
  }
  const std::string drop = options.drop_last ? "true" : "false";
  const std::string sampling = options.shuffle
                                   ? "epoch_shuffle(batch: 8, drop_last: " + drop + "), seed 7"
                                   : "sequential(batch: 8, drop_last: " + drop + ")";
  std::string phases;
  for (int p = 0; p < options.phases; ++p) {
    phases += "fit_" + number(p) + " : " +
              number((options.steps + options.steps_per_epoch - 1) / options.steps_per_epoch) +
              " epochs, " + number(options.steps) + " steps, batch 8\n";
  }
  return "# l3c l0 v1\nplan linear\n"
         "pools {\n"
         "state : persistent on ram_0, 256B of 1MB\n"
         "scratch : arena on ram_0, 256B of 1MB\n"
         "staging : staging on ram_0, " +
         number(256 * options.depth) +
         "B of 1MB\n}\n"
         "buffers {\n"
         "w : f32 [4] in state at 0 size 16\n"
         "b : f32 [1] in state at 64 size 4\n"
         "v_w : f32 [4] in state at 128 size 16\n"
         "v_b : f32 [1] in state at 192 size 4\n"
         "p : f32 [8] in scratch at 0 size 32 live 1..2\n"
         "e : f32 [8] in scratch at 64 size 32 live 2..5\n"
         "l : f32 [1] in scratch at 0 size 4 live 3..7\n"
         "n : f32 [] in scratch at 128 size 4 live 3..7\n" +
         buffers +
         "}\n"
         "parameters { w, b }\noptimiser_state { v_w, v_b }\n"
         "init {\nw = normal(0.0, 0.5), seed 3, key 11\nb = zeros\nv_w = zeros\n"
         "v_b = constant(0.0)\n}\n"
         "source points at " +
         support::Quote(folder) +
         " {\nx : f32 [4]\ny : f32 [1]\n}\n"
         "samplers {\n"
         "train : points.train " +
         sampling +
         ", samples 20\n"
         "test : points.test sequential(batch: 8, drop_last: false), samples 11\n}\n"
         "streams {\n" +
         loaders +
         "compute_0 : compute on cpu_0\n}\n"
         "tokens {\n" +
         tokens + "}\n" + kKernels + sequences +
         "sequence publish_train on compute_0 {\npublish train\n}\n"
         "sequence publish_test on compute_0 {\npublish test\n}\n"
         "sequence save on compute_0 {\ncheckpoint\ncomplete\n}\n"
         "metrics {\nloss(train) = squares / rows\nloss(test) = squares / rows\n}\n"
         "phases {\n" +
         phases + "}\n";
}

l0::Plan LinearPlan(const std::string& folder, const LinearOptions& options) {
  const support::SourceFile source("linear.l0", LinearText(folder, options));
  support::Diagnostics diagnostics(&source);
  std::optional<l0::Plan> plan = l0::ParsePlan(source, diagnostics);
  if (plan) {
    const auto find = [&](const std::string& name) {
      for (size_t s = 0; s < plan->sequences.size(); ++s) {
        if (plan->sequences[s].name == name) return static_cast<l0::SequenceId>(s);
      }
      std::abort();
    };
    l0::PhaseControl phase;
    phase.steps = options.steps;
    phase.steps_per_epoch = options.steps_per_epoch;
    phase.eval_batches = 2;
    phase.eval_every = options.eval_every;
    phase.checkpoint_every = options.checkpoint_every;
    l0::EvaluationControl evaluation;
    evaluation.batches = 2;
    for (int k = 0; k < options.depth; ++k) {
      const std::string n = std::to_string(k);
      phase.load.push_back(find("load_train_" + n));
      phase.train.push_back(find("train_" + n));
      phase.load_eval.push_back(find("load_test_" + n));
      phase.eval.push_back(find("test_" + n));
    }
    phase.publish_train = find("publish_train");
    phase.publish_test = find("publish_test");
    evaluation.load = phase.load_eval;
    evaluation.eval = phase.eval;
    evaluation.publish = phase.publish_test;
    l0::TrainingControl control;
    control.phases.assign(static_cast<size_t>(options.phases), phase);
    control.checkpoint = find("save");
    plan->control = {l0::BuildTrainingControl(*plan, control),
                     l0::BuildEvaluationControl(*plan, evaluation)};
    l0::VerifyPlan(*plan, diagnostics);
  }
  if (diagnostics.has_errors()) {
    std::cerr << diagnostics.Render(false);
    std::abort();
  }
  return *std::move(plan);
}

LinearData MakeLinearData(const std::string& split) {
  const bool train = split == "train";
  tensor::PhiloxStream random(train ? 100 : 200);
  LinearData data;
  for (int64_t i = 0; i < (train ? kTrainSamples : kTestSamples); ++i) {
    std::vector<float> x;
    float y = 0.25f;
    for (int64_t j = 0; j < kFeatures; ++j) {
      x.push_back(random.NextNormal());
      y += x.back() * static_cast<float>(j + 1) * 0.5f;
    }
    data.x.push_back(std::move(x));
    data.y.push_back(y + 0.01f * random.NextNormal());
  }
  return data;
}

void WriteLinearData(const std::string& folder) {
  for (const std::string split : {"train", "test"}) {
    const LinearData data = MakeLinearData(split);
    std::ofstream x(folder + "/" + split + ".x.csv"), y(folder + "/" + split + ".y.csv");
    for (size_t i = 0; i < data.y.size(); ++i) {
      for (size_t j = 0; j < data.x[i].size(); ++j) {
        x << (j > 0 ? "," : "") << support::PrintReal32(data.x[i][j]);
      }
      x << "\n";
      y << support::PrintReal32(data.y[i]) << "\n";
    }
  }
}

}  // namespace l3c::runtime::testing
