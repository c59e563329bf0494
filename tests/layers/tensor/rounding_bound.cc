#include "tests/layers/tensor/rounding_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace l3c::tensor {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// What exp2, log2 and sin may be off by, in units of the result's roundoff: see transcendental.h.
constexpr double kTranscendental = 4;

double UnitRoundoff(DType dtype) {
  if (dtype == DType::kF32) return std::ldexp(1.0, -24);
  return dtype == DType::kF64 ? std::ldexp(1.0, -53) : 0;
}

// `error`: |computed - exact|; `size`: the sum of the magnitudes of the terms, at least |value|.
struct Track {
  std::vector<double> error;
  std::vector<double> size;
};

class Bounder {
 public:
  Bounder(const Graph& graph, std::vector<Array> values)
      : graph_(graph), values_(std::move(values)), tracks_(graph.size()) {}

  void Input(NodeId id, const std::vector<double>& error) { tracks_[id] = {error, Magnitudes(id)}; }

  void Compute(NodeId id) {
    const Node& node = graph_.node(id);
    const size_t count = static_cast<size_t>(NumElements(node.shape));
    Track& out = tracks_[id];
    out.error.assign(count, 0);
    switch (node.op) {
      case Op::kConst:
      case Op::kIota:
        break;
      case Op::kRandom:
        if (Error(node, 0)[0] > 0) out.error.assign(count, 1);
        break;
      case Op::kReshape:
      case Op::kPermute:
      case Op::kExpand:
      case Op::kPad:
      case Op::kSlice:
      case Op::kFlip:
      case Op::kGather:
      case Op::kScatterAdd:
        Moved(id);
        return;
      case Op::kReduceSum:
      case Op::kReduceMax:
        Reduced(id);
        return;
      case Op::kMatmul:
        Contracted(id);
        return;
      default:
        out.size = Magnitudes(id);
        for (size_t i = 0; i < count; ++i) Elementwise(id, i);
        return;
    }
    out.size = Magnitudes(id);
  }

  Bounded Result(NodeId id) const {
    Bounded result{values_[id], tracks_[id].error};
    for (double& e : result.error) e = std::isnan(e) ? kUnknown : e;  // 0 · ∞ on the way
    return result;
  }

 private:
  std::vector<double> Magnitudes(NodeId id) const {
    const Array& a = values_[id];
    std::vector<double> size;
    for (double x : a.floats) size.push_back(std::abs(x));
    for (int64_t i : a.ints) size.push_back(std::abs(static_cast<double>(i)));
    return size;
  }
  const std::vector<double>& Error(const Node& node, size_t i) const {
    return tracks_[node.inputs[i]].error;
  }
  const std::vector<double>& Size(const Node& node, size_t i) const {
    return tracks_[node.inputs[i]].size;
  }
  double Value(const Node& node, size_t input, size_t i) const {
    const Array& a = values_[node.inputs[input]];
    return IsFloat(a.dtype) ? a.floats[i] : static_cast<double>(a.ints[i]);
  }

