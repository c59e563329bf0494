#include "layers/l1/row_shares.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "layers/l1/graph_part.h"
#include "layers/l1/naming.h"

namespace l3c::l1 {
namespace {

using tensor::Graph;
using tensor::Node;
using tensor::NodeId;
using tensor::Op;
using tensor::OpClass;
using tensor::Shape;

enum class Way : uint8_t {
  kWhole,    // the same for every part
  kRows,     // each part has its rows, on `axis`
  kPartial,  // the sum over the parts is the value
  kLate,     // known when the parts have been added up
  kMixed,    // needs rows of several parts
};
struct Spread {
  Way kind = Way::kWhole;
  size_t axis = 0;
  bool operator==(const Spread&) const = default;
};
constexpr Spread kWhole{Way::kWhole}, kPartial{Way::kPartial}, kLate{Way::kLate},
    kMixed{Way::kMixed};
Spread Rows(size_t axis) { return {Way::kRows, axis}; }

// Adds the parts up in their order.
NodeId AddParts(Graph& to, const std::vector<NodeId>& parts, const std::string& name) {
  NodeId sum = parts[0];
  for (size_t p = 1; p < parts.size(); ++p) {
    sum = to.Add(Op::kAdd, {sum, parts[p]}, {}, p + 1 == parts.size() ? name : "");
  }
  return sum;
}

int64_t Product(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= shape[i];
  return product;
}

class Sharer {
 public:
  Sharer(const Graph& graph, const std::vector<std::string>& args, int64_t rows, int64_t parts)
      : graph_(Expanded(graph)), args_(args), rows_(rows), parts_(parts) {}

  std::optional<RowShares> Run(std::string* why) {
    if (rows_ % parts_ != 0) {
      *why = std::to_string(rows_) + " rows are no " + std::to_string(parts_) + " equal parts";
      return std::nullopt;
    }
    if (!Analyse(why)) return std::nullopt;
    FindNeeded();
    RowShares shares;
    shares.cut = BuildCut();
    for (int64_t p = 0; p < parts_; ++p) shares.parts.push_back(BuildPart(p));
    shares.reduce = BuildReduce(/*adds=*/true);
    shares.rest = BuildReduce(/*adds=*/false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!IsSum(id)) continue;
      RowShares::Sum& sum = shares.sums.emplace_back();
      sum.name = graph_.node(id).name;
      for (int64_t p = 0; p < parts_; ++p) sum.parts.push_back(PartName(id, p));
    }
    return shares;
  }

 private:
  static Graph Expanded(const Graph& graph) {
    Graph expanded = tensor::ExpandDerived(graph);
    NameValues(expanded);
    return expanded;
  }

  // ---- How values spread over the parts -----------------------------------------------------

  bool Analyse(std::string* why) {
    const size_t size = graph_.size();
    spread_.assign(size, kWhole);
    early_.assign(size, false);
    of_batch_.assign(size, false);
    of_state_.assign(size, false);
    for (NodeId id = 0; id < size; ++id) {
      const Node& node = graph_.node(id);
      if (node.op == Op::kInput) {
        const bool batch = std::find(args_.begin(), args_.end(), node.name) != args_.end();
        (batch ? of_batch_ : of_state_)[id] = true;
        if (batch) spread_[id] = Rows(0);
        continue;
      }
      for (NodeId input : node.inputs) {
        if (of_batch_[input]) of_batch_[id] = true;
        if (of_state_[input]) of_state_[id] = true;
      }
      if (!of_batch_[id]) continue;
      Spread spread = SpreadOf(node);
      if (spread != kWhole && spread.kind != Way::kRows && !of_state_[id]) {
        early_[id] = true;
        spread = kWhole;
      }
      if (spread == kMixed) {
        *why = "'" + node.name + "' of the training graph mixes the rows of a batch";
        return false;
      }
      spread_[id] = spread;
    }
    for (const tensor::Output& output : graph_.outputs()) {
      if (spread_[output.node].kind != Way::kRows) continue;
      *why = "output '" + output.name + "' of the training graph has a row for each sample";
      return false;
    }
    return true;
  }

