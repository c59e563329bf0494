// L1: where each computation lives and when it runs. Everything arithmetic is explicit: forward and
// backward are tensor graphs, an optimiser is an actor's handler in tensor ops, loading is a stage.
// The text form is complete by itself. See docs/l1.md for the grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/support/escape_hatch.h"
#include "layers/support/source.h"
#include "layers/tensor/graph.h"

namespace l3c::l1 {

using support::Span;

struct TensorType {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  bool operator==(const TensorType&) const = default;
};

enum class NodeKind : uint8_t { kStorage, kMemory, kCompute };

struct SystemNode {
  std::string name;
  NodeKind kind = NodeKind::kCompute;
  int64_t capacity = 0;               // memory: bytes; storage: 0 when not stated
  std::string isa;                    // compute: x86_64, cuda, …
  int64_t cores = 0;                  // compute, CPU
  int64_t vram = 0;                   // compute, GPU: bytes
  int64_t sm = 0;                     // compute, GPU: multiprocessors
  std::string arch;                   // compute, GPU: sm_80, …
  std::vector<std::string> features;  // compute, CPU: avx2, fma, avx512f, …
  Span span;
};

// Bounds on a system: no machine comes near, and the verifier's searches stay short.
inline constexpr size_t kMaxNodes = 4096;
inline constexpr size_t kMaxEdges = 65536;

struct Edge {
  uint32_t from = 0;  // indices into System::nodes
  uint32_t to = 0;
  bool both_ways = false;
  double bandwidth = 0;  // bytes per second
  Span span;
};

struct System {
  std::string name;
  std::vector<SystemNode> nodes;
  std::vector<Edge> edges;
  Span span;
};

// L3's data declaration bound to storage.
struct BoundField {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;  // one sample
  // > 0: of whole numbers, labels in [0, classes), printed as `labels(10)` after the domain; of
  // reals, distributions over so many classes, printed as `distribution(10)`.
  int64_t classes = 0;
  std::optional<int64_t> ignored;  // a label that is no class: `labels(10, ignored: 255)`
  uint32_t storage = 0;            // node index
  std::string path;                // folder with dataset.json, or files SPLIT.FIELD.EXT
  Span span;
};
struct BoundData {
  std::string name;
  std::vector<BoundField> fields;
  Span span;
};

enum class InitKind : uint8_t { kZeros, kOnes, kConstant, kKaiming, kNormal, kUniform };

struct StateField {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  InitKind init = InitKind::kZeros;
  double a = 0;            // constant: value; normal: standard deviation; uniform: bound (±)
  bool parameter = false;  // `param` in the text: counted, checkpointed first, in weights_sha256
  Span span;
};

struct Reference {  // a stage, graph, pipeline or actor by its name
  std::string name;
  Span span;
};

struct Window {
  std::string name;
  std::vector<std::string> fields;
  std::vector<Reference> readers;
  Span span;
};

// `on NAME(args) { … }`: a tensor program. Its graph's inputs are the arguments followed by the
// state fields that it reads (same names); its outputs are the state fields that it assigns, all at
// once when the message has been handled: a read always sees the state as the message found it.
// In a pipeline a message's arguments are the outputs of the same names of the graphs before it.
struct Handler {
  std::string message;
  std::vector<std::string> args;  // names of graph inputs that are arguments, in order
  tensor::Graph graph;
  Span span;
};

struct Actor {
  std::string name;
  uint32_t node = 0;
  // `state @ MEMORY`: another memory than the node's, which the state lies in and is brought in
  // from, what a kernel needs while the kernel before it runs, and taken back to.
  // A memory that the node reaches itself is read and written in place.
  std::optional<uint32_t> home;
  // `replicates ACTOR`: another actor, declared before, whose state this one has a copy of. It
  // begins with the same values and gets a message whenever the other does.
  std::string replicates;
  std::vector<StateField> state;
  std::vector<Window> windows;
  std::vector<Handler> handlers;
  Span span;
};

// `fn compute(inputs) -> (outputs)`. The graph's inputs are the arguments followed by the window
// fields that it uses (same names as in the actor).
struct TensorGraph {
  std::string name;
  uint32_t node = 0;
  std::vector<std::pair<std::string, std::string>> reads;  // (actor, window)
  std::vector<std::string> args;
  tensor::Graph graph;
  // #[l0::kernel("FILE")] before a let: what computes its value. Paths are absolute.
  std::vector<std::pair<std::string, support::EscapeHatch>> kernels;  // (let, annotation)
  Span span;
};

// epoch_shuffle: every sample once an epoch, in an order drawn from the seed. sequential: in order.
// replay: drawn with replacement from the last `buffer` samples of those seen so far.
enum class SampleKind : uint8_t { kEpochShuffle, kSequential, kReplay };
struct Sampling {
  SampleKind kind = SampleKind::kEpochShuffle;
  std::string data;
  std::string split;  // "train", "test"
  int64_t rows = 0;   // samples of an epoch, as the schedule was planned for; 0: not stated
  int64_t batch = 1;
  bool drop_last = false;
  // A sample is `window` stored rows in a row, the next one begins `stride` rows later: a field
  // whose first extent is the window has them all, any other field has the last. 0: one stored row.
  int64_t window = 0;
  int64_t stride = 1;
  int64_t shards = 1;   // the samples are cut into so many parts, and a batch takes evenly of each
  int64_t buffer = 0;   // replay
  bool recent = false;  // replay: newer samples are drawn more often
  Span span;
};

// kLet binds a value for conditions; kIf runs one of its two bodies.
enum class StatementKind : uint8_t { kAlloc, kLet, kRead, kDecode, kCopy, kIf, kForward, kDrop };
// The body of a stage; buffers are linear: each is forwarded or dropped exactly once on each path.
struct Statement {
  StatementKind kind = StatementKind::kAlloc;
  std::string buffer;   // alloc, let: defines; read, decode, copy: destination; drop: the buffer
  uint32_t region = 0;  // alloc: memory node
  tensor::DType dtype = tensor::DType::kF32;  // alloc
  tensor::Shape shape;                        // alloc
  std::string data, field;                    // read: which field; kValidField is the batch's mask
  std::string source;                         // decode, copy; a copy's may be a window's field
  double scale = 1;                           // decode: the elements are multiplied by it
  std::string target, handler;                // forward: stage, graph, or actor.handler
  std::vector<std::string> buffers;           // forward: in order
  // let, if: an expression. Its inputs are buffers, window fields and bound values of these names;
  // its one output is the value, for `if` one bool.
  tensor::Graph value;
  Span value_span;
  std::vector<Statement> then_body, else_body;  // if
  Span span;
};

struct BufferParam {
  std::string name;
  uint32_t region = 0;  // buf<region>
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  Span span;
};

struct Stage {
  std::string name;
  uint32_t node = 0;
  bool samples = false;  // a source: it draws batches of rows
  Sampling sampling;
  // (actor, window): state that conditions may look at and copies may be made of.
  std::vector<std::pair<std::string, std::string>> reads;
  std::vector<BufferParam> params;
  std::vector<Statement> body;
  Span span;
};

struct Pipeline {
  std::string name;
  std::vector<Reference> links;  // stages and graphs in order; an actor handler as "actor.message"
  Span span;
};

// How metrics are read from graph outputs: value = Σ numerator / Σ denominator over the period.
struct Metric {
  std::string name;   // loss, accuracy
  std::string split;  // train, test
  std::string graph;  // tensor_graph whose outputs these are
  std::string numerator;
  std::string denominator;
  Span span;
};

struct Phase {
  std::string name;
  std::string pipeline;  // trained
  int64_t epochs = 0;    // one of epochs, steps is positive
  int64_t steps = 0;
  std::string eval;  // pipeline run after every `eval_every` epochs; "" for none
  int64_t eval_every = 1;
  int64_t checkpoint_every = 0;  // epochs; 0: only at the end
  Span span;
};

struct Schedule {
  std::vector<Reference> pipelines;
  std::vector<Reference> actors;
  int64_t pipeline_depth = 1;
  uint64_t seed = 0;
  std::vector<Phase> phases;
  std::vector<Metric> metrics;
  Span span;
};

struct Program {
  System system;
  std::vector<BoundData> data;
  std::vector<Actor> actors;
  std::vector<Stage> stages;
  std::vector<TensorGraph> graphs;
  std::vector<Pipeline> pipelines;
  Schedule schedule;
};

// ---- Look-ups; nullptr or nothing when there is none ------------------------------------------

std::optional<uint32_t> FindNode(const System& system, std::string_view name);
const BoundData* FindData(const Program& program, std::string_view name);
const BoundField* FindField(const BoundData& data, std::string_view name);
const Actor* FindActor(const Program& program, std::string_view name);
const StateField* FindState(const Actor& actor, std::string_view name);
const Window* FindWindow(const Actor& actor, std::string_view name);
const Stage* FindStage(const Program& program, std::string_view name);
const TensorGraph* FindGraph(const Program& program, std::string_view name);
const Pipeline* FindPipeline(const Program& program, std::string_view name);
// The first field of that name in one of the windows (actor, window); nullptr when none has one.
struct StateOwner {
  const Actor* actor = nullptr;
  const StateField* field = nullptr;
};
std::optional<StateOwner> FindWindowField(
    const Program& program, const std::vector<std::pair<std::string, std::string>>& reads,
    std::string_view name);

struct HandlerRef {
  const Actor* actor = nullptr;
  const Handler* handler = nullptr;
};
// "actor.message".
std::optional<HandlerRef> FindHandler(const Program& program, std::string_view link);

// Calls `visit` for each statement of a body in the order written, bodies of an `if` after it.
void ForEachStatement(const std::vector<Statement>& body,
                      const std::function<void(const Statement&)>& visit);
// "graph", "actor.message": what a forward hands over to.
std::string TargetOf(const Statement& forward);

// The name by which a read statement asks for a batch's mask: f32 [batch], 1 for a row and 0 for
// the padding of the last batch of an epoch.
inline constexpr std::string_view kValidField = "valid";

// The nodes whose bytes a computation on node `compute` reads and writes directly: itself when it
// has vram, else the memory nodes it has an edge with, in node order.
std::vector<uint32_t> LocalMemories(const System& system, uint32_t compute);
// The first of them: where a computation leaves what it makes. Itself where it has none.
uint32_t MemoryOf(const System& system, uint32_t compute);
// Where the state of an actor lies.
uint32_t HomeOf(const System& system, const Actor& actor);
// Whether it must be brought into the memory that its node works in: the node does not reach it.
bool IsBroughtIn(const System& system, const Actor& actor);
// Whether buffers can live on the node: a memory node, or a compute node with vram.
bool HoldsBuffers(const SystemNode& node);
// Bytes that buffers on the node may take: capacity or vram.
int64_t BufferCapacity(const SystemNode& node);
// Whether bytes can flow from node `from` to node `to` along edges (true when they are the same).
bool HasPath(const System& system, uint32_t from, uint32_t to);

int64_t ByteSize(tensor::DType dtype, const tensor::Shape& shape);
std::string_view NodeKindName(NodeKind kind);      // "storage", "memory", "compute"
std::string_view SampleKindName(SampleKind kind);  // "epoch_shuffle", "sequential", "replay"

}  // namespace l3c::l1
