#include "layers/tensor/op.h"

#include <deque>
#include <map>
#include <stdexcept>

#include "layers/tensor/derived.h"

namespace l3c::tensor {
namespace {

struct PrimitiveEntry {
  Op op;
  const char* name;
  const char* l1_name;  // "": "tensor_" + name
  OpClass op_class;
  int arity;
  AttrForm attr_form;
  const char* doc;
};

using enum OpClass;

// One line an op, in the order of the enumeration.
constexpr PrimitiveEntry kPrimitives[] = {
    {Op::kInput, "input", "", kLeaf, 0, AttrForm::kNone, "a named input of the graph"},
    {Op::kConst, "const", "", kLeaf, 0, AttrForm::kConst, "scalar constant"},
    {Op::kIota, "iota", "", kLeaf, 0, AttrForm::kIota, "0, 1, 2, … along one axis"},
    {Op::kRandom, "random", "", kLeaf, 1, AttrForm::kShape,
     "Philox4x32-10 uniform in [0, 1), f32; the operand is the key, a u64 scalar"},
    {Op::kAdd, "add", "", kElementwise, 2, AttrForm::kNone, "a + b"},
    {Op::kMul, "mul", "", kElementwise, 2, AttrForm::kNone, "a * b"},
    {Op::kNeg, "neg", "", kElementwise, 1, AttrForm::kNone, "-a"},
    {Op::kRecip, "recip", "", kElementwise, 1, AttrForm::kNone, "1 / a"},
    {Op::kMax, "max", "", kElementwise, 2, AttrForm::kNone, "the greater; NaN if either is"},
    {Op::kMod, "mod", "", kElementwise, 2, AttrForm::kNone, "remainder with the sign of a"},
    {Op::kExp2, "exp2", "", kElementwise, 1, AttrForm::kNone, "2 to the power a"},
    {Op::kLog2, "log2", "", kElementwise, 1, AttrForm::kNone, "logarithm to base 2"},
    {Op::kSin, "sin", "", kElementwise, 1, AttrForm::kNone, "sine of a, in radians"},
    {Op::kSqrt, "sqrt", "", kElementwise, 1, AttrForm::kNone, "square root"},
    {Op::kCmpLt, "cmplt", "", kElementwise, 2, AttrForm::kNone, "a < b, as bool"},
    {Op::kCmpNe, "cmpne", "", kElementwise, 2, AttrForm::kNone, "a != b, as bool; NaN != NaN"},
    {Op::kWhere, "where", "", kElementwise, 3, AttrForm::kNone, "b where a holds, c elsewhere"},
    {Op::kCast, "cast", "", kElementwise, 1, AttrForm::kDType, "the value in another dtype"},
    {Op::kBitcast, "bitcast", "", kElementwise, 1, AttrForm::kDType,
     "the bits as another dtype of the same size; has no derivative"},
    {Op::kBf16Pair, "bf16_pair", "", kElementwise, 2, AttrForm::kNone,
     "a and b rounded to bfloat16, in the halves of a u32; has no derivative"},
    {Op::kReduceSum, "reduce_sum", "", kReduction, 1, AttrForm::kAxes, "sum over axes"},
    {Op::kReduceMax, "reduce_max", "", kReduction, 1, AttrForm::kAxes, "greatest over axes"},
    {Op::kMatmul, "matmul", "", kContraction, 2, AttrForm::kNone,
     "[..., m, k] x [..., k, n] -> [..., m, n]"},
    {Op::kBf16Matmul, "bf16_matmul", "", kContraction, 2, AttrForm::kNone,
     "the matmul of matrices of bf16_pair, in f32; has no derivative"},
    {Op::kReshape, "reshape", "", kMovement, 1, AttrForm::kShape, "same elements, other extents"},
    {Op::kPermute, "permute", "", kMovement, 1, AttrForm::kShape,
     "axis i of the result is axis p[i]"},
    {Op::kExpand, "expand", "tensor_broadcast", kMovement, 1, AttrForm::kShape,
     "repeats along axes of extent 1 and new leading axes"},
    {Op::kPad, "pad", "", kMovement, 1, AttrForm::kPadding, "zeros before and after each axis"},
    {Op::kSlice, "slice", "", kMovement, 1, AttrForm::kSlice, "start to stop by step, each axis"},
    {Op::kFlip, "flip", "", kMovement, 1, AttrForm::kAxes, "reverses axes"},
    {Op::kGather, "gather", "", kIndexing, 2, AttrForm::kNone,
     "rows of a by index; out of range reads 0"},
    {Op::kScatterAdd, "scatter_add", "", kIndexing, 2, AttrForm::kShape,
     "zeros of the given shape, plus updates by row, ascending; out of range is dropped"},
};
static_assert(std::size(kPrimitives) == static_cast<size_t>(Op::kFirstDerived));

class Registry {
 public:
  static Registry& Get() {
    static Registry registry;
    return registry;
  }

  Op Register(OpDef def) {
    if (def.l1_name.empty()) def.l1_name = "tensor_" + def.name;
    if (by_name_.contains(def.name) || by_name_.contains(def.l1_name)) {
      throw std::invalid_argument("op '" + def.name + "' is registered already");
    }
    def.op = static_cast<Op>(defs_.size());
    by_name_.emplace(def.name, def.op);
    by_name_.emplace(def.l1_name, def.op);
    defs_.push_back(std::move(def));
    return defs_.back().op;
  }

  const std::deque<OpDef>& defs() const { return defs_; }
  const std::map<std::string, Op, std::less<>>& by_name() const { return by_name_; }

 private:
  Registry() {
    for (const PrimitiveEntry& p : kPrimitives) {
      Register({p.op, p.name, p.l1_name, p.op_class, p.arity, p.doc, nullptr, p.attr_form});
    }
    for (const DerivedEntry& d : BuiltinDerived()) {
      Register({Op::kFirstDerived, std::string(d.name), "", d.op_class, d.arity, std::string(d.doc),
                d.expand, d.attr_form});
    }
  }

  std::deque<OpDef> defs_;  // indexed by Op; references stay valid as it grows
  std::map<std::string, Op, std::less<>> by_name_;
};

}  // namespace

const OpDef& Definition(Op op) { return Registry::Get().defs().at(static_cast<size_t>(op)); }

std::optional<Op> FindOp(std::string_view name) {
  const auto& by_name = Registry::Get().by_name();
  auto it = by_name.find(name);
  if (it == by_name.end()) return std::nullopt;
  return it->second;
}

std::vector<Op> AllOps() {
  std::vector<Op> ops;
  for (const OpDef& def : Registry::Get().defs()) ops.push_back(def.op);
  return ops;
}

Op RegisterDerived(
    std::string name, int arity, std::string doc,
    std::function<NodeId(Graph&, std::span<const NodeId>, const Attributes&)> expand) {
  return Registry::Get().Register({Op::kFirstDerived, std::move(name), "", OpClass::kElementwise,
                                   arity, std::move(doc), std::move(expand), AttrForm::kNone});
}

}  // namespace l3c::tensor
