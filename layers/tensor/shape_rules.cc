#include "layers/tensor/shape_rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace l3c::tensor {
namespace {

// Expansions are a handful of levels deep; a derived op that expands to itself must not exhaust
// the stack.
constexpr int kMaxExpansionDepth = 32;
thread_local int expansion_depth = 0;

struct DepthGuard {
  DepthGuard() { ++expansion_depth; }
  ~DepthGuard() { --expansion_depth; }
};

// One application under check: the node, its operands, and how to complain about it.
class Rule {
 public:
  Rule(const Graph& graph, Node& node) : graph_(graph), node_(node), def_(Definition(node.op)) {}

  void Infer();

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw ShapeError(Application() + ": " + reason);
  }
  void Require(bool condition, const char* reason) const {
    if (!condition) Fail(reason);
  }
  // A reason that is put together only where it is needed: a search infers thousands of graphs.
  template <typename Reason>
  void Require(bool condition, const Reason& reason) const {
    if (!condition) Fail(reason());
  }

  // "tensor_add(x f32[2, 3], b f32[3])".
  std::string Application() const {
    std::string text = def_.l1_name + "(";
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (i > 0) text += ", ";
      const Node& operand = graph_.node(node_.inputs[i]);
      if (!operand.name.empty()) text += operand.name + " ";
      text += TypeToString(operand.dtype, operand.shape);
    }
    return text + ")";
  }

  const Node& Operand(size_t i) const { return graph_.node(node_.inputs[i]); }
  std::string NameOf(size_t i) const {
    return Operand(i).name.empty() ? "the operand" : Operand(i).name;
  }
  const Shape& ShapeOf(size_t i) const { return Operand(i).shape; }
  int64_t RankOf(size_t i) const { return static_cast<int64_t>(ShapeOf(i).size()); }

  void SetLike(size_t i) {
    node_.dtype = Operand(i).dtype;
    node_.shape = ShapeOf(i);
  }

  // Bounds that keep every later product of extents within int64.
  void CheckExtents(const Shape& shape) const {
    Require(shape.size() <= kMaxRank, [&] {
      return "the result has rank " + std::to_string(shape.size()) + ", more than " +
             std::to_string(kMaxRank);
    });
    int64_t elements = 1;
    for (int64_t extent : shape) {
      Require(extent >= 0, [&] { return "an extent is negative in " + ShapeToString(shape); });
      const int64_t factor = std::max<int64_t>(extent, 1);
      Require(factor <= kMaxElements / elements, [&] {
        return "the result " + ShapeToString(shape) + " has more than 2^40 elements";
      });
      elements *= factor;
    }
  }

  void RequireFloat(size_t i) const {
    Require(IsFloat(Operand(i).dtype), [&] {
      return "needs f32 or f64, got " + std::string(DTypeName(Operand(i).dtype)) +
             "; write tensor_cast(" + NameOf(i) + ", f32) first";
    });
  }
  void RequireDType(size_t i, DType dtype) const {
    Require(Operand(i).dtype == dtype, [&] {
      return "needs " + std::string(DTypeName(dtype)) + ", got " +
             std::string(DTypeName(Operand(i).dtype));
    });
  }
  void RequireNotBool(size_t i) const {
    Require(Operand(i).dtype != DType::kBool,
            [&] { return "not defined on bool; write tensor_cast(" + NameOf(i) + ", f32) first"; });
  }

  void RequireSameDType(size_t i, size_t j) const {
    Require(Operand(i).dtype == Operand(j).dtype, [&] {
      return "operands must have the same dtype; write tensor_cast(" + NameOf(j) + ", " +
             std::string(DTypeName(Operand(i).dtype)) + ") first";
    });
  }

  void RequireSameShape(size_t i, size_t j) const {
    if (ShapeOf(i) == ShapeOf(j)) return;
    // The operand that can be broadcast to the other one, if either can.
    if (Broadcasts(ShapeOf(j), ShapeOf(i))) FailBroadcast(j, i);
    if (Broadcasts(ShapeOf(i), ShapeOf(j))) FailBroadcast(i, j);
    Fail("operands must have equal shapes, got " + ShapeToString(ShapeOf(i)) + " and " +
         ShapeToString(ShapeOf(j)) +
         ", and neither broadcasts to the other; reshape or slice one of them first");
  }
  [[noreturn]] void FailBroadcast(size_t from, size_t to) const {
    Fail("operands must have equal shapes; write tensor_broadcast(" + NameOf(from) + ", " +
         ShapeToString(ShapeOf(to)) + ") first");
  }

  // numpy's rule: aligned at the right, each extent equal or 1.
  static bool Broadcasts(const Shape& from, const Shape& to) {
    if (from.size() > to.size()) return false;
    const size_t shift = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != to[shift + i] && from[i] != 1) return false;
    }
    return true;
  }

  // Sorted, distinct, non-negative axes of operand 0.
  void NormaliseAxes() {
    for (int64_t& axis : node_.attr.ints) axis = NormaliseAxis(axis, RankOf(0));
    std::sort(node_.attr.ints.begin(), node_.attr.ints.end());
    Require(
        std::adjacent_find(node_.attr.ints.begin(), node_.attr.ints.end()) == node_.attr.ints.end(),
        [&] { return "an axis is named twice in " + ShapeToString(node_.attr.ints); });
    Require(!node_.attr.ints.empty(), "needs at least one axis");
  }
  int64_t NormaliseAxis(int64_t axis, int64_t rank) const {
    Require(axis >= -rank && axis < rank, [&] {
      return "axis " + std::to_string(axis) +
             (rank == 0 ? ", but a scalar has no axes"
                        : " is outside 0…" + std::to_string(rank - 1));
    });
    return axis < 0 ? axis + rank : axis;
  }

  void InferConst();
  void InferElementwise();
  void InferMatmul();
  void InferMovement();
  void InferIndexing();
  void InferDerived();

  const Graph& graph_;
  Node& node_;
  const OpDef& def_;
};

