#include "layers/l2/methods.h"

#include <algorithm>
#include <limits>
#include <map>

#include "layers/l2/predicate.h"
#include "layers/l3/domain.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using support::Kind;
using support::PrintInteger;

constexpr int64_t kMaxBatch = int64_t{1} << 24;
constexpr int64_t kMaxRows = int64_t{1} << 31;

Arg Batch() { return Arg::Integer("batch", 1, kMaxBatch); }

}  // namespace

const std::vector<Entry>& SampleEntries() {
  static const std::vector<Entry> entries = {
      {"epoch_shuffle",
       {Batch(), Arg::Flag("drop_last", false)},
       "every row once an epoch in an order drawn from the seed; the last batch is padded, or "
       "dropped when it is not full"},
      {"stream_window",
       {Arg::Integer("window", 1, kMaxRows), Arg::Integer("stride", 1, kMaxRows).Or(int64_t{1}),
        Batch().Or(int64_t{32}), Arg::Flag("drop_last", false)},
       "every window of consecutive rows once an epoch; fields of as many elements take the "
       "window, "
       "others its last row"},
      {"curriculum",
       {Arg::Records("stages", Family::kCurriculum).Positional(), Batch().Or(int64_t{32})},
       "for some steps only rows count for which a filter holds"},
      {"replay",
       {Arg::Integer("buffer", 1, kMaxRows),
        Arg::Word("priority", {"uniform", "recent"}).Or(std::string("uniform")),
        Batch().Or(int64_t{32})},
       "rows drawn again from the last of a stream"},
      {"distributed_shard",
       {Arg::Integer("shards", 1, 4096), Arg::Nested("method", Family::kSample)},
       "a batch of the inner method from each shard of the data"},
  };
  return entries;
}

const std::vector<Entry>& CurriculumEntries() {
  static const std::vector<Entry> entries = {
      {"",
       {Arg::Predicate("filter"), Arg::Integer("duration", 1, int64_t{1} << 40)},
       "a stage: which rows count, for how many steps"}};
  return entries;
}

SamplePlan PlanOf(const Form& sample) {
  SamplePlan plan;
  if (sample.name == "epoch_shuffle") {
    plan.batch = sample.Integer(0);
    plan.drop_last = sample.Bool(1);
  } else if (sample.name == "stream_window") {
    plan.window = sample.Integer(0);
    plan.stride = sample.Integer(1);
    plan.batch = sample.Integer(2);
    plan.drop_last = sample.Bool(3);
  } else if (sample.name == "curriculum") {
    plan.curriculum = sample.Forms(0);
    plan.batch = sample.Integer(1);
  } else if (sample.name == "replay") {
    plan.replay = true;
    plan.buffer = sample.Integer(0);
    plan.recent = sample.Word(1) == "recent";
    plan.batch = sample.Integer(2);
  } else {
    plan = PlanOf(sample.Inner(1));
    plan.shards = sample.Integer(0);
    plan.batch *= plan.shards;
  }
  return plan;
}

int64_t BatchOf(const Form& sample) { return PlanOf(sample).batch; }
bool DropsLast(const Form& sample) { return PlanOf(sample).drop_last; }

int64_t SamplesOf(const SamplePlan& plan, int64_t stored_rows) {
  int64_t samples = stored_rows;
  if (plan.window > 0) {
    samples = stored_rows < plan.window ? 0 : (stored_rows - plan.window) / plan.stride + 1;
  }
  return samples / plan.shards * plan.shards;
}

namespace {

// What a filter says of one number: that it lies in [low, high), nearly: bounds that are met by
// both of two filters count as apart only where one of them excludes them.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool includes_low = true;
  bool includes_high = true;
};

bool Apart(const Interval& a, const Interval& b) {
  if (a.high < b.low || b.high < a.low) return true;
  if (a.high == b.low) return !(a.includes_high && b.includes_low);
  if (b.high == a.low) return !(b.includes_high && a.includes_low);
  return false;
}

