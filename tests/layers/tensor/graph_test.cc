#include "layers/tensor/graph.h"

#include "layers/tensor/text.h"
#include "tests/layers/tensor/testing.h"

namespace l3c::tensor {
namespace {

class ShapeRules : public ::testing::Test {
 protected:
  NodeId In(const std::string& name, Shape shape, DType dtype = DType::kF32) {
    return g.AddInput(name, dtype, std::move(shape));
  }
  std::string Error(std::string_view op, std::vector<NodeId> inputs,
                    std::vector<int64_t> ints = {}) {
    return ErrorOf([&] { Apply(g, op, inputs, ints); });
  }
  Graph g;
};

TEST_F(ShapeRules, ElementwiseOperandsMustBeEqualAndTheMessageSaysTheWayOut) {
  const NodeId x = In("x", {2, 3});
  const NodeId b = In("b", {3});
  const NodeId c = In("c", {2});
  const NodeId n = In("n", {2, 3}, DType::kI32);
  const NodeId p = In("p", {2, 3}, DType::kBool);
  EXPECT_EQ(Error("add", {x, b}),
            "tensor_add(x f32[2, 3], b f32[3]): operands must have equal shapes; write "
            "tensor_broadcast(b, [2, 3]) first");
  EXPECT_EQ(Error("mul", {b, x}),
            "tensor_mul(b f32[3], x f32[2, 3]): operands must have equal shapes; write "
            "tensor_broadcast(b, [2, 3]) first");
  EXPECT_EQ(Error("max", {x, c}),
            "tensor_max(x f32[2, 3], c f32[2]): operands must have equal shapes, got [2, 3] and "
            "[2], and neither broadcasts to the other; reshape or slice one of them first");
  EXPECT_EQ(Error("add", {x, n}),
            "tensor_add(x f32[2, 3], n i32[2, 3]): operands must have the same dtype; write "
            "tensor_cast(n, f32) first");
  EXPECT_EQ(Error("exp2", {n}),
            "tensor_exp2(n i32[2, 3]): needs f32 or f64, got i32; write tensor_cast(n, f32) first");
  EXPECT_EQ(Error("neg", {p}),
            "tensor_neg(p bool[2, 3]): not defined on bool; write tensor_cast(p, f32) first");
  EXPECT_EQ(Error("where", {x, x, x}),
            "tensor_where(x f32[2, 3], x f32[2, 3], x f32[2, 3]): the condition must be bool; "
            "compare with tensor_cmpne or tensor_cmplt first");
  EXPECT_EQ(Error("add", {x}), "tensor_add(x f32[2, 3]): takes 2 operands, got 1");
  EXPECT_EQ(g.node(Apply(g, "cmplt", {n, n})).dtype, DType::kBool);
  EXPECT_EQ(g.node(Apply(g, "where", {p, n, n})).dtype, DType::kI32);
}

TEST_F(ShapeRules, DerivedOpsComplainInTheirOwnName) {
  const NodeId x = In("x", {2, 3});
  const NodeId b = In("b", {3});
  const NodeId n = In("n", {2, 3}, DType::kI32);
  EXPECT_EQ(Error("sub", {x, b}),
            "tensor_sub(x f32[2, 3], b f32[3]): operands must have equal shapes; write "
            "tensor_broadcast(b, [2, 3]) first");
  EXPECT_EQ(Error("scale", {x, b}),
            "tensor_scale(x f32[2, 3], b f32[3]): the second operand must be a scalar; write "
            "tensor_mul for elementwise");
  EXPECT_NE(Error("gelu", {n}).find("tensor_gelu(n i32[2, 3]): needs f32 or f64"),
            std::string::npos);
}

TEST_F(ShapeRules, ReductionsDropTheirAxes) {
  const NodeId x = In("x", {2, 3, 4});
  EXPECT_EQ(g.node(g.ReduceSum(x, {1})).shape, (Shape{2, 4}));
  EXPECT_EQ(g.node(g.ReduceMax(x, {-1, 0})).shape, (Shape{3}));
  EXPECT_EQ(g.node(g.ReduceMax(x, {-1, 0})).attr.ints, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(g.node(Apply(g, "reduce_mean", {x})).shape, (Shape{}));
  EXPECT_EQ(Error("reduce_sum", {x}, {3}),
            "tensor_reduce_sum(x f32[2, 3, 4]): axis 3 is outside 0…2");
  EXPECT_EQ(Error("reduce_sum", {x}, {1, -2}),
            "tensor_reduce_sum(x f32[2, 3, 4]): an axis is named twice in [1, 1]");
  EXPECT_NE(Error("reduce_sum", {x}).find("needs at least one axis"), std::string::npos);
}

TEST_F(ShapeRules, Matmul) {
  const NodeId x = In("x", {128, 784});
  const NodeId w = In("w", {256, 784});
  const NodeId t = In("t", {2, 5, 7});
  const NodeId u = In("u", {3, 7, 4});
  EXPECT_EQ(Error("matmul", {x, w}),
            "tensor_matmul(x f32[128, 784], w f32[256, 784]): the inner extents 784 and 256 "
            "differ; write tensor_transpose(w)");
  EXPECT_EQ(g.node(g.Matmul(x, g.Transpose(w))).shape, (Shape{128, 256}));
  EXPECT_EQ(Error("matmul", {t, u}),
            "tensor_matmul(t f32[2, 5, 7], u f32[3, 7, 4]): the batch extents [2] and [3] must be "
            "equal; tensor_broadcast one operand first");
  EXPECT_NE(Error("matmul", {x, In("v", {784})}).find("needs matrices"), std::string::npos);
}

TEST_F(ShapeRules, Movement) {
  const NodeId x = In("x", {2, 6});
  EXPECT_EQ(g.node(g.Reshape(x, {3, 4})).shape, (Shape{3, 4}));
  EXPECT_EQ(Error("reshape", {x}, {5}),
            "tensor_reshape(x f32[2, 6]): cannot reshape 12 elements to [5], which has 5");
  EXPECT_EQ(Error("permute", {x}, {0, 0}),
            "tensor_permute(x f32[2, 6]): [0, 0] is not a permutation of the 2 axes");
  EXPECT_EQ(g.node(g.Expand(x, {5, 2, 6})).shape, (Shape{5, 2, 6}));
  EXPECT_NE(Error("expand", {x}, {2, 7}).find("[2, 6] does not broadcast to [2, 7]"),
            std::string::npos);
  EXPECT_EQ(g.node(Apply(g, "pad", {x}, {1, 0, 2, 3})).shape, (Shape{3, 11}));
  EXPECT_NE(Error("pad", {x}, {1, -1, 0, 0}).find("padding of axis 0"), std::string::npos);
  EXPECT_EQ(g.node(Apply(g, "slice", {x}, {0, 2, 1, 1, 6, 2})).shape, (Shape{2, 3}));
  EXPECT_EQ(g.node(Apply(g, "slice", {x}, {1, 1, 1, 0, 6, 4})).shape, (Shape{0, 2}));
  EXPECT_NE(Error("slice", {x}, {0, 2, 1, 1, 7, 2}).find("axis 1 needs 0 <= start <= stop <= 6"),
            std::string::npos);
  EXPECT_NE(Error("flip", {x}, {2}).find("axis 2 is outside 0…1"), std::string::npos);
}

TEST_F(ShapeRules, Indexing) {
  const NodeId x = In("x", {10, 4});
  const NodeId i = In("i", {3, 2}, DType::kI32);
  const NodeId f = In("f", {3});
  EXPECT_EQ(g.node(Apply(g, "gather", {x, i})).shape, (Shape{3, 2, 4}));
  EXPECT_EQ(Error("gather", {x, f}),
            "tensor_gather(x f32[10, 4], f f32[3]): the index must be i32 or i64; write "
            "tensor_cast(f, i32) first");
  EXPECT_EQ(g.node(Apply(g, "scatter_add", {i, In("u", {3, 2, 4})}, {9, 4})).shape, (Shape{9, 4}));
  EXPECT_NE(Error("scatter_add", {i, x}, {9, 4}).find("the updates must have shape [3, 2, 4]"),
            std::string::npos);
}

TEST_F(ShapeRules, Leaves) {
  EXPECT_EQ(ErrorOf([&] { g.Const(0.5, DType::kI32); }),
            "tensor_const(): the value does not fit i32");
  EXPECT_NE(ErrorOf([&] { g.Const(-1, DType::kU8); }), "no error");
  EXPECT_NE(ErrorOf([&] { g.Const(256, DType::kU8); }), "no error");
  EXPECT_NE(ErrorOf([&] { g.Const(1e17, DType::kI64); }), "no error");
  EXPECT_NE(ErrorOf([&] { g.Const(kInf, DType::kI64); }), "no error");
  EXPECT_EQ(g.node(g.Const(0.1)).attr.scalar, double{0.1f}) << "rounded to its dtype";
  EXPECT_NE(Error("random", {In("x", {})}, {3}).find("the key must be a u64 scalar"),
            std::string::npos);
  EXPECT_EQ(g.node(Apply(g, "random", {In("key", {}, DType::kU64)}, {3})).shape, (Shape{3}));
}

TEST_F(ShapeRules, BoundsKeepProductsOfExtentsSmall) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(g.node(In("a", {big})).shape, (Shape{big}));
  EXPECT_NE(ErrorOf([&] { In("b", {big, 2}); }).find("more than 2^40 elements"), std::string::npos);
  EXPECT_NE(ErrorOf([&] { In("c", {big, big, 0}); }), "no error") << "though it is empty";
  EXPECT_NE(ErrorOf([&] { In("d", {1, 1, 1, 1, 1, 1, 1, 1, 1}); }).find("rank 9"),
            std::string::npos);
  EXPECT_NE(ErrorOf([&] { In("e", {-1}); }).find("negative"), std::string::npos);
  const NodeId x = In("x", {2});
  EXPECT_NE(Error("pad", {x}, {INT64_MAX, INT64_MAX}), "no error");
  EXPECT_NE(Error("reshape", {x}, {INT64_MAX, INT64_MAX}), "no error");
}

TEST(Graph, NamesAreUniqueAndFreshOnesDependOnContentOnly) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2});
  const NodeId y = g.Unary(Op::kNeg, x);
  EXPECT_EQ(g.node(y).name, "t1");
  g.Unary(Op::kNeg, y, "t3");
  EXPECT_EQ(g.node(g.Unary(Op::kNeg, y)).name, "t4") << "t3 is taken";
  EXPECT_NE(ErrorOf([&] { g.Unary(Op::kNeg, y, "x"); }).find("'x' is taken"), std::string::npos);
  g.Rename(y, "y");
  EXPECT_EQ(g.Find("y"), y);
  EXPECT_EQ(g.Find("t1"), std::nullopt);
  EXPECT_NE(ErrorOf([&] { g.Rename(y, "x"); }), "no error");
  g.AddOutput("out", y);
  EXPECT_NE(ErrorOf([&] { g.AddOutput("out", x); }), "no error");
  EXPECT_NE(ErrorOf([&] { g.AddOutput("other", 99); }), "no error");
  EXPECT_NE(ErrorOf([&] { g.Unary(Op::kNeg, 99); }), "no error");
}

