#include "layers/tensor/text.h"

#include <charconv>
#include <cmath>
#include <numeric>

#include "layers/tensor/shape_rules.h"

namespace l3c::tensor {

Argument Argument::Node(NodeId id) {
  Argument argument;
  argument.kind = Kind::kNode;
  argument.node = id;
  return argument;
}

Argument Argument::Number(double value) {
  Argument argument;
  argument.kind = Kind::kNumber;
  argument.number = value;
  return argument;
}

Argument Argument::Type(DType dtype) {
  Argument argument;
  argument.kind = Kind::kDType;
  argument.dtype = dtype;
  return argument;
}

Argument Argument::List(std::vector<Argument> items) {
  Argument argument;
  argument.kind = Kind::kList;
  argument.list = std::move(items);
  return argument;
}

Argument Argument::Ints(std::span<const int64_t> items) {
  std::vector<Argument> list;
  for (int64_t item : items) list.push_back(Number(static_cast<double>(item)));
  return List(std::move(list));
}

Argument Argument::Named(std::string name) && {
  keyword = std::move(name);
  return std::move(*this);
}

std::string FormatNumber(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  std::to_chars_result end{};
  if (!IsFloat(dtype)) {
    end = std::to_chars(buffer, buffer + sizeof(buffer), static_cast<int64_t>(value));
    return std::string(buffer, end.ptr);
  }
  if (dtype == DType::kF32) {
    end = std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(value));
  } else {
    end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  }
  std::string text(buffer, end.ptr);
  const size_t e = text.find('e');
  if (e == std::string::npos) {
    if (text.find('.') == std::string::npos) text += ".0";
    return text;
  }
  // "1e-05" and "1e+30" become "1e-5" and "1e30".
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent[0] == '-';
  if (exponent[0] == '-' || exponent[0] == '+') exponent.erase(0, 1);
  exponent.erase(0, std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
  return text.substr(0, e) + (negative ? "e-" : "e") + exponent;
}

namespace {

// "[[0, 1], [2, 2]]": groups of `width` integers.
std::string FormatGroups(const std::vector<int64_t>& ints, size_t width) {
  std::string text = "[";
  for (size_t i = 0; i < ints.size(); i += width) {
    if (i > 0) text += ", ";
    text += ShapeToString(Shape(ints.begin() + i, ints.begin() + i + width));
  }
  return text + "]";
}

std::string FormatAxes(const std::vector<int64_t>& axes) {
  return "axis: " + (axes.size() == 1 ? std::to_string(axes[0]) : ShapeToString(axes));
}

// The application of an op to operands that are text already.
std::string Apply(const Node& node, std::vector<std::string> arguments) {
  const OpDef& def = Definition(node.op);
  const Attributes& attr = node.attr;
  switch (def.attr_form) {
    case AttrForm::kNone:
      break;
    case AttrForm::kConst:
      arguments.push_back(FormatNumber(attr.scalar, attr.dtype));
      if (attr.dtype != DType::kF32) arguments.emplace_back(DTypeName(attr.dtype));
      break;
    case AttrForm::kIota:
      arguments.push_back(ShapeToString(attr.ints));
      arguments.emplace_back(DTypeName(attr.dtype));
      arguments.push_back("axis: " + std::to_string(attr.axis));
      break;
    case AttrForm::kDType:
      arguments.emplace_back(DTypeName(attr.dtype));
      break;
    case AttrForm::kOptionalAxes:
      if (!attr.ints.empty()) arguments.push_back(FormatAxes(attr.ints));
      break;
    case AttrForm::kAxes:
      arguments.push_back(FormatAxes(attr.ints));
      break;
    case AttrForm::kShape:
      arguments.push_back(ShapeToString(attr.ints));
      break;
    case AttrForm::kPadding:
      arguments.push_back(FormatGroups(attr.ints, 2));
      break;
    case AttrForm::kSlice:
      arguments.push_back(FormatGroups(attr.ints, 3));
      break;
  }
  std::string text = def.l1_name + "(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) text += ", ";
    text += arguments[i];
  }
  return text + ")";
}

}  // namespace

