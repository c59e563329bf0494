// Parsing and printing of L2: the documentation's text is canonical, and canonical text is stable.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>

#include "layers/l2/infer.h"
#include "layers/l2/layers.h"
#include "layers/l2/methods.h"
#include "layers/l2/updates.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using testing::Errors;
using testing::kMnistMethods;
using testing::kMnistSpec;
using testing::Read;
using testing::RegressionSpec;

std::string Mnist(std::string_view methods = kMnistMethods) {
  return "# l3c l2 v1\n\n" + std::string(kMnistSpec) + std::string(methods);
}

TEST(L2Text, PrintsTheTraceOfTheDocumentationAsItIsWritten) {
  EXPECT_EQ(PrintModule(Read(Mnist())), Mnist());
}

TEST(L2Text, ReadsTheTraceWithoutHeaderAndWithComments) {
  const std::string text =
      "// a file\n" + std::string(kMnistSpec) + "# more\n" + std::string(kMnistMethods);
  EXPECT_EQ(PrintModule(Read(text)), Mnist());
}

TEST(L2Text, HoldsWhatTheTraceSays) {
  const Module module = Read(Mnist());
  const Methods& m = module.methods.at(0);
  EXPECT_EQ(BatchOf(m.sample), 128);
  EXPECT_FALSE(DropsLast(m.sample));
  ASSERT_EQ(m.infer.nodes.size(), 9u);
  EXPECT_EQ(m.infer.nodes[1].name, "linear1");
  EXPECT_EQ(m.infer.nodes[7].name, "linear3");
  EXPECT_EQ(m.infer.nodes[8].name, "softmax1");
  EXPECT_EQ(m.infer.nodes[8].shape, Shape{10});
  EXPECT_EQ(Depth(m.infer), 3);
  EXPECT_EQ(ParameterCount(m.infer), 784 * 256 + 256 + 512 + 256 * 256 + 256 + 512 + 2570);
  const auto chain = UpdateChain(m.update);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0]->name, "schedule");
  EXPECT_EQ(chain[1]->Real(0), 3e-4);
  EXPECT_EQ(chain[1]->Real(2), 0.999);
  ASSERT_EQ(m.losses.size(), 1u);
  EXPECT_EQ(m.losses[0].term, "ce");
  EXPECT_EQ(m.losses[0].form.name, "ce");
  ASSERT_EQ(m.phases.size(), 1u);
  EXPECT_EQ(m.phases[0].epochs, 10);
}

TEST(L2Text, EveryLineRoundTrips) {
  std::string text = Mnist(R"(
methods for classify {
    sample:   epoch_shuffle(batch: 32, drop_last: true)

    infer: sequential [
        linear(784, 64), relu,
        residual [
            sequential [
                linear(64, 64), norm(rms), silu,
                linear(64, 64)
            ],
            sequential [
                linear(64, 64), swish
            ]
        ],
        norm(layer),
        #[l1::on(gpu_1)]
        linear(64, 10), softmax
    ]

    backward: autodiff(mode: reverse)
    update:   gradient_clip(max_norm: 1.0,
                            inner: schedule(warmup: 10, decay: linear,
                                            inner: sgd(lr: 0.1, momentum: 0.9)))
    loss:     ce(label_smoothing: 0.1)
    seed:     7

    phases [
        main(epochs: 3, eval: 0, checkpoint: 2),
        more(epochs: 3, checkpoint: 0),
        last(steps: 500)
    ]
}
)");
  text.replace(text.find("depth(3)"), 8, "depth(5)");
  EXPECT_EQ(PrintModule(Read(text)), text);
}

TEST(L2Text, OtherSpellingsBecomeCanonical) {
  const std::string spelled = Mnist(R"(
methods for classify { update: schedule(inner: adam(beta1: 0.9, lr: 0.0003), decay: cosine, warmup: 1K)
  infer: sequential([linear(in: 784, 256), norm(kind: layer), act(gelu), linear(256, 256),
    norm(layer), act(fn: gelu), linear(256, 10), softmax])
  backward: autodiff(mode: reverse) sample: epoch_shuffle(batch: 128, drop_last: false), }
)");
  // A comma after a line is no part of the language.
  EXPECT_NE(Errors(spelled), "");
  std::string fixed = spelled;
  fixed.replace(fixed.find("false), }"), 9, "false) }");
  EXPECT_EQ(PrintModule(Read(fixed)), Mnist());
}

