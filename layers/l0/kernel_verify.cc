#include "layers/l0/kernel_verify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "layers/l0/custom_op.h"
#include "layers/l0/gpu_launch.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/staging.h"
#include "layers/l0/tile_product.h"

namespace l3c::l0 {
namespace {

using support::Diagnostics;
using support::Kind;
using support::Span;

std::string Quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

class Verifier {
 public:
  Verifier(const Kernel& kernel, Diagnostics& diagnostics)
      : kernel_(kernel), diagnostics_(diagnostics) {}

  bool Run() {
    CheckDeclarations();
    // What follows indexes by what was checked so far.
    if (!CheckReferences() || failed_) return false;
    CheckDepth();
    free_ = FreeAxes(kernel_);
    CheckTypes();
    CheckAxisUse();
    if (failed_) return false;
    CheckBounds();
    if (failed_) return false;  // indices may not fit the arithmetic below
    CheckSchedule();
    CheckAccess();
    CheckBlocks();
    return !failed_;
  }

 private:
  support::Diagnostic& Error(Kind kind, Span span, const std::string& message) {
    failed_ = true;
    return diagnostics_.Error(kind, span.known() ? span : kernel_.span,
                              "kernel " + kernel_.name + ": " + message);
  }

  // "load x" for a message.
  std::string Describe(UopId id) const {
    const Uop& uop = kernel_.uops[id];
    std::string text(UopName(uop.op));
    if (uop.op == UOp::kLoad || uop.op == UOp::kStore) {
      text += " " + kernel_.params[uop.param].name;
    }
    return text;
  }

  const Axis& AxisOf(AxisId axis) const { return kernel_.axes[axis]; }

  // ---- Declarations -------------------------------------------------------------------------

  void CheckDeclarations() {
    if (kernel_.name.empty()) Error(Kind::kConsistency, kernel_.span, "it has no name");
    if (kernel_.uops.size() > kMaxUops) {
      Error(Kind::kResourceBound, kernel_.span,
            "more than " + std::to_string(kMaxUops) + " operations");
    }
    if (kernel_.axes.size() > kMaxAxes) {
      Error(Kind::kResourceBound, kernel_.span, "more than " + std::to_string(kMaxAxes) + " axes");
    }
    std::set<std::string> names;
    for (const Param& param : kernel_.params) {
      if (!names.insert(param.name).second) {
        Error(Kind::kConsistency, kernel_.span,
              "parameter " + Quoted(param.name) + " is declared twice");
      }
      int64_t elements = 1;
      for (int64_t extent : param.shape) {
        if (extent < 0) {
          Error(Kind::kConsistency, kernel_.span,
                "parameter " + Quoted(param.name) + " has a negative extent");
          return;
        }
        const bool fits = extent == 0 || elements <= tensor::kMaxElements / extent;
        elements = fits ? elements * extent : elements;
        if (!fits) {
          Error(Kind::kResourceBound, kernel_.span,
                "parameter " + Quoted(param.name) + " is too large");
          return;
        }
      }
    }
    names.clear();
    bool past_grid = false;
    for (const Axis& axis : kernel_.axes) {
      if (!names.insert(axis.name).second) {
        Error(Kind::kConsistency, kernel_.span, "axis " + Quoted(axis.name) + " is declared twice");
      }
      CheckAxis(axis);
      if (axis.kind == AxisKind::kGrid && past_grid) {
        Error(Kind::kConsistency, kernel_.span,
              "grid axis " + Quoted(axis.name) + " stands after a loop or reduce axis");
      }
      past_grid |= axis.kind != AxisKind::kGrid;
    }
  }