  // Of a node that depends on the batch.
  Spread SpreadOf(const Node& node) const {
    const auto in = [&](size_t i) { return spread_[node.inputs[i]]; };
    bool rows = false, partial = false, late = false;
    for (NodeId input : node.inputs) {
      rows = rows || spread_[input].kind == Way::kRows;
      partial = partial || spread_[input].kind == Way::kPartial;
      late = late || spread_[input].kind == Way::kLate;
    }
    if (!rows && !partial && !late) return kWhole;
    if (late || (partial && !rows && !Linear(node))) return rows ? kMixed : kLate;
    if (partial) return rows ? kMixed : kPartial;
    switch (tensor::Definition(node.op).op_class) {
      case OpClass::kElementwise:
        return ElementwiseRows(node);
      case OpClass::kReduction: {
        const auto& axes = node.attr.ints;
        const auto axis = static_cast<int64_t>(in(0).axis);
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
          return node.op == Op::kReduceSum ? kPartial : kMixed;
        }
        const auto before =
            std::count_if(axes.begin(), axes.end(), [&](int64_t a) { return a < axis; });
        return Rows(in(0).axis - static_cast<size_t>(before));
      }
      case OpClass::kContraction:
        return MatmulRows(node);
      case OpClass::kMovement:
        return MovementRows(node);
      case OpClass::kIndexing:
        return IndexingRows(node);
      case OpClass::kLeaf:
        return kMixed;
    }
    return kMixed;
  }

  // Whether the op of parts, added up, is the op of the sum: of operands that are partial or whole.
  bool Linear(const Node& node) const {
    const auto partial = [&](size_t i) { return spread_[node.inputs[i]] == kPartial; };
    switch (node.op) {
      case Op::kNeg:
      case Op::kReduceSum:
      case Op::kReshape:
      case Op::kPermute:
      case Op::kExpand:
      case Op::kPad:
      case Op::kSlice:
      case Op::kFlip:
        return tensor::IsFloat(node.dtype);
      case Op::kAdd:
        return tensor::IsFloat(node.dtype) && partial(0) && partial(1);
      case Op::kMul:
      case Op::kMatmul:
        return tensor::IsFloat(node.dtype) && partial(0) != partial(1);
      default:
        return false;
    }
  }

  Spread ElementwiseRows(const Node& node) const {
    Spread rows = kWhole;
    for (NodeId input : node.inputs) {
      if (spread_[input].kind != Way::kRows) continue;
      if (rows == kWhole) rows = spread_[input];
      if (rows != spread_[input]) return kMixed;
    }
    return rows;
  }

  Spread MatmulRows(const Node& node) const {
    const Spread a = spread_[node.inputs[0]], b = spread_[node.inputs[1]];
    const size_t rank = node.shape.size();
    const bool a_rows = a.kind == Way::kRows, b_rows = b.kind == Way::kRows;
    // The axis of each operand that the same rows lie on: a batch axis, or the one summed over.
    if ((a_rows && a.axis + 2 < rank) || (b_rows && b.axis + 2 < rank)) {
      return a_rows && b_rows && a != b ? kMixed : a_rows ? a : b;
    }
    const bool a_sums = a_rows && a.axis == rank - 1, b_sums = b_rows && b.axis == rank - 2;
    if (a_sums || b_sums) {
      return (a_rows && !a_sums) || (b_rows && !b_sums) ? kMixed : kPartial;
    }
    return a_rows && b_rows ? kMixed : a_rows ? a : b;
  }

  Spread MovementRows(const Node& node) const {
    const size_t axis = spread_[node.inputs[0]].axis;
    const Shape& from = graph_.node(node.inputs[0]).shape;
    const auto& ints = node.attr.ints;
    switch (node.op) {
      case Op::kReshape: {
        // An axis with the same extents before it, which is cut where the rows are.
        const int64_t before = Product(from, 0, axis);
        for (size_t b = 0; b < node.shape.size(); ++b) {
          if (Product(node.shape, 0, b) == before && node.shape[b] % parts_ == 0) return Rows(b);
        }
        return kMixed;
      }
      case Op::kPermute: {
        const auto at = std::find(ints.begin(), ints.end(), static_cast<int64_t>(axis));
        return Rows(static_cast<size_t>(at - ints.begin()));
      }
      case Op::kExpand:
        return Rows(axis + node.shape.size() - from.size());
      case Op::kPad:
        return ints[2 * axis] == 0 && ints[2 * axis + 1] == 0 ? Rows(axis) : kMixed;
      case Op::kSlice:
        return ints[3 * axis] == 0 && node.shape[axis] == from[axis] && ints[3 * axis + 2] == 1
                   ? Rows(axis)
                   : kMixed;
      case Op::kFlip:
        return std::find(ints.begin(), ints.end(), static_cast<int64_t>(axis)) == ints.end()
                   ? Rows(axis)
                   : kMixed;
      default:
        return kMixed;
    }
  }

