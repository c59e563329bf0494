// Forms of attention and convolution: whichever is taken, the values are the same, and each can be
// had at the cost that was told.
#include "tests/layers/l0/lower/forms.h"

#include <gtest/gtest.h>

#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::Graph;

const search::Decision* Find(const LoweredForTest& lowered, const std::string& id) {
  return lowered.explanation.Find(id);
}

// Both extents of the form run and agree with the interpreter, their plans differ, and the loser
// that is explained is what forcing it gives.
void ExpectBothExtents(const Graph& g, const std::string& id) {
  const auto winner = LowerForTest(g, {.explain = true});
  ASSERT_TRUE(winner);
  const search::Decision* decision = Find(*winner, id);
  ASSERT_NE(decision, nullptr) << id;
  EXPECT_FALSE(decision->rules.empty());
  std::map<std::string, std::string> plans;
  for (const std::string extent : {"everywhere", "nowhere"}) {
    TestOptions options;
    options.forced[id] = extent;
    ExpectSameAsInterpreter(g, options, 5);
    const auto forced = LowerForTest(g, options);
    ASSERT_TRUE(forced);
    plans[extent] = Describe(*forced);
    const search::Decision* taken = Find(*forced, id);
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->chosen, extent);
    EXPECT_TRUE(taken->forced);
    if (extent == decision->chosen) continue;
    ASSERT_FALSE(decision->losers.empty());
    const auto loser = std::find_if(decision->losers.begin(), decision->losers.end(),
                                    [&](const search::Loser& l) { return l.label == extent; });
    ASSERT_NE(loser, decision->losers.end()) << extent;
    EXPECT_DOUBLE_EQ(forced->plan.seconds, loser->cost[0].value) << id << " = " << extent;
  }
  EXPECT_NE(plans["everywhere"], plans["nowhere"]) << id;
  TestOptions wrong;
  wrong.forced[id] = "in part";
  std::string failure;
  EXPECT_FALSE(LowerForTest(g, wrong, &failure));
  EXPECT_NE(failure.find("'everywhere', 'nowhere'"), std::string::npos) << failure;
}

TEST(Forms, OfAttention) {
  const Graph g = LayerAndGradients("attn(2, 8, causal: true)", {2, 6, 8});
  for (const char* form : {"divide-last", "scale-queries", "joined-projections"}) {
    ExpectBothExtents(g, std::string("l0/test/weighted-mean/") + form);
  }
}

TEST(Forms, OfConvolution) {
  ExpectBothExtents(LayerAndGradients("conv(4, 5, kernel: 3, padding: 1)", {2, 4, 5, 4}),
                    "l0/test/convolution/im2col");
  ExpectBothExtents(LayerAndGradients("conv(4, 3, kernel: 3, stride: 2)", {2, 9, 4}),
                    "l0/test/convolution/im2col");
}

// The quotients of a long row are never written: they were as large as the scores.
TEST(Forms, LongRowsAreDividedLast) {
  const Graph g = LayerAndGradients("attn(4, 64)", {16, 128, 64});
  const auto lowered = LowerForTest(g, {.explain = true});
  ASSERT_TRUE(lowered);
  const search::Decision* decision = Find(*lowered, "l0/test/weighted-mean/divide-last");
  ASSERT_NE(decision, nullptr);
  EXPECT_EQ(decision->chosen, "everywhere");
  ASSERT_FALSE(decision->losers.empty());
  const search::CostVector& difference = decision->losers[0].difference;
  EXPECT_EQ(difference[2].name, "bytes");
  // Written, and read by both products.
  EXPECT_GT(difference[2].value, 16.0 * 4 * 128 * 128 * 4);
}

// A convolution of many small products shares them where that saves launches or passes.
TEST(Forms, ALargeConvolutionLaysItsPatchesDown) {
  const Graph g = LayerAndGradients("conv(8, 16, kernel: 3, padding: 1)", {64, 14, 14, 8});
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  TestOptions direct;
  direct.forced["l0/test/convolution/im2col"] = "nowhere";
  const auto without = LowerForTest(g, direct);
  ASSERT_TRUE(without);
  EXPECT_NE(Find(*lowered, "l0/test/convolution/im2col")->chosen, "nowhere");
  EXPECT_LT(lowered->plan.seconds, without->plan.seconds);
}

// What an algebra rule gave is named in the choice of a single value too.
TEST(Forms, ADefinitionIsNamedByItsRule) {
  const Graph g = LayerAndGradients("attn(2, 8)", {2, 6, 8});
  const auto lowered = LowerForTest(g, {.explain = true});
  ASSERT_TRUE(lowered);
  bool named = false;
  for (const search::Decision& decision : lowered->explanation.decisions) {
    named = named || decision.chosen.ends_with(" by weighted-mean/divide-last");
    for (const search::Loser& loser : decision.losers) {
      named = named || loser.label.ends_with(" by weighted-mean/divide-last");
    }
  }
  EXPECT_TRUE(named);
}

}  // namespace
}  // namespace l3c::l0::lower
