// l3c egraph run: carries out a program of the e-graph's text language.
#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "egraph/extract/extract.h"
#include "egraph/program.h"
#include "egraph/serialize.h"
#include "egraph/view.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/egraph_errors.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

using Json = nlohmann::ordered_json;

Json PrintedAsJson(const egraph::Printed& printed) {
  using Kind = egraph::Printed::Kind;
  switch (printed.kind) {
    case Kind::kSize:
    case Kind::kSizes: {
      Json sizes = Json::object();
      for (const auto& [name, size] : printed.sizes) sizes[name] = size;
      return {{"event", printed.kind == Kind::kSize ? "size" : "sizes"},
              {"sizes", sizes},
              {"text", printed.text}};
    }
    case Kind::kTerm:
      return {{"event", "extract"}, {"cost", printed.cost}, {"text", printed.text}};
    case Kind::kVariants:
      return {{"event", "variants"}, {"text", printed.text}};
    case Kind::kFunction:
      return {{"event", "function"}, {"text", printed.text}};
    case Kind::kStatistics:
      return {{"event", "statistics"}, {"text", printed.text}};
    case Kind::kProof:
    case Kind::kWhyNot:
      break;  // PrintAsLine()
  }
  return {};
}

void PrintAsLine(const egraph::Printed& printed) {
  using Kind = egraph::Printed::Kind;
  if (printed.kind != Kind::kProof && printed.kind != Kind::kWhyNot) {
    PrintJsonLine(PrintedAsJson(printed));
    return;
  }
  // What is JSON already may be long, and is put into the line as it is.
  const std::string name = printed.kind == Kind::kProof ? "proof" : "why_not";
  const std::string text = Json(printed.text).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::cout << "{\"event\":\"" << name << "\",\"" << name << "\":" << printed.json
            << ",\"text\":" << text << "}\n";
}

void PrintStatistics(const egraph::EGraph& graph, const egraph::ProgramResult& result) {
  for (const egraph::RunReport& report : result.reports) {
    std::cerr << "run: " << StopReasonName(report.stop) << " after " << report.iterations
              << " steps, " << report.work << " rows looked at, " << report.matches << " matches, "
              << report.rows << " rows, " << report.bytes << " bytes\n";
    for (const egraph::RuleReport& rule : report.rules) {
      std::cerr << "  " << rule.work << " looked at, " << rule.matches << " matches, " << rule.rows
                << " rows";
      if (rule.bans != 0) std::cerr << ", " << rule.bans << " bans";
      std::cerr << " of " << graph.DescribeRule(rule.rule) << "\n";
    }
  }
}

void PrintResult(const egraph::ProgramResult& result, bool json) {
  for (const egraph::Printed& printed : result.printed) {
    if (json) {
      PrintAsLine(printed);
    } else {
      std::cout << printed.text;
    }
  }
}

// How the checks of the program were proven.
void PrintProofs(const egraph::ProgramResult& result) {
  std::cerr << "proofs: " << result.proven_checks << " checks proven and verified, "
            << result.proof_steps << " steps\n";
  for (const std::string& why : result.unproven_checks) std::cerr << "warning: " << why << "\n";
}

// The e-graph as egraph-serialize's JSON and as a drawing. Its roots are what the program
// extracted, or, where it extracted nothing, its globals in the order of their names.
bool WriteGraph(const egraph::EGraph& graph, const egraph::ProgramResult& result,
                const Options& options) {
  const egraph::EGraphView view(graph);
  const egraph::DeclaredCosts costs;
  const egraph::Extractor extractor(view, costs, egraph::Objective::Single(0));
  std::vector<egraph::Value> values = result.extracted;
  if (values.empty()) {
    std::map<std::string, egraph::Value> globals;
    graph.ForEachGlobal([&](std::string_view name) {
      const egraph::EGraph::Global& global = *graph.FindGlobal(name);
      if (graph.sort(global.sort).is_equality) globals.emplace(name, global.value);
    });
    for (const auto& [name, value] : globals) values.push_back(value);
  }
  std::vector<egraph::ClassRef> roots;
  for (egraph::Value value : values) {
    const egraph::ClassRef root = view.ClassOf(graph.Find(value));
    if (root.valid() && std::find(roots.begin(), roots.end(), root) == roots.end()) {
      roots.push_back(root);
    }
  }
  const egraph::SerializedGraph serialized = egraph::Serialize(extractor, roots);
  if (!options.to_json.empty() &&
      !WriteFile(options.to_json, egraph::WriteSerialized(serialized))) {
    return false;
  }
  return options.dot.empty() || WriteFile(options.dot, egraph::WriteDot(serialized));
}

}  // namespace

