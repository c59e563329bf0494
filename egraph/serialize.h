// E-graphs as files: egraph-serialize's JSON, read and written, and Graphviz dot, written.
//
//   {"nodes": {"id": {"op": "+", "children": ["id", …], "eclass": "c", "cost": 1.0,
//                     "subsumed": false}, …},
//    "root_eclasses": ["c", …],
//    "class_data": {"c": {"type": "Math"}, …}}
//
// A child names an e-node and means that e-node's class. `cost` is 1 and `subsumed` false where
// absent; `root_eclasses` and `class_data` may be absent. A cost of null is infinite, which is how
// it is written, JSON having no infinity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/error_kind.h"
#include "egraph/extract/extract.h"
#include "egraph/extract/node_graph.h"
#include "egraph/view.h"

namespace l3c::egraph {

struct SerializedNode {
  std::string id;
  std::string op;
  uint32_t cls = 0;                // index into classes
  std::vector<uint32_t> children;  // indices into nodes
  double cost = 1;
  bool subsumed = false;
};

struct SerializedClass {
  std::string id;
  std::string type;  // empty where the file has none
};

struct SerializedGraph {
  // Read: in order of their ids, bytewise.
  std::vector<SerializedNode> nodes;
  // Read: in order of the first e-node that names them.
  std::vector<SerializedClass> classes;
  std::vector<uint32_t> roots;  // classes
};

struct SerializedResult {
  SerializedGraph graph;
  // "FILE: error: MESSAGE", empty when it was read.
  std::string error;
  std::string file;
  std::string message;  // begins with the e-node, or for bad JSON with line and column
  ErrorKind kind = ErrorKind::kSyntax;
  std::optional<uint32_t> offset;  // bad JSON: the byte of the text at which it was given up
  bool ok() const { return error.empty(); }
};

// Refuses what is no such file: bad JSON (with line and column), names that are not there, costs
// that are no numbers, roots without an e-node. Cyclic classes are fine.
SerializedResult ReadSerialized(std::string_view json, std::string_view file);

// Two spaces of indentation; costs with as many digits as they need.
std::string WriteSerialized(const SerializedGraph& graph);

// The e-nodes of a view with their objectives. Literals and containers become e-nodes of their own,
// at no cost, in a class for each, as the format has no arguments besides; what is in a container
// are its children.
SerializedGraph Serialize(const Extractor& costs, std::span<const ClassRef> roots);

// What an extractor needs of a serialized graph.
struct SerializedProblem {
  PlainNodeGraph graph;         // classes as in the serialized graph
  std::vector<double> prices;   // by e-node; infinite where subsumed
  std::vector<uint32_t> nodes;  // by e-node: the serialized node
  std::vector<ClassRef> roots;
};
SerializedProblem ProblemOf(const SerializedGraph& graph);

// A cluster for each class, an edge from each child to the class it means. The serialized nodes in
// `chosen` are filled.
std::string WriteDot(const SerializedGraph& graph, std::span<const uint32_t> chosen = {});

}  // namespace l3c::egraph
