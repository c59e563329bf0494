#include <string>
#include <vector>

#include "layers/l1/text.h"
#include "layers/support/lexer.h"
#include "layers/support/printer.h"
#include "layers/support/token.h"
#include "layers/support/units.h"
#include "layers/tensor/text.h"

namespace l3c::l1 {
namespace {

using support::Join;
using support::PrintReal;
using tensor::NodeId;

constexpr size_t kMaxColumns = 100;

std::string Domain(tensor::DType dtype, const tensor::Shape& shape) {
  const std::string name(tensor::DTypeName(dtype));
  if (shape.empty()) return "scalar(" + name + ")";
  return "tensor(" + name + ", " + tensor::ShapeToString(shape) + ")";
}

std::string InitText(const StateField& field) {
  switch (field.init) {
    case InitKind::kZeros:
      return "zeros";
    case InitKind::kOnes:
      return "ones";
    case InitKind::kKaiming:
      return "kaiming";
    case InitKind::kConstant:
      return "constant(" + PrintReal(field.a) + ")";
    case InitKind::kNormal:
      return "normal(" + PrintReal(field.a) + ")";
    case InitKind::kUniform:
      return "uniform(" + PrintReal(field.a) + ")";
  }
  return "";
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& program) : program_(program) {
    out_.Raw(support::HeaderLine("l1"));
  }

  std::string Print() {
    System();
    if (IsSystemFragment(program_)) return out_.Take();
    for (const BoundData& data : program_.data) Data(data);
    for (const Actor& actor : program_.actors) PrintActor(actor);
    for (const Stage& stage : program_.stages) PrintStage(stage);
    for (const TensorGraph& graph : program_.graphs) PrintGraph(graph);
    out_.Line();
    for (const Pipeline& pipeline : program_.pipelines) PrintPipeline(pipeline);
    PrintSchedule(program_.schedule);
    return out_.Take();
  }

 private:
  const std::string& NodeName(uint32_t node) const { return program_.system.nodes[node].name; }

  void Broken(const std::string& open, const std::vector<std::string>& items) {
    const size_t margin = static_cast<size_t>(out_.indent()) * 4 + 4;
    out_.Line(open);
    std::string filled;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
      if (!filled.empty() && margin + filled.size() + 1 + item.size() > kMaxColumns) {
        out_.Line("    " + filled);
        filled.clear();
      }
      filled += (filled.empty() ? "" : " ") + item;
    }
    if (!filled.empty()) out_.Line("    " + filled);
  }

  enum class After : uint8_t { kSame, kDeeper };  // the indentation of what follows

  // `open item, item, … close` on one line if it fits, else the items on lines of their own,
  // filled, one level deeper.
  void List(const std::string& open, const std::vector<std::string>& items,
            const std::string& close, After after = After::kSame) {
    const size_t margin = static_cast<size_t>(out_.indent()) * 4;
    std::string last = open + Join(items) + close;
    if (margin + last.size() > kMaxColumns && !items.empty()) {
      Broken(open, items);
      last = close;
    }
    if (after == After::kDeeper) {
      out_.Open(last);
    } else {
      out_.Line(last);
    }
  }

  void System() {
    const l1::System& system = program_.system;
    out_.Line();
    out_.Open("system " + system.name + " {");
    std::vector<std::vector<std::string>> rows;
    for (const SystemNode& node : system.nodes) rows.push_back({"node " + node.name, Node(node)});
    out_.Rows(rows);
    if (!system.edges.empty()) {
      out_.Line();
      out_.Open("edges {");
      rows.clear();
      for (const Edge& edge : system.edges) {
        rows.push_back(
            {NodeName(edge.from) + (edge.both_ways ? " <-> " : " -> ") + NodeName(edge.to),
             " : bandwidth " + support::PrintRate(edge.bandwidth)});
      }
      out_.Rows(rows);
      out_.Close("}");
    }
    out_.Close("}");
  }

