#include "layers/rules/instance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "layers/l0/lower/value_terms.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::rules {

using l0::lower::FindForm;
using l0::lower::JoinInts;
using l0::lower::SplitInts;
using l0::lower::TensorType;
using l0::lower::TermForm;
using l0::lower::TermTail;
using tensor::Array;
using tensor::DType;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

LeftSide::LeftSide(const egraph::EGraph& graph, const egraph::Rule& rule)
    : graph_(graph), rule_(rule) {
  const egraph::SortId val = graph.FindSort("Val");
  std::set<uint32_t> operands;
  std::vector<uint32_t> in_order;
  const auto is_val = [&](const egraph::Operand& o) {
    return !o.is_constant && rule.query.slot_sorts[o.bits] == val;
  };
  if (!rule.query.presets.empty()) obstacle_ = "it names a class of one program by 'let'";
  for (const egraph::Atom& atom : rule.query.atoms) {
    const egraph::Function& f = graph.function(atom.function);
    const egraph::Operand& out = atom.columns.back();
    if (f.kind == egraph::FunctionKind::kConstructor && f.output == val) {
      const TermForm* form = FindForm(f.name);
      if (form == nullptr) {
        obstacle_ =
            "'" + f.name + "' is no op of the tensor algebra, so nothing says what it means";
        return;
      }
      patterns_[out.bits].push_back({form->op, &atom});
      for (int i = 0; i < form->operands; ++i) {
        operands.insert(atom.columns[static_cast<size_t>(i)].bits);
      }
    } else if (f.name == "dtype" && out.is_constant) {
      dtypes_[atom.columns[0].bits] = graph.AsString(egraph::Value{out.bits});
    } else if (f.name == "shape" && out.is_constant) {
      shapes_[atom.columns[0].bits] = graph.AsString(egraph::Value{out.bits});
    }
    for (const egraph::Operand& o : atom.columns) {
      if (is_val(o)) in_order.push_back(o.bits);
    }
  }
  for (uint32_t slot : in_order) {
    if (operands.contains(slot)) continue;
    if (std::find(roots_.begin(), roots_.end(), slot) == roots_.end()) roots_.push_back(slot);
  }
  for (const auto& [slot, patterns] : patterns_) {
    if (patterns.size() > 1) obstacle_ = "it asks for two forms of one value";
  }
  if (obstacle_.empty() && roots_.empty()) obstacle_ = "it matches no value of the tensor algebra";
}

namespace {

// Simpler ones first, which shrinking relies on.
constexpr int64_t kExtents[] = {1, 1, 1, 1, 1, 2, 2, 2, 3,  3,  3, 3,
                                5, 5, 5, 7, 7, 4, 6, 9, 11, 13, 0};
// Of a product's sum: long ones too, which some rules are about.
constexpr int64_t kSums[] = {1, 1, 2, 2, 3, 5, 8, 12, 16, 24, 32, 36, 48, 64, 0};
constexpr int64_t kRanks[] = {0, 1, 1, 2, 2, 2, 3, 3, 4};
constexpr DType kDTypes[] = {DType::kF32, DType::kF32,  DType::kF32, DType::kF32, DType::kF64,
                             DType::kI32, DType::kBool, DType::kI64, DType::kU8,  DType::kU32};
constexpr int64_t kMaxElements = 2048;

template <typename T, size_t n>
T Pick(Choices& choices, const T (&from)[n]) {
  return from[choices.Draw(n)];
}

}  // namespace

// One attempt at an instance. Every method gives nothing on a contradiction.
class InstanceBuilder {
 public:
  InstanceBuilder(const LeftSide& side, Choices& choices) : side_(side), choices_(choices) {}

  std::optional<tensor::Graph> Build() {
    for (uint32_t slot : side_.roots_) {
      if (made_.contains(slot)) continue;
      const auto node = Make(slot, RootType(slot));
      if (!node) return std::nullopt;
      program_.AddOutput("y" + std::to_string(program_.outputs().size()), *node);
    }
    return std::move(program_);
  }

