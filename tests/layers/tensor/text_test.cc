#include "layers/tensor/text.h"

#include <algorithm>

#include "tests/layers/tensor/testing.h"

namespace l3c::tensor {
namespace {

using A = Argument;

TEST(FormatNumber, IsShortestAndReadsBackEqual) {
  EXPECT_EQ(FormatNumber(0.5, DType::kF32), "0.5");
  EXPECT_EQ(FormatNumber(1, DType::kF32), "1.0");
  EXPECT_EQ(FormatNumber(-0.0, DType::kF32), "-0.0");
  EXPECT_EQ(FormatNumber(double{0.1f}, DType::kF32), "0.1");
  EXPECT_EQ(FormatNumber(0.1, DType::kF64), "0.1");
  EXPECT_EQ(FormatNumber(double{0.1f}, DType::kF64), "0.10000000149011612");
  EXPECT_EQ(FormatNumber(3e-4f, DType::kF32), "3e-4");
  EXPECT_EQ(FormatNumber(1e30, DType::kF64), "1e30");
  EXPECT_EQ(FormatNumber(1.5e-45, DType::kF32), "1e-45");
  EXPECT_EQ(FormatNumber(kInf, DType::kF32), "inf");
  EXPECT_EQ(FormatNumber(-kInf, DType::kF64), "-inf");
  EXPECT_EQ(FormatNumber(kNan, DType::kF32), "nan");
  EXPECT_EQ(FormatNumber(7, DType::kI32), "7");
  EXPECT_EQ(FormatNumber(-9007199254740992.0, DType::kI64), "-9007199254740992");
}

// A parsed application, and how it is printed.
struct Line {
  const char* op;
  std::vector<Argument> arguments;
  const char* text;
};

class TextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    x = g.AddInput("x", DType::kF32, {4, 6});
    b = g.AddInput("b", DType::kF32, {6});
    i = g.AddInput("i", DType::kI32, {3});
    p = g.AddInput("p", DType::kBool, {4, 6});
    d = g.AddInput("d", DType::kF64, {6});
    key = g.AddInput("key", DType::kU64, {});
  }
  static Argument Ints(std::vector<int64_t> ints) { return A::Ints(ints); }
  std::string Error(std::string_view op, std::vector<Argument> arguments) {
    return ErrorOf([&] { BuildApplication(g, op, arguments); });
  }
  Graph g;
  NodeId x, b, i, p, d, key;
};

TEST_F(TextTest, EveryFormPrintsAndBuildsTheSameNode) {
  const A X = A::Node(x);
  const std::vector<Line> lines = {
      {"tensor_add", {X, X}, "tensor_add(x, x)"},
      {"tensor_where", {A::Node(p), X, X}, "tensor_where(p, x, x)"},
      {"tensor_scale", {X, A::Number(3e-4)}, "tensor_scale(x, 3e-4)"},
      {"tensor_scale", {A::Node(d), A::Number(0.1)}, "tensor_scale(d, 0.1)"},
      {"tensor_transpose", {X}, "tensor_transpose(x)"},
      {"tensor_reduce_mean", {X}, "tensor_reduce_mean(x)"},
      {"tensor_reduce_mean", {X, A::Number(1).Named("axis")}, "tensor_reduce_mean(x, axis: 1)"},
      {"tensor_reduce_sum", {X, A::Number(-1).Named("axis")}, "tensor_reduce_sum(x, axis: 1)"},
      {"tensor_reduce_sum", {X}, "tensor_reduce_sum(x, axis: [0, 1])"},
      {"tensor_reduce_max", {X, Ints({1, 0}).Named("axis")}, "tensor_reduce_max(x, axis: [0, 1])"},
      {"tensor_broadcast", {A::Node(b), Ints({4, 6})}, "tensor_broadcast(b, [4, 6])"},
      {"tensor_reshape", {X, Ints({24})}, "tensor_reshape(x, [24])"},
      {"tensor_permute", {X, Ints({1, 0})}, "tensor_permute(x, [1, 0])"},
      {"tensor_flip", {X, A::Number(0).Named("axis")}, "tensor_flip(x, axis: 0)"},
      {"tensor_pad", {X, A::List({Ints({0, 1}), Ints({2, 2})})}, "tensor_pad(x, [[0, 1], [2, 2]])"},
      {"tensor_slice",
       {X, A::List({Ints({0, 4, 1}), Ints({1, 6, 2})})},
       "tensor_slice(x, [[0, 4, 1], [1, 6, 2]])"},
      {"tensor_const", {A::Number(0.5)}, "tensor_const(0.5)"},
      {"tensor_const", {A::Number(0.1), A::Type(DType::kF64)}, "tensor_const(0.1, f64)"},
      {"tensor_const", {A::Number(-kInf)}, "tensor_const(-inf)"},
      {"tensor_const", {A::Number(3), A::Type(DType::kI32)}, "tensor_const(3, i32)"},
      {"tensor_cast", {X, A::Type(DType::kU8)}, "tensor_cast(x, u8)"},
      {"tensor_bitcast", {X, A::Type(DType::kU32)}, "tensor_bitcast(x, u32)"},
      {"tensor_iota",
       {Ints({4, 3}), A::Type(DType::kI32), A::Number(1).Named("axis")},
       "tensor_iota([4, 3], i32, axis: 1)"},
      {"tensor_random", {A::Node(key), Ints({4, 3})}, "tensor_random(key, [4, 3])"},
      {"tensor_random", {A::Number(7), Ints({2})}, "tensor_random(7, [2])"},
      {"tensor_gather", {X, A::Node(i)}, "tensor_gather(x, i)"},
      {"tensor_scatter_add", {A::Node(i), A::Node(i), Ints({9})}, "tensor_scatter_add(i, i, [9])"},
  };
  for (const Line& line : lines) {
    const NodeId id = BuildApplication(g, line.op, line.arguments);
    EXPECT_EQ(PrintApplication(g, id), line.text);
  }
}

