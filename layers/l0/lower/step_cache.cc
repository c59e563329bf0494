#include "layers/l0/lower/step_cache.h"

#include <iterator>
#include <utility>

#include "egraph/rule_history.h"
#include "layers/l0/kernel_text.h"
#include "layers/support/binary.h"
#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"
#include "layers/support/source.h"

// One function a type, for both directions; see layers/support/binary.h.
namespace l3c::search {

template <class Archive>
void Fields(Archive& archive, CostComponent& c) {
  archive(c.name, c.value, c.unit, c.evidence);
}
template <class Archive>
void Fields(Archive& archive, Loser& l) {
  archive(l.label, l.cost, l.difference, l.decided_by);
}
template <class Archive>
void Fields(Archive& archive, RuleUse& r) {
  archive(r.name, r.file, r.line);
}
template <class Archive>
void Fields(Archive& archive, Pruned& p) {
  archive(p.what, p.why, p.count);
}
template <class Archive>
void Fields(Archive& archive, Decision& d) {
  archive(d.id, d.chosen, d.cost, d.losers, d.rules, d.pruned, d.forced);
}
template <class Archive>
void Fields(Archive& archive, SearchReport& r) {
  archive(r.egraph_nodes, r.egraph_classes, r.work, r.work_budget, r.stop_reason, r.candidates,
          r.scored);
}
// Without traces: steps that have any are not kept.
template <class Archive>
void Fields(Archive& archive, Explanation& e) {
  archive(e.lowering, e.decisions, e.pruned, e.cuts, e.report);
}

}  // namespace l3c::search

namespace l3c::tensor {

template <class Archive>
void Fields(Archive& archive, Attributes& a) {
  archive(a.ints, a.axis, a.scalar, a.dtype);
}

}  // namespace l3c::tensor

namespace l3c::l0::lower {

template <class Archive>
void Fields(Archive& archive, Storage& s) {
  archive(s.value, s.kernel, s.again);
}
template <class Archive>
void Fields(Archive& archive, Binding& b) {
  archive(b.storage, b.state);
}
template <class Archive>
void Fields(Archive& archive, ChosenCopy& c) {
  archive(c.from, c.state);
}
template <class Archive>
void Fields(Archive& archive, StepInput& i) {
  archive(i.kind, i.node, i.field, i.state, i.order);
}
template <class Archive>
void Fields(Archive& archive, StepOutput& o) {
  archive(o.kind, o.node, o.state, o.name, o.order);
}
// Whoever adds a member writes it here as well.
static_assert(sizeof(Storage) == 12 && sizeof(Binding) == 16 && sizeof(ChosenCopy) == 16);
static_assert(sizeof(Launch) == sizeof(Kernel) + sizeof(std::vector<Binding>) +
                                    sizeof(std::string) + sizeof(double) +
                                    8);  // `own`: steps that have any are not kept
// The packing is forced, if at all, when the plan is there.
static_assert(sizeof(StepPlan) == 4 * sizeof(std::vector<int>) + 2 * sizeof(double));

namespace {

std::optional<Kernel> ReadKernel(std::string text) {
  const support::SourceFile source("kernel", std::move(text));
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  std::optional<Kernel> kernel = ParseKernel(parser);
  if (diagnostics.has_errors()) return std::nullopt;
  return kernel;
}

}  // namespace

std::string StepKey(const Step& step, const KernelCostModel& costs, const RuleSources& rules,
                    const ChooseOptions& options) {
  const std::string figures = costs.figures();
  if (figures.empty() || !options.added.empty() || !step.own.empty()) return "";
  support::BinaryWriter key;
  key(step.name, step.made, step.inputs, step.outputs, step.memory, step.graph.size());
  for (const tensor::Node& node : step.graph.nodes()) {
    key(tensor::Definition(node.op).name, node.inputs, node.attr, node.dtype, node.shape,
        node.name);
  }
  key(figures, std::string(costs.evidence()), rules.size());
  for (const auto& [name, source] : rules) key(name, source.path, source.text);
  key(options.mode, options.budget.work, options.budget.egraph_nodes, options.budget.nodes_given,
      options.budget.candidates, options.budget.top, options.prefix, options.explain,
      options.numerics, options.seconds_per_byte);
  for (const auto& [id, label] : options.forced) {
    if (options.Concerns(id)) key(id, label);
  }
  return key.Take();
}

std::string WritePlannedStep(const PlannedStep& planned) {
  support::BinaryWriter out;
  out(planned.explanation, planned.plan.seconds, planned.plan.cost, planned.plan.copies,
      planned.plan.reports, planned.plan.launches.size());
  for (const Launch& launch : planned.plan.launches) {
    out(PrintKernel(launch.kernel), launch.bindings, launch.id, launch.seconds);
  }
  out(planned.table.values.size());
  for (const Value& value : planned.table.values) {
    out(value.dtype, value.shape, value.name, value.memory, value.input);
  }
  return out.Take();
}

std::optional<PlannedStep> ReadPlannedStep(std::string_view bytes) {
  support::BinaryReader in(bytes);
  PlannedStep planned;
  size_t launches = 0, values = 0;
  in(planned.explanation, planned.plan.seconds, planned.plan.cost, planned.plan.copies,
     planned.plan.reports, launches);
  for (size_t i = 0; i < launches && in.ok(); ++i) {
    std::string text;
    Launch launch;
    in(text, launch.bindings, launch.id, launch.seconds);
    std::optional<Kernel> kernel = ReadKernel(std::move(text));
    if (!kernel) return std::nullopt;
    launch.kernel = *std::move(kernel);
    planned.plan.launches.push_back(std::move(launch));
  }
  in(values);
  for (size_t i = 0; i < values && in.ok(); ++i) {
    Value value;
    in(value.dtype, value.shape, value.name, value.memory, value.input);
    planned.table.values.push_back(std::move(value));
  }
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return planned;
}

void AddExplanation(search::Explanation step, search::Explanation& whole) {
  const auto append = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(step.decisions, whole.decisions);
  append(step.pruned, whole.pruned);
  append(step.cuts, whole.cuts);
  search::SearchReport& sum = whole.report;
  const search::SearchReport& own = step.report;
  sum.egraph_nodes += own.egraph_nodes;
  sum.egraph_classes += own.egraph_classes;
  sum.work += own.work;
  sum.work_budget = own.work_budget;
  sum.candidates += own.candidates;
  sum.scored += own.scored;
  // The first that did not come to its end speaks for all.
  const std::string done(egraph::StopReasonName(egraph::StopReason::kSaturated));
  if (sum.stop_reason.empty() || (!own.stop_reason.empty() && own.stop_reason != done)) {
    sum.stop_reason = own.stop_reason;
  }
}

}  // namespace l3c::l0::lower
