#include "egraph/serialize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "nlohmann/json.hpp"

namespace l3c::egraph {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  SerializedResult Read(std::string_view text) {
    json root;
    try {
      root = json::parse(text);
    } catch (const json::parse_error& e) {
      Fail("", WithoutPrefix(e.what()), ErrorKind::kSyntax);
      // Bytes are counted from 1, and the one after the last is the end.
      result_.offset = static_cast<uint32_t>(e.byte == 0 ? 0 : e.byte - 1);
      return std::move(result_);
    } catch (const json::exception& e) {
      Fail("", WithoutPrefix(e.what()), ErrorKind::kSyntax);
      return std::move(result_);
    }
    if (!root.is_object() || !root.contains("nodes") || !root["nodes"].is_object()) {
      Fail("", "expected an object with an object \"nodes\"", ErrorKind::kSyntax);
      return std::move(result_);
    }
    if (!ReadNodes(root["nodes"]) || !ReadRoots(root) || !ReadClassData(root)) {
      result_.graph = SerializedGraph();
    }
    return std::move(result_);
  }

 private:
  // The parser's messages begin with its own name in brackets.
  static std::string WithoutPrefix(std::string_view message) {
    if (const size_t end = message.find("] "); end != std::string_view::npos) {
      message.remove_prefix(end + 2);
    }
    return std::string(message);
  }

  bool Fail(const std::string& where, const std::string& message, ErrorKind kind) {
    result_.file = file_;
    result_.message = (where.empty() ? "" : where + ": ") + message;
    result_.kind = kind;
    result_.error = file_ + ": error: " + result_.message;
    return false;
  }

  static std::string Quoted(const std::string& s) {
    return json(s).dump(-1, ' ', false, json::error_handler_t::replace);
  }

  bool ReadNodes(const json& nodes) {
    SerializedGraph& graph = result_.graph;
    std::map<std::string, uint32_t> by_id;
    for (const auto& [id, value] : nodes.items()) {
      by_id.emplace(id, static_cast<uint32_t>(by_id.size()));
    }
    for (const auto& [id, value] : nodes.items()) {
      const std::string where = "node " + Quoted(id);
      if (!value.is_object()) return Fail(where, "expected an object", ErrorKind::kSyntax);
      SerializedNode& node = graph.nodes.emplace_back();
      node.id = id;
      for (const char* key : {"op", "eclass"}) {
        if (!value.contains(key) || !value[key].is_string()) {
          return Fail(where, std::string("expected a string \"") + key + "\"", ErrorKind::kSyntax);
        }
      }
      node.op = value["op"];
      const std::string eclass = value["eclass"];
      const auto [at, added] =
          class_by_id_.emplace(eclass, static_cast<uint32_t>(graph.classes.size()));
      if (added) graph.classes.push_back({eclass, ""});
      node.cls = at->second;
      if (value.contains("cost")) {
        const json& cost = value["cost"];
        if (!cost.is_number() && !cost.is_null())
          return Fail(where, "expected a number \"cost\"", ErrorKind::kSyntax);
        node.cost = cost.is_null() ? kInfinity : cost.get<double>();
      }
      if (value.contains("subsumed")) {
        if (!value["subsumed"].is_boolean())
          return Fail(where, "expected a bool \"subsumed\"", ErrorKind::kSyntax);
        node.subsumed = value["subsumed"];
      }
      if (!value.contains("children")) continue;
      if (!value["children"].is_array())
        return Fail(where, "expected an array \"children\"", ErrorKind::kSyntax);
      for (const json& child : value["children"]) {
        if (!child.is_string())
          return Fail(where, "expected children to be strings", ErrorKind::kSyntax);
        const auto named = by_id.find(child.get_ref<const std::string&>());
        if (named == by_id.end())
          return Fail(where, "child " + Quoted(child) + " is no node", ErrorKind::kSafety);
        node.children.push_back(named->second);
      }
    }
    return true;
  }

  bool ReadRoots(const json& root) {
    if (!root.contains("root_eclasses")) return true;
    const json& roots = root["root_eclasses"];
    if (!roots.is_array())
      return Fail("", "expected an array \"root_eclasses\"", ErrorKind::kSyntax);
    for (const json& id : roots) {
      if (!id.is_string()) return Fail("root_eclasses", "expected strings", ErrorKind::kSyntax);
      const auto named = class_by_id_.find(id.get_ref<const std::string&>());
      if (named == class_by_id_.end()) {
        return Fail("root_eclasses", "class " + Quoted(id) + " has no node", ErrorKind::kSafety);
      }
      result_.graph.roots.push_back(named->second);
    }
    return true;
  }

