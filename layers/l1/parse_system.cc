// Systems and data.
#include <algorithm>
#include <iterator>

#include "layers/l1/program_parser.h"
#include "layers/l1/tensor_body.h"

namespace l3c::l1 {
namespace {

// Of processors that this machine may be (discover.h), and their older relatives.
constexpr const char* kFeatures[] = {
    "sse2",       "sse4_1",   "sse4_2",   "avx",      "avx2",     "fma",        "f16c",
    "avx512f",    "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512vnni", "avx512bf16",
    "avx512fp16", "amx_tile", "amx_bf16", "amx_int8", "neon",     "sve"};
constexpr double kMostBandwidth = 1e15;  // bytes a second

}  // namespace

void ProgramParser::ParseSystem() {
  const uint32_t begin = Here();
  Next();
  System system;
  const auto name = ExpectName("the name of the system");
  if (!name) return SkipToDeclaration(Keywords());
  if (system_seen_) {
    Error(name->span, "there is a system already: a program is placed on one", Kind::kConsistency)
        .With({program_.system.span, "the first is here"});
    return SkipToDeclaration(Keywords());
  }
  system_seen_ = true;
  system.name = name->text;
  const bool ok = Block([&] {
    if (AtWord("node")) return ParseNode();
    if (AtWord("edges")) {
      Next();
      return Block([&] { return ParseEdge(); });
    }
    ErrorExpected("'node', 'edges' or '}'");
    Next();
    return false;
  });
  if (!ok) SkipToDeclaration(Keywords());
  program_.system.name = system.name;
  program_.system.span = SpanFrom(begin);
}

bool ProgramParser::ParseNode() {
  Next();
  const auto name = ExpectName("the name of a node");
  if (!name) return false;
  if (!Declare(nodes_, *name, "node")) return false;
  SystemNode node;
  node.name = name->text;
  node.span = name->span;
  bool kind_seen = false;
  std::set<std::string> seen;
  const bool ok = ParseList("{", "}", [&] {
    const auto property = ExpectName("a property of the node");
    if (!property || !Expect(":")) return false;
    if (!seen.insert(property->text).second) {
      Error(property->span, "'" + property->text + "' is given twice");
      return false;
    }
    kind_seen = kind_seen || property->text == "kind";
    return ParseNodeProperty(*property, node);
  });
  if (!ok) return false;
  if (!kind_seen) {
    Error(name->span, "node '" + name->text + "' has no kind")
        .Fix("add kind: storage, memory or compute");
    return false;
  }
  // With a property that does not fit it is a node all the same: those who name it are not to
  // blame.
  CheckNode(node);
  if (program_.system.nodes.size() >= kMaxNodes) {
    Error(name->span, "a system has at most " + std::to_string(kMaxNodes) + " nodes",
          Kind::kResourceBound);
    Stop();
    return false;
  }
  node_numbers_.emplace(node.name, program_.system.nodes.size());
  program_.system.nodes.push_back(std::move(node));
  return true;
}

bool ProgramParser::ParseNodeProperty(const Name& property, SystemNode& node) {
  const std::string& text = property.text;
  if (text == "kind") {
    const auto kind = ExpectName("storage, memory or compute");
    if (!kind) return false;
    for (NodeKind candidate : {NodeKind::kStorage, NodeKind::kMemory, NodeKind::kCompute}) {
      if (kind->text == NodeKindName(candidate)) {
        node.kind = candidate;
        return true;
      }
    }
    ErrorUnknown("kind of node", *kind, {"storage", "memory", "compute"});
    return false;
  }
  if (text == "capacity" || text == "vram") {
    const auto bytes = ExpectBytes("a size in bytes, as 32GB");
    if (bytes) (text == "vram" ? node.vram : node.capacity) = *bytes;
    return bytes.has_value();
  }
  if (text == "cores" || text == "sm") {
    const auto count = ExpectInteger("a count", 1, 1 << 20);
    if (count) (text == "sm" ? node.sm : node.cores) = *count;
    return count.has_value();
  }
  if (text == "isa" || text == "arch") {
    const auto word = ExpectName("a name, as " + std::string(text == "isa" ? "x86_64" : "sm_80"));
    if (word) (text == "isa" ? node.isa : node.arch) = word->text;
    return word.has_value();
  }
  if (text == "features") {
    return ParseList("[", "]", [&] {
      const auto feature = ExpectName("a feature of the processor");
      if (!feature) return false;
      // What is chosen by features would pass over a word that is none.
      const std::vector<std::string> known(std::begin(kFeatures), std::end(kFeatures));
      if (std::find(known.begin(), known.end(), feature->text) == known.end()) {
        ErrorUnknown("feature of a processor", *feature, known);
        return false;
      }
      if (std::find(node.features.begin(), node.features.end(), feature->text) !=
          node.features.end()) {
        Error(feature->span, "feature '" + feature->text + "' is named twice", Kind::kConsistency);
        return false;
      }
      node.features.push_back(feature->text);
      return true;
    });
  }
  ErrorUnknown("property of a node", property,
               {"kind", "capacity", "isa", "cores", "features", "vram", "sm", "arch"});
  return false;
}

// A property of one kind of node on another would be dropped silently.
void ProgramParser::CheckNode(const SystemNode& node) {
  const bool compute = node.kind == NodeKind::kCompute;
  if (node.kind == NodeKind::kMemory && node.capacity == 0) {
    Error(node.span, "memory node '" + node.name + "' has no capacity", Kind::kResourceBound)
        .Fix("add capacity: 32GB, or what there is");
  } else if (compute && node.isa.empty()) {
    Error(node.span, "compute node '" + node.name + "' has no isa").Fix("add isa: x86_64");
  } else if (compute && node.capacity > 0) {
    Error(node.span, "a compute node has no capacity; its own memory is its vram",
          Kind::kConsistency);
  } else if (!compute && (!node.isa.empty() || node.cores > 0 || node.vram > 0 || node.sm > 0 ||
                          !node.arch.empty() || !node.features.empty())) {
    Error(node.span, "isa, cores, features, vram, sm and arch are properties of compute nodes",
          Kind::kConsistency);
  }
}

bool ProgramParser::ParseEdge() {
  const uint32_t begin = Here();
  Edge edge;
  const auto from = ExpectNode("a node");
  if (!from) return false;
  if (Accept("<->")) {
    edge.both_ways = true;
  } else if (!Accept("->")) {
    ErrorExpected("'->' or '<->'");
    return false;
  }
  const auto to = ExpectNode("a node");
  if (!to || !Expect(":") || !ExpectWord("bandwidth")) return false;
  const auto rate = ExpectRate("a rate, as 2GB/s");
  if (!rate) return false;
  edge.from = *from;
  edge.to = *to;
  edge.bandwidth = *rate;
  edge.span = SpanFrom(begin);
  if (*rate <= 0) {
    Error(edge.span, "an edge needs a bandwidth above zero", Kind::kResourceBound);
    return false;
  }
  if (*rate > kMostBandwidth) {
    Error(edge.span, "an edge of more than 1PB/s", Kind::kResourceBound)
        .Fix("give what the link carries in a second, as 2GB/s");
    return false;
  }
  for (const Edge& other : program_.system.edges) {
    const bool same = other.from == edge.from && other.to == edge.to;
    const bool back = other.from == edge.to && other.to == edge.from;
    if (!same && !(back && (edge.both_ways || other.both_ways))) continue;
    Error(edge.span,
          "there is an edge from '" + program_.system.nodes[edge.from].name + "' to '" +
              program_.system.nodes[edge.to].name + "' already",
          Kind::kConsistency)
        .With({other.span, "here"})
        .Fix("remove one of the two");
    return true;
  }
  if (program_.system.edges.size() >= kMaxEdges) {
    Error(edge.span, "a system has at most " + std::to_string(kMaxEdges) + " edges",
          Kind::kResourceBound);
    Stop();
    return false;
  }
  program_.system.edges.push_back(edge);
  return true;
}

std::optional<uint32_t> ProgramParser::ExpectNode(std::string_view what) {
  const auto name = ExpectName(what);
  if (!name) return std::nullopt;
  return ResolveNode(*name);
}

std::optional<uint32_t> ProgramParser::ResolveNode(const Name& name) {
  const auto node = node_numbers_.find(name.text);
  if (node != node_numbers_.end()) return static_cast<uint32_t>(node->second);
  // A node that was declared and is not there has been reported.
  if (!nodes_.contains(name.text)) {
    std::vector<std::string> candidates;
    for (const SystemNode& n : program_.system.nodes) candidates.push_back(n.name);
    auto& error = ErrorUnknown("node", name, candidates, Kind::kSafety);
    if (!system_seen_) error.Fix("the system stands before what is placed on it");
  }
  return std::nullopt;
}

std::optional<TensorType> ProgramParser::ParseDomain() {
  if (!AtWord("tensor") && !AtWord("scalar")) {
    ErrorExpected("tensor(dtype, shape) or scalar(dtype)");
    return std::nullopt;
  }
  const bool scalar = AtWord("scalar");
  const uint32_t begin = Here();
  Next();
  if (!Expect("(")) return std::nullopt;
  const auto name = ExpectName("a dtype");
  if (!name) return std::nullopt;
  const auto dtype = tensor::ParseDType(name->text);
  if (!dtype) {
    ErrorUnknown("dtype", *name, DTypeNames());
    return std::nullopt;
  }
  tensor::Shape shape;
  if (!scalar) {
    if (!Expect(",")) return std::nullopt;
    const bool ok = ParseList("[", "]", [&] {
      const auto extent = ExpectInteger("an extent", 1, tensor::kMaxElements);
      if (extent) shape.push_back(*extent);
      return extent.has_value();
    });
    if (!ok) return std::nullopt;
  }
  if (!Expect(")")) return std::nullopt;
  if (!CheckShape(shape, SpanFrom(begin))) return std::nullopt;
  return TensorType{*dtype, std::move(shape)};
}

bool ProgramParser::CheckShape(const tensor::Shape& shape, Span span) {
  if (shape.size() > tensor::kMaxRank) {
    Error(span, "a tensor has at most " + std::to_string(tensor::kMaxRank) + " axes",
          Kind::kResourceBound);
    return false;
  }
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (elements > tensor::kMaxElements / extent) {
      Error(span, "a tensor has at most 2^40 elements", Kind::kResourceBound);
      return false;
    }
    elements *= extent;
  }
  return true;
}

