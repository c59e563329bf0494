// L0: the explicit plan. Every buffer, kernel, stream, token, transfer and byte; no decision left.
// The text form is complete by itself: running it needs no other layer's text and no cache, only
// the data files that it names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/control.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_code.h"
#include "layers/support/source.h"
#include "layers/tensor/dtype.h"

namespace l3c::l0 {

using PoolId = uint32_t;
using BufferId = uint32_t;
using KernelId = uint32_t;
using TokenId = uint32_t;
using StreamId = uint32_t;
using SequenceId = uint32_t;
using SamplerId = uint32_t;

enum class PoolKind : uint8_t {
  kPersistent,  // actor state: init to program end
  kArena,       // intermediates: live within one run of a sequence; slots share bytes
  kStaging,     // batches in flight between loader and compute, one set a pipeline slot
  kWindow,      // state brought in from another memory: slots take turns at the same bytes, kept
                // apart by the order of streams alone
  kExchange,    // intermediates of a step that several streams run: as a window's
};

struct Pool {
  std::string name;
  PoolKind kind = PoolKind::kArena;
  std::string node;      // the memory node of the system that it lives in
  int64_t capacity = 0;  // bytes the node may give it; the verifier compares
  int64_t size = 0;      // bytes used: max over slots of offset + size
  support::Span span;
};

// A memory slot. Offsets are multiples of kAlignment, a cache line; in an arena, which one stream
// at a time uses, of the element's size. No launch of several blocks writes to a line that holds
// anything else that lives.
inline constexpr int64_t kAlignment = 64;
struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  tensor::Shape shape;
  PoolId pool = 0;
  int64_t offset = 0;
  int64_t size = 0;  // bytes: the elements' own, no padding
  // Positions in the sequence that uses it (arena); [0, kWholeRun] for persistent and staging.
  int64_t first_use = 0;
  int64_t last_use = 0;
  support::Span span;
};
inline constexpr int64_t kWholeRun = INT64_MAX;

enum class InitKind : uint8_t { kZeros, kConstant, kNormal, kUniform };
// Values come from Philox keyed by (seed, key), element i from counter i: independent of order.
struct InitOp {
  BufferId buffer = 0;
  InitKind kind = InitKind::kZeros;
  double a = 0;  // constant: the value; normal: mean; uniform: low
  double b = 0;  // normal: standard deviation; uniform: high
  uint64_t seed = 0;
  uint64_t key = 0;
  support::Span span;
};

// Where a field of a data set is stored at rest.
struct FieldSource {
  std::string field;
  DType dtype = DType::kF32;  // as the plan wants it; files are decoded into it
  tensor::Shape shape;        // of one sample
  // > 0: whole numbers are labels and must lie in [0, classes); of reals, each `classes` in a row
  // are a distribution and must add up to one.
  int64_t classes = 0;
  std::optional<int64_t> ignored = std::nullopt;  // a label that is no class and may stand there
};
struct DataSource {
  std::string name;  // "mnist"
  std::string path;  // folder; see docs/data.md for dataset.json
  std::vector<FieldSource> fields;
  support::Span span;
};

// As at L1: layers/l1/ir.h, Sampling.
enum class SampleKind : uint8_t { kEpochShuffle, kSequential, kReplay };
// Yields the rows of batch number `argument` of a load command.
struct Sampler {
  std::string name;
  uint32_t source = 0;  // index into Plan::sources
  std::string split;    // "train", "test"
  SampleKind kind = SampleKind::kEpochShuffle;
  int64_t batch = 1;
  // Of the split: what an epoch is made of. The run refuses data of another size, and --synthetic
  // makes up as many. 0: whatever the files hold.
  int64_t samples = 0;
  bool drop_last = false;  // else the last batch of an epoch is padded with zeros and masked
  int64_t window = 0;      // stored rows that make a sample; 0: one
  int64_t stride = 1;      // stored rows from one window to the next
  int64_t shards = 1;
  int64_t buffer = 0;   // replay: samples
  bool recent = false;  // replay: newer samples are drawn more often
  uint64_t seed = 0;
  support::Span span;
};

enum class CommandKind : uint8_t {
  kLaunch,
  kLoad,
  kCopy,
  kWait,
  kSignal,
  kReport,
  kCheckpoint,
  kPublish,   // ends a period of `split`: its metrics become figures, the sums start again at zero
  kComplete,  // tells the control unit: pushes this descriptor on the stream's completion queue
};

struct Command {
  CommandKind kind = CommandKind::kLaunch;
  KernelId kernel = 0;         // launch
  std::vector<BufferId> args;  // launch: in the kernel's parameter order; copy: from, to
  SamplerId sampler = 0;       // load
  std::vector<std::pair<std::string, BufferId>> fields;  // load: field → destination
  std::vector<BufferId> mask;  // load: at most one, f32 [batch]: 1 for a row, 0 for padding
  TokenId token = 0;           // wait, signal
  // report: name → scalar f32 buffer. The host sums the values, in f64 and in the order of the
  // stream, under (split, name) until a publish command of that split; see Metric.
  std::vector<std::pair<std::string, BufferId>> values;
  std::string split;  // report, publish: "train", "test"
  support::Span span;
};

// Counting semaphore between streams. One stream waits for it and one signals it, so that the n-th
// wait always meets the n-th signal (after `initial` waits that meet none) and the order of a run's
// commands does not depend on timing.
struct Token {
  std::string name;
  int64_t initial = 0;
  support::Span span;
};

enum class StreamKind : uint8_t { kLoader, kCompute, kHost, kTransfer };  // kTransfer: copies
struct Stream {
  std::string name;
  StreamKind kind = StreamKind::kCompute;
  std::string node;  // the compute node of the system it runs on
  support::Span span;
};

// A straight list of commands that one queue descriptor starts. A plan has less than 2^16 of them.
struct Sequence {
  std::string name;
  StreamId stream = 0;
  std::vector<Command> commands;
  support::Span span;
};

// How reported sums become figures. value = Σ numerator / Σ denominator over the period.
struct Metric {
  std::string name;       // "loss", "accuracy"
  std::string split;      // "train", "test"
  std::string numerator;  // names used by report commands of that split
  std::string denominator;
  support::Span span;
};

// A phase as the host announces it (progress, totals). Control holds the loop itself.
struct Phase {
  std::string name;
  int64_t epochs = 0;
  int64_t steps = 0;  // steps in all
  int64_t batch = 0;
  support::Span span;
};

struct Plan {
  std::string name;
  std::vector<Pool> pools;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<KernelCode> code;  // of kernels that run something else than their UOps
  std::vector<DataSource> sources;
  std::vector<Sampler> samplers;
  std::vector<Token> tokens;
  std::vector<Stream> streams;
  std::vector<InitOp> init;
  std::vector<Sequence> sequences;
  std::vector<Metric> metrics;
  std::vector<Phase> phases;
  std::vector<ControlUnit> control;  // control[0] is the training program, "evaluate" the other
  // Buffers that a checkpoint keeps, in order: parameters first, then optimiser state.
  std::vector<BufferId> parameters;
  std::vector<BufferId> optimiser_state;
};

}  // namespace l3c::l0
