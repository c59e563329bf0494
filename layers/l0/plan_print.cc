#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "layers/l0/code_text.h"
#include "layers/l0/control_text.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/plan_spelling.h"
#include "layers/l0/plan_text.h"
#include "layers/support/lexer.h"
#include "layers/support/units.h"

namespace l3c::l0 {
namespace {

using support::Printer;

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan) {}

  std::string Print() {
    out_.Raw(support::HeaderLine("l0"));
    out_.Line("plan " + plan_.name);
    Section("pools", PoolRows());
    Section("buffers", BufferRows());
    PrintNames("parameters", plan_.parameters);
    PrintNames("optimiser_state", plan_.optimiser_state);
    Section("init", InitRows());
    for (const DataSource& source : plan_.sources) PrintSource(source);
    Section("samplers", SamplerRows());
    Section("streams", StreamRows());
    Section("tokens", TokenRows());
    for (const Kernel& kernel : plan_.kernels) {
      out_.Line();
      PrintKernel(kernel, out_);
    }
    for (const KernelCode& code : plan_.code) {
      out_.Line();
      PrintCode(code, plan_.kernels[code.kernel].name, out_);
    }
    for (const Sequence& sequence : plan_.sequences) PrintSequence(sequence);
    Section("metrics", MetricRows());
    Section("phases", PhaseRows());
    std::vector<std::string> sequences;
    for (const Sequence& sequence : plan_.sequences) sequences.push_back(sequence.name);
    for (const ControlUnit& unit : plan_.control) {
      out_.Line();
      PrintControl(unit, sequences, out_);
    }
    return out_.Take();
  }

 private:
  using Row = std::vector<std::string>;

  void Section(std::string_view name, const std::vector<Row>& rows) {
    if (rows.empty()) return;
    out_.Line();
    out_.Open(std::string(name) + " {");
    out_.Rows(rows);
    out_.Close("}");
  }

  std::vector<Row> PoolRows() const {
    std::vector<Row> rows;
    for (const Pool& pool : plan_.pools) {
      rows.push_back({pool.name, " : " + Spell(kPoolKinds, pool.kind), " on " + pool.node,
                      ", " + support::PrintBytes(pool.size),
                      " of " + support::PrintBytes(pool.capacity)});
    }
    return rows;
  }

