// Choices with a known answer, and the rules behind them.
#include <gtest/gtest.h>

#include "layers/l0/kernel_text.h"
#include "tests/layers/l0/lower/forms.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId Relu(Graph& g, NodeId x, const std::string& name) {
  return g.Add(Op::kMax, {x, g.Full(0, g.node(x).shape)}, {}, name);
}

// A sum over rows of something that needs x whole.
NodeId RowSums(Graph& g, NodeId x) { return g.ReduceSum(x, {1}); }

TEST(Fusion, ReluReadByTwoKernelsIsComputedInBoth) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2048, 1024});
  const NodeId r = Relu(g, x, "r");
  g.AddOutput("a", g.ReduceSum(r, {0, 1}, "a"));
  g.AddOutput("b", g.Add(Op::kSqrt, {g.ReduceSum(g.Add(Op::kMul, {r, r}), {0})}, {}, "b"));
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_TRUE(KernelsStoring(*lowered, "r").empty()) << Describe(*lowered);
}

TEST(Fusion, AnExpensiveValueReadByTenIsStoredOnce) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {4096, 2048});
  NodeId e = x;
  for (int i = 0; i < 6; ++i) e = g.Add(Op::kSin, {e}, {}, "e" + std::to_string(i));
  for (int i = 0; i < 10; ++i) {
    // Ten passes that cannot be one: each needs the result of the one before for every element.
    const NodeId s = g.ReduceSum(g.Add(Op::kMul, {e, g.Full(0.5 + i, {4096, 2048})}), {0, 1});
    g.AddOutput("o" + std::to_string(i), s);
  }
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(KernelsStoring(*lowered, "e5").size(), 1u);
}

TEST(Fusion, ReluAfterMatmulIsItsEpilogue) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {128, 256});
  const NodeId w = g.AddInput("s_w", DType::kF32, {256, 192});
  const NodeId b = g.AddInput("s_b", DType::kF32, {192});
  const NodeId z = g.Add(Op::kAdd, {g.Matmul(x, w, "mm"), g.Expand(b, {128, 192})}, {}, "z");
  const NodeId h = Relu(g, z, "h");
  g.AddOutput("o", g.Matmul(g.Transpose(h), h, "o"));
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  const auto kernels = KernelsStoring(*lowered, "h");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_TRUE(Reads(*lowered, *kernels[0], "s_w"));
  EXPECT_TRUE(Reads(*lowered, *kernels[0], "s_b"));
  EXPECT_TRUE(KernelsStoring(*lowered, "z").empty());
  EXPECT_TRUE(KernelsStoring(*lowered, "mm").empty());
}

// w ← w − lr·(xᵀ·d), with momentum; `clip` puts a global norm between gradient and update.
Graph UpdateGraph(bool clip) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {64, 96});
  const NodeId d = g.AddInput("d", DType::kF32, {64, 128});
  const NodeId w = g.AddInput("s_w", DType::kF32, {96, 128});
  const NodeId m = g.AddInput("s_m", DType::kF32, {96, 128});
  NodeId grad = g.Matmul(g.Transpose(x), d, "grad");
  if (clip) {
    const NodeId norm = g.ReduceSum(g.Add(Op::kMul, {grad, grad}), {0, 1}, "norm");
    const NodeId scale = g.Add(Op::kRecip, {g.Add(Op::kSqrt, {norm})}, {}, "scale");
    grad = g.Add(Op::kMul, {grad, g.Expand(scale, {96, 128})}, {}, "clipped");
  }
  const auto times = [&](NodeId a, double c) { return g.Add(Op::kMul, {a, g.Full(c, {96, 128})}); };
  const NodeId m2 = g.Add(Op::kAdd, {times(m, 0.9), grad}, {}, "m2");
  const NodeId w2 = g.Add(Op::kAdd, {w, times(m2, -0.01)}, {}, "w2");
  g.AddOutput("s_w", w2);
  g.AddOutput("s_m", m2);
  return g;
}

TEST(Fusion, UpdateRunsInTheGradientsEpilogue) {
  const Graph g = UpdateGraph(false);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_TRUE(KernelsStoring(*lowered, "grad").empty()) << Describe(*lowered);
  ASSERT_EQ(lowered->plan.launches.size(), 1u) << Describe(*lowered);
  EXPECT_EQ(KernelsStoring(*lowered, "w2").size(), 1u);
  EXPECT_EQ(KernelsStoring(*lowered, "m2").size(), 1u);
  EXPECT_TRUE(lowered->plan.copies.empty());
  ExpectSameAsInterpreter(g, {}, 3);
}