  void CheckAxis(const Axis& axis) {
    const std::string name = "axis " + Quoted(axis.name);
    if (axis.extent < 0 || axis.extent > kMaxExtent) {
      Error(Kind::kResourceBound, kernel_.span, name + " has an extent out of range");
    }
    if (axis.block < 1 || axis.block > kMaxExtent) {
      Error(Kind::kResourceBound, kernel_.span, name + " has a block out of range");
    }
    if (axis.kind != AxisKind::kGrid && axis.block != 1) {
      Error(Kind::kConsistency, kernel_.span, name + " has blocks, but is not a grid axis");
    }
    if (axis.tile < 1 || axis.tile > kMaxTile) {
      Error(Kind::kResourceBound, kernel_.span,
            name + " has a tile out of range (1 to " + std::to_string(kMaxTile) + ")");
    }
    if (axis.vector < 1 || axis.vector > kMaxLanes || (axis.vector & (axis.vector - 1)) != 0) {
      Error(Kind::kResourceBound, kernel_.span,
            name + " needs a power of two of lanes, at most " + std::to_string(kMaxLanes));
    } else if (axis.tile % axis.vector != 0) {
      Error(Kind::kConsistency, kernel_.span,
            name + ": " + std::to_string(axis.vector) + " lanes do not divide its tile of " +
                std::to_string(axis.tile));
    }
  }

  // ---- References ---------------------------------------------------------------------------

  bool CheckReferences() {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      if (!CheckReferencesOf(id)) return false;
    }
    return true;
  }

  bool CheckReferencesOf(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const auto fail = [&](const std::string& message) {
      Error(Kind::kSafety, uop.span, message);
      return false;
    };
    for (UopId operand : uop.src) {
      if (operand >= id)
        return fail("operand %" + std::to_string(operand) + " comes after its use");
      if (kernel_.uops[operand].op == UOp::kStore) return fail("a store has no value to use");
    }
    const auto axis_ok = [&](AxisId axis) { return axis < kernel_.axes.size(); };
    const auto affine_ok = [&](const Affine& affine) {
      for (size_t i = 0; i < affine.terms.size(); ++i) {
        const auto& [axis, coefficient] = affine.terms[i];
        if (!axis_ok(axis) || coefficient == 0) return false;
        if (i > 0 && affine.terms[i - 1].first >= axis) return false;
      }
      return true;
    };
    size_t arity = 0;
    switch (uop.op) {
      case UOp::kLoad:
      case UOp::kStore:
        if (uop.param >= kernel_.params.size()) return fail("no such parameter");
        if (!affine_ok(uop.index)) return fail("malformed index");
        for (const Guard& guard : uop.guards) {
          if (!affine_ok(guard.expression)) return fail("malformed guard");
        }
        if (uop.dynamic_extent < 0 || uop.dynamic_extent > kMaxExtent) {
          return fail("the number of rows of a gather is out of range");
        }
        arity = (uop.op == UOp::kStore ? 1 : 0) + (uop.dynamic_stride != 0 ? 1 : 0);
        break;
      case UOp::kConst:
        break;
      case UOp::kRange:
        if (!axis_ok(uop.axis)) return fail("no such axis");
        break;
      case UOp::kReduce:
        arity = 1;
        if (uop.axes.empty()) return fail("a reduction binds no axis");
        for (size_t i = 0; i < uop.axes.size(); ++i) {
          if (!axis_ok(uop.axes[i])) return fail("no such axis");
          if (i > 0 && uop.axes[i - 1] >= uop.axes[i]) {
            return fail("a reduction lists its axes out of order");
          }
        }
        break;
      case UOp::kNeg:
      case UOp::kReciprocal:
      case UOp::kExp2:
      case UOp::kLog2:
      case UOp::kSin:
      case UOp::kSqrt:
      case UOp::kCast:
      case UOp::kBitcast:
        arity = 1;
        break;
      case UOp::kAdd:
      case UOp::kMul:
      case UOp::kMax:
      case UOp::kMod:
      case UOp::kCmpLt:
      case UOp::kCmpNe:
        arity = 2;
        break;
      case UOp::kWhere:
        arity = 3;
        break;
      case UOp::kCustom:
        if (FindCustomOp(uop.custom) == nullptr) {
          return fail("there is no operation '" + uop.custom + "'");
        }
        arity = FindCustomOp(uop.custom)->operands.size();
        if (uop.memory.size() != FindCustomOp(uop.custom)->memory.size()) {
          return fail("'" + uop.custom + "' reads " +
                      std::to_string(FindCustomOp(uop.custom)->memory.size()) +
                      " parameters, not " + std::to_string(uop.memory.size()));
        }
        for (uint32_t param : uop.memory) {
          if (param >= kernel_.params.size()) return fail("no such parameter");
        }
        break;
      case UOp::kWmma:
        return fail(std::string(UopName(uop.op)) + " is not supported");
      default:
        return fail(std::string(UopName(uop.op)) + " belongs to linear code, not to a kernel");
    }
    if (uop.src.size() != arity) {
      return fail(std::string(UopName(uop.op)) + " takes " + std::to_string(arity) +
                  " operands, not " + std::to_string(uop.src.size()));
    }
    return true;
  }

