#include "layers/l0/kernel_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "layers/l0/custom_op.h"
#include "layers/l0/gpu_launch.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_verify.h"
#include "layers/support/units.h"

namespace l3c::l0 {
namespace {

using support::Name;
using support::Span;

constexpr std::array<std::string_view, 30> kUopNames = {
    "load",    "store",     "index", "add",   "mul",    "mulacc",  "neg",   "reciprocal",
    "max",     "mod",       "cmplt", "cmpne", "where",  "exp2",    "log2",  "sin",
    "sqrt",    "range",     "end",   "if",    "endif",  "barrier", "const", "cast",
    "bitcast", "vectorize", "gep",   "wmma",  "reduce", "custom"};

constexpr std::array<std::string_view, 3> kAxisKindNames = {"grid", "loop", "reduce"};
constexpr std::array<std::string_view, 3> kAccessNames = {"in", "out", "inout"};
constexpr std::array<std::string_view, 2> kAcrossNames = {"x", "y"};

// Number of operands of the ops written `name %a, %b, …`; -1 for those with a form of their own.
int PlainArity(UOp op) {
  switch (op) {
    case UOp::kNeg:
    case UOp::kReciprocal:
    case UOp::kExp2:
    case UOp::kLog2:
    case UOp::kSin:
    case UOp::kSqrt:
      return 1;
    case UOp::kAdd:
    case UOp::kMul:
    case UOp::kMax:
    case UOp::kMod:
    case UOp::kCmpLt:
    case UOp::kCmpNe:
      return 2;
    case UOp::kWhere:
      return 3;
    default:
      return -1;
  }
}

// ---- Printing ---------------------------------------------------------------------------------

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, support::Printer& out) : kernel_(kernel), out_(out) {}