std::string PrintApplication(const Graph& graph, NodeId id) {
  std::vector<std::string> operands;
  for (NodeId input : graph.node(id).inputs) {
    const Node& operand = graph.node(input);
    operands.push_back(operand.name.empty() ? FormatNumber(operand.attr.scalar, operand.dtype)
                                            : operand.name);
  }
  return Apply(graph.node(id), std::move(operands));
}

std::string PrintNested(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op == Op::kInput) return node.name;
  if (node.name.empty()) return FormatNumber(node.attr.scalar, node.dtype);
  std::vector<std::string> operands;
  for (NodeId input : node.inputs) operands.push_back(PrintNested(graph, input));
  return Apply(node, std::move(operands));
}

namespace {

// Takes the arguments of one application apart. Operands come first, then attributes.
class ApplicationBuilder {
 public:
  ApplicationBuilder(Graph& graph, const OpDef& def, std::span<const Argument> arguments)
      : graph_(graph), def_(def), arguments_(arguments) {}

  NodeId Build(std::string name, support::Span span) {
    const size_t arity = static_cast<size_t>(def_.arity);
    size_t operands = 0;
    while (operands < arguments_.size() && operands < arity && IsOperand(arguments_[operands])) {
      ++operands;
    }
    if (operands < arity) {
      Fail("needs " + std::to_string(arity) + " operand" + (arity == 1 ? "" : "s") + ", got " +
           std::to_string(operands));
    }
    next_ = arity;
    Attributes attr = TakeAttributes();
    if (next_ < arguments_.size()) Fail("does not take so many arguments");

    std::vector<NodeId> inputs;
    const DType literal_dtype = LiteralDType(arity);
    for (size_t i = 0; i < arity; ++i) {
      const Argument& argument = arguments_[i];
      inputs.push_back(argument.kind == Argument::Kind::kNode
                           ? argument.node
                           : graph_.AddLiteral(argument.number, literal_dtype, span));
    }
    return graph_.Add(def_.op, std::move(inputs), std::move(attr), std::move(name), span);
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw ShapeError(def_.l1_name + ": " + reason + "; it is written " + Form());
  }

  // "tensor_reduce_sum(a, axis: n)".
  std::string Form() const {
    std::string text = def_.l1_name + "(";
    std::string separator;
    for (int i = 0; i < def_.arity; ++i) {
      text += separator + static_cast<char>('a' + i);
      separator = ", ";
    }
    switch (def_.attr_form) {
      case AttrForm::kNone:
        return text + ")";
      case AttrForm::kConst:
        return text + "value) or " + text + "value, dtype)";
      case AttrForm::kIota:
        return text + "[n, …], dtype, axis: n)";
      case AttrForm::kDType:
        return text + separator + "dtype)";
      case AttrForm::kAxes:
      case AttrForm::kOptionalAxes:
        return text + separator + "axis: n), or axis: [n, …], or all axes without";
      case AttrForm::kShape:
        return text + separator + "[n, …])";
      case AttrForm::kPadding:
        return text + separator + "[[before, after], …])";
      case AttrForm::kSlice:
        return text + separator + "[[start, stop, step], …])";
    }
    return text;
  }

  static bool IsOperand(const Argument& argument) {
    return argument.keyword.empty() &&
           (argument.kind == Argument::Kind::kNode || argument.kind == Argument::Kind::kNumber);
  }

  DType LiteralDType(size_t arity) const {
    if (def_.op == Op::kRandom) return DType::kU64;
    for (size_t i = 0; i < arity; ++i) {
      if (arguments_[i].kind != Argument::Kind::kNode) continue;
      const DType dtype = graph_.node(arguments_[i].node).dtype;
      if (dtype != DType::kBool) return dtype;
    }
    return DType::kF32;
  }

  Attributes TakeAttributes() {
    Attributes attr;
    switch (def_.attr_form) {
      case AttrForm::kNone:
        break;
      case AttrForm::kConst:
        attr.scalar = TakeNumber();
        if (next_ < arguments_.size()) attr.dtype = TakeDType();
        break;
      case AttrForm::kIota:
        attr.ints = TakeInts();
        attr.dtype = TakeDType();
        attr.axis = ToInt(Take("axis"));
        break;
      case AttrForm::kDType:
        attr.dtype = TakeDType();
        break;
      case AttrForm::kAxes:
      case AttrForm::kOptionalAxes:
        attr.ints = TakeAxes();
        break;
      case AttrForm::kShape:
        attr.ints = TakeInts();
        break;
      case AttrForm::kPadding:
        attr.ints = TakeGroups(2);
        break;
      case AttrForm::kSlice:
        attr.ints = TakeGroups(3);
        break;
    }
    return attr;
  }

