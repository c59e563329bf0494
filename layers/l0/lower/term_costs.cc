#include "layers/l0/lower/term_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "layers/l0/lower/forms.h"

namespace l3c::l0::lower {

using egraph::CostVector;
using egraph::EGraphView;
using egraph::ENodeRef;
using egraph::Evidence;
using tensor::NumElements;

namespace {

enum TermKind : size_t {
  kLoadTerm,
  kLoadRowTerm,
  kFetchTerm,
  kHoistTerm,
  kLeafTerm,
  kUnaryTerm,
  kBinaryTerm,
  kTernaryTerm,
  kViewTerm,
  kFoldTerm,
  kDotTerm,
  kRowTerm,
  kScatterTerm,
  kAddUpTerm,
  kStoreTerm,
  kBesideTerm,
  kRunTerm,
  kWriteTerm,
  kOverwriteTerm,
  kCopyTerm,
};
constexpr const char* kTermNames[] = {"Load",   "LoadRow", "Fetch",   "Hoist",     "Leaf",
                                      "Unary",  "Binary",  "Ternary", "View",      "Fold",
                                      "Dot",    "Row",     "Scatter", "AddUp",     "Store",
                                      "Beside", "Run",     "Write",   "Overwrite", "Copy"};

// Bytes, launches and operations follow from the kernel's text.
constexpr Evidence kCounted = Evidence::kAnalytical;

Evidence EvidenceOf(std::string_view name) {
  for (Evidence e : {Evidence::kMeasured, Evidence::kInterpolated, Evidence::kExtrapolated}) {
    if (egraph::EvidenceName(e) == name) return e;
  }
  return Evidence::kAnalytical;
}

}  // namespace

TermCosts::TermCosts(const egraph::EGraph& graph, const ValueTable& table,
                     const CandidateSet& candidates, const std::vector<DotForm>& forms,
                     const KernelCostModel& costs, DefinitionAt definition_at,
                     std::set<int64_t> excluded)
    : table_(table),
      candidates_(candidates),
      forms_(forms),
      costs_(costs),
      definition_at_(std::move(definition_at)),
      excluded_(std::move(excluded)) {
  for (const char* name : kTermNames) functions_.push_back(graph.FindFunction(name));
  for (uint32_t k = 0; k < candidates.kernels.size(); ++k) {
    for (uint32_t c = 0; c < candidates.kernels[k].contexts.size(); ++c) owner_.emplace_back(k, c);
  }
  schema_.components = {
      {"time", "s"}, {"launches", ""}, {"bytes", "B"}, {"flops", "FLOP"}, {"kept", "B"}};
}

CostVector TermCosts::NodeCost(const EGraphView& view, ENodeRef node) const {
  const egraph::FunctionId f = view.NodeFunction(node);
  const size_t term = std::find(functions_.begin(), functions_.end(), f) - functions_.begin();
  const egraph::EGraph& graph = view.graph();
  const auto arg = [&](size_t i) { return graph.AsI64(view.NodeArgs(node)[i]); };
  CostVector cost;
  if (!excluded_.empty() && excluded_.contains(DefinitionOf(view, node))) {
    return cost.Set(kTime, std::numeric_limits<double>::infinity(), kCounted);
  }
  switch (term) {
    case kLoadTerm:
      return Load(arg(0), arg(1));
    case kLoadRowTerm:
      return LoadRow(arg(0), arg(1));
    case kFetchTerm:
      return Fetch(arg(0), arg(1));
    case kUnaryTerm:
    case kBinaryTerm:
    case kTernaryTerm:
      return Compute(arg(0), arg(1), false);
    case kRowTerm:
      return Compute(arg(0), arg(1), true);
    case kScatterTerm:
      return Scatter(arg(0), arg(1));
    case kAddUpTerm:
      return AddUp(arg(0), arg(1));
    case kFoldTerm: {
      // One addition a point of the pass.
      const auto [v, d] = definition_at_(arg(0));
      const auto [k, c] = owner_[static_cast<size_t>(arg(2))];
      const Candidate& kernel = candidates_.kernels[k];
      const Width width = WidthOf(kernel, c);
      const double points = kernel.contexts[c].points;
      const ComputeWork work = {table_.values[v].definitions[d].op, table_.values[v].dtype, points,
                                width.lanes, width.blocks};
      return cost.Set(kTime, costs_.ComputeSeconds(work), EvidenceOf(costs_.ComputeEvidence(work)))
          .Set(kFlops, points, kCounted);
    }
    case kDotTerm: {
      const DotForm& form = forms_[static_cast<size_t>(arg(2))];
      const auto [v, d] = definition_at_(arg(0));
      const Definition& product = table_.values[v].definitions[d];
      const double terms = product.op == tensor::Op::kBf16Matmul ? 2 : 1;
      const double k = terms * static_cast<double>(table_.values[product.inputs[0]].shape.back());
      return cost.Set(kTime, form.seconds, EvidenceOf(form.evidence))
          .Set(kBytes,
               static_cast<double>(Bytes(table_.values[form.left]) +
                                   Bytes(table_.values[form.right])),
               kCounted)
          .Set(kFlops, 2 * k * static_cast<double>(NumElements(table_.values[v].shape)), kCounted);
    }
    case kStoreTerm:
    case kBesideTerm: {
      const auto bytes = static_cast<double>(Bytes(table_.values[static_cast<size_t>(arg(0))]));
      return Stored(arg(0), arg(1)).Set(kKept, bytes, kCounted);
    }
    case kWriteTerm:
      return Stored(arg(0), arg(1));
    case kOverwriteTerm:
      return HandedOutByColumns(arg(0), arg(1));
    case kRunTerm: {
      const Candidate& kernel = candidates_.kernels[static_cast<size_t>(arg(0))];
      const double blocks = WidthOf(kernel, 0).blocks;
      return cost
          .Set(kTime, costs_.LaunchSeconds(blocks), EvidenceOf(costs_.LaunchEvidence(blocks)))
          .Set(kLaunches, 1, kCounted);
    }
    case kCopyTerm: {
      const Value& value = table_.values[static_cast<size_t>(arg(0))];
      AccessWork work;
      work.points = static_cast<double>(NumElements(value.shape));
      work.bytes = work.buffer = static_cast<double>(Bytes(value));
      work.element = static_cast<int>(tensor::SizeOf(value.dtype));
      work.lanes = costs_.target().lanes;
      const double seconds =
          costs_.LoadSeconds(work) + costs_.StoreSeconds(work) + costs_.LaunchSeconds(1);
      return cost.Set(kTime, seconds, EvidenceOf(costs_.AccessEvidence(work)))
          .Set(kLaunches, 1, kCounted)
          .Set(kBytes, 2 * work.bytes, kCounted);
    }
    default:
      return cost;  // names what is there already
  }
}

namespace {

double LaneUse(int64_t extent, double lanes) {
  if (extent <= 1) return 1;
  const double vectors = std::ceil(static_cast<double>(extent) / lanes);
  return std::max(1.0, static_cast<double>(extent) / vectors);
}

AxisId LastLongAxis(const Candidate& kernel) {
  for (AxisId a = kernel.root_axes; a-- > 0;) {
    if (kernel.extents[a] > 1) return a;
  }
  return 0;
}

// What a product takes longer, as a part of its multiply-adds, where workers get columns of it
// instead of rows: each then reads all of the left factor and steps over the rows of the result.
// Measured: 0.26 to 0.41 of the whole product.
constexpr double kByColumns = 0.25;

// Whether the pass has a result for each lane: then lanes may run along the space and the pass is
// walked in step.
bool IsColumnPass(const Candidate& kernel, const Context& context) {
  const Entry* entry = kernel.Find(0, context.reduction);
  const AxisId last = LastLongAxis(kernel);
  return entry != nullptr &&
         (kernel.root_axes == 0 || kernel.extents[last] <= 1 || ((entry->axes >> last) & 1));
}

}  // namespace

TermCosts::Width TermCosts::WidthOf(const Candidate& kernel, uint32_t context) const {
  const double lanes = costs_.target().lanes;
  double space = 1;
  for (AxisId a = 0; a < kernel.root_axes; ++a) space *= static_cast<double>(kernel.extents[a]);
  const int64_t last = kernel.root_axes == 0 ? 1 : kernel.extents[LastLongAxis(kernel)];
  Width width;
  if (context == 0) {
    width.lanes = LaneUse(last, lanes);
    width.blocks = std::max(1.0, space / (lanes * 4));
    return width;
  }
  const Context& pass = kernel.contexts[context];
  const int64_t inner = pass.axes.empty() ? 1 : kernel.extents[pass.axes.back()];
  double rows = pass.points;
  for (AxisId a : pass.axes) rows /= static_cast<double>(kernel.extents[a]);
  if (IsColumnPass(kernel, pass) && last > 1) {
    width.lanes = std::max(LaneUse(last, lanes), LaneUse(inner, lanes));
    width.blocks = std::max(1.0, rows / width.lanes);
  } else {
    width.lanes = LaneUse(inner, lanes);
    width.blocks = std::max(1.0, rows);
  }
  return width;
}

std::optional<AccessWork> TermCosts::LoadWork(int64_t v, int64_t c) const {
  const auto [k, context] = owner_[static_cast<size_t>(c)];
  const Candidate& kernel = candidates_.kernels[k];
  const Value& value = table_.values[static_cast<size_t>(v)];
  const Entry* entry = kernel.Find(context, static_cast<ValueId>(v));
  // A gather's table has no entry; the gather itself pays for its rows.
  if (!entry) return std::nullopt;
  AccessWork work;
  work.points = entry->points;
  work.element = static_cast<int>(tensor::SizeOf(value.dtype));
  work.buffer = static_cast<double>(Bytes(value));
  work.bytes = std::min(work.buffer, work.points * work.element);
  const Width width = WidthOf(kernel, context);
  work.lanes = width.lanes;
  work.blocks = width.blocks;
  const Affine flat = Flatten(entry->maps[0], value.shape);
  std::vector<AxisId> lanes_along = {LastLongAxis(kernel)};
  if (context != 0) {
    const Context& pass = kernel.contexts[context];
    if (!IsColumnPass(kernel, pass)) lanes_along.clear();
    if (!pass.axes.empty()) lanes_along.push_back(pass.axes.back());
  }
  work.pattern = Pattern::kBroadcast;
  for (AxisId a : lanes_along) {
    for (const auto& [axis, coefficient] : flat.terms) {
      if (axis != a) continue;
      if (coefficient == 1) {
        work.pattern = Pattern::kContiguous;
      } else if (work.pattern != Pattern::kContiguous) {
        work.pattern = Pattern::kStrided;
      }
    }
  }
  return work;
}

CostVector TermCosts::Load(int64_t v, int64_t c) const {
  CostVector cost;
  const std::optional<AccessWork> work = LoadWork(v, c);
  if (!work) return cost;
  return cost.Set(kTime, costs_.LoadSeconds(*work), EvidenceOf(costs_.AccessEvidence(*work)))
      .Set(kBytes, work->bytes, kCounted);
}

namespace {

// As if the buffer were one row of it.
AccessWork NearWork(AccessWork work, const Candidate& kernel, const Entry& entry) {
  work.buffer = std::min(work.buffer, RowBytes(kernel, entry));
  return work;
}

}  // namespace

CostVector TermCosts::LoadRow(int64_t v, int64_t c) const {
  const auto [k, context] = owner_[static_cast<size_t>(c)];
  const Candidate& kernel = candidates_.kernels[k];
  const Entry& entry = *kernel.Find(context, static_cast<ValueId>(v));
  const AccessWork work = NearWork(*LoadWork(v, c), kernel, entry);
  CostVector cost;
  return cost.Set(kTime, costs_.LoadSeconds(work), EvidenceOf(costs_.AccessEvidence(work)))
      .Set(kBytes, work.bytes, kCounted);
}

CostVector TermCosts::Fetch(int64_t v, int64_t k) const {
  const Candidate& kernel = candidates_.kernels[static_cast<size_t>(k)];
  CostVector cost;
  for (uint32_t context = 0; context < kernel.contexts.size(); ++context) {
    const Entry* entry = kernel.Find(context, static_cast<ValueId>(v));
    if (entry == nullptr || !entry->readable || !IsNear(table_, kernel, *entry)) continue;
    const AccessWork work = *LoadWork(v, int64_t{kernel.first_context} + context);
    const double beyond =
        costs_.LoadSeconds(work) - costs_.LoadSeconds(NearWork(work, kernel, *entry));
    return cost.Set(kTime, std::max(0.0, beyond), EvidenceOf(costs_.AccessEvidence(work)));
  }
  return cost;
}

CostVector TermCosts::Compute(int64_t number, int64_t c, bool row) const {
  const auto [v, d] = definition_at_(number);
  const auto [k, context] = owner_[static_cast<size_t>(c)];
  const Candidate& kernel = candidates_.kernels[k];
  const Value& value = table_.values[v];
  const Entry* entry = kernel.Find(context, v);
  const Width width = WidthOf(kernel, context);
  CostVector cost;
  const double points = entry ? entry->computed_points : 0;
  // What depends on no lane is computed once for all of them.
  double lanes = width.lanes;
  if (entry && context == 0 && !((entry->computed_axes >> LastLongAxis(kernel)) & 1)) lanes = 1;
  if (row) {
    AccessWork work;
    work.points = points;
    work.element = static_cast<int>(tensor::SizeOf(value.dtype));
    work.bytes = points * work.element;
    work.buffer = static_cast<double>(Bytes(table_.values[value.definitions[d].inputs[0]]));
    work.pattern = value.shape.size() > 1 ? Pattern::kContiguous : Pattern::kStrided;
    work.lanes = lanes;
    work.blocks = width.blocks;
    return cost.Set(kTime, costs_.LoadSeconds(work), EvidenceOf(costs_.AccessEvidence(work)))
        .Set(kBytes, work.bytes, kCounted);
  }
  const ComputeWork work = {value.definitions[d].op, value.dtype, points, lanes, width.blocks};
  return cost.Set(kTime, costs_.ComputeSeconds(work), EvidenceOf(costs_.ComputeEvidence(work)))
      .Set(kFlops, points, kCounted);
}

// Each element is read, added to and written, row after row; the root's zeros are its store.
CostVector TermCosts::Scatter(int64_t number, int64_t c) const {
  const auto [v, d] = definition_at_(number);
  const Candidate& kernel = candidates_.kernels[owner_[static_cast<size_t>(c)].first];
  const Value& value = table_.values[v];
  const Value& updates = table_.values[value.definitions[d].inputs[1]];
  AccessWork work;
  work.points = static_cast<double>(NumElements(updates.shape));
  work.element = static_cast<int>(tensor::SizeOf(value.dtype));
  work.buffer = static_cast<double>(Bytes(value));
  work.bytes = work.points * work.element;
  work.lanes = WidthOf(kernel, 0).lanes;
  const double seconds = costs_.LoadSeconds(work) + costs_.StoreSeconds(work);
  CostVector cost;
  return cost.Set(kTime, seconds, EvidenceOf(costs_.AccessEvidence(work)))
      .Set(kBytes, 2 * work.bytes, kCounted)
      .Set(kFlops, work.points, kCounted);
}

// The element of the column is read, added to and written for every row; it is near all the while.
CostVector TermCosts::AddUp(int64_t number, int64_t c) const {
  const auto [v, d] = definition_at_(number);
  const Candidate& kernel = candidates_.kernels[owner_[static_cast<size_t>(c)].first];
  const Value& value = table_.values[v];
  const Value& rows = table_.values[value.definitions[d].inputs[0]];
  const Width width = WidthOf(kernel, 0);
  AccessWork work;
  work.points = static_cast<double>(NumElements(rows.shape));
  work.element = static_cast<int>(tensor::SizeOf(value.dtype));
  work.buffer = work.bytes = static_cast<double>(rows.shape.back()) * work.element;
  work.lanes = width.lanes;
  work.blocks = width.blocks;
  const ComputeWork sum = {tensor::Op::kAdd, value.dtype, work.points, width.lanes, width.blocks};
  const double seconds =
      costs_.LoadSeconds(work) + costs_.StoreSeconds(work) + costs_.ComputeSeconds(sum);
  CostVector cost;
  return cost.Set(kTime, seconds, EvidenceOf(costs_.AccessEvidence(work)))
      .Set(kFlops, work.points, kCounted);
}

CostVector TermCosts::HandedOutByColumns(int64_t group, int64_t k) const {
  const Candidate& kernel = candidates_.kernels[static_cast<size_t>(k)];
  CostVector cost;
  if (kernel.group == group || kernel.anchor < 0) return cost;
  const Value& product = table_.values[kernel.anchor];
  double points = 0;
  for (const Definition& d : product.definitions) {
    if (!IsContraction(d.op)) continue;
    points = static_cast<double>(NumElements(product.shape)) *
             static_cast<double>(table_.values[d.inputs[0]].shape.back());
  }
  const Width width = WidthOf(kernel, 0);
  const ComputeWork work = {tensor::Op::kMul, product.dtype, points, width.lanes, width.blocks};
  return cost.Set(kTime, kByColumns * costs_.ComputeSeconds(work),
                  EvidenceOf(costs_.ComputeEvidence(work)));
}

CostVector TermCosts::Stored(int64_t v, int64_t k) const {
  const Candidate& kernel = candidates_.kernels[static_cast<size_t>(k)];
  const Value& value = table_.values[static_cast<size_t>(v)];
  AccessWork work;
  work.points = static_cast<double>(NumElements(value.shape));
  work.bytes = work.buffer = static_cast<double>(Bytes(value));
  work.element = static_cast<int>(tensor::SizeOf(value.dtype));
  const Width width = WidthOf(kernel, 0);
  work.lanes = width.lanes;
  work.blocks = width.blocks;
  CostVector cost;
  return cost.Set(kTime, costs_.StoreSeconds(work), EvidenceOf(costs_.AccessEvidence(work)))
      .Set(kBytes, work.bytes, kCounted);
}

}  // namespace l3c::l0::lower