  void Print() {
    std::vector<std::string> params;
    for (const Param& param : kernel_.params) {
      params.push_back(
          param.name + ": " + std::string(kAccessNames[static_cast<size_t>(param.access)]) + " " +
          std::string(DTypeName(param.dtype)) + " " + tensor::ShapeToString(param.shape));
    }
    out_.Open("kernel " + kernel_.name + "(" + support::Join(params) + ") {");
    if (!kernel_.origin.empty()) {
      std::vector<std::string> names;
      for (const std::string& name : kernel_.origin) names.push_back(support::Quote(name));
      out_.Line("origin " + support::Join(names));
    }
    if (kernel_.launch) out_.Line(LaunchText(*kernel_.launch));
    for (const Axis& axis : kernel_.axes) out_.Line(AxisText(axis));
    numbers_.resize(kernel_.uops.size());
    uint32_t next = 0;
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& uop = kernel_.uops[id];
      if (uop.op == UOp::kStore) {
        out_.Line("store " + AccessText(uop));
        continue;
      }
      numbers_[id] = next++;
      out_.Line(Value(id) + " = " + ValueText(uop) + (uop.in_tiles ? " in tiles" : "") +
                (uop.staged ? " staged" : ""));
    }
    out_.Close("}");
  }

 private:
  static std::string AxisText(const Axis& axis) {
    std::string text = "axis " + axis.name + " : " +
                       std::string(kAxisKindNames[static_cast<size_t>(axis.kind)]) + " " +
                       support::PrintInteger(axis.extent);
    if (axis.kind == AxisKind::kGrid) text += " block " + support::PrintInteger(axis.block);
    if (axis.tile != 1) text += " tile " + support::PrintInteger(axis.tile);
    if (axis.vector != 1) text += " vector " + support::PrintInteger(axis.vector);
    if (axis.across != Across::kNone) {
      text += " across " + std::string(kAcrossNames[static_cast<size_t>(axis.across) - 1]);
    }
    return text;
  }

  static std::string LaunchText(const GpuLaunch& launch) {
    std::string text = "launch " + launch.arch + " grid " + support::PrintInteger(launch.grid) +
                       " block " + support::PrintInteger(launch.x) + ", " +
                       support::PrintInteger(launch.y) + ", " + support::PrintInteger(launch.z);
    if (launch.shared != 0) text += " shared " + support::PrintInteger(launch.shared);
    return text;
  }

  std::string Value(UopId id) const { return "%" + std::to_string(numbers_[id]); }

  static void AddTerm(std::string& text, int64_t coefficient, const std::string& factor) {
    const bool negative = coefficient < 0;
    if (text.empty()) {
      if (negative) text += "-";
    } else {
      text += negative ? " - " : " + ";
    }
    const uint64_t magnitude =
        negative ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    if (factor.empty()) {
      text += std::to_string(magnitude);
    } else {
      if (magnitude != 1) text += std::to_string(magnitude) + "*";
      text += factor;
    }
  }

  std::string IndexText(const Affine& affine, const std::string& row, int64_t row_stride) const {
    std::string text;
    if (!row.empty()) AddTerm(text, row_stride, row);
    for (const auto& [axis, coefficient] : affine.terms) {
      AddTerm(text, coefficient, kernel_.axes[axis].name);
    }
    if (affine.constant != 0 || text.empty()) AddTerm(text, affine.constant, "");
    return text;
  }

  std::string AccessText(const Uop& uop) const {
    std::string row;
    if (IsDynamic(uop)) {
      row = Value(uop.src.back()) + " of " + support::PrintInteger(uop.dynamic_extent);
    }
    std::string text =
        kernel_.params[uop.param].name + "[" + IndexText(uop.index, row, uop.dynamic_stride) + "]";
    if (uop.op == UOp::kStore) text += (uop.accumulate ? " += " : ", ") + Value(uop.src[0]);
    for (size_t i = 0; i < uop.guards.size(); ++i) {
      const Guard& guard = uop.guards[i];
      text += (i == 0 ? " if " : ", ") + support::PrintInteger(guard.low) +
              " <= " + IndexText(guard.expression, "", 0) + " < " +
              support::PrintInteger(guard.high);
    }
    return text;
  }

  std::string ValueText(const Uop& uop) const {
    const std::string name(UopName(uop.op));
    switch (uop.op) {
      case UOp::kLoad:
        return name + " " + AccessText(uop);
      case UOp::kConst:
        return name + " " + std::string(DTypeName(uop.dtype)) + " " +
               (tensor::IsFloat(uop.dtype) ? RealText(uop.number) : IntegerText(uop.integer));
      case UOp::kRange:
        return name + " " + kernel_.axes[uop.axis].name;
      case UOp::kCast:
      case UOp::kBitcast:
        return name + " " + Value(uop.src[0]) + " to " + std::string(DTypeName(uop.dtype));
      case UOp::kReduce: {
        std::vector<std::string> axes;
        for (AxisId axis : uop.axes) axes.push_back(kernel_.axes[axis].name);
        return name + (uop.fold == Fold::kAdd ? "_add " : "_max ") + Value(uop.src[0]) + " over " +
               support::Join(axes);
      }
      default: {
        std::vector<std::string> operands;
        for (UopId operand : uop.src) operands.push_back(Value(operand));
        if (uop.op != UOp::kCustom) return name + " " + support::Join(operands);
        std::vector<std::string> memory;
        for (uint32_t param : uop.memory) memory.push_back(kernel_.params[param].name);
        return uop.custom + " " + support::Join(operands) +
               (memory.empty() ? "" : " of " + support::Join(memory));
      }
    }
  }

  static std::string RealText(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    return support::PrintReal(value);
  }

  // The lowest integer has no positive counterpart that a `-` could stand before.
  static std::string IntegerText(int64_t value) {
    return value == std::numeric_limits<int64_t>::min() ? "lowest" : support::PrintInteger(value);
  }

  const Kernel& kernel_;
  support::Printer& out_;
  std::vector<uint32_t> numbers_;
};

// ---- Parsing ----------------------------------------------------------------------------------

class KernelParser {
 public:
  explicit KernelParser(support::ParserBase& parser) : p_(parser) {}

  std::optional<Kernel> Parse() {
    const uint32_t begin = p_.Here();
    const int depth = p_.bracket_depth();
    p_.ExpectWord("kernel");
    const std::optional<Name> name = p_.ExpectName("the name of the kernel");
    if (!name || !p_.ParseList("(", ")", [&] { return ParseParam(); })) failed_ = true;
    if (name) kernel_.name = name->text;
    if (!p_.Expect("{")) {
      p_.SkipToDeclaration({"kernel"});
      return std::nullopt;
    }
    while (!p_.At("}") && !p_.AtEnd()) {
      const uint32_t line = p_.Here();
      if (!ParseLine()) {
        failed_ = true;
        p_.SkipToField(depth + 1, line);
      }
    }
    if (!p_.Expect("}")) failed_ = true;
    if (failed_) return std::nullopt;
    kernel_.span = p_.SpanFrom(begin);
    return std::move(kernel_);
  }

