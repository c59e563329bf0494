#include "layers/l0/lower/choose.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "egraph/extract/extract.h"
#include "egraph/extract/pareto.h"
#include "egraph/program.h"
#include "egraph/run.h"
#include "egraph/view.h"
#include "layers/l0/lower/choice_search.h"
#include "layers/l0/lower/dot_forms.h"
#include "layers/l0/lower/explain.h"
#include "layers/l0/lower/forms.h"
#include "layers/l0/lower/recompute.h"
#include "layers/l0/lower/rule_trace.h"
#include "layers/l0/lower/shifted_values.h"
#include "layers/l0/lower/span.h"
#include "layers/l0/lower/store_facts.h"
#include "layers/l0/lower/term_costs.h"
#include "layers/search/saturation.h"
#include "rewrites/rewrites.h"

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::EGraph;
using egraph::ENodeRef;
using egraph::FunctionId;
using tensor::Op;

namespace {

// In the order in which they are loaded.
constexpr const char* kRuleFiles[] = {"algebra",      "weighted_mean", "convolution",     "bf16",
                                      "kernel_terms", "layout",        "kernel_grouping", "fusion",
                                      "checkpointing"};

}  // namespace

RuleSources EmbeddedRules() {
  RuleSources sources;
  for (const char* name : kRuleFiles) {
    if (const rewrites::RuleFile* file = rewrites::Find(name)) {
      sources[name] = {std::string(file->path), std::string(file->text)};
    }
  }
  return sources;
}

namespace {

// Global numbers of definitions.
class DefinitionNumbers {
 public:
  explicit DefinitionNumbers(const ValueTable& table) {
    for (const Value& value : table.values) {
      first_.push_back(count_);
      count_ += static_cast<int64_t>(value.definitions.size());
    }
  }
  int64_t Number(ValueId v, uint32_t d) const { return first_[v] + d; }
  // (value, definition)
  std::pair<ValueId, uint32_t> At(int64_t number) const {
    const auto it = std::upper_bound(first_.begin(), first_.end(), number) - 1;
    return {static_cast<ValueId>(it - first_.begin()), static_cast<uint32_t>(number - *it)};
  }

 private:
  std::vector<int64_t> first_;
  int64_t count_ = 0;
};

class Chooser {
  // A kernel has room for what must be computed from its operands, and as much again for each of
  // the passes and for what may be.
  static constexpr size_t kLinksOfASpan = 4;
  // Kernels at the end of a step reach less far than those before.
  static constexpr double kMostOvershoot = 1.5;

 public:
  Chooser(const Step& step, const KernelCostModel& costs, const RuleSources& rules,
          const ChooseOptions& options, search::Explanation& explanation,
          std::optional<search::SearchFailure>& failure, std::string& rule_error, size_t span)
      : step_(step),
        costs_(costs),
        rules_(rules),
        options_(options),
        explanation_(explanation),
        failure_(failure),
        rule_error_(rule_error),
        span_(span) {}

  // Where the budget of nodes ended although the candidates seemed to fit: the span to try next.
  std::optional<size_t> next_span() const { return next_span_; }

  std::optional<ChooseResult> Run() {
    most_ = budget_.max_nodes = options_.budget.egraph_nodes;
    // Rules of the user's may never come to an end; the others do.
    if (options_.added.empty()) {
      budget_.max_nodes = std::max(budget_.max_nodes, LeastRows(step_.graph.size()));
    }
    budget_.max_matches = options_.budget.work;
    graph_.set_numerics(options_.numerics);
    DeclareValues(graph_);
    for (const char* name : kRuleFiles) {
      auto it = rules_.find(name);
      if (it == rules_.end()) {
        left_out_ += (left_out_.empty() ? "'" : ", '") + std::string(name) + "'";
        continue;
      }
      const egraph::ProgramResult loaded =
          egraph::LoadProgram(graph_, it->second.text, it->second.path);
      if (!loaded.ok()) return RuleError(loaded.status.ToString());
    }
    const auto built_in = static_cast<uint32_t>(graph_.rule_count());
    for (const RuleSource& added : options_.added) {
      const egraph::ProgramResult loaded = egraph::LoadProgram(graph_, added.text, added.path);
      if (!loaded.ok()) return RuleError(loaded.status.ToString());
    }
    // Those of the ruleset `checkpoint` have their say when the kernels are known (recompute.h).
    const egraph::RulesetId later = graph_.FindRuleset("checkpoint");
    for (uint32_t r = built_in; r < graph_.rule_count(); ++r) {
      if (graph_.rule(egraph::RuleId{r}).ruleset == later) continue;
      traced_.push_back(egraph::RuleId{r});
    }
    if (!graph_.FindRuleset("store").valid() || !graph_.FindRuleset("choose").valid()) {
      return RuleError("the rules declare no rulesets 'store' and 'choose' (kernel_terms.egg)");
    }
    egraph::RunReport report;
    std::string wrong;
    std::optional<ValueTable> table = BuildValues(step_, graph_, budget_, report, wrong);
    Account(report);
    Spend(report.matches);
    if (!wrong.empty()) return RuleError(std::move(wrong));
    if (!table) {
      failure_ = OutOfBudget(report);
      return std::nullopt;
    }
    result_.table = *std::move(table);
    for (const Value& value : result_.table.values) {
      if (tensor::NumElements(value.shape) > 0) continue;
      failure_ =
          search::NoCandidates{"'" + value.name + "' has no elements, and no kernel runs over none",
                               "leave it out, or give it an extent of at least 1", value.span};
      return std::nullopt;
    }
    if (!ChooseStored()) return std::nullopt;
    forms_ = std::make_unique<DotForms>(result_.table, stored_, costs_);
    numbers_.emplace(result_.table);
    AssertCandidates();
    if (!Saturate("choose")) {
      if (failure_ && out_of_nodes_ && !Strict() && options_.mode != search::Mode::kOff &&
          span_ < kSpans.size()) {
        next_span_ = span_ + 1;
      }
      return std::nullopt;
    }
    return Extract();
  }

