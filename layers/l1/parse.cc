// A file is read in two passes. The first reads everything but the bodies of handlers and tensor
// graphs, which it leaves as spans; so a body may rely on anything that stands in the file, before
// it or after: the windows of an actor, or the buffers that a stage forwards to a graph whose
// arguments are written without types. Nodes and data are declared before their use.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l1/tensor_body.h"
#include "layers/l1/text.h"
#include "layers/support/parser.h"

namespace l3c::l1 {
namespace {

using support::Kind;
using support::Name;
using support::ParserBase;

const std::vector<std::string> kKeywords = {"system",       "data",     "actor",   "stage",
                                            "tensor_graph", "pipeline", "schedule"};

struct RawArg {
  Name name;
  std::optional<std::pair<tensor::DType, tensor::Shape>> type;
};

// What the first pass leaves for the second.
struct RawGraph {
  std::vector<RawArg> args;
  std::vector<std::pair<Name, Name>> reads;
  std::vector<Name> outputs;
  Span body;
};
struct RawHandler {
  size_t actor = 0;
  size_t handler = 0;
  std::vector<RawArg> args;
  Span body;
};

class ProgramParser : public ParserBase {
 public:
  using ParserBase::ParserBase;

  std::optional<Program> Parse() {
    CheckHeader("l1");
    while (!AtEnd()) {
      if (AtWord("system")) {
        ParseSystem();
      } else if (AtWord("data")) {
        ParseData();
      } else if (AtWord("actor")) {
        ParseActor();
      } else if (AtWord("stage")) {
        ParseStage();
      } else if (AtWord("tensor_graph")) {
        ParseGraph();
      } else if (AtWord("pipeline")) {
        ParsePipeline();
      } else if (AtWord("schedule")) {
        ParseSchedule();
      } else {
        Unexpected();
      }
    }
    if (stopped()) return std::nullopt;
    if (diagnostics().has_errors()) return std::nullopt;
    if (!system_seen_) {
      Error({}, "there is no system: an L1 file says what hardware it is for", Kind::kSafety);
    } else if (!schedule_seen_ && !IsSystemFragment(program_)) {
      Error({}, "there is no schedule: nothing says what runs", Kind::kSafety);
    }
    if (diagnostics().has_errors()) return std::nullopt;
    BuildGraphs();
    BuildHandlers();
    ResolveReferences();
    if (diagnostics().has_errors()) return std::nullopt;
    return std::move(program_);
  }

 private:
  void Unexpected() {
    const support::Token token = Peek();
    if (token.kind == support::TokenKind::kWord) {
      ErrorUnknown("declaration", {std::string(token.text), token.span}, kKeywords, Kind::kSyntax);
    } else {
      ErrorExpected("a declaration (system, data, actor, stage, tensor_graph, pipeline, schedule)");
    }
    Next();
    SkipToDeclaration(kKeywords);
  }

  // Reports a second declaration of a name in one of the name spaces.
  bool Declare(std::map<std::string, Span>& space, const Name& name, std::string_view what) {
    const auto [it, fresh] = space.emplace(name.text, name.span);
    if (fresh) return true;
    Error(name.span, std::string(what) + " '" + name.text + "' is declared twice",
          Kind::kConsistency)
        .With({it->second, "'" + name.text + "' is first declared here"});
    return false;
  }

  // At a declaration's keyword in the first column: the block before it was not closed.
  bool AtMargin() {
    const support::Token& token = Peek();
    return token.first_on_line && source().Position(token.span.begin).column == 1 &&
           std::find(kKeywords.begin(), kKeywords.end(), token.text) != kKeywords.end();
  }

  // A block's fields, each recovered on its own: `{ field … }`, at the brace.
  bool Block(const std::function<bool()>& field) {
    if (!Expect("{")) return false;
    const int inside = bracket_depth();
    while (!At("}") && !AtEnd() && !AtMargin()) {
      const uint32_t at = Here();
      if (!field()) SkipToField(inside, at);
    }
    return Expect("}");
  }

  // ---- system -------------------------------------------------------------------------------

  void ParseSystem() {
    const uint32_t begin = Here();
    Next();
    System system;
    const auto name = ExpectName("the name of the system");
    if (!name) return SkipToDeclaration(kKeywords);
    if (system_seen_) {
      Error(name->span, "there is a system already: a program is placed on one", Kind::kConsistency)
          .With({program_.system.span, "the first is here"});
      return SkipToDeclaration(kKeywords);
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
    if (!ok) SkipToDeclaration(kKeywords);
    program_.system.name = system.name;
    program_.system.span = SpanFrom(begin);
  }

  bool ParseNode() {
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
    if (CheckNode(node)) program_.system.nodes.push_back(std::move(node));
    return true;
  }

  bool ParseNodeProperty(const Name& property, SystemNode& node) {
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
        if (feature) node.features.push_back(feature->text);
        return feature.has_value();
      });
    }
    ErrorUnknown("property of a node", property,
                 {"kind", "capacity", "isa", "cores", "features", "vram", "sm", "arch"});
    return false;
  }

  // A property of one kind of node on another would be dropped silently.
  bool CheckNode(const SystemNode& node) {
    const bool compute = node.kind == NodeKind::kCompute;
    if (node.kind == NodeKind::kMemory && node.capacity == 0) {
      Error(node.span, "memory node '" + node.name + "' has no capacity", Kind::kResourceBound)
          .Fix("add capacity: 32GB, or what there is");
      return false;
    }
    if (compute && node.isa.empty()) {
      Error(node.span, "compute node '" + node.name + "' has no isa").Fix("add isa: x86_64");
      return false;
    }
    if (compute && node.capacity > 0) {
      Error(node.span, "a compute node has no capacity; its own memory is its vram",
            Kind::kConsistency);
      return false;
    }
    if (!compute && (!node.isa.empty() || node.cores > 0 || node.vram > 0 || node.sm > 0 ||
                     !node.arch.empty() || !node.features.empty())) {
      Error(node.span, "isa, cores, features, vram, sm and arch are properties of compute nodes",
            Kind::kConsistency);
      return false;
    }
    return true;
  }