 private:
  bool ParseParam() {
    const std::optional<Name> name = p_.ExpectName("the name of a parameter");
    if (!name || !p_.Expect(":")) return false;
    Param param;
    param.name = name->text;
    const std::optional<size_t> access = ParseWord(kAccessNames, "an access");
    if (!access) return false;
    param.access = static_cast<Access>(*access);
    const std::optional<DType> dtype = ParseDTypeWord();
    if (!dtype) return false;
    param.dtype = *dtype;
    const bool shape = p_.ParseList("[", "]", [&] {
      const std::optional<int64_t> extent = p_.ExpectInteger("an extent", 0, tensor::kMaxElements);
      if (extent) param.shape.push_back(*extent);
      return extent.has_value();
    });
    if (!shape) return false;
    if (!params_.try_emplace(param.name, static_cast<uint32_t>(kernel_.params.size())).second) {
      p_.Error(name->span, "parameter '" + name->text + "' is declared twice",
               support::Kind::kConsistency);
      return false;
    }
    kernel_.params.push_back(std::move(param));
    return true;
  }

  // One of `words`.
  template <size_t N>
  std::optional<size_t> ParseWord(const std::array<std::string_view, N>& words,
                                  std::string_view what) {
    for (size_t i = 0; i < N; ++i) {
      if (p_.AcceptWord(words[i])) return i;
    }
    std::vector<std::string> choices(words.begin(), words.end());
    p_.ErrorExpected(std::string(what) + " (" + support::Join(choices) + ")");
    return std::nullopt;
  }

  std::optional<DType> ParseDTypeWord() {
    const std::optional<Name> name = p_.ExpectName("a dtype");
    if (!name) return std::nullopt;
    const std::optional<DType> dtype = tensor::ParseDType(name->text);
    if (!dtype) {
      p_.ErrorUnknown("dtype", *name, {"bool", "u8", "i32", "i64", "u32", "u64", "f32", "f64"});
    }
    return dtype;
  }

  bool ParseLine() {
    const uint32_t begin = p_.Here();
    if (p_.AcceptWord("origin")) return ParseOrigin();
    if (p_.AcceptWord("axis")) return ParseAxis();
    if (p_.AcceptWord("launch")) return ParseLaunch();
    if (kernel_.uops.size() >= kMaxUops) {
      p_.Error(p_.Peek().span, "a kernel has at most " + std::to_string(kMaxUops) + " operations",
               support::Kind::kResourceBound);
      p_.Stop();
      return false;
    }
    Uop uop;
    if (p_.AcceptWord("store")) {
      uop.op = UOp::kStore;
      if (!ParseAccess(uop)) return false;
    } else {
      if (!p_.At("%")) {
        p_.ErrorExpected("an operation, an axis or the end of the kernel");
        return false;
      }
      p_.Next();
      const Span span = p_.Peek().span;
      const std::optional<int64_t> number = p_.ExpectInteger("the number of the value");
      // Said once: those behind it are out of order with it.
      if (number && *number != static_cast<int64_t>(values_.size()) && !misnumbered_) {
        p_.Error(span,
                 "values are numbered in order; this one is %" + std::to_string(values_.size()));
        misnumbered_ = true;
      }
      // The value exists even if its line is wrong, so that later lines are not blamed.
      values_.push_back(static_cast<UopId>(kernel_.uops.size()));
      const bool ok = number && p_.Expect("=") && ParseValue(uop) && !misnumbered_;
      uop.staged = ok && p_.AcceptWord("staged");
      uop.span = p_.SpanFrom(begin);
      kernel_.uops.push_back(std::move(uop));
      return ok;
    }
    uop.span = p_.SpanFrom(begin);
    kernel_.uops.push_back(std::move(uop));
    return true;
  }

  bool ParseOrigin() {
    do {
      std::optional<std::string> name = p_.ExpectString("the name of a tensor value");
      if (!name) return false;
      kernel_.origin.push_back(std::move(*name));
    } while (p_.Accept(","));
    return true;
  }

