// What the updates that move parameters share.
#pragma once

#include "layers/l2/updates.h"

namespace l3c::l2 {

// The learning rate of this step, f64 [].
tensor::NodeId LearningRate(const UpdateStep& step, double base);
// 1 − βᵗ in f64, t = completed + 1: what a mean that began at zero has gathered of its weight.
tensor::NodeId BiasCorrection(tensor::Graph& g, tensor::NodeId completed, double beta);
// A f64 scalar in the dtype of parameter p, rounded once.
tensor::NodeId ForParameter(const UpdateStep& step, size_t p, tensor::NodeId scalar);
// A tensor times a number, as scalar.
tensor::NodeId TimesScalar(tensor::Graph& g, tensor::NodeId a, double value);
// decay·mean + (1 − decay)·value
tensor::NodeId RunningMean(tensor::Graph& g, tensor::NodeId mean, tensor::NodeId value,
                           double decay);

}  // namespace l3c::l2