 private:
  std::optional<ChooseResult> RuleError(std::string message) {
    rule_error_ = std::move(message);
    return std::nullopt;
  }

  void Account(const egraph::RunReport& report) {
    explanation_.report.work += report.matches;
    explanation_.report.work_budget = options_.budget.work;
    if (explanation_.report.stop_reason.empty() || report.cut_short()) {
      explanation_.report.stop_reason = std::string(egraph::StopReasonName(report.stop));
    }
  }

  // A step of hundreds of layers has rows of its own (Room), and work for each of its rulesets; a
  // budget that somebody gives is for all of them and for the comparison of what they find.
  bool IsGiven() const { return options_.budget.work != search::Budget().work; }
  void Spend(uint64_t work) {
    if (IsGiven()) budget_.max_matches -= std::min(budget_.max_matches, work);
  }
  uint64_t WorkOfSearch() const {
    return IsGiven() ? budget_.max_matches : std::numeric_limits<uint64_t>::max();
  }

  search::Timeout OutOfBudget(const egraph::RunReport& report) const {
    std::string hint;
    if (const auto heaviest = report.Heaviest(1); !heaviest.empty()) {
      const bool rows = report.stop == egraph::StopReason::kNodeLimit;
      hint = "mend " + graph_.DescribeRule(heaviest[0].rule) + ", which made " +
             std::to_string(rows ? heaviest[0].rows : heaviest[0].matches) + " of the " +
             std::to_string(rows ? report.rows : report.matches) + (rows ? " rows" : " matches");
    }
    return search::CutShort(report, options_.budget, "saturating", std::move(hint));
  }

  bool Saturate(const char* ruleset) {
    const egraph::RunReport report =
        egraph::RunRuleset(graph_, graph_.FindRuleset(ruleset), budget_);
    Account(report);
    Spend(report.matches);
    out_of_nodes_ = report.stop == egraph::StopReason::kNodeLimit;
    if (report.stop == egraph::StopReason::kFailed) {
      rule_error_ = *graph_.failure();
      return false;
    }
    if (report.cut_short()) {
      failure_ = OutOfBudget(report);
      return false;
    }
    return true;
  }

  egraph::Value I(int64_t i) { return graph_.I64(i); }

  void Fact(const char* relation, std::initializer_list<int64_t> args) {
    FunctionId& f = relations_[relation];
    if (!f.valid()) f = graph_.FindFunction(relation);
    if (!f.valid()) {
      if (rule_error_.empty()) rule_error_ = std::string("the rules declare no '") + relation + "'";
      return;
    }
    std::vector<egraph::Value> values;
    for (int64_t a : args) values.push_back(I(a));
    graph_.Insert(f, values);
  }

  // Of long contiguous work, without what a launch costs.
  ElementCosts PerElement() const {
    constexpr double kMany = 1 << 20;
    const double lanes = costs_.target().lanes;
    ElementCosts costs;
    costs.compute = [this, lanes](Op op, tensor::DType dtype) {
      return costs_.ComputeSeconds({op, dtype, kMany, lanes, kMany}) / kMany;
    };
    costs.keep = [this, lanes](const Value& value) {
      AccessWork work;
      work.points = kMany;
      work.element = static_cast<int>(tensor::SizeOf(value.dtype));
      work.bytes = kMany * work.element;
      work.buffer = static_cast<double>(Bytes(value));
      work.lanes = lanes;
      work.blocks = kMany;
      return (costs_.StoreSeconds(work) + costs_.LoadSeconds(work)) / kMany;
    };
    return costs;
  }