 private:
  Shape RandomShape(std::optional<int64_t> rank) {
    Shape shape(static_cast<size_t>(rank ? *rank : Pick(choices_, kRanks)));
    // Square ones meet patterns that want the same extent twice.
    const bool square = choices_.Draw(4) == 3;
    for (int64_t& extent : shape) {
      extent = square && &extent != shape.data() ? shape[0] : Pick(choices_, kExtents);
    }
    return shape;
  }

  TensorType RootType(uint32_t slot) {
    // A second root often shares operands with what is there already.
    if (const auto known = KnownType(slot)) return *known;
    TensorType type;
    type.dtype = DTypeFor(slot);
    type.shape = RandomShape(KnownRank(slot));
    const auto it = side_.patterns_.find(slot);
    if (it == side_.patterns_.end() || it->second[0].op != Op::kMatmul) return type;
    const auto& columns = it->second[0].atom->columns;
    const auto left = KnownType(columns[0].bits);
    const auto right = KnownType(columns[1].bits);
    if (!left && !right) return type;
    type = left ? *left : *right;
    if (type.shape.size() < 2) return type;
    type.shape[type.shape.size() - (left ? 1 : 2)] = Pick(choices_, kExtents);
    return type;
  }

  // The rank that a permutation in the pattern of the value asks for.
  std::optional<int64_t> KnownRank(uint32_t slot) {
    const auto it = side_.patterns_.find(slot);
    if (it == side_.patterns_.end()) return std::nullopt;
    const LeftSide::Pattern& pattern = it->second[0];
    const std::vector<egraph::Operand>& columns = pattern.atom->columns;
    const TermForm& form = l0::lower::FormOf(pattern.op);
    std::optional<std::vector<int64_t>> known;
    if (pattern.op == Op::kPermute && Known(columns[1], known) && known) {
      return static_cast<int64_t>(known->size());
    }
    if (form.tail != TermTail::kNone) return std::nullopt;
    for (int i = 0; i < form.operands; ++i) {
      if (const auto rank = KnownRank(columns[static_cast<size_t>(i)].bits)) return rank;
    }
    return std::nullopt;
  }

  // Of what a value is computed from without a change of dtype.
  std::optional<DType> KnownDType(uint32_t slot) {
    if (const auto type = KnownType(slot)) return type->dtype;
    const auto it = side_.patterns_.find(slot);
    if (it == side_.patterns_.end()) return std::nullopt;
    const LeftSide::Pattern& pattern = it->second[0];
    const TermForm& form = l0::lower::FormOf(pattern.op);
    if (pattern.op == Op::kBf16Pair) return DType::kU32;
    if (pattern.op == Op::kBf16Matmul) return DType::kF32;
    if (pattern.op == Op::kCmpLt || pattern.op == Op::kCmpNe || pattern.op == Op::kWhere ||
        pattern.op == Op::kRandom ||
        (form.tail != TermTail::kNone && form.tail != TermTail::kInts)) {
      return std::nullopt;
    }
    for (int i = 0; i < form.operands; ++i) {
      if (const auto dtype = KnownDType(pattern.atom->columns[static_cast<size_t>(i)].bits)) {
        return dtype;
      }
    }
    return std::nullopt;
  }