int EGraphRun(const Options& options) {
  for (const std::string& path : {options.to_json, options.dot}) {
    if (!path.empty() && !CanWriteFile(path)) return 1;
  }
  egraph::EGraph graph;
  egraph::ProgramOptions program;
  std::optional<std::string> text = ReadFile(options.file, program.max_bytes);
  if (!text) return 1;
  program.directory = options.fact_directory.empty() ? "." : options.fact_directory;
  // The memory of the machine is the limit, unless the command line sets another.
  constexpr uint64_t kUnbounded = uint64_t{1} << 32;
  egraph::Budget& budget = program.budget;
  budget.max_bytes = options.max_bytes;
  budget.max_nodes = options.max_nodes.value_or(kUnbounded);
  budget.max_matches = options.max_matches.value_or(kUnbounded);
  budget.max_work = options.max_work.value_or(std::numeric_limits<uint64_t>::max());
  budget.max_iterations = options.max_iterations.value_or(budget.max_iterations);
  budget.max_seconds = options.max_seconds.value_or(budget.max_seconds);
  budget.threads = static_cast<uint32_t>(std::max(1, options.threads));
  program.prove_checks = options.proofs;
  program.json = options.json;
  if (options.proofs) graph.EnableProofs({.redundant = true});
  egraph::ProgramResult result = egraph::LoadProgram(graph, *text, options.file, program);
  PrintResult(result, options.json);
  for (const egraph::RunReport& report : result.reports) {
    if (report.cut_short() && report.stop != egraph::StopReason::kFailed) {
      std::cerr << "warning: a run stopped at its " << StopReasonName(report.stop);
      if (report.stop == egraph::StopReason::kWorkLimit) {
        std::cerr << ": " << report.work << " rows looked at";
      }
      std::cerr << (report.reproducible() ? "\n" : "; the next one may stop elsewhere\n");
      for (const egraph::RuleReport& rule : report.Heaviest(3)) {
        std::cerr << "  " << rule.work << " rows looked at, " << rule.matches << " matches, "
                  << rule.rows << " rows: " << graph.DescribeRule(rule.rule) << "\n";
      }
    }
  }
  if (options.stats) PrintStatistics(graph, result);
  if (options.proofs) PrintProofs(result);
  // A failed check is when this is wanted most. It adds its terms, so it comes after the files.
  const bool whole = !graph.failure();
  const bool wanted = !options.to_json.empty() || !options.dot.empty();
  if (whole && wanted && !WriteGraph(graph, result, options)) return 1;
  if (whole && !options.why_not.empty()) {
    const std::string question = "(why-not " + options.why_not[0] + " " + options.why_not[1] + ")";
    const egraph::ProgramResult asked = egraph::LoadProgram(graph, question, "--why-not", program);
    PrintResult(asked, options.json);
    if (result.ok()) {
      result.status = asked.status;
      text = question;
    }
  }
  if (!result.ok()) ReportError(result.status, *text, options);
  if (options.json) {
    uint64_t matches = 0;
    for (const egraph::RunReport& report : result.reports) matches += report.matches;
    Json done{{"event", "done"},          {"ok", result.ok()},          {"matches", matches},
              {"rows", graph.RowCount()}, {"nodes", graph.NodeCount()}, {"bytes", graph.Bytes()}};
    if (options.proofs) {
      done["proofs"] = {{"proven", result.proven_checks},
                        {"steps", result.proof_steps},
                        {"unproven", result.unproven_checks}};
    }
    if (!result.ok()) done["error"] = ErrorLine(result.status);
    PrintJsonLine(done);
  }
  return result.ok() && std::cout.flush() ? 0 : 1;
}

}  // namespace l3c::tools