  // Runs the `store` rules and finds the candidates; again when states turn out not to be
  // overwritable, because their new values must then be kept aside, when a chain of values is
  // too long for one kernel, and with a narrower span when the candidates are too many (span.h).
  bool ChooseStored() {
    bool fuse = options_.mode != search::Mode::kOff && span_ < kSpans.size();
    const FunctionId stored = graph_.FindFunction("stored");
    if (!stored.valid()) {
      rule_error_ = "the rules declare no 'stored'";
      return false;
    }
    std::set<ValueId> kept;
    for (ValueId v = 0; v < static_cast<ValueId>(result_.table.values.size()); ++v) {
      if (result_.table.values[v].own < 0) continue;
      kept.insert(v);
      for (ValueId operand : result_.table.values[v].definitions.front().inputs) {
        if (result_.table.values[operand].input < 0) kept.insert(operand);
      }
    }
    while (true) {
      cheap_ = AssertStoreFacts(result_.table, step_, kept, fuse, PerElement(),
                                [this](const char* relation, std::initializer_list<int64_t> args) {
                                  Fact(relation, args);
                                });
      if (!rule_error_.empty()) return false;
      graph_.Rebuild();
      if (!Saturate("store")) return false;
      stored_.assign(result_.table.values.size(), false);
      graph_.ForEachRow(stored, [&](const egraph::Row& row) {
        stored_[static_cast<size_t>(graph_.AsI64(row.arg(0)))] = true;
      });
      bool again = false;
      if (narrow()) {
        for (ValueId v : EndsOfLongChains(result_.table, stored_, kSpans[span_] / kLinksOfASpan)) {
          again |= kept.insert(v).second;
        }
        if (again) continue;
      }
      result_.candidates = FindCandidates(step_, result_.table, stored_,
                                          {.fuse = fuse,
                                           .max_entries = fuse ? kSpans[span_] : kSpans[0],
                                           .needed_first = narrow(),
                                           .max_rows = Room(fuse)});
      if (result_.candidates.too_many_at) {
        Narrow(*result_.candidates.too_many_at);
        fuse = span_ < kSpans.size();
        continue;
      }
      for (ValueId v : result_.candidates.missing) again |= kept.insert(v).second;
      for (const UpdateGroup& group : result_.candidates.groups) {
        if (group.in_place) continue;
        for (const UpdateMember& member : group.members) {
          again |= kept.insert(member.new_value).second;
        }
      }
      if (again) continue;
      ExplainSpan(fuse);
      return true;
    }
  }

  bool narrow() const { return span_ > 0 && span_ < kSpans.size(); }

  // Who brings rules and a budget is told which of the rules have used it up.
  bool Strict() const { return options_.budget.nodes_given && !options_.added.empty(); }

  // Rows that candidates may come to before the span is narrowed.
  uint64_t Room(bool fuse) {
    // Saturation says what there was.
    if (!fuse || Strict()) return std::numeric_limits<uint64_t>::max();
    if (span_ + 1 == kSpans.size() && !options_.budget.nodes_given) {
      most_ = std::max(most_, RowsOfDeepStep(result_.table.values.size()));
      budget_.max_nodes = std::max(budget_.max_nodes, most_);
    }
    return most_ - std::min<uint64_t>(most_, graph_.RowCount());
  }

  // What was left out for want of nodes.
  void ExplainSpan(bool fuse) {
    if (span_ == 0) return;
    const std::string values = std::to_string(result_.table.values.size());
    explanation_.cuts.push_back(
        "'" + step_.name + "' has " + values +
        " values, more than the search for its kernels has nodes for: " +
        (fuse ? "a kernel reaches over " + std::to_string(kSpans[span_]) + " of them, not over " +
                    std::to_string(kSpans[0])
              : "every operation is a kernel of its own") +
        "; the plan may be slower than the best. '--budget nodes=N' with N above " +
        std::to_string(most_) + " looks further, '--search off' looks at nothing");
  }

  // To the first span under which the candidates may fit, by how far the last one got.
  void Narrow(double reached) {
    const double last = static_cast<double>(kSpans[span_]);
    ++span_;
    while (span_ + 1 < kSpans.size() &&
           static_cast<double>(kSpans[span_]) > kMostOvershoot * reached * last) {
      ++span_;
    }
  }

  void AssertCandidates() {
    const ValueTable& table = result_.table;
    const CandidateSet& set = result_.candidates;
    for (ValueId v = 0; v < static_cast<ValueId>(table.values.size()); ++v) {
      const Value& value = table.values[v];
      if (value.input >= 0) Fact("given", {v});
      for (uint32_t d = 0; d < value.definitions.size(); ++d) {
        AssertDefinition(v, d);
      }
      for (size_t q = 1; q < set.storers[v].size(); ++q) {
        Fact("later", {v, static_cast<int64_t>(q), static_cast<int64_t>(q) - 1});
      }
    }
    for (uint32_t k = 0; k < set.kernels.size(); ++k) AssertKernel(k);
    for (size_t g = 0; g < set.groups.size(); ++g) {
      const UpdateGroup& group = set.groups[g];
      if (group.in_place) continue;
      const int64_t n = static_cast<int64_t>(group.members.size());
      Fact("copies", {static_cast<int64_t>(g), n});
      for (int64_t i = 0; i < n; ++i) {
        const ValueId v = group.members[i].new_value;
        Fact("copy-step", {static_cast<int64_t>(g), i, v, LastVersion(v)});
      }
    }
    graph_.Rebuild();
  }