  // What the value must be because of what has been made: nothing where that leaves it open.
  std::optional<TensorType> KnownType(uint32_t slot) {
    if (const auto made = made_.find(slot); made != made_.end()) {
      const tensor::Node& node = program_.node(made->second);
      return TensorType{node.dtype, node.shape};
    }
    const auto it = side_.patterns_.find(slot);
    if (it == side_.patterns_.end()) return std::nullopt;
    const LeftSide::Pattern& pattern = it->second[0];
    const TermForm& form = l0::lower::FormOf(pattern.op);
    l0::lower::Term term;
    term.op = pattern.op;
    if (pattern.op == Op::kReshape || pattern.op == Op::kExpand) {
      // Its list is its shape, whatever it is made of.
      std::optional<std::vector<int64_t>> ints;
      const auto dtype = KnownDType(pattern.atom->columns[0].bits);
      if (!dtype || !Known(pattern.atom->columns[1], ints) || !ints) return std::nullopt;
      return TensorType{*dtype, *ints};
    }
    std::vector<TensorType> operands;
    for (int i = 0; i < form.operands; ++i) {
      const auto operand = KnownType(pattern.atom->columns[static_cast<size_t>(i)].bits);
      // One operand of an elementwise op says what all are.
      if (operand && form.tail == TermTail::kNone && pattern.op != Op::kMatmul &&
          pattern.op != Op::kWhere && pattern.op != Op::kCmpLt && pattern.op != Op::kCmpNe &&
          pattern.op != Op::kGather && pattern.op != Op::kRandom && pattern.op != Op::kBf16Matmul) {
        if (pattern.op == Op::kBf16Pair) return TensorType{DType::kU32, operand->shape};
        return operand;
      }
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    if (form.tail == TermTail::kInts) {
      std::optional<std::vector<int64_t>> known;
      if (!Known(pattern.atom->columns[operands.size()], known) || !known) return std::nullopt;
      term.attr.ints = *known;
    } else if (form.tail != TermTail::kNone) {
      return std::nullopt;
    }
    std::string none;
    return l0::lower::TypeOfTerm(term, operands, none);
  }

  // The dtype that a pattern or a premise names, else any.
  DType DTypeFor(uint32_t slot) {
    std::optional<std::string> name;
    if (const auto fixed = side_.dtypes_.find(slot); fixed != side_.dtypes_.end()) {
      name = fixed->second;
    } else if (const auto it = side_.patterns_.find(slot); it != side_.patterns_.end()) {
      const LeftSide::Pattern& pattern = it->second[0];
      if (pattern.op == Op::kCmpLt || pattern.op == Op::kCmpNe) return DType::kBool;
      if (pattern.op == Op::kBf16Pair) return DType::kU32;
      if (pattern.op == Op::kBf16Matmul) return DType::kF32;
      const TermTail tail = l0::lower::FormOf(pattern.op).tail;
      if (tail == TermTail::kDType || tail == TermTail::kNumber) {
        name = KnownText(pattern.atom->columns[1]);
      } else if (tail == TermTail::kIota) {
        name = KnownText(pattern.atom->columns[2]);
      }
    }
    const std::optional<DType> dtype = name ? tensor::ParseDType(*name) : std::nullopt;
    return dtype ? *dtype : Pick(choices_, kDTypes);
  }

  // What premises and literals of the pattern fix.
  bool Settle(uint32_t slot, TensorType& type) {
    if (const auto it = side_.dtypes_.find(slot); it != side_.dtypes_.end()) {
      const auto dtype = tensor::ParseDType(it->second);
      if (!dtype) return false;
      type.dtype = *dtype;
    }
    if (const auto it = side_.shapes_.find(slot); it != side_.shapes_.end()) {
      const auto shape = SplitInts(it->second);
      if (!shape) return false;
      type.shape = *shape;
    }
    return true;
  }

  std::optional<NodeId> Make(uint32_t slot, TensorType type) {
    if (!Settle(slot, type)) return std::nullopt;
    if (const auto it = made_.find(slot); it != made_.end()) {
      const tensor::Node& node = program_.node(it->second);
      if (node.dtype != type.dtype || node.shape != type.shape) return std::nullopt;
      return it->second;
    }
    if (tensor::NumElements(type.shape) > kMaxElements || type.shape.size() > 6) {
      return std::nullopt;
    }
    const auto it = side_.patterns_.find(slot);
    std::optional<NodeId> node;
    if (it == side_.patterns_.end()) {
      node = Leaf(slot, type);
    } else {
      if (!open_.insert(slot).second) return std::nullopt;  // a pattern inside itself
      node = Apply(it->second[0], type);
      open_.erase(slot);
    }
    if (node) {
      const tensor::Node& made = program_.node(*node);
      if (made.dtype != type.dtype || made.shape != type.shape) return std::nullopt;
      made_[slot] = *node;
    }
    return node;
  }

  NodeId Leaf(uint32_t slot, const TensorType& type) {
    const std::vector<std::string>& names = side_.rule_.query.slot_names;
    std::string name = slot < names.size() ? names[slot] : "";
    if (name.empty() || name[0] == '_' || program_.Find(name)) {
      name = "v" + std::to_string(slot);
    }
    return program_.AddInput(name, type.dtype, type.shape);
  }

  // The list that stands in a column, if a literal or an earlier pattern says.
  bool Known(const egraph::Operand& column, std::optional<std::vector<int64_t>>& ints) {
    const std::optional<std::string> text = KnownText(column);
    if (!text) return true;
    ints = SplitInts(*text);
    return ints.has_value();
  }
  std::optional<std::string> KnownText(const egraph::Operand& column) {
    if (column.is_constant) return side_.graph_.AsString(egraph::Value{column.bits});
    const auto it = texts_.find(column.bits);
    return it == texts_.end() ? std::nullopt : std::optional(it->second);
  }
  // The column holds this text from now on; false where it holds another.
  bool Bind(const egraph::Operand& column, const std::string& text) {
    const std::optional<std::string> known = KnownText(column);
    if (known) return *known == text;
    texts_[column.bits] = text;
    return true;
  }

  std::optional<NodeId> Add(Op op, std::vector<NodeId> inputs, tensor::Attributes attr = {}) {
    try {
      return program_.Add(op, std::move(inputs), std::move(attr));
    } catch (const tensor::ShapeError&) {
      return std::nullopt;
    }
  }

  bool Is(const egraph::Operand& operand, Op op) const {
    const auto it = side_.patterns_.find(operand.bits);
    return it != side_.patterns_.end() && it->second[0].op == op;
  }

  std::optional<NodeId> Apply(const LeftSide::Pattern& pattern, const TensorType& type) {
    const std::vector<egraph::Operand>& columns = pattern.atom->columns;
    const TermForm& form = l0::lower::FormOf(pattern.op);
    const auto tail = static_cast<size_t>(form.operands);
    tensor::Attributes attr;
    std::vector<TensorType> wanted;
    if (!Operands(pattern, type, attr, wanted)) return std::nullopt;
    if (form.tail == TermTail::kInts && !Bind(columns[tail], JoinInts(attr.ints))) {
      return std::nullopt;
    }
    if (form.tail == TermTail::kDType &&
        !Bind(columns[tail], std::string(tensor::DTypeName(attr.dtype)))) {
      return std::nullopt;
    }
    if (form.tail == TermTail::kNumber || form.tail == TermTail::kIota) {
      if (!Bind(columns[form.tail == TermTail::kNumber ? 1 : 2],
                std::string(tensor::DTypeName(attr.dtype)))) {
        return std::nullopt;
      }
    }
    if (form.tail == TermTail::kIota && !Bind(columns[0], JoinInts(attr.ints))) return std::nullopt;
    if (form.tail == TermTail::kName) {
      const std::string name = KnownText(columns[0]).value_or("v" + std::to_string(made_.size()));
      if (program_.Find(name)) return std::nullopt;
      return program_.AddInput(name, type.dtype, type.shape);
    }
    std::vector<NodeId> inputs;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto input = Make(columns[i].bits, wanted[i]);
      if (!input) return std::nullopt;
      inputs.push_back(*input);
    }
    return Add(pattern.op, std::move(inputs), std::move(attr));
  }

