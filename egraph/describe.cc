// Values, rows, rules and conflicts as people read them.
#include <utility>

#include "egraph/big.h"
#include "egraph/egraph.h"
#include "egraph/extract/term.h"
#include "egraph/literal_text.h"

namespace l3c::egraph {
namespace {

// A term in a message is cut where it gets longer.
constexpr size_t kMaxShownTerm = 200;

}  // namespace

std::string EGraph::DescribeValue(SortId sort, Value v) const {
  if (sort == kUnit) return "()";
  if (sort == kBool) return AsBool(v) ? "true" : "false";
  if (sort == kI64) return std::to_string(AsI64(v));
  if (sort == kF64) return F64Text(AsF64(v));
  if (sort == kString) return QuotedText(AsString(v));
  if (sort == kBigInt || sort == kBigRat || sort == kRational) return DescribeBig(*this, sort, v);
  const Sort& s = sorts_[sort.index];
  if (!s.is_container()) return "c" + std::to_string(Find(v).bits);
  std::string text = "(" + std::string(ContainerConstructor(s.container));
  const std::span<const Value> elements = Elements(v);
  for (size_t i = 0; i < elements.size(); ++i) {
    const SortId element = ElementSort(sort, elements, i);
    if (element == kUnit && s.container == ContainerKind::kFn) continue;
    text += ' ';
    text += DescribeValue(element, elements[i]);
  }
  return text + ')';
}

// Costs all terms of the graph, which is as it is in the middle of a rebuild: that matters to no
// run, for the graph is about to fail.
std::string EGraph::DescribeConflict(FunctionId id, uint32_t row, Value old_value, Value new_value,
                                     RuleId rule) const {
  const Function& f = functions_[id.index];
  const Table& table = tables_[id.index];
  const TermExtractor terms(*this);
  const auto term = [&](SortId sort, Value v) {
    return terms.Text(sort, v, kMaxShownTerm).value_or(DescribeValue(sort, v));
  };
  std::string text = "(" + f.name;
  for (uint32_t i = 0; i < f.inputs.size(); ++i) {
    text += ' ';
    text += term(f.inputs[i], Value{table.Get(row, i)});
  }
  return text + "): " + term(f.output, old_value) + " from " + DescribeRule(table.Provenance(row)) +
         ", " + term(f.output, new_value) + " from " + DescribeRule(rule);
}

std::string EGraph::DescribeRule(RuleId id) const {
  if (id == kInitial) return "the input";
  if (id == kCongruence) return "congruence";
  const Rule& r = rule(id);
  return "rule '" + r.name + "' (" + r.file + ":" + std::to_string(r.line) + ")";
}

}  // namespace l3c::egraph