  Spread IndexingRows(const Node& node) const {
    const Spread first = spread_[node.inputs[0]], second = spread_[node.inputs[1]];
    if (node.op == Op::kGather) {  // (x[n, …], index[k…]) -> [k…, …]
      if (first == kWhole) return second;
      const size_t rank = graph_.node(node.inputs[1]).shape.size();
      return second == kWhole && first.axis > 0 ? Rows(rank + first.axis - 1) : kMixed;
    }
    // Scatter-add (index[k…], updates[k…, …]): sums over k.
    const size_t rank = graph_.node(node.inputs[0]).shape.size();
    if (second.kind == Way::kRows && second.axis >= rank) {
      return first == kWhole ? Rows(second.axis - rank + 1) : kMixed;
    }
    const bool both = first.kind == Way::kRows && second.kind == Way::kRows;
    return both && first != second ? kMixed : kPartial;
  }

  // ---- What is needed where -----------------------------------------------------------------

  void FindNeeded() {
    const size_t size = graph_.size();
    in_reduce_.assign(size, false);
    in_part_.assign(size, false);
    in_cut_.assign(size, false);
    for (const tensor::Output& output : graph_.outputs()) in_reduce_[output.node] = true;
    for (NodeId id = static_cast<NodeId>(size); id-- > 0;) {
      if (!in_reduce_[id] || early_[id]) continue;
      if (spread_[id] == kPartial) {
        in_part_[id] = true;  // and its parts are added up
        continue;
      }
      for (NodeId input : graph_.node(id).inputs) in_reduce_[input] = true;
    }
    for (NodeId id = static_cast<NodeId>(size); id-- > 0;) {
      if (!in_part_[id] || early_[id]) continue;
      for (NodeId input : graph_.node(id).inputs) in_part_[input] = true;
    }
    for (NodeId id = 0; id < size; ++id) {
      if (early_[id] && (in_part_[id] || in_reduce_[id])) in_cut_[id] = true;
    }
    for (NodeId id = static_cast<NodeId>(size); id-- > 0;) {
      if (!in_cut_[id]) continue;
      for (NodeId input : graph_.node(id).inputs) in_cut_[input] = true;
    }
    for (NodeId id = 0; id < size; ++id) taken_.insert(graph_.node(id).name);
  }

  bool IsArg(NodeId id) const { return spread_[id] == Rows(0) && graph_.node(id).op == Op::kInput; }

  // Whether the parts give parts of it.
  bool IsSum(NodeId id) const { return in_part_[id] && in_reduce_[id] && spread_[id] == kPartial; }

  // The name of a share, or of a part of a sum.
  std::string PartName(NodeId id, int64_t part) {
    const auto [it, fresh] = part_names_.try_emplace({id, part});
    if (fresh) {
      it->second = graph_.node(id).name + "_" + std::to_string(part);
      while (!taken_.insert(it->second).second) it->second += "_";
    }
    return it->second;
  }

  SharedGraph BuildCut() {
    Graph to;
    std::vector<NodeId> ids(graph_.size());
    for (NodeId input : graph_.inputs()) {
      if (!of_batch_[input]) continue;
      const Node& node = graph_.node(input);
      ids[input] = to.AddInput(node.name, node.dtype, node.shape, node.span);
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (!in_cut_[id] || node.op == Op::kInput) continue;
      ids[id] = to.Add(node.op, Mapped(node, ids), node.attr, node.name, node.span);
      if (early_[id] && (in_part_[id] || in_reduce_[id])) to.AddOutput(node.name, ids[id]);
    }
    for (NodeId input : graph_.inputs()) {
      if (!in_part_[input] || !IsArg(input)) continue;
      for (int64_t p = 0; p < parts_; ++p) {
        const std::string name = PartName(input, p);
        to.AddOutput(name, Slice(to, ids[input], 0, p, name));
      }
    }
    return FinishShared(std::move(to), args_);
  }