  bool ParseLaunch() {
    GpuLaunch launch;
    const auto number = [&](std::string_view what, int64_t min, int64_t max, int64_t& out) {
      const std::optional<int64_t> value = p_.ExpectInteger(what, min, max);
      if (value) out = *value;
      return value.has_value();
    };
    const std::optional<Name> arch = p_.ExpectName("an architecture, as sm_80");
    if (!arch) return false;
    launch.arch = arch->text;
    if (!p_.ExpectWord("grid") || !number("thread blocks", 0, kMaxGpuGrid, launch.grid) ||
        !p_.ExpectWord("block") || !number("threads along x", 1, kMaxGpuThreads, launch.x) ||
        !p_.Expect(",") || !number("threads along y", 1, kMaxGpuThreads, launch.y) ||
        !p_.Expect(",") || !number("threads along z", 1, kMaxGpuThreads, launch.z)) {
      return false;
    }
    if (p_.AcceptWord("shared") &&
        !number("bytes of shared memory", 1, kMaxGpuShared, launch.shared)) {
      return false;
    }
    kernel_.launch = launch;
    return true;
  }

  bool ParseAxis() {
    const std::optional<Name> name = p_.ExpectName("the name of the axis");
    if (!name || !p_.Expect(":")) return false;
    Axis axis;
    axis.name = name->text;
    const std::optional<size_t> kind = ParseWord(kAxisKindNames, "the kind of the axis");
    if (!kind) return false;
    axis.kind = static_cast<AxisKind>(*kind);
    const auto number = [&](std::string_view what, int64_t min, int64_t max, int64_t& out) {
      const std::optional<int64_t> value = p_.ExpectInteger(what, min, max);
      if (value) out = *value;
      return value.has_value();
    };
    if (!number("the extent of the axis", 0, kMaxExtent, axis.extent)) return false;
    if (axis.kind == AxisKind::kGrid &&
        (!p_.ExpectWord("block") || !number("iterations a block", 1, kMaxExtent, axis.block))) {
      return false;
    }
    if (p_.AcceptWord("tile") && !number("iterations a tile", 1, kMaxTile, axis.tile)) return false;
    if (p_.AcceptWord("vector") && !number("lanes", 1, kMaxLanes, axis.vector)) return false;
    if (p_.AcceptWord("across")) {
      const std::optional<size_t> dimension = ParseWord(kAcrossNames, "a dimension of the threads");
      if (!dimension) return false;
      axis.across = static_cast<Across>(*dimension + 1);
    }
    if (kernel_.axes.size() >= kMaxAxes) {
      p_.Error(name->span, "a kernel has at most " + std::to_string(kMaxAxes) + " axes",
               support::Kind::kResourceBound);
      return false;
    }
    if (!axes_.try_emplace(axis.name, static_cast<AxisId>(kernel_.axes.size())).second) {
      p_.Error(name->span, "axis '" + name->text + "' is declared twice",
               support::Kind::kConsistency);
      return false;
    }
    kernel_.axes.push_back(std::move(axis));
    return true;
  }

  std::optional<AxisId> ResolveAxis(const Name& name) {
    const auto found = axes_.find(name.text);
    if (found != axes_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [axis, id] : axes_) names.push_back(axis);
    p_.ErrorUnknown("axis", name, names);
    return std::nullopt;
  }

  std::optional<AxisId> ParseAxisName() {
    const std::optional<Name> name = p_.ExpectName("the name of an axis");
    if (!name) return std::nullopt;
    return ResolveAxis(*name);
  }

  std::optional<UopId> ParseOperand() {
    const uint32_t begin = p_.Here();
    if (!p_.At("%")) {
      p_.ErrorExpected("a value, as in %0");
      return std::nullopt;
    }
    p_.Next();
    const std::optional<int64_t> number = p_.ExpectInteger("the number of a value");
    if (!number) return std::nullopt;
    const UopId self = static_cast<UopId>(kernel_.uops.size());
    if (*number >= static_cast<int64_t>(values_.size()) ||
        values_[static_cast<size_t>(*number)] >= self) {
      if (!misnumbered_) {
        p_.Error(p_.SpanFrom(begin),
                 "value %" + std::to_string(*number) + " is not defined before this line",
                 support::Kind::kSafety);
      }
      return std::nullopt;
    }
    return values_[static_cast<size_t>(*number)];
  }

  bool ParseOperands(Uop& uop, int count) {
    for (int i = 0; i < count; ++i) {
      if (i > 0 && !p_.Expect(",")) return false;
      const std::optional<UopId> operand = ParseOperand();
      if (!operand) return false;
      uop.src.push_back(*operand);
    }
    return true;
  }