  std::vector<Row> BufferRows() const {
    std::vector<Row> rows;
    for (const Buffer& buffer : plan_.buffers) {
      Row row = {buffer.name,
                 " : " + std::string(tensor::DTypeName(buffer.dtype)) + " " +
                     tensor::ShapeToString(buffer.shape),
                 " in " + plan_.pools[buffer.pool].name,
                 " at " + support::PrintInteger(buffer.offset),
                 " size " + support::PrintInteger(buffer.size)};
      if (buffer.first_use != 0 || buffer.last_use != kWholeRun) {
        row.push_back(" live " + support::PrintInteger(buffer.first_use) + ".." +
                      (buffer.last_use == kWholeRun ? std::string("end")
                                                    : support::PrintInteger(buffer.last_use)));
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  // Names in lines of up to 100 columns.
  void PrintNames(std::string_view section, const std::vector<BufferId>& buffers) {
    if (buffers.empty()) return;
    out_.Line();
    out_.Open(std::string(section) + " {");
    std::string line;
    for (BufferId id : buffers) {
      const std::string& name = plan_.buffers[id].name;
      if (!line.empty() && line.size() + name.size() > 92) {
        out_.Line(line);
        line.clear();
      }
      if (!line.empty()) line += ' ';
      line += name + ",";
    }
    line.pop_back();
    out_.Line(line);
    out_.Close("}");
  }

  std::vector<Row> InitRows() const {
    std::vector<Row> rows;
    for (const InitOp& op : plan_.init) {
      std::string value = Spell(kInitKinds, op.kind);
      const std::string a = support::PrintReal(op.a), b = support::PrintReal(op.b);
      if (op.kind == InitKind::kConstant) value += "(" + a + ")";
      if (op.kind == InitKind::kNormal || op.kind == InitKind::kUniform) {
        value += "(" + a + ", " + b + "), seed " + std::to_string(op.seed) + ", key " +
                 std::to_string(op.key);
      }
      rows.push_back({plan_.buffers[op.buffer].name, " = " + value});
    }
    return rows;
  }

  void PrintSource(const DataSource& source) {
    out_.Line();
    out_.Open("source " + source.name + " at " + support::Quote(source.path) + " {");
    std::vector<Row> rows;
    for (const FieldSource& field : source.fields) {
      std::string type = " : " + std::string(tensor::DTypeName(field.dtype)) + " " +
                         tensor::ShapeToString(field.shape);
      if (field.classes > 0) {
        type += tensor::IsFloat(field.dtype) ? " distribution(" : " labels(";
        type += support::PrintInteger(field.classes);
        if (field.ignored) type += ", ignored: " + support::PrintInteger(*field.ignored);
        type += ")";
      }
      rows.push_back({field.field, std::move(type)});
    }
    out_.Rows(rows);
    out_.Close("}");
  }

  std::vector<Row> SamplerRows() const {
    std::vector<Row> rows;
    for (const Sampler& sampler : plan_.samplers) {
      std::string kind = " " + Spell(kSampleKinds, sampler.kind) +
                         "(batch: " + support::PrintInteger(sampler.batch) +
                         ", drop_last: " + (sampler.drop_last ? "true" : "false");
      const auto count = [&](const char* label, int64_t value) {
        kind += std::string(", ") + label + ": " + support::PrintInteger(value);
      };
      if (sampler.window > 0) count("window", sampler.window);
      if (sampler.window > 0) count("stride", sampler.stride);
      if (sampler.shards > 1) count("shards", sampler.shards);
      if (sampler.buffer > 0) count("buffer", sampler.buffer);
      if (sampler.recent) kind += ", recent: true";
      kind += ")";
      if (sampler.kind != SampleKind::kSequential) {
        kind += ", seed " + std::to_string(sampler.seed);
      }
      if (sampler.samples > 0) kind += ", samples " + support::PrintInteger(sampler.samples);
      rows.push_back({sampler.name,
                      " : " + plan_.sources[sampler.source].name + "." + sampler.split,
                      std::move(kind)});
    }
    return rows;
  }

  std::vector<Row> StreamRows() const {
    std::vector<Row> rows;
    for (const Stream& stream : plan_.streams) {
      rows.push_back({stream.name, " : " + Spell(kStreamKinds, stream.kind), " on " + stream.node});
    }
    return rows;
  }

  std::vector<Row> TokenRows() const {
    std::vector<Row> rows;
    for (const Token& token : plan_.tokens) {
      rows.push_back({token.name, " : " + support::PrintInteger(token.initial)});
    }
    return rows;
  }

  std::vector<Row> MetricRows() const {
    std::vector<Row> rows;
    for (const Metric& metric : plan_.metrics) {
      rows.push_back({metric.name + "(" + metric.split + ")",
                      " = " + metric.numerator + " / " + metric.denominator});
    }
    return rows;
  }

  std::vector<Row> PhaseRows() const {
    std::vector<Row> rows;
    for (const Phase& phase : plan_.phases) {
      rows.push_back({phase.name, " : " + support::PrintInteger(phase.epochs) + " epochs",
                      ", " + support::PrintInteger(phase.steps) + " steps",
                      ", batch " + support::PrintInteger(phase.batch)});
    }
    return rows;
  }

  void PrintSequence(const Sequence& sequence) {
    out_.Line();
    out_.Open("sequence " + sequence.name + " on " + plan_.streams[sequence.stream].name + " {");
    for (const Command& command : sequence.commands) out_.Line(PrintCommand(command));
    out_.Close("}");
  }

  std::string Pairs(const std::vector<std::pair<std::string, BufferId>>& pairs,
                    std::string_view separator) const {
    std::vector<std::string> parts;
    for (const auto& [name, buffer] : pairs) {
      parts.push_back(name + std::string(separator) + plan_.buffers[buffer].name);
    }
    return "{ " + support::Join(parts) + " }";
  }

  std::string PrintCommand(const Command& command) const {
    switch (command.kind) {
      case CommandKind::kLaunch:
        return PrintLaunch(command);
      case CommandKind::kLoad: {
        std::string line =
            "load " + plan_.samplers[command.sampler].name + " " + Pairs(command.fields, " -> ");
        if (!command.mask.empty()) line += " mask " + plan_.buffers[command.mask[0]].name;
        return line;
      }
      case CommandKind::kCopy:
        return "copy " + plan_.buffers[command.args[0]].name + " -> " +
               plan_.buffers[command.args[1]].name;
      case CommandKind::kWait:
        return "wait " + plan_.tokens[command.token].name;
      case CommandKind::kSignal:
        return "signal " + plan_.tokens[command.token].name;
      case CommandKind::kReport:
        return "report " + command.split + " " + Pairs(command.values, ": ");
      case CommandKind::kCheckpoint:
        return "checkpoint";
      case CommandKind::kPublish:
        return "publish " + command.split;
      case CommandKind::kComplete:
        return "complete";
    }
    return {};
  }

  // Reads stand before the arrow, writes (and updates in place) behind it; each side keeps the
  // order of the kernel's parameters, which is all that reading it back needs.
  std::string PrintLaunch(const Command& command) const {
    const Kernel& kernel = plan_.kernels[command.kernel];
    std::vector<std::string> reads, writes;
    for (size_t i = 0; i < command.args.size(); ++i) {
      const std::string& name = plan_.buffers[command.args[i]].name;
      const bool read = i < kernel.params.size() && kernel.params[i].access == Access::kIn;
      (read ? reads : writes).push_back(name);
    }
    std::string line = "launch " + kernel.name + "(" + support::Join(reads);
    line += reads.empty() ? "-> " : " -> ";
    return line + support::Join(writes) + ")";
  }

  const Plan& plan_;
  Printer out_;
};

}  // namespace

std::string PrintPlan(const Plan& plan) { return PlanPrinter(plan).Print(); }

}  // namespace l3c::l0
