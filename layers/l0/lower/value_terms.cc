#include "layers/l0/lower/value_terms.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "layers/tensor/interpreter.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::l0::lower {

using egraph::EGraph;
using egraph::FunctionId;
using egraph::SortId;
using tensor::DType;
using tensor::NodeId;
using tensor::Op;

namespace {

constexpr TermForm kForms[] = {
    {Op::kInput, "Input", 0, TermTail::kName},
    {Op::kConst, "Number", 0, TermTail::kNumber},
    {Op::kIota, "Iota", 0, TermTail::kIota},
    {Op::kRandom, "Random", 1, TermTail::kInts},
    {Op::kAdd, "Add", 2, TermTail::kNone},
    {Op::kMul, "Mul", 2, TermTail::kNone},
    {Op::kNeg, "Neg", 1, TermTail::kNone},
    {Op::kRecip, "Recip", 1, TermTail::kNone},
    {Op::kMax, "Max", 2, TermTail::kNone},
    {Op::kMod, "Mod", 2, TermTail::kNone},
    {Op::kExp2, "Exp2", 1, TermTail::kNone},
    {Op::kLog2, "Log2", 1, TermTail::kNone},
    {Op::kSin, "Sin", 1, TermTail::kNone},
    {Op::kSqrt, "Sqrt", 1, TermTail::kNone},
    {Op::kCmpLt, "CmpLt", 2, TermTail::kNone},
    {Op::kCmpNe, "CmpNe", 2, TermTail::kNone},
    {Op::kWhere, "Where", 3, TermTail::kNone},
    {Op::kCast, "Cast", 1, TermTail::kDType},
    {Op::kBitcast, "Bitcast", 1, TermTail::kDType},
    {Op::kBf16Pair, "Bf16Pair", 2, TermTail::kNone},
    {Op::kReduceSum, "Sum", 1, TermTail::kInts},
    {Op::kReduceMax, "Maximum", 1, TermTail::kInts},
    {Op::kMatmul, "Matmul", 2, TermTail::kNone},
    {Op::kBf16Matmul, "Bf16Matmul", 2, TermTail::kNone},
    {Op::kReshape, "Reshape", 1, TermTail::kInts},
    {Op::kPermute, "Permute", 1, TermTail::kInts},
    {Op::kExpand, "Expand", 1, TermTail::kInts},
    {Op::kPad, "Pad", 1, TermTail::kInts},
    {Op::kSlice, "Slice", 1, TermTail::kInts},
    {Op::kFlip, "Flip", 1, TermTail::kInts},
    {Op::kGather, "Gather", 2, TermTail::kNone},
    {Op::kScatterAdd, "ScatterAdd", 2, TermTail::kInts},
};

std::string DTypeText(DType dtype) { return std::string(tensor::DTypeName(dtype)); }

using Ints = std::optional<std::vector<int64_t>>;

// Axes that a sum over many outputs' worth of elements is best cut into: all but the innermost kept
// for a second sum. Nothing when there is no outer axis to cut at.
std::optional<std::string> InnerAxes(const std::string& shape_text, const std::string& axes_text) {
  const Ints shape = SplitInts(shape_text);
  const Ints axes = SplitInts(axes_text);
  if (!shape || !axes || axes->size() < 2 || axes->size() != shape->size()) return std::nullopt;
  if (axes->front() != 0 || shape->front() < 2) return std::nullopt;
  return JoinInts({axes->begin() + 1, axes->end()});
}

// The last axis of a shape, and the other axes, of a sum over several but not all.
std::optional<std::pair<std::string, std::string>> RowAxes(const std::string& shape_text,
                                                           const std::string& axes_text) {
  const Ints shape = SplitInts(shape_text);
  const Ints axes = SplitInts(axes_text);
  if (!shape || !axes || axes->size() < 2 || axes->size() == shape->size()) return std::nullopt;
  if (axes->back() + 1 != static_cast<int64_t>(shape->size())) return std::nullopt;
  return std::pair{JoinInts({axes->back()}), JoinInts({axes->begin(), axes->end() - 1})};
}

// A sum that keeps the last axis alone, in parts.
struct SumParts {
  std::vector<int64_t> shape;
  std::vector<int64_t> inner;
  int64_t outer = 0;
};

std::optional<SumParts> PartsOf(const std::string& shape_text, const std::string& axes_text) {
  constexpr int64_t kMostParts = 16;
  const Ints shape = SplitInts(shape_text);
  const Ints axes = SplitInts(axes_text);
  if (!shape || !axes || axes->empty() || shape->size() < 2) return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  std::vector<bool> summed(shape->size());
  for (int64_t axis : *axes) {
    if (axis < 0 || axis + 1 >= rank) return std::nullopt;
    summed[static_cast<size_t>(axis)] = true;
  }
  int64_t longest = (*axes)[0];
  for (int64_t axis = 0; axis + 1 < rank; ++axis) {
    const int64_t extent = (*shape)[static_cast<size_t>(axis)];
    if (!summed[static_cast<size_t>(axis)] && extent != 1) return std::nullopt;
    if (summed[static_cast<size_t>(axis)] && extent > (*shape)[static_cast<size_t>(longest)]) {
      longest = axis;
    }
  }
  const int64_t extent = (*shape)[static_cast<size_t>(longest)];
  // A sum of so few is what parts end in.
  if (axes->size() == 1 && extent <= kMostParts) return std::nullopt;
  int64_t parts = std::min(kMostParts, extent);
  while (parts > 1 && extent % parts != 0) --parts;
  if (parts < 2) return std::nullopt;
  SumParts cut;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (axis == longest) {
      cut.outer = axis - static_cast<int64_t>(cut.inner.size());
      cut.shape.push_back(parts);
    }
    if (summed[static_cast<size_t>(axis)]) {
      cut.inner.push_back(static_cast<int64_t>(cut.shape.size()));
    }
    cut.shape.push_back(axis == longest ? extent / parts : (*shape)[static_cast<size_t>(axis)]);
  }
  return cut;
}

