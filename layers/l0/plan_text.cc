#include "layers/l0/plan_text.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "layers/l0/code_text.h"
#include "layers/l0/control_text.h"
#include "layers/l0/kernel_file.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/plan_spelling.h"
#include "layers/support/escape_hatch.h"
#include "layers/support/lexer.h"
#include "layers/support/units.h"

namespace l3c::l0 {
namespace {

using support::Kind;
using support::Name;
using support::ParserBase;
using support::Span;

// Names of one kind of thing, with their ids.
class Names {
 public:
  explicit Names(std::string_view what) : what_(what) {}

  // False, with an error, when the name is taken.
  bool Add(ParserBase& p, const Name& name) {
    auto [it, added] = ids_.emplace(name.text, static_cast<uint32_t>(order_.size()));
    if (!added) {
      p.Error(name.span, std::string(what_) + " '" + name.text + "' is declared twice",
              Kind::kConsistency)
          .With({spans_[it->second], "'" + name.text + "' is declared here"});
      return false;
    }
    order_.push_back(name.text);
    spans_.push_back(name.span);
    return true;
  }

  // At a name that refers to one of these.
  std::optional<uint32_t> Expect(ParserBase& p) {
    auto name = p.ExpectName("a " + std::string(what_));
    if (!name) return std::nullopt;
    auto found = ids_.find(name->text);
    if (found != ids_.end()) return found->second;
    p.ErrorUnknown(what_, *name, order_, Kind::kSafety);
    return std::nullopt;
  }

  const std::vector<std::string>& order() const { return order_; }

 private:
  std::string_view what_;
  std::map<std::string, uint32_t, std::less<>> ids_;
  std::vector<std::string> order_;
  std::vector<Span> spans_;
};

constexpr int64_t kMaxBytesOfPool = int64_t{1} << 50;

class PlanParser : public ParserBase {
 public:
  using ParserBase::ParserBase;

  std::optional<Plan> Parse() {
    const size_t errors = diagnostics().all().size();
    CheckHeader("l0");
    if (ExpectWord("plan")) {
      if (auto name = ExpectName("the name of the plan")) plan_.name = name->text;
    } else {
      SkipToDeclaration(kDeclarations);
    }
    while (!AtEnd()) {
      const uint32_t begin = Here();
      ParseDeclaration();
      if (Here() == begin && !AtEnd()) {
        Next();
        SkipToDeclaration(kDeclarations);
      }
    }
    if (stopped() || diagnostics().all().size() > errors) return std::nullopt;
    return std::move(plan_);
  }

 private:
  inline static const std::vector<std::string> kDeclarations = {
      "pools",  "buffers",  "parameters", "optimiser_state", "init",
      "source", "samplers", "streams",    "tokens",          "kernel",
      "code",   "sequence", "metrics",    "phases",          "control"};

  void ParseDeclaration() {
    const std::string word(Peek().text);
    if (word == "pools") return ParseRows([this] { return ParsePool(); });
    if (word == "buffers") return ParseRows([this] { return ParseBuffer(); });
    if (word == "parameters") return ParseNames(plan_.parameters);
    if (word == "optimiser_state") return ParseNames(plan_.optimiser_state);
    if (word == "init") return ParseRows([this] { return ParseInit(); });
    if (word == "source") return ParseSource();
    if (word == "samplers") return ParseRows([this] { return ParseSampler(); });
    if (word == "streams") return ParseRows([this] { return ParseStream(); });
    if (word == "tokens") return ParseRows([this] { return ParseToken(); });
    if (word == "kernel" || support::AtEscapeHatch(*this)) return ParseKernelDeclaration();
    if (word == "code") return ParseCodeDeclaration();
    if (word == "sequence") return ParseSequence();
    if (word == "metrics") return ParseRows([this] { return ParseMetric(); });
    if (word == "phases") return ParseRows([this] { return ParsePhase(); });
    if (word == "control") return ParseControlUnit();
    if (AtName()) {
      ErrorUnknown("declaration", {word, Peek().span}, kDeclarations);
    } else {
      ErrorExpected("a declaration");
    }
  }