  // Attributes of the op, and what its operands must be for a result of `type`.
  bool Operands(const LeftSide::Pattern& pattern, const TensorType& type, tensor::Attributes& attr,
                std::vector<TensorType>& wanted) {
    const std::vector<egraph::Operand>& columns = pattern.atom->columns;
    const Shape& shape = type.shape;
    const auto rank = static_cast<int64_t>(shape.size());
    std::optional<std::vector<int64_t>> known;
    switch (pattern.op) {
      case Op::kInput:
        return true;
      case Op::kConst: {
        if (!shape.empty()) return false;
        attr.dtype = type.dtype;
        const egraph::Operand& number = columns[0];
        if (number.is_constant) {
          attr.scalar = side_.graph_.AsF64(egraph::Value{number.bits});
        } else if (const auto it = numbers_.find(number.bits); it != numbers_.end()) {
          attr.scalar = it->second;
        } else {
          constexpr double kNumbers[] = {0, 1, 2, 0.5, -1, 3, -0.0, 0.1};
          attr.scalar = Pick(choices_, kNumbers);
        }
        attr.scalar = RoundTo(attr.scalar, type.dtype);
        if (!number.is_constant) numbers_[number.bits] = attr.scalar;
        return true;
      }
      case Op::kIota:
        if (rank == 0) return false;
        attr.ints = shape;
        attr.axis = columns[1].is_constant
                        ? side_.graph_.AsI64(egraph::Value{columns[1].bits})
                        : static_cast<int64_t>(choices_.Draw(static_cast<uint64_t>(rank)));
        attr.dtype = type.dtype;
        return true;
      case Op::kRandom:
        attr.ints = shape;
        wanted = {{DType::kU64, {}}};
        return type.dtype == DType::kF32;
      case Op::kCmpLt:
      case Op::kCmpNe: {
        if (type.dtype != DType::kBool) return false;
        const TensorType operand{DTypeFor(columns[0].bits), shape};
        wanted = {operand, operand};
        return true;
      }
      case Op::kWhere:
        wanted = {{DType::kBool, shape}, type, type};
        return true;
      case Op::kCast:
        attr.dtype = type.dtype;
        wanted = {{DTypeFor(columns[0].bits), shape}};
        return true;
      case Op::kBitcast: {
        attr.dtype = type.dtype;
        std::vector<DType> same;
        for (DType dtype : kDTypes) {
          if (tensor::SizeOf(dtype) == tensor::SizeOf(type.dtype)) same.push_back(dtype);
        }
        wanted = {{same[choices_.Draw(same.size())], shape}};
        return true;
      }
      case Op::kReduceSum:
      case Op::kReduceMax: {
        if (!Known(columns[1], known)) return false;
        std::vector<int64_t> axes;
        const auto reduced = KnownType(columns[0].bits);
        if (known) {
          axes = *known;
        } else if (reduced) {
          axes = AxesBetween(reduced->shape, shape);
          if (axes.empty()) return false;
        } else {
          const auto count = static_cast<int64_t>(1 + choices_.Draw(3));
          std::vector<int64_t> all(static_cast<size_t>(rank + count));
          for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
          for (int64_t i = 0; i < count; ++i) {
            const uint64_t at = choices_.Draw(all.size());
            axes.push_back(all[at]);
            all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
          }
          std::sort(axes.begin(), axes.end());
        }
        if (axes.size() > tensor::kMaxRank) return false;
        Shape operand = shape;
        for (int64_t axis : axes) {
          if (axis < 0 || axis > static_cast<int64_t>(operand.size())) return false;
          operand.insert(operand.begin() + axis, Pick(choices_, kExtents));
        }
        attr.ints = axes;
        wanted = {reduced ? *reduced : TensorType{type.dtype, operand}};
        return true;
      }
      case Op::kBf16Pair:
        wanted = {{DType::kF32, shape}, {DType::kF32, shape}};
        return type.dtype == DType::kU32;
      case Op::kMatmul:
      case Op::kBf16Matmul: {
        if (rank < 2) return false;
        int64_t k = Pick(choices_, kSums);
        const auto known_left = KnownType(columns[0].bits);
        const auto known_right = KnownType(columns[1].bits);
        if (known_left && !known_left->shape.empty()) {
          k = known_left->shape.back();
        } else if (known_right && known_right->shape.size() > 1) {
          k = known_right->shape[known_right->shape.size() - 2];
        }
        Shape left = shape;
        Shape right = shape;
        left.back() = k;
        right[static_cast<size_t>(rank) - 2] = k;
        const DType factors = pattern.op == Op::kBf16Matmul ? DType::kU32 : type.dtype;
        wanted = {{factors, left}, {factors, right}};
        return true;
      }
      case Op::kReshape: {
        attr.ints = shape;
        const auto operand = KnownType(columns[0].bits);
        const auto product = ProductOf(columns[0].bits, tensor::NumElements(shape));
        if (operand) {
          wanted = {*operand};
        } else if (product) {
          wanted = {{type.dtype, *product}};
        } else if (Is(columns[0], Op::kMatmul) && choices_.Draw(4) != 0) {
          wanted = {{type.dtype, AsMatrix(shape)}};
        } else if ((Is(columns[0], Op::kReduceMax) || Is(columns[0], Op::kReduceSum)) &&
                   !shape.empty() && shape.back() == 1 && choices_.Draw(4) != 0) {
          // The axis that is reduced, kept.
          wanted = {{type.dtype, Shape(shape.begin(), shape.end() - 1)}};
        } else {
          wanted = {{type.dtype, Regrouped(shape)}};
        }
        return true;
      }
      case Op::kPermute: {
        if (!Known(columns[1], known)) return false;
        std::vector<int64_t> order;
        if (known) {
          order = *known;
        } else {
          std::vector<int64_t> left(shape.size());
          for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int64_t>(i);
          while (!left.empty()) {
            const uint64_t at = choices_.Draw(left.size());
            order.push_back(left[at]);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
          }
        }
        if (order.size() != shape.size()) return false;
        Shape operand(shape.size(), -1);
        for (size_t i = 0; i < order.size(); ++i) {
          if (order[i] < 0 || order[i] >= rank) return false;
          operand[static_cast<size_t>(order[i])] = shape[i];
        }
        if (std::find(operand.begin(), operand.end(), -1) != operand.end()) return false;
        attr.ints = order;
        wanted = {{type.dtype, operand}};
        return true;
      }
      case Op::kExpand: {
        Shape operand = shape;
        const auto known_operand = KnownType(columns[0].bits);
        if (Is(columns[0], Op::kConst)) {
          operand.clear();
        } else if (known_operand) {
          operand = known_operand->shape;
        } else if (!operand.empty() && choices_.Draw(3) == 2) {
          operand.back() = 1;  // as what is known of each row
        } else {
          const uint64_t dropped = choices_.Draw(shape.size() + 1);
          operand.erase(operand.begin(), operand.begin() + static_cast<std::ptrdiff_t>(dropped));
          for (int64_t& extent : operand) {
            if (choices_.Draw(2) == 0) extent = 1;
          }
        }
        attr.ints = shape;
        wanted = {{type.dtype, operand}};
        return true;
      }
      case Op::kPad: {
        if (!Known(columns[1], known)) return false;
        if (known && known->size() != 2 * shape.size()) return false;
        Shape operand = shape;
        for (size_t d = 0; d < shape.size(); ++d) {
          int64_t before, after;
          if (known) {
            before = (*known)[2 * d];
            after = (*known)[2 * d + 1];
          } else {
            before = static_cast<int64_t>(choices_.Draw(static_cast<uint64_t>(shape[d]) + 1));
            after =
                static_cast<int64_t>(choices_.Draw(static_cast<uint64_t>(shape[d] - before) + 1));
          }
          if (before < 0 || after < 0 || before > shape[d] || after > shape[d] - before) {
            return false;
          }
          operand[d] -= before + after;
          attr.ints.insert(attr.ints.end(), {before, after});
        }
        wanted = {{type.dtype, operand}};
        return true;
      }
      case Op::kSlice: {
        if (!Known(columns[1], known)) return false;
        if (known && known->size() != 3 * shape.size()) return false;
        Shape operand = shape;
        for (size_t d = 0; d < shape.size(); ++d) {
          int64_t start, stop, step;
          if (known) {
            start = (*known)[3 * d];
            stop = (*known)[3 * d + 1];
            step = (*known)[3 * d + 2];
            if (start < 0 || stop < start || stop > 64 || step < 1) return false;
          } else {
            start = static_cast<int64_t>(choices_.Draw(3));
            step = static_cast<int64_t>(1 + choices_.Draw(3));
            stop = start + (shape[d] == 0 ? 0 : (shape[d] - 1) * step + 1);
          }
          operand[d] = stop + static_cast<int64_t>(choices_.Draw(3));
          attr.ints.insert(attr.ints.end(), {start, stop, step});
        }
        wanted = {{type.dtype, operand}};
        return true;
      }
      case Op::kFlip: {
        if (!Known(columns[1], known)) return false;
        if (known) {
          attr.ints = *known;
        } else {
          for (int64_t d = 0; d < rank; ++d) {
            if (choices_.Draw(2) == 0) attr.ints.push_back(d);
          }
        }
        wanted = {type};
        return !attr.ints.empty();
      }
      case Op::kGather: {
        const uint64_t cut = choices_.Draw(shape.size() + 1);
        const auto middle = shape.begin() + static_cast<std::ptrdiff_t>(cut);
        Shape table(middle, shape.end());
        table.insert(table.begin(), Pick(choices_, kExtents));
        wanted = {{type.dtype, table}, {IndexType(), Shape(shape.begin(), middle)}};
        return true;
      }
      case Op::kScatterAdd: {
        if (rank == 0) return false;
        attr.ints = shape;
        Shape index(choices_.Draw(3));
        for (int64_t& extent : index) extent = Pick(choices_, kExtents);
        Shape updates = index;
        updates.insert(updates.end(), shape.begin() + 1, shape.end());
        wanted = {{IndexType(), index}, {type.dtype, updates}};
        return true;
      }
      default:  // elementwise, of one type
        wanted.assign(static_cast<size_t>(l0::lower::FormOf(pattern.op).operands), type);
        return true;
    }
  }