  bool ReadClassData(const json& root) {
    if (!root.contains("class_data")) return true;
    const json& data = root["class_data"];
    if (!data.is_object()) return Fail("", "expected an object \"class_data\"", ErrorKind::kSyntax);
    for (const auto& [id, value] : data.items()) {
      // Data on classes without e-nodes says nothing about any term.
      const auto named = class_by_id_.find(id);
      if (named == class_by_id_.end() || !value.is_object() || !value.contains("type")) continue;
      if (value["type"].is_null()) continue;
      if (!value["type"].is_string()) {
        return Fail("class " + Quoted(id), "expected a string \"type\"", ErrorKind::kSyntax);
      }
      result_.graph.classes[named->second].type = value["type"];
    }
    return true;
  }

  std::string file_;
  SerializedResult result_;
  std::map<std::string, uint32_t> class_by_id_;
};

std::string DotText(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

SerializedResult ReadSerialized(std::string_view text, std::string_view file) {
  return Reader(file).Read(text);
}

std::string WriteSerialized(const SerializedGraph& graph) {
  // Assembled here, as the order is that of the graph and costs may be infinite.
  const auto quoted = [](const std::string& s) {
    return json(s).dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::string text = "{\n  \"nodes\": {";
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const SerializedNode& node = graph.nodes[n];
    text += (n == 0 ? "\n    " : ",\n    ") + quoted(node.id) + ": {\"op\": " + quoted(node.op);
    text += ", \"children\": [";
    for (size_t i = 0; i < node.children.size(); ++i) {
      text += (i == 0 ? "" : ", ") + quoted(graph.nodes[node.children[i]].id);
    }
    text += "], \"eclass\": " + quoted(graph.classes[node.cls].id);
    text += ", \"cost\": " + (std::isfinite(node.cost) ? json(node.cost).dump() : "null");
    text += std::string(", \"subsumed\": ") + (node.subsumed ? "true" : "false") + "}";
  }
  text += "\n  },\n  \"root_eclasses\": [";
  for (size_t i = 0; i < graph.roots.size(); ++i) {
    text += (i == 0 ? "" : ", ") + quoted(graph.classes[graph.roots[i]].id);
  }
  text += "],\n  \"class_data\": {";
  bool first = true;
  for (const SerializedClass& c : graph.classes) {
    if (c.type.empty()) continue;
    text += (first ? "\n    " : ",\n    ") + quoted(c.id) + ": {\"type\": " + quoted(c.type) + "}";
    first = false;
  }
  text += first ? "}\n}\n" : "\n  }\n}\n";
  return text;
}

namespace {

// Makes e-nodes of what a view has as arguments: literals, containers, and classes without e-nodes.
class Arguments {
 public:
  Arguments(const EGraphView& view, SerializedGraph& result)
      : view_(view), graph_(view.graph()), result_(result) {}

  // The e-node that stands for the class of an argument. Recurses as deep as containers nest.
  uint32_t NodeOf(SortId sort, Value value) {
    const Sort& s = graph_.sort(sort);
    if (s.is_equality) {
      if (const ClassRef c = view_.ClassOf(value); c.valid()) return view_.FirstNode(c).index;
    }
    const auto [at, added] = nodes_.try_emplace({sort, value}, 0);
    if (!added) return at->second;
    // References into the map stay valid while it grows.
    uint32_t& node = at->second;
    if (s.is_equality) {
      // It has none to name, so one that cannot be had stands for it.
      node = Append(s.name + "-" + std::to_string(value.bits), graph_.DescribeValue(sort, value),
                    s.name, kInfinity);
    } else if (s.is_container()) {
      node = Append(s.name + "-" + std::to_string(value.bits),
                    std::string(ContainerConstructor(s.container)), s.name, 0);
      const std::span<const Value> elements = graph_.Elements(value);
      std::vector<uint32_t> children;
      for (size_t i = 0; i < elements.size(); ++i) {
        // The sorts of what a function has captured are no values.
        if (s.container == ContainerKind::kFn && i % 2 == 1) continue;
        children.push_back(NodeOf(graph_.ElementSort(sort, elements, i), elements[i]));
      }
      result_.nodes[node].children = std::move(children);
    } else {
      const std::string text = graph_.DescribeValue(sort, value);
      node = Append(s.name + "-" + std::to_string(value.bits), text, s.name, 0);
    }
    return node;
  }

 private:
  // An e-node in a class of its own, both called `id`.
  uint32_t Append(const std::string& id, std::string op, const std::string& type, double cost) {
    SerializedNode node;
    node.id = id;
    node.op = std::move(op);
    node.cls = static_cast<uint32_t>(result_.classes.size());
    node.cost = cost;
    result_.nodes.push_back(std::move(node));
    result_.classes.push_back({id, type});
    return static_cast<uint32_t>(result_.nodes.size() - 1);
  }

  const EGraphView& view_;
  const EGraph& graph_;
  SerializedGraph& result_;
  std::map<std::pair<SortId, Value>, uint32_t> nodes_;
};

}  // namespace

SerializedGraph Serialize(const Extractor& costs, std::span<const ClassRef> roots) {
  const EGraphView& view = costs.view();
  const EGraph& graph = view.graph();
  SerializedGraph result;
  for (uint32_t c = 0; c < view.class_count(); ++c) {
    const std::string& type = graph.sort(view.ClassSort(ClassRef{c})).name;
    result.classes.push_back(
        {type + "-" + std::to_string(view.ClassValue(ClassRef{c}).bits), type});
  }
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    SerializedNode& node = result.nodes.emplace_back();
    const ClassRef c = view.NodeClass(ENodeRef{n});
    node.id = result.classes[c.index].id + "__" + std::to_string(n - view.FirstNode(c).index);
    node.op = view.function(ENodeRef{n}).name;
    node.cls = c.index;
    node.cost = costs.NodeObjective(ENodeRef{n});
  }
  Arguments arguments(view, result);
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    const Function& function = view.function(ENodeRef{n});
    const std::span<const Value> args = view.NodeArgs(ENodeRef{n});
    std::vector<uint32_t> children;
    for (size_t i = 0; i < args.size(); ++i) {
      children.push_back(arguments.NodeOf(function.inputs[i], args[i]));
    }
    result.nodes[n].children = std::move(children);
  }
  for (ClassRef root : roots) result.roots.push_back(root.index);
  return result;
}

