// Random small tensor programs.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::l0::lower {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

// Grows a graph by ops that fit what is there. All values are f32 of rank 0 to 3.
class ProgramMaker {
 public:
  explicit ProgramMaker(uint64_t seed) : engine_(seed) {}

  Graph Make(int ops) {
    const int64_t m = Pick({1, 3, 4, 7});
    const int64_t n = Pick({2, 5, 8});
    const int64_t k = Pick({1, 4, 6});
    Input("x", {m, n});
    Input("y", {n, k});
    Input("b", {n});
    labels_ = g_.AddInput("labels", tensor::DType::kU8, {m});
    NodeId s = Input("s_w", {n, k});
    NodeId t = Input("s_v", {m, n});
    NodeId c = Input("s_step", {});
    for (int i = 0; i < ops; ++i) Grow();
    // State is updated from itself and from something of its shape, where there is anything.
    g_.AddOutput("s_w", g_.Add(Op::kAdd, {s, Like(g_.node(s).shape)}));
    if (engine_() % 2) g_.AddOutput("s_v", g_.Add(Op::kMul, {t, Like(g_.node(t).shape)}));
    if (engine_() % 2) g_.AddOutput("s_step", g_.Add(Op::kAdd, {c, g_.Const(1.0)}));
    for (int i = 0; i < 2; ++i) {
      g_.AddOutput("out" + std::to_string(i), values_[engine_() % values_.size()]);
    }
    return std::move(g_);
  }

  // Sums and products of one value and of windows of it: shifted by padding and cut back to its
  // shape, so that a kernel reads the same value plainly and with zeros around it.
  Graph MakeWindows(int readers) {
    const int64_t m = Pick({1, 3, 4, 7});
    const int64_t n = Pick({2, 5, 8});
    const NodeId x = Input("x", {m, n});
    Input("b", {n});
    labels_ = g_.AddInput("labels", tensor::DType::kU8, {m});
    const NodeId s = Input("s_w", {m, n});
    const NodeId p = Producer(x);
    const int plain = static_cast<int>(engine_() % static_cast<uint64_t>(readers));
    NodeId sum = engine_() % 2 ? x : s;
    for (int i = 0; i < readers; ++i) {
      const NodeId read = i == plain ? p : Window(p);
      sum = g_.Add(engine_() % 3 ? Op::kAdd : Op::kMul, {sum, read});
      if (engine_() % 4 == 0) sum = Tame(sum);
    }
    g_.AddOutput("s_w", g_.Add(Op::kAdd, {s, Tame(sum)}));
    g_.AddOutput("out0", sum);
    g_.AddOutput("out1", engine_() % 2 ? g_.ReduceMax(Window(p), {0}) : p);
    return std::move(g_);
  }

 private:
  // A value of the shape of x that is not zero where x is.
  NodeId Producer(NodeId x) {
    const Shape shape = g_.node(x).shape;
    switch (engine_() % 7) {
      case 0:
        return g_.Full(1.5, shape);
      case 1: {
        tensor::Attributes iota;
        iota.ints = shape;
        iota.axis = 1;
        iota.dtype = tensor::DType::kI32;
        return g_.Cast(g_.Add(Op::kIota, {}, iota), tensor::DType::kF32);
      }
      case 2:
        return g_.Add(Op::kAdd, {x, g_.Full(2, shape)});
      case 3:
        return g_.Expand(g_.Reshape(g_.ReduceMax(x, {1}), {shape[0], 1}), shape);
      case 4:
        return g_.Add(Op::kGather, {x, g_.Cast(labels_, tensor::DType::kI32)});
      case 5: {
        tensor::Attributes random;
        random.ints = shape;
        return g_.Add(Op::kRandom, {g_.Const(7, tensor::DType::kU64)}, random);
      }
      default:
        return g_.Add(Op::kExp2, {Tame(x)});
    }
  }

  NodeId Window(NodeId a) {
    const Shape shape = g_.node(a).shape;
    const bool turned = engine_() % 4 == 0;
    if (turned) a = g_.Transpose(a);
    if (engine_() % 4 == 0) {
      tensor::Attributes axes;
      axes.ints = {static_cast<int64_t>(engine_() % 2)};
      a = g_.Add(Op::kFlip, {a}, axes);
    }
    tensor::Attributes pad;
    tensor::Attributes cut;
    for (int64_t extent : g_.node(a).shape) {
      const int64_t before = static_cast<int64_t>(engine_() % 3);
      const int64_t after = static_cast<int64_t>(engine_() % 3);
      const int64_t start = static_cast<int64_t>(engine_() % 5) % (before + after + 1);
      pad.ints.insert(pad.ints.end(), {before, after});
      cut.ints.insert(cut.ints.end(), {start, start + extent, 1});
    }
    const NodeId window = g_.Add(Op::kSlice, {g_.Add(Op::kPad, {a}, pad)}, cut);
    return turned ? g_.Transpose(window) : window;
  }

  int64_t Pick(std::vector<int64_t> from) { return from[engine_() % from.size()]; }

  NodeId Input(const std::string& name, Shape shape) {
    values_.push_back(g_.AddInput(name, tensor::DType::kF32, std::move(shape)));
    return values_.back();
  }

  NodeId Any() { return values_[engine_() % values_.size()]; }

  // A value of the shape, made by broadcasting where none is there.
  NodeId Like(const Shape& shape) {
    std::vector<NodeId> fits;
    for (NodeId v : values_) {
      if (g_.node(v).shape == shape) fits.push_back(v);
    }
    if (fits.empty()) return g_.Full(0.5, shape);
    return fits[engine_() % fits.size()];
  }