void ProgramParser::ParseData() {
  Next();
  const auto name = ExpectName("the name of the data");
  if (!name) return SkipToDeclaration(Keywords());
  BoundData data;
  data.name = name->text;
  std::map<std::string, Span> fields;
  const bool ok = Block([&] { return ParseField(data, fields); });
  data.span = name->span;
  if (!ok) SkipToDeclaration(Keywords());
  if (!Declare(data_, *name, "data")) return;
  data_numbers_.emplace(data.name, program_.data.size());
  program_.data.push_back(std::move(data));
}

bool ProgramParser::ParseField(BoundData& data, std::map<std::string, Span>& fields) {
  const auto name = ExpectName("a field");
  if (!name || !Expect(":")) return false;
  BoundField field;
  field.name = name->text;
  field.span = name->span;
  const auto domain = ParseDomain();
  if (!domain) return false;
  field.dtype = domain->dtype;
  field.shape = domain->shape;
  if (AcceptWord(tensor::IsFloat(field.dtype) ? "distribution" : "labels")) {
    if (!Expect("(")) return false;
    const auto classes = ExpectInteger("the number of classes", 1, int64_t{1} << 31);
    if (!classes) return false;
    if (!tensor::IsFloat(field.dtype) && Accept(",")) {
      if (!ExpectWord("ignored") || !Expect(":")) return false;
      field.ignored = ExpectInteger("the label that counts nothing", 0, int64_t{1} << 31);
      if (!field.ignored) return false;
    }
    if (!Expect(")")) return false;
    if (tensor::IsFloat(field.dtype) && tensor::NumElements(field.shape) % *classes != 0) {
      Error(name->span,
            "field '" + field.name + "' has " + std::to_string(tensor::NumElements(field.shape)) +
                " elements, no distributions over " + std::to_string(*classes) + " classes",
            Kind::kConsistency);
      return false;
    }
    field.classes = *classes;
  }
  const bool sound = ParseFieldPlace(data, field);
  if (field.name == kValidField) {
    Error(field.span, "'valid' names the mask of a batch; call the field something else",
          Kind::kConsistency);
    return true;
  }
  // With a wrong place it is a field all the same: those who read it are not to blame.
  if (Declare(fields, *name, "field")) data.fields.push_back(std::move(field));
  return sound;
}

// `@ NODE, path: "FOLDER"`.
bool ProgramParser::ParseFieldPlace(const BoundData& data, BoundField& field) {
  if (!Expect("@")) return false;
  const uint32_t at = Here();
  const auto storage = ExpectNode("a storage node");
  if (!storage) return false;
  field.storage = *storage;
  if (program_.system.nodes[*storage].kind != NodeKind::kStorage) {
    Error(SpanFrom(at), "'" + program_.system.nodes[*storage].name + "' is no storage node",
          Kind::kSafety);
  }
  if (!Expect(",") || !ExpectWord("path") || !Expect(":")) return false;
  const auto at_path = Here();
  const auto path = ExpectString("the path of the data, in quotes");
  if (!path) return false;
  if (path->empty()) {
    Error(SpanFrom(at_path), "the path of the data is empty", Kind::kEnvironment)
        .Fix("name the folder that they lie in, such as \"data/" + data.name + "\"");
    return true;
  }
  field.path = *path;
  return true;
}

}  // namespace l3c::l1