  // WORD { row row … }, a row a line.
  template <class Row>
  void ParseRows(Row row) {
    Next();
    ParseBody(row);
  }
  template <class Row>
  void ParseBody(Row row) {
    if (!Expect("{")) return SkipToDeclaration(kDeclarations);
    const int inside = bracket_depth();
    while (!At("}") && !AtEnd()) {
      const uint32_t field = Here();
      if (!row()) SkipToField(inside, field);
    }
    Expect("}");
  }

  template <size_t N>
  std::optional<int> ExpectSpelling(std::string_view what, const Spelling (&table)[N]) {
    auto name = ExpectName(what);
    if (!name) return std::nullopt;
    std::vector<std::string> words;
    for (const Spelling& entry : table) {
      if (entry.word == name->text) return entry.value;
      words.emplace_back(entry.word);
    }
    ErrorUnknown(what, *name, words);
    return std::nullopt;
  }

  // All 64 bits: a seed is not an amount.
  bool ExpectUnsigned(std::string_view what, uint64_t& value) {
    if (!AtNumber()) {
      ErrorExpected(what);
      return false;
    }
    const std::string_view text = Peek().text;
    const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
    const std::string_view digits = hex ? text.substr(2) : text;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
    if (error != std::errc() || stop != end) {
      Error(Peek().span, std::string(what) + " must be a whole number below 2^64");
      return false;
    }
    Next();
    return true;
  }

  bool ParseType(DType& dtype, tensor::Shape& shape) {
    auto name = ExpectName("an element type");
    if (!name) return false;
    auto parsed = tensor::ParseDType(name->text);
    if (!parsed) {
      ErrorUnknown("element type", *name, {"bool", "u8", "i32", "i64", "u32", "u64", "f32", "f64"});
      return false;
    }
    dtype = *parsed;
    const uint32_t begin = Here();
    double elements = 1;
    const bool read = ParseList("[", "]", [&] {
      auto extent = ExpectInteger("an extent", 0, tensor::kMaxElements);
      if (!extent) return false;
      shape.push_back(*extent);
      elements *= static_cast<double>(*extent);
      return true;
    });
    if (!read) return false;
    if (shape.size() > static_cast<size_t>(tensor::kMaxRank) ||
        elements > static_cast<double>(tensor::kMaxElements)) {
      Error(SpanFrom(begin),
            "a shape has at most " + std::to_string(tensor::kMaxRank) + " axes and 2^40 elements",
            Kind::kResourceBound);
      return false;
    }
    return true;
  }

  bool ParsePool() {
    auto name = ExpectName("the name of a pool");
    if (!name || !Expect(":")) return false;
    Pool pool;
    pool.name = name->text;
    pool.span = name->span;
    auto kind = ExpectSpelling("kind of pool", kPoolKinds);
    if (!kind || !ExpectWord("on")) return false;
    pool.kind = static_cast<PoolKind>(*kind);
    auto node = ExpectName("a memory node");
    if (!node || !Expect(",")) return false;
    pool.node = node->text;
    auto size = ExpectBytes("the size of a pool");
    if (!size || !ExpectWord("of")) return false;
    auto capacity = ExpectBytes("the capacity of the node");
    if (!capacity) return false;
    pool.size = *size;
    pool.capacity = *capacity;
    if (!pools_.Add(*this, *name)) return false;
    plan_.pools.push_back(std::move(pool));
    return true;
  }