  static std::string Node(const SystemNode& node) {
    std::string text = " { kind: " + std::string(NodeKindName(node.kind));
    if (node.capacity > 0) text += ", capacity: " + support::PrintBytes(node.capacity);
    if (!node.isa.empty()) text += ", isa: " + node.isa;
    if (node.cores > 0) text += ", cores: " + std::to_string(node.cores);
    if (!node.features.empty()) text += ", features: [" + Join(node.features) + "]";
    if (node.vram > 0) text += ", vram: " + support::PrintBytes(node.vram);
    if (node.sm > 0) text += ", sm: " + std::to_string(node.sm);
    if (!node.arch.empty()) text += ", arch: " + node.arch;
    return text + " }";
  }

  void Data(const BoundData& data) {
    out_.Line();
    out_.Open("data " + data.name + " {");
    std::vector<std::vector<std::string>> rows;
    for (const BoundField& field : data.fields) {
      std::string domain = Domain(field.dtype, field.shape);
      if (field.classes > 0) {
        domain += tensor::IsFloat(field.dtype) ? " distribution(" : " labels(";
        domain += std::to_string(field.classes);
        if (field.ignored) domain += ", ignored: " + std::to_string(*field.ignored);
        domain += ")";
      }
      rows.push_back({field.name, " : ", domain,
                      " @ " + NodeName(field.storage) + ", path: " + support::Quote(field.path)});
    }
    out_.Rows(rows);
    out_.Close("}");
  }

  void PrintActor(const Actor& actor) {
    out_.Line();
    out_.Open("actor " + actor.name + " on " + NodeName(actor.node) +
              (actor.replicates.empty() ? "" : " replicates " + actor.replicates) + " {");
    out_.Open("state " + (actor.home ? "@ " + NodeName(*actor.home) + " " : std::string()) + "{");
    std::vector<std::vector<std::string>> rows;
    for (const StateField& field : actor.state) {
      rows.push_back({field.name, " : ", Domain(field.dtype, field.shape) + ",",
                      " init: " + InitText(field) + (field.parameter ? ", param" : "")});
    }
    out_.Rows(rows);
    out_.Close("}");
    for (const Window& window : actor.windows) {
      out_.Line();
      List("window " + window.name + " : (", window.fields, ")");
      out_.Line("    readers(" + Join(Names(window.readers)) + ")");
    }
    for (const Handler& handler : actor.handlers) {
      out_.Line();
      List("on " + handler.message + "(", GraphArgs(handler.graph, handler.args), ") {",
           After::kDeeper);
      Lets(handler.graph, {});
      for (const tensor::Output& output : handler.graph.outputs()) {
        out_.Line(output.name + " = " + Operand(handler.graph, output.node));
      }
      out_.Close("}");
    }
    out_.Close("}");
  }

  void PrintStage(const Stage& stage) {
    out_.Line();
    out_.Open("stage " + stage.name + " on " + NodeName(stage.node) + " {");
    if (stage.samples) {
      const Sampling& s = stage.sampling;
      std::string text =
          "sample: " + std::string(SampleKindName(s.kind)) + "(" + s.data + ", split: " + s.split;
      if (s.rows > 0) text += ", rows: " + std::to_string(s.rows);
      text += ", batch: " + std::to_string(s.batch);
      text += std::string(", drop_last: ") + (s.drop_last ? "true" : "false");
      if (s.window > 0) {
        text += ", window: " + std::to_string(s.window) + ", stride: " + std::to_string(s.stride);
      }
      if (s.shards > 1) text += ", shards: " + std::to_string(s.shards);
      if (s.buffer > 0) text += ", buffer: " + std::to_string(s.buffer);
      if (s.recent) text += ", recent: true";
      text += ")";
      out_.Line(text);
    }
    if (!stage.reads.empty()) out_.Line("reads: " + Reads(stage.reads));
    if (stage.samples || !stage.reads.empty()) out_.Line();
    std::vector<std::string> params;
    for (const BufferParam& param : stage.params) {
      params.push_back(param.name + ": buf<" + NodeName(param.region) + "> " +
                       Domain(param.dtype, param.shape));
    }
    List("fn process(", params, ") -> " + Exits(stage.body) + " {", After::kDeeper);
    for (const Statement& statement : stage.body) PrintStatement(statement);
    out_.Close("}");
    out_.Close("}");
  }

