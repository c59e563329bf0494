// Values, rows, rules and conflicts as people read them.
#include <utility>

#include "egraph/big.h"
#include "egraph/egraph.h"
#include "egraph/extract/term.h"
#include "egraph/f64_text.h"
#include "egraph/quoted_text.h"

namespace l3c::egraph {
namespace {

// A term in a message is cut where it gets longer.
constexpr size_t kMaxShownTerm = 200;
constexpr size_t kMaxContainer = size_t{64} << 20;

// One level of a value as text, but for containers whose elements are written out: these may share
// what they hold many times over, so no more is added than `max_bytes` and one literal.
void AppendValue(const EGraph& graph, SortId sort, Value v, size_t max_bytes, std::string* text) {
  const Sort& s = graph.sort(sort);
  if (!s.is_container()) {
    *text += graph.DescribeValue(sort, v);
    return;
  }
  *text += "(" + std::string(ContainerConstructor(s.container));
  const std::span<const Value> elements = graph.Elements(v);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (text->size() > max_bytes) {
      *text += " …";
      break;
    }
    const SortId element = graph.ElementSort(sort, elements, i);
    if (element == kUnit && s.container == ContainerKind::kFn) continue;
    *text += ' ';
    AppendValue(graph, element, elements[i], max_bytes, text);
  }
  *text += ')';
}

}  // namespace

std::string EGraph::DescribeValue(SortId sort, Value v) const {
  if (sort == kUnit) return "()";
  if (sort == kBool) return AsBool(v) ? "true" : "false";
  if (sort == kI64) return std::to_string(AsI64(v));
  if (sort == kF64) return F64Literal(AsF64(v));
  if (sort == kString) return QuotedText(AsString(v));
  if (sort == kBigInt || sort == kBigRat || sort == kRational) return DescribeBig(*this, sort, v);
  const Sort& s = sorts_[sort.index];
  if (!s.is_container()) return "c" + std::to_string(Find(v).bits);
  std::string text;
  AppendValue(*this, sort, v, kMaxContainer, &text);
  return text;
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