  static std::vector<NodeId> Mapped(const Node& node, const std::vector<NodeId>& ids) {
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs) inputs.push_back(ids[input]);
    return inputs;
  }

  NodeId Slice(Graph& to, NodeId id, size_t axis, int64_t part, const std::string& name) const {
    tensor::Attributes attr;
    const Shape shape = to.node(id).shape;
    for (size_t a = 0; a < shape.size(); ++a) {
      const int64_t share = shape[a] / parts_;
      const int64_t start = a == axis ? part * share : 0;
      attr.ints.insert(attr.ints.end(), {start, a == axis ? start + share : shape[a], 1});
    }
    return to.Add(Op::kSlice, {id}, attr, name);
  }

  // The axis of an operand that must be cut where the node's rows are; nothing where the operand
  // is used whole.
  std::optional<size_t> CutAxis(const Node& node, size_t operand) const {
    std::optional<Spread> other;
    for (NodeId input : node.inputs) {
      if (spread_[input].kind == Way::kRows) other = spread_[input];
    }
    if (!other) return std::nullopt;
    switch (tensor::Definition(node.op).op_class) {
      case OpClass::kElementwise:
        return other->axis;
      case OpClass::kContraction: {
        const size_t rank = node.shape.size();
        if (other->axis + 2 < rank) return other->axis;
        const bool other_is_a = operand == 1;
        if (other_is_a && other->axis == rank - 1) return rank - 2;
        if (!other_is_a && other->axis == rank - 2) return rank - 1;
        return std::nullopt;
      }
      case OpClass::kIndexing: {
        if (node.op == Op::kGather) return std::nullopt;
        const size_t rank = graph_.node(node.inputs[0]).shape.size();
        if (other->axis >= rank) return std::nullopt;
        return other->axis;
      }
      default:
        return std::nullopt;
    }
  }

  SharedGraph BuildPart(int64_t part) {
    Graph to;
    std::vector<NodeId> ids(graph_.size());
    std::map<std::pair<NodeId, size_t>, NodeId> cut;  // whole values, by axis
    std::vector<std::string> args;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!in_part_[id]) continue;
      const Node& node = graph_.node(id);
      if (IsArg(id)) {
        Shape shape = node.shape;
        shape[0] /= parts_;
        args.push_back(PartName(id, part));
        ids[id] = to.AddInput(args.back(), node.dtype, shape, node.span);
      } else if (early_[id]) {
        args.push_back(node.name);
        ids[id] = to.AddInput(node.name, node.dtype, node.shape, node.span);
      } else if (node.op == Op::kInput) {
        ids[id] = to.AddInput(node.name, node.dtype, node.shape, node.span);
      } else {
        std::vector<NodeId> inputs = Mapped(node, ids);
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (spread_[node.inputs[i]] != kWhole) continue;
          if (const auto axis = CutAxis(node, i)) {
            inputs[i] = CutWhole(to, node.inputs[i], ids, *axis, part, cut);
          }
        }
        ids[id] = to.Add(node.op, std::move(inputs), PartAttributes(id), node.name, node.span);
      }
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (IsSum(id)) {
        to.AddOutput(PartName(id, part), ids[id]);
      }
    }
    return FinishShared(std::move(to), std::move(args));
  }

  // A part of a value that every part could have whole. What is the same for all rows is made
  // smaller, not cut.
  NodeId CutWhole(Graph& to, NodeId id, const std::vector<NodeId>& ids, size_t axis, int64_t part,
                  std::map<std::pair<NodeId, size_t>, NodeId>& cut) const {
    const auto [it, fresh] = cut.try_emplace({id, axis});
    if (!fresh) return it->second;
    const Node& node = graph_.node(id);
    if (node.op == Op::kExpand && !early_[id]) {
      const Shape& from = graph_.node(node.inputs[0]).shape;
      const size_t missing = node.shape.size() - from.size();
      if (axis < missing || from[axis - missing] == 1) {
        Shape shape = node.shape;
        shape[axis] /= parts_;
        return it->second = to.Expand(ids[node.inputs[0]], shape);
      }
    }
    return it->second = Slice(to, ids[id], axis, part, "");
  }

  // Shapes that are written out have fewer rows.
  tensor::Attributes PartAttributes(NodeId id) const {
    const Node& node = graph_.node(id);
    tensor::Attributes attr = node.attr;
    if (spread_[id].kind != Way::kRows) return attr;
    const size_t axis = spread_[id].axis;
    switch (node.op) {
      case Op::kReshape:
      case Op::kExpand:
      case Op::kScatterAdd:
        attr.ints[axis] /= parts_;
        break;
      case Op::kSlice:
        attr.ints[3 * axis + 1] = node.shape[axis] / parts_;
        break;
      default:
        break;
    }
    return attr;
  }

  // `adds`: the parts of sums are its arguments, not the sums.
  SharedGraph BuildReduce(bool adds) {
    Graph to;
    std::vector<NodeId> ids(graph_.size());
    std::vector<std::string> args;
    const auto add_arg = [&](const std::string& name, const Node& node) {
      args.push_back(name);
      return to.AddInput(name, node.dtype, node.shape, node.span);
    };
    std::map<NodeId, std::vector<NodeId>> summands;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!in_reduce_[id]) continue;
      const Node& node = graph_.node(id);
      if (early_[id] || (IsSum(id) && !adds)) {
        ids[id] = add_arg(node.name, node);
      } else if (IsSum(id)) {
        for (int64_t p = 0; p < parts_; ++p) {
          summands[id].push_back(add_arg(PartName(id, p), node));
        }
      } else if (node.op == Op::kInput) {
        ids[id] = to.AddInput(node.name, node.dtype, node.shape, node.span);
      }
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!in_reduce_[id] || early_[id]) continue;
      const Node& node = graph_.node(id);
      if (IsSum(id)) {
        if (adds) ids[id] = AddParts(to, summands[id], node.name);
      } else if (node.op != Op::kInput) {
        ids[id] = to.Add(node.op, Mapped(node, ids), node.attr, node.name, node.span);
      }
    }
    for (const tensor::Output& output : graph_.outputs()) {
      to.AddOutput(output.name, ids[output.node]);
    }
    return FinishShared(std::move(to), std::move(args));
  }

  const Graph graph_;
  const std::vector<std::string>& args_;
  const int64_t rows_, parts_;
  std::vector<Spread> spread_;
  std::vector<bool> early_;  // computed from the whole batch
  std::vector<bool> of_batch_, of_state_;
  std::vector<bool> in_reduce_, in_part_, in_cut_;
  std::map<std::pair<NodeId, int64_t>, std::string> part_names_;
  std::set<std::string> taken_;
};

}  // namespace