  // In the order written; a bar stands between those of the two branches of an `if`.
  static std::string Exits(const std::vector<Statement>& body) {
    std::vector<std::string> exits;
    for (const Statement& s : body) {
      if (s.kind == StatementKind::kForward) exits.push_back(Forward(s));
      if (s.kind == StatementKind::kDrop) exits.push_back("Drop(" + s.buffer + ")");
      if (s.kind != StatementKind::kIf) continue;
      const std::string then_exits = Exits(s.then_body);
      const std::string else_exits = Exits(s.else_body);
      const bool both = !then_exits.empty() && !else_exits.empty();
      const std::string all = then_exits + (both ? " | " : "") + else_exits;
      if (!all.empty()) exits.push_back(all);
    }
    return Join(exits);
  }

  static std::string Forward(const Statement& statement) {
    std::string text = "forward(" + statement.target;
    if (!statement.handler.empty()) text += "." + statement.handler;
    for (const std::string& buffer : statement.buffers) text += ", " + buffer;
    return text + ")";
  }

  void PrintStatement(const Statement& s) {
    switch (s.kind) {
      case StatementKind::kAlloc:
        return out_.Line("let " + s.buffer + " = alloc(" + NodeName(s.region) + ", " +
                         Domain(s.dtype, s.shape) + ")");
      case StatementKind::kRead:
        return out_.Line("read(" + s.buffer + ", " + s.data + "." + s.field + ")");
      case StatementKind::kLet:
        return out_.Line("let " + s.buffer + " = " + Nested(s));
      case StatementKind::kDecode:
        return out_.Line("decode(" + s.buffer + ", " + s.source +
                         (s.scale == 1 ? "" : ", scale: " + PrintReal(s.scale)) + ")");
      case StatementKind::kIf:
        out_.Open("if " + Nested(s) + " {");
        for (const Statement& inner : s.then_body) PrintStatement(inner);
        if (!s.else_body.empty()) out_.Between("} else {");
        for (const Statement& inner : s.else_body) PrintStatement(inner);
        return out_.Close("}");
      case StatementKind::kCopy:
        return out_.Line("copy(" + s.buffer + ", " + s.source + ")");
      case StatementKind::kForward:
        return out_.Line(Forward(s));
      case StatementKind::kDrop:
        return out_.Line("Drop(" + s.buffer + ")");
    }
  }

  static std::string Nested(const Statement& s) {
    return tensor::PrintNested(s.value, s.value.outputs()[0].node);
  }

  void PrintGraph(const TensorGraph& graph) {
    out_.Line();
    out_.Open("tensor_graph " + graph.name + " on " + NodeName(graph.node) + " {");
    if (!graph.reads.empty()) {
      out_.Line("reads: " + Reads(graph.reads));
      out_.Line();
    }
    std::vector<std::string> outputs;
    std::vector<std::string> values;
    for (const tensor::Output& output : graph.graph.outputs()) {
      outputs.push_back(output.name);
      values.push_back(Operand(graph.graph, output.node));
    }
    const std::vector<std::string> args = GraphArgs(graph.graph, graph.args);
    const std::string head = "fn compute(" + Join(args) + ") -> (";
    if (static_cast<size_t>(out_.indent()) * 4 + head.size() <= kMaxColumns) {
      List(head, outputs, ") {", After::kDeeper);
    } else {
      Broken("fn compute(", args);
      List(") -> (", outputs, ") {", After::kDeeper);
    }
    Lets(graph.graph, graph.kernels);
    List("return (", values, ")");
    out_.Close("}");
    out_.Close("}");
  }