  void AssertDefinition(ValueId v, uint32_t d) {
    const Definition& definition = result_.table.values[v].definitions[d];
    const int64_t number = numbers_->Number(v, d);
    const auto in = [&](size_t i) { return static_cast<int64_t>(definition.inputs[i]); };
    switch (definition.op) {
      case Op::kInput:
        if (result_.table.values[v].own < 0) return;
        break;
      case Op::kMatmul:
      case Op::kBf16Matmul:
        return;
      case Op::kRandom:
        Fact("unary", {number, v, in(0)});
        return;
      case Op::kScatterAdd:
        Fact("scatter", {number, v, in(0), in(1)});
        return;
      case Op::kConst:
      case Op::kIota:
        Fact("leaf", {number, v});
        return;
      case Op::kReduceSum:
      case Op::kReduceMax:
        Fact("fold", {number, v, in(0)});
        return;
      case Op::kGather:
        Fact("gather", {number, v, in(0), in(1)});
        return;
      default:
        break;
    }
    if (IsView(definition.op)) {
      Fact("view", {number, v, in(0)});
    } else if (definition.inputs.size() == 1) {
      Fact("unary", {number, v, in(0)});
    } else if (definition.inputs.size() == 2) {
      Fact("binary", {number, v, in(0), in(1)});
    } else {
      Fact("ternary", {number, v, in(0), in(1), in(2)});
    }
  }

  // The version of `v` that kernel k may load; nothing when no kernel before it stores v.
  std::optional<int64_t> Version(ValueId v, uint32_t k) const {
    if (result_.table.values[v].input >= 0) return -1;
    const int32_t q = VersionBefore(result_.candidates, v, k);
    if (q < 0) return std::nullopt;
    return q;
  }

  void AssertKernel(uint32_t k) {
    const Candidate& kernel = result_.candidates.kernels[k];
    const int64_t base = kernel.first_context;
    for (const Entry& entry : kernel.entries) {
      const int64_t c = base + entry.context;
      if (entry.readable) {
        const auto q = Version(entry.value, k);
        if (q && IsNear(result_.table, kernel, entry)) {
          Fact("reads-row", {entry.value, c, k, *q});
        } else if (q) {
          Fact("reads", {entry.value, c, *q});
        }
      }
      if (entry.hoisted) Fact("hoisted", {entry.value, c, base});
      for (const Inline& way : entry.inlines) {
        const int64_t number = numbers_->Number(entry.value, way.definition);
        const Definition& definition =
            result_.table.values[entry.value].definitions[way.definition];
        if (way.pass >= 0) {
          Fact("pass", {number, c, base + way.pass});
        } else if (entry.context == 0 && kernel.FindAdded(entry.value) != nullptr) {
          Fact("added", {number, c});
        } else if (IsContraction(definition.op)) {
          AssertDot(k, entry.value, way.definition, c);
        } else {
          if (definition.op == Op::kGather) {
            if (auto q = Version(definition.inputs[0], k)) {
              Fact("reads", {definition.inputs[0], c, *q});
            }
          }
          Fact("inline", {number, c});
        }
      }
    }
    if (kernel.group >= 0) {
      const std::vector<ValueId>& roots = kernel.roots;
      Fact("update", {kernel.group, k, static_cast<int64_t>(roots.size())});
      for (size_t i = 0; i < roots.size(); ++i) {
        Fact("update-step", {k, static_cast<int64_t>(i), roots[i], base});
      }
      return;
    }
    std::vector<ValueId> writes = kernel.beside;
    writes.push_back(kernel.roots[0]);
    std::sort(writes.begin(), writes.end());
    for (ValueId v : writes) {
      const std::vector<uint32_t>& storers = result_.candidates.storers[v];
      const auto it = std::lower_bound(storers.begin(), storers.end(), k);
      Fact(v == kernel.roots[0] ? "root" : "beside", {k, v, it - storers.begin(), base});
    }
  }

  void AssertDot(uint32_t k, ValueId matmul, uint32_t definition, int64_t c) {
    for (uint32_t form : forms_->Of(matmul, definition)) {
      const DotForm& dot = forms_->all()[form];
      const auto left = Version(dot.left, k);
      const auto right = Version(dot.right, k);
      if (!left || !right) continue;
      Fact("dot", {numbers_->Number(matmul, definition), matmul, c, form, dot.left, *left,
                   dot.right, *right});
    }
  }

  // The costs of all terms, less what forced extents of forms exclude, and the search under them.
  struct PlanSearch {
    PlanSearch(const Chooser& chooser, const egraph::EGraphView& view,
               const std::vector<ClassRef>& roots, const std::vector<ValueForm>& forms,
               const std::map<std::string, std::string>& extents)
        : costs(
              chooser.graph_, chooser.step_, chooser.result_.table, chooser.result_.candidates,
              chooser.forms_->all(), chooser.costs_,
              [&chooser](int64_t d) { return chooser.numbers_->At(d); }, Excluded(forms, extents)),
          extractor(view, costs, TermCosts::Time(chooser.options_.seconds_per_byte)),
          // Bottom-up, each class for itself: where greedy ends, and where the joint search starts.
          search(extractor, roots, chooser.options_.mode == search::Mode::kEGraph,
                 chooser.WorkOfSearch()) {
      for (const ValueForm& form : forms) {
        if (extents.contains(form.name) || !search.feasible()) continue;
        search.TryTogether(NodesOf(extractor, form.own));
        search.TryTogether(NodesOf(extractor, form.others));
      }
      if (search.feasible()) search.TryFixed(WaitForWalk(chooser.result_.candidates, view));
      if (!chooser.step_.blocks.of_node.empty()) chooser.FitBlocks(view, search);
    }

