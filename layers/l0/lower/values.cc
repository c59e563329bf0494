#include "layers/l0/lower/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "layers/tensor/interpreter.h"

namespace l3c::l0::lower {

using egraph::EGraph;
using egraph::FunctionId;
using egraph::SortId;
using tensor::DType;
using tensor::NodeId;
using tensor::Op;

int64_t Bytes(const Value& value) {
  return tensor::NumElements(value.shape) * static_cast<int64_t>(tensor::SizeOf(value.dtype));
}

bool IsView(Op op) { return tensor::Definition(op).op_class == tensor::OpClass::kMovement; }
bool IsReduction(Op op) { return op == Op::kReduceSum || op == Op::kReduceMax; }
bool IsElementwise(Op op) {
  return tensor::Definition(op).op_class == tensor::OpClass::kElementwise;
}

std::string JoinInts(const std::vector<int64_t>& ints) {
  std::string text;
  for (int64_t i : ints) {
    if (!text.empty()) text += ',';
    text += std::to_string(i);
  }
  return text;
}

std::vector<int64_t> SplitInts(const std::string& text) {
  std::vector<int64_t> ints;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int64_t value = 0;
    at = std::from_chars(at, end, value).ptr;
    ints.push_back(value);
    if (at < end) ++at;
  }
  return ints;
}