  bool ParseBuffer() {
    auto name = ExpectName("the name of a buffer");
    if (!name || !Expect(":")) return false;
    Buffer buffer;
    buffer.name = name->text;
    buffer.span = name->span;
    if (!ParseType(buffer.dtype, buffer.shape) || !ExpectWord("in")) return false;
    auto pool = pools_.Expect(*this);
    if (!pool || !ExpectWord("at")) return false;
    buffer.pool = *pool;
    auto offset = ExpectInteger("an offset in bytes", 0, kMaxBytesOfPool);
    if (!offset || !ExpectWord("size")) return false;
    auto size = ExpectInteger("a size in bytes", 0, kMaxBytesOfPool);
    if (!size) return false;
    buffer.offset = *offset;
    buffer.size = *size;
    buffer.last_use = kWholeRun;
    if (AcceptWord("live")) {
      auto first = ExpectInteger("the position of the first use");
      if (!first || !Expect("..")) return false;
      buffer.first_use = *first;
      if (!AcceptWord("end")) {
        auto last = ExpectInteger("the position of the last use");
        if (!last) return false;
        buffer.last_use = *last;
      }
    }
    if (!buffers_.Add(*this, *name)) return false;
    plan_.buffers.push_back(std::move(buffer));
    return true;
  }

  void ParseNames(std::vector<BufferId>& ids) {
    Next();
    ParseList("{", "}", [&] {
      auto id = buffers_.Expect(*this);
      if (id) ids.push_back(*id);
      return id.has_value();
    });
  }

  bool ParseInit() {
    const uint32_t begin = Here();
    InitOp op;
    auto buffer = buffers_.Expect(*this);
    if (!buffer || !Expect("=")) return false;
    op.buffer = *buffer;
    auto kind = ExpectSpelling("kind of initial value", kInitKinds);
    if (!kind) return false;
    op.kind = static_cast<InitKind>(*kind);
    if (op.kind != InitKind::kZeros) {
      if (!Expect("(")) return false;
      auto a = ExpectReal("a number");
      if (!a) return false;
      op.a = *a;
      if (op.kind != InitKind::kConstant) {
        if (!Expect(",")) return false;
        auto b = ExpectReal("a number");
        if (!b) return false;
        op.b = *b;
      }
      if (!Expect(")")) return false;
    }
    if (op.kind == InitKind::kNormal || op.kind == InitKind::kUniform) {
      if (!Expect(",") || !ExpectWord("seed") || !ExpectUnsigned("a seed", op.seed)) return false;
      if (!Expect(",") || !ExpectWord("key") || !ExpectUnsigned("a key", op.key)) return false;
    }
    op.span = SpanFrom(begin);
    plan_.init.push_back(op);
    return true;
  }

  void ParseSource() {
    Next();
    auto name = ExpectName("the name of a data source");
    if (!name || !ExpectWord("at")) return SkipToDeclaration(kDeclarations);
    const uint32_t at_path = Here();
    auto path = ExpectString("the path of a folder, in quotes");
    if (!path) return SkipToDeclaration(kDeclarations);
    if (path->empty()) {
      Error(SpanFrom(at_path), "the path of data '" + name->text + "' is empty", Kind::kEnvironment)
          .Fix("name the folder that they lie in, such as \"data/" + name->text + "\"");
    }
    DataSource source;
    source.name = name->text;
    source.path = *path;
    source.span = name->span;
    ParseBody([&] {
      auto field = ExpectName("the name of a field");
      if (!field || !Expect(":")) return false;
      FieldSource parsed;
      parsed.field = field->text;
      if (!ParseType(parsed.dtype, parsed.shape)) return false;
      // Else the next field, of that name.
      if (AtWord(tensor::IsFloat(parsed.dtype) ? "distribution" : "labels") && Peek(1).Is("(")) {
        Next();
        if (!Expect("(")) return false;
        auto classes = ExpectInteger("a number of classes", 1, int64_t{1} << 40);
        if (!classes) return false;
        if (!tensor::IsFloat(parsed.dtype) && Accept(",")) {
          if (!ExpectWord("ignored") || !Expect(":")) return false;
          parsed.ignored = ExpectInteger("the label that counts nothing", 0, int64_t{1} << 40);
          if (!parsed.ignored) return false;
        }
        if (!Expect(")")) return false;
        if (tensor::IsFloat(parsed.dtype) && tensor::NumElements(parsed.shape) % *classes != 0) {
          Error(name->span, "field '" + parsed.field + "' has " +
                                support::PrintInteger(tensor::NumElements(parsed.shape)) +
                                " elements, no distributions over " +
                                support::PrintInteger(*classes) + " classes");
          return false;
        }
        parsed.classes = *classes;
      }
      source.fields.push_back(std::move(parsed));
      return true;
    });
    if (sources_.Add(*this, *name)) plan_.sources.push_back(std::move(source));
  }