void Rule::Infer() {
  Require(static_cast<int>(node_.inputs.size()) == def_.arity, [&] {
    return "takes " + std::to_string(def_.arity) + " operand" + (def_.arity == 1 ? "" : "s") +
           ", got " + std::to_string(node_.inputs.size());
  });
  if (IsDerived(node_.op)) {
    InferDerived();
    return;
  }
  switch (node_.op) {
    case Op::kInput:
      break;
    case Op::kConst:
      InferConst();
      break;
    case Op::kIota:
      Require(node_.attr.dtype != DType::kBool, "cannot count in bool");
      node_.attr.axis =
          NormaliseAxis(node_.attr.axis, static_cast<int64_t>(node_.attr.ints.size()));
      node_.dtype = node_.attr.dtype;
      node_.shape = node_.attr.ints;
      break;
    case Op::kRandom:
      Require(Operand(0).dtype == DType::kU64 && ShapeOf(0).empty(), [&] {
        return "the key must be a u64 scalar; write tensor_cast(" + NameOf(0) + ", u64) first";
      });
      node_.dtype = DType::kF32;
      node_.shape = node_.attr.ints;
      break;
    case Op::kReduceSum:
    case Op::kReduceMax: {
      if (node_.op == Op::kReduceSum) RequireNotBool(0);
      NormaliseAxes();
      node_.dtype = Operand(0).dtype;
      node_.shape.clear();
      for (int64_t i = 0; i < RankOf(0); ++i) {
        if (!std::binary_search(node_.attr.ints.begin(), node_.attr.ints.end(), i)) {
          node_.shape.push_back(ShapeOf(0)[i]);
        }
      }
      break;
    }
    case Op::kMatmul:
    case Op::kBf16Matmul:
      InferMatmul();
      break;
    default:
      switch (def_.op_class) {
        case OpClass::kElementwise:
          InferElementwise();
          break;
        case OpClass::kMovement:
          InferMovement();
          break;
        default:
          InferIndexing();
      }
  }
  CheckExtents(node_.shape);
}

void Rule::InferConst() {
  double& value = node_.attr.scalar;
  const DType dtype = node_.attr.dtype;
  if (IsFloat(dtype)) {
    value = RoundToDType(value, dtype);
  } else {
    // A scalar is held as f64, which counts exactly up to 2^53.
    constexpr double kExact = 9007199254740992.0;
    double low = 0;
    double high = kExact;
    if (dtype == DType::kBool) high = 1;
    if (dtype == DType::kU8) high = 255;
    if (dtype == DType::kU32) high = 4294967295.0;
    if (dtype == DType::kI32) low = -2147483648.0, high = 2147483647.0;
    if (dtype == DType::kI64) low = -kExact;
    Require(value == std::trunc(value) && value >= low && value <= high, [&] {
      return "the value does not fit " + std::string(DTypeName(dtype)) +
             (dtype == DType::kI64 || dtype == DType::kU64 ? ", whose constants go to 2^53" : "");
    });
    value += 0.0;  // an integer has no negative zero
  }
  node_.dtype = dtype;
  node_.shape.clear();
}

