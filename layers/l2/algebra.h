// The tensor algebra as expansions of layers, losses and updates write it: a node and what it
// means, with every constant in the dtype of the tensor that it meets. A batch is the first axis.
#pragma once

#include <string_view>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::l2 {

// An op by its name: Apply(g, "sub", {a, b}).
tensor::NodeId Apply(tensor::Graph& g, std::string_view name, std::vector<tensor::NodeId> operands,
                     tensor::Attributes attributes = {});

tensor::NodeId Add(tensor::Graph& g, tensor::NodeId a, tensor::NodeId b);
tensor::NodeId Sub(tensor::Graph& g, tensor::NodeId a, tensor::NodeId b);
tensor::NodeId Mul(tensor::Graph& g, tensor::NodeId a, tensor::NodeId b);

// `value` in the dtype and shape of `like`.
tensor::NodeId FullLike(tensor::Graph& g, double value, tensor::NodeId like);
tensor::NodeId TimesConstant(tensor::Graph& g, tensor::NodeId a, double value);
tensor::NodeId PlusConstant(tensor::Graph& g, tensor::NodeId a, double value);
// A tensor times a scalar node of its dtype.
tensor::NodeId Scaled(tensor::Graph& g, tensor::NodeId a, tensor::NodeId scalar);
// In another float dtype, or as it is.
tensor::NodeId As(tensor::Graph& g, tensor::NodeId a, tensor::DType dtype);
// x where `condition`, else `other` everywhere.
tensor::NodeId WhereElse(tensor::Graph& g, tensor::NodeId condition, tensor::NodeId x,
                         double other);

// aᵉ of a ≥ 0, zero below the least normal number: there a slope may be infinite, as that of a root
// at zero, and is cut to zero. NaN is kept.
tensor::NodeId PowerOfPositive(tensor::Graph& g, tensor::NodeId a, double e);

// Sums of all elements ([]), and of those of each row ([batch]).
tensor::NodeId SumAll(tensor::Graph& g, tensor::NodeId a);
tensor::NodeId SumRows(tensor::Graph& g, tensor::NodeId a);
// Elements of one row, of the last axis.
double RowElements(const tensor::Graph& g, tensor::NodeId a);

// [...] → [..., 1] → the shape `like` has: a figure of each last axis, spread over it again.
tensor::NodeId SpreadLast(tensor::Graph& g, tensor::NodeId reduced, const tensor::Shape& shape);
tensor::NodeId SumLast(tensor::Graph& g, tensor::NodeId a);
tensor::NodeId MaxLast(tensor::Graph& g, tensor::NodeId a);
tensor::NodeId MeanLast(tensor::Graph& g, tensor::NodeId a);

// eˣ/Σeˣ over the last axis, and its logarithm without the underflow of log(softmax). The greatest
// element is subtracted first, a constant to differentiation: the result does not depend on it.
tensor::NodeId Softmax(tensor::Graph& g, tensor::NodeId x);
tensor::NodeId LogSoftmax(tensor::Graph& g, tensor::NodeId x);

// The index along `axis` at every element of `shape`.
tensor::NodeId Iota(tensor::Graph& g, tensor::Shape shape, int64_t axis, tensor::DType dtype);

// Side by side along an axis: each padded with zeros to the whole extent, then added.
tensor::NodeId Concatenate(tensor::Graph& g, const std::vector<tensor::NodeId>& parts, size_t axis);
// Elements start, start + step, … below stop of one axis.
tensor::NodeId SliceAxis(tensor::Graph& g, tensor::NodeId a, size_t axis, int64_t start,
                         int64_t stop, int64_t step = 1);

// Random numbers, the same wherever and whenever they are computed from the same key (u64 []):
// uniform in [0, 1), and normal of mean 0 and variance 1 (Box and Muller 1958).
tensor::NodeId Uniform(tensor::Graph& g, tensor::NodeId key, tensor::Shape shape);
tensor::NodeId Normal(tensor::Graph& g, tensor::NodeId key, tensor::Shape shape);
// A key of its own for each (key, label).
tensor::NodeId DeriveKey(tensor::Graph& g, tensor::NodeId key, std::string_view label);

}  // namespace l3c::l2