  // The same movement of other numbers: a graph of the one op, on f64.
  std::vector<double> Move(const Node& node, const std::vector<double>& numbers) const {
    Graph g;
    std::vector<NodeId> operands;
    std::vector<Array> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Array& a = values_[node.inputs[i]];
      const bool moved = i == (node.op == Op::kScatterAdd ? 1u : 0u);
      const DType dtype = moved ? DType::kF64 : a.dtype;
      operands.push_back(g.AddInput("i" + std::to_string(i), dtype, a.shape));
      inputs.push_back(moved ? Array::Floats(dtype, a.shape, numbers) : a);
    }
    g.AddOutput("o", g.Add(node.op, operands, node.attr));
    return Evaluate(g, inputs, Precision::kOracle)[0].floats;
  }

  void Moved(NodeId id) {
    const Node& node = graph_.node(id);
    const bool adds = node.op == Op::kScatterAdd;
    const size_t data = adds ? 1 : 0;
    tracks_[id].error = Move(node, Error(node, data));
    tracks_[id].size = Move(node, Size(node, data));
    if (node.op == Op::kGather || adds) {
      const std::vector<double>& rows = Error(node, 1 - data);
      const bool sure = std::all_of(rows.begin(), rows.end(), [](double e) { return e == 0; });
      if (!sure) std::fill(tracks_[id].error.begin(), tracks_[id].error.end(), kUnknown);
    }
    if (!adds) return;
    const double terms = static_cast<double>(values_[node.inputs[0]].ints.size());
    for (size_t i = 0; i < tracks_[id].error.size(); ++i) {
      tracks_[id].error[i] += terms * UnitRoundoff(node.dtype) * tracks_[id].size[i];
    }
  }

  void Reduced(NodeId id) {
    const Node& node = graph_.node(id);
    const auto reduce = [&](const std::vector<double>& numbers, bool sum) {
      Graph g;
      const Shape& shape = graph_.node(node.inputs[0]).shape;
      const NodeId x = g.AddInput("x", DType::kF64, shape);
      g.AddOutput("o", sum ? g.ReduceSum(x, node.attr.ints) : g.ReduceMax(x, node.attr.ints));
      const std::vector<Array> in = {Array::Floats(DType::kF64, shape, numbers)};
      return Evaluate(g, in, Precision::kOracle)[0].floats;
    };
    const bool sum = node.op == Op::kReduceSum;
    Track& out = tracks_[id];
    out.error = reduce(Error(node, 0), sum);
    out.size = reduce(Size(node, 0), sum);
    const double terms = static_cast<double>(NumElements(graph_.node(node.inputs[0]).shape)) /
                         std::max<double>(1, static_cast<double>(NumElements(node.shape)));
    for (size_t i = 0; i < out.error.size(); ++i) {
      if (sum) out.error[i] += terms * UnitRoundoff(node.dtype) * out.size[i];
      // The largest of nothing is infinite and exact.
      if (terms == 0) out.error[i] = 0;
    }
  }

  void Contracted(NodeId id) {
    const Node& node = graph_.node(id);
    const auto product = [&](const std::vector<double>& left, const std::vector<double>& right) {
      Graph g;
      const Shape& a = graph_.node(node.inputs[0]).shape;
      const Shape& b = graph_.node(node.inputs[1]).shape;
      const NodeId x = g.AddInput("a", DType::kF64, a);
      const NodeId y = g.AddInput("b", DType::kF64, b);
      g.AddOutput("o", g.Matmul(x, y));
      const std::vector<Array> in = {Array::Floats(DType::kF64, a, left),
                                     Array::Floats(DType::kF64, b, right)};
      return Evaluate(g, in, Precision::kOracle)[0].floats;
    };
    Track& out = tracks_[id];
    out.size = product(Size(node, 0), Size(node, 1));
    const std::vector<double> first = product(Error(node, 0), Size(node, 1));
    std::vector<double> left = Size(node, 0);
    for (size_t i = 0; i < left.size(); ++i) left[i] += Error(node, 0)[i];
    const std::vector<double> second = product(left, Error(node, 1));
    const double terms = static_cast<double>(graph_.node(node.inputs[0]).shape.back());
    out.error.resize(out.size.size());
    for (size_t i = 0; i < out.size.size(); ++i) {
      out.error[i] = first[i] + second[i] + terms * UnitRoundoff(node.dtype) * out.size[i];
    }
  }

  void Elementwise(NodeId id, size_t i) {
    const Node& node = graph_.node(id);
    const double u = UnitRoundoff(node.dtype);
    const auto error = [&](size_t input) { return Error(node, input)[i]; };
    const auto size = [&](size_t input) { return Size(node, input)[i]; };
    const auto value = [&](size_t input) { return Value(node, input, i); };
    double& e = tracks_[id].error[i];
    double& s = tracks_[id].size[i];
    switch (node.op) {
      case Op::kAdd:
        s = size(0) + size(1);
        e = error(0) + error(1) + u * s;
        break;
      case Op::kMul:
        s = size(0) * size(1);
        e = error(0) * size(1) + size(0) * error(1) + error(0) * error(1) + u * s;
        break;
      case Op::kNeg:
        s = size(0);
        e = error(0);
        break;
      case Op::kMax:
        s = std::max(size(0), size(1));
        e = std::max(error(0), error(1));
        break;
      case Op::kRecip:
        e = Through(value(0), error(0), [](double x) { return 1 / x; }, 0) + u * s;
        break;
      case Op::kExp2:
        e = Through(
                value(0), error(0), [](double x) { return std::exp2(x); }, kUnknown) +
            kTranscendental * u * s;
        break;
      case Op::kLog2:
        e = Through(
                value(0), error(0), [](double x) { return std::log2(x); }, 0) +
            kTranscendental * u * s;
        break;
      case Op::kSqrt:
        e = Through(value(0), error(0), [](double x) { return std::sqrt(x); }, 0) + u * s;
        break;
      case Op::kSin:
        // The argument is reduced by multiples of a rounded π, which its size tells in.
        e = std::min(2.0, error(0) + kTranscendental * u * std::max(1.0, size(0)));
        break;
      case Op::kMod:
        e = std::trunc((value(0) - error(0)) / value(1)) ==
                        std::trunc((value(0) + error(0)) / value(1)) &&
                    error(1) == 0
                ? error(0)
                : std::abs(value(1)) + error(1);
        break;
      case Op::kCmpLt:
      case Op::kCmpNe:
        e = error(0) + error(1) > 0 && std::abs(value(0) - value(1)) <= error(0) + error(1) ? 1 : 0;
        break;
      case Op::kWhere: {
        const size_t taken = value(0) != 0 ? 1 : 2;
        s = std::max(size(1), size(2));
        e = error(0) > 0 ? std::abs(value(1) - value(2)) + std::max(error(1), error(2))
                         : error(taken);
        break;
      }
      case Op::kCast:
        if (IsFloat(node.dtype)) {
          s = size(0);
          e = error(0) + u * std::abs(value(0));
        } else if (error(0) > 0) {
          const double low = std::trunc(value(0) - error(0));
          const double high = std::trunc(value(0) + error(0));
          e = node.dtype == DType::kBool ? std::abs(value(0)) <= error(0) : high - low;
        }
        break;
      default:  // kBitcast
        e = error(0) > 0 ? kUnknown : 0;
    }
  }

  // The error of a monotone function; unknown where the argument may reach `pole`.
  template <typename Function>
  static double Through(double x, double error, Function f, double pole) {
    if (error == 0) return 0;
    if (x - error <= pole && pole <= x + error) return kUnknown;
    return std::max(std::abs(f(x + error) - f(x)), std::abs(f(x - error) - f(x)));
  }

  const Graph& graph_;
  const std::vector<Array> values_;
  std::vector<Track> tracks_;
};

}  // namespace

