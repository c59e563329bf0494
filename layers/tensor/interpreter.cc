#include "layers/tensor/interpreter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "layers/tensor/bf16.h"
#include "layers/tensor/philox.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::tensor {
namespace {

constexpr int64_t kMaxInterpretedElements = int64_t{1} << 28;

// The low bits of `value`, read as `dtype`.
int64_t Wrap(uint64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(static_cast<uint32_t>(value));
    case DType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return static_cast<int64_t>(value);
  }
}

bool IntLess(int64_t a, int64_t b, DType dtype) {
  return dtype == DType::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t IntMod(int64_t a, int64_t b, DType dtype) {
  if (b == 0) return 0;
  if (dtype == DType::kU64) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  }
  return b == -1 ? 0 : a % b;  // INT64_MIN % -1 overflows
}

double FloatMax(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

int64_t LowestInt(DType dtype) {
  switch (dtype) {
    case DType::kI32:
      return std::numeric_limits<int32_t>::min();
    case DType::kI64:
      return std::numeric_limits<int64_t>::min();
    default:
      return 0;
  }
}

// Truncates towards zero and saturates; NaN is 0.
int64_t FloatToInt(double value, DType dtype) {
  if (dtype == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const auto clamp = [&](auto limits) -> int64_t {
    using Limits = decltype(limits);
    if (value <= static_cast<double>(Limits::min())) return static_cast<int64_t>(Limits::min());
    // The limit itself rounds up to a power of two for the 64-bit types.
    if (value >= static_cast<double>(Limits::max())) return static_cast<int64_t>(Limits::max());
    if constexpr (std::is_same_v<Limits, std::numeric_limits<uint64_t>>) {
      return static_cast<int64_t>(static_cast<uint64_t>(value));
    } else {
      return static_cast<int64_t>(value);
    }
  };
  switch (dtype) {
    case DType::kU8:
      return clamp(std::numeric_limits<uint8_t>());
    case DType::kI32:
      return clamp(std::numeric_limits<int32_t>());
    case DType::kU32:
      return clamp(std::numeric_limits<uint32_t>());
    case DType::kU64:
      return clamp(std::numeric_limits<uint64_t>());
    default:
      return clamp(std::numeric_limits<int64_t>());
  }
}

double IntToFloat(int64_t value, DType from) {
  return from == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(value))
                             : static_cast<double>(value);
}

// An integer goes to f32 in one rounding, not by way of f64.
double IntToF32(int64_t value, DType from) {
  return static_cast<double>(from == DType::kU64 ? static_cast<float>(static_cast<uint64_t>(value))
                                                 : static_cast<float>(value));
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Calls visit(i, offset) for the i-th index of `shape` in row-major order, where the offset is
// `start` plus the index times `strides`.
template <typename Visit>
void ForEachStrided(const Shape& shape, const std::vector<int64_t>& strides, int64_t start,
                    Visit visit) {
  const int64_t count = NumElements(shape);
  if (count == 0) return;
  const size_t rank = shape.size();
  const int64_t inner = rank == 0 ? 1 : shape[rank - 1];
  const int64_t inner_stride = rank == 0 ? 0 : strides[rank - 1];
  std::vector<int64_t> index(rank);
  int64_t row = start;
  for (int64_t i = 0; i < count; i += inner) {
    for (int64_t j = 0; j < inner; ++j) visit(i + j, row + j * inner_stride);
    for (size_t axis = rank < 2 ? 0 : rank - 1; axis-- > 0;) {
      row += strides[axis];
      if (++index[axis] < shape[axis]) break;
      row -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// A product of matrices, batch by batch, in the order of its sums: `add(to, left, right, n)` for
// each element of the left factor, whose products with the n elements from `right` on are added to
// those from `to` on. All are offsets of elements.
template <typename Add>
void ForEachRowOfProducts(const Shape& left, const Shape& result, Add&& add) {
  const size_t rank = result.size();
  const int64_t m = result[rank - 2];
  const int64_t n = result[rank - 1];
  const int64_t k = left[rank - 1];
  const int64_t batch = NumElements(Shape(result.begin(), result.end() - 2));
  for (int64_t row = 0; row < batch * m; ++row) {
    for (int64_t inner = 0; inner < k; ++inner) {
      add(row * n, row * k + inner, ((row / m) * k + inner) * n, n);
    }
  }
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, Precision precision)
      : graph_(graph), precision_(precision), values_(graph.size()) {}

  std::vector<Array> Run(std::span<const Array> inputs, std::span<const NodeId> wanted);

 private:
  void CheckInput(const Node& node, const Array& array) const;
  Array Compute(const Node& node);

  Array Elementwise(const Node& node);
  Array Cast(const Node& node);
  Array Bitcast(const Node& node);
  Array Where(const Node& node);
  Array ReduceOp(const Node& node);
  Array Matmul(const Node& node);
  Array Bf16Matmul(const Node& node);
  Array Bf16Pairs(const Node& node);
  Array Movement(const Node& node);
  Array Pad(const Node& node);
  Array Gather(const Node& node);
  Array ScatterAdd(const Node& node);
  Array Iota(const Node& node);
  Array Random(const Node& node);

  const Array& In(const Node& node, size_t i) const { return values_[node.inputs[i]]; }

  // What a float of this dtype is after an op.
  double Round(double value, DType dtype) const {
    return precision_ == Precision::kOwnDType ? RoundToDType(value, dtype) : value;
  }
  void RoundAll(Array& array) const {
    if (precision_ != Precision::kOwnDType || array.dtype != DType::kF32) return;
    for (double& value : array.floats) value = RoundToDType(value, DType::kF32);
  }

  const Graph& graph_;
  const Precision precision_;
  std::vector<Array> values_;
};

std::vector<Array> Interpreter::Run(std::span<const Array> inputs, std::span<const NodeId> wanted) {
  if (inputs.size() != graph_.inputs().size()) {
    throw ShapeError("the graph has " + std::to_string(graph_.inputs().size()) + " inputs, got " +
                     std::to_string(inputs.size()));
  }
  // Only what is wanted is computed, and values are dropped after their last use.
  std::vector<bool> live(graph_.size());
  std::vector<NodeId> last_use(graph_.size());
  std::vector<bool> keep(graph_.size());
  for (NodeId id : wanted) live[id] = keep[id] = true;
  for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
    if (!live[id]) continue;
    for (NodeId input : graph_.node(id).inputs) {
      if (!live[input]) last_use[input] = id;
      live[input] = true;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    CheckInput(graph_.node(graph_.inputs()[i]), inputs[i]);
    if (!live[graph_.inputs()[i]]) continue;
    values_[graph_.inputs()[i]] = inputs[i];
    RoundAll(values_[graph_.inputs()[i]]);
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (!live[id] || node.op == Op::kInput) continue;
    if (NumElements(node.shape) > kMaxInterpretedElements) {
      throw ShapeError("'" + node.name + "' " + TypeToString(node.dtype, node.shape) +
                       " is too large to interpret");
    }
    values_[id] = Compute(node);
    for (NodeId input : node.inputs) {
      if (last_use[input] == id && !keep[input]) values_[input] = Array();
    }
  }
  std::vector<Array> results;
  for (NodeId id : wanted) results.push_back(values_[id]);
  return results;
}

void Interpreter::CheckInput(const Node& node, const Array& array) const {
  const size_t count = static_cast<size_t>(NumElements(node.shape));
  const bool is_float = IsFloat(node.dtype);
  if (array.dtype != node.dtype || array.shape != node.shape ||
      array.floats.size() != (is_float ? count : 0) ||
      array.ints.size() != (is_float ? 0 : count)) {
    throw ShapeError("input '" + node.name + "' is declared " +
                     TypeToString(node.dtype, node.shape) + ", got " +
                     TypeToString(array.dtype, array.shape));
  }
}

Array Interpreter::Compute(const Node& node) {
  switch (node.op) {
    case Op::kConst:
      return IsFloat(node.dtype)
                 ? Array::Floats(node.dtype, {}, {node.attr.scalar})
                 : Array::Ints(node.dtype, {}, {static_cast<int64_t>(node.attr.scalar)});
    case Op::kIota:
      return Iota(node);
    case Op::kRandom:
      return Random(node);
    case Op::kWhere:
      return Where(node);
    case Op::kCast:
      return Cast(node);
    case Op::kBitcast:
      return Bitcast(node);
    case Op::kReduceSum:
    case Op::kReduceMax:
      return ReduceOp(node);
    case Op::kMatmul:
      return Matmul(node);
    case Op::kBf16Pair:
      return Bf16Pairs(node);
    case Op::kBf16Matmul:
      return Bf16Matmul(node);
    case Op::kPad:
      return Pad(node);
    case Op::kGather:
      return Gather(node);
    case Op::kScatterAdd:
      return ScatterAdd(node);
    default:
      return Definition(node.op).op_class == OpClass::kMovement ? Movement(node)
                                                                : Elementwise(node);
  }
}

Array Interpreter::Elementwise(const Node& node) {
  const Array& a = In(node, 0);
  const Array& b = node.inputs.size() > 1 ? In(node, 1) : a;
  Array out = Array::Zeros(node.dtype, node.shape);
  const size_t count = static_cast<size_t>(NumElements(node.shape));
  const auto floats = [&](auto function) {
    for (size_t i = 0; i < count; ++i) out.floats[i] = function(a.floats[i], b.floats[i]);
    RoundAll(out);
  };
  const auto ints = [&](auto function) {
    for (size_t i = 0; i < count; ++i) {
      out.ints[i] = Wrap(static_cast<uint64_t>(function(a.ints[i], b.ints[i])), out.dtype);
    }
  };
  const auto compare = [&](auto of_floats, auto of_ints) {
    for (size_t i = 0; i < count; ++i) {
      out.ints[i] =
          IsFloat(a.dtype) ? of_floats(a.floats[i], b.floats[i]) : of_ints(a.ints[i], b.ints[i]);
    }
  };
  const DType dtype = node.dtype;
  const bool is_float = IsFloat(dtype);
  using U = uint64_t;
  switch (node.op) {
    case Op::kAdd:
      if (is_float)
        floats([](double x, double y) { return x + y; });
      else
        ints([](int64_t x, int64_t y) { return U(x) + U(y); });
      break;
    case Op::kMul:
      if (is_float)
        floats([](double x, double y) { return x * y; });
      else
        ints([](int64_t x, int64_t y) { return U(x) * U(y); });
      break;
    case Op::kNeg:
      if (is_float)
        floats([](double x, double) { return -x; });
      else
        ints([](int64_t x, int64_t) { return U{0} - U(x); });
      break;
    case Op::kMax:
      if (is_float)
        floats(FloatMax);
      else
        ints([&](int64_t x, int64_t y) { return IntLess(x, y, dtype) ? y : x; });
      break;
    case Op::kMod:
      if (is_float)
        floats([](double x, double y) { return std::fmod(x, y); });
      else
        ints([&](int64_t x, int64_t y) { return IntMod(x, y, dtype); });
      break;
    case Op::kRecip:
      floats([](double x, double) { return 1 / x; });
      break;
    case Op::kExp2:
      floats([](double x, double) { return std::exp2(x); });
      break;
    case Op::kLog2:
      floats([](double x, double) { return std::log2(x); });
      break;
    case Op::kSin:
      floats([](double x, double) { return std::sin(x); });
      break;
    case Op::kSqrt:
      floats([](double x, double) { return std::sqrt(x); });
      break;
    case Op::kCmpLt:
      compare([](double x, double y) { return x < y; },
              [&](int64_t x, int64_t y) { return IntLess(x, y, a.dtype); });
      break;
    default:  // kCmpNe
      compare([](double x, double y) { return x != y; },
              [](int64_t x, int64_t y) { return x != y; });
  }
  return out;
}

Array Interpreter::Where(const Node& node) {
  const Array& condition = In(node, 0);
  Array out = In(node, 2);
  const Array& chosen = In(node, 1);
  for (size_t i = 0; i < condition.ints.size(); ++i) {
    if (condition.ints[i] == 0) continue;
    if (IsFloat(out.dtype))
      out.floats[i] = chosen.floats[i];
    else
      out.ints[i] = chosen.ints[i];
  }
  return out;
}

Array Interpreter::Cast(const Node& node) {
  const Array& a = In(node, 0);
  Array out = Array::Zeros(node.dtype, node.shape);
  const size_t count = static_cast<size_t>(NumElements(node.shape));
  for (size_t i = 0; i < count; ++i) {
    if (IsFloat(a.dtype)) {
      if (IsFloat(out.dtype))
        out.floats[i] = Round(a.floats[i], out.dtype);
      else
        out.ints[i] = FloatToInt(a.floats[i], out.dtype);
    } else if (IsFloat(out.dtype)) {
      out.floats[i] = out.dtype == DType::kF32 && precision_ == Precision::kOwnDType
                          ? IntToF32(a.ints[i], a.dtype)
                          : IntToFloat(a.ints[i], a.dtype);
    } else {
      out.ints[i] = Wrap(static_cast<uint64_t>(a.ints[i]), out.dtype);
    }
  }
  return out;
}

Array Interpreter::Bitcast(const Node& node) {
  const Array& a = In(node, 0);
  if (a.dtype == node.dtype) return a;
  Array out = Array::Zeros(node.dtype, node.shape);
  const size_t count = static_cast<size_t>(NumElements(node.shape));
  const bool wide = SizeOf(node.dtype) == 8;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    if (!IsFloat(a.dtype))
      bits = static_cast<uint64_t>(a.ints[i]);
    else if (wide)
      bits = std::bit_cast<uint64_t>(a.floats[i]);
    else
      bits = std::bit_cast<uint32_t>(static_cast<float>(a.floats[i]));
    if (!IsFloat(out.dtype))
      out.ints[i] = Wrap(bits, out.dtype);
    else if (wide)
      out.floats[i] = std::bit_cast<double>(bits);
    else
      out.floats[i] = std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
  return out;
}

// Accumulates in ascending order of the operand's elements.
Array Interpreter::ReduceOp(const Node& node) {
  const Array& a = In(node, 0);
  Array out = Array::Zeros(node.dtype, node.shape);
  const bool is_max = node.op == Op::kReduceMax;
  if (is_max) {
    std::fill(out.floats.begin(), out.floats.end(), -std::numeric_limits<double>::infinity());
    std::fill(out.ints.begin(), out.ints.end(), LowestInt(node.dtype));
  }
  // Where each operand element goes: the result's strides, 0 along reduced axes.
  const std::vector<int64_t> out_strides = RowMajorStrides(node.shape);
  std::vector<int64_t> strides;
  size_t kept = 0;
  for (size_t axis = 0; axis < a.shape.size(); ++axis) {
    const bool reduced = std::binary_search(node.attr.ints.begin(), node.attr.ints.end(),
                                            static_cast<int64_t>(axis));
    strides.push_back(reduced ? 0 : out_strides[kept++]);
  }
  ForEachStrided(a.shape, strides, 0, [&](int64_t from, int64_t to) {
    if (IsFloat(a.dtype)) {
      double& sum = out.floats[to];
      sum = is_max ? FloatMax(sum, a.floats[from]) : sum + a.floats[from];
    } else if (is_max) {
      if (IntLess(out.ints[to], a.ints[from], a.dtype)) out.ints[to] = a.ints[from];
    } else {
      out.ints[to] = Wrap(static_cast<uint64_t>(out.ints[to]) + static_cast<uint64_t>(a.ints[from]),
                          out.dtype);
    }
  });
  RoundAll(out);
  return out;
}

Array Interpreter::Matmul(const Node& node) {
  const Array& a = In(node, 0);
  const Array& b = In(node, 1);
  Array out = Array::Zeros(node.dtype, node.shape);
  ForEachRowOfProducts(a.shape, node.shape,
                       [&](int64_t to, int64_t left, int64_t right, int64_t n) {
                         const double factor = a.floats[left];
                         for (int64_t column = 0; column < n; ++column) {
                           out.floats[to + column] += factor * b.floats[right + column];
                         }
                       });
  RoundAll(out);
  return out;
}

Array Interpreter::Bf16Pairs(const Node& node) {
  const Array& low = In(node, 0);
  const Array& high = In(node, 1);
  Array out = Array::Zeros(node.dtype, node.shape);
  for (size_t i = 0; i < out.ints.size(); ++i) {
    out.ints[i] = Bf16Pair(static_cast<float>(low.floats[i]), static_cast<float>(high.floats[i]));
  }
  return out;
}

Array Interpreter::Bf16Matmul(const Node& node) {
  const Array& a = In(node, 0);
  const Array& b = In(node, 1);
  Array out = Array::Zeros(node.dtype, node.shape);
  ForEachRowOfProducts(a.shape, node.shape,
                       [&](int64_t to, int64_t left, int64_t right, int64_t n) {
                         const auto pair = static_cast<uint32_t>(a.ints[left]);
                         for (int64_t column = 0; column < n; ++column) {
                           out.floats[to + column] +=
                               Bf16Product(pair, static_cast<uint32_t>(b.ints[right + column]));
                         }
                       });
  RoundAll(out);
  return out;
}

// reshape, permute, expand, slice, flip: each element of the result is one of the operand's.
Array Interpreter::Movement(const Node& node) {
  const Array& a = In(node, 0);
  if (node.op == Op::kReshape) {
    Array out = a;
    out.shape = node.shape;
    return out;
  }
  const std::vector<int64_t> from_strides = RowMajorStrides(a.shape);
  const std::vector<int64_t>& ints = node.attr.ints;
  const size_t rank = node.shape.size();
  std::vector<int64_t> strides(rank);
  int64_t start = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    switch (node.op) {
      case Op::kPermute:
        strides[axis] = from_strides[ints[axis]];
        break;
      case Op::kExpand: {
        const size_t shift = rank - a.shape.size();
        const bool repeated = axis < shift || a.shape[axis - shift] != node.shape[axis];
        strides[axis] = repeated ? 0 : from_strides[axis - shift];
        break;
      }
      case Op::kSlice:
        strides[axis] = from_strides[axis] * ints[3 * axis + 2];
        start += from_strides[axis] * ints[3 * axis];
        break;
      default:  // kFlip
        strides[axis] = from_strides[axis];
        if (std::binary_search(ints.begin(), ints.end(), static_cast<int64_t>(axis))) {
          start += from_strides[axis] * (node.shape[axis] - 1);
          strides[axis] = -strides[axis];
        }
    }
  }
  Array out = Array::Zeros(node.dtype, node.shape);
  ForEachStrided(node.shape, strides, start, [&](int64_t to, int64_t from) {
    if (IsFloat(a.dtype))
      out.floats[to] = a.floats[from];
    else
      out.ints[to] = a.ints[from];
  });
  return out;
}

Array Interpreter::Pad(const Node& node) {
  const Array& a = In(node, 0);
  Array out = Array::Zeros(node.dtype, node.shape);
  const std::vector<int64_t> strides = RowMajorStrides(node.shape);
  int64_t start = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    start += strides[axis] * node.attr.ints[2 * axis];
  }
  ForEachStrided(a.shape, strides, start, [&](int64_t from, int64_t to) {
    if (IsFloat(a.dtype))
      out.floats[to] = a.floats[from];
    else
      out.ints[to] = a.ints[from];
  });
  return out;
}

Array Interpreter::Gather(const Node& node) {
  const Array& a = In(node, 0);
  const Array& index = In(node, 1);
  Array out = Array::Zeros(node.dtype, node.shape);
  const int64_t row = NumElements(Shape(a.shape.begin() + 1, a.shape.end()));
  for (size_t i = 0; i < index.ints.size(); ++i) {
    const int64_t from = index.ints[i];
    if (from < 0 || from >= a.shape[0]) continue;
    const int64_t to = static_cast<int64_t>(i) * row;
    if (IsFloat(a.dtype)) {
      std::copy_n(a.floats.begin() + from * row, row, out.floats.begin() + to);
    } else {
      std::copy_n(a.ints.begin() + from * row, row, out.ints.begin() + to);
    }
  }
  return out;
}

// f32 sums round after each addition, in the order of the index, as every backend must.
Array Interpreter::ScatterAdd(const Node& node) {
  const Array& index = In(node, 0);
  const Array& updates = In(node, 1);
  Array out = Array::Zeros(node.dtype, node.shape);
  const int64_t row = NumElements(Shape(node.shape.begin() + 1, node.shape.end()));
  for (size_t i = 0; i < index.ints.size(); ++i) {
    const int64_t to = index.ints[i];
    if (to < 0 || to >= node.shape[0]) continue;
    for (int64_t j = 0; j < row; ++j) {
      const int64_t from = static_cast<int64_t>(i) * row + j;
      if (IsFloat(node.dtype)) {
        double& sum = out.floats[to * row + j];
        sum = Round(sum + updates.floats[from], node.dtype);
      } else {
        int64_t& sum = out.ints[to * row + j];
        sum = Wrap(static_cast<uint64_t>(sum) + static_cast<uint64_t>(updates.ints[from]),
                   node.dtype);
      }
    }
  }
  return out;
}

Array Interpreter::Iota(const Node& node) {
  Array out = Array::Zeros(node.dtype, node.shape);
  std::vector<int64_t> strides(node.shape.size());
  strides[node.attr.axis] = 1;
  ForEachStrided(node.shape, strides, 0, [&](int64_t to, int64_t count) {
    if (IsFloat(node.dtype))
      out.floats[to] = Round(static_cast<double>(count), node.dtype);
    else
      out.ints[to] = Wrap(static_cast<uint64_t>(count), node.dtype);
  });
  return out;
}

Array Interpreter::Random(const Node& node) {
  Array out = Array::Zeros(node.dtype, node.shape);
  const uint64_t key = static_cast<uint64_t>(In(node, 0).ints[0]);
  for (size_t i = 0; i < out.floats.size(); ++i) out.floats[i] = UniformAt(key, i);
  return out;
}

}  // namespace

Array Array::Floats(DType dtype, Shape shape, std::vector<double> values) {
  return {dtype, std::move(shape), std::move(values), {}};
}

Array Array::Ints(DType dtype, Shape shape, std::vector<int64_t> values) {
  return {dtype, std::move(shape), {}, std::move(values)};
}

Array Array::Zeros(DType dtype, Shape shape) {
  Array array{dtype, std::move(shape), {}, {}};
  const size_t count = static_cast<size_t>(NumElements(array.shape));
  if (IsFloat(dtype))
    array.floats.resize(count);
  else
    array.ints.resize(count);
  return array;
}

std::vector<Array> EvaluateNodes(const Graph& graph, std::span<const Array> inputs,
                                 std::span<const NodeId> nodes, Precision precision) {
  std::vector<NodeId> ids;
  const Graph primitive = ExpandDerived(graph, ids);
  std::vector<NodeId> wanted;
  for (NodeId id : nodes) wanted.push_back(ids.at(id));
  return Interpreter(primitive, precision).Run(inputs, wanted);
}

std::vector<Array> Evaluate(const Graph& graph, std::span<const Array> inputs,
                            Precision precision) {
  std::vector<NodeId> nodes;
  for (const Output& output : graph.outputs()) nodes.push_back(output.node);
  return EvaluateNodes(graph, inputs, nodes, precision);
}

}  // namespace l3c::tensor