    // What only reports need can wait for a walk over the rows that is made anyway. It waits with
    // everything behind it or not at all, and pays where the walk makes all that it needs of a row
    // itself, so that nobody else has to walk them.
    static std::vector<ChoiceSearch::Choice> WaitForWalk(const CandidateSet& candidates,
                                                         const egraph::EGraphView& view) {
      std::set<ValueId> waiting;
      for (const Candidate& kernel : candidates.kernels) {
        if (kernel.kind == KernelKind::kLast) waiting.insert(kernel.roots[0]);
      }
      std::vector<ChoiceSearch::Choice> chosen;
      if (waiting.empty()) return chosen;
      // The walks that make what those start from.
      std::set<int64_t> contexts;
      std::vector<ChoiceSearch::Choice> stores;
      for (uint32_t n = 0; n < view.node_count(); ++n) {
        const ENodeRef node{n};
        const std::string& name = view.function(node).name;
        if (name != "Store" && name != "Beside") continue;
        const auto arg = [&](size_t i) { return view.graph().AsI64(view.NodeArgs(node)[i]); };
        const Candidate& kernel = candidates.kernels[static_cast<size_t>(arg(1))];
        const bool start =
            kernel.kind == KernelKind::kSums && kernel.late.contains(static_cast<ValueId>(arg(0)));
        if (start) contexts.insert(kernel.first_context);
        if (start || kernel.kind == KernelKind::kLast) {
          stores.emplace_back(view.NodeClass(node), node);
        }
      }
      for (uint32_t n = 0; n < view.node_count(); ++n) {
        const ENodeRef node{n};
        if (view.function(node).name != "Fold") continue;
        if (!contexts.contains(view.graph().AsI64(view.NodeArgs(node)[1]))) continue;
        chosen.emplace_back(view.NodeClass(node), node);
      }
      chosen.insert(chosen.end(), stores.begin(), stores.end());
      return chosen;
    }

    static std::set<int64_t> Excluded(const std::vector<ValueForm>& forms,
                                      const std::map<std::string, std::string>& extents) {
      std::set<int64_t> excluded;
      for (const ValueForm& form : forms) {
        const auto it = extents.find(form.name);
        if (it == extents.end()) continue;
        const auto& out = it->second == "nowhere" ? form.own : form.others;
        excluded.insert(out.begin(), out.end());
      }
      return excluded;
    }

    TermCosts costs;
    egraph::Extractor extractor;
    ChoiceSearch search;
  };

  int32_t BlockOf(uint32_t kernel) const {
    return result_.table.values[result_.candidates.kernels[kernel].roots.front()].block;
  }

  // What the middle one of three blocks loads of another, every copy of it will have to find in its
  // neighbour, another copy: so the middle one has to store what is the same place of itself. Where
  // it does not, because its neighbour does without, it is made to.
  void FitBlocks(const egraph::EGraphView& view, ChoiceSearch& search) const {
    constexpr int kMostRounds = 8;
    ShiftedValues shifted(step_, result_.table);
    for (int round = 0; round < kMostRounds && search.feasible() && !search.spent(); ++round) {
      const std::set<ValueId> missing = MissingInMiddle(view, search.Best(), shifted);
      if (missing.empty()) return;
      for (const ValueId v : missing) {
        // Blocks that do not fit are no fault: the whole step is searched then.
        if (search.spent()) return;
        StoreInMiddle(view, v, search);
      }
    }
  }

  std::set<ValueId> MissingInMiddle(const egraph::EGraphView& view, const egraph::Extraction& best,
                                    ShiftedValues& shifted) const {
    std::set<ValueId> stored;
    std::set<ValueId> wanted;
    const CandidateSet& set = result_.candidates;
    std::vector<uint32_t> owner;  // by context
    for (uint32_t k = 0; k < set.kernels.size(); ++k) {
      owner.insert(owner.end(), set.kernels[k].contexts.size(), k);
    }
    for (const ClassRef c : best.order) {
      const ENodeRef n = best.Chosen(c);
      const std::string& name = view.function(n).name;
      if (name == "Store" || name == "Beside") {
        if (BlockOf(static_cast<uint32_t>(Int(view, n, 1))) == 1) {
          stored.insert(static_cast<ValueId>(Int(view, n, 0)));
        }
        continue;
      }
      if (name != "Load" && name != "LoadRow" && name != "Dot" && name != "Row") continue;
      if (BlockOf(owner[static_cast<size_t>(Int(view, n, 1))]) != 1) continue;
      for (const ClassRef child : view.NodeChildren(n)) {
        if (view.ClassSort(child) != mem_) continue;
        const Storage from = Resolve(view, best, child);
        if (from.kernel < 0) continue;
        const int32_t block = BlockOf(static_cast<uint32_t>(from.kernel));
        if (block != 0 && block != 2) continue;
        const std::optional<ValueId> own = shifted.Shift(from.value, block == 0 ? 1 : -1);
        if (own) wanted.insert(*own);
      }
    }
    for (const ValueId v : stored) wanted.erase(v);
    return wanted;
  }

