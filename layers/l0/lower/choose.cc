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
#include "layers/l0/lower/candidate_facts.h"
#include "layers/l0/lower/choice_search.h"
#include "layers/l0/lower/definition_numbers.h"
#include "layers/l0/lower/dot_forms.h"
#include "layers/l0/lower/explain.h"
#include "layers/l0/lower/forms.h"
#include "layers/l0/lower/recompute.h"
#include "layers/l0/lower/rule_trace.h"
#include "layers/l0/lower/selection.h"
#include "layers/l0/lower/span.h"
#include "layers/l0/lower/store_facts.h"
#include "layers/l0/lower/term_costs.h"
#include "layers/l0/lower/unfused.h"
#include "layers/l0/lower/wait_for_walk.h"
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

  // Of a search with a budget that is enough: what a first plan takes, for one whose was not.
  uint64_t FirstPlan() {
    measures_ = true;
    Run();
    return saturated_ + first_plan_;
  }

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
    built_in_ = static_cast<uint32_t>(graph_.rule_count());
    for (const RuleSource& added : options_.added) {
      const egraph::ProgramResult loaded = egraph::LoadProgram(graph_, added.text, added.path);
      if (!loaded.ok()) return RuleError(loaded.status.ToString());
    }
    // Those of the ruleset `checkpoint` have their say when the kernels are known (recompute.h).
    const egraph::RulesetId later = graph_.FindRuleset("checkpoint");
    for (uint32_t r = built_in_; r < graph_.rule_count(); ++r) {
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
    AssertCandidateFacts(result_.table, result_.candidates, *forms_, *numbers_, Asserter());
    graph_.Rebuild();
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
    saturated_ += work;
    if (IsGiven()) budget_.max_matches -= std::min(budget_.max_matches, work);
  }
  uint64_t WorkOfSearch() const {
    if (measures_) return 0;
    return IsGiven() ? budget_.max_matches : std::numeric_limits<uint64_t>::max();
  }

  search::Timeout OutOfBudget(const egraph::RunReport& report) const {
    // Nobody can mend a rule but whoever brings it.
    std::string hint;
    const auto heaviest = report.Heaviest(1);
    const bool rows = report.stop == egraph::StopReason::kNodeLimit;
    if (!heaviest.empty() && heaviest[0].rule.index >= built_in_) {
      hint = "mend " + graph_.DescribeRule(heaviest[0].rule) + ", which made " +
             std::to_string(rows ? heaviest[0].rows : heaviest[0].matches) + " of the " +
             std::to_string(rows ? report.rows : report.matches) + (rows ? " rows" : " matches");
    }
    // Rules before these have had their share of what is given for all.
    search::Timeout timeout =
        search::CutShort(report, options_.budget, "saturating", std::move(hint));
    if (timeout.resource != "work") return timeout;
    timeout.spent = std::min(saturated_, options_.budget.work);
    if (timeout.spent < timeout.budget) timeout.doing += ", for which too little was left";
    return timeout;
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

  AssertFact Asserter() {
    return
        [this](const char* relation, std::initializer_list<int64_t> args) { Fact(relation, args); };
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
      cheap_ = AssertStoreFacts(result_.table, step_, kept, fuse, PerElement(), Asserter());
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

  // The costs of all terms, less what forced extents of forms exclude, and the search under them.
  struct PlanSearch {
    PlanSearch(const Chooser& chooser, const egraph::EGraphView& view,
               const std::vector<ClassRef>& roots, const std::vector<ValueForm>& forms,
               const std::map<std::string, std::string>& extents)
        : costs(
              chooser.graph_, chooser.result_.table, chooser.result_.candidates,
              chooser.forms_->all(), chooser.costs_,
              [&chooser](int64_t d) { return chooser.numbers_->At(d); }, Excluded(forms, extents)),
          extractor(view, costs, TermCosts::Time(chooser.options_.seconds_per_byte)),
          search(extractor, roots, chooser.options_.mode,
                 UnfusedRanks(view, chooser.result_.candidates, *chooser.numbers_),
                 chooser.WorkOfSearch()) {
      for (const ValueForm& form : forms) {
        if (extents.contains(form.name) || !search.feasible()) continue;
        search.TryTogether(NodesOf(extractor, form.own));
        search.TryTogether(NodesOf(extractor, form.others));
      }
      if (search.feasible()) search.TryFixed(WaitForWalk(chooser.result_.candidates, view));
      if (search.feasible()) search.TryLocal();
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

  // Whether the id is that of a form; `reason` where it has no such label.
  bool ForceForm(const std::vector<ValueForm>& forms, const std::string& id,
                 const std::string& label, std::map<std::string, std::string>& extents,
                 std::string& reason) const {
    for (const ValueForm& form : forms) {
      if (id != options_.Spelled(options_.prefix + "/" + form.name)) continue;
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
    explanation_.report.egraph_nodes += view.node_count();
    explanation_.report.egraph_classes += view.class_count();
    const std::vector<ValueForm> forms = FindForms(
        result_.table, graph_, [this](ValueId v, uint32_t d) { return numbers_->Number(v, d); });
    std::map<std::string, std::string> extents;  // forced, by form
    const DefinitionAt definition_at = [this](int64_t d) { return numbers_->At(d); };
    const Explainer explainer(graph_, view, result_.table, result_.candidates, forms_->all(),
                              definition_at, options_);
    std::vector<ClassRef> roots;
    if (!FindRoots(view, roots)) return std::nullopt;

    std::vector<ChoiceSearch::Choice> forced;
    for (const auto& [id, label] : options_.forced) {
      if (!options_.Concerns(id) || IsMemoryDecision(id)) continue;
      std::string reason;
      if (ForceForm(forms, id, label, extents, reason)) continue;
      std::optional<ChoiceSearch::Choice> choice;
      if (reason.empty()) {
        if (options_.elsewhere != nullptr && !explainer.Knows(id)) {
          options_.elsewhere->insert(id);
          continue;
        }
        choice = explainer.Force(id, label, reason);
      }
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
    first_plan_ = plans.search.first_work();
    explanation_.report.work += plans.search.work();
    if (plans.search.work() > 0 && plans.search.work() >= WorkOfSearch()) {
      const uint64_t first = saturated_ + first_plan_;
      const bool enough = first <= options_.budget.work;
      explanation_.cuts.push_back(
          (enough ? "the budget of work ended while the kernels of '" + step_.name +
                        "' were compared; the plan may be slower than the best"
                  : "the budget of work, " + std::to_string(options_.budget.work) +
                        ", is less than a first plan of the kernels of '" + step_.name +
                        "' takes, " + std::to_string(first) +
                        ": that plan was made all the same, and compared with no other") +
          ". '--budget work=N' with N above " +
          std::to_string(std::max(first, options_.budget.work)) + " looks further");
      explanation_.report.stop_reason =
          std::string(egraph::StopReasonName(egraph::StopReason::kWorkLimit));
    }
    const auto found = plans.search.With(forced);
    if (!found) {
      failure_ =
          search::NoCandidates{"the forced choices exclude one another", "force fewer of them", {}};
      return std::nullopt;
    }
    const egraph::Extraction best = forced.empty() ? plans.search.Best() : *found;
    result_.selection = ReadSelection(view, best, roots, step_, result_.candidates, *numbers_);
    result_.selection.forms = forms_->all();
    result_.selection.cost = explainer.Costs(best.cost);
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
      const auto found = graph_.Lookup(in_mem, {I(v), I(LastVersion(result_.candidates, v))});
      const ClassRef c = found ? view.ClassOf(*found) : ClassRef{};
      if (!c.valid()) return name;
      if (!extractor.Tree(std::vector<ClassRef>{c}).feasible) return name;
    }
    return "the new state";
  }

  // Of what is reported the last version; of what other parts take the last by a kernel before all
  // that read what is given later: those before load nothing that such a kernel has stored.
  int64_t VersionOf(const StepOutput& output, ValueId v) const {
    const CandidateSet& set = result_.candidates;
    if (output.order < 0) return LastVersion(set, v);
    std::set<ValueId> later;
    for (size_t i = 0; i < step_.inputs.size(); ++i) {
      if (step_.inputs[i].order > output.order) later.insert(result_.table.inputs[i]);
    }
    const auto is_later = [&](ValueId read) { return later.contains(read); };
    for (uint32_t k = 0; k < set.kernels.size(); ++k) {
      const Candidate& kernel = set.kernels[k];
      if (std::any_of(kernel.tables.begin(), kernel.tables.end(), is_later) ||
          std::any_of(kernel.entries.begin(), kernel.entries.end(),
                      [&](const Entry& entry) { return is_later(entry.value); })) {
        return VersionBefore(set, v, k);
      }
    }
    return LastVersion(set, v);
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
      if (!add(in_mem, {I(v), I(VersionOf(step_.outputs[o], v))},
               "'" + result_.table.values[v].name + "'")) {
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

  const Step& step_;
  const KernelCostModel& costs_;
  const RuleSources& rules_;
  const ChooseOptions& options_;
  search::Explanation& explanation_;
  std::optional<search::SearchFailure>& failure_;
  std::string& rule_error_;
  EGraph graph_;
  egraph::Budget budget_;
  std::map<std::string, FunctionId> relations_;
  std::vector<bool> stored_;
  std::vector<egraph::RuleId> traced_;  // the user's
  size_t span_;                         // index into kSpans; beyond: nothing is fused
  std::optional<size_t> next_span_;
  bool out_of_nodes_ = false;  // the latest saturation
  uint32_t built_in_ = 0;      // rules that are not the user's
  uint64_t saturated_ = 0;     // work of the rules
  bool measures_ = false;      // goes no further than a first plan
  uint64_t first_plan_ = 0;    // and of a first choice among what they found
  uint64_t most_ = 0;          // rows of the e-graph, where anything is fused
  std::string left_out_;       // rule files that are not there, quoted
  uint64_t cheap_ = 0;         // values that could have been kept, see store_facts.h
  std::unique_ptr<DotForms> forms_;
  std::optional<DefinitionNumbers> numbers_;
  ChooseResult result_;
};

// A budget that is given and not enough for the rules: how much would be is found by doing it.
void TellFirstPlan(const Step& step, const KernelCostModel& costs, const RuleSources& rules,
                   const ChooseOptions& options, size_t span,
                   std::optional<search::SearchFailure>& failure) {
  auto* timeout = failure ? std::get_if<search::Timeout>(&*failure) : nullptr;
  const uint64_t usual = search::Budget().work;
  if (timeout == nullptr || timeout->resource != "work" || options.budget.work >= usual) return;
  ChooseOptions more = options;
  more.budget.work = usual;
  more.explain = false;
  search::Explanation unused;
  std::optional<search::SearchFailure> none;
  std::string rule_error;
  const uint64_t first =
      Chooser(step, costs, rules, more, unused, none, rule_error, span).FirstPlan();
  if (none || !rule_error.empty()) return;
  timeout->hint += "; a first plan of '" + step.name + "' takes " + std::to_string(first);
}

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
    if (!chooser.next_span()) {
      TellFirstPlan(step, costs, rules, options, span, failure);
      return result;
    }
    span = *chooser.next_span();
    failure.reset();
    explanation = before;
  }
}

}  // namespace l3c::l0::lower