SharedGraph FinishShared(Graph graph, std::vector<std::string> args) {
  NameValues(graph);
  SharedGraph shared;
  GraphPart part;
  for (const std::string& arg : args) part.arguments.push_back(*graph.Find(arg));
  for (NodeId input : graph.inputs()) {
    const std::string& name = graph.node(input).name;
    if (std::find(args.begin(), args.end(), name) == args.end()) part.state.push_back(input);
  }
  part.outputs = graph.outputs();
  shared.graph = Extract(graph, part);
  shared.args = std::move(args);
  return shared;
}

SharedGraph AddUp(const RowShares& shares, const std::vector<RowShares::Sum>& sums) {
  Graph to;
  std::vector<std::string> args;
  std::vector<std::vector<NodeId>> parts;
  for (const RowShares::Sum& sum : sums) {
    parts.emplace_back();
    for (const std::string& name : sum.parts) {
      for (const SharedGraph& part : shares.parts) {
        for (const tensor::Output& output : part.graph.outputs()) {
          if (output.name != name) continue;
          const Node& node = part.graph.node(output.node);
          parts.back().push_back(to.AddInput(name, node.dtype, node.shape));
          args.push_back(name);
        }
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    to.AddOutput(sums[i].name, AddParts(to, parts[i], sums[i].name));
  }
  return FinishShared(std::move(to), std::move(args));
}

std::optional<RowShares> ShareRows(const Graph& graph, const std::vector<std::string>& args,
                                   int64_t rows, int64_t parts, std::string* why) {
  return Sharer(graph, args, rows, parts).Run(why);
}

}  // namespace l3c::l1
