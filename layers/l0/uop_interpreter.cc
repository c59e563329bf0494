// Values are computed in strips: for the innermost axis of a store (or of a reduction that does not
// depend on it) a run of iterations at a time, for the other axes one point at a time. A value is
// kept until an axis that it depends on moves, so what is constant in a loop is computed once.
#include "layers/l0/uop_interpreter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "layers/l0/custom_op.h"
#include "layers/l0/kernel_axes.h"
#include "layers/tensor/bf16.h"

namespace l3c::l0 {
namespace {

constexpr AxisId kNoAxis = UINT32_MAX;
constexpr int64_t kStrip = 1024;

// Bool is kept as 0 or 1.
bool IsSigned(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

int64_t Wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

Number ReadNumber(const void* data, int64_t index, DType dtype) {
  Number number{.i = 0};
  switch (dtype) {
    case DType::kBool:
      number.i = static_cast<const uint8_t*>(data)[index] != 0;
      break;
    case DType::kU8:
      number.i = static_cast<const uint8_t*>(data)[index];
      break;
    case DType::kI32:
      number.i = static_cast<const int32_t*>(data)[index];
      break;
    case DType::kU32:
      number.i = static_cast<const uint32_t*>(data)[index];
      break;
    case DType::kI64:
    case DType::kU64:
      number.i = static_cast<const int64_t*>(data)[index];
      break;
    case DType::kF32:
      number.f = static_cast<const float*>(data)[index];
      break;
    case DType::kF64:
      number.f = static_cast<const double*>(data)[index];
      break;
  }
  return number;
}

void WriteNumber(void* data, int64_t index, DType dtype, Number number) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      static_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(number.i);
      break;
    case DType::kI32:
    case DType::kU32:
      static_cast<uint32_t*>(data)[index] = static_cast<uint32_t>(number.i);
      break;
    case DType::kI64:
    case DType::kU64:
      static_cast<int64_t*>(data)[index] = number.i;
      break;
    case DType::kF32:
      static_cast<float*>(data)[index] = static_cast<float>(number.f);
      break;
    case DType::kF64:
      static_cast<double*>(data)[index] = number.f;
      break;
  }
}

double Maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}

