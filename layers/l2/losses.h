// The losses that a term of an L3 objective can mean, and how terms join into one number.
//
//   divergence(out, target)   ce | kl | error, of distributions; mse | mae | huber | bce
//   reconstruction(in, out)   mse | mae | huber | bce
//   norm(params | out, p)     fixed by the spec: (Σ|x|ᵖ)^(1/p); over all parameters, or per sample
//   contrastive(a, p, n)      triplet(margin: m) | info_nce(temperature: t)
//
// A loss of samples gives one number a row; rows are joined as Σ mask·loss / Σ mask, where mask is
// 0 on the rows that pad the last batch. The objective is Σ weight·term.
//
// The formula of each stands where it is defined: loss_*.cc.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l2/ir.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// What a loss of samples is given. All nodes are [batch, …].
struct LossOperands {
  tensor::NodeId output = 0;
  std::optional<tensor::NodeId> log_output;  // where the network ends in a distribution
  int64_t classes = 0;                       // of the output, when it is a distribution
  tensor::NodeId target = 0;
  bool target_is_label = false;            // one class index a row
  std::optional<tensor::NodeId> negative;  // kContrast: the target is the positive
};

struct LossRows {
  tensor::NodeId loss = 0;             // f32 [batch]
  std::optional<tensor::NodeId> kept;  // f32 [batch]: 0 where the row counts nothing
};

// What a target looks like, as far as a choice of loss must know it.
enum class TargetKind : uint8_t { kLabel, kDistribution, kTensor, kContrast };

struct LossEntry {
  Entry form;
  std::function<bool(TargetKind)> accepts;
  // `graph` gains the rows' losses.
  std::function<LossRows(tensor::Graph& graph, const Form&, const LossOperands&)> expand;
  // The label that counts nothing and need be no class, where the form names one.
  std::function<std::optional<int64_t>(const Form&)> ignored_label;
};

const LossEntry* FindLoss(std::string_view name);
std::optional<int64_t> IgnoredLabel(const Form& loss);  // nothing where every label counts
const std::deque<LossEntry>& AllLosses();
void RegisterLoss(LossEntry entry);  // as RegisterLayer

// The families, one file each.
std::vector<LossEntry> CrossEntropyLosses();  // loss_cross_entropy.cc: ce kl error
std::vector<LossEntry> DistanceLosses();      // loss_distance.cc: mse mae huber bce
std::vector<LossEntry> ContrastiveLosses();   // loss_contrastive.cc: triplet info_nce

// The loss that a term means when none is chosen: the first entry that accepts its target.
Form DefaultLoss(TargetKind target);

}  // namespace l3c::l2