  // By the kernel of the middle block with which the step is cheapest.
  void StoreInMiddle(const egraph::EGraphView& view, ValueId v, ChoiceSearch& search) const {
    const FunctionId store = graph_.FindFunction("Store");
    const FunctionId beside = graph_.FindFunction("Beside");
    std::optional<ChoiceSearch::Choice> best;
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t n = 0; n < view.node_count(); ++n) {
      const ENodeRef node{n};
      const FunctionId f = view.NodeFunction(node);
      if ((f != store && f != beside) || Int(view, node, 0) != v) continue;
      if (BlockOf(static_cast<uint32_t>(Int(view, node, 1))) != 1) continue;
      const ChoiceSearch::Choice choice = {view.NodeClass(node), node};
      const auto with = search.With({choice});
      if (!with || !(with->dag_cost < least)) continue;
      least = with->dag_cost;
      best = choice;
    }
    if (best) search.Require({*best});
  }

  // Whether the id is that of a form; `reason` where it has no such label.
  bool ForceForm(const std::vector<ValueForm>& forms, const std::string& id,
                 const std::string& label, std::map<std::string, std::string>& extents,
                 std::string& reason) const {
    for (const ValueForm& form : forms) {
      if (id != options_.prefix + "/" + form.name) continue;
      if (label != "everywhere" && label != "nowhere") {
        reason = "'" + label + "' is no choice of '" + id + "': those are 'everywhere', 'nowhere'";
        return false;
      }
      extents[form.name] = label;
      return true;
    }
    return false;
  }

  // Each other extent of a form is a search of its own, as forcing it is.
  void ExplainForms(const egraph::EGraphView& view, const std::vector<ClassRef>& roots,
                    const std::vector<ValueForm>& forms,
                    const std::map<std::string, std::string>& extents,
                    const std::vector<ChoiceSearch::Choice>& forced, const Explainer& explainer,
                    const egraph::Extraction& best) {
    for (const ValueForm& form : forms) {
      const auto fixed = extents.find(form.name);
      const std::string chosen = fixed == extents.end() ? Extent(form, view, best) : fixed->second;
      std::vector<std::pair<std::string, egraph::Extraction>> others;
      for (const char* label : {"everywhere", "nowhere"}) {
        if (label == chosen || !options_.explain) continue;
        auto other = extents;
        other[form.name] = label;
        PlanSearch plans(*this, view, roots, forms, other);
        if (!plans.search.feasible()) continue;
        const auto found = plans.search.With(forced);
        if (found) others.emplace_back(label, forced.empty() ? plans.search.Best() : *found);
      }
      explainer.ExplainForm(form, chosen, best, fixed != extents.end(), others, explanation_);
    }
  }

  std::optional<ChooseResult> Extract() {
    if (!rule_error_.empty()) return std::nullopt;
    const egraph::EGraphView view(graph_);
    reg_ = graph_.FindSort("Reg");
    mem_ = graph_.FindSort("Mem");
    explanation_.report.egraph_nodes += view.node_count();
    explanation_.report.egraph_classes += view.class_count();
    const std::vector<ValueForm> forms = FindForms(
        result_.table, graph_, [this](ValueId v, uint32_t d) { return numbers_->Number(v, d); });
    std::map<std::string, std::string> extents;  // forced, by form
    const DefinitionAt definition_at = [this](int64_t d) { return numbers_->At(d); };
    const Explainer explainer(graph_, view, result_.table, result_.candidates, forms_->all(),
                              definition_at, options_.prefix);
    std::vector<ClassRef> roots;
    if (!FindRoots(view, roots)) return std::nullopt;

    std::vector<ChoiceSearch::Choice> forced;
    for (const auto& [id, label] : options_.forced) {
      if (!id.starts_with(options_.prefix + "/") || IsMemoryDecision(id)) continue;
      std::string reason;
      if (ForceForm(forms, id, label, extents, reason)) continue;
      std::optional<ChoiceSearch::Choice> choice;
      if (reason.empty()) choice = explainer.Force(id, label, reason);
      if (choice) {
        forced.push_back(*choice);
      } else if (!reason.empty()) {
        failure_ = search::NoCandidates{reason, "see --explain for the ids and labels", {}};
        return std::nullopt;
      }  // else a schedule, settled when the kernel is built
    }
    PlanSearch plans(*this, view, roots, forms, extents);
    if (!plans.search.feasible()) {
      failure_ = extents.empty() ? NoKernelFor(FirstInfeasible(view, plans.extractor))
                                 : search::NoCandidates{
                                       "no plan has the forced forms", "force fewer of them", {}};
      return std::nullopt;
    }
    explanation_.report.work += plans.search.work();
    if (plans.search.work() > 0 && plans.search.work() >= WorkOfSearch()) {
      explanation_.cuts.push_back(
          "the budget of work ended while the kernels of '" + step_.name +
          "' were compared; the plan may be slower than the best. '--budget work=N' with N above " +
          std::to_string(options_.budget.work) + " looks further");
    }
    const auto found = plans.search.With(forced);
    if (!found) {
      failure_ =
          search::NoCandidates{"the forced choices exclude one another", "force fewer of them", {}};
      return std::nullopt;
    }
    const egraph::Extraction best = forced.empty() ? plans.search.Best() : *found;
    ReadSelection(view, best, roots);
    Count(view, roots);
    ExplainForms(view, roots, forms, extents, forced, explainer, best);
    const size_t before = explanation_.decisions.size();
    explainer.Explain(plans.search, best, forced, options_.explain, explanation_);
    for (size_t i = before; i < explanation_.decisions.size(); ++i) {
      for (search::Loser& loser : explanation_.decisions[i].losers) {
        if (loser.difference[TermCosts::kTime].value < 0) loser.decided_by = "memory";
      }
    }
    if (!traced_.empty()) {
      TraceRules(graph_, view, best, result_, traced_, explainer, explanation_);
    }
    result_.selection.seconds =
        options_.seconds_per_byte > 0 ? best.cost.value[TermCosts::kTime] : best.dag_cost;
    return std::move(result_);
  }