  const Argument& Take(std::string_view keyword) {
    if (next_ == arguments_.size()) Fail("an argument is missing");
    const Argument& argument = arguments_[next_++];
    if (argument.keyword != keyword) {
      Fail(argument.keyword.empty() ? "expected " + std::string(keyword) + ":"
                                    : "unexpected " + argument.keyword + ":");
    }
    return argument;
  }

  double TakeNumber() {
    const Argument& argument = Take("");
    if (argument.kind != Argument::Kind::kNumber) Fail("expected a number");
    return argument.number;
  }

  DType TakeDType() {
    const Argument& argument = Take("");
    if (argument.kind != Argument::Kind::kDType) Fail("expected a dtype, as f32");
    return argument.dtype;
  }

  int64_t ToInt(const Argument& argument) const {
    const double value = argument.number;
    if (argument.kind != Argument::Kind::kNumber || value != std::trunc(value) ||
        std::abs(value) > static_cast<double>(kMaxElements)) {
      Fail("expected an integer of at most 2^40");
    }
    return static_cast<int64_t>(value);
  }

  void AppendInts(const Argument& argument, std::vector<int64_t>& ints) const {
    if (argument.kind != Argument::Kind::kList) Fail("expected a list of integers");
    for (const Argument& item : argument.list) ints.push_back(ToInt(item));
  }

  std::vector<int64_t> TakeInts() {
    std::vector<int64_t> ints;
    AppendInts(Take(""), ints);
    return ints;
  }

  std::vector<int64_t> TakeGroups(size_t width) {
    const Argument& argument = Take("");
    if (argument.kind != Argument::Kind::kList) Fail("expected a list of lists");
    std::vector<int64_t> ints;
    for (const Argument& group : argument.list) {
      if (group.list.size() != width)
        Fail("expected " + std::to_string(width) + " integers an axis");
      AppendInts(group, ints);
    }
    return ints;
  }

  // `axis: n`, `axis: [n, …]`, or nothing.
  std::vector<int64_t> TakeAxes() {
    std::vector<int64_t> axes;
    if (next_ == arguments_.size()) {
      if (def_.attr_form == AttrForm::kAxes) {
        axes.resize(RankOfFirst());
        std::iota(axes.begin(), axes.end(), 0);
      }
      return axes;
    }
    const Argument& argument = Take("axis");
    if (argument.kind == Argument::Kind::kNumber) return {ToInt(argument)};
    AppendInts(argument, axes);
    if (axes.empty()) Fail("the list of axes is empty");
    return axes;
  }

  size_t RankOfFirst() const {
    const Argument& first = arguments_[0];
    return first.kind == Argument::Kind::kNode ? graph_.node(first.node).shape.size() : 0;
  }

  Graph& graph_;
  const OpDef& def_;
  const std::span<const Argument> arguments_;
  size_t next_ = 0;
};

}  // namespace

NodeId BuildApplication(Graph& graph, std::string_view op, std::span<const Argument> arguments,
                        std::string name, support::Span span) {
  const std::optional<Op> found = FindOp(op);
  if (!found || *found == Op::kInput || Definition(*found).l1_name != op) {
    throw ShapeError("there is no op '" + std::string(op) + "'");
  }
  for (const Argument& argument : arguments) {
    if (argument.kind == Argument::Kind::kNode && argument.node >= graph.size()) {
      throw ShapeError(std::string(op) + ": an operand is no node of the graph");
    }
  }
  return ApplicationBuilder(graph, Definition(*found), arguments).Build(std::move(name), span);
}

std::vector<std::string> OpSpellings() {
  std::vector<std::string> spellings;
  for (Op op : AllOps()) {
    if (op != Op::kInput) spellings.push_back(Definition(op).l1_name);
  }
  return spellings;
}

}  // namespace l3c::tensor