TEST(L2Text, ASingleLayerIsANetwork) {
  const std::string text = "# l3c l2 v1\n\n" + RegressionSpec(R"(
methods for m {
    sample:   epoch_shuffle(batch: 4)

    infer: linear(4, 1)

    backward: autodiff(mode: reverse)
    update:   sgd(lr: 0.1)
    loss:     mae
}
)");
  EXPECT_EQ(PrintModule(Read(text)), text);
}

TEST(L2Text, ALayerAddedByATestWorksEverywhere) {
  LayerEntry cube;
  cube.form = {"test_cube", {}, "x cubed"};
  cube.is_activation = true;
  cube.shape = [](const Form&, std::span<const Shape> operands, std::string*) {
    return std::optional<Shape>(operands[0]);
  };
  cube.expand = [](tensor::Graph& g, const Form&, std::span<const tensor::NodeId> operands,
                   std::span<const tensor::NodeId>) {
    return g.Binary(tensor::Op::kMul, operands[0],
                    g.Binary(tensor::Op::kMul, operands[0], operands[0]));
  };
  RegisterLayer(cube);
  EXPECT_THROW(RegisterLayer(cube), std::invalid_argument);
  const std::string text = "# l3c l2 v1\n\n" + RegressionSpec(R"(
methods for m {
    sample:   epoch_shuffle(batch: 4)

    infer: sequential [
        linear(4, 8), test_cube,
        linear(8, 1)
    ]

    backward: autodiff(mode: reverse)
    update:   sgd(lr: 0.1)
}
)");
  EXPECT_EQ(PrintModule(Read(text)), text);
}

TEST(L2Text, DeepNestingAndGarbageAreErrorsNotCrashes) {
  std::string nested = "methods for classify { infer: ";
  for (int i = 0; i < 10000; ++i) nested += "sequential [";
  EXPECT_NE(Errors(Mnist(nested)), "");
  std::string updates = "methods for classify { update: ";
  for (int i = 0; i < 10000; ++i) updates += "schedule(inner: ";
  EXPECT_NE(Errors(Mnist(updates)), "");
  EXPECT_NE(Errors(Mnist("methods for classify { loss: [[[[ }")), "");
  EXPECT_NE(Errors(Mnist("methods for")), "");
  EXPECT_NE(Errors(Mnist("methods for classify {")), "");
}

// Pieces cut, doubled and swapped: whatever is accepted prints to text that reads back the same.
TEST(L2Text, MutatedTextIsRefusedOrRoundTrips) {
  std::mt19937 random(5);
  const std::string base = Mnist();
  const size_t body = base.find("methods");
  int accepted = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = base;
    for (int edit = 0; edit < 1 + trial % 3; ++edit) {
      const size_t at = body + random() % (text.size() - body);
      const size_t length = 1 + random() % 12;
      switch (random() % 3) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, text.substr(body + random() % (text.size() - body), length));
          break;
        default:
          text[at] = "0123456789()[]{},:x#/\"\n -"[random() % 26];
      }
      if (text.size() <= body) text = base;
    }
    support::SourceFile source("fuzz.l2", text);
    support::Diagnostics diagnostics(&source);
    const auto module = ParseModule(source, diagnostics);
    EXPECT_EQ(module.has_value(), !diagnostics.has_errors()) << text;
    if (!module) continue;
    Verify(*module, diagnostics);
    ++accepted;
    const std::string printed = PrintModule(*module);
    support::SourceFile again_source("again.l2", printed);
    support::Diagnostics again_diagnostics(&again_source);
    const auto again = ParseModule(again_source, again_diagnostics);
    ASSERT_TRUE(again.has_value()) << text << again_diagnostics.Render(false);
    EXPECT_EQ(PrintModule(*again), printed);
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace l3c::l2
