// l3c egraph extract: the cheapest term of an e-graph that a file holds.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egraph/extract/exact.h"
#include "egraph/extract/plain.h"
#include "egraph/extract/top_k.h"
#include "egraph/serialize.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/egraph_errors.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::SerializedGraph;
using egraph::SerializedProblem;
using support::Kind;

// Of the local search, in its steps.
constexpr uint64_t kGreedyWork = 1'000'000'000;
// Reading a file takes several times its size.
constexpr size_t kMaxFileBytes = size_t{2} << 30;
// A term longer than this is cut off.
constexpr size_t kMaxTermBytes = 1 << 16;
constexpr std::string_view kCut = "…";

// {"op": number, …}
std::optional<std::map<std::string, double>> ReadByOp(const std::string& path,
                                                      const Options& options) {
  const std::optional<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    Refuse(path, Kind::kSyntax, "expected a JSON object of numbers by operator", options);
    return std::nullopt;
  }
  std::map<std::string, double> by_op;
  for (const auto& [op, x] : json.items()) {
    if (!x.is_number()) {
      Refuse(path, Kind::kSyntax, "the value of \"" + op + "\" is no number", options);
      return std::nullopt;
    }
    by_op[op] = x;
  }
  return by_op;
}

// Prices by operator; those that the file does not name keep the graph's own.
bool ApplyCosts(const Options& options, SerializedGraph& graph) {
  const auto by_op = ReadByOp(options.costs, options);
  if (!by_op) return false;
  for (egraph::SerializedNode& node : graph.nodes) {
    if (const auto at = by_op->find(node.op); at != by_op->end()) node.cost = at->second;
  }
  return true;
}

bool ApplyRoots(const Options& options, SerializedGraph& graph) {
  if (options.extract_roots.empty()) return true;
  graph.roots.clear();
  for (const std::string& id : options.extract_roots) {
    uint32_t c = 0;
    while (c < graph.classes.size() && graph.classes[c].id != id) ++c;
    if (c == graph.classes.size()) {
      return Refuse(options.file, Kind::kSafety, "there is no class \"" + id + "\" for --root",
                    options);
    }
    graph.roots.push_back(c);
  }
  return true;
}

// AMOUNTS.json=LIMIT
std::optional<egraph::ChoiceBound> ReadBound(const Options& options, const std::string& argument,
                                             const SerializedGraph& graph,
                                             const SerializedProblem& problem) {
  const size_t equals = argument.rfind('=');
  egraph::ChoiceBound bound;
  char* end = nullptr;
  if (equals != std::string::npos) {
    bound.limit = std::strtod(argument.c_str() + equals + 1, &end);
  }
  if (end == nullptr || end == argument.c_str() + equals + 1 || *end != 0 ||
      !std::isfinite(bound.limit)) {
    Refuse("--bound " + argument, Kind::kSyntax, "expected AMOUNTS.json=LIMIT", options);
    return std::nullopt;
  }
  const auto by_op = ReadByOp(argument.substr(0, equals), options);
  if (!by_op) return std::nullopt;
  for (const auto& [op, x] : *by_op) {
    if (x >= 0) continue;
    Refuse(argument.substr(0, equals), Kind::kConsistency,
           "the amount of \"" + op + "\" is below zero", options);
    return std::nullopt;
  }
  for (uint32_t n = 0; n < problem.nodes.size(); ++n) {
    const auto at = by_op->find(graph.nodes[problem.nodes[n]].op);
    if (at != by_op->end()) bound.terms.emplace_back(ENodeRef{n}, at->second);
  }
  return bound;
}

// `(op child …)`, shared parts repeated; a leaf is its operator alone. `T` names a part: `node(t)`
// is its e-node, `child(t, i)` its part i.
template <typename T, typename Node, typename Child>
std::string TermText(const SerializedGraph& graph, const SerializedProblem& problem, T root,
                     Node&& node, Child&& child) {
  std::string text;
  std::vector<std::pair<T, uint32_t>> stack;  // part, next child
  const auto open = [&](T t) {
    const ENodeRef n = node(t);
    const std::string& op = graph.nodes[problem.nodes[n.index]].op;
    if (problem.graph.NodeChildren(n).empty()) {
      text += op;
    } else {
      text += "(" + op;
      stack.emplace_back(t, 0);
    }
  };
  open(root);
  while (!stack.empty()) {
    if (text.size() > kMaxTermBytes) return text + std::string(kCut);
    auto& [t, next] = stack.back();
    if (next == problem.graph.NodeChildren(node(t)).size()) {
      text += ")";
      stack.pop_back();
      continue;
    }
    const T part = child(t, next++);
    text += " ";
    open(part);
  }
  return text;
}