TEST(Fusion, AGlobalNormKeepsTheUpdateOutOfTheGradientsKernel) {
  const Graph g = UpdateGraph(true);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(KernelsStoring(*lowered, "grad").size(), 1u) << Describe(*lowered);
  const auto update = KernelsStoring(*lowered, "w2");
  ASSERT_EQ(update.size(), 1u);
  EXPECT_TRUE(Reads(*lowered, *update[0], "grad"));
  ExpectSameAsInterpreter(g, {}, 4);
}

TEST(Fusion, StateReadAtOtherElementsIsCopiedBack) {
  Graph g;
  const NodeId w = g.AddInput("s_w", DType::kF32, {8, 8});
  g.AddOutput("s_w", g.Add(Op::kAdd, {w, g.Transpose(w)}, {}, "w2"));
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.copies.size(), 1u);
  ExpectSameAsInterpreter(g, {}, 5);
}

TEST(Fusion, StatesThatReadOneAnotherAreExchanged) {
  Graph g;
  const NodeId a = g.AddInput("s_a", DType::kF32, {6});
  const NodeId b = g.AddInput("s_b", DType::kF32, {6});
  g.AddOutput("s_a", g.Add(Op::kMul, {b, g.Full(2, {6})}));
  g.AddOutput("s_b", g.Add(Op::kMul, {a, g.Full(3, {6})}));
  for (search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy, search::Mode::kEGraph}) {
    ExpectSameAsInterpreter(g, {.mode = mode}, 6);
  }
}

// Σ of `count` sums over rows, each of a long expression of its own: a recurrence's bias gradient.
Graph SumOfSums(int count, int depth) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {4, 8});
  std::optional<NodeId> sum;
  for (int i = 0; i < count; ++i) {
    NodeId e = g.Add(Op::kMul, {x, g.Full(0.01 * (i + 1), {4, 8})});
    for (int k = 0; k < depth; ++k) {
      e = g.Add(Op::kSin, {g.Add(Op::kAdd, {e, g.Full(0.1 * (i + k), {4, 8})})});
    }
    const NodeId part = g.ReduceSum(e, {0});
    sum = sum ? g.Add(Op::kAdd, {*sum, part}) : part;
  }
  g.AddOutput("o", *sum);
  return g;
}

TEST(Fusion, MoreIsSummedThanAKernelMayCompute) {
  ExpectSameAsInterpreter(SumOfSums(24, 12), {}, 3);
}

TEST(Fusion, AChainTooLongForOneKernelIsCut) {
  ExpectSameAsInterpreter(SumOfSums(200, 0), {}, 3);
  Graph g;
  NodeId e = g.AddInput("x", DType::kF32, {8});
  for (int k = 0; k < 500; ++k) {
    e = g.Add(Op::kSin, {g.Add(Op::kAdd, {e, g.Full(0.001 * k, {8})})});
  }
  g.AddOutput("o", e);
  ExpectSameAsInterpreter(g, {}, 3);
}

// Seen through a reshape and a flip, an element of the product lies at 1 - i: no place in [1, 2].
TEST(Fusion, AViewThatNoKernelCanComputeThroughIsCut) {
  Graph g;
  const NodeId x = g.AddInput("x", tensor::DType::kF32, {1, 2});
  const NodeId scaled = g.Add(Op::kMul, {x, g.Full(0.01, {1, 2})});
  tensor::Attributes flip;
  flip.ints = {0};
  const NodeId turned = g.Add(Op::kFlip, {g.Reshape(scaled, {2})}, flip);
  g.AddOutput("sum", g.ReduceSum(turned, {0}));
  g.AddOutput("turned", turned);
  for (search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy, search::Mode::kEGraph}) {
    ExpectSameAsInterpreter(g, {.mode = mode}, 3);
  }
}

TEST(Fusion, SwappedStatesAreCopied) {
  Graph g;
  const NodeId a = g.AddInput("s_a", DType::kF32, {6});
  const NodeId b = g.AddInput("s_b", DType::kF32, {6});
  g.AddOutput("s_a", b);
  g.AddOutput("s_b", a);
  ExpectSameAsInterpreter(g, {}, 6);
}

