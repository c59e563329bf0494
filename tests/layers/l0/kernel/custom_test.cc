// The operations of the table, by what they declare.
#include "layers/l0/custom_op.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "layers/l0/kernel_text.h"
#include "layers/l0/kernel_verify.h"
#include "layers/l0/uop_interpreter.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c::l0 {
namespace {

using l3c::testing::ParseOne;

// Three rows of a sparse matrix with five columns, times a dense one of four columns.
constexpr const char* kSparse =
    R"(kernel sparse(offsets: in i32 [4], columns: in i32 [6], values: in f32 [6], x: in f32 [5, 4], y: out f32 [3, 4]) {
    axis i : grid 3 block 1
    axis j : loop 4
    %0 = range i
    %1 = range j
    %2 = csr_dot %0, %1 of offsets, columns, values, x
    store y[4*i + j], %2
}
)";

std::string Verified(const Kernel& kernel) {
  support::Diagnostics diagnostics;
  VerifyKernel(kernel, diagnostics);
  return diagnostics.Render(false);
}

TEST(CustomOps, EachIsDeclaredInFull) {
  std::set<std::string_view> names;
  for (const CustomOp& op : CustomOps()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(FindCustomOp(op.name), &op);
    EXPECT_NE(op.evaluate, nullptr) << op.name;
    EXPECT_NE(op.work, nullptr) << op.name;
    EXPECT_EQ(op.memory.empty(), op.footprint == nullptr) << op.name;
    EXPECT_EQ(op.memory.empty(), op.refuses == nullptr) << op.name;
    // What reads memory is made of linear ops: those know how to stay within it.
    EXPECT_TRUE(op.memory.empty() || op.linearize != nullptr) << op.name;
  }
  EXPECT_EQ(FindCustomOp("add"), nullptr);
}

TEST(CustomOps, PrintBackToTheSameBytes) {
  const Kernel kernel = ParseOne(kSparse);
  EXPECT_EQ(Verified(kernel), "");
  EXPECT_EQ(PrintKernel(kernel), kSparse);
}

TEST(CustomOps, AreChecked) {
  const auto rejects = [](const std::function<void(Kernel&)>& change, const std::string& expected) {
    Kernel kernel = ParseOne(kSparse);
    change(kernel);
    const std::string message = Verified(kernel);
    EXPECT_NE(message.find(expected), std::string::npos) << expected << "\n" << message;
  };
  rejects([](Kernel& k) { k.uops[2].custom = "csr_cross"; }, "there is no operation 'csr_cross'");
  rejects([](Kernel& k) { k.uops[2].src.pop_back(); }, "operands, not 1");
  rejects([](Kernel& k) { k.uops[2].memory.pop_back(); }, "reads 4 parameters, not 3");
  rejects([](Kernel& k) { k.uops[2].memory[1] = 9; }, "no such parameter");
  rejects([](Kernel& k) { k.uops[2].dtype = DType::kF64; }, "its dtype is f64, should be f32");
  rejects([](Kernel& k) { std::swap(k.uops[2].memory[1], k.uops[2].memory[2]); },
          "reads i32 from 'values', which holds f32");
  rejects(
      [](Kernel& k) {
        k.uops[1].op = UOp::kConst;
        k.uops[1].dtype = DType::kF32;
      },
      "operand 2 of csr_dot is f32, should be i64");
  // The footprint.
  rejects([](Kernel& k) { k.params[1].shape = {7}; }, "there is one column for each value");
  rejects([](Kernel& k) { k.params[0].shape = {0}; }, "the offsets are one more than rows");
  rejects([](Kernel& k) { k.params[3].shape = {20}; }, "the dense factor is a matrix");
  // What it reads is written by nothing in the kernel.
  rejects([](Kernel& k) { k.params[3].access = Access::kInOut; },
          "csr_dot reads 'x', which is not in");
  rejects([](Kernel& k) { k.uops[2].memory[3] = 4; }, "csr_dot reads 'y', which is not in");
  rejects([](Kernel& k) { k.axes[0].tile = k.axes[0].vector = 2; },
          "operand 1 of csr_dot is the same in all lanes, so axis 'i' takes none");
}

