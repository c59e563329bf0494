// What joins the parts of a network (infer_methods.h). None of these can be written: sugar makes
// them.
//
//   add            x + block(x)                                            residual
//   state0         the first state of a recurrence                         recurrent
//   step_input     what the cell sees at step t
//   keep_until     the state where the predicate holds, else the next one
//   mix            Σ gateᵢ · expertᵢ                                       mixture
//   neighbourhood  D⁻¹(A + I)H: the mean over each node and its neighbours graph
//   noised         √ᾱ·x + √(1 − ᾱ)·ε, and t/steps after it                 diffusion_chain
#include <cmath>
#include <numbers>
#include <set>
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/l2/predicate.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

LayerEntry Hidden(std::string name, std::vector<Arg> args, std::string doc, int operands) {
  LayerEntry entry;
  entry.form = {std::move(name), std::move(args), std::move(doc)};
  entry.hidden = true;
  entry.operand_count = operands;
  return entry;
}

LayerEntry AddJoin() {
  LayerEntry add = Hidden("add", {}, "sum of a block and the input it skips", 2);
  add.shape = [](const Form&, std::span<const Shape> operands,
                 std::string* error) -> std::optional<Shape> {
    if (operands[0] == operands[1]) return operands[0];
    *error = "the block of a residual turns shape " + tensor::ShapeToString(operands[0]) +
             " into " + tensor::ShapeToString(operands[1]) + "; they must be the same to be added";
    return std::nullopt;
  };
  add.expand = [](Graph& graph, const Form&, std::span<const NodeId> operands,
                  std::span<const NodeId>) { return Add(graph, operands[0], operands[1]); };
  add.reach = [](const Form&, std::span<const Shape>) { return Reach::kItself; };
  return add;
}

// ---- recurrent ----------------------------------------------------------------------------------

bool IsSequence(int64_t steps, const Shape& sample) {
  return !sample.empty() && sample.size() <= 2 && steps > 1 && sample[0] == steps;
}

LayerEntry State0() {
  LayerEntry entry = Hidden(
      "state0",
      {Arg::Integer("steps", 1, int64_t{1} << 40), Arg::Integer("width", 0, int64_t{1} << 40)},
      "the state that a recurrence begins with", 1);
  entry.shape = [](const Form& form, std::span<const Shape> operands,
                   std::string* error) -> std::optional<Shape> {
    if (!IsSequence(form.Integer(0), operands[0])) return operands[0];
    if (form.Integer(1) > 0) return Shape{form.Integer(1)};
    *error = "the cell has no layer that says how wide the state is; end it with a linear layer";
    return std::nullopt;
  };
  entry.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    const Shape x = g.node(operands[0]).shape;
    if (!IsSequence(form.Integer(0), Shape(x.begin() + 1, x.end()))) return operands[0];
    return g.Full(0, {x[0], form.Integer(1)}, g.node(operands[0]).dtype);
  };
  return entry;
}

LayerEntry StepInput() {
  LayerEntry entry =
      Hidden("step_input",
             {Arg::Integer("steps", 1, int64_t{1} << 40), Arg::Integer("t", 0, int64_t{1} << 40)},
             "what the cell of a recurrence sees at step t", 2);
  entry.shape = [](const Form& form, std::span<const Shape> operands,
                   std::string*) -> std::optional<Shape> {
    if (!IsSequence(form.Integer(0), operands[0])) return operands[1];
    const int64_t features = operands[0].size() == 2 ? operands[0][1] : 1;
    return Shape{features + tensor::NumElements(operands[1])};
  };
  entry.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    const Shape x = g.node(operands[0]).shape;
    if (!IsSequence(form.Integer(0), Shape(x.begin() + 1, x.end()))) return operands[1];
    const int64_t t = form.Integer(1);
    const int64_t features = x.size() == 3 ? x[2] : 1;
    const NodeId now = g.Reshape(SliceAxis(g, operands[0], 1, t, t + 1), {x[0], features});
    return Concatenate(g, {now, operands[1]}, 1);
  };
  return entry;
}

LayerEntry KeepUntil() {
  LayerEntry entry =
      Hidden("keep_until", {Arg::Predicate("until"), Arg::Integer("t", 0, int64_t{1} << 40)},
             "the state where the predicate holds, else the next one", 3);
  entry.shape = [](const Form& form, std::span<const Shape> operands,
                   std::string* error) -> std::optional<Shape> {
    if (operands[1] != operands[2]) {
      *error = "the cell of a recurrence turns a state of shape " +
               tensor::ShapeToString(operands[1]) + " into " + tensor::ShapeToString(operands[2]);
      return std::nullopt;
    }
    support::Diagnostics diagnostics;
    const std::map<std::string, Shape> names = {
        {"state", operands[1]}, {"change", operands[1]}, {"step", {}}};
    if (!CheckPredicate(form.Expression(0), names, diagnostics)) {
      *error = "until: " + diagnostics.all().front().message;
      return std::nullopt;
    }
    return operands[1];
  };
  entry.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    const NodeId state = operands[1];
    const Shape shape = g.node(state).shape;
    PredicateValues values = {{"state", state},
                              {"change", Apply(g, "abs", {Sub(g, state, operands[0])})},
                              {"step", g.Full(static_cast<double>(form.Integer(1)), {shape[0]})}};
    const NodeId done = ExpandPredicate(g, form.Expression(0), values, shape[0]);
    Shape column(shape.size(), 1);
    column[0] = shape[0];
    const NodeId everywhere = g.Expand(g.Reshape(done, column), shape);
    return g.Add(Op::kWhere, {everywhere, state, operands[2]});
  };
  return entry;
}