TEST(Fusion, SoftmaxRowsAreOneKernel) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {128, 40});
  const auto rows = [&](NodeId r) { return g.Expand(g.Reshape(r, {128, 1}), {128, 40}); };
  const NodeId top = g.ReduceMax(x, {1}, "top");
  const NodeId e = g.Add(Op::kExp2, {g.Add(Op::kAdd, {x, g.Add(Op::kNeg, {rows(top)})})}, {}, "e");
  const NodeId sum = g.ReduceSum(e, {1}, "sum");
  const NodeId y = g.Add(Op::kMul, {e, g.Add(Op::kRecip, {rows(sum)})}, {}, "y");
  g.AddOutput("y", y);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.launches.size(), 1u) << Describe(*lowered);
  ExpectSameAsInterpreter(g, {}, 8);
}

TEST(Fusion, AnOpOfTheTestsOwnFuses) {
  static const Op twice_plus =
      tensor::RegisterDerived("lower_test_twice_plus", 2, "2a + b",
                              [](Graph& g, std::span<const NodeId> in, const tensor::Attributes&) {
                                return g.Add(Op::kAdd, {g.Add(Op::kAdd, {in[0], in[0]}), in[1]});
                              });
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {16, 32});
  const NodeId w = g.AddInput("s_w", DType::kF32, {32, 48});
  const NodeId c = g.AddInput("c", DType::kF32, {16, 48});
  g.AddOutput("y", g.Add(twice_plus, {g.Matmul(x, w), c}, {}, "y"));
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.launches.size(), 1u);
  ExpectSameAsInterpreter(g, {}, 9);
}

// A sparse matrix by its entries (row, column, value), times a dense one. Its product, and what its
// gradient needs, are a kernel each: no entry's row of the dense factor is kept.
TEST(Fusion, ASparseProductIsAKernel) {
  constexpr int64_t kEntries = 90, kRows = 12, kInner = 10, kColumns = 16;
  const auto scaled = [&](Graph& g, NodeId entries, NodeId values) {
    return g.Binary(Op::kMul, entries,
                    g.Expand(g.Reshape(values, {kEntries, 1}), {kEntries, kColumns}));
  };
  const auto sums = [&](Graph& g, NodeId at, NodeId terms, int64_t rows, const std::string& name) {
    tensor::Attributes shape;
    shape.ints = {rows, kColumns};
    return g.Add(Op::kScatterAdd, {at, terms}, shape, name);
  };
  Graph g;
  const NodeId row = g.AddInput("row", DType::kI32, {kEntries});
  const NodeId column = g.AddInput("column", DType::kI32, {kEntries});
  const NodeId values = g.AddInput("values", DType::kF32, {kEntries});
  const NodeId x = g.AddInput("x", DType::kF32, {kInner, kColumns});
  const NodeId terms = scaled(g, g.Add(Op::kGather, {x, column}, {}, "terms"), values);
  g.AddOutput("y", sums(g, row, terms, kRows, "y"));
  // The gradient of Σ y·d.
  const NodeId d = g.AddInput("d", DType::kF32, {kRows, kColumns});
  const NodeId of_terms = g.Add(Op::kGather, {d, row}, {}, "of_terms");
  g.AddOutput("dx", sums(g, column, scaled(g, of_terms, values), kInner, "dx"));
  const NodeId of_x = g.Add(Op::kGather, {x, column});
  g.AddOutput("dvalues", g.ReduceSum(g.Binary(Op::kMul, of_x, of_terms), {1}, "dvalues"));
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.launches.size(), 3u) << Describe(*lowered);
  for (uint64_t seed : {1, 2, 3}) ExpectSameAsInterpreter(g, {}, seed);
}

TEST(Fusion, ATransposeIsALoadPatternOnASmallMatrix) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {24, 24});
  g.AddOutput("y", g.Add(Op::kAdd, {x, g.Transpose(x)}, {}, "y"));
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.launches.size(), 1u);
  ExpectSameAsInterpreter(g, {}, 10);
}

TEST(Fusion, ReshapedAndTransposedHeadsNeedNoCopy) {
  // [tokens, heads·width] → [heads, tokens, width], as attention takes it apart.
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {10, 12});
  const NodeId heads = g.Permute(g.Reshape(x, {10, 3, 4}), {1, 0, 2});
  const NodeId scores = g.Matmul(heads, g.Transpose(heads), "scores");
  g.AddOutput("y", g.ReduceSum(scores, {2}));
  g.AddOutput("z", g.Reshape(g.Permute(g.Add(Op::kSin, {heads}), {1, 0, 2}), {10, 12}));
  for (search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy, search::Mode::kEGraph}) {
    ExpectSameAsInterpreter(g, {.mode = mode}, 11);
  }
}