// Truncates towards zero and saturates; NaN gives 0.
int64_t ToInteger(double value, DType to) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  const auto saturate = [&](double low, double high_exclusive, int64_t lowest, int64_t highest) {
    if (value < low) return lowest;
    if (value >= high_exclusive) return highest;
    if (value >= 0x1p63) return static_cast<int64_t>(static_cast<uint64_t>(value));
    return static_cast<int64_t>(value);
  };
  switch (to) {
    case DType::kU8:
      return saturate(0, 256, 0, 255);
    case DType::kI32:
      return saturate(-0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
    case DType::kU32:
      return saturate(0, 0x1p32, 0, UINT32_MAX);
    case DType::kU64:
      return saturate(0, 0x1p64, 0, -1);
    default:
      return saturate(-0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
  }
}

int64_t IntegerToInteger(int64_t value, DType from, DType to) {
  const bool huge = from == DType::kU64 && value < 0;  // at least 2^63
  switch (to) {
    case DType::kU8:
      return huge ? 255 : std::clamp<int64_t>(value, 0, 255);
    case DType::kI32:
      return huge ? INT32_MAX : std::clamp<int64_t>(value, INT32_MIN, INT32_MAX);
    case DType::kU32:
      return huge ? UINT32_MAX : std::clamp<int64_t>(value, 0, UINT32_MAX);
    case DType::kU64:
      return huge ? value : std::max<int64_t>(value, 0);
    default:
      return huge ? INT64_MAX : value;
  }
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, void* const* params, const InterpreterOptions& options)
      : kernel_(kernel),
        options_(options),
        free_(FreeAxes(kernel)),
        at_(kernel.axes.size(), 0),
        moved_(kernel.axes.size(), 0),
        low_(kernel.axes.size(), 0),
        high_(kernel.axes.size()),
        slots_(kernel.uops.size()),
        invariants_(kernel.uops.size()),
        bodies_(kernel.uops.size()) {
    std::vector<bool> read(kernel.params.size(), false);
    std::vector<bool> written(kernel.params.size(), false);
    for (const Uop& uop : kernel.uops) {
      if (uop.op == UOp::kLoad) read[uop.param] = true;
      if (uop.op == UOp::kStore) written[uop.param] = true;
    }
    before_.resize(kernel.params.size());
    for (uint32_t p = 0; p < kernel.params.size(); ++p) {
      write_.push_back(params[p]);
      read_.push_back(params[p]);
      if (!read[p] || !written[p]) continue;
      const size_t bytes = static_cast<size_t>(tensor::NumElements(kernel.params[p].shape)) *
                           SizeOf(kernel.params[p].dtype);
      const auto* data = static_cast<const std::byte*>(params[p]);
      before_[p].assign(data, data + bytes);
      read_.back() = before_[p].data();
    }
  }

  void RunBlock(int64_t block) {
    for (size_t axis = kernel_.axes.size(); axis-- > 0;) {
      const Axis& a = kernel_.axes[axis];
      low_[axis] = 0;
      high_[axis] = a.extent;
      if (a.kind != AxisKind::kGrid) continue;
      const int64_t blocks = (a.extent + a.block - 1) / a.block;
      low_[axis] = block % blocks * a.block;
      high_[axis] = std::min(low_[axis] + a.block, a.extent);
      block /= blocks;
    }
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      if (kernel_.uops[id].op == UOp::kStore) RunStore(id);
    }
  }

 private:
  struct Slot {
    std::vector<Number> values;  // one, or one for each iteration of the strip
    uint64_t computed = 0;       // clock; 0: never
    AxisId strip = kNoAxis;      // along which the values lie
  };

  // ---- Positions ----------------------------------------------------------------------------

  void Move(AxisId axis, int64_t to) {
    at_[axis] = to;
    moved_[axis] = ++clock_;
  }

  // Calls `body` at every point of `axes`, the last fastest.
  void ForEach(const std::vector<AxisId>& axes, size_t depth, const std::function<void()>& body) {
    if (depth == axes.size()) return body();
    const AxisId axis = axes[depth];
    for (int64_t i = low_[axis]; i < high_[axis]; ++i) {
      Move(axis, i);
      ForEach(axes, depth + 1, body);
    }
  }

  // The same in strips of `axis`.
  void ForStrips(AxisId axis, const std::function<void()>& body) {
    const AxisId outer = strip_;
    const int64_t outer_length = length_;
    strip_ = axis;
    for (int64_t begin = low_[axis]; begin < high_[axis]; begin += kStrip) {
      length_ = std::min(kStrip, high_[axis] - begin);
      Move(axis, begin);
      body();
    }
    strip_ = outer;
    length_ = outer_length;
  }

  bool AlongStrip(AxisSet set) const { return strip_ != kNoAxis && (set & AxisBit(strip_)) != 0; }

  int64_t IndexAt(const Affine& affine) const {
    int64_t index = affine.constant;
    for (const auto& [axis, coefficient] : affine.terms) index += coefficient * at_[axis];
    return index;
  }

  // ---- Stores -------------------------------------------------------------------------------

  void RunStore(UopId id) {
    std::vector<AxisId> axes = AxesIn(free_[id]);
    if (axes.empty()) return Store(id);
    const AxisId innermost = axes.back();
    axes.pop_back();
    ForEach(axes, 0, [&] { ForStrips(innermost, [&] { Store(id); }); });
  }

  void Store(UopId id) {
    const Uop& uop = kernel_.uops[id];
    ComputeBody(id);
    const DType dtype = kernel_.params[uop.param].dtype;
    const std::vector<Number>& values = Value(uop.src[0]);
    const bool wide = values.size() > 1 || AlongStrip(free_[uop.src[0]]);
    const int64_t count = AlongStrip(free_[id]) ? length_ : 1;
    const std::vector<Number>* dynamic = IsDynamic(uop) ? &Value(uop.src.back()) : nullptr;
    const bool dynamic_wide = dynamic != nullptr && AlongStrip(free_[uop.src.back()]);
    void* data = write_[uop.param];
    for (int64_t l = 0; l < count; ++l) {
      int64_t index = 0;
      if (!Locate(uop, l, dynamic, dynamic_wide, &index)) continue;
      Number value = values[wide ? static_cast<size_t>(l) : 0];
      if (uop.accumulate) {
        const Number old = ReadNumber(data, index, dtype);
        value = Add(old, value, dtype);
      }
      WriteNumber(data, index, dtype, value);
    }
  }

  // The element that iteration `l` of the strip touches; false where a guard fails.
  bool Locate(const Uop& uop, int64_t l, const std::vector<Number>* dynamic, bool dynamic_wide,
              int64_t* index) const {
    for (const Guard& guard : uop.guards) {
      int64_t value = IndexAt(guard.expression);
      if (strip_ != kNoAxis) value += l * CoefficientOf(guard.expression, strip_);
      if (value < guard.low || value >= guard.high) return false;
    }
    *index = IndexAt(uop.index);
    if (strip_ != kNoAxis) *index += l * CoefficientOf(uop.index, strip_);
    if (dynamic == nullptr) return true;
    const int64_t row = (*dynamic)[dynamic_wide ? static_cast<size_t>(l) : 0].i;
    if (row < 0 || row >= uop.dynamic_extent) return false;
    *index += row * uop.dynamic_stride;
    return true;
  }

  // ---- Values -------------------------------------------------------------------------------

  double Round(double value, DType dtype) const {
    return dtype == DType::kF32 && !options_.widen ? static_cast<double>(static_cast<float>(value))
                                                   : value;
  }

  Number Add(Number x, Number y, DType dtype) const {
    Number sum;
    if (tensor::IsFloat(dtype)) {
      sum.f = Round(x.f + y.f, dtype);
    } else {
      sum.i = Wrap(static_cast<int64_t>(static_cast<uint64_t>(x.i) + static_cast<uint64_t>(y.i)),
                   dtype);
    }
    return sum;
  }

  Number Max(Number x, Number y, DType dtype) const {
    Number max;
    if (tensor::IsFloat(dtype)) {
      max.f = Maximum(x.f, y.f);
    } else if (dtype == DType::kU64) {
      max.i = static_cast<uint64_t>(x.i) > static_cast<uint64_t>(y.i) ? x.i : y.i;
    } else {
      max.i = std::max(x.i, y.i);
    }
    return max;
  }

  const std::vector<Number>& Value(UopId id) {
    Slot& slot = slots_[id];
    const bool along = AlongStrip(free_[id]);
    uint64_t moved = 0;
    for (AxisSet rest = free_[id]; rest != 0; rest &= rest - 1) {
      moved = std::max(moved, moved_[static_cast<size_t>(std::countr_zero(rest))]);
    }
    const AxisId strip = along ? strip_ : kNoAxis;
    if (slot.computed > moved && slot.strip == strip) return slot.values;
    const Uop& uop = kernel_.uops[id];
    if (uop.op == UOp::kReduce) {
      Reduce(id);
    } else {
      std::vector<const Number*> operands;
      std::vector<size_t> steps;
      for (UopId operand : uop.src) {
        operands.push_back(Value(operand).data());
        steps.push_back(AlongStrip(free_[operand]) ? 1 : 0);
      }
      slot.values.resize(along ? static_cast<size_t>(length_) : 1);
      if (uop.op == UOp::kLoad) {
        Load(uop, slot.values);
      } else {
        Compute(uop, operands, steps, slot.values);
      }
    }
    slot.strip = strip;
    slot.computed = ++clock_;
    return slot.values;
  }

  void Load(const Uop& uop, std::vector<Number>& out) {
    const std::vector<Number>* dynamic = IsDynamic(uop) ? &Value(uop.src.back()) : nullptr;
    const bool dynamic_wide = dynamic != nullptr && AlongStrip(free_[uop.src.back()]);
    const void* data = read_[uop.param];
    if (uop.guards.empty() && dynamic == nullptr) {
      const int64_t index = IndexAt(uop.index);
      const int64_t step = strip_ == kNoAxis ? 0 : CoefficientOf(uop.index, strip_);
      for (size_t l = 0; l < out.size(); ++l) {
        out[l] = ReadNumber(data, index + static_cast<int64_t>(l) * step, uop.dtype);
      }
      return;
    }
    for (size_t l = 0; l < out.size(); ++l) {
      int64_t index = 0;
      if (Locate(uop, static_cast<int64_t>(l), dynamic, dynamic_wide, &index)) {
        out[l] = ReadNumber(data, index, uop.dtype);
      } else if (tensor::IsFloat(uop.dtype)) {
        out[l].f = 0;
      } else {
        out[l].i = 0;
      }
    }
  }

  // The values under a store, or under a reduction and changed by its axes, operands first:
  // computed in this order, no value has far to go for its operands, however deep the kernel is.
  void ComputeBody(UopId root) {
    std::vector<UopId>& body = bodies_[root];
    if (body.empty()) {
      const bool reduces = kernel_.uops[root].op == UOp::kReduce;
      std::vector<bool> seen(kernel_.uops.size(), false);
      std::vector<UopId> stack = kernel_.uops[root].src;
      while (!stack.empty()) {
        const UopId id = stack.back();
        stack.pop_back();
        if (seen[id] || (reduces && (free_[id] & ~free_[root]) == 0)) continue;
        seen[id] = true;
        body.push_back(id);
        const std::vector<UopId>& next =
            kernel_.uops[id].op == UOp::kReduce ? Invariants(id) : kernel_.uops[id].src;
        stack.insert(stack.end(), next.begin(), next.end());
      }
      std::sort(body.begin(), body.end());
    }
    for (UopId id : body) Value(id);
  }

  // What a reduction reads that its own axes do not change. Computed before they move, for two
  // reductions may bind the same axis.
  const std::vector<UopId>& Invariants(UopId reduce) {
    if (!invariants_[reduce].empty()) return invariants_[reduce];
    std::vector<bool> seen(kernel_.uops.size(), false);
    std::vector<UopId> stack = kernel_.uops[reduce].src;
    while (!stack.empty()) {
      const UopId id = stack.back();
      stack.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      if ((free_[id] & ~free_[reduce]) == 0) {
        invariants_[reduce].push_back(id);
      } else {
        const std::vector<UopId>& src = kernel_.uops[id].src;
        stack.insert(stack.end(), src.begin(), src.end());
      }
    }
    return invariants_[reduce];
  }

  void Reduce(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const UopId operand = uop.src[0];
    for (UopId invariant : Invariants(id)) Value(invariant);
    if (uop.in_tiles && !options_.widen) return ReduceInTiles(id);
    Number neutral;
    if (tensor::IsFloat(uop.dtype)) {
      neutral.f = uop.fold == Fold::kAdd ? 0 : -std::numeric_limits<double>::infinity();
    } else {
      neutral.i = uop.fold == Fold::kAdd     ? 0
                  : uop.dtype == DType::kI32 ? std::numeric_limits<int32_t>::min()
                  : uop.dtype == DType::kI64 ? std::numeric_limits<int64_t>::min()
                                             : 0;
    }
    const auto fold = [&](Number x, Number y) {
      return uop.fold == Fold::kAdd ? Add(x, y, uop.dtype) : Max(x, y, uop.dtype);
    };
    std::vector<Number> sums;
    if (AlongStrip(free_[id])) {
      sums.assign(static_cast<size_t>(length_), neutral);
      ForEach(uop.axes, 0, [&] {
        ComputeBody(id);
        const std::vector<Number>& values = Value(operand);
        const size_t step = AlongStrip(free_[operand]) ? 1 : 0;
        for (size_t l = 0; l < sums.size(); ++l) sums[l] = fold(sums[l], values[l * step]);
      });
    } else {
      sums.assign(1, neutral);
      std::vector<AxisId> outer = uop.axes;
      const AxisId innermost = outer.back();
      outer.pop_back();
      ForEach(outer, 0, [&] {
        ForStrips(innermost, [&] {
          ComputeBody(id);
          const std::vector<Number>& values = Value(operand);
          const size_t step = AlongStrip(free_[operand]) ? 1 : 0;
          for (int64_t l = 0; l < length_; ++l) {
            sums[0] = fold(sums[0], values[static_cast<size_t>(l) * step]);
          }
        });
      });
    }
    slots_[id].values = std::move(sums);
  }

  // In the order that Bf16TileSum gives the pairs of each piece.
  void ReduceInTiles(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const Uop& product = kernel_.uops[uop.src[0]];
    const size_t count = AlongStrip(free_[id]) ? static_cast<size_t>(length_) : 1;
    std::vector<std::vector<uint32_t>> pairs[2];
    for (auto& of_factor : pairs) of_factor.resize(count);
    std::vector<Number> sums(count);
    const auto add = [&] {
      for (size_t l = 0; l < count; ++l) {
        sums[l].f = tensor::Bf16TileSum(static_cast<float>(sums[l].f), pairs[0][l], pairs[1][l]);
        pairs[0][l].clear();
        pairs[1][l].clear();
      }
    };
    ForEach(uop.axes, 0, [&] {
      for (size_t factor = 0; factor < 2; ++factor) {
        const std::vector<Number>& values = Value(product.src[factor]);
        const size_t step = AlongStrip(free_[product.src[factor]]) ? 1 : 0;
        for (size_t l = 0; l < count; ++l) {
          pairs[factor][l].push_back(static_cast<uint32_t>(values[l * step].i));
        }
      }
      if (static_cast<int64_t>(pairs[0][0].size()) == tensor::kBf16TilePairs) add();
    });
    if (!pairs[0][0].empty()) add();
    slots_[id].values = std::move(sums);
  }

  template <typename F>
  static void Each(std::vector<Number>& out, const F& f) {
    for (size_t l = 0; l < out.size(); ++l) out[l] = f(l);
  }

  void Compute(const Uop& uop, const std::vector<const Number*>& src,
               const std::vector<size_t>& step, std::vector<Number>& out) const {
    const DType dtype = uop.dtype;
    const bool is_float = tensor::IsFloat(dtype);
    const auto at = [&](size_t operand, size_t l) { return src[operand][l * step[operand]]; };
    const auto floats = [&](auto f) {
      Each(out, [&](size_t l) { return Number{.f = Round(f(at(0, l).f), dtype)}; });
    };
    const DType from = uop.src.empty() ? dtype : kernel_.uops[uop.src[0]].dtype;
    switch (uop.op) {
      case UOp::kConst:
        out[0] = is_float ? Number{.f = Round(uop.number, dtype)} : Number{.i = uop.integer};
        return;
      case UOp::kRange: {
        const int64_t begin = at_[uop.axis];
        return Each(out, [&](size_t l) { return Number{.i = begin + static_cast<int64_t>(l)}; });
      }
      case UOp::kAdd:
        return Each(out, [&](size_t l) { return Add(at(0, l), at(1, l), dtype); });
      case UOp::kMax:
        return Each(out, [&](size_t l) { return Max(at(0, l), at(1, l), dtype); });
      case UOp::kMul:
        return Each(out, [&](size_t l) {
          const Number x = at(0, l);
          const Number y = at(1, l);
          if (is_float) return Number{.f = Round(x.f * y.f, dtype)};
          return Number{.i = Wrap(static_cast<int64_t>(static_cast<uint64_t>(x.i) *
                                                       static_cast<uint64_t>(y.i)),
                                  dtype)};
        });
      case UOp::kNeg:
        return Each(out, [&](size_t l) {
          if (is_float) return Number{.f = -at(0, l).f};
          return Number{
              .i = Wrap(static_cast<int64_t>(0 - static_cast<uint64_t>(at(0, l).i)), dtype)};
        });
      case UOp::kMod:
        return Each(out, [&](size_t l) { return Modulo(at(0, l), at(1, l), dtype); });
      case UOp::kReciprocal:
        return floats([](double x) { return 1.0 / x; });
      case UOp::kSqrt:
        return floats([](double x) { return std::sqrt(x); });
      case UOp::kExp2:
        return floats([](double x) { return std::exp2(x); });
      case UOp::kLog2:
        return floats([](double x) { return std::log2(x); });
      case UOp::kSin:
        return floats([](double x) { return std::sin(x); });
      case UOp::kCmpLt:
        return Each(out, [&](size_t l) { return Number{.i = Less(at(0, l), at(1, l), from)}; });
      case UOp::kCmpNe:
        return Each(out, [&](size_t l) {
          const Number x = at(0, l);
          const Number y = at(1, l);
          return Number{.i = tensor::IsFloat(from) ? x.f != y.f : x.i != y.i};
        });
      case UOp::kWhere:
        return Each(out, [&](size_t l) { return at(0, l).i != 0 ? at(1, l) : at(2, l); });
      case UOp::kCast:
        return Each(out, [&](size_t l) { return Cast(at(0, l), from, dtype); });
      case UOp::kCustom:
        return Custom(uop, out, at);
      case UOp::kBitcast:
        return Each(out, [&](size_t l) {
          uint64_t bytes = 0;
          WriteNumber(&bytes, 0, from, at(0, l));
          return ReadNumber(&bytes, 0, dtype);
        });
      default:
        return;  // the verifier admits no other op
    }
  }

  template <typename At>
  void Custom(const Uop& uop, std::vector<Number>& out, const At& at) const {
    const CustomOp& op = *FindCustomOp(uop.custom);
    const std::vector<const tensor::Shape*> shapes = CustomShapes(kernel_, uop);
    std::vector<const void*> memory;
    for (uint32_t param : uop.memory) memory.push_back(read_[param]);
    std::vector<Number> operands(uop.src.size());
    for (size_t l = 0; l < out.size(); ++l) {
      for (size_t i = 0; i < operands.size(); ++i) operands[i] = at(i, l);
      out[l] = op.evaluate({operands, memory, shapes, options_.widen});
    }
  }

  static bool Less(Number x, Number y, DType dtype) {
    if (tensor::IsFloat(dtype)) return x.f < y.f;
    if (dtype == DType::kU64) return static_cast<uint64_t>(x.i) < static_cast<uint64_t>(y.i);
    return x.i < y.i;
  }

  Number Modulo(Number x, Number y, DType dtype) const {
    if (tensor::IsFloat(dtype)) return {.f = Round(std::fmod(x.f, y.f), dtype)};
    if (y.i == 0) return {.i = 0};
    if (!IsSigned(dtype)) {
      return {.i = static_cast<int64_t>(static_cast<uint64_t>(x.i) % static_cast<uint64_t>(y.i))};
    }
    return {.i = y.i == -1 ? 0 : x.i % y.i};
  }

  Number Cast(Number x, DType from, DType to) const {
    if (from == to) return x;
    if (to == DType::kBool) return {.i = tensor::IsFloat(from) ? x.f != 0 : x.i != 0};
    if (tensor::IsFloat(from)) {
      return tensor::IsFloat(to) ? Number{.f = Round(x.f, to)} : Number{.i = ToInteger(x.f, to)};
    }
    if (!tensor::IsFloat(to)) return {.i = IntegerToInteger(x.i, from, to)};
    if (to == DType::kF32 && !options_.widen) {
      // Once, from the integer: by way of f64 it could round twice.
      return {.f = from == DType::kU64 ? static_cast<float>(static_cast<uint64_t>(x.i))
                                       : static_cast<float>(x.i)};
    }
    return {.f = from == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(x.i))
                                     : static_cast<double>(x.i)};
  }

  const Kernel& kernel_;
  const InterpreterOptions options_;
  const std::vector<AxisSet> free_;
  std::vector<int64_t> at_;
  std::vector<uint64_t> moved_;
  std::vector<int64_t> low_;
  std::vector<int64_t> high_;
  std::vector<Slot> slots_;
  std::vector<std::vector<UopId>> invariants_;  // of each reduction
  std::vector<std::vector<UopId>> bodies_;      // of each store and reduction
  uint64_t clock_ = 1;
  AxisId strip_ = kNoAxis;
  int64_t length_ = 1;
  std::vector<std::vector<std::byte>> before_;
  std::vector<const void*> read_;
  std::vector<void*> write_;
};

}  // namespace

void Run(const Kernel& kernel, void* const* params, int64_t block_begin, int64_t block_end,
         const InterpreterOptions& options) {
  Interpreter interpreter(kernel, params, options);
  for (int64_t block = block_begin; block < block_end; ++block) interpreter.RunBlock(block);
}

}  // namespace l3c::l0
