// l3c egraph run: carries out a program of the e-graph's text language.
#include <fstream>
#include <iostream>
#include <iterator>

#include "egraph/program.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/files.h"

namespace l3c::tools {
namespace {

using Json = nlohmann::ordered_json;

// Strings of the program may hold any bytes.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json PrintedAsJson(const egraph::Printed& printed) {
  using Kind = egraph::Printed::Kind;
  switch (printed.kind) {
    case Kind::kSize:
    case Kind::kSizes: {
      Json sizes = Json::object();
      for (const auto& [name, size] : printed.sizes) sizes[name] = size;
      return {{"event", printed.kind == Kind::kSize ? "size" : "sizes"}, {"sizes", sizes}};
    }
    case Kind::kTerm:
      return {{"event", "extract"}, {"cost", printed.cost}, {"text", printed.text}};
    case Kind::kVariants:
      return {{"event", "variants"}, {"text", printed.text}};
    case Kind::kFunction:
      return {{"event", "function"}, {"text", printed.text}};
    case Kind::kStatistics:
      return {{"event", "statistics"}, {"text", printed.text}};
  }
  return {};
}

void PrintStatistics(const egraph::EGraph& graph, const egraph::ProgramResult& result) {
  for (const egraph::RunReport& report : result.reports) {
    std::cerr << "run: " << StopReasonName(report.stop) << " after " << report.iterations
              << " steps, " << report.matches << " matches, " << report.rows << " rows, "
              << report.bytes << " bytes\n";
    for (const egraph::RuleReport& rule : report.rules) {
      std::cerr << "  " << rule.matches << " matches of " << graph.DescribeRule(rule.rule) << "\n";
    }
  }
}

}  // namespace

int EGraphRun(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) {
    EnvironmentError("cannot read '" + options.file + "'");
    return 1;
  }
  egraph::EGraph graph;
  egraph::ProgramOptions program;
  program.directory = options.fact_directory.empty() ? "." : options.fact_directory;
  // The memory of the machine is the limit, unless the command line sets another.
  constexpr uint64_t kUnbounded = uint64_t{1} << 32;
  egraph::Budget& budget = program.budget;
  budget.max_bytes = options.max_bytes;
  budget.max_nodes = options.max_nodes.value_or(kUnbounded);
  budget.max_matches = options.max_matches.value_or(kUnbounded);
  budget.max_iterations = options.max_iterations.value_or(budget.max_iterations);
  budget.max_seconds = options.max_seconds.value_or(budget.max_seconds);
  const egraph::ProgramResult result = egraph::LoadProgram(graph, text, options.file, program);
  for (const egraph::Printed& printed : result.printed) {
    if (options.json) {
      std::cout << Line(PrintedAsJson(printed)) << "\n";
    } else {
      std::cout << printed.text;
    }
  }
  for (const egraph::RunReport& report : result.reports) {
    if (report.cut_short() && report.stop != egraph::StopReason::kFailed) {
      std::cerr << "warning: a run stopped at its " << StopReasonName(report.stop)
                << (report.reproducible() ? "\n" : "; the next one may stop elsewhere\n");
    }
  }
  if (options.stats) PrintStatistics(graph, result);
  if (options.json) {
    Json done{{"event", "done"}, {"ok", result.ok()}, {"rows", graph.RowCount()},
              {"nodes", graph.NodeCount()}, {"bytes", graph.Bytes()}};
    if (!result.ok()) done["error"] = result.status.ToString();
    std::cout << Line(done) << "\n";
  }
  if (!result.ok()) std::cerr << result.status.ToString() << "\n";
  return result.ok() && std::cout.flush() ? 0 : 1;
}

}  // namespace l3c::tools