std::string TermText(const SerializedGraph& graph, const SerializedProblem& problem,
                     std::span<const ENodeRef> choice, ClassRef root) {
  const auto node = [&](ClassRef c) { return choice[c.index]; };
  return TermText(graph, problem, root, node,
                  [&](ClassRef c, uint32_t i) { return problem.graph.NodeChildren(node(c))[i]; });
}

std::string Number(double x) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.12g", x);
  return buffer;
}

// A tree cost, whose sum stops at the largest number.
std::string TreeNumber(double x) {
  return x < std::numeric_limits<double>::max() ? Number(x) : "above 1.79e308";
}

// The graph as a drawing with the e-nodes filled, where that is asked for.
bool Draw(const Options& options, const SerializedGraph& graph, const SerializedProblem& problem,
          std::span<const ENodeRef> chosen) {
  if (options.dot.empty()) return true;
  std::vector<uint32_t> nodes;
  for (ENodeRef n : chosen) {
    if (n.valid()) nodes.push_back(problem.nodes[n.index]);
  }
  return WriteFile(options.dot, egraph::WriteDot(graph, nodes));
}

// What is known of a choice beside its costs.
struct Proof {
  bool exact = false, optimal = false;
  double lower_bound = 0, gap = 0;
};

void PrintChoice(const Options& options, const SerializedGraph& graph,
                 const SerializedProblem& problem, const egraph::PlainExtraction& found,
                 const Proof& proof, size_t rank) {
  if (options.json) {
    nlohmann::ordered_json line = {{"event", "extraction"}, {"extractor", options.extractor}};
    if (options.top > 1) line["rank"] = rank;
    line["dag_cost"] = found.dag_cost;
    line["tree_cost"] = found.tree_cost;
    if (proof.exact) line["optimal"] = proof.optimal;
    if (proof.exact && options.top == 1) {
      line["lower_bound"] = proof.lower_bound;
      line["gap"] = proof.gap;
    }
    nlohmann::ordered_json choices = nlohmann::ordered_json::array();
    for (ENodeRef n : found.choice) {
      if (!n.valid()) continue;
      const egraph::SerializedNode& node = graph.nodes[problem.nodes[n.index]];
      choices.push_back({graph.classes[node.cls].id, node.id});
    }
    line["choice"] = std::move(choices);
    PrintJsonLine(line);
    return;
  }
  if (options.top > 1) std::cout << rank << ": ";
  std::cout << "dag cost " << Number(found.dag_cost) << ", tree cost "
            << TreeNumber(found.tree_cost) << ", " << found.order.size() << " classes";
  if (proof.exact && proof.optimal) {
    std::cout << ", optimal";
  } else if (proof.exact && options.top > 1) {
    std::cout << ", not proven";
  } else if (proof.exact) {
    std::cout << ", at least " << Number(proof.lower_bound) << " (gap " << Number(100 * proof.gap)
              << " %)";
  }
  std::cout << "\n";
  for (ClassRef root : problem.roots) {
    const std::string text = TermText(graph, problem, found.choice, root);
    std::cout << text << "\n";
    if (text.ends_with(kCut)) {
      std::cerr << options.file << ": warning: a term is cut after " << kMaxTermBytes
                << " bytes; --json gives the whole choice\n";
    }
  }
}

int PrintTopTrees(const Options& options, const SerializedGraph& graph,
                  const SerializedProblem& problem) {
  const egraph::TopTrees top(problem.graph, problem.prices, problem.roots, options.top);
  if (top.size() > 0) {
    std::vector<ENodeRef> chosen;
    std::vector<uint32_t> terms(top.Roots(0).begin(), top.Roots(0).end());
    std::set<uint32_t> seen(terms.begin(), terms.end());
    for (size_t i = 0; i < terms.size(); ++i) {
      chosen.push_back(top.term(terms[i]).node);
      for (uint32_t child : top.Children(terms[i])) {
        if (seen.insert(child).second) terms.push_back(child);
      }
    }
    if (!Draw(options, graph, problem, chosen)) return 1;
  }
  for (size_t i = 0; i < top.size(); ++i) {
    std::vector<std::string> terms;
    for (uint32_t root : top.Roots(i)) {
      terms.push_back(TermText(
          graph, problem, root, [&](uint32_t t) { return top.term(t).node; },
          [&](uint32_t t, uint32_t k) { return top.Children(t)[k]; }));
    }
    if (options.json) {
      PrintJsonLine({{"event", "extraction"},
                     {"extractor", options.extractor},
                     {"rank", i + 1},
                     {"tree_cost", top.cost(i)},
                     {"terms", terms}});
      continue;
    }
    std::cout << i + 1 << ": tree cost " << TreeNumber(top.cost(i)) << "\n";
    for (const std::string& term : terms) std::cout << term << "\n";
  }
  if (top.size() == 0) {
    Refuse(options.file, Kind::kConsistency, "no finite term for the roots", options);
    return 1;
  }
  if (top.work_exhausted()) std::cerr << options.file << ": warning: stopped at the work limit\n";
  return 0;
}

}  // namespace