  void CheckDepth() {
    std::vector<int> depth(kernel_.uops.size(), 0);
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      for (UopId operand : kernel_.uops[id].src) {
        depth[id] = std::max(depth[id], depth[operand] + 1);
      }
      if (depth[id] <= kMaxDepth) continue;
      Error(Kind::kResourceBound, kernel_.uops[id].span,
            "operations nest deeper than " + std::to_string(kMaxDepth));
      return;
    }
  }

  // ---- Types --------------------------------------------------------------------------------

  DType TypeOf(UopId id) const { return kernel_.uops[id].dtype; }

  void Require(UopId id, bool condition, const std::string& message) {
    if (!condition) Error(Kind::kSafety, kernel_.uops[id].span, Describe(id) + ": " + message);
  }

  void CheckTypes() {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      const auto same = [&](size_t i, size_t j) {
        Require(id, TypeOf(uop.src[i]) == TypeOf(uop.src[j]),
                "operands are " + std::string(DTypeName(TypeOf(uop.src[i]))) + " and " +
                    std::string(DTypeName(TypeOf(uop.src[j]))));
      };
      const auto result = [&](DType dtype) {
        Require(id, uop.dtype == dtype,
                "its dtype is " + std::string(DTypeName(uop.dtype)) + ", should be " +
                    std::string(DTypeName(dtype)));
      };
      switch (uop.op) {
        case UOp::kLoad:
          result(kernel_.params[uop.param].dtype);
          break;
        case UOp::kStore:
          Require(id, TypeOf(uop.src[0]) == kernel_.params[uop.param].dtype,
                  "the value is " + std::string(DTypeName(TypeOf(uop.src[0]))) +
                      ", the parameter " + std::string(DTypeName(kernel_.params[uop.param].dtype)));
          break;
        case UOp::kRange:
          result(DType::kI64);
          break;
        case UOp::kAdd:
        case UOp::kMul:
        case UOp::kMax:
          same(0, 1);
          result(TypeOf(uop.src[0]));
          break;
        case UOp::kMod:
          same(0, 1);
          [[fallthrough]];
        case UOp::kNeg:
          result(TypeOf(uop.src[0]));
          Require(id, uop.dtype != DType::kBool, "not defined on bool");
          break;
        case UOp::kReciprocal:
        case UOp::kExp2:
        case UOp::kLog2:
        case UOp::kSin:
        case UOp::kSqrt:
          result(TypeOf(uop.src[0]));
          Require(id, tensor::IsFloat(uop.dtype), "defined on f32 and f64 only");
          break;
        case UOp::kCmpLt:
        case UOp::kCmpNe:
          same(0, 1);
          result(DType::kBool);
          break;
        case UOp::kWhere:
          Require(id, TypeOf(uop.src[0]) == DType::kBool, "the condition is not bool");
          same(1, 2);
          result(TypeOf(uop.src[1]));
          break;
        case UOp::kBitcast:
          Require(id, SizeOf(uop.dtype) == SizeOf(TypeOf(uop.src[0])), "sizes differ");
          Require(id, uop.dtype != DType::kBool || TypeOf(uop.src[0]) == DType::kBool,
                  "not every u8 is a bool");
          break;
        case UOp::kReduce:
          result(TypeOf(uop.src[0]));
          break;
        case UOp::kCustom:
          CheckCustom(id);
          result(FindCustomOp(uop.custom)->result);
          break;
        default:
          break;
      }
      if (IsDynamic(uop)) {
        const DType row = TypeOf(uop.src.back());
        Require(id, !tensor::IsFloat(row) && row != DType::kBool, "the row is not an integer");
      }
    }
  }

  // Operands and parameters as declared, and a footprint that lies within them.
  void CheckCustom(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const CustomOp& op = *FindCustomOp(uop.custom);
    for (size_t i = 0; i < op.operands.size(); ++i) {
      Require(id, TypeOf(uop.src[i]) == op.operands[i],
              "operand " + std::to_string(i + 1) + " of " + uop.custom + " is " +
                  std::string(DTypeName(TypeOf(uop.src[i]))) + ", should be " +
                  std::string(DTypeName(op.operands[i])));
    }
    for (size_t i = 0; i < op.memory.size(); ++i) {
      const Param& param = kernel_.params[uop.memory[i]];
      Require(id, param.dtype == op.memory[i],
              uop.custom + " reads " + std::string(DTypeName(op.memory[i])) + " from " +
                  Quoted(param.name) + ", which holds " + std::string(DTypeName(param.dtype)));
      // It reads wherever its operands lead it, so nothing of it may be written meanwhile.
      Require(id, param.access == Access::kIn,
              uop.custom + " reads " + Quoted(param.name) + ", which is not in");
    }
    if (op.memory.empty() || failed_) return;
    const std::vector<const tensor::Shape*> shapes = CustomShapes(kernel_, uop);
    const std::string why = op.refuses(shapes);
    Require(id, why.empty(), uop.custom + " cannot read these parameters: " + why);
    if (failed_) return;
    const std::vector<CustomRange> ranges = op.footprint(shapes);
    for (size_t i = 0; i < ranges.size(); ++i) {
      const int64_t elements = tensor::NumElements(*shapes[i]);
      Require(id,
              0 <= ranges[i].begin && ranges[i].begin <= ranges[i].end && ranges[i].end <= elements,
              uop.custom + " reads beyond the " + std::to_string(elements) + " elements of " +
                  Quoted(kernel_.params[uop.memory[i]].name));
    }
  }

  // ---- Axes ---------------------------------------------------------------------------------

  void CheckAxisUse() {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      if (uop.op == UOp::kReduce) {
        for (AxisId axis : uop.axes) {
          if (AxisOf(axis).kind != AxisKind::kReduce) {
            Error(Kind::kConsistency, uop.span,
                  "a reduction binds axis " + Quoted(AxisOf(axis).name) +
                      ", which is not a reduce axis");
          }
        }
      }
      if (uop.op != UOp::kStore) continue;
      for (AxisId axis : AxesIn(free_[id])) {
        if (AxisOf(axis).kind == AxisKind::kReduce) {
          Error(Kind::kSafety, uop.span,
                Describe(id) + " depends on reduce axis " + Quoted(AxisOf(axis).name) +
                    " outside any reduction");
        }
      }
    }
  }

  // ---- Bounds -------------------------------------------------------------------------------

  bool IsEmpty(AxisSet set) const {
    for (AxisId axis : AxesIn(set)) {
      if (AxisOf(axis).extent == 0) return true;
    }
    return false;
  }

  void CheckBounds() {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      if (uop.op != UOp::kLoad && uop.op != UOp::kStore) continue;
      if (IsEmpty(free_[id])) continue;
      Interval range = Bounds(uop.index, kernel_.axes);
      for (const Guard& guard : uop.guards) {
        if (!Bounds(guard.expression, kernel_.axes).fits) range.fits = false;
      }
      if (range.fits && !uop.guards.empty()) range = GuardedBounds(uop);
      if (range.fits && uop.dynamic_stride != 0) {
        if (uop.dynamic_extent == 0) continue;
        const Interval reach = Reach(uop.dynamic_stride, uop.dynamic_extent);
        range.fits = reach.fits;
        range.low += reach.low;
        range.high += reach.high;
      }
      const int64_t elements = tensor::NumElements(kernel_.params[uop.param].shape);
      if (!range.fits) {
        Error(Kind::kSafety, uop.span, Describe(id) + ": its index does not fit 62 bits");
      } else if (range.low <= range.high && (range.low < 0 || range.high >= elements)) {
        Error(Kind::kSafety, uop.span,
              Describe(id) + ": index " + std::to_string(range.low < 0 ? range.low : range.high) +
                  " is outside its " + std::to_string(elements) + " elements");
      }
    }
  }

  // The values of coefficient times [0, extent).
  static Interval Reach(int64_t coefficient, int64_t extent) {
    Axis axis;
    axis.extent = extent;
    return Bounds(Affine{0, {{0, coefficient}}}, {axis});
  }

  // Smallest and largest index where all guards hold; low > high: nowhere.
  //
  // Interval arithmetic over axes alone would lose that `28*(y+d) + x+e` with y+d and x+e guarded
  // stays inside the image. So the index is written as Σ m·guard expression + rest, m chosen for
  // the guard's axis of largest coefficient, whenever that leaves fewer terms; each guard
  // expression then counts with its own bounds.
  Interval GuardedBounds(const Uop& uop) const {
    Interval best = Bounds(uop.index, kernel_.axes);
    bool possible = true;
    std::map<AxisId, int64_t> rest;
    for (const auto& [axis, coefficient] : uop.index.terms) rest[axis] = coefficient;
    Interval total{true, uop.index.constant, uop.index.constant};
    for (const Guard& guard : uop.guards) {
      const Interval natural = Bounds(guard.expression, kernel_.axes);
      const int64_t low = std::max(natural.low, guard.low);
      const int64_t high = std::min(natural.high, guard.high - 1);
      if (low > high) possible = false;
      const int64_t multiple = MultipleOf(guard.expression, rest);
      if (multiple == 0) continue;
      for (const auto& [axis, coefficient] : guard.expression.terms) {
        rest[axis] -= multiple * coefficient;
      }
      // Σ terms = expression - constant
      const int64_t constant = guard.expression.constant;
      const Interval reach = Reach(multiple, high - low + 1);
      if (!reach.fits || !Reach(multiple, std::abs(low - constant) + 1).fits) return best;
      const int64_t base = multiple * (low - constant);
      total.low += base + reach.low;
      total.high += base + reach.high;
    }
    if (!possible) return {true, 1, 0};
    Affine remaining;
    for (const auto& [axis, coefficient] : rest) {
      if (coefficient != 0) remaining.terms.emplace_back(axis, coefficient);
    }
    const Interval others = Bounds(remaining, kernel_.axes);
    if (!others.fits) return best;
    total.low += others.low;
    total.high += others.high;
    best.low = std::max(best.low, total.low);
    best.high = std::min(best.high, total.high);
    return best;
  }

  // m such that index - m·expression has none of the expression's axes left; else 0.
  static int64_t MultipleOf(const Affine& expression, const std::map<AxisId, int64_t>& index) {
    int64_t multiple = 0;
    for (const auto& [axis, coefficient] : expression.terms) {
      const auto found = index.find(axis);
      if (found == index.end() || found->second % coefficient != 0) return 0;
      const int64_t m = found->second / coefficient;
      if (m == 0 || (multiple != 0 && m != multiple)) return 0;
      multiple = m;
    }
    return multiple;
  }

  // ---- Schedule -----------------------------------------------------------------------------

  void CheckSchedule() {
    // What is made in tiles takes no registers along its sum.
    std::vector<AxisSet> in_tiles(kernel_.uops.size(), 0);
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const auto tile =
          kernel_.uops[id].in_tiles ? TileProductOf(kernel_, id, free_) : std::nullopt;
      if (!tile) continue;
      for (UopId part : {id, kernel_.uops[id].src[0], tile->left, tile->right}) {
        in_tiles[part] = AxisBit(tile->sum);
      }
    }
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      AxisSet set = free_[id];
      if (uop.op == UOp::kReduce) {
        set |= free_[uop.src[0]];
        for (AxisId axis : uop.axes) set |= AxisBit(axis);
      }
      std::optional<AxisId> vector;
      std::optional<AxisId> summed;  // the same among reduce axes
      int64_t registers = 1;
      for (AxisId axis : AxesIn(set)) {
        const Axis& a = AxisOf(axis);
        if ((in_tiles[id] & AxisBit(axis)) != 0) continue;
        registers *= (std::min(a.tile, std::max<int64_t>(a.extent, 1)) + a.vector - 1) / a.vector;
        registers = std::min(registers, kMaxRegisterTile + 1);
        if (a.vector == 1) continue;
        std::optional<AxisId>& other = a.kind == AxisKind::kReduce ? summed : vector;
        if (other) {
          Error(Kind::kConsistency, uop.span,
                Describe(id) + " depends on two axes with lanes, " + Quoted(AxisOf(*other).name) +
                    " and " + Quoted(a.name));
        }
        other = axis;
      }
      if (vector && summed) {
        registers = std::min(registers * AxisOf(*vector).vector, kMaxRegisterTile + 1);
        if (uop.op == UOp::kReduce) CheckPacked(id, *vector, *summed);
      }
      if (registers > kMaxRegisterTile) {
        Error(Kind::kResourceBound, uop.span,
              Describe(id) + " takes more than " + std::to_string(kMaxRegisterTile) +
                  " registers a tile");
      }
      if (uop.op == UOp::kStore && uop.accumulate) CheckOrder(id);
      if (uop.op == UOp::kCustom) CheckUniform(id);
    }
    CheckTiles();
    CheckStaging();
    if (const std::optional<LaunchFault> fault = CheckLaunch(kernel_, free_)) {
      const Span span = fault->uop ? kernel_.uops[*fault->uop].span : kernel_.span;
      Error(fault->bound ? Kind::kResourceBound : Kind::kConsistency, span,
            (fault->uop ? Describe(*fault->uop) + ": " : "") + fault->message);
    }
  }

  // Operands that are the same in all lanes depend on no axis with lanes.
  void CheckUniform(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const std::vector<bool>& uniform = FindCustomOp(uop.custom)->uniform;
    for (size_t i = 0; i < uniform.size(); ++i) {
      if (!uniform[i]) continue;
      for (AxisId axis : AxesIn(free_[uop.src[i]])) {
        if (AxisOf(axis).vector == 1) continue;
        Error(Kind::kConsistency, uop.span,
              "operand " + std::to_string(i + 1) + " of " + uop.custom +
                  " is the same in all lanes, so axis " + Quoted(AxisOf(axis).name) +
                  " takes none");
      }
    }
  }

  void CheckTiles() {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      std::string why;
      if (!uop.in_tiles || TileProductOf(kernel_, id, free_, &why)) continue;
      Error(Kind::kConsistency, uop.span, Describe(id) + " may not be summed in tiles: " + why)
          .Fix("leave out 'in tiles'");
    }
  }

  // A reduction along the lanes of `summed` whose result has lanes of `packed`: what it sums has
  // those of `packed` one by one, which nothing else may see.
  void CheckPacked(UopId reduce, AxisId packed, AxisId summed) {
    const auto error = [&](const std::string& what) {
      Error(Kind::kConsistency, kernel_.uops[reduce].span,
            Describe(reduce) + " has lanes along " + Quoted(AxisOf(packed).name) +
                " and sums those of " + Quoted(AxisOf(summed).name) + what);
    };
    if (AxisOf(packed).vector > AxisOf(summed).vector) return error(", of which there are fewer");
    std::vector<bool> seen(kernel_.uops.size(), false);
    std::vector<UopId> stack = kernel_.uops[reduce].src;
    while (!stack.empty()) {
      const UopId id = stack.back();
      stack.pop_back();
      if (seen[id] || (free_[id] & AxisBit(packed)) == 0) continue;
      seen[id] = true;
      const Uop& uop = kernel_.uops[id];
      if ((free_[id] & AxisBit(summed)) == 0) {
        return error(": " + Describe(id) + ", which it reads, depends on the former alone");
      }
      if (uop.op == UOp::kReduce || uop.staged) {
        return error(": it may not read " + Describe(id) +
                     (uop.staged ? ", which is staged" : ", another reduction"));
      }
      stack.insert(stack.end(), uop.src.begin(), uop.src.end());
    }
  }

  void CheckStaging() {
    int64_t bytes = 0;
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      if (!uop.staged) continue;
      std::string why = "a store has no value to keep";
      const auto staging =
          uop.op == UOp::kStore ? std::nullopt : StagingOf(kernel_, id, free_, &why);
      if (!staging) {
        Error(Kind::kConsistency, uop.span, Describe(id) + " may not be staged: " + why)
            .Fix("leave out 'staged'");
        continue;
      }
      bytes += staging->bytes;
      if (bytes <= kMaxStagedBytes) continue;
      Error(Kind::kResourceBound, uop.span,
            "staged values take more than " + std::to_string(kMaxStagedBytes) + " bytes together");
      return;
    }
  }

  // Sums into one element keep the order of the axes only if those axes are not tiled.
  void CheckOrder(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const AxisSet row = IsDynamic(uop) ? free_[uop.src.back()] : 0;
    for (AxisId axis : AxesIn(free_[id])) {
      const Axis& a = AxisOf(axis);
      const bool placed = CoefficientOf(uop.index, axis) != 0 && (row & AxisBit(axis)) == 0;
      if (placed || a.tile == 1) continue;
      Error(Kind::kConsistency, uop.span,
            Describe(id) + " adds up along axis " + Quoted(a.name) + " in order, so " +
                Quoted(a.name) + " takes no tile");
    }
  }

  // ---- Access modes -------------------------------------------------------------------------

  void CheckAccess() {
    std::vector<bool> read(kernel_.params.size(), false);
    std::vector<bool> written(kernel_.params.size(), false);
    bool stores = false;
    for (const Uop& uop : kernel_.uops) {
      if (uop.op == UOp::kLoad) read[uop.param] = true;
      for (uint32_t param : uop.memory) read[param] = true;
      if (uop.op == UOp::kStore) written[uop.param] = true;
      stores |= uop.op == UOp::kStore;
    }
    if (!stores) Error(Kind::kConsistency, kernel_.span, "it stores nothing");
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      if (uop.op != UOp::kLoad && uop.op != UOp::kStore) continue;
      const Param& param = kernel_.params[uop.param];
      if (uop.op == UOp::kStore && param.access == Access::kIn) {
        Error(Kind::kSafety, uop.span, "it stores to " + Quoted(param.name) + ", which is in");
      }
      if (uop.op == UOp::kLoad && param.access == Access::kOut) {
        Error(Kind::kSafety, uop.span, "it loads from " + Quoted(param.name) + ", which is out");
      }
      // A store that adds to what a store of the same kernel left there needs no earlier contents.
      if (uop.accumulate && param.access != Access::kInOut && !StoredBefore(id)) {
        Error(Kind::kSafety, uop.span,
              "it adds to " + Quoted(param.name) + ", which is not inout and has no contents yet");
      }
    }
    for (uint32_t p = 0; p < kernel_.params.size(); ++p) {
      if (kernel_.params[p].access != Access::kIn && !written[p]) {
        Error(Kind::kConsistency, kernel_.span,
              Quoted(kernel_.params[p].name) + " is never stored to, so it is in");
      }
    }
  }

  bool StoredBefore(UopId id) const {
    for (UopId other = 0; other < id; ++other) {
      const Uop& uop = kernel_.uops[other];
      if (uop.op == UOp::kStore && uop.param == kernel_.uops[id].param && !uop.accumulate) {
        return true;
      }
    }
    return false;
  }

  // ---- Blocks -------------------------------------------------------------------------------

  void CheckBlocks() {
    for (uint32_t p = 0; p < kernel_.params.size(); ++p) {
      std::vector<UopId> loads;
      std::vector<UopId> stores;
      for (UopId id = 0; id < kernel_.uops.size(); ++id) {
        const Uop& uop = kernel_.uops[id];
        if ((uop.op != UOp::kLoad && uop.op != UOp::kStore) || uop.param != p) continue;
        (uop.op == UOp::kLoad ? loads : stores).push_back(id);
      }
      if (stores.empty()) continue;
      CheckDisjoint(stores);
      if (!loads.empty()) CheckReadBack(p, loads, stores);
    }
  }

  // One term of an access: coefficient times something in [0, extent).
  struct Term {
    int64_t coefficient = 0;
    int64_t extent = 1;
  };

  // Different iterations of the grid axes lead to different elements: for each grid axis
  // g, of coefficient c > 0 and extent n, every other term of every store is a multiple of c·n, or
  // one of those whose sum stays within a window of c elements, the same for all stores.
  void CheckDisjoint(const std::vector<UopId>& stores) {
    for (AxisId grid = 0; grid < kernel_.axes.size(); ++grid) {
      const Axis& axis = AxisOf(grid);
      if (axis.kind != AxisKind::kGrid || axis.extent <= axis.block) continue;
      const int64_t c = CoefficientOf(kernel_.uops[stores[0]].index, grid);
      int64_t low = INT64_MAX;
      int64_t high = INT64_MIN;
      for (UopId id : stores) {
        const Uop& uop = kernel_.uops[id];
        const std::string place =
            Describe(id) + ": blocks of axis " + Quoted(axis.name) + " write the same elements";
        if (IsEmpty(free_[id])) continue;
        if (CoefficientOf(uop.index, grid) == 0 || c <= 0) {
          Error(Kind::kSafety, uop.span, place).Fix("make " + axis.name + " a loop axis");
          return;
        }
        if (CoefficientOf(uop.index, grid) != c) {
          Error(Kind::kSafety, uop.span,
                Describe(id) + " and another store to it advance differently along " +
                    Quoted(axis.name));
          return;
        }
        const int64_t period = c * axis.extent;
        int64_t inside = ((uop.index.constant % period) + period) % period;
        int64_t inside_low = inside;
        for (const Term& term : TermsExcept(uop, grid)) {
          if (term.coefficient % period == 0) continue;
          const int64_t reach = term.coefficient * (term.extent - 1);
          (reach < 0 ? inside_low : inside) += reach;
        }
        low = std::min(low, inside_low);
        high = std::max(high, inside);
        if (high - low >= c) {
          Error(Kind::kSafety, uop.span, place).Fix("make " + axis.name + " a loop axis");
          return;
        }
      }
    }
  }

  std::vector<Term> TermsExcept(const Uop& uop, AxisId except) const {
    std::vector<Term> terms;
    for (const auto& [axis, coefficient] : uop.index.terms) {
      if (axis != except) terms.push_back({coefficient, AxisOf(axis).extent});
    }
    if (uop.dynamic_stride != 0) terms.push_back({uop.dynamic_stride, uop.dynamic_extent});
    return terms;
  }

  // Every store to the parameter comes after the loads of the same element, and of that only.
  void CheckReadBack(uint32_t param, const std::vector<UopId>& loads,
                     const std::vector<UopId>& stores) {
    const std::string& name = kernel_.params[param].name;
    for (UopId store : stores) {
      const Uop& s = kernel_.uops[store];
      for (UopId load : loads) {
        const Uop& l = kernel_.uops[load];
        if (l.index == s.index && l.guards == s.guards && !IsDynamic(l) && !IsDynamic(s) &&
            !s.accumulate) {
          continue;
        }
        Error(Kind::kSafety, l.span,
              Quoted(name) + " is read at another place than it is stored to")
            .With({s.span, "stored here"});
        return;
      }
      if (ReadAfter(loads, store)) {
        Error(Kind::kSafety, s.span, Quoted(name) + " is stored to before it is read");
        return;
      }
      if (!IsOneToOne(s, free_[store])) {
        Error(Kind::kSafety, s.span,
              Quoted(name) + " is read, and stored to more than once an element");
        return;
      }
    }
  }

  static bool ReadAfter(const std::vector<UopId>& loads, UopId store) {
    return std::any_of(loads.begin(), loads.end(), [&](UopId load) { return load > store; });
  }

  // Different points of the free axes store to different elements: sorted by size, each coefficient
  // exceeds what the smaller terms can add up to.
  bool IsOneToOne(const Uop& store, AxisSet free) const {
    if (free != AxesOf(store.index)) return false;
    std::vector<Term> terms = TermsExcept(store, UINT32_MAX);
    for (Term& term : terms) term.coefficient = std::abs(term.coefficient);
    std::sort(terms.begin(), terms.end(),
              [](const Term& x, const Term& y) { return x.coefficient < y.coefficient; });
    int64_t reach = 0;
    for (const Term& term : terms) {
      if (term.extent <= 1) continue;
      if (term.coefficient <= reach) return false;
      reach += term.coefficient * (term.extent - 1);
    }
    return true;
  }

  const Kernel& kernel_;
  Diagnostics& diagnostics_;
  std::vector<AxisSet> free_;
  bool failed_ = false;
};

}  // namespace

bool VerifyKernel(const Kernel& kernel, Diagnostics& diagnostics) {
  return Verifier(kernel, diagnostics).Run();
}

}  // namespace l3c::l0