  std::vector<std::string> GraphArgs(const tensor::Graph& graph,
                                     const std::vector<std::string>& args) const {
    std::vector<std::string> texts;
    for (const std::string& arg : args) {
      const tensor::Node& node = graph.node(*graph.Find(arg));
      texts.push_back(arg + ": " + Domain(node.dtype, node.shape));
    }
    return texts;
  }

  void Lets(const tensor::Graph& graph,
            const std::vector<std::pair<std::string, support::EscapeHatch>>& kernels) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const tensor::Node& node = graph.node(id);
      if (node.op == tensor::Op::kInput || node.name.empty()) continue;
      for (const auto& [let, hatch] : kernels) {
        if (let == node.name) out_.Line(support::PrintEscapeHatch(hatch));
      }
      out_.Line("let " + node.name + " = " + Value(graph, id));
    }
  }

  // A constant of the default dtype is written as its number.
  static std::string Value(const tensor::Graph& graph, NodeId id) {
    const tensor::Node& node = graph.node(id);
    if (node.op == tensor::Op::kConst && node.dtype == tensor::DType::kF32) {
      return tensor::FormatNumber(node.attr.scalar, node.dtype);
    }
    return tensor::PrintApplication(graph, id);
  }

  static std::string Operand(const tensor::Graph& graph, NodeId id) {
    const tensor::Node& node = graph.node(id);
    return node.name.empty() ? tensor::FormatNumber(node.attr.scalar, node.dtype) : node.name;
  }

  void PrintPipeline(const Pipeline& pipeline) {
    out_.Line("pipeline " + pipeline.name + " { " + Join(Names(pipeline.links), " -> ") + " }");
  }

  void PrintSchedule(const Schedule& schedule) {
    out_.Line();
    out_.Open("schedule {");
    out_.Line("pipelines: [" + Join(Names(schedule.pipelines)) + "]");
    out_.Line("actors: [" + Join(Names(schedule.actors)) + "]");
    out_.Line("pipeline_depth: " + std::to_string(schedule.pipeline_depth));
    out_.Line("seed: " + std::to_string(schedule.seed));
    if (!schedule.phases.empty()) {
      out_.Open("phases [");
      for (const Phase& phase : schedule.phases) {
        std::string text = phase.name + "(pipeline: " + phase.pipeline;
        text += phase.epochs > 0 ? ", epochs: " + std::to_string(phase.epochs)
                                 : ", steps: " + std::to_string(phase.steps);
        if (!phase.eval.empty()) {
          text += ", eval: " + phase.eval + ", eval_every: " + std::to_string(phase.eval_every);
        }
        if (phase.checkpoint_every > 0) {
          text += ", checkpoint_every: " + std::to_string(phase.checkpoint_every);
        }
        out_.Line(text + "),");
      }
      out_.Close("]");
    }
    if (!schedule.metrics.empty()) {
      out_.Open("metrics [");
      for (const Metric& metric : schedule.metrics) {
        out_.Line(metric.name + "(split: " + metric.split + ", graph: " + metric.graph +
                  ", numerator: " + metric.numerator + ", denominator: " + metric.denominator +
                  "),");
      }
      out_.Close("]");
    }
    out_.Close("}");
  }

  static std::string Reads(const std::vector<std::pair<std::string, std::string>>& reads) {
    std::vector<std::string> names;
    for (const auto& [actor, window] : reads) names.push_back(actor + "." + window);
    return Join(names);
  }

  static std::vector<std::string> Names(const std::vector<Reference>& references) {
    std::vector<std::string> names;
    for (const Reference& reference : references) names.push_back(reference.name);
    return names;
  }

  const Program& program_;
  support::Printer out_;
};

}  // namespace

bool IsSystemFragment(const Program& program) {
  return program.data.empty() && program.actors.empty() && program.stages.empty() &&
         program.graphs.empty() && program.pipelines.empty() &&
         program.schedule.pipelines.empty() && program.schedule.phases.empty();
}

std::string PrintProgram(const Program& program) { return ProgramPrinter(program).Print(); }

std::string PrintSystem(const System& system) {
  Program program;
  program.system = system;
  return PrintProgram(program);
}

}  // namespace l3c::l1