namespace {

// How an op is spelled as a constructor of Val, and what stands after its operands.
enum class Tail : uint8_t { kNone, kInts, kDType, kNumber, kIota, kName };
struct Spelling {
  Op op;
  const char* name;
  int operands;
  Tail tail;
};
constexpr Spelling kSpellings[] = {
    {Op::kInput, "Input", 0, Tail::kName},       {Op::kConst, "Number", 0, Tail::kNumber},
    {Op::kIota, "Iota", 0, Tail::kIota},         {Op::kRandom, "Random", 1, Tail::kInts},
    {Op::kAdd, "Add", 2, Tail::kNone},           {Op::kMul, "Mul", 2, Tail::kNone},
    {Op::kNeg, "Neg", 1, Tail::kNone},           {Op::kRecip, "Recip", 1, Tail::kNone},
    {Op::kMax, "Max", 2, Tail::kNone},           {Op::kMod, "Mod", 2, Tail::kNone},
    {Op::kExp2, "Exp2", 1, Tail::kNone},         {Op::kLog2, "Log2", 1, Tail::kNone},
    {Op::kSin, "Sin", 1, Tail::kNone},           {Op::kSqrt, "Sqrt", 1, Tail::kNone},
    {Op::kCmpLt, "CmpLt", 2, Tail::kNone},       {Op::kCmpNe, "CmpNe", 2, Tail::kNone},
    {Op::kWhere, "Where", 3, Tail::kNone},       {Op::kCast, "Cast", 1, Tail::kDType},
    {Op::kBitcast, "Bitcast", 1, Tail::kDType},  {Op::kReduceSum, "Sum", 1, Tail::kInts},
    {Op::kReduceMax, "Maximum", 1, Tail::kInts}, {Op::kMatmul, "Matmul", 2, Tail::kNone},
    {Op::kReshape, "Reshape", 1, Tail::kInts},   {Op::kPermute, "Permute", 1, Tail::kInts},
    {Op::kExpand, "Expand", 1, Tail::kInts},     {Op::kPad, "Pad", 1, Tail::kInts},
    {Op::kSlice, "Slice", 1, Tail::kInts},       {Op::kFlip, "Flip", 1, Tail::kInts},
    {Op::kGather, "Gather", 2, Tail::kNone},     {Op::kScatterAdd, "ScatterAdd", 2, Tail::kInts},
};

const Spelling& SpellingOf(Op op) {
  for (const Spelling& s : kSpellings) {
    if (s.op == op) return s;
  }
  return kSpellings[0];  // not reached: the primitives are a closed set
}

std::string DTypeText(DType dtype) { return std::string(tensor::DTypeName(dtype)); }

// Axes that a sum over many outputs' worth of elements is best cut into: all but the innermost kept
// for a second sum. Nothing when there is no outer axis to cut at.
std::optional<std::string> InnerAxes(const std::string& shape_text, const std::string& axes_text) {
  const tensor::Shape shape = SplitInts(shape_text);
  const std::vector<int64_t> axes = SplitInts(axes_text);
  if (axes.size() < 2 || axes.size() != shape.size()) return std::nullopt;
  if (shape[axes.front()] < 2) return std::nullopt;
  return JoinInts({axes.begin() + 1, axes.end()});
}

// The permutation that applying `first`, then `second` amounts to.
std::optional<std::string> ComposeOrders(const std::string& first, const std::string& second) {
  const std::vector<int64_t> a = SplitInts(first);
  const std::vector<int64_t> b = SplitInts(second);
  if (a.size() != b.size()) return std::nullopt;
  std::vector<int64_t> order;
  for (int64_t d : b) order.push_back(a[d]);
  return JoinInts(order);
}

bool IsIdentityOrder(const std::string& text) {
  const std::vector<int64_t> order = SplitInts(text);
  for (size_t d = 0; d < order.size(); ++d) {
    if (order[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
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

class Encoder {
 public:
  Encoder(const Step& step, EGraph& graph) : step_(step), graph_(graph) {
    for (const Spelling& s : kSpellings) functions_[s.op] = graph.FindFunction(s.name);
    shape_ = graph.FindFunction("shape");
    dtype_ = graph.FindFunction("dtype");
  }

  // Class of every node of the step's graph.
  std::vector<egraph::Value> Encode() {
    const tensor::Graph& source = step_.graph;
    std::vector<egraph::Value> classes(source.size());
    std::vector<std::optional<double>> constants(source.size());
    for (NodeId id = 0; id < source.size(); ++id) {
      const tensor::Node& node = source.node(id);
      if (node.op == Op::kConst) {
        constants[id] = node.attr.scalar;
      } else {
        constants[id] = FoldConstant(source, id, constants);
      }
      std::vector<egraph::Value> args;
      Op op = node.op;
      if (constants[id]) op = Op::kConst;
      if (op != Op::kConst) {
        for (NodeId input : node.inputs) args.push_back(classes[input]);
      }
      switch (SpellingOf(op).tail) {
        case Tail::kNone:
          break;
        case Tail::kInts:
          args.push_back(graph_.String(JoinInts(node.attr.ints)));
          break;
        case Tail::kDType:
          args.push_back(graph_.String(DTypeText(node.attr.dtype)));
          break;
        case Tail::kNumber:
          args.push_back(graph_.F64(*constants[id]));
          args.push_back(graph_.String(DTypeText(node.dtype)));
          break;
        case Tail::kIota:
          args.push_back(graph_.String(JoinInts(node.attr.ints)));
          args.push_back(graph_.I64(node.attr.axis));
          args.push_back(graph_.String(DTypeText(node.dtype)));
          break;
        case Tail::kName:
          args.push_back(graph_.String(node.name));
          break;
      }
      classes[id] = graph_.Add(functions_.at(op), args);
      graph_.Set(shape_, {classes[id]}, graph_.String(JoinInts(node.shape)));
      graph_.Set(dtype_, {classes[id]}, graph_.String(DTypeText(node.dtype)));
    }
    return classes;
  }

 private:
  const Step& step_;
  EGraph& graph_;
  std::map<Op, FunctionId> functions_;
  FunctionId shape_;
  FunctionId dtype_;
};

struct ClassInfo {
  struct Row {
    const Spelling* spelling;
    std::vector<egraph::Value> args;
    uint32_t order;  // of creation among all e-nodes of the class
  };
  std::vector<Row> rows;
};

// Reads the classes back, operands first.
class Decoder {
 public:
  Decoder(const Step& step, const EGraph& graph, const std::vector<egraph::Value>& classes)
      : step_(step), graph_(graph), classes_(classes) {}

  ValueTable Decode() {
    Collect();
    for (NodeId id = 0; id < step_.graph.size(); ++id) {
      const egraph::Value c = graph_.Find(classes_[id]);
      if (!first_node_.contains(c.bits)) first_node_[c.bits] = id;
    }
    for (size_t i = 0; i < step_.inputs.size(); ++i) {
      input_of_[step_.graph.node(step_.inputs[i].node).name] = static_cast<int32_t>(i);
    }
    for (const StepOutput& output : step_.outputs) Visit(graph_.Find(classes_[output.node]));
    for (const StepOutput& output : step_.outputs) {
      table_.outputs.push_back(number_.at(graph_.Find(classes_[output.node]).bits));
    }
    table_.inputs.assign(step_.inputs.size(), -1);
    for (ValueId v = 0; v < static_cast<ValueId>(table_.values.size()); ++v) {
      if (table_.values[v].input >= 0) table_.inputs[table_.values[v].input] = v;
    }
    return std::move(table_);
  }

 private:
  void Collect() {
    for (const Spelling& s : kSpellings) {
      const FunctionId f = graph_.FindFunction(s.name);
      uint32_t order = 0;
      graph_.ForEachRow(f, [&](const egraph::Row& row) {
        ClassInfo::Row entry{&s, {}, order++};
        for (size_t i = 0; i < graph_.function(f).inputs.size(); ++i) {
          entry.args.push_back(graph_.Canonical(graph_.function(f).inputs[i], row.arg(i)));
        }
        info_[graph_.Find(row.output()).bits].rows.push_back(std::move(entry));
      });
    }
  }

  // Whether a row is the term that the source itself wrote for the class.
  bool IsSource(const ClassInfo::Row& row, uint32_t c) const {
    auto it = first_node_.find(c);
    return it != first_node_.end() && step_.graph.node(it->second).op == row.spelling->op;
  }

  // The operands of a row by the source's first node of each; those that it does not have last.
  std::array<int, 3> VisitOrder(const ClassInfo::Row& row) const {
    std::array<int, 3> order = {0, 1, 2};
    auto made = [&](int operand) {
      const auto at = first_node_.find(row.args[operand].bits);
      return at == first_node_.end() ? std::numeric_limits<NodeId>::max() : at->second;
    };
    std::stable_sort(order.begin(), order.begin() + row.spelling->operands,
                     [&](int a, int b) { return made(a) < made(b); });
    return order;
  }

  // Post-order over all definitions, of operands in the order in which the source makes them: what
  // it makes late, such as a value that is computed again for its gradient, is numbered late. A
  // definition that leads back to its own class is left out.
  void Visit(egraph::Value root) {
    struct Frame {
      uint32_t c;
      size_t row = 0;
      int operand = 0;
      bool cyclic = false;
      std::vector<const ClassInfo::Row*> kept;
    };
    enum : uint8_t { kOpen = 1, kDone = 2 };
    if (state_[root.bits] != 0) return;
    std::vector<Frame> stack;
    auto open = [&](uint32_t c) {
      state_[c] = kOpen;
      std::vector<ClassInfo::Row>& rows = info_[c].rows;
      std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
        return IsSource(a, c) > IsSource(b, c);
      });
      stack.push_back({c});
    };
    open(root.bits);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      std::vector<ClassInfo::Row>& rows = info_[frame.c].rows;
      if (frame.row == rows.size()) {
        const uint32_t c = frame.c;
        const bool defined = !frame.kept.empty();
        Finish(c, frame.kept);
        stack.pop_back();
        // Without a definition for now: all lead back to what is open. Somebody who needs the class
        // later, when that is done, tries again.
        state_[c] = defined ? kDone : 0;
        if (!defined && !stack.empty()) stack.back().cyclic = true;
        continue;
      }
      const ClassInfo::Row& row = rows[frame.row];
      if (frame.operand == row.spelling->operands || frame.cyclic) {
        if (!frame.cyclic) frame.kept.push_back(&row);
        ++frame.row;
        frame.operand = 0;
        frame.cyclic = false;
        continue;
      }
      const uint32_t child = row.args[VisitOrder(row)[frame.operand]].bits;
      if (state_[child] == 0) {
        open(child);
      } else if (state_[child] == kOpen) {
        frame.cyclic = true;
      } else {
        ++frame.operand;
      }
    }
  }

  void Finish(uint32_t c, const std::vector<const ClassInfo::Row*>& rows) {
    if (rows.empty()) return;
    Value value;
    value.class_id = egraph::Value{c};
    for (const ClassInfo::Row* row : rows) {
      Definition definition;
      definition.op = row->spelling->op;
      const int n = row->spelling->operands;
      for (int i = 0; i < n; ++i) definition.inputs.push_back(number_.at(row->args[i].bits));
      switch (row->spelling->tail) {
        case Tail::kNone:
          break;
        case Tail::kInts:
          definition.attr.ints = SplitInts(graph_.AsString(row->args[n]));
          break;
        case Tail::kDType:
          definition.attr.dtype = *tensor::ParseDType(graph_.AsString(row->args[n]));
          break;
        case Tail::kNumber:
          definition.attr.scalar = graph_.AsF64(row->args[0]);
          definition.attr.dtype = *tensor::ParseDType(graph_.AsString(row->args[1]));
          break;
        case Tail::kIota:
          definition.attr.ints = SplitInts(graph_.AsString(row->args[0]));
          definition.attr.axis = graph_.AsI64(row->args[1]);
          definition.attr.dtype = *tensor::ParseDType(graph_.AsString(row->args[2]));
          break;
        case Tail::kName:
          value.input = input_of_.at(graph_.AsString(row->args[0]));
          break;
      }
      value.definitions.push_back(std::move(definition));
    }
    Infer(value);
    auto it = first_node_.find(c);
    if (it != first_node_.end()) {
      const tensor::Node& node = step_.graph.node(it->second);
      value.name = node.name;
      value.span = node.span;
      value.dtype = node.dtype;
      value.shape = node.shape;
    } else {
      value.name = "v" + std::to_string(table_.values.size());
    }
    number_[c] = static_cast<ValueId>(table_.values.size());
    table_.values.push_back(std::move(value));
  }

  // Shape and dtype by the op's own rule.
  void Infer(Value& value) {
    const Definition& d = value.definitions.front();
    if (d.op == Op::kInput) return;
    tensor::Graph small;
    std::vector<NodeId> inputs;
    for (ValueId input : d.inputs) {
      const Value& operand = table_.values[input];
      inputs.push_back(
          small.AddInput("p" + std::to_string(inputs.size()), operand.dtype, operand.shape));
    }
    const tensor::Node& node = small.node(small.Add(d.op, inputs, d.attr));
    value.dtype = node.dtype;
    value.shape = node.shape;
  }

  const Step& step_;
  const EGraph& graph_;
  const std::vector<egraph::Value>& classes_;
  std::map<uint32_t, ClassInfo> info_;
  std::map<uint32_t, NodeId> first_node_;
  std::map<std::string, int32_t> input_of_;
  std::map<uint32_t, uint8_t> state_;
  std::map<uint32_t, ValueId> number_;
  ValueTable table_;
};

}  // namespace

void DeclareValues(EGraph& graph) {
  const SortId val = graph.DeclareSort("Val");
  for (const Spelling& s : kSpellings) {
    std::vector<SortId> inputs(static_cast<size_t>(s.operands), val);
    switch (s.tail) {
      case Tail::kNone:
        break;
      case Tail::kInts:
      case Tail::kDType:
      case Tail::kName:
        inputs.push_back(egraph::kString);
        break;
      case Tail::kNumber:
        inputs.push_back(egraph::kF64);
        inputs.push_back(egraph::kString);
        break;
      case Tail::kIota:
        inputs.push_back(egraph::kString);
        inputs.push_back(egraph::kI64);
        inputs.push_back(egraph::kString);
        break;
    }
    // Val terms define values; what is chosen are the terms of choose.h.
    graph.DeclareConstructor(s.name, inputs, val, {.cost = 1, .extractable = false});
  }
  graph.DeclareFunction("shape", {val}, egraph::kString, egraph::Merge::AssertEqual());
  graph.DeclareFunction("dtype", {val}, egraph::kString, egraph::Merge::AssertEqual());
  graph.RegisterPrimitive(
      "inner-axes", {egraph::kString, egraph::kString}, egraph::kString,
      [](EGraph& g, std::span<const egraph::Value> args) -> std::optional<egraph::Value> {
        auto axes = InnerAxes(g.AsString(args[0]), g.AsString(args[1]));
        if (!axes) return std::nullopt;
        return g.String(*axes);
      });
  graph.RegisterPrimitive(
      "compose-orders", {egraph::kString, egraph::kString}, egraph::kString,
      [](EGraph& g, std::span<const egraph::Value> args) -> std::optional<egraph::Value> {
        auto order = ComposeOrders(g.AsString(args[0]), g.AsString(args[1]));
        if (!order) return std::nullopt;
        return g.String(*order);
      });
  graph.RegisterPrimitive(
      "identity-order", {egraph::kString}, egraph::kBool,
      [](EGraph& g, std::span<const egraph::Value> args) -> std::optional<egraph::Value> {
        return g.Bool(IsIdentityOrder(g.AsString(args[0])));
      });
  graph.DeclareRuleset("algebra");
}

ValueTable BuildValues(const Step& step, EGraph& graph, const egraph::Budget& budget,
                       egraph::RunReport& report) {
  const std::vector<egraph::Value> classes = Encoder(step, graph).Encode();
  graph.Rebuild();
  report = egraph::RunRuleset(graph, graph.FindRuleset("algebra"), budget);
  return Decoder(step, graph, classes).Decode();
}

}  // namespace l3c::l0::lower
