// csr_dot %row, %column of offsets, columns, values, x: an element of the product of a sparse
// matrix in compressed rows with a dense one, Σ values[p] · x[columns[p], column] over p from
// offsets[row] to offsets[row + 1], in that order, each product added by one rounding. Rows of x
// and columns of it that there are not count as zero, a row that there is not has no elements, and
// offsets are brought within the elements, so that no content of a buffer leads out of it.
#include <algorithm>
#include <cmath>

#include "layers/l0/custom_op.h"

namespace l3c::l0 {
namespace {

enum Memory : uint8_t { kOffsets, kColumns, kValues, kDense };
using Shapes = std::span<const tensor::Shape* const>;

int64_t Elements(Shapes shapes) { return (*shapes[kValues])[0]; }

std::string Refuses(Shapes shapes) {
  const auto rank = [&](Memory which) { return shapes[which]->size(); };
  if (rank(kOffsets) != 1 || (*shapes[kOffsets])[0] < 1) {
    return "the offsets are one more than rows, in one axis";
  }
  if (rank(kValues) != 1 || *shapes[kColumns] != *shapes[kValues]) {
    return "there is one column for each value, in one axis";
  }
  if (rank(kDense) != 2) return "the dense factor is a matrix";
  return "";
}

// Everything: which elements it reads says their content.
std::vector<CustomRange> Footprint(Shapes shapes) {
  std::vector<CustomRange> ranges;
  for (const tensor::Shape* shape : shapes) ranges.push_back({0, tensor::NumElements(*shape)});
  return ranges;
}

KernelWork Work(Shapes shapes) {
  KernelWork work;
  const auto rows = static_cast<double>(std::max<int64_t>((*shapes[kOffsets])[0] - 1, 1));
  work.multiply_adds = static_cast<double>(Elements(shapes)) / rows;
  return work;
}

Number Evaluate(const CustomArguments& given) {
  const auto* offsets = static_cast<const int32_t*>(given.memory[kOffsets]);
  const auto* columns = static_cast<const int32_t*>(given.memory[kColumns]);
  const auto* values = static_cast<const float*>(given.memory[kValues]);
  const auto* dense = static_cast<const float*>(given.memory[kDense]);
  const int64_t row = given.operands[0].i;
  const int64_t column = given.operands[1].i;
  const int64_t height = (*given.shapes[kDense])[0];
  const int64_t width = (*given.shapes[kDense])[1];
  if (row < 0 || row >= (*given.shapes[kOffsets])[0] - 1) return {.f = 0};
  const int64_t begin = std::max<int64_t>(offsets[row], 0);
  const int64_t end = std::min<int64_t>(offsets[row + 1], Elements(given.shapes));
  double wide = 0;
  float sum = 0;
  for (int64_t p = begin; p < end; ++p) {
    const bool there = columns[p] >= 0 && columns[p] < height && column >= 0 && column < width;
    const float x = there ? dense[columns[p] * width + column] : 0;
    wide += static_cast<double>(values[p]) * static_cast<double>(x);
    sum = std::fma(values[p], x, sum);
  }
  return {.f = given.widen ? wide : static_cast<double>(sum)};
}

// 0 <= value < high by one unsigned comparison.
Reg Below(LinearCode& code, Reg value, int64_t high, int64_t lanes) {
  LinearOp limit = LinearCode::Op(UOp::kConst);
  limit.integer = high;
  const Reg bound = code.Append(limit, DType::kU64, lanes);
  return code.Binary(UOp::kCmpLt, code.Unary(UOp::kBitcast, value, DType::kU64, lanes), bound,
                     DType::kBool, lanes);
}

Reg Load(const CustomSite& site, Memory which, Reg at, int64_t offset, Reg mask, DType dtype) {
  LinearOp load = LinearCode::Op(UOp::kLoad);
  load.param = site.memory[which];
  load.a = at;
  load.offset = offset;
  load.c = mask;
  return site.code.Append(load, dtype, 1);
}

Reg Choose(LinearCode& code, Reg condition, Reg yes, Reg no) {
  LinearOp where = LinearCode::Op(UOp::kWhere);
  where.a = condition;
  where.b = yes;
  where.c = no;
  return code.Append(where, DType::kI64, 1);
}

Reg Linearize(const CustomSite& site) {
  LinearCode& code = site.code;
  const int64_t width = (*site.shapes[kDense])[1];
  const int64_t height = (*site.shapes[kDense])[0];
  const Reg sum = code.Append(LinearCode::Op(UOp::kConst), DType::kF32, site.lanes);
  if (height == 0 || width == 0 || Elements(site.shapes) == 0) return sum;
  const Reg row = site.operands[0];
  const Reg there = Below(code, row, (*site.shapes[kOffsets])[0] - 1, 1);
  const auto bound = [&](int64_t next) {
    const Reg offset = Load(site, kOffsets, row, next, there, DType::kI32);
    return code.Unary(UOp::kCast, offset, DType::kI64, 1);
  };
  const Reg zero = code.IntConst(0);
  const Reg most = code.IntConst(Elements(site.shapes));
  const Reg low = bound(0);
  const Reg high = bound(1);
  const Reg begin = Choose(code, code.Binary(UOp::kCmpLt, low, zero, DType::kBool, 1), zero, low);
  const Reg end = Choose(code, code.Binary(UOp::kCmpLt, most, high, DType::kBool, 1), most, high);
  const bool neighbours = site.lanes == 1 || site.first_lane[1] != kNoReg;
  const Reg column = site.operands[1];
  const Reg in_width = Below(code, column, width, site.lanes);
  const Reg at = site.lanes > 1 && neighbours ? site.first_lane[1] : column;

  LinearOp range = LinearCode::Op(UOp::kRange);
  range.a = begin;
  range.b = end;
  const Reg p = code.Append(range, DType::kI64, 1);
  const auto spread = [&](Reg scalar, DType dtype) {
    return site.lanes == 1 ? scalar : code.Unary(UOp::kVectorize, scalar, dtype, site.lanes);
  };
  const Reg value = spread(Load(site, kValues, p, 0, kNoReg, DType::kF32), DType::kF32);
  const Reg k =
      code.Unary(UOp::kCast, Load(site, kColumns, p, 0, kNoReg, DType::kI32), DType::kI64, 1);
  const Reg in_height = spread(Below(code, k, height, 1), DType::kBool);
  LinearOp index = LinearCode::Op(UOp::kIndex);
  index.a = at;
  index.b = k;
  index.scale = width;
  LinearOp load = LinearCode::Op(UOp::kLoad);
  load.param = site.memory[kDense];
  load.a = code.Append(index, DType::kI64, neighbours ? 1 : site.lanes);
  load.c = code.Binary(UOp::kMul, in_height, in_width, DType::kBool, site.lanes);
  load.active = site.active;
  LinearOp add = LinearCode::Op(UOp::kMulAcc);
  add.a = value;
  add.b = code.Append(load, DType::kF32, site.lanes);
  add.c = sum;
  code.Assign(add, sum);
  code.Append(LinearCode::Op(UOp::kEnd));
  return sum;
}

}  // namespace

CustomOp CsrDotOp() {
  CustomOp op;
  op.name = "csr_dot";
  op.operands = {DType::kI64, DType::kI64};
  op.memory = {DType::kI32, DType::kI32, DType::kF32, DType::kF32};
  op.uniform = {true, false};
  op.refuses = Refuses;
  op.footprint = Footprint;
  op.work = Work;
  op.evaluate = Evaluate;
  op.linearize = Linearize;
  return op;
}

}  // namespace l3c::l0