  // What there was to choose from, and what never was.
  void Count(const egraph::EGraphView& view, const std::vector<ClassRef>& roots) {
    explanation_.report.candidates += egraph::CountTerms(view, roots);
    const auto prune = [&](const char* what, const char* why, uint64_t number) {
      if (number > 0) {
        explanation_.pruned.push_back({options_.prefix + ": " + what, why, number});
      }
    };
    prune("values with several users, kept in memory",
          "computing them again from what is kept costs less than writing and reading them",
          cheap_);
    prune("values computed in a kernel", "a kernel considers so many values at most",
          result_.candidates.pruned_entries);
    prune("schedules of contractions", "three others of the same factors are faster",
          forms_->pruned());
  }

  search::NoCandidates NoKernelFor(const std::string& what) const {
    return {"no kernel can compute " + what,
            left_out_.empty() ? "an op of it may have no kernel form yet"
                              : "leave no rules out: without " + left_out_ +
                                    " there are kernels for less, and maybe none for this",
            {}};
  }

  // The earliest value that cannot be had, for the message.
  std::string FirstInfeasible(const egraph::EGraphView& view, const egraph::Extractor& extractor) {
    const FunctionId in_mem = graph_.FindFunction("InMem");
    for (ValueId v = 0; v < static_cast<ValueId>(stored_.size()); ++v) {
      if (!stored_[v]) continue;
      const std::string name = "'" + result_.table.values[v].name + "'";
      const auto found = graph_.Lookup(in_mem, {I(v), I(LastVersion(v))});
      const ClassRef c = found ? view.ClassOf(*found) : ClassRef{};
      if (!c.valid()) return name;
      if (!extractor.Tree(std::vector<ClassRef>{c}).feasible) return name;
    }
    return "the new state";
  }