// ---- mixture ------------------------------------------------------------------------------------

LayerEntry Mix() {
  LayerEntry entry = Hidden("mix", {}, "experts weighed by a gate", LayerEntry::kAnyNumber);
  entry.shape = [](const Form&, std::span<const Shape> operands,
                   std::string* error) -> std::optional<Shape> {
    const int64_t experts = static_cast<int64_t>(operands.size()) - 1;
    if (operands[0] != Shape{experts}) {
      *error = "a mixture of " + support::PrintInteger(experts) +
               " experts needs a gate of as many classes, not " +
               tensor::ShapeToString(operands[0]);
      return std::nullopt;
    }
    for (size_t i = 2; i < operands.size(); ++i) {
      if (operands[i] == operands[1]) continue;
      *error = "the experts of a mixture give " + tensor::ShapeToString(operands[1]) + " and " +
               tensor::ShapeToString(operands[i]);
      return std::nullopt;
    }
    return operands[1];
  };
  entry.expand = [](Graph& g, const Form&, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    const Shape shape = g.node(operands[1]).shape;
    Shape column(shape.size(), 1);
    column[0] = shape[0];
    NodeId sum = 0;
    for (size_t i = 1; i < operands.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - 1;
      const NodeId weight = g.Reshape(SliceAxis(g, operands[0], 1, at, at + 1), column);
      const NodeId part = Mul(g, operands[i], g.Expand(weight, shape));
      sum = i == 1 ? part : Add(g, sum, part);
    }
    return sum;
  };
  return entry;
}

// ---- graph --------------------------------------------------------------------------------------

constexpr int64_t kMaxNodes = 4096;
constexpr size_t kBitsAWord = 48;  // exact in f64

// The neighbours of each node, itself among them.
std::vector<std::set<int64_t>> Neighbours(const Form& form, int64_t nodes) {
  std::vector<std::set<int64_t>> all(static_cast<size_t>(nodes));
  auto join = [&](int64_t a, int64_t b) {
    all[static_cast<size_t>(a)].insert(b);
    all[static_cast<size_t>(b)].insert(a);
  };
  for (int64_t i = 0; i < nodes; ++i) join(i, i);
  const std::vector<int64_t>& ends = form.Edges(0);
  for (size_t i = 0; i + 1 < ends.size(); i += 2) join(ends[i], ends[i + 1]);
  return all;
}

// The adjacency of a chain, a ring or a complete graph, with its diagonal, from the indices.
NodeId RegularAdjacency(Graph& g, const std::string& kind, int64_t n, DType dtype) {
  if (kind == "full") return g.Full(1, {n, n}, dtype);
  const NodeId gap =
      Apply(g, "abs", {Sub(g, Iota(g, {n, n}, 0, dtype), Iota(g, {n, n}, 1, dtype))});
  NodeId near = g.Binary(Op::kCmpLt, gap, FullLike(g, 1.5, gap));
  if (kind == "ring") {
    const NodeId around = Apply(g, "cmpgt", {gap, FullLike(g, static_cast<double>(n) - 1.5, gap)});
    near = g.Binary(Op::kAdd, near, around);
  }
  return g.Cast(near, dtype);
}

// Rows of the matrix as whole numbers, `kBitsAWord` columns each, taken apart again: as many ops as
// nodes, where one for each edge would be many more.
NodeId ListedAdjacency(Graph& g, const std::vector<std::set<int64_t>>& neighbours, DType dtype) {
  const int64_t n = static_cast<int64_t>(neighbours.size());
  std::vector<NodeId> parts;
  for (int64_t first = 0; first < n; first += kBitsAWord) {
    const int64_t columns = std::min<int64_t>(kBitsAWord, n - first);
    const NodeId row = Iota(g, {n}, 0, DType::kI32);
    NodeId words = g.Full(0, {n}, DType::kF64);
    for (int64_t i = 0; i < n; ++i) {
      double word = 0;
      for (int64_t j : neighbours[static_cast<size_t>(i)]) {
        if (j >= first && j < first + columns) word += std::exp2(static_cast<double>(j - first));
      }
      if (word == 0) continue;
      const NodeId other =
          g.Binary(Op::kCmpNe, row, g.Full(static_cast<double>(i), {n}, DType::kI32));
      words = g.Add(Op::kWhere, {other, words, g.Full(word, {n}, DType::kF64)});
    }
    const NodeId place = Iota(g, {n, columns}, 1, DType::kF64);
    const NodeId weight = g.Unary(Op::kExp2, g.Unary(Op::kNeg, place));
    const NodeId shifted = Apply(g, "floor", {Mul(g, SpreadLast(g, words, {n, columns}), weight)});
    parts.push_back(As(g, g.Binary(Op::kMod, shifted, FullLike(g, 2, shifted)), dtype));
  }
  return Concatenate(g, parts, 1);
}