// A scalar kernel's worth of everything: a reduction to report, a row pass, a transposed factor.
Graph Mixed() {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2048, 512});
  const NodeId w = g.AddInput("s_w", DType::kF32, {512, 512});
  const NodeId h = Relu(g, g.Matmul(x, g.Transpose(w), "z"), "h");
  const NodeId total = g.ReduceSum(g.Add(Op::kMul, {w, w}), {0, 1}, "total");
  g.AddOutput("total", total);
  g.AddOutput("rows", RowSums(g, g.Add(Op::kSin, {h})));
  g.AddOutput("s_w", g.Add(Op::kAdd, {w, g.Matmul(g.Transpose(h), x)}, {}, "w2"));
  return g;
}

TEST(Rules, WithoutAnyOneFileThePlanChangesOrFails) {
  const std::map<std::string, Graph> of_its_own = {
      {"weighted_mean", LayerAndGradients("attn(4, 64)", {16, 128, 64})},
      {"convolution", LayerAndGradients("conv(8, 16, kernel: 3, padding: 1)", {64, 14, 14, 8})}};
  for (const auto& [name, source] : EmbeddedRules()) {
    // It decides when the kernels are known: RecomputeTest.WithoutTheRulesNothingIsKept.
    if (name == "checkpointing") continue;
    const auto own = of_its_own.find(name);
    const Graph g = own == of_its_own.end() ? Mixed() : own->second;
    TestOptions options;
    if (name == "bf16") options.numerics = egraph::Numerics::kFast;
    const auto whole = LowerForTest(g, options);
    ASSERT_TRUE(whole);
    options.rules.erase(name);
    std::string failure;
    const auto without = LowerForTest(g, options, &failure);
    if (without) {
      EXPECT_NE(Describe(*without), Describe(*whole)) << name << " makes no difference";
    } else {
      EXPECT_FALSE(failure.empty());
    }
  }
}

TEST(Rules, ForcingALoserGivesItAtTheCostThatWasTold) {
  const Graph g = UpdateGraph(false);
  const auto winner = LowerForTest(g, {.explain = true});
  ASSERT_TRUE(winner);
  int forced = 0;
  for (const search::Decision& decision : winner->explanation.decisions) {
    for (const search::Loser& loser : decision.losers) {
      TestOptions options;
      options.forced[decision.id] = loser.label;
      const auto other = LowerForTest(g, options);
      ASSERT_TRUE(other) << decision.id << " = " << loser.label;
      EXPECT_DOUBLE_EQ(other->plan.seconds, loser.cost[0].value)
          << decision.id << " = " << loser.label;
      const search::Decision* taken = nullptr;
      for (const search::Decision& d : other->explanation.decisions) {
        if (d.id == decision.id) taken = &d;
      }
      ASSERT_NE(taken, nullptr);
      EXPECT_EQ(taken->chosen, loser.label);
      EXPECT_TRUE(taken->forced);
      ++forced;
    }
  }
  EXPECT_GE(forced, 3);
}

TEST(Rules, AnUnknownDecisionIsRefusedWithTheClosest) {
  TestOptions options;
  options.forced["l0/test/h.memry"] = "x";
  std::string failure;
  EXPECT_FALSE(LowerForTest(Mixed(), options, &failure));
  EXPECT_NE(failure.find("l0/test/h.memory"), std::string::npos) << failure;
}

TEST(Fusion, ValuesWithoutElementsAreRefused) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {0, 4});
  g.AddOutput("y", g.Add(Op::kReshape, {g.Add(Op::kSin, {x}, {}, "none")}, {.ints = {4, 0}}));
  std::string failure;
  EXPECT_FALSE(LowerForTest(g, {}, &failure));
  EXPECT_NE(failure.find("no elements"), std::string::npos) << failure;
}

TEST(Rules, TheSameProgramGivesTheSamePlan) {
  const auto first = LowerForTest(Mixed(), {.explain = true});
  const auto second = LowerForTest(Mixed(), {.explain = true});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(Describe(*first), Describe(*second));
  EXPECT_EQ(search::RenderExplanationJson(first->explanation),
            search::RenderExplanationJson(second->explanation));
}

}  // namespace
}  // namespace l3c::l0::lower