SerializedProblem ProblemOf(const SerializedGraph& graph) {
  SerializedProblem problem;
  std::vector<std::vector<uint32_t>> by_class(graph.classes.size());
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) by_class[graph.nodes[n].cls].push_back(n);
  std::vector<ClassRef> children;
  for (const std::vector<uint32_t>& nodes : by_class) {
    problem.graph.AddClass();
    for (uint32_t n : nodes) {
      const SerializedNode& node = graph.nodes[n];
      children.clear();
      for (uint32_t child : node.children) children.push_back(ClassRef{graph.nodes[child].cls});
      problem.graph.AddNode(children);
      problem.prices.push_back(node.subsumed ? kInfinity : node.cost);
      problem.nodes.push_back(n);
    }
  }
  for (uint32_t root : graph.roots) problem.roots.push_back(ClassRef{root});
  return problem;
}

std::string WriteDot(const SerializedGraph& graph, std::span<const uint32_t> chosen) {
  std::vector<uint8_t> filled(graph.nodes.size(), 0);
  for (uint32_t n : chosen) filled[n] = 1;
  std::vector<std::vector<uint32_t>> by_class(graph.classes.size());
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) by_class[graph.nodes[n].cls].push_back(n);
  std::string text = "digraph egraph {\n  compound=true\n  node [shape=box]\n";
  for (uint32_t c = 0; c < graph.classes.size(); ++c) {
    text += "  subgraph cluster_" + std::to_string(c) +
            " {\n    style=dotted\n    label=" + DotText(graph.classes[c].id) + "\n";
    for (uint32_t n : by_class[c]) {
      text += "    n" + std::to_string(n) + " [label=" + DotText(graph.nodes[n].op) +
              (filled[n] ? ", style=filled" : "") + "]\n";
    }
    text += "  }\n";
  }
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (uint32_t child : graph.nodes[n].children) {
      text += "  n" + std::to_string(n) + " -> n" + std::to_string(child) + " [lhead=cluster_" +
              std::to_string(graph.nodes[child].cls) + "]\n";
    }
  }
  return text + "}\n";
}

}  // namespace l3c::egraph