int EGraphExtract(const Options& options) {
  if (!options.dot.empty() && !CanWriteFile(options.dot)) return 1;
  const std::optional<std::string> text = ReadFile(options.file, kMaxFileBytes);
  if (!text) return 1;
  egraph::SerializedResult read = egraph::ReadSerialized(*text, options.file);
  if (!read.ok()) {
    ReportError(read, *text, options);
    return 1;
  }
  SerializedGraph& graph = read.graph;
  if (!ApplyRoots(options, graph)) return 1;
  if (graph.roots.empty()) {
    Refuse(options.file, Kind::kConsistency,
           "there are no root_eclasses to extract; name some with --root", options);
    return 1;
  }
  const bool is_exact = options.extractor == "exact";
  if (!options.extract_bounds.empty() && !is_exact) {
    Refuse("--bound", Kind::kConsistency, "only --extractor exact keeps bounds", options);
    return 2;
  }
  if (options.top > 1 && options.extractor == "greedy") {
    Refuse("--top", Kind::kConsistency, "the greedy extractor has one result; take tree or exact",
           options);
    return 2;
  }
  if (options.max_seconds && options.extractor == "tree") {
    Refuse("--max-seconds", Kind::kConsistency,
           "the tree extractor is not cut short; take greedy or exact", options);
    return 2;
  }
  if (options.costs == "size") {
    for (egraph::SerializedNode& node : graph.nodes) node.cost = 1;
  } else if (options.costs != "file" && !ApplyCosts(options, graph)) {
    return 1;
  }
  const SerializedProblem problem = egraph::ProblemOf(graph);
  if (options.top > 1 && !is_exact) return PrintTopTrees(options, graph, problem);

  std::vector<egraph::TopDag> found;
  Proof proof;
  if (options.extractor == "tree") {
    found.push_back({egraph::PlainTree(problem.graph, problem.prices, problem.roots)});
  } else if (options.extractor == "greedy") {
    const egraph::TimeLimit time(
        egraph::TimeKind::kWall,
        options.max_seconds.value_or(std::numeric_limits<double>::infinity()));
    found.push_back(
        {egraph::PlainGreedyDag(problem.graph, problem.prices, problem.roots, kGreedyWork, time)});
  } else {
    egraph::ExactOptions limits;
    if (options.max_seconds) limits.max_seconds = *options.max_seconds;
    for (const std::string& argument : options.extract_bounds) {
      const auto bound = ReadBound(options, argument, graph, problem);
      if (!bound) return 1;
      limits.bounds.push_back(*bound);
    }
    proof.exact = true;
    if (options.top > 1) {
      found = egraph::TopDags(problem.graph, problem.prices, problem.roots, options.top, limits);
    } else {
      const egraph::ExactSolution exact =
          egraph::SolveExact(problem.graph, problem.prices, problem.roots, limits);
      proof.lower_bound = exact.lower_bound;
      proof.gap = exact.gap;
      found.push_back(
          {egraph::MeasureChoice(problem.graph, problem.prices, problem.roots, exact.choice),
           exact.optimal});
    }
  }
  if (found.empty() || !found.front().extraction.feasible) {
    Refuse(options.file, Kind::kConsistency,
           !options.extract_bounds.empty()
               ? "no finite term for the roots was found within the bounds"
               : "no finite term for the roots",
           options);
    return 1;
  }
  if (!std::isfinite(found.front().extraction.dag_cost)) {
    Refuse(options.file, Kind::kResourceBound, "the costs add up to more than a number can hold",
           options);
    return 1;
  }
  if (!Draw(options, graph, problem, found.front().extraction.choice)) return 1;
  for (size_t i = 0; i < found.size(); ++i) {
    proof.optimal = found[i].proven;
    PrintChoice(options, graph, problem, found[i].extraction, proof, i + 1);
  }
  return 0;
}

}  // namespace l3c::tools