  bool FindRoots(const egraph::EGraphView& view, std::vector<ClassRef>& roots) {
    const FunctionId in_mem = graph_.FindFunction("InMem");
    const FunctionId updated = graph_.FindFunction("Updated");
    auto add = [&](FunctionId f, std::initializer_list<egraph::Value> args,
                   const std::string& what) {
      const auto found = graph_.Lookup(f, args);
      const ClassRef c = found ? view.ClassOf(*found) : ClassRef{};
      if (!c.valid()) {
        failure_ = NoKernelFor(what);
        return false;
      }
      roots.push_back(c);
      return true;
    };
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      if (step_.outputs[o].kind != StepOutput::Kind::kReport) continue;
      const ValueId v = result_.table.outputs[o];
      if (!add(in_mem, {I(v), I(LastVersion(v))}, "'" + result_.table.values[v].name + "'")) {
        return false;
      }
    }
    for (size_t g = 0; g < result_.candidates.groups.size(); ++g) {
      const ValueId v = result_.candidates.groups[g].members.front().new_value;
      if (!add(updated, {I(static_cast<int64_t>(g))},
               "the new state '" + result_.table.values[v].name + "'")) {
        return false;
      }
    }
    return true;
  }

  // −1 where no kernel stores it: it is given.
  int64_t LastVersion(ValueId v) const {
    return static_cast<int64_t>(result_.candidates.storers[v].size()) - 1;
  }

  // --- Reading the choice ------------------------------------------------------------------------

  int64_t Int(const egraph::EGraphView& view, ENodeRef n, size_t arg) const {
    return graph_.AsI64(view.NodeArgs(n)[arg]);
  }

  Storage Resolve(const egraph::EGraphView& view, const egraph::Extraction& best,
                  ClassRef c) const {
    while (true) {
      const ENodeRef n = best.Chosen(c);
      const std::string& name = view.function(n).name;
      const ValueId v = static_cast<ValueId>(Int(view, n, 0));
      if (name == "Given") return {v, -1};
      if (name != "Sooner") return {v, static_cast<int32_t>(Int(view, n, 1))};
      c = view.NodeChildren(n)[0];
    }
  }

  void ReadSelection(const egraph::EGraphView& view, const egraph::Extraction& best,
                     const std::vector<ClassRef>& roots) {
    std::map<uint32_t, ChosenKernel> kernels;
    std::vector<std::pair<uint32_t, uint32_t>> context_owner;  // by context: (kernel, local)
    for (uint32_t k = 0; k < result_.candidates.kernels.size(); ++k) {
      for (uint32_t c = 0; c < result_.candidates.kernels[k].contexts.size(); ++c) {
        context_owner.emplace_back(k, c);
      }
    }
    auto kernel_at = [&](uint32_t k) -> ChosenKernel& {
      ChosenKernel& kernel = kernels[k];
      kernel.candidate = k;
      return kernel;
    };
    for (ClassRef c : best.order) {
      const ENodeRef n = best.Chosen(c);
      const std::string& name = view.function(n).name;
      const std::span<const ClassRef> children = view.NodeChildren(n);
      auto source_at = [&](int64_t context, ValueId v) -> Source& {
        const auto [k, local] = context_owner[static_cast<size_t>(context)];
        return kernel_at(k).sources[{local, v}];
      };
      if (name == "Load" || name == "LoadRow") {
        Source& s = source_at(Int(view, n, 1), static_cast<ValueId>(Int(view, n, 0)));
        s.kind = Source::Kind::kLoad;
        s.storage = Resolve(view, best, children.back());
      } else if (name == "Hoist") {
        source_at(Int(view, n, 1), static_cast<ValueId>(Int(view, n, 0))).kind =
            Source::Kind::kHoist;
      } else if (name == "Store" || name == "Beside") {
        kernel_at(static_cast<uint32_t>(Int(view, n, 1)))
            .stores.push_back({static_cast<ValueId>(Int(view, n, 0)), -1});
      } else if (name == "Write") {
        const uint32_t k = static_cast<uint32_t>(Int(view, n, 1));
        const ValueId v = static_cast<ValueId>(Int(view, n, 0));
        const UpdateGroup& group = result_.candidates.groups[result_.candidates.kernels[k].group];
        for (const UpdateMember& member : group.members) {
          if (member.new_value != v) continue;
          kernel_at(k).stores.push_back({v, static_cast<int32_t>(member.state)});
        }
      } else if (name == "CopyBack") {
        const UpdateGroup& group = result_.candidates.groups[Int(view, n, 0)];
        ClassRef rest = children[0];
        for (size_t i = 0; i < group.members.size(); ++i) {
          const ENodeRef copy = best.Chosen(rest);
          result_.selection.copies.push_back(
              {Resolve(view, best, view.NodeChildren(copy)[0]), group.members[i].state});
          rest = view.NodeChildren(copy)[1];
        }
      } else if (name == "Dot") {
        const auto [v, d] = numbers_->At(Int(view, n, 0));
        Source& s = source_at(Int(view, n, 1), v);
        s.kind = Source::Kind::kDot;
        s.definition = d;
        s.form = static_cast<uint32_t>(Int(view, n, 2));
        s.left = Resolve(view, best, children[0]);
        s.right = Resolve(view, best, children[1]);
      } else if (view.ClassSort(c) == reg_) {
        const auto [v, d] = numbers_->At(Int(view, n, 0));
        Source& s = source_at(Int(view, n, 1), v);
        s.kind = Source::Kind::kDefinition;
        s.definition = d;
        if (name == "Fold") {
          s.pass = static_cast<int32_t>(context_owner[Int(view, n, 2)].second);
        } else if (name == "Row") {
          s.storage = Resolve(view, best, children[0]);
        }
      }
    }
    for (auto& [k, kernel] : kernels) {
      if (kernel.stores.empty()) continue;  // met only as an owner of a context
      std::sort(kernel.stores.begin(), kernel.stores.end(),
                [](const ChosenStore& a, const ChosenStore& b) { return a.value < b.value; });
      result_.selection.kernels.push_back(std::move(kernel));
    }
    result_.selection.forms = forms_->all();
    result_.selection.reports.assign(step_.outputs.size(), {});
    size_t next = 0;
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      if (step_.outputs[o].kind != StepOutput::Kind::kReport) continue;
      result_.selection.reports[o] = Resolve(view, best, roots[next++]);
    }
  }

  const Step& step_;
  const KernelCostModel& costs_;
  const RuleSources& rules_;
  const ChooseOptions& options_;
  search::Explanation& explanation_;
  std::optional<search::SearchFailure>& failure_;
  std::string& rule_error_;
  EGraph graph_;
  egraph::SortId reg_;
  egraph::SortId mem_;
  egraph::Budget budget_;
  std::map<std::string, FunctionId> relations_;
  std::vector<bool> stored_;
  std::vector<egraph::RuleId> traced_;  // the user's
  size_t span_;                         // index into kSpans; beyond: nothing is fused
  std::optional<size_t> next_span_;
  bool out_of_nodes_ = false;  // the latest saturation
  uint64_t most_ = 0;          // rows of the e-graph, where anything is fused
  std::string left_out_;       // rule files that are not there, quoted
  uint64_t cheap_ = 0;         // values that could have been kept, see store_facts.h
  std::unique_ptr<DotForms> forms_;
  std::optional<DefinitionNumbers> numbers_;
  ChooseResult result_;
};

}  // namespace

std::optional<ChooseResult> ChooseKernels(const Step& step, const KernelCostModel& costs,
                                          const RuleSources& rules, const ChooseOptions& options,
                                          search::Explanation& explanation,
                                          std::optional<search::SearchFailure>& failure,
                                          std::string& rule_error) {
  const search::Explanation before = explanation;
  size_t span = 0;
  while (true) {
    Chooser chooser(step, costs, rules, options, explanation, failure, rule_error, span);
    std::optional<ChooseResult> result = chooser.Run();
    if (!chooser.next_span()) return result;
    span = *chooser.next_span();
    failure.reset();
    explanation = before;
  }
}

}  // namespace l3c::l0::lower