TEST(CustomOps, AreCounted) {
  const Kernel kernel = ParseOne(kSparse);
  EXPECT_EQ(CountWork(kernel).multiply_adds, 6 * 4);
  EXPECT_EQ(CountWork(kernel).bytes_read, 4 * 4 + 6 * 4 + 6 * 4 + 20 * 4);
  EXPECT_EQ(CountWork(kernel).bytes_written, 12 * 4);
}

struct Sparse {
  std::vector<int32_t> offsets = {0, 2, 2, 6};
  std::vector<int32_t> columns = {3, 0, 1, 1, 4, 2};
  std::vector<float> values = {2, -1, 0.5, 3, 1, -2};
  std::vector<float> x = std::vector<float>(20);

  Sparse() {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 8 - 1;
  }

  std::vector<float> Product() {
    std::vector<float> y(12);
    void* params[] = {offsets.data(), columns.data(), values.data(), x.data(), y.data()};
    l0::Run(ParseOne(kSparse), params, 0, 3);
    return y;
  }
};

TEST(CustomOps, ASparseProduct) {
  Sparse sparse;
  const std::vector<float> y = sparse.Product();
  for (int j = 0; j < 4; ++j) {
    const auto x = [&](int row) { return sparse.x[static_cast<size_t>(4 * row + j)]; };
    EXPECT_EQ(y[static_cast<size_t>(j)], 2 * x(3) - x(0));
    EXPECT_EQ(y[static_cast<size_t>(4 + j)], 0);
    EXPECT_EQ(y[static_cast<size_t>(8 + j)], 3.5f * x(1) + x(4) - 2 * x(2));
  }
}

// Its gradients are kernels too: of the dense factor the product with the transposed matrix, of
// the values a sum over the row of one and the row of the other.
TEST(CustomOps, GradientsOfASparseProduct) {
  Sparse sparse;
  std::vector<float> d(12);  // of Σ d·y
  for (size_t i = 0; i < d.size(); ++i) d[i] = 0.25f * static_cast<float>((5 * i) % 7) - 0.5f;

  std::vector<int32_t> offsets = {0, 1, 3, 4, 5, 6};  // of the transposed matrix
  std::vector<int32_t> rows = {0, 2, 2, 2, 0, 2};
  std::vector<float> values = {-1, 0.5, 3, -2, 2, 1};
  std::vector<float> dx(20);
  void* transposed[] = {offsets.data(), rows.data(), values.data(), d.data(), dx.data()};
  l0::Run(
      ParseOne(
          "kernel dx(offsets: in i32 [6], rows: in i32 [6], values: in f32 [6], d: in f32 [3, 4], "
          "dx: out f32 [5, 4]) {\n  axis i : grid 5 block 1\n  axis j : loop 4\n  %0 = range i\n  "
          "%1 = range j\n  %2 = csr_dot %0, %1 of offsets, rows, values, d\n  store dx[4*i + j], "
          "%2\n}\n"),
      transposed, 0, 5);

  std::vector<int32_t> row_of = {0, 0, 2, 2, 2, 2};
  std::vector<float> dv(6);
  void* gathered[] = {row_of.data(), sparse.columns.data(), d.data(), sparse.x.data(), dv.data()};
  l0::Run(
      ParseOne(
          "kernel dv(rows: in i32 [6], columns: in i32 [6], d: in f32 [3, 4], x: in f32 [5, 4], "
          "dv: out f32 [6]) {\n  axis p : grid 6 block 6\n  axis j : reduce 4\n  %0 = load "
          "rows[p]\n  "
          "%1 = load columns[p]\n  %2 = load d[j + 4*%0 of 3]\n  %3 = load x[j + 4*%1 of 5]\n  "
          "%4 = mul %2, %3\n  %5 = reduce_add %4 over j\n  store dv[p], %5\n}\n"),
      gathered, 0, 1);

  const auto objective = [&] {
    const std::vector<float> y = sparse.Product();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i)
      sum += static_cast<double>(d[i]) * static_cast<double>(y[i]);
    return sum;
  };
  const auto difference = [&](float& at) {
    const float was = at;
    at = was + 0.5f;  // it is linear in each
    const double above = objective();
    at = was - 0.5f;
    const double below = objective();
    at = was;
    return above - below;
  };
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], difference(sparse.x[i]), 1e-5) << i;
  for (size_t p = 0; p < dv.size(); ++p)
    EXPECT_NEAR(dv[p], difference(sparse.values[p]), 1e-5) << p;
}

}  // namespace
}  // namespace l3c::l0
