#include "runtime/metrics.h"

namespace l3c::runtime {

void Metrics::Add(const Report& report, int64_t rows) {
  Split& split = splits_[report.split];
  ++split.steps;
  ++split.period_steps;
  split.samples += rows;
  for (const Value& value : report.values) split.sums[value.name] += value.value;
}

Period Metrics::Publish(const std::string& name, int64_t argument) {
  Split& split = splits_[name];
  Period period;
  period.split = name;
  period.argument = argument;
  period.steps = split.period_steps;
  for (const l0::Metric& metric : plan_.metrics) {
    if (metric.split != name) continue;
    period.metrics.push_back(
        {metric.name, split.sums[metric.numerator] / split.sums[metric.denominator]});
  }
  split.sums.clear();
  split.period_steps = 0;
  split.published = period.metrics;
  return period;
}

const Metrics::Split& Metrics::split(const std::string& name) const {
  static const Split kNone;
  auto found = splits_.find(name);
  return found == splits_.end() ? kNone : found->second;
}

std::vector<Value> Metrics::Figures() const {
  std::vector<Value> figures = split(kTestSplit).published;
  for (const auto& [name, split] : splits_) {
    if (name == kTestSplit) continue;
    for (const Value& value : split.published) {
      figures.push_back({name + "_" + value.name, value.value});
    }
  }
  return figures;
}

}  // namespace l3c::runtime