  void Keep(NodeId id) {
    if (tensor::NumElements(g_.node(id).shape) <= 4096) values_.push_back(id);
  }

  // Keeps magnitudes small, so that errors compare.
  NodeId Tame(NodeId a) { return g_.Add(Op::kSin, {a}); }

  void Grow() {
    const NodeId a = Any();
    const Shape shape = g_.node(a).shape;
    const size_t rank = shape.size();
    switch (engine_() % 18) {
      case 0:
      case 1:
        Keep(g_.Add(Op::kAdd, {a, Like(shape)}));
        break;
      case 2:
      case 3:
        Keep(g_.Add(Op::kMul, {a, Like(shape)}));
        break;
      case 4:
        Keep(g_.Add(Op::kMax, {a, Like(shape)}));
        break;
      case 5:
        Keep(Tame(a));
        break;
      case 6:
        Keep(g_.Add(Op::kExp2, {Tame(a)}));
        break;
      case 7:
        Keep(g_.Add(Op::kWhere, {g_.Add(Op::kCmpLt, {a, Like(shape)}), a, Like(shape)}));
        break;
      case 8: {
        if (rank == 0) break;
        std::vector<int64_t> axes = {static_cast<int64_t>(engine_() % rank)};
        if (rank > 1 && engine_() % 3 == 0) axes = {0, 1};
        const NodeId r = engine_() % 2 ? g_.ReduceSum(a, axes) : g_.ReduceMax(a, axes);
        Keep(r);
        // Often a statistic goes back to its rows or columns.
        if (axes.size() == 1 && engine_() % 2) {
          Shape one = shape;
          one[axes[0]] = 1;
          Keep(g_.Add(Op::kMul, {a, g_.Expand(g_.Reshape(r, one), shape)}));
        }
        break;
      }
      case 9: {
        if (rank != 2) break;
        for (NodeId b : values_) {
          if (g_.node(b).shape.size() == 2 && g_.node(b).shape[0] == shape[1]) {
            Keep(Tame(g_.Matmul(a, b)));
            break;
          }
        }
        break;
      }
      case 10:
        if (rank >= 2) Keep(g_.Transpose(a));
        break;
      case 11: {
        if (rank == 0) break;
        Shape flat = {tensor::NumElements(shape)};
        if (rank == 1 && shape[0] % 2 == 0) flat = {2, shape[0] / 2};
        Keep(g_.Reshape(a, flat));
        break;
      }
      case 12: {
        if (rank == 0 || rank > 2) break;
        Shape grown = shape;
        grown.insert(grown.begin(), 3);
        Keep(g_.Expand(a, grown));
        break;
      }
      case 14: {
        // One-hot rows, as a classifier's loss has them.
        const int64_t classes = 4;
        const NodeId c = g_.Cast(labels_, tensor::DType::kI32);
        const int64_t rows = g_.node(c).shape[0];
        tensor::Attributes iota;
        iota.ints = {rows, classes};
        iota.axis = 1;
        iota.dtype = tensor::DType::kI32;
        const NodeId wide = g_.Expand(g_.Reshape(c, {rows, 1}), {rows, classes});
        const NodeId other = g_.Add(Op::kCmpNe, {g_.Add(Op::kIota, {}, iota), wide});
        Keep(g_.Add(Op::kWhere, {other, g_.Full(0, {rows, classes}), Like({rows, classes})}));
        break;
      }
      case 15: {
        if (rank == 0) break;
        // Rows of a table, taken by number.
        const NodeId index = g_.Cast(labels_, tensor::DType::kI32);
        Keep(g_.Add(Op::kGather, {a, index}));
        break;
      }
      case 17: {
        // Rows added up by number, some of them out of range.
        const NodeId index = g_.Cast(labels_, tensor::DType::kI32);
        if (rank == 0 || shape[0] != g_.node(index).shape[0]) break;
        tensor::Attributes attr;
        attr.ints = shape;
        attr.ints[0] = 3;
        Keep(Tame(g_.Add(Op::kScatterAdd, {index, a}, attr)));
        break;
      }
      case 16: {
        // Through wider arithmetic and back, and a cast to integers.
        const NodeId wide = g_.Cast(Tame(a), tensor::DType::kF64);
        const NodeId sum = g_.Add(Op::kAdd, {wide, g_.Add(Op::kMul, {wide, wide})});
        Keep(g_.Cast(sum, tensor::DType::kF32));
        break;
      }
      case 13: {
        if (rank == 0) break;
        tensor::Attributes attr;
        if (engine_() % 3 == 0) {
          attr.ints = {static_cast<int64_t>(engine_() % rank)};
          Keep(g_.Add(Op::kFlip, {a}, attr));
        } else if (engine_() % 2) {
          for (size_t d = 0; d < rank; ++d) {
            attr.ints.push_back(static_cast<int64_t>(engine_() % 2));
            attr.ints.push_back(static_cast<int64_t>(engine_() % 3));
          }
          Keep(g_.Add(Op::kPad, {a}, attr));
        } else {
          for (size_t d = 0; d < rank; ++d) {
            attr.ints.insert(attr.ints.end(), {shape[d] > 1 ? 1 : 0, shape[d], 1 + (d == 0)});
          }
          Keep(g_.Add(Op::kSlice, {a}, attr));
        }
        break;
      }
    }
  }

  std::mt19937_64 engine_;
  Graph g_;
  std::vector<NodeId> values_;
  NodeId labels_ = 0;
};

}  // namespace l3c::l0::lower