void Rule::InferElementwise() {
  switch (node_.op) {
    case Op::kRecip:
    case Op::kExp2:
    case Op::kLog2:
    case Op::kSin:
    case Op::kSqrt:
      RequireFloat(0);
      break;
    case Op::kNeg:
    case Op::kMod:
      RequireNotBool(0);
      break;
    case Op::kWhere:
      Require(Operand(0).dtype == DType::kBool,
              "the condition must be bool; compare with tensor_cmpne or tensor_cmplt first");
      RequireSameShape(1, 2);
      RequireSameDType(1, 2);
      RequireSameShape(1, 0);
      SetLike(1);
      return;
    case Op::kBitcast:
      Require(SizeOf(Operand(0).dtype) == SizeOf(node_.attr.dtype), [&] {
        return "the dtypes must have the same size, got " +
               std::string(DTypeName(Operand(0).dtype)) + " and " +
               std::string(DTypeName(node_.attr.dtype));
      });
      Require(node_.attr.dtype != DType::kBool || Operand(0).dtype == DType::kBool,
              "not every u8 is a bool; write tensor_cast instead");
      break;
    default:
      break;
  }
  if (node_.op == Op::kBf16Pair) RequireDType(0, DType::kF32);
  if (def_.arity == 2) {
    RequireSameShape(0, 1);
    RequireSameDType(0, 1);
  }
  SetLike(0);
  if (node_.op == Op::kCmpLt || node_.op == Op::kCmpNe) node_.dtype = DType::kBool;
  if (node_.op == Op::kCast || node_.op == Op::kBitcast) node_.dtype = node_.attr.dtype;
  if (node_.op == Op::kBf16Pair) node_.dtype = DType::kU32;
}

void Rule::InferMatmul() {
  const bool pairs = node_.op == Op::kBf16Matmul;
  if (pairs) {
    RequireDType(0, DType::kU32);
  } else {
    RequireFloat(0);
  }
  RequireSameDType(0, 1);
  const Shape& a = ShapeOf(0);
  const Shape& b = ShapeOf(1);
  Require(a.size() >= 2 && b.size() >= 2,
          "needs matrices; tensor_reshape a vector to one row or one column first");
  Require(a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin()), [&] {
    return "the batch extents " + ShapeToString({a.begin(), a.end() - 2}) + " and " +
           ShapeToString({b.begin(), b.end() - 2}) +
           " must be equal; tensor_broadcast one operand first";
  });
  const int64_t k = a.back();
  if (k != b[b.size() - 2]) {
    std::string hint;
    if (k == b.back())
      hint = "; write tensor_transpose(" + NameOf(1) + ")";
    else if (a[a.size() - 2] == b[b.size() - 2])
      hint = "; write tensor_transpose(" + NameOf(0) + ")";
    Fail("the inner extents " + std::to_string(k) + " and " + std::to_string(b[b.size() - 2]) +
         " differ" + hint);
  }
  node_.dtype = pairs ? DType::kF32 : Operand(0).dtype;
  node_.shape = a;
  node_.shape.back() = b.back();
}

void Rule::InferMovement() {
  const Shape& from = ShapeOf(0);
  std::vector<int64_t>& ints = node_.attr.ints;
  const size_t rank = from.size();
  node_.dtype = Operand(0).dtype;
  switch (node_.op) {
    case Op::kReshape:
      CheckExtents(ints);
      Require(NumElements(ints) == NumElements(from), [&] {
        return "cannot reshape " + std::to_string(NumElements(from)) + " elements to " +
               ShapeToString(ints) + ", which has " + std::to_string(NumElements(ints));
      });
      node_.shape = ints;
      break;
    case Op::kPermute: {
      std::vector<int64_t> sorted = ints;
      std::sort(sorted.begin(), sorted.end());
      std::vector<int64_t> axes(rank);
      std::iota(axes.begin(), axes.end(), 0);
      Require(sorted == axes, [&] {
        return ShapeToString(ints) + " is not a permutation of the " + std::to_string(rank) +
               " axes";
      });
      node_.shape.clear();
      for (int64_t axis : ints) node_.shape.push_back(from[axis]);
      break;
    }
    case Op::kExpand:
      CheckExtents(ints);
      Require(Broadcasts(from, ints), [&] {
        return ShapeToString(from) + " does not broadcast to " + ShapeToString(ints) +
               ": aligned at the right, each extent must be equal or 1; tensor_reshape " +
               NameOf(0) + " to put its axes in place first";
      });
      node_.shape = ints;
      break;
    case Op::kPad:
      Require(ints.size() == 2 * rank, [&] {
        return "needs [before, after] for each of the " + std::to_string(rank) + " axes";
      });
      node_.shape = from;
      for (size_t i = 0; i < rank; ++i) {
        Require(ints[2 * i] >= 0 && ints[2 * i + 1] >= 0 && ints[2 * i] <= kMaxElements &&
                    ints[2 * i + 1] <= kMaxElements,
                [&] {
                  return "the padding of axis " + std::to_string(i) + " is negative or too large";
                });
        node_.shape[i] += ints[2 * i] + ints[2 * i + 1];
      }
      break;
    case Op::kSlice:
      Require(ints.size() == 3 * rank, [&] {
        return "needs [start, stop, step] for each of the " + std::to_string(rank) + " axes";
      });
      node_.shape = from;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t start = ints[3 * i];
        const int64_t stop = ints[3 * i + 1];
        const int64_t step = ints[3 * i + 2];
        Require(0 <= start && start <= stop && stop <= from[i] && step > 0, [&] {
          return "axis " + std::to_string(i) +
                 " needs 0 <= start <= stop <= " + std::to_string(from[i]) +
                 " and step > 0, got [" + std::to_string(start) + ", " + std::to_string(stop) +
                 ", " + std::to_string(step) + "]";
        });
        node_.shape[i] = stop == start ? 0 : (stop - start - 1) / step + 1;
      }
      break;
    default:  // kFlip
      NormaliseAxes();
      node_.shape = from;
  }
}