  bool ParseSampler() {
    auto name = ExpectName("the name of a sampler");
    if (!name || !Expect(":")) return false;
    Sampler sampler;
    sampler.name = name->text;
    sampler.span = name->span;
    auto source = sources_.Expect(*this);
    if (!source || !Expect(".")) return false;
    sampler.source = *source;
    auto split = ExpectName("a split (train, test)");
    if (!split) return false;
    sampler.split = split->text;
    auto kind = ExpectSpelling("sampling", kSampleKinds);
    if (!kind || !Expect("(") || !ExpectWord("batch") || !Expect(":")) return false;
    sampler.kind = static_cast<SampleKind>(*kind);
    auto batch = ExpectInteger("a batch", 1, int64_t{1} << 32);
    if (!batch || !Expect(",") || !ExpectWord("drop_last") || !Expect(":")) return false;
    sampler.batch = *batch;
    auto drop = ExpectBool("drop_last");
    if (!drop) return false;
    sampler.drop_last = *drop;
    while (Accept(",")) {
      auto label = ExpectName("window, stride, shards, buffer or recent");
      if (!label || !Expect(":")) return false;
      if (label->text == "recent") {
        auto recent = ExpectBool("recent");
        if (!recent) return false;
        sampler.recent = *recent;
        continue;
      }
      int64_t* count = label->text == "window"   ? &sampler.window
                       : label->text == "stride" ? &sampler.stride
                       : label->text == "shards" ? &sampler.shards
                       : label->text == "buffer" ? &sampler.buffer
                                                 : nullptr;
      if (count == nullptr) {
        ErrorUnknown("argument of a sampler", *label,
                     {"window", "stride", "shards", "buffer", "recent"});
        return false;
      }
      auto number = ExpectInteger("a number of samples", 1, UINT32_MAX);
      if (!number) return false;
      *count = *number;
    }
    if (!Expect(")")) return false;
    if (sampler.kind != SampleKind::kSequential) {
      if (!Expect(",") || !ExpectWord("seed")) return false;
      if (!ExpectUnsigned("a seed", sampler.seed)) return false;
    }
    if (Accept(",")) {
      if (!ExpectWord("samples")) return false;
      auto samples = ExpectInteger("a number of samples", 1, UINT32_MAX);
      if (!samples) return false;
      sampler.samples = *samples;
    }
    if (!samplers_.Add(*this, *name)) return false;
    plan_.samplers.push_back(std::move(sampler));
    return true;
  }

  bool ParseStream() {
    auto name = ExpectName("the name of a stream");
    if (!name || !Expect(":")) return false;
    Stream stream;
    stream.name = name->text;
    stream.span = name->span;
    auto kind = ExpectSpelling("kind of stream", kStreamKinds);
    if (!kind || !ExpectWord("on")) return false;
    stream.kind = static_cast<StreamKind>(*kind);
    auto node = ExpectName("a compute node");
    if (!node) return false;
    stream.node = node->text;
    if (!streams_.Add(*this, *name)) return false;
    plan_.streams.push_back(std::move(stream));
    return true;
  }

  bool ParseToken() {
    auto name = ExpectName("the name of a token");
    if (!name || !Expect(":")) return false;
    auto initial = ExpectInteger("the initial count of a token", 0, INT32_MAX);
    if (!initial || !tokens_.Add(*this, *name)) return false;
    plan_.tokens.push_back({name->text, *initial, name->span});
    return true;
  }