  DType IndexType() { return choices_.Draw(2) == 0 ? DType::kI32 : DType::kI64; }

  static double RoundTo(double value, DType dtype) {
    if (tensor::IsFloat(dtype)) return tensor::RoundToDType(value, dtype);
    if (dtype == DType::kBool) return value != 0;
    return dtype == DType::kI32 || dtype == DType::kI64 ? std::trunc(value)
                                                        : std::abs(std::trunc(value));
  }

  // The shape of a product of so many elements whose left factor is known.
  std::optional<Shape> ProductOf(uint32_t slot, int64_t elements) {
    const auto it = side_.patterns_.find(slot);
    if (it == side_.patterns_.end() || it->second[0].op != Op::kMatmul) return std::nullopt;
    const auto left = KnownType(it->second[0].atom->columns[0].bits);
    if (!left || left->shape.size() < 2) return std::nullopt;
    Shape shape = left->shape;
    shape.back() = 1;
    const int64_t rows = tensor::NumElements(shape);
    if (rows == 0 || elements % rows != 0) return std::nullopt;
    shape.back() = elements / rows;
    return shape;
  }

  // Axes of `from` without which it is `to`, drawn among all that are; none where none are.
  std::vector<int64_t> AxesBetween(const Shape& from, const Shape& to) {
    if (from.size() <= to.size() || from.size() > 6) return {};
    std::vector<std::vector<int64_t>> all;
    for (uint32_t set = 1; set < (1u << from.size()); ++set) {
      Shape kept;
      std::vector<int64_t> axes;
      for (size_t d = 0; d < from.size(); ++d) {
        if ((set >> d) & 1) {
          axes.push_back(static_cast<int64_t>(d));
        } else {
          kept.push_back(from[d]);
        }
      }
      if (kept == to) all.push_back(std::move(axes));
    }
    return all.empty() ? std::vector<int64_t>{} : all[choices_.Draw(all.size())];
  }