  // ±c*axis, ±axis, ±c and, where `uop` is given, ±s*%v of n; in any order.
  bool ParseIndex(Affine& affine, Uop* uop) {
    std::map<AxisId, int64_t> terms;
    std::optional<UopId> row;
    bool first = true;
    while (true) {
      bool negative = false;
      if (p_.Accept("-")) {
        negative = true;
      } else if (!p_.Accept("+") && !first) {
        break;
      }
      first = false;
      int64_t coefficient = 1;
      bool needs_factor = true;
      const Span span = p_.Peek().span;
      if (p_.AtNumber()) {
        const std::optional<int64_t> number = p_.ExpectInteger("a coefficient");
        if (!number) return false;
        coefficient = *number;
        needs_factor = p_.Accept("*");
      }
      if (negative) coefficient = -coefficient;
      if (!needs_factor) {
        affine.constant += coefficient;
      } else if (uop != nullptr && p_.At("%")) {
        if (row) {
          p_.Error(span, "an index has at most one data-dependent term");
          return false;
        }
        row = ParseOperand();
        if (!row || !p_.ExpectWord("of")) return false;
        const std::optional<int64_t> extent = p_.ExpectInteger("the number of rows", 0, kMaxExtent);
        if (!extent) return false;
        uop->dynamic_stride = coefficient;
        uop->dynamic_extent = *extent;
      } else {
        const std::optional<Name> name = p_.ExpectName("the name of an axis");
        if (!name) return false;
        const std::optional<AxisId> axis = ResolveAxis(*name);
        if (!axis) return false;
        if (!terms.try_emplace(*axis, coefficient).second || coefficient == 0) {
          p_.Error(span, "axis '" + name->text + "' has " +
                             (coefficient == 0 ? "a zero coefficient" : "two terms"));
          return false;
        }
      }
      if (!p_.At("+") && !p_.At("-")) break;
    }
    affine.terms.assign(terms.begin(), terms.end());
    row_ = row;
    return true;
  }

  std::optional<uint32_t> ParseParamName() {
    const std::optional<Name> name = p_.ExpectName("the name of a parameter");
    if (!name) return std::nullopt;
    const auto found = params_.find(name->text);
    if (found != params_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [param, id] : params_) names.push_back(param);
    p_.ErrorUnknown("parameter", *name, names);
    return std::nullopt;
  }

  bool ParseAccess(Uop& uop) {
    const std::optional<uint32_t> param = ParseParamName();
    if (!param) return false;
    uop.param = *param;
    uop.dtype = kernel_.params[uop.param].dtype;
    if (!p_.Expect("[") || !ParseIndex(uop.index, &uop) || !p_.Expect("]")) return false;
    const std::optional<UopId> row = row_;
    if (uop.op == UOp::kStore) {
      uop.accumulate = p_.Accept("+");
      if (uop.accumulate ? !p_.Expect("=") : !p_.Expect(",")) return false;
      if (!ParseOperands(uop, 1)) return false;
    }
    if (row) uop.src.push_back(*row);
    if (!p_.AcceptWord("if")) return true;
    do {
      Guard guard;
      const std::optional<int64_t> low =
          p_.ExpectInteger("a lower bound", std::numeric_limits<int64_t>::min());
      if (!low || !p_.Expect("<=") || !ParseIndex(guard.expression, nullptr) || !p_.Expect("<")) {
        return false;
      }
      const std::optional<int64_t> high =
          p_.ExpectInteger("an upper bound", std::numeric_limits<int64_t>::min());
      if (!high) return false;
      guard.low = *low;
      guard.high = *high;
      uop.guards.push_back(std::move(guard));
    } while (p_.Accept(","));
    return true;
  }

  bool ParseConst(Uop& uop) {
    const std::optional<DType> dtype = ParseDTypeWord();
    if (!dtype) return false;
    uop.dtype = *dtype;
    if (tensor::IsFloat(*dtype)) {
      const std::optional<double> number = p_.ExpectReal("a number");
      if (number) uop.number = *number;
      return number.has_value();
    }
    if (p_.AcceptWord("lowest")) {
      uop.integer = std::numeric_limits<int64_t>::min();
      return true;
    }
    const std::optional<int64_t> integer =
        p_.ExpectInteger("a whole number", std::numeric_limits<int64_t>::min());
    if (integer) uop.integer = *integer;
    return integer.has_value();
  }