  void ParseKernelDeclaration() {
    std::optional<support::EscapeHatch> hatch;
    if (support::AtEscapeHatch(*this)) {
      // What stands above L0 may name this layer, and so may L0 itself.
      hatch = support::ParseEscapeHatch(*this, "l1");
      if (!hatch) return SkipToDeclaration(kDeclarations);
      if (!AtWord("kernel")) {
        ErrorExpected("a kernel after its annotation");
        return SkipToDeclaration(kDeclarations);
      }
    }
    auto kernel = ParseKernel(*this);
    if (!kernel) return;
    if (hatch) {
      const std::string folder = std::filesystem::path(source().name()).parent_path().string();
      // What is declared keeps its name, so that one fault is one error.
      auto own = KernelFromFile(*hatch, *kernel, folder, diagnostics());
      if (own && own->kernel) kernel = std::move(own->kernel);
      if (own && own->code) {
        own->code->kernel = static_cast<uint32_t>(plan_.kernels.size());
        plan_.code.push_back(*std::move(own->code));
      }
    }
    if (kernels_.Add(*this, {kernel->name, kernel->span})) {
      plan_.kernels.push_back(*std::move(kernel));
    }
  }

  void ParseCodeDeclaration() {
    Next();
    auto id = kernels_.Expect(*this);
    if (!id || !Expect(":")) return SkipToDeclaration(kDeclarations);
    auto code = ParseCode(*this);
    if (!code) return SkipToDeclaration(kDeclarations);
    code->kernel = *id;
    plan_.code.push_back(*std::move(code));
  }

  void ParseSequence() {
    Next();
    auto name = ExpectName("the name of a sequence");
    if (!name || !ExpectWord("on")) return SkipToDeclaration(kDeclarations);
    auto stream = streams_.Expect(*this);
    if (!stream) return SkipToDeclaration(kDeclarations);
    Sequence sequence;
    sequence.name = name->text;
    sequence.stream = *stream;
    sequence.span = name->span;
    ParseBody([&] {
      const uint32_t begin = Here();
      Command command;
      if (!ParseCommand(command)) return false;
      command.span = SpanFrom(begin);
      sequence.commands.push_back(std::move(command));
      return true;
    });
    if (sequences_.Add(*this, *name)) plan_.sequences.push_back(std::move(sequence));
  }

  bool ParseCommand(Command& command) {
    auto name = ExpectName("a command");
    if (!name) return false;
    if (name->text == "launch") return ParseLaunch(command);
    if (name->text == "load") return ParseLoad(command);
    if (name->text == "copy") {
      command.kind = CommandKind::kCopy;
      auto from = buffers_.Expect(*this);
      if (!from || !Expect("->")) return false;
      auto to = buffers_.Expect(*this);
      if (!to) return false;
      command.args = {*from, *to};
      return true;
    }
    if (name->text == "wait" || name->text == "signal") {
      command.kind = name->text == "wait" ? CommandKind::kWait : CommandKind::kSignal;
      auto token = tokens_.Expect(*this);
      if (token) command.token = *token;
      return token.has_value();
    }
    if (name->text == "report") {
      command.kind = CommandKind::kReport;
      return ParseSplit(command) && ParsePairs(":", command.values);
    }
    if (name->text == "publish") {
      command.kind = CommandKind::kPublish;
      return ParseSplit(command);
    }
    if (name->text == "checkpoint" || name->text == "complete") {
      command.kind = name->text == "complete" ? CommandKind::kComplete : CommandKind::kCheckpoint;
      return true;
    }
    ErrorUnknown("command", *name,
                 {"launch", "load", "copy", "wait", "signal", "report", "publish", "checkpoint",
                  "complete"});
    return false;
  }

  bool ParseSplit(Command& command) {
    auto split = ExpectName("a split (train, test)");
    if (split) command.split = split->text;
    return split.has_value();
  }

  bool ParsePairs(std::string_view separator,
                  std::vector<std::pair<std::string, BufferId>>& pairs) {
    return ParseList("{", "}", [&] {
      auto name = ExpectName("a name");
      if (!name || !Expect(separator)) return false;
      auto buffer = buffers_.Expect(*this);
      if (buffer) pairs.emplace_back(name->text, *buffer);
      return buffer.has_value();
    });
  }

