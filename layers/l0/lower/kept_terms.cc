#include "layers/l0/lower/kept_terms.h"

#include <algorithm>
#include <utility>

#include "egraph/extract/pareto.h"
#include "egraph/program.h"
#include "layers/l0/lower/value_terms.h"

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::FunctionId;

// A launch costs its time, whatever else costs nothing but memory.
class KeptTerms::Seconds : public egraph::CostModel {
 public:
  Seconds(const egraph::EGraph& egraph, const LaunchGraph& graph)
      : relaunch_(egraph.FindFunction("Relaunch")) {
    schema_.components = {{"time", "s"}};
    for (const LaunchGraph::Op& op : graph.ops) seconds_.push_back(op.seconds);
  }
  const egraph::CostSchema& schema() const override { return schema_; }
  egraph::CostVector NodeCost(const egraph::EGraphView& view, ENodeRef node) const override {
    egraph::CostVector cost;
    if (!(view.NodeFunction(node) == relaunch_)) return cost;
    const int64_t k = view.graph().AsI64(view.NodeArgs(node)[0]);
    if (k < 0 || k >= static_cast<int64_t>(seconds_.size())) return egraph::CostVector::Forbidden();
    return cost.Set(0, seconds_[static_cast<size_t>(k)], egraph::Evidence::kAnalytical);
  }

 private:
  FunctionId relaunch_;
  egraph::CostSchema schema_;
  std::vector<double> seconds_;
};

KeptTerms::KeptTerms(const LaunchGraph& graph, const std::vector<RuleSource>& rules,
                     egraph::Numerics numerics, const egraph::Budget& budget)
    : ops_(graph.ops.size()) {
  egraph_.set_numerics(numerics);
  DeclareValues(egraph_);
  for (const RuleSource& rule : rules) {
    const egraph::ProgramResult loaded = egraph::LoadProgram(egraph_, rule.text, rule.path);
    if (loaded.ok()) continue;
    error_ = loaded.status.ToString();
    return;
  }
  const egraph::RulesetId ruleset = egraph_.FindRuleset("checkpoint");
  for (const char* name : {"made", "lasts", "makes", "repeatable", "reads-operand", "KeptAt",
                           "Forward", "Save", "Recompute", "Relaunch"}) {
    if (!egraph_.FindFunction(name).valid() || !ruleset.valid()) {
      error_ = std::string("the rules declare no '") + (ruleset.valid() ? name : "checkpoint") +
               "' (checkpointing.egg)";
      return;
    }
  }
  for (const LaunchGraph::Value& value : graph.values) makers_.push_back(value.maker);
  Assert(graph, budget.max_nodes);
  report_ = egraph::RunRuleset(egraph_, ruleset, budget);
  if (report_.stop == egraph::StopReason::kFailed) {
    error_ = *egraph_.failure();
  }
  if (!error_.empty() || report_.cut_short()) return;
  view_ = std::make_unique<egraph::EGraphView>(egraph_);
  costs_ = std::make_unique<Seconds>(egraph_, graph);
  extractor_ = std::make_unique<egraph::Extractor>(*view_, *costs_, egraph::Objective::Single(0));
  Find(graph);
}

KeptTerms::~KeptTerms() = default;

namespace {

// How many launches apart the segments are before which others may run again: as few as the rows
// of the e-graph have room for. `last`: by value, the last segment that has to do with it.
int32_t StrideWithin(const LaunchGraph& graph, const std::vector<int32_t>& last,
                     uint64_t max_rows) {
  // Of a value in a segment: the fact, the name and the term that it is saved.
  constexpr uint64_t kSaved = 3;
  // Of a launch that may run again: the facts, the names and the terms, and those of its operands
  // and results.
  constexpr uint64_t kAgain = 6;
  constexpr uint64_t kOperand = 2;
  int32_t stride =
      std::max(1, (graph.end() + KeptTerms::kMostSegments - 1) / KeptTerms::kMostSegments);
  while (stride < graph.end()) {
    uint64_t rows = 0;
    for (int32_t op = 0; op < graph.turn; ++op) {
      const LaunchGraph::Op& launch = graph.ops[op];
      const auto segments = [&](int32_t until) {
        return static_cast<uint64_t>(std::max(0, until / stride - op / stride));
      };
      int32_t needed = -1;
      for (int32_t v : launch.writes) {
        rows += kSaved * (1 + segments(last[v]));
        needed = std::max(needed, last[v]);
      }
      rows += segments(std::min(needed, launch.until)) *
              (kAgain + kOperand * launch.reads.size() + launch.writes.size());
    }
    for (const LaunchGraph::Op& launch : graph.ops) rows += kSaved * launch.reads.size();
    if (rows <= max_rows) break;
    stride *= 2;
  }
  return stride;
}

}  // namespace

