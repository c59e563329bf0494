// What extract and the print commands show.
#include "egraph/text/loader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "egraph/text/suggest.h"

namespace l3c::egraph {

namespace {

// What all runs so far did, rule by rule.
std::string StatisticsText(const EGraph& graph, const std::vector<RunReport>& reports) {
  std::vector<RuleReport> rules(graph.rule_count());
  uint64_t iterations = 0;
  for (const RunReport& report : reports) {
    iterations += report.iterations;
    for (const RuleReport& rule : report.rules) {
      if (rule.rule.index >= rules.size()) continue;  // of a graph that was popped
      rules[rule.rule.index].matches += rule.matches;
      rules[rule.rule.index].applied += rule.applied;
    }
  }
  std::string text = "Overall statistics:\nsteps " + std::to_string(iterations) + ", rows " +
                     std::to_string(graph.RowCount()) + ", bytes " + std::to_string(graph.Bytes()) +
                     "\n";
  for (uint32_t r = 0; r < rules.size(); ++r) {
    if (rules[r].matches == 0) continue;
    text += "rule " + graph.rule(RuleId{r}).name + ": " + std::to_string(rules[r].matches) +
            " matches, " + std::to_string(rules[r].applied) + " applied\n";
  }
  return text;
}

}  // namespace

const TermExtractor& Loader::Terms() {
  if (!terms_ || terms_version_ != graph_.version()) {
    terms_.emplace(graph_);
    terms_version_ = graph_.version();
  }
  return *terms_;
}

Value Loader::Leader(SortId sort, Value value) const {
  const auto named = leaders_.find(sort);
  if (named == leaders_.end()) return value;
  const FunctionId f = graph_.FindFunction(named->second);
  if (!f.valid() || graph_.function(f).inputs != std::vector{sort, sort}) return value;
  Value leader = value;
  graph_.ForEachRow(f, [&](const Row& row) {
    if (row.arg(0) == value) leader = row.arg(1);
  });
  return leader;
}

bool Loader::CountOutput(uint32_t n, size_t bytes) {
  if (bytes > OutputLeft()) {
    return Error(Offset(n),
                 "the program prints more than " + std::to_string(options_.max_output) + " bytes",
                 ErrorKind::kResourceBound);
  }
  output_ += bytes;
  return true;
}

bool Loader::Print(uint32_t n, Printed printed) {
  if (!CountOutput(n, std::max(printed.text.size(), printed.json.size()))) return false;
  result_.printed.push_back(std::move(printed));
  return true;
}

bool Loader::ExtractCommand(uint32_t n) {
  EGraph::Global value;
  EGraph::Global count{kI64, graph_.I64(0)};
  if (!Takes(n, 1, 2) || !Evaluate(n, Child(n, 1), &value)) return false;
  if (Count(n) == 3 && !Evaluate(n, Child(n, 2), &count)) return false;
  if (count.sort != kI64 || graph_.AsI64(count.value) < 0) {
    return Error(Offset(Child(n, 2)), "expected a number of variants");
  }
  value.value = Leader(value.sort, graph_.Canonical(value.sort, value.value));
  if (graph_.sort(value.sort).is_equality) result_.extracted.push_back(value.value);
  const std::optional<uint64_t> cost = Terms().Cost(value.sort, value.value);
  if (!cost) return Error(Offset(n), "no term of finite cost to extract", ErrorKind::kConsistency);
  Printed printed;
  if (const int64_t variants = graph_.AsI64(count.value); variants != 0) {
    printed.kind = Printed::Kind::kVariants;
    printed.text = "(\n";
    for (const TermExtractor::Variant& v :
         Terms().Variants(value.sort, value.value, static_cast<size_t>(variants),
                          OutputLeft() + kLongestCharacter)) {
      printed.text += "   " + v.text + "\n";
    }
    printed.text += ")\n";
  } else {
    const std::optional<std::string> text = Terms().Text(value.sort, value.value);
    printed.kind = Printed::Kind::kTerm;
    printed.cost = *cost;
    printed.text = *text + "\n";
  }
  return Print(n, std::move(printed));
}

bool Loader::FunctionName(uint32_t n, FunctionId* f) {
  *f = doc_.IsSymbol(n) ? graph_.FindFunction(doc_.Text(n)) : FunctionId{};
  if (f->valid()) return true;
  Suggestion suggestion(doc_.Text(n));
  OfferFunctions(&suggestion);
  return Error(Offset(n), "unknown function " + Quoted(n) + suggestion.Text(), ErrorKind::kSafety);
}

bool Loader::PrintSizeCommand(uint32_t n) {
  if (!Takes(n, 0, 1)) return false;
  Printed printed;
  if (Count(n) == 2) {
    FunctionId f;
    if (!FunctionName(Child(n, 1), &f)) return false;
    printed.sizes.emplace_back(graph_.function(f).name, graph_.LiveRows(f));
    printed.text = std::to_string(graph_.LiveRows(f)) + "\n";
    return Print(n, std::move(printed));
  }
  printed.kind = Printed::Kind::kSizes;
  for (uint32_t f = 0; f < graph_.function_count(); ++f) {
    const Function& function = graph_.function(FunctionId{f});
    if (!function.hidden) {
      printed.sizes.emplace_back(function.name, graph_.LiveRows(FunctionId{f}));
    }
  }
  std::sort(printed.sizes.begin(), printed.sizes.end());
  printed.text = "(";
  for (const auto& [name, size] : printed.sizes) {
    printed.text += printed.text.size() == 1 ? "(" : "\n (";
    printed.text += name + " " + std::to_string(size) + ")";
  }
  printed.text += ")\n";
  return Print(n, std::move(printed));
}

std::string Loader::CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

bool Loader::PrintFunctionCommand(uint32_t n) {
  FunctionId f;
  if (Count(n) < 2) return Error(Offset(n), "expected the name of a function");
  if (!FunctionName(Child(n, 1), &f)) return false;
  uint32_t i = 2;
  auto most = std::numeric_limits<int64_t>::max();
  if (i < Count(n) && doc_.node(Child(n, i)).kind == Document::Kind::kInt) {
    most = doc_.Int(Child(n, i++));
    if (most < 0) return Error(Offset(Child(n, 2)), "expected a count");
  }
  bool csv = false;
  uint32_t file = Id<void>::kNone;
  for (; i < Count(n); ++i) {
    const uint32_t option = Child(n, i);
    uint32_t value = 0;
    if (!IsOption(option)) return Error(Offset(option), "unexpected " + Quoted(option));
    if (!OptionValue(n, &i, &value)) return false;
    if (doc_.Text(option) == ":file") {
      file = value;
    } else if (doc_.Text(option) == ":mode" &&
               (doc_.Text(value) == "csv" || doc_.Text(value) == "default")) {
      csv = doc_.Text(value) == "csv";
    } else {
      return Error(Offset(option), "expected :mode default, :mode csv or :file");
    }
  }
  const Function& function = graph_.function(f);
  const TermExtractor& terms = Terms();
  Printed printed;
  printed.kind = Printed::Kind::kFunction;
  const auto text_of = [&](SortId sort, Value v) {
    return terms.Text(sort, v, TermLimit(printed.text.size())).value_or("Unextractable");
  };
  const auto row_text = [&](const Row& row) {
    return terms.RowText(f, row, TermLimit(printed.text.size()));
  };
  if (!csv) printed.text = "(\n";
  graph_.ForEachRow(f, [&](const Row& row) {
    if (most-- <= 0 || printed.text.size() > OutputLeft()) return;
    // A fact of a relation is its own value.
    const bool relation = function.kind == FunctionKind::kRelation;
    const bool has_value = relation || function.output != kUnit;
    const std::string output = relation    ? row_text(row)
                               : has_value ? text_of(function.output, row.output())
                                           : "";
    if (csv) {
      printed.text += CsvField(function.name);
      for (uint32_t a = 0; a < row.size(); ++a) {
        printed.text += ',' + CsvField(text_of(function.inputs[a], row.arg(a)));
      }
      if (has_value) printed.text += ',' + CsvField(output);
      printed.text += '\n';
      return;
    }
    printed.text += "   " + row_text(row);
    if (has_value) printed.text += " -> " + output;
    printed.text += '\n';
  });
  if (!csv) printed.text += ")\n";
  if (file != Id<void>::kNone) return WriteFile(file, printed.text, std::ios::trunc);
  return Print(n, std::move(printed));
}

bool Loader::PrintStatsCommand(uint32_t n) {
  uint32_t file = Id<void>::kNone;
  if (Count(n) == 3 && IsOption(Child(n, 1)) && doc_.Text(Child(n, 1)) == ":file") {
    file = Child(n, 2);
  } else if (!Takes(n, 0, 0)) {
    return false;
  }
  Printed printed;
  printed.kind = Printed::Kind::kStatistics;
  printed.text = StatisticsText(graph_, result_.reports);
  if (file != Id<void>::kNone) return WriteFile(file, printed.text, std::ios::trunc);
  return Print(n, std::move(printed));
}

}  // namespace l3c::egraph