  // All axes joined to two.
  Shape AsMatrix(const Shape& shape) {
    if (shape.size() < 3) return shape;
    const auto cut =
        shape.begin() + static_cast<std::ptrdiff_t>(1 + choices_.Draw(shape.size() - 1));
    return {tensor::NumElements(Shape(shape.begin(), cut)),
            tensor::NumElements(Shape(cut, shape.end()))};
  }

  // Another shape of as many elements.
  Shape Regrouped(const Shape& shape) {
    switch (choices_.Draw(7)) {
      case 0:
        return {tensor::NumElements(shape)};
      case 5:
        return AsMatrix(shape);
      case 4: {  // the last one left out where it is 1
        Shape fewer = shape;
        if (!fewer.empty() && fewer.back() == 1) fewer.pop_back();
        return fewer;
      }
      case 1: {  // two neighbours joined
        if (shape.size() < 2) return shape;
        Shape joined = shape;
        const uint64_t at = choices_.Draw(shape.size() - 1);
        joined[at] *= joined[at + 1];
        joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        return joined;
      }
      case 2: {  // one cut in two
        Shape cut = shape;
        for (size_t d = 0; d < shape.size(); ++d) {
          for (int64_t factor : {2, 3, 5}) {
            if (shape[d] > factor && shape[d] % factor == 0) {
              cut[d] = factor;
              cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(d) + 1, shape[d] / factor);
              return cut;
            }
          }
        }
        return cut;
      }
      case 3: {  // an extent of 1 more
        Shape more = shape;
        more.insert(more.begin() + static_cast<std::ptrdiff_t>(choices_.Draw(shape.size() + 1)), 1);
        return more;
      }
      default:
        return shape;
    }
  }

  const LeftSide& side_;
  Choices& choices_;
  tensor::Graph program_;
  std::map<uint32_t, NodeId> made_;        // by slot
  std::map<uint32_t, std::string> texts_;  // of slots of strings
  std::map<uint32_t, double> numbers_;     // of slots of numbers
  std::set<uint32_t> open_;
};