TEST_F(TextTest, ALiteralIsAnUnnamedConstantBeforeItsUser) {
  const NodeId id = BuildApplication(g, "tensor_scale", std::vector{A::Node(x), A::Number(2)}, "y");
  EXPECT_EQ(g.node(id).name, "y");
  EXPECT_EQ(g.node(id - 1).op, Op::kConst);
  EXPECT_EQ(g.node(id - 1).name, "");
  g.AddOutput("y", id);
  const Graph live = RemoveDead(g);
  EXPECT_EQ(PrintApplication(live, *live.Find("y")), "tensor_scale(x, 2.0)");
  const Graph expanded = ExpandDerived(g);
  for (const Node& node : expanded.nodes()) EXPECT_NE(node.name, "");
}

TEST_F(TextTest, WrongArgumentsAreRefusedWithTheForm) {
  const A X = A::Node(x);
  EXPECT_EQ(Error("tensor_ad", {X, X}), "there is no op 'tensor_ad'");
  EXPECT_EQ(Error("add", {X, X}), "there is no op 'add'");
  EXPECT_EQ(Error("tensor_input", {}), "there is no op 'tensor_input'");
  EXPECT_EQ(Error("tensor_add", {X}),
            "tensor_add: needs 2 operands, got 1; it is written tensor_add(a, b)");
  EXPECT_EQ(Error("tensor_add", {X, X, X}),
            "tensor_add: does not take so many arguments; it is written tensor_add(a, b)");
  EXPECT_EQ(Error("tensor_cast", {X, A::Number(3)}),
            "tensor_cast: expected a dtype, as f32; it is written tensor_cast(a, dtype)");
  EXPECT_EQ(Error("tensor_cast", {X}),
            "tensor_cast: an argument is missing; it is written tensor_cast(a, dtype)");
  EXPECT_EQ(Error("tensor_reduce_sum", {X, A::Number(1)}),
            "tensor_reduce_sum: expected axis:; it is written tensor_reduce_sum(a, axis: n), or "
            "axis: [n, …], or all axes without");
  EXPECT_NE(Error("tensor_reduce_sum", {X, A::Number(0.5).Named("axis")}), "no error");
  EXPECT_NE(Error("tensor_reduce_sum", {X, Ints({}).Named("axis")}), "no error");
  EXPECT_NE(Error("tensor_reshape", {X, A::List({X})}), "no error");
  EXPECT_NE(Error("tensor_reshape", {X, A::List({A::Number(1e300)})}), "no error");
  EXPECT_NE(Error("tensor_pad", {X, Ints({0, 1})}), "no error");
  EXPECT_NE(Error("tensor_pad", {X, A::List({Ints({0, 1, 2}), Ints({0, 1})})}), "no error");
  EXPECT_NE(Error("tensor_const", {X}), "no error");
  EXPECT_NE(Error("tensor_add", {X, A::Node(999)}), "no error");
}

TEST(OpSpellings, LeaveOutWhatCannotBeApplied) {
  const std::vector<std::string> all = OpSpellings();
  EXPECT_EQ(std::count(all.begin(), all.end(), "tensor_input"), 0);
  EXPECT_EQ(std::count(all.begin(), all.end(), "tensor_gelu"), 1);
}

}  // namespace
}  // namespace l3c::tensor