// The intervals of a conjunction of comparisons with numbers, by the text of what is compared.
// Anything else says nothing.
void Intervals(const l3::Expr& e, std::map<std::string, Interval>& intervals) {
  if (e.kind != l3::Expr::Kind::kBinary) return;
  if (e.name == "&&") {
    Intervals(e.args[0], intervals);
    Intervals(e.args[1], intervals);
    return;
  }
  const bool number_right = e.args[1].kind == l3::Expr::Kind::kNumber;
  const bool number_left = e.args[0].kind == l3::Expr::Kind::kNumber;
  if (number_left == number_right) return;
  const double number = e.args[number_right ? 1 : 0].number;
  Interval& interval = intervals[l3::PrintExpr(e.args[number_right ? 0 : 1])];
  const bool less = e.name == "<" || e.name == "<=";
  const bool greater = e.name == ">" || e.name == ">=";
  const bool inclusive = e.name == "<=" || e.name == ">=" || e.name == "==";
  if (e.name == "==" || less == number_right) {
    if (e.name != "==" && !less && !greater) return;
    if (number < interval.high) {
      interval.high = number;
      interval.includes_high = inclusive;
    }
  }
  if (e.name == "==" || greater == number_right) {
    if (e.name != "==" && !less && !greater) return;
    if (number > interval.low) {
      interval.low = number;
      interval.includes_low = inclusive;
    }
  }
}

bool ProvenApart(const l3::Expr& a, const l3::Expr& b) {
  std::map<std::string, Interval> first, second;
  Intervals(a, first);
  Intervals(b, second);
  return std::any_of(first.begin(), first.end(), [&](const auto& entry) {
    const auto other = second.find(entry.first);
    return other != second.end() && Apart(entry.second, other->second);
  });
}

void CheckCurriculum(const Form& sample, const std::vector<Form>& stages, const l3::Module& spec,
                     const std::vector<l3::Ref>& fields, support::Diagnostics& diagnostics) {
  if (stages.empty()) {
    diagnostics.Error(Kind::kConsistency, sample.span, "a curriculum without stages")
        .Fix("write epoch_shuffle");
    return;
  }
  std::map<std::string, tensor::Shape> shapes;
  const l3::Data& data = *spec.FindData(fields.front().owner);
  for (const l3::Field& field : data.fields) {
    shapes[data.name + "." + field.name] = l3::ExampleShape(field.domain);
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i].HasExpression(0)) {
      diagnostics.Error(Kind::kConsistency, stages[i].span, "a stage needs a filter");
      return;
    }
    if (!CheckPredicate(stages[i].Expression(0), shapes, diagnostics)) return;
    for (size_t j = 0; j < i; ++j) {
      if (ProvenApart(stages[i].Expression(0), stages[j].Expression(0))) continue;
      diagnostics
          .Error(Kind::kConsistency, stages[i].Expression(0).span,
                 "this filter overlaps an earlier one, or cannot be shown not to")
          .With({stages[j].Expression(0).span, "the earlier filter"})
          .Fix("bound the same number in both, as in x < 1 and x >= 1 && x < 2");
      return;
    }
  }
}

}  // namespace

void CheckSample(const Form& sample, const l3::Module& spec, const std::vector<l3::Ref>& fields,
                 support::Diagnostics& diagnostics) {
  const SamplePlan plan = PlanOf(sample);
  if (sample.name == "distributed_shard" && sample.Inner(1).name == "distributed_shard") {
    diagnostics.Error(Kind::kConsistency, sample.Inner(1).span, "shards of shards")
        .Fix("multiply their numbers");
  }
  if (plan.batch > kMaxBatch) {
    diagnostics
        .Error(Kind::kResourceBound, sample.span,
               "a step takes " + PrintInteger(plan.batch) + " rows of all shards")
        .Label("at most " + PrintInteger(kMaxBatch));
  }
  if (plan.replay && plan.shards > 1) {
    diagnostics
        .Error(Kind::kConsistency, sample.span,
               "a stream that is replayed has one order, no shards")
        .Fix("leave out distributed_shard");
  }
  if (plan.replay && plan.buffer < plan.batch) {
    diagnostics
        .Error(Kind::kConsistency, sample.span,
               "a buffer of " + PrintInteger(plan.buffer) + " rows is less than one batch of " +
                   PrintInteger(plan.batch))
        .Fix("write buffer: " + PrintInteger(plan.batch) + " or more");
  }
  if (fields.empty()) return;
  if (plan.window > 0) {
    const bool any = std::any_of(fields.begin(), fields.end(), [&](const l3::Ref& field) {
      const tensor::Shape shape = l3::ExampleShape(*spec.DomainOf(field));
      return !shape.empty() && shape[0] == plan.window;
    });
    if (!any) {
      diagnostics
          .Error(Kind::kConsistency, sample.span,
                 "no field that is read has " + PrintInteger(plan.window) +
                     " elements for a window of as many rows")
          .With({fields.front().span, "such as this one"})
          .Fix("declare it as sequence(…, " + PrintInteger(plan.window) + ")");
    }
  }
  if (sample.name == "curriculum" || !plan.curriculum.empty()) {
    CheckCurriculum(sample, plan.curriculum, spec, fields, diagnostics);
  }
}

}  // namespace l3c::l2