std::vector<Bounded> EvaluateWithBounds(const Graph& graph, std::span<const Bounded> inputs,
                                        std::span<const NodeId> nodes) {
  std::vector<NodeId> ids;
  const Graph primitive = ExpandDerived(graph, ids);
  std::vector<Array> given;
  for (const Bounded& input : inputs) given.push_back(input.value);
  std::vector<NodeId> all(primitive.size());
  for (NodeId id = 0; id < primitive.size(); ++id) all[id] = id;
  Bounder bounder(primitive, EvaluateNodes(primitive, given, all, Precision::kOwnDType));
  for (size_t i = 0; i < inputs.size(); ++i) {
    bounder.Input(primitive.inputs()[i], inputs[i].error);
  }
  for (NodeId id = 0; id < primitive.size(); ++id) {
    if (primitive.node(id).op != Op::kInput) bounder.Compute(id);
  }
  std::vector<Bounded> results;
  for (NodeId node : nodes) results.push_back(bounder.Result(ids.at(node)));
  return results;
}

Bounded Exactly(Array value) {
  const size_t count = static_cast<size_t>(NumElements(value.shape));
  return {std::move(value), std::vector<double>(count, 0.0)};
}

double Norm(std::span<const double> values) {
  double sum = 0;
  for (double x : values) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace l3c::tensor