void KeptTerms::Assert(const LaunchGraph& graph, uint64_t max_rows) {
  const auto fact = [&](const char* relation, std::initializer_list<int64_t> args) {
    std::vector<egraph::Value> values;
    for (int64_t a : args) values.push_back(egraph_.I64(a));
    egraph_.Insert(egraph_.FindFunction(relation), values);
  };
  // The last segment that can have to do with a value: one that reads it, or what is made of it.
  std::vector<int32_t> last(graph.values.size(), -1);
  std::vector<std::vector<int32_t>> readers(graph.values.size());
  for (int32_t op = graph.end(); op-- > 0;) {
    int32_t reader = op;
    if (op < graph.turn) {
      for (int32_t v : graph.ops[op].writes) reader = std::max(reader, last[v]);
    }
    for (int32_t v : graph.ops[op].reads) {
      last[v] = std::max(last[v], reader);
      readers[v].push_back(op);
    }
  }
  const int32_t stride = StrideWithin(graph, last, max_rows);
  for (int32_t op = 0; op < graph.turn; ++op) {
    const LaunchGraph::Op& launch = graph.ops[op];
    const int32_t first = (op / stride + 1) * stride;
    int32_t needed = -1;
    for (int32_t v : launch.writes) needed = std::max(needed, last[v]);
    for (int32_t v : launch.writes) {
      fact("makes", {op, v});
      fact("made", {v, op});
      // Between two segments in which it is read or could be made again nothing happens to it.
      std::vector<int32_t> segments(readers[v].rbegin(), readers[v].rend());
      for (int32_t s = first; s <= last[v]; s += stride) segments.push_back(s);
      std::sort(segments.begin(), segments.end());
      segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
      int32_t before = op;
      for (int32_t s : segments) {
        fact("lasts", {v, s, before});
        before = s;
      }
    }
    for (size_t i = 0; i < launch.reads.size(); ++i) {
      fact("reads-operand", {op, static_cast<int64_t>(i), launch.reads[i]});
    }
    for (int32_t s = first; s <= needed; s += stride) {
      if (graph.MayRepeat(op, s)) {
        fact("repeatable", {op, s, static_cast<int64_t>(launch.reads.size())});
      }
    }
  }
  egraph_.Rebuild();
}

void KeptTerms::Find(const LaunchGraph& graph) {
  options_.assign(graph.ops.size(), std::vector<Repeat>(graph.ops.size(), Repeat::kNever));
  egraph_.ForEachRow(egraph_.FindFunction("Relaunch"), [&](const egraph::Row& row) {
    const int64_t k = egraph_.AsI64(row.arg(0));
    const int64_t s = egraph_.AsI64(row.arg(1));
    if (k < 0 || k >= graph.turn || s <= k || s >= graph.end()) return;
    options_[s][k] = Repeat::kFree;
  });
  const FunctionId kept_at = egraph_.FindFunction("KeptAt");
  const FunctionId save = egraph_.FindFunction("Save");
  const FunctionId recompute = egraph_.FindFunction("Recompute");
  for (int32_t s = 0; s < graph.end(); ++s) {
    for (int32_t v : graph.ops[s].reads) {
      if (graph.values[v].maker >= graph.turn) continue;
      const auto found = egraph_.Lookup(kept_at, {egraph_.I64(v), egraph_.I64(s)});
      KeptRead read;
      read.value = v;
      read.segment = s;
      if (found) read.kept = view_->ClassOf(*found);
      if (!read.kept.valid()) {
        error_ = "no rule says how a value is kept for the backward pass (checkpointing.egg)";
        return;
      }
      for (uint32_t i = 0; i < view_->NodeCountOf(read.kept); ++i) {
        const ENodeRef n{view_->FirstNode(read.kept).index + i};
        if (view_->NodeFunction(n) == save) read.save = n;
        if (view_->NodeFunction(n) == recompute) read.recompute = n;
      }
      if (!read.save.valid() && read.recompute.valid()) options_[s][makers_[v]] = Repeat::kAlways;
      roots_.push_back(read.kept);
      reads_.push_back(read);
    }
  }
}

egraph::Extraction KeptTerms::Extract(const Repeats& repeats) const {
  const FunctionId save = egraph_.FindFunction("Save");
  const FunctionId recompute = egraph_.FindFunction("Recompute");
  egraph::ExtractOptions options;
  for (uint32_t c = 0; c < view_->class_count(); ++c) {
    const ClassRef kept{c};
    ENodeRef saved, again;
    bool repeated = false;
    for (uint32_t i = 0; i < view_->NodeCountOf(kept); ++i) {
      const ENodeRef n{view_->FirstNode(kept).index + i};
      if (view_->NodeFunction(n) == save) saved = n;
      if (!(view_->NodeFunction(n) == recompute)) continue;
      again = n;
      const auto v = static_cast<size_t>(egraph_.AsI64(view_->NodeArgs(n)[0]));
      const std::vector<int32_t>& ops =
          repeats[static_cast<size_t>(egraph_.AsI64(view_->NodeArgs(n)[1]))];
      repeated = std::binary_search(ops.begin(), ops.end(), makers_[v]);
    }
    if (repeated) {
      options.forced[kept] = again;
    } else if (saved.valid() && again.valid()) {
      options.forced[kept] = saved;
    }
  }
  return extractor_->Tree(roots_, options);
}

Repeats KeptTerms::Read(const egraph::Extraction& extraction) const {
  const FunctionId relaunch = egraph_.FindFunction("Relaunch");
  Repeats repeats(ops_);
  for (ClassRef c : extraction.order) {
    const ENodeRef n = extraction.Chosen(c);
    if (!(view_->NodeFunction(n) == relaunch)) continue;
    const auto args = view_->NodeArgs(n);
    repeats[static_cast<size_t>(egraph_.AsI64(args[1]))].push_back(
        static_cast<int32_t>(egraph_.AsI64(args[0])));
  }
  for (std::vector<int32_t>& ops : repeats) std::sort(ops.begin(), ops.end());
  return repeats;
}

const egraph::Rule& KeptTerms::RuleOf(ENodeRef node) const {
  return egraph_.rule(view_->NodeRule(node));
}

double KeptTerms::CountChoices() const { return egraph::CountTerms(*view_, roots_); }

}  // namespace l3c::l0::lower