// In how many equal parts the sum of an m×k by k×n product is taken so that what a part reads is
// near a core while the tiles of its result are made.
std::optional<int64_t> ProductParts(int64_t m, int64_t k, int64_t n) {
  constexpr double kNearBytes = 512 << 10;
  constexpr int64_t kMostParts = 64;
  const double bytes =
      4 * (static_cast<double>(m) + static_cast<double>(n)) * static_cast<double>(k);
  for (int64_t parts = 2; parts <= std::min(kMostParts, k); ++parts) {
    if (k % parts == 0 && bytes <= kNearBytes * static_cast<double>(parts)) return parts;
  }
  return std::nullopt;
}

std::optional<std::string> ComposeOrders(const std::string& first, const std::string& second) {
  const Ints a = SplitInts(first);
  const Ints b = SplitInts(second);
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  std::vector<int64_t> order;
  for (int64_t d : *b) {
    if (d < 0 || d >= static_cast<int64_t>(a->size())) return std::nullopt;
    order.push_back((*a)[static_cast<size_t>(d)]);
  }
  return JoinInts(order);
}

std::optional<bool> IsIdentityOrder(const std::string& text) {
  const Ints order = SplitInts(text);
  if (!order) return std::nullopt;
  for (size_t d = 0; d < order->size(); ++d) {
    if ((*order)[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

// The slice that takes one of the two halves of `axis`; none of an odd extent.
std::optional<std::string> Half(const std::string& shape_text, int64_t axis, int64_t which) {
  const Ints shape = SplitInts(shape_text);
  if (!shape || which < 0 || which > 1) return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  if (axis < -rank || axis >= rank) return std::nullopt;
  if (axis < 0) axis += rank;
  std::vector<int64_t> slice;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t extent = (*shape)[static_cast<size_t>(d)];
    if (d == axis && (extent < 2 || extent % 2 != 0)) return std::nullopt;
    const int64_t part = d == axis ? extent / 2 : extent;
    const int64_t start = d == axis ? which * part : 0;
    slice.insert(slice.end(), {start, start + part, 1});
  }
  return JoinInts(slice);
}

// The slice of what permutation `order` turns into `slice`.
std::optional<std::string> SliceBefore(const std::string& order_text,
                                       const std::string& slice_text) {
  const Ints order = SplitInts(order_text);
  const Ints slice = SplitInts(slice_text);
  if (!order || !slice || slice->size() != 3 * order->size()) return std::nullopt;
  std::vector<int64_t> before(slice->size());
  for (size_t d = 0; d < order->size(); ++d) {
    const int64_t from = (*order)[d];
    if (from < 0 || from >= static_cast<int64_t>(order->size())) return std::nullopt;
    std::copy_n(slice->begin() + static_cast<std::ptrdiff_t>(3 * d), 3, before.begin() + 3 * from);
  }
  return JoinInts(before);
}

// Folds an op over constants where the result is the correctly rounded one on every machine.
std::optional<double> FoldConstant(const tensor::Graph& graph, NodeId id,
                                   const std::vector<std::optional<double>>& known) {
  const tensor::Node& node = graph.node(id);
  if (node.dtype != DType::kF32 && node.dtype != DType::kF64) return std::nullopt;
  switch (node.op) {
    case Op::kAdd:
    case Op::kMul:
    case Op::kNeg:
    case Op::kRecip:
    case Op::kSqrt:
      break;
    default:
      return std::nullopt;
  }
  if (!node.shape.empty()) return std::nullopt;
  tensor::Graph small;
  std::vector<NodeId> inputs;
  std::vector<tensor::Array> arrays;
  for (NodeId input : node.inputs) {
    if (!known[input]) return std::nullopt;
    const DType dtype = graph.node(input).dtype;
    inputs.push_back(small.AddInput("p" + std::to_string(inputs.size()), dtype, {}));
    arrays.push_back(tensor::Array::Floats(dtype, {}, {*known[input]}));
  }
  small.AddOutput("y", small.Add(node.op, inputs, node.attr));
  return tensor::Evaluate(small, arrays, tensor::Precision::kOwnDType)[0].floats[0];
}

}  // namespace

std::span<const TermForm> TermForms() { return kForms; }

const TermForm& FormOf(Op op) {
  for (const TermForm& form : kForms) {
    if (form.op == op) return form;
  }
  return kForms[0];  // not reached: the primitives are a closed set
}

const TermForm* FindForm(std::string_view name) {
  for (const TermForm& form : kForms) {
    if (form.name == name) return &form;
  }
  return nullptr;
}

std::string JoinInts(const std::vector<int64_t>& ints) {
  std::string text;
  for (int64_t i : ints) {
    if (!text.empty()) text += ',';
    text += std::to_string(i);
  }
  return text;
}

std::optional<std::vector<int64_t>> SplitInts(std::string_view text) {
  std::vector<int64_t> ints;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int64_t value = 0;
    const auto [next, failed] = std::from_chars(at, end, value);
    if (failed != std::errc()) return std::nullopt;
    ints.push_back(value);
    at = next;
    if (at == end) break;
    if (*at != ',' || at + 1 == end) return std::nullopt;
    ++at;
  }
  return ints;
}

std::vector<egraph::Value> EncodeGraph(const tensor::Graph& source, EGraph& graph, bool fold) {
  std::map<Op, FunctionId> functions;
  for (const TermForm& form : kForms) functions[form.op] = graph.FindFunction(form.name);
  const FunctionId shape = graph.FindFunction("shape");
  const FunctionId dtype = graph.FindFunction("dtype");
  std::vector<egraph::Value> classes(source.size());
  std::vector<std::optional<double>> constants(source.size());
  for (NodeId id = 0; id < source.size(); ++id) {
    const tensor::Node& node = source.node(id);
    if (node.op == Op::kConst) {
      constants[id] = node.attr.scalar;
    } else if (fold) {
      constants[id] = FoldConstant(source, id, constants);
    }
    std::vector<egraph::Value> args;
    Op op = node.op;
    if (constants[id]) op = Op::kConst;
    if (op != Op::kConst) {
      for (NodeId input : node.inputs) args.push_back(classes[input]);
    }
    switch (FormOf(op).tail) {
      case TermTail::kNone:
        break;
      case TermTail::kInts:
        args.push_back(graph.String(JoinInts(node.attr.ints)));
        break;
      case TermTail::kDType:
        args.push_back(graph.String(DTypeText(node.attr.dtype)));
        break;
      case TermTail::kNumber:
        args.push_back(graph.F64(*constants[id]));
        args.push_back(graph.String(DTypeText(node.dtype)));
        break;
      case TermTail::kIota:
        args.push_back(graph.String(JoinInts(node.attr.ints)));
        args.push_back(graph.I64(node.attr.axis));
        args.push_back(graph.String(DTypeText(node.dtype)));
        break;
      case TermTail::kName:
        args.push_back(graph.String(node.name));
        break;
    }
    classes[id] = graph.Add(functions.at(op), args);
    graph.Set(shape, {classes[id]}, graph.String(JoinInts(node.shape)));
    graph.Set(dtype, {classes[id]}, graph.String(DTypeText(node.dtype)));
  }
  return classes;
}

std::optional<Term> ReadTerm(const EGraph& graph, const TermForm& form, const egraph::Row& row,
                             std::string& error) {
  Term term;
  term.op = form.op;
  const auto n = static_cast<uint32_t>(form.operands);
  for (uint32_t i = 0; i < n; ++i) term.operands.push_back(graph.Find(row.arg(i)));
  const auto read_ints = [&](uint32_t i) {
    const std::string& text = graph.AsString(row.arg(i));
    const Ints ints = SplitInts(text);
    if (!ints) {
      error = std::string(form.name) + ": '" + text + "' is no list of integers such as \"2,3\"";
      return false;
    }
    term.attr.ints = *ints;
    return true;
  };
  const auto read_dtype = [&](uint32_t i) {
    const std::string& text = graph.AsString(row.arg(i));
    const std::optional<DType> dtype = tensor::ParseDType(text);
    if (!dtype) {
      error = std::string(form.name) + ": there is no dtype '" + text + "'";
      return false;
    }
    term.attr.dtype = *dtype;
    return true;
  };
  bool good = true;
  switch (form.tail) {
    case TermTail::kNone:
      break;
    case TermTail::kInts:
      good = read_ints(n);
      break;
    case TermTail::kDType:
      good = read_dtype(n);
      break;
    case TermTail::kNumber:
      term.attr.scalar = graph.AsF64(row.arg(0));
      good = read_dtype(1);
      break;
    case TermTail::kIota:
      term.attr.axis = graph.AsI64(row.arg(1));
      good = read_ints(0) && read_dtype(2);
      break;
    case TermTail::kName:
      term.input = graph.AsString(row.arg(0));
      break;
  }
  if (!good) return std::nullopt;
  return term;
}

std::optional<TensorType> TypeOfTerm(const Term& term, std::span<const TensorType> operands,
                                     std::string& error) {
  tensor::Graph small;
  try {
    std::vector<NodeId> inputs;
    for (const TensorType& operand : operands) {
      inputs.push_back(
          small.AddInput("p" + std::to_string(inputs.size()), operand.dtype, operand.shape));
    }
    const tensor::Node& node = small.node(small.Add(term.op, inputs, term.attr));
    return TensorType{node.dtype, node.shape};
  } catch (const tensor::ShapeError& wrong) {
    error = wrong.what();
    return std::nullopt;
  }
}

bool InferTypes(EGraph& graph, bool& changed, std::string& error) {
  changed = false;
  const FunctionId shape = graph.FindFunction("shape");
  const FunctionId dtype = graph.FindFunction("dtype");
  const auto type_of = [&](egraph::Value c) -> std::optional<TensorType> {
    const auto s = graph.Lookup(shape, {c});
    const auto d = graph.Lookup(dtype, {c});
    if (!s || !d) return std::nullopt;
    const Ints extents = SplitInts(graph.AsString(*s));
    const std::optional<DType> type = tensor::ParseDType(graph.AsString(*d));
    if (!extents || !type) return std::nullopt;
    return TensorType{*type, *extents};
  };
  struct Made {
    Term term;
    egraph::Value result;
    egraph::RuleId rule;
  };
  std::vector<Made> made;
  for (const TermForm& form : kForms) {
    bool good = true;
    graph.ForEachRow(graph.FindFunction(form.name), [&](const egraph::Row& row) {
      if (!good || row.rule() == egraph::kInitial) return;
      const auto term = ReadTerm(graph, form, row, error);
      if (term && term->op == Op::kInput) error = "a rule may not make an input";
      if (!term || term->op == Op::kInput) {
        error = graph.DescribeRule(row.rule()) + ": " + error;
        good = false;
        return;
      }
      made.push_back({*term, graph.Find(row.output()), row.rule()});
    });
    if (!good) return false;
  }
  // Operands may come later than what is made of them.
  for (bool progress = true; progress;) {
    progress = false;
    for (auto it = made.begin(); it != made.end();) {
      std::vector<TensorType> operands;
      for (egraph::Value operand : it->term.operands) {
        const auto type = type_of(operand);
        if (!type) break;
        operands.push_back(*type);
      }
      if (operands.size() < it->term.operands.size()) {
        ++it;
        continue;
      }
      const auto type = TypeOfTerm(it->term, operands, error);
      if (!type) {
        error = graph.DescribeRule(it->rule) + ": " + error;
        return false;
      }
      const auto known = type_of(it->result);
      if (known && *known != *type) {
        error = graph.DescribeRule(it->rule) + " makes " +
                tensor::TypeToString(type->dtype, type->shape) + " equal to " +
                tensor::TypeToString(known->dtype, known->shape);
        return false;
      }
      if (!known) {
        graph.Set(shape, {it->result}, graph.String(JoinInts(type->shape)));
        graph.Set(dtype, {it->result}, graph.String(DTypeText(type->dtype)));
        changed = true;
      }
      it = made.erase(it);
      progress = true;
    }
  }
  return true;
}

void DeclareValues(EGraph& graph) {
  const SortId val = graph.DeclareSort("Val");
  for (const TermForm& form : kForms) {
    std::vector<SortId> inputs(static_cast<size_t>(form.operands), val);
    switch (form.tail) {
      case TermTail::kNone:
        break;
      case TermTail::kInts:
      case TermTail::kDType:
      case TermTail::kName:
        inputs.push_back(egraph::kString);
        break;
      case TermTail::kNumber:
        inputs.push_back(egraph::kF64);
        inputs.push_back(egraph::kString);
        break;
      case TermTail::kIota:
        inputs.push_back(egraph::kString);
        inputs.push_back(egraph::kI64);
        inputs.push_back(egraph::kString);
        break;
    }
    // Val terms define values; what is chosen are the terms of choose.h.
    graph.DeclareConstructor(form.name, inputs, val, {.cost = 1, .extractable = false});
  }
  graph.DeclareFunction("shape", {val}, egraph::kString, egraph::Merge::AssertEqual());
  graph.DeclareFunction("dtype", {val}, egraph::kString, egraph::Merge::AssertEqual());
  using Args = std::span<const egraph::Value>;
  using Result = std::optional<egraph::Value>;
  graph.RegisterPrimitive("inner-axes", {egraph::kString, egraph::kString}, egraph::kString,
                          [](EGraph& g, Args args) -> Result {
                            auto axes = InnerAxes(g.AsString(args[0]), g.AsString(args[1]));
                            if (!axes) return std::nullopt;
                            return g.String(*axes);
                          });
  const auto of_sum = [&](const char* name, auto text) {
    graph.RegisterPrimitive(name, {egraph::kString, egraph::kString}, egraph::kString,
                            [text](EGraph& g, Args args) -> Result {
                              const std::optional<std::string> found =
                                  text(g.AsString(args[0]), g.AsString(args[1]));
                              if (!found) return std::nullopt;
                              return g.String(*found);
                            });
  };
  using Text = std::optional<std::string>;
  of_sum("row-axis", [](const std::string& shape, const std::string& axes) -> Text {
    const auto split = RowAxes(shape, axes);
    return split ? Text(split->first) : std::nullopt;
  });
  of_sum("but-row-axis", [](const std::string& shape, const std::string& axes) -> Text {
    const auto split = RowAxes(shape, axes);
    return split ? Text(split->second) : std::nullopt;
  });
  of_sum("part-shape", [](const std::string& shape, const std::string& axes) -> Text {
    const auto parts = PartsOf(shape, axes);
    return parts ? Text(JoinInts(parts->shape)) : std::nullopt;
  });
  of_sum("part-inner", [](const std::string& shape, const std::string& axes) -> Text {
    const auto parts = PartsOf(shape, axes);
    return parts ? Text(JoinInts(parts->inner)) : std::nullopt;
  });
  of_sum("part-outer", [](const std::string& shape, const std::string& axes) -> Text {
    const auto parts = PartsOf(shape, axes);
    return parts ? Text(JoinInts({parts->outer})) : std::nullopt;
  });
  graph.RegisterPrimitive("product-parts", {egraph::kI64, egraph::kI64, egraph::kI64}, egraph::kI64,
                          [](EGraph& g, Args args) -> Result {
                            const auto parts =
                                ProductParts(g.AsI64(args[0]), g.AsI64(args[1]), g.AsI64(args[2]));
                            if (!parts) return std::nullopt;
                            return g.I64(*parts);
                          });
  graph.RegisterPrimitive("compose-orders", {egraph::kString, egraph::kString}, egraph::kString,
                          [](EGraph& g, Args args) -> Result {
                            auto order = ComposeOrders(g.AsString(args[0]), g.AsString(args[1]));
                            if (!order) return std::nullopt;
                            return g.String(*order);
                          });
  graph.RegisterPrimitive("sum-pads", {egraph::kString, egraph::kString}, egraph::kString,
                          [](EGraph& g, Args args) -> Result {
                            const Ints inner = SplitInts(g.AsString(args[0]));
                            const Ints outer = SplitInts(g.AsString(args[1]));
                            if (!inner || !outer || inner->size() != outer->size()) {
                              return std::nullopt;
                            }
                            std::vector<int64_t> sum = *inner;
                            for (size_t i = 0; i < sum.size(); ++i) {
                              if (__builtin_add_overflow(sum[i], (*outer)[i], &sum[i])) {
                                return std::nullopt;
                              }
                            }
                            return g.String(JoinInts(sum));
                          });
  graph.RegisterPrimitive("half", {egraph::kString, egraph::kI64, egraph::kI64}, egraph::kString,
                          [](EGraph& g, Args args) -> Result {
                            const auto slice =
                                Half(g.AsString(args[0]), g.AsI64(args[1]), g.AsI64(args[2]));
                            if (!slice) return std::nullopt;
                            return g.String(*slice);
                          });
  graph.RegisterPrimitive("slice-before", {egraph::kString, egraph::kString}, egraph::kString,
                          [](EGraph& g, Args args) -> Result {
                            auto slice = SliceBefore(g.AsString(args[0]), g.AsString(args[1]));
                            if (!slice) return std::nullopt;
                            return g.String(*slice);
                          });
  graph.RegisterPrimitive("identity-order", {egraph::kString}, egraph::kBool,
                          [](EGraph& g, Args args) -> Result {
                            const auto identity = IsIdentityOrder(g.AsString(args[0]));
                            if (!identity) return std::nullopt;
                            return g.Bool(*identity);
                          });
  graph.RegisterPrimitive("rank", {egraph::kString}, egraph::kI64,
                          [](EGraph& g, Args args) -> Result {
                            const Ints shape = SplitInts(g.AsString(args[0]));
                            if (!shape) return std::nullopt;
                            return g.I64(static_cast<int64_t>(shape->size()));
                          });
  graph.RegisterPrimitive(
      "extent", {egraph::kString, egraph::kI64}, egraph::kI64, [](EGraph& g, Args args) -> Result {
        const Ints shape = SplitInts(g.AsString(args[0]));
        if (!shape) return std::nullopt;
        const auto rank = static_cast<int64_t>(shape->size());
        const int64_t axis = g.AsI64(args[1]);
        if (axis < -rank || axis >= rank) return std::nullopt;
        return g.I64((*shape)[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
      });
  graph.RegisterPrimitive("elements", {egraph::kString}, egraph::kI64,
                          [](EGraph& g, Args args) -> Result {
                            const Ints shape = SplitInts(g.AsString(args[0]));
                            if (!shape) return std::nullopt;
                            int64_t count = 1;
                            for (int64_t extent : *shape) {
                              if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
                                return std::nullopt;
                              }
                            }
                            return g.I64(count);
                          });
  graph.DeclareRuleset("algebra");
}

}  // namespace l3c::l0::lower