  bool ParseReduce(Uop& uop, Fold fold) {
    uop.op = UOp::kReduce;
    uop.fold = fold;
    if (!ParseOperands(uop, 1) || !p_.ExpectWord("over")) return false;
    do {
      const std::optional<AxisId> axis = ParseAxisName();
      if (!axis) return false;
      uop.axes.push_back(*axis);
    } while (p_.Accept(","));
    uop.dtype = kernel_.uops[uop.src[0]].dtype;
    uop.in_tiles = p_.AcceptWord("in");
    return !uop.in_tiles || p_.ExpectWord("tiles");
  }

  bool ParseValue(Uop& uop) {
    const std::optional<Name> name = p_.ExpectName("an operation");
    if (!name) return false;
    if (name->text == "reduce_add") return ParseReduce(uop, Fold::kAdd);
    if (name->text == "reduce_max") return ParseReduce(uop, Fold::kMax);
    if (const CustomOp* custom = FindCustomOp(name->text)) {
      uop.op = UOp::kCustom;
      uop.custom = name->text;
      uop.dtype = custom->result;
      if (!ParseOperands(uop, static_cast<int>(custom->operands.size()))) return false;
      for (size_t i = 0; i < custom->memory.size(); ++i) {
        if (!(i == 0 ? p_.ExpectWord("of") : p_.Expect(","))) return false;
        const std::optional<uint32_t> param = ParseParamName();
        if (!param) return false;
        uop.memory.push_back(*param);
      }
      return true;
    }
    const auto found = std::find(kUopNames.begin(), kUopNames.end(), name->text);
    uop.op = found == kUopNames.end() ? UOp::kEnd : static_cast<UOp>(found - kUopNames.begin());
    switch (uop.op) {
      case UOp::kLoad:
        return ParseAccess(uop);
      case UOp::kConst:
        return ParseConst(uop);
      case UOp::kRange: {
        uop.dtype = DType::kI64;
        const std::optional<AxisId> axis = ParseAxisName();
        if (axis) uop.axis = *axis;
        return axis.has_value();
      }
      case UOp::kCast:
      case UOp::kBitcast: {
        if (!ParseOperands(uop, 1) || !p_.ExpectWord("to")) return false;
        const std::optional<DType> dtype = ParseDTypeWord();
        if (dtype) uop.dtype = *dtype;
        return dtype.has_value();
      }
      default:
        break;
    }
    const int arity = PlainArity(uop.op);
    if (arity < 0) {
      std::vector<std::string> names = {"load",
                                        "const",
                                        "range",
                                        "cast",
                                        "bitcast",
                                        "reduce_add",
                                        "reduce_max",
                                        std::string(kPhilox),
                                        std::string(kBf16Pair),
                                        std::string(kBf16Dot)};
      for (size_t i = 0; i < kUopNames.size(); ++i) {
        if (PlainArity(static_cast<UOp>(i)) > 0) names.emplace_back(kUopNames[i]);
      }
      p_.ErrorUnknown("operation", *name, names);
      return false;
    }
    if (!ParseOperands(uop, arity)) return false;
    const bool compares = uop.op == UOp::kCmpLt || uop.op == UOp::kCmpNe;
    uop.dtype = compares ? DType::kBool : kernel_.uops[uop.src[arity == 3 ? 1 : 0]].dtype;
    return true;
  }

  support::ParserBase& p_;
  Kernel kernel_;
  std::map<std::string, uint32_t> params_;
  std::map<std::string, AxisId> axes_;
  std::vector<UopId> values_;  // by printed number
  bool misnumbered_ = false;
  std::optional<UopId> row_;  // of the index parsed last
  bool failed_ = false;
};

}  // namespace

std::string_view UopName(UOp op) { return kUopNames[static_cast<size_t>(op)]; }

void PrintKernel(const Kernel& kernel, support::Printer& out) {
  KernelPrinter(kernel, out).Print();
}

std::string PrintKernel(const Kernel& kernel) {
  support::Printer out;
  PrintKernel(kernel, out);
  return out.Take();
}

std::optional<Kernel> ParseKernel(support::ParserBase& parser) {
  return KernelParser(parser).Parse();
}

}  // namespace l3c::l0
