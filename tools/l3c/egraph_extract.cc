// l3c egraph extract: the cheapest term of an e-graph that a file holds.
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "egraph/extract/exact.h"
#include "egraph/extract/plain.h"
#include "egraph/serialize.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/files.h"

namespace l3c::tools {
namespace {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::SerializedGraph;
using egraph::SerializedProblem;

// Of the local search, in e-nodes looked at.
constexpr uint64_t kGreedyWork = 20'000'000;
// Reading a file takes several times its size.
constexpr size_t kMaxFileBytes = size_t{2} << 30;
// A term longer than this is cut off.
constexpr size_t kMaxTermBytes = 1 << 16;

bool Refuse(const std::string& path, const std::string& message) {
  std::cerr << path << ": error: " << message << "\n";
  return false;
}

// Prices by operator; those that the file does not name keep the graph's own.
bool ApplyCosts(const std::string& path, SerializedGraph& graph) {
  const std::optional<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text) return false;
  const nlohmann::json costs = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!costs.is_object()) return Refuse(path, "expected a JSON object of costs by operator");
  std::map<std::string, double> by_op;
  for (const auto& [op, cost] : costs.items()) {
    if (!cost.is_number()) return Refuse(path, "the cost of \"" + op + "\" is no number");
    by_op[op] = cost;
  }
  for (egraph::SerializedNode& node : graph.nodes) {
    if (const auto at = by_op.find(node.op); at != by_op.end()) node.cost = at->second;
  }
  return true;
}

// `(op child …)`, shared parts repeated; a leaf is its operator alone.
std::string TermText(const SerializedGraph& graph, const SerializedProblem& problem,
                     std::span<const ENodeRef> choice, ClassRef root) {
  std::string text;
  std::vector<std::pair<ENodeRef, uint32_t>> stack;  // e-node, next child
  const auto open = [&](ClassRef c) {
    const ENodeRef n = choice[c.index];
    const std::string& op = graph.nodes[problem.nodes[n.index]].op;
    if (problem.graph.NodeChildren(n).empty()) {
      text += op;
    } else {
      text += "(" + op;
      stack.emplace_back(n, 0);
    }
  };
  open(root);
  while (!stack.empty()) {
    if (text.size() > kMaxTermBytes) return text + "…";
    auto& [n, next] = stack.back();
    const std::span<const ClassRef> children = problem.graph.NodeChildren(n);
    if (next == children.size()) {
      text += ")";
      stack.pop_back();
      continue;
    }
    const ClassRef child = children[next++];
    text += " ";
    open(child);
  }
  return text;
}

std::string Number(double x) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.12g", x);
  return buffer;
}

}  // namespace

int EGraphExtract(const Options& options) {
  const std::optional<std::string> text = ReadFile(options.file, kMaxFileBytes);
  if (!text) return 1;
  egraph::SerializedResult read = egraph::ReadSerialized(*text, options.file);
  if (!read.ok()) {
    std::cerr << read.error << "\n";
    return 1;
  }
  SerializedGraph& graph = read.graph;
  if (graph.roots.empty()) {
    Refuse(options.file, "there are no root_eclasses to extract");
    return 1;
  }
  if (options.costs == "size") {
    for (egraph::SerializedNode& node : graph.nodes) node.cost = 1;
  } else if (options.costs != "file" && !ApplyCosts(options.costs, graph)) {
    return 1;
  }
  const SerializedProblem problem = egraph::ProblemOf(graph);
  egraph::PlainExtraction found;
  egraph::ExactSolution exact;
  if (options.extractor == "tree") {
    found = egraph::PlainTree(problem.graph, problem.prices, problem.roots);
  } else if (options.extractor == "greedy") {
    found = egraph::PlainGreedyDag(problem.graph, problem.prices, problem.roots, kGreedyWork);
  } else {
    egraph::ExactOptions limits;
    if (options.max_seconds) limits.max_seconds = *options.max_seconds;
    exact = egraph::SolveExact(problem.graph, problem.prices, problem.roots, limits);
    found = egraph::MeasureChoice(problem.graph, problem.prices, problem.roots, exact.choice);
  }
  if (!found.feasible) {
    Refuse(options.file, "no finite term for the roots");
    return 1;
  }
  const bool is_exact = options.extractor == "exact";
  std::vector<uint32_t> chosen;
  for (ENodeRef n : found.choice) {
    if (n.valid()) chosen.push_back(problem.nodes[n.index]);
  }
  if (!options.dot.empty() && !WriteFile(options.dot, egraph::WriteDot(graph, chosen))) return 1;
  if (options.json) {
    nlohmann::ordered_json line = {{"event", "extraction"},
                                   {"extractor", options.extractor},
                                   {"dag_cost", found.dag_cost},
                                   {"tree_cost", found.tree_cost}};
    if (is_exact) {
      line["optimal"] = exact.optimal;
      line["lower_bound"] = exact.lower_bound;
      line["gap"] = exact.gap;
    }
    nlohmann::ordered_json choices = nlohmann::ordered_json::array();
    for (uint32_t n : chosen) {
      choices.push_back({graph.classes[graph.nodes[n].cls].id, graph.nodes[n].id});
    }
    line["choice"] = std::move(choices);
    std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
    return 0;
  }
  std::cout << "dag cost " << Number(found.dag_cost) << ", tree cost " << Number(found.tree_cost)
            << ", " << found.order.size() << " classes";
  if (is_exact && exact.optimal) {
    std::cout << ", optimal";
  } else if (is_exact) {
    std::cout << ", at least " << Number(exact.lower_bound) << " (gap " << Number(100 * exact.gap)
              << " %)";
  }
  std::cout << "\n";
  for (ClassRef root : problem.roots) {
    std::cout << TermText(graph, problem, found.choice, root) << "\n";
  }
  return 0;
}

}  // namespace l3c::tools