  bool ParseLoad(Command& command) {
    command.kind = CommandKind::kLoad;
    auto sampler = samplers_.Expect(*this);
    if (!sampler || !ParsePairs("->", command.fields)) return false;
    command.sampler = *sampler;
    if (AcceptWord("mask")) {
      auto mask = buffers_.Expect(*this);
      if (!mask) return false;
      command.mask = {*mask};
    }
    return true;
  }

  bool ParseBufferList(std::string_view end, std::vector<BufferId>& buffers) {
    while (!At(end)) {
      auto buffer = buffers_.Expect(*this);
      if (!buffer) return false;
      buffers.push_back(*buffer);
      if (!Accept(",")) break;
    }
    return Expect(end);
  }

  bool ParseLaunch(Command& command) {
    const uint32_t begin = Here();
    auto id = kernels_.Expect(*this);
    std::vector<BufferId> reads, writes;
    if (!id || !Expect("(") || !ParseBufferList("->", reads) || !ParseBufferList(")", writes)) {
      return false;
    }
    command.kernel = *id;
    const Kernel& kernel = plan_.kernels[*id];
    size_t read = 0, written = 0;
    for (const Param& param : kernel.params) {
      size_t& next = param.access == Access::kIn ? read : written;
      const std::vector<BufferId>& side = param.access == Access::kIn ? reads : writes;
      if (next < side.size()) command.args.push_back(side[next]);
      ++next;
    }
    if (read != reads.size() || written != writes.size()) {
      Error(SpanFrom(begin),
            "kernel '" + kernel.name + "' reads " + std::to_string(read) + " and writes " +
                std::to_string(written) + " buffers, not " + std::to_string(reads.size()) +
                " and " + std::to_string(writes.size()),
            Kind::kSafety)
          .With({kernel.span, "'" + kernel.name + "' is declared here"});
      return false;
    }
    return true;
  }

  bool ParseMetric() {
    auto name = ExpectName("the name of a metric");
    if (!name || !Expect("(")) return false;
    auto split = ExpectName("a split (train, test)");
    if (!split || !Expect(")") || !Expect("=")) return false;
    auto numerator = ExpectName("a reported name");
    if (!numerator || !Expect("/")) return false;
    auto denominator = ExpectName("a reported name");
    if (!denominator) return false;
    plan_.metrics.push_back(
        {name->text, split->text, numerator->text, denominator->text, name->span});
    return true;
  }

  bool ParsePhase() {
    auto name = ExpectName("the name of a phase");
    if (!name || !Expect(":")) return false;
    Phase phase;
    phase.name = name->text;
    phase.span = name->span;
    auto epochs = ExpectInteger("a number of epochs");
    if (!epochs || !ExpectWord("epochs") || !Expect(",")) return false;
    auto steps = ExpectInteger("a number of steps");
    if (!steps || !ExpectWord("steps") || !Expect(",") || !ExpectWord("batch")) return false;
    auto batch = ExpectInteger("a batch", 1);
    if (!batch) return false;
    phase.epochs = *epochs;
    phase.steps = *steps;
    phase.batch = *batch;
    plan_.phases.push_back(std::move(phase));
    return true;
  }

  void ParseControlUnit() {
    if (auto unit = ParseControl(*this, sequences_.order(), streams_.order())) {
      if (units_.Add(*this, {unit->name, unit->span})) plan_.control.push_back(*std::move(unit));
    }
  }

  Plan plan_;
  Names pools_{"pool"}, buffers_{"buffer"}, sources_{"data source"}, samplers_{"sampler"},
      streams_{"stream"}, tokens_{"token"}, kernels_{"kernel"}, sequences_{"sequence"},
      units_{"control unit"};
};

}  // namespace

std::optional<Plan> ParsePlan(const support::SourceFile& source,
                              support::Diagnostics& diagnostics) {
  return PlanParser(source, diagnostics).Parse();
}

}  // namespace l3c::l0