void Rule::InferIndexing() {
  const bool gather = node_.op == Op::kGather;
  const size_t index = gather ? 1 : 0;
  Require(Operand(index).dtype == DType::kI32 || Operand(index).dtype == DType::kI64, [&] {
    return "the index must be i32 or i64; write tensor_cast(" + NameOf(index) + ", i32) first";
  });
  if (gather) {
    Require(RankOf(0) >= 1, "cannot index a scalar");
    node_.dtype = Operand(0).dtype;
    node_.shape = ShapeOf(1);
    node_.shape.insert(node_.shape.end(), ShapeOf(0).begin() + 1, ShapeOf(0).end());
    return;
  }
  RequireNotBool(1);
  const Shape& to = node_.attr.ints;
  Require(!to.empty(), "the result needs an axis to index");
  CheckExtents(to);
  Shape updates = ShapeOf(0);
  updates.insert(updates.end(), to.begin() + 1, to.end());
  Require(ShapeOf(1) == updates, [&] {
    return "the updates must have shape " + ShapeToString(updates) +
           ", the index's followed by one row of " + ShapeToString(to);
  });
  node_.dtype = Operand(1).dtype;
  node_.shape = to;
}

void Rule::InferDerived() {
  Require(expansion_depth < kMaxExpansionDepth,
          "its expansion nests too deep; does it expand to itself?");
  DepthGuard guard;
  if (def_.attr_form == AttrForm::kAxes || !node_.attr.ints.empty()) {
    if (def_.attr_form == AttrForm::kAxes || def_.attr_form == AttrForm::kOptionalAxes) {
      NormaliseAxes();
    }
  }
  Graph scratch;
  std::vector<NodeId> operands;
  // An operand used twice, as in add(x, x), is one input of the scratch graph.
  std::map<NodeId, NodeId> seen;
  for (NodeId id : node_.inputs) {
    auto [it, is_new] = seen.try_emplace(id, 0);
    if (is_new) {
      const Node& operand = graph_.node(id);
      const std::string name = operand.name.empty() ? "literal" + std::to_string(id) : operand.name;
      it->second = scratch.AddInput(name, operand.dtype, operand.shape);
    }
    operands.push_back(it->second);
  }
  try {
    const NodeId root = def_.expand(scratch, operands, node_.attr);
    node_.dtype = scratch.node(root).dtype;
    node_.shape = scratch.node(root).shape;
  } catch (const ShapeError& error) {
    const std::string inner = error.what();
    // Within nested derived ops only the outermost application and the innermost reason help.
    const size_t reason = inner.rfind("): ");
    if (def_.arity == 2 && inner.find("): operands must have equal shapes") != std::string::npos) {
      RequireSameShape(0, 1);  // names the user's operands, not the expansion's
    }
    Fail(reason == std::string::npos ? inner : inner.substr(reason + 3));
  }
}

}  // namespace

void InferNode(const Graph& graph, Node& node) { Rule(graph, node).Infer(); }

std::string TypeToString(DType dtype, const Shape& shape) {
  return std::string(DTypeName(dtype)) + ShapeToString(shape);
}

double RoundToDType(double value, DType dtype) {
  return dtype == DType::kF32 ? static_cast<double>(static_cast<float>(value)) : value;
}

}  // namespace l3c::tensor