std::optional<tensor::Graph> LeftSide::Draw(Choices& choices) const {
  return InstanceBuilder(*this, choices).Build();
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Simpler ones first. The first kFinite are for every range, the first kSpecial for all but
// kFinite.
constexpr double kFloats[] = {0,        1,        -1,       2,    0.5,     -0.0,     3,
                              -2,       kInf,     -kInf,    kNaN, 0x1p100, -0x1p100, 0x1.fffffep127,
                              0x1p-126, 0x1p-149, -0x1p-149};
constexpr uint64_t kFiniteFloats = 8;
constexpr uint64_t kSpecialFloats = 11;
constexpr uint64_t kAllFloats = std::size(kFloats);
constexpr uint64_t kOrdinary = uint64_t{1} << 20;  // beyond the table: numbers with a full mantissa
constexpr int64_t kInts[] = {0, 1, 2, 3, -1, 4, 5, 7, -2, 100, 255, INT32_MAX, INT32_MIN};

uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double Float(uint64_t choice, ValueRange range, DType dtype) {
  const bool finite = range == ValueRange::kFinite || range == ValueRange::kShort;
  const uint64_t known = finite                          ? kFiniteFloats
                         : range == ValueRange::kSpecial ? kSpecialFloats
                                                         : kAllFloats;
  if (choice < kAllFloats) return kFloats[choice < known ? choice : 1];
  const uint64_t bits = Mixed(choice);
  const double mantissa = range == ValueRange::kShort
                              ? 1 + std::ldexp(static_cast<double>(bits >> 57), -7)
                              : 1 + std::ldexp(static_cast<double>(bits >> 12), -52);
  const int exponent = static_cast<int>(bits % 9) - 4;
  const double value = std::ldexp((bits >> 9) % 2 == 0 ? mantissa : -mantissa, exponent);
  return tensor::RoundToDType(value, dtype);
}

int64_t Int(uint64_t choice, DType dtype) {
  const int64_t value = kInts[choice];
  switch (dtype) {
    case DType::kBool:
      return value & 1;
    case DType::kU8:
      return value & 0xff;
    case DType::kU32:
      return value & 0xffffffff;
    default:
      return value;
  }
}

}  // namespace

std::vector<Array> DrawValues(const tensor::Graph& program, ValueRange range, Choices& choices) {
  // How many of a case's numbers come from the table, in sixteenths.
  constexpr uint64_t kShares[] = {16, 0, 3, 8};
  const uint64_t share = kShares[choices.Draw(std::size(kShares))];
  const auto floats = [&](std::mt19937_64& engine) {
    return engine() % 16 < share ? engine() % kAllFloats : kAllFloats + engine() % kOrdinary;
  };
  std::vector<Array> arrays;
  for (NodeId id : program.inputs()) {
    const tensor::Node& node = program.node(id);
    Array array = Array::Zeros(node.dtype, node.shape);
    // Now and then one number everywhere, as a masked row has.
    const bool constant = choices.Draw(8) == 0;
    for (size_t i = 0; i < array.floats.size(); ++i) {
      array.floats[i] = constant && i > 0 ? array.floats[0]
                                          : Float(choices.Draw(kAllFloats + kOrdinary, floats),
                                                  range, node.dtype);
    }
    for (size_t i = 0; i < array.ints.size(); ++i) {
      array.ints[i] =
          constant && i > 0 ? array.ints[0] : Int(choices.Draw(std::size(kInts)), node.dtype);
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace l3c::rules