LayerEntry Neighbourhood() {
  LayerEntry entry = Hidden("neighbourhood", {Arg::Edges("edges", {"chain", "ring", "full"})},
                            "the mean over each node of a graph and its neighbours", 1);
  entry.shape = [](const Form& form, std::span<const Shape> operands,
                   std::string* error) -> std::optional<Shape> {
    const Shape& x = operands[0];
    if (x.size() != 2 || x[0] > kMaxNodes) {
      *error = "a graph takes a sample [nodes, features] of at most " +
               support::PrintInteger(kMaxNodes) + " nodes, not " + tensor::ShapeToString(x);
      return std::nullopt;
    }
    if (form.IsEdgeList(0)) {
      for (int64_t end : form.Edges(0)) {
        if (end < x[0]) continue;
        *error = "an edge ends in node " + support::PrintInteger(end) + ", but the sample has " +
                 support::PrintInteger(x[0]) + " nodes, from 0";
        return std::nullopt;
      }
    }
    return x;
  };
  entry.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    const Shape x = g.node(operands[0]).shape;
    const DType dtype = g.node(operands[0]).dtype;
    const NodeId adjacency = form.IsEdgeList(0) ? ListedAdjacency(g, Neighbours(form, x[1]), dtype)
                                                : RegularAdjacency(g, form.Word(0), x[1], dtype);
    const NodeId degree = SumLast(g, adjacency);
    const NodeId mean = Mul(g, adjacency, SpreadLast(g, g.Unary(Op::kRecip, degree), {x[1], x[1]}));
    return g.Matmul(g.Expand(mean, {x[0], x[1], x[1]}), operands[0]);
  };
  return entry;
}

// ---- diffusion_chain ----------------------------------------------------------------------------

LayerEntry Noised() {
  LayerEntry entry =
      Hidden("noised", {Arg::Integer("steps", 1, 100000), Arg::Word("noise", {"linear", "cosine"})},
             "the sample under noise of a random strength, and the strength after it", 1);
  entry.shape = [](const Form&, std::span<const Shape> operands,
                   std::string*) -> std::optional<Shape> {
    return Shape{tensor::NumElements(operands[0]) + 1};
  };
  // Only its shape and its cost: what it means needs random numbers, in evaluation too.
  entry.expand = [](Graph& g, const Form&, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    const Shape x = g.node(operands[0]).shape;
    const int64_t elements = tensor::NumElements(x) / x[0];
    const NodeId flat = g.Reshape(operands[0], {x[0], elements});
    return Concatenate(g, {flat, g.Full(0, {x[0], 1}, g.node(flat).dtype)}, 1);
  };
  entry.random_in_evaluation = true;
  entry.expand_random = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                           std::span<const NodeId>, NodeId key) {
    const Shape x = g.node(operands[0]).shape;
    const int64_t elements = tensor::NumElements(x) / x[0];
    const NodeId flat = g.Reshape(operands[0], {x[0], elements});
    const double steps = static_cast<double>(form.Integer(0));
    // t = 1 … steps, τ = t/steps.
    const NodeId draw = Uniform(g, DeriveKey(g, key, "t"), {x[0], 1});
    const NodeId t = PlusConstant(g, Apply(g, "floor", {TimesConstant(g, draw, steps)}), 1);
    const NodeId tau = TimesConstant(g, t, 1 / steps);
    NodeId kept = 0;  // ᾱ
    if (form.Word(1) == "linear") {
      const NodeId square = TimesConstant(g, Apply(g, "square", {tau}), -9.95);
      kept = Apply(g, "exp", {Add(g, square, TimesConstant(g, tau, -0.1))});
    } else {
      const double scale = 0.5 * std::numbers::pi / 1.008;
      const NodeId angle = TimesConstant(g, PlusConstant(g, tau, 0.008), scale);
      kept = Apply(g, "square", {Apply(g, "cos", {angle})});
    }
    const NodeId noise = Normal(g, DeriveKey(g, key, "noise"), {x[0], elements});
    const NodeId signal = g.Expand(g.Unary(Op::kSqrt, kept), {x[0], elements});
    const NodeId rest = Sub(g, FullLike(g, 1, kept), kept);
    const NodeId strength = g.Expand(g.Unary(Op::kSqrt, rest), {x[0], elements});
    const NodeId mixed = Add(g, Mul(g, flat, signal), Mul(g, noise, strength));
    return Concatenate(g, {mixed, tau}, 1);
  };
  return entry;
}

}  // namespace

std::vector<LayerEntry> JoinLayers() {
  return {AddJoin(), State0(), StepInput(), KeepUntil(), Mix(), Neighbourhood(), Noised()};
}

}  // namespace l3c::l2