TEST(Graph, ExpandDerivedKeepsNamesInputsAndOutputs) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {3});
  const NodeId y = Apply(g, "gelu", {x}, {}, "y");
  const NodeId t2 = g.Unary(Op::kNeg, y, "t2");  // an expansion makes nodes that could be called so
  g.AddInput("t9", DType::kF32, {3});
  g.AddOutput("out", t2);
  std::vector<NodeId> ids;
  const Graph e = ExpandDerived(g, ids);
  for (const Node& node : e.nodes()) EXPECT_FALSE(IsDerived(node.op));
  EXPECT_EQ(e.node(ids[y]).name, "y");
  EXPECT_EQ(e.node(ids[t2]).name, "t2");
  EXPECT_EQ(e.outputs()[0].node, ids[t2]);
  ASSERT_EQ(e.inputs().size(), 2u);
  EXPECT_EQ(e.node(e.inputs()[1]).name, "t9");
}

TEST(Graph, AnExpansionMayBeItsOwnOperand) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {});
  const NodeId mean = Apply(g, "reduce_mean", {x}, {}, "mean");
  g.AddOutput("out", mean);
  const Graph e = ExpandDerived(g);
  EXPECT_EQ(e.size(), 1u);
  EXPECT_EQ(e.outputs()[0].node, x);
}

TEST(Graph, RemoveDeadKeepsInputsAndWhatOutputsNeed) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {3});
  g.AddInput("unused", DType::kF32, {3});
  g.Unary(Op::kNeg, x, "dead");
  const NodeId y = g.Unary(Op::kSin, x, "y");
  g.AddOutput("out", y);
  const Graph r = RemoveDead(g);
  EXPECT_EQ(r.size(), 3u);
  EXPECT_FALSE(r.Find("dead").has_value());
  EXPECT_EQ(r.outputs()[0].node, r.Find("y"));
}

TEST(Graph, ADerivedOpThatExpandsToItselfIsRefused) {
  const Op op = RegisterDerived("test_endless", 1, "expands to itself",
                                [](Graph& g, std::span<const NodeId> in, const Attributes&) {
                                  return Apply(g, "test_endless", {in[0]});
                                });
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {3});
  EXPECT_NE(ErrorOf([&] { g.Unary(op, x); }).find("nests too deep"), std::string::npos);
}

}  // namespace
}  // namespace l3c::tensor