  bool ParseEdge() {
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
    program_.system.edges.push_back(edge);
    return true;
  }

  std::optional<uint32_t> ExpectNode(std::string_view what) {
    const auto name = ExpectName(what);
    if (!name) return std::nullopt;
    return ResolveNode(*name);
  }

  std::optional<uint32_t> ResolveNode(const Name& name) {
    const auto node = FindNode(program_.system, name.text);
    // A node that was declared and is not there has been reported.
    if (!node && !nodes_.contains(name.text)) {
      std::vector<std::string> candidates;
      for (const SystemNode& n : program_.system.nodes) candidates.push_back(n.name);
      auto& error = ErrorUnknown("node", name, candidates, Kind::kSafety);
      if (!system_seen_) error.Fix("the system stands before what is placed on it");
    }
    return node;
  }

  // ---- data ---------------------------------------------------------------------------------

  std::optional<std::pair<tensor::DType, tensor::Shape>> ParseDomain() {
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
    return std::pair{*dtype, std::move(shape)};
  }

  bool CheckShape(const tensor::Shape& shape, Span span) {
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

  void ParseData() {
    Next();
    const auto name = ExpectName("the name of the data");
    if (!name) return SkipToDeclaration(kKeywords);
    BoundData data;
    data.name = name->text;
    std::map<std::string, Span> fields;
    const bool ok = Block([&] { return ParseField(data, fields); });
    data.span = name->span;
    if (!ok) SkipToDeclaration(kKeywords);
    if (Declare(data_, *name, "data")) program_.data.push_back(std::move(data));
  }

  bool ParseField(BoundData& data, std::map<std::string, Span>& fields) {
    const auto name = ExpectName("a field");
    if (!name || !Expect(":")) return false;
    BoundField field;
    field.name = name->text;
    field.span = name->span;
    const auto domain = ParseDomain();
    if (!domain) return false;
    field.dtype = domain->first;
    field.shape = domain->second;
    if (AcceptWord("labels")) {
      if (!Expect("(")) return false;
      const auto classes = ExpectInteger("the number of classes", 1, int64_t{1} << 31);
      if (!classes || !Expect(")")) return false;
      field.classes = *classes;
    }
    if (!Expect("@")) return false;
    const uint32_t at = Here();
    const auto storage = ExpectNode("a storage node");
    if (!storage) return false;
    field.storage = *storage;
    if (program_.system.nodes[*storage].kind != NodeKind::kStorage) {
      Error(SpanFrom(at), "'" + program_.system.nodes[*storage].name + "' is no storage node",
            Kind::kSafety);
      return false;
    }
    if (!Expect(",") || !ExpectWord("path") || !Expect(":")) return false;
    const auto path = ExpectString("the path of the data, in quotes");
    if (!path) return false;
    field.path = *path;
    if (field.name == kValidField) {
      Error(field.span, "'valid' names the mask of a batch; call the field something else",
            Kind::kConsistency);
      return true;
    }
    if (Declare(fields, *name, "field")) data.fields.push_back(std::move(field));
    return true;
  }

  // ---- actor --------------------------------------------------------------------------------

  void ParseActor() {
    Next();
    const auto name = ExpectName("the name of the actor");
    if (!name || !ExpectWord("on")) return SkipToDeclaration(kKeywords);
    Actor actor;
    actor.name = name->text;
    actor.span = name->span;
    const auto node = ExpectNode("a compute node");
    if (!node) return SkipToDeclaration(kKeywords);
    actor.node = *node;
    std::map<std::string, Span> states, windows, messages;
    std::vector<RawHandler> handlers;
    std::vector<std::pair<size_t, Name>> window_fields;
    const bool ok = Block([&] {
      if (AcceptWord("state")) {
        return Block([&] { return ParseState(actor, states); });
      }
      if (AcceptWord("window")) return ParseWindow(actor, windows, window_fields);
      if (AcceptWord("on")) return ParseHandler(actor, messages, handlers);
      ErrorExpected("'state', 'window', 'on' or '}'");
      Next();
      return false;
    });
    if (!ok) SkipToDeclaration(kKeywords);
    std::vector<std::string> fields;
    for (const StateField& field : actor.state) fields.push_back(field.name);
    for (const auto& [window, field] : window_fields) {
      if (FindState(actor, field.text) == nullptr) {
        ErrorUnknown("state field", field, fields, Kind::kSafety);
      }
    }
    if (!Declare(units_, *name, "actor")) return;
    for (RawHandler& handler : handlers) {
      handler.actor = program_.actors.size();
      handlers_.push_back(std::move(handler));
    }
    program_.actors.push_back(std::move(actor));
  }

  bool ParseState(Actor& actor, std::map<std::string, Span>& states) {
    const auto name = ExpectName("a state field");
    if (!name || !Expect(":")) return false;
    StateField field;
    field.name = name->text;
    field.span = name->span;
    const auto domain = ParseDomain();
    if (!domain) return false;
    field.dtype = domain->first;
    field.shape = domain->second;
    if (!Expect(",") || !ExpectWord("init") || !Expect(":")) return false;
    if (!ParseInit(field)) return false;
    if (Accept(",")) {
      if (!ExpectWord("param")) return false;
      field.parameter = true;
    }
    if (Declare(states, *name, "state field")) actor.state.push_back(std::move(field));
    return true;
  }

  bool ParseInit(StateField& field) {
    const auto init = ExpectName("an initial value: zeros, ones, kaiming, …");
    if (!init) return false;
    struct Entry {
      const char* name;
      InitKind kind;
      const char* argument;
    };
    static constexpr Entry kEntries[] = {
        {"zeros", InitKind::kZeros, nullptr},
        {"ones", InitKind::kOnes, nullptr},
        {"kaiming", InitKind::kKaiming, nullptr},
        {"constant", InitKind::kConstant, "the value"},
        {"normal", InitKind::kNormal, "the standard deviation"},
        {"uniform", InitKind::kUniform, "the bound on the magnitude"},
    };
    std::vector<std::string> names;
    for (const Entry& entry : kEntries) {
      names.push_back(entry.name);
      if (init->text != entry.name) continue;
      field.init = entry.kind;
      if (entry.argument != nullptr) {
        if (!Expect("(")) return false;
        const auto value = ExpectReal(entry.argument);
        if (!value || !Expect(")")) return false;
        field.a = *value;
      }
      const bool random = field.init == InitKind::kKaiming || field.init == InitKind::kNormal ||
                          field.init == InitKind::kUniform;
      if (random && !tensor::IsFloat(field.dtype)) {
        Error(init->span, "'" + init->text + "' gives real numbers, but the field is " +
                              std::string(tensor::DTypeName(field.dtype)),
              Kind::kConsistency);
        return false;
      }
      if (field.init == InitKind::kKaiming && field.shape.empty()) {
        Error(init->span, "'kaiming' divides by the fan-in, which a scalar does not have",
              Kind::kConsistency);
        return false;
      }
      return true;
    }
    ErrorUnknown("initial value", *init, names);
    return false;
  }

  bool ParseWindow(Actor& actor, std::map<std::string, Span>& windows,
                   std::vector<std::pair<size_t, Name>>& window_fields) {
    const auto name = ExpectName("the name of a window");
    if (!name || !Expect(":")) return false;
    Window window;
    window.name = name->text;
    window.span = name->span;
    const bool fields_ok = ParseList("(", ")", [&] {
      const auto field = ExpectName("a state field");
      if (!field) return false;
      window.fields.push_back(field->text);
      window_fields.emplace_back(actor.windows.size(), *field);
      return true;
    });
    if (!fields_ok || !ExpectWord("readers")) return false;
    if (!ParseList("(", ")", [&] { return ParseReference(window.readers, "a tensor graph"); })) {
      return false;
    }
    if (Declare(windows, *name, "window")) actor.windows.push_back(std::move(window));
    return true;
  }

  bool ParseReference(std::vector<Reference>& references, std::string_view what) {
    const uint32_t begin = Here();
    const auto name = ExpectName(what);
    if (!name) return false;
    Reference reference{name->text, {}};
    if (Accept(".")) {
      const auto member = ExpectName("a message of the actor");
      if (!member) return false;
      reference.name += "." + member->text;
    }
    reference.span = SpanFrom(begin);
    references.push_back(std::move(reference));
    return true;
  }

  bool ParseArgs(std::vector<RawArg>& args) {
    std::map<std::string, Span> seen;
    return ParseList("(", ")", [&] {
      const auto name = ExpectName("an argument");
      if (!name) return false;
      RawArg arg{*name, std::nullopt};
      if (Accept(":")) {
        arg.type = ParseDomain();
        if (!arg.type) return false;
      }
      if (Declare(seen, *name, "argument")) args.push_back(std::move(arg));
      return true;
    });
  }

  // `{ … }` unread; nothing when it is not closed.
  std::optional<Span> TakeBody() {
    if (!At("{")) {
      ErrorExpected("'{'");
      return std::nullopt;
    }
    Next();
    const int inside = bracket_depth();
    const uint32_t begin = Here();
    SkipPastClose(inside);
    const Span body = SpanFrom(begin);
    if (body.end <= begin || bracket_depth() >= inside) {
      ErrorExpected("'}'");
      return std::nullopt;
    }
    return Span{begin, body.end - 1};
  }

  bool ParseHandler(Actor& actor, std::map<std::string, Span>& messages,
                    std::vector<RawHandler>& handlers) {
    const auto name = ExpectName("the name of a message");
    if (!name) return false;
    RawHandler raw;
    if (!ParseArgs(raw.args)) return false;
    const auto body = TakeBody();
    if (!body) return false;
    raw.body = *body;
    raw.handler = actor.handlers.size();
    if (!Declare(messages, *name, "message")) return true;
    Handler handler;
    handler.message = name->text;
    handler.span = name->span;
    for (const RawArg& arg : raw.args) handler.args.push_back(arg.name.text);
    actor.handlers.push_back(std::move(handler));
    handlers.push_back(std::move(raw));
    return true;
  }

  // ---- stage --------------------------------------------------------------------------------

  void ParseStage() {
    Next();
    const auto name = ExpectName("the name of the stage");
    if (!name || !ExpectWord("on")) return SkipToDeclaration(kKeywords);
    Stage stage;
    stage.name = name->text;
    stage.span = name->span;
    const auto node = ExpectNode("a compute node");
    if (!node) return SkipToDeclaration(kKeywords);
    stage.node = *node;
    bool process = false;
    const bool ok = Block([&] {
      if (AcceptWord("sample")) {
        if (!Expect(":")) return false;
        stage.samples = true;
        return ParseSampling(stage.sampling);
      }
      if (AcceptWord("fn")) {
        if (process) {
          Error(SpanFrom(Here()), "a stage has one process");
          return false;
        }
        process = true;
        return ParseProcess(stage);
      }
      ErrorExpected("'sample', 'fn process' or '}'");
      Next();
      return false;
    });
    if (!ok) SkipToDeclaration(kKeywords);
    if (!process) {
      Error(name->span, "stage '" + name->text + "' has no process").Fix("add fn process() -> …");
    }
    if (Declare(units_, *name, "stage")) program_.stages.push_back(std::move(stage));
  }

  const BoundData* ResolveData(const Name& name) {
    const BoundData* data = FindData(program_, name.text);
    if (data == nullptr) {
      std::vector<std::string> candidates;
      for (const BoundData& d : program_.data) candidates.push_back(d.name);
      ErrorUnknown("data", name, candidates, Kind::kSafety);
    }
    return data;
  }

  bool ParseSampling(Sampling& sampling) {
    const auto kind = ExpectName("epoch_shuffle or sequential");
    if (!kind) return false;
    sampling.span = kind->span;
    if (kind->text == "epoch_shuffle") {
      sampling.kind = SampleKind::kEpochShuffle;
    } else if (kind->text == "sequential") {
      sampling.kind = SampleKind::kSequential;
    } else {
      ErrorUnknown("way to sample", *kind, {"epoch_shuffle", "sequential"});
      return false;
    }
    bool first = true;
    std::set<std::string> seen;
    const bool ok = ParseList("(", ")", [&] {
      if (first) {
        first = false;
        const auto name = ExpectName("the data to sample");
        if (!name || ResolveData(*name) == nullptr) return false;
        sampling.data = name->text;
        return true;
      }
      const auto label = ExpectName("split, rows, batch or drop_last");
      if (!label || !Expect(":")) return false;
      if (!seen.insert(label->text).second) {
        Error(label->span, "'" + label->text + "' is given twice");
        return false;
      }
      if (label->text == "split") {
        const auto split = ExpectName("train or test");
        if (split) sampling.split = split->text;
        return split.has_value();
      }
      if (label->text == "rows") {
        const auto rows = ExpectInteger("the number of rows", 1, int64_t{1} << 31);
        if (rows) sampling.rows = *rows;
        return rows.has_value();
      }
      if (label->text == "batch") {
        const auto batch = ExpectInteger("the batch size", 1, 1 << 24);
        if (batch) sampling.batch = *batch;
        return batch.has_value();
      }
      if (label->text == "drop_last") {
        const auto drop = ExpectBool("drop_last");
        if (drop) sampling.drop_last = *drop;
        return drop.has_value();
      }
      ErrorUnknown("argument", *label, {"split", "rows", "batch", "drop_last"});
      return false;
    });
    if (!ok) return false;
    sampling.span = {sampling.span.begin, SpanFrom(sampling.span.begin).end};
    if (sampling.data.empty() || sampling.split.empty() || !seen.contains("batch")) {
      Error(sampling.span, "sampling needs the data, split: and batch:");
      return false;
    }
    return true;
  }

  // An exit of a process, as the signature and the body spell it: `forward(t, a, b)`, `Drop(a)`.
  std::optional<Statement> ParseExit() {
    Statement s;
    const uint32_t begin = Here();
    if (AcceptWord("forward")) {
      s.kind = StatementKind::kForward;
      bool first = true;
      const bool ok = ParseList("(", ")", [&] {
        if (!first) {
          const auto buffer = ExpectName("a buffer");
          if (buffer) s.buffers.push_back(buffer->text);
          return buffer.has_value();
        }
        first = false;
        const auto target = ExpectName("a stage, a tensor graph or an actor's message");
        if (!target) return false;
        s.target = target->text;
        if (!Accept(".")) return true;
        const auto message = ExpectName("a message of the actor");
        if (message) s.handler = message->text;
        return message.has_value();
      });
      if (!ok) return std::nullopt;
    } else if (AcceptWord("Drop")) {
      s.kind = StatementKind::kDrop;
      if (!Expect("(")) return std::nullopt;
      const auto buffer = ExpectName("a buffer");
      if (!buffer || !Expect(")")) return std::nullopt;
      s.buffer = buffer->text;
    } else {
      ErrorExpected("'forward' or 'Drop'");
      return std::nullopt;
    }
    s.span = SpanFrom(begin);
    return s;
  }

  bool ParseProcess(Stage& stage) {
    if (!ExpectWord("process")) return false;
    std::map<std::string, Span> names;
    const bool params_ok = ParseList("(", ")", [&] {
      const auto name = ExpectName("a buffer");
      if (!name || !Expect(":") || !ExpectWord("buf") || !Expect("<")) return false;
      BufferParam param;
      param.name = name->text;
      param.span = name->span;
      const auto region = ExpectNode("the node whose memory holds the buffer");
      if (!region || !Expect(">")) return false;
      param.region = *region;
      const auto domain = ParseDomain();
      if (!domain) return false;
      param.dtype = domain->first;
      param.shape = domain->second;
      if (Declare(names, *name, "buffer")) stage.params.push_back(std::move(param));
      return true;
    });
    if (!params_ok || !Expect("->")) return false;
    std::vector<Statement> exits;
    const uint32_t signature = Here();
    do {
      const auto exit = ParseExit();
      if (!exit) return false;
      exits.push_back(*exit);
    } while (Accept(",") || Accept("|"));
    const Span signature_span = SpanFrom(signature);
    std::vector<Statement> body_exits;
    const bool ok = Block([&] {
      auto statement = ParseStatement(stage, names);
      if (!statement) return false;
      const bool exit = statement->kind == StatementKind::kForward ||
                        statement->kind == StatementKind::kDrop;
      if (exit) body_exits.push_back(*statement);
      stage.body.push_back(std::move(*statement));
      return true;
    });
    if (ok) CheckSignature(exits, body_exits, signature_span);
    return ok;
  }

  void CheckSignature(const std::vector<Statement>& promised, const std::vector<Statement>& done,
                      Span span) {
    const auto same = [](const Statement& a, const Statement& b) {
      return a.kind == b.kind && a.buffer == b.buffer && a.target == b.target &&
             a.handler == b.handler && a.buffers == b.buffers;
    };
    if (std::equal(promised.begin(), promised.end(), done.begin(), done.end(), same)) return;
    auto& error = Error(span, "the signature does not list what the body forwards and drops",
                        Kind::kSafety);
    for (size_t i = 0; i < done.size(); ++i) {
      if (i >= promised.size() || !same(promised[i], done[i])) {
        error.With({done[i].span, "the signature lacks this, or has it elsewhere"});
        break;
      }
    }
  }

  std::optional<Statement> ParseStatement(Stage& stage, std::map<std::string, Span>& names) {
    Statement s;
    const uint32_t begin = Here();
    const auto known = [&](const Name& name) {
      if (names.contains(name.text)) return true;
      std::vector<std::string> candidates;
      for (const auto& [candidate, span] : names) candidates.push_back(candidate);
      ErrorUnknown("buffer", name, candidates, Kind::kSafety);
      return false;
    };
    if (AcceptWord("let")) {
      const auto name = ExpectName("the name of a buffer");
      if (!name || !Expect("=") || !ExpectWord("alloc") || !Expect("(")) return std::nullopt;
      const auto region = ExpectNode("the node whose memory holds the buffer");
      if (!region || !Expect(",")) return std::nullopt;
      const auto domain = ParseDomain();
      if (!domain || !Expect(")")) return std::nullopt;
      s.kind = StatementKind::kAlloc;
      s.buffer = name->text;
      s.region = *region;
      s.dtype = domain->first;
      s.shape = domain->second;
      if (!Declare(names, *name, "buffer")) return std::nullopt;
    } else if (AcceptWord("read")) {
      s.kind = StatementKind::kRead;
      if (!Expect("(")) return std::nullopt;
      const auto buffer = ExpectName("a buffer");
      if (!buffer || !known(*buffer) || !Expect(",")) return std::nullopt;
      const auto data = ExpectName("data");
      if (!data) return std::nullopt;
      const BoundData* bound = ResolveData(*data);
      if (bound == nullptr || !Expect(".")) return std::nullopt;
      const auto field = ExpectName("a field of the data");
      if (!field || !Expect(")")) return std::nullopt;
      if (field->text != kValidField && FindField(*bound, field->text) == nullptr) {
        std::vector<std::string> candidates;
        for (const BoundField& f : bound->fields) candidates.push_back(f.name);
        candidates.emplace_back(kValidField);
        ErrorUnknown("field", *field, candidates, Kind::kSafety)
            .With({bound->span, "data '" + bound->name + "' is declared here"});
        return std::nullopt;
      }
      s.buffer = buffer->text;
      s.data = data->text;
      s.field = field->text;
    } else if (AcceptWord("copy")) {
      s.kind = StatementKind::kCopy;
      if (!Expect("(")) return std::nullopt;
      const auto to = ExpectName("the buffer to copy to");
      if (!to || !known(*to) || !Expect(",")) return std::nullopt;
      const auto from = ExpectName("the buffer to copy from");
      if (!from || !known(*from) || !Expect(")")) return std::nullopt;
      s.buffer = to->text;
      s.source = from->text;
    } else if (AtWord("forward") || AtWord("Drop")) {
      auto exit = ParseExit();
      if (!exit) return std::nullopt;
      std::vector<std::string> used = exit->buffers;
      if (exit->kind == StatementKind::kDrop) used.push_back(exit->buffer);
      for (const std::string& buffer : used) {
        if (!known({buffer, exit->span})) return std::nullopt;
      }
      return exit;
    } else {
      ErrorExpected("a statement: let, read, copy, forward or Drop");
      Next();
      return std::nullopt;
    }
    (void)stage;
    s.span = SpanFrom(begin);
    return s;
  }

  // ---- tensor_graph -------------------------------------------------------------------------

  void ParseGraph() {
    Next();
    const auto name = ExpectName("the name of the tensor graph");
    if (!name || !ExpectWord("on")) return SkipToDeclaration(kKeywords);
    TensorGraph graph;
    graph.name = name->text;
    graph.span = name->span;
    const auto node = ExpectNode("a compute node");
    if (!node) return SkipToDeclaration(kKeywords);
    graph.node = *node;
    RawGraph raw;
    bool compute = false;
    const bool ok = Block([&] {
      if (AcceptWord("reads")) {
        if (!Expect(":")) return false;
        do {
          const auto actor = ExpectName("an actor");
          if (!actor || !Expect(".")) return false;
          const auto window = ExpectName("a window of the actor");
          if (!window) return false;
          raw.reads.emplace_back(*actor, *window);
          graph.reads.emplace_back(actor->text, window->text);
        } while (Accept(","));
        return true;
      }
      if (AcceptWord("fn")) {
        if (!ExpectWord("compute") || !ParseArgs(raw.args) || !Expect("->")) return false;
        std::map<std::string, Span> outputs;
        const bool list = ParseList("(", ")", [&] {
          const auto output = ExpectName("the name of an output");
          if (output && Declare(outputs, *output, "output")) raw.outputs.push_back(*output);
          return output.has_value();
        });
        if (!list) return false;
        const auto body = TakeBody();
        if (!body) return false;
        if (compute) Error(*body, "a tensor graph has one compute");
        raw.body = *body;
        compute = true;
        return true;
      }
      ErrorExpected("'reads', 'fn compute' or '}'");
      Next();
      return false;
    });
    if (!ok) SkipToDeclaration(kKeywords);
    if (!compute) {
      Error(name->span, "tensor graph '" + name->text + "' has no compute")
          .Fix("add fn compute(…) -> (…) { … }");
    }
    for (const RawArg& arg : raw.args) graph.args.push_back(arg.name.text);
    if (!Declare(units_, *name, "tensor graph")) return;
    program_.graphs.push_back(std::move(graph));
    graphs_.push_back(std::move(raw));
  }

  // ---- pipeline, schedule -------------------------------------------------------------------

  void ParsePipeline() {
    Next();
    const auto name = ExpectName("the name of the pipeline");
    if (!name || !Expect("{")) return SkipToDeclaration(kKeywords);
    Pipeline pipeline;
    pipeline.name = name->text;
    pipeline.span = name->span;
    do {
      if (!ParseReference(pipeline.links, "a stage, a tensor graph or an actor's message")) {
        return SkipToDeclaration(kKeywords);
      }
    } while (Accept("->"));
    if (!Expect("}")) return SkipToDeclaration(kKeywords);
    if (Declare(pipelines_, *name, "pipeline")) program_.pipelines.push_back(std::move(pipeline));
  }

  void ParseSchedule() {
    const uint32_t begin = Here();
    Next();
    if (schedule_seen_) {
      Error(SpanFrom(begin), "there is a schedule already", Kind::kConsistency)
          .With({program_.schedule.span, "the first is here"});
      return SkipToDeclaration(kKeywords);
    }
    schedule_seen_ = true;
    Schedule& schedule = program_.schedule;
    schedule.span = SpanFrom(begin);
    std::set<std::string> seen;
    const bool ok = Block([&] {
      const auto field = ExpectName("a field of the schedule");
      if (!field) {
        Next();
        return false;
      }
      if (!seen.insert(field->text).second) {
        Error(field->span, "'" + field->text + "' is given twice");
        return false;
      }
      return ParseScheduleField(*field, schedule);
    });
    if (!ok) SkipToDeclaration(kKeywords);
    for (const char* needed : {"pipelines", "pipeline_depth"}) {
      if (ok && !seen.contains(needed)) {
        Error(schedule.span, "the schedule lacks '" + std::string(needed) + "'");
      }
    }
  }

  bool ParseScheduleField(const Name& field, Schedule& schedule) {
    if (field.text == "pipelines" || field.text == "actors") {
      auto& list = field.text == "actors" ? schedule.actors : schedule.pipelines;
      return Expect(":") && ParseList("[", "]", [&] { return ParseReference(list, "a name"); });
    }
    if (field.text == "pipeline_depth") {
      if (!Expect(":")) return false;
      const auto depth = ExpectInteger("the pipeline depth", 1, 64);
      if (depth) schedule.pipeline_depth = *depth;
      return depth.has_value();
    }
    if (field.text == "seed") {
      if (!Expect(":")) return false;
      const auto seed = ExpectInteger("the seed", 0);
      if (seed) schedule.seed = static_cast<uint64_t>(*seed);
      return seed.has_value();
    }
    if (field.text == "phases") {
      Accept(":");
      return ParseList("[", "]", [&] { return ParsePhase(schedule); });
    }
    if (field.text == "metrics") {
      Accept(":");
      return ParseList("[", "]", [&] { return ParseMetric(schedule); });
    }
    ErrorUnknown("field of the schedule", field,
                 {"pipelines", "actors", "pipeline_depth", "seed", "phases", "metrics"});
    return false;
  }

  // `NAME(label: value, …)`; `value` parses what follows one label.
  bool ParseLabelled(std::string_view what, Name& name, std::set<std::string>& seen,
                     const std::vector<std::string>& labels,
                     const std::function<bool(const std::string&)>& value) {
    const auto word = ExpectName(what);
    if (!word) return false;
    name = *word;
    return ParseList("(", ")", [&] {
      const auto label = ExpectName("an argument");
      if (!label || !Expect(":")) return false;
      if (std::find(labels.begin(), labels.end(), label->text) == labels.end()) {
        ErrorUnknown("argument", *label, labels);
        return false;
      }
      if (!seen.insert(label->text).second) {
        Error(label->span, "'" + label->text + "' is given twice");
        return false;
      }
      return value(label->text);
    });
  }

  bool ParsePhase(Schedule& schedule) {
    Phase phase;
    Name name;
    std::set<std::string> seen;
    std::vector<Name> used;
    const bool ok = ParseLabelled(
        "the name of a phase", name, seen,
        {"pipeline", "epochs", "steps", "eval", "eval_every", "checkpoint_every"},
        [&](const std::string& label) {
          if (label == "pipeline" || label == "eval") {
            const auto pipeline = ExpectName("a pipeline");
            if (!pipeline) return false;
            (label == "eval" ? phase.eval : phase.pipeline) = pipeline->text;
            used.push_back(*pipeline);
            return true;
          }
          const auto count = ExpectInteger("a count", 1, int64_t{1} << 40);
          if (!count) return false;
          (label == "epochs"       ? phase.epochs
           : label == "steps"      ? phase.steps
           : label == "eval_every" ? phase.eval_every
                                   : phase.checkpoint_every) = *count;
          return true;
        });
    if (!ok) return false;
    phase.name = name.text;
    phase.span = name.span;
    if (phase.pipeline.empty() || (phase.epochs > 0) == (phase.steps > 0)) {
      Error(name.span, "a phase needs a pipeline and either epochs or steps");
      return true;
    }
    for (const Name& pipeline : used) phase_pipelines_.push_back(pipeline);
    schedule.phases.push_back(std::move(phase));
    return true;
  }

  bool ParseMetric(Schedule& schedule) {
    Metric metric;
    Name name, graph, numerator, denominator;
    std::set<std::string> seen;
    const bool ok = ParseLabelled(
        "the name of a metric", name, seen, {"split", "graph", "numerator", "denominator"},
        [&](const std::string& label) {
          const auto word = ExpectName("a name");
          if (!word) return false;
          if (label == "split") metric.split = word->text;
          if (label == "graph") graph = *word;
          if (label == "numerator") numerator = *word;
          if (label == "denominator") denominator = *word;
          return true;
        });
    if (!ok) return false;
    metric.name = name.text;
    metric.span = name.span;
    if (seen.size() != 4) {
      Error(name.span, "a metric needs split, graph, numerator and denominator");
      return true;
    }
    metric.graph = graph.text;
    metric.numerator = numerator.text;
    metric.denominator = denominator.text;
    metrics_.push_back({graph, numerator, denominator});
    schedule.metrics.push_back(std::move(metric));
    return true;
  }

  // ---- Second pass --------------------------------------------------------------------------

  // The type of an argument that has none of its own: of what is forwarded to it. `unit` is the
  // name of a graph, or "actor.message".
  std::optional<std::pair<tensor::DType, tensor::Shape>> ForwardedType(const std::string& unit,
                                                                       size_t position,
                                                                       const std::string& name) {
    for (const Stage& stage : program_.stages) {
      for (const Statement& s : stage.body) {
        if (s.kind != StatementKind::kForward || position >= s.buffers.size()) continue;
        if (s.target + (s.handler.empty() ? "" : "." + s.handler) != unit) continue;
        for (const BufferParam& param : stage.params) {
          if (param.name == s.buffers[position]) return std::pair{param.dtype, param.shape};
        }
        for (const Statement& alloc : stage.body) {
          if (alloc.kind == StatementKind::kAlloc && alloc.buffer == s.buffers[position]) {
            return std::pair{alloc.dtype, alloc.shape};
          }
        }
      }
    }
    for (const Pipeline& pipeline : program_.pipelines) {
      for (size_t i = 1; i < pipeline.links.size(); ++i) {
        if (pipeline.links[i].name != unit) continue;
        const TensorGraph* graph = FindGraph(program_, pipeline.links[i - 1].name);
        if (graph == nullptr) continue;
        for (const tensor::Output& output : graph->graph.outputs()) {
          if (output.name != name) continue;
          const tensor::Node& node = graph->graph.node(output.node);
          return std::pair{node.dtype, node.shape};
        }
      }
    }
    return std::nullopt;
  }

  bool AddArguments(tensor::Graph& graph, const std::vector<RawArg>& args,
                    const std::string& unit) {
    for (size_t i = 0; i < args.size(); ++i) {
      const RawArg& arg = args[i];
      auto type = arg.type;
      if (!type) type = ForwardedType(unit, i, arg.name.text);
      if (!type) {
        Error(arg.name.span, "nothing that is forwarded here tells the type of '" +
                                 arg.name.text + "'",
              Kind::kConsistency)
            .Fix("write " + arg.name.text + ": tensor(f32, [128, 784])");
        return false;
      }
      graph.AddInput(arg.name.text, type->first, type->second, arg.name.span);
    }
    return true;
  }

  bool AddState(tensor::Graph& graph, const StateField& field, const std::vector<RawArg>& args) {
    for (const RawArg& arg : args) {
      if (arg.name.text != field.name) continue;
      Error(arg.name.span, "argument '" + field.name + "' hides the state field of that name",
            Kind::kConsistency)
          .With({field.span, "the state field is declared here"});
      return false;
    }
    if (graph.Find(field.name)) return true;  // read through two windows
    graph.AddInput(field.name, field.dtype, field.shape, field.span);
    return true;
  }

  void BuildGraphs() {
    for (size_t i = 0; i < graphs_.size(); ++i) {
      TensorGraph& graph = program_.graphs[i];
      const RawGraph& raw = graphs_[i];
      if (!AddArguments(graph.graph, raw.args, graph.name)) continue;
      bool ok = true;
      for (const auto& [actor_name, window_name] : raw.reads) {
        const Actor* actor = FindActor(program_, actor_name.text);
        if (actor == nullptr) {
          ErrorUnknown("actor", actor_name, NamesOf(program_.actors), Kind::kSafety);
          ok = false;
          continue;
        }
        const Window* window = FindWindow(*actor, window_name.text);
        if (window == nullptr) {
          ErrorUnknown("window of actor '" + actor->name + "'", window_name,
                       NamesOf(actor->windows), Kind::kSafety);
          ok = false;
          continue;
        }
        for (const std::string& field : window->fields) {
          ok = AddState(graph.graph, *FindState(*actor, field), raw.args) && ok;
        }
      }
      if (!ok) continue;
      TensorBody body(source(), diagnostics(), raw.body, graph.graph);
      body.ParseCompute(raw.outputs);
      DropUnusedState(graph.graph, graph.args);
    }
  }

  void BuildHandlers() {
    for (const RawHandler& raw : handlers_) {
      Actor& actor = program_.actors[raw.actor];
      Handler& handler = actor.handlers[raw.handler];
      if (!AddArguments(handler.graph, raw.args, actor.name + "." + handler.message)) continue;
      bool ok = true;
      for (const StateField& field : actor.state) {
        ok = AddState(handler.graph, field, raw.args) && ok;
      }
      if (!ok) continue;
      TensorBody body(source(), diagnostics(), raw.body, handler.graph);
      body.ParseHandler(actor);
      DropUnusedState(handler.graph, handler.args);
    }
  }

  // A graph's inputs are its arguments and the state that it uses, no more.
  static void DropUnusedState(tensor::Graph& graph, const std::vector<std::string>& args) {
    std::vector<bool> used(graph.size());
    for (const tensor::Node& node : graph.nodes()) {
      for (tensor::NodeId input : node.inputs) used[input] = true;
    }
    for (const tensor::Output& output : graph.outputs()) used[output.node] = true;
    for (tensor::NodeId input : graph.inputs()) {
      const std::string& name = graph.node(input).name;
      if (std::find(args.begin(), args.end(), name) != args.end()) used[input] = true;
    }
    tensor::Graph kept;
    std::vector<tensor::NodeId> ids(graph.size());
    for (tensor::NodeId id = 0; id < graph.size(); ++id) {
      const tensor::Node& node = graph.node(id);
      if (node.op == tensor::Op::kInput) {
        if (used[id]) ids[id] = kept.AddInput(node.name, node.dtype, node.shape, node.span);
        continue;
      }
      std::vector<tensor::NodeId> inputs;
      for (tensor::NodeId input : node.inputs) inputs.push_back(ids[input]);
      ids[id] = node.name.empty()
                    ? kept.AddLiteral(node.attr.scalar, node.dtype, node.span)
                    : kept.Add(node.op, std::move(inputs), node.attr, node.name, node.span);
    }
    for (const tensor::Output& output : graph.outputs()) {
      kept.AddOutput(output.name, ids[output.node]);
    }
    graph = std::move(kept);
  }

  template <typename T>
  static std::vector<std::string> NamesOf(const std::vector<T>& items) {
    std::vector<std::string> names;
    for (const T& item : items) names.push_back(item.name);
    return names;
  }

  // Stages, graphs and "actor.message".
  std::vector<std::string> Units() const {
    std::vector<std::string> names = NamesOf(program_.stages);
    for (const TensorGraph& graph : program_.graphs) names.push_back(graph.name);
    for (const Actor& actor : program_.actors) {
      for (const Handler& h : actor.handlers) names.push_back(actor.name + "." + h.message);
    }
    return names;
  }

  void ResolveIn(const std::vector<Reference>& references, std::string_view what,
                 const std::vector<std::string>& candidates) {
    for (const Reference& reference : references) {
      if (std::find(candidates.begin(), candidates.end(), reference.name) != candidates.end()) {
        continue;
      }
      ErrorUnknown(what, {reference.name, reference.span}, candidates, Kind::kSafety);
    }
  }

  void ResolveReferences() {
    const std::vector<std::string> units = Units();
    const std::vector<std::string> graphs = NamesOf(program_.graphs);
    const std::vector<std::string> pipelines = NamesOf(program_.pipelines);
    for (const Actor& actor : program_.actors) {
      for (const Window& window : actor.windows) ResolveIn(window.readers, "tensor graph", graphs);
    }
    for (const Stage& stage : program_.stages) {
      for (const Statement& s : stage.body) {
        if (s.kind != StatementKind::kForward) continue;
        const std::string target = s.target + (s.handler.empty() ? "" : "." + s.handler);
        ResolveIn({{target, s.span}}, "forward target", units);
      }
    }
    for (const Pipeline& pipeline : program_.pipelines) {
      ResolveIn(pipeline.links, "stage, graph or message", units);
    }
    ResolveIn(program_.schedule.pipelines, "pipeline", pipelines);
    ResolveIn(program_.schedule.actors, "actor", NamesOf(program_.actors));
    for (const Name& name : phase_pipelines_) {
      ResolveIn({{name.text, name.span}}, "pipeline", pipelines);
    }
    for (const auto& [graph_name, numerator, denominator] : metrics_) {
      const TensorGraph* graph = FindGraph(program_, graph_name.text);
      if (graph == nullptr) {
        ErrorUnknown("tensor graph", graph_name, graphs, Kind::kSafety);
        continue;
      }
      std::vector<std::string> outputs;
      for (const tensor::Output& output : graph->graph.outputs()) outputs.push_back(output.name);
      if (outputs.empty()) continue;  // its body was reported
      for (const Name& name : {numerator, denominator}) {
        if (std::find(outputs.begin(), outputs.end(), name.text) == outputs.end()) {
          ErrorUnknown("output", name, outputs, Kind::kSafety)
              .With({graph->span, "tensor graph '" + graph->name + "' is declared here"});
        }
      }
    }
  }

  struct MetricNames {
    Name graph, numerator, denominator;
  };

  Program program_;
  bool system_seen_ = false;
  bool schedule_seen_ = false;
  std::map<std::string, Span> nodes_, data_, units_, pipelines_;
  std::vector<RawGraph> graphs_;      // parallel to program_.graphs
  std::vector<RawHandler> handlers_;
  std::vector<Name> phase_pipelines_;
  std::vector<MetricNames> metrics_;
};

}  // namespace

std::optional<Program> ParseProgram(const support::SourceFile& source,
                                    support::Diagnostics& diagnostics) {
  return ProgramParser(source, diagnostics).Parse();
}

}  // namespace l3c::l1
