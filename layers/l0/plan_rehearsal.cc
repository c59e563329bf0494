#include "layers/l0/plan_rehearsal.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/control_interpreter.h"
#include "layers/l0/stored_elements.h"

namespace l3c::l0 {
namespace {

using support::Diagnostics;
using support::Kind;

// clock[s]: how many commands of stream s are known to be over. The control unit's own entry is not
// needed, as it touches no buffer.
using Clock = std::vector<int64_t>;

void Join(Clock& clock, const Clock& other) {
  for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

struct Descriptor {
  int64_t value = 0;
  Clock clock;
};

struct StreamState {
  std::deque<Descriptor> queue;
  int64_t capacity = 0;
  std::optional<Descriptor> running;
  size_t position = 0;
  Clock clock;
  std::deque<Descriptor> completions;
  int64_t completion_capacity = 0;
};

struct AccessAt {
  StreamId stream = 0;
  int64_t time = 0;
  SequenceId sequence = 0;
  size_t position = 0;
};

struct BufferState {
  ElementRuns written;
  std::optional<AccessAt> write;
  std::vector<std::optional<AccessAt>> reads;  // the last of each stream
};

// Whether a command takes part in the order of commands, beside touching bytes.
bool Orders(const Command& command) {
  return command.kind == CommandKind::kWait || command.kind == CommandKind::kSignal ||
         command.kind == CommandKind::kComplete;
}

// Of each sequence, by position: where the next command is that orders others, or the end.
std::vector<std::vector<size_t>> NextOrdering(const Plan& plan) {
  std::vector<std::vector<size_t>> next;
  for (const Sequence& sequence : plan.sequences) {
    std::vector<size_t>& of = next.emplace_back(sequence.commands.size() + 1);
    of.back() = sequence.commands.size();
    for (size_t i = sequence.commands.size(); i-- > 0;) {
      of[i] = Orders(sequence.commands[i]) ? i : of[i + 1];
    }
  }
  return next;
}

// Buffers whose bytes overlap, each with itself: neighbours in the order of their offsets.
std::vector<std::vector<BufferId>> Overlaps(const Plan& plan) {
  std::vector<std::vector<BufferId>> overlaps(plan.buffers.size());
  std::vector<BufferId> order(plan.buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<BufferId>(i);
  std::sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
    const Buffer &x = plan.buffers[a], &y = plan.buffers[b];
    return std::tuple(x.pool, x.offset, a) < std::tuple(y.pool, y.offset, b);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const Buffer& first = plan.buffers[order[i]];
    overlaps[order[i]].push_back(order[i]);
    for (size_t j = i + 1; j < order.size(); ++j) {
      const Buffer& second = plan.buffers[order[j]];
      if (second.pool != first.pool || second.offset >= first.offset + first.size) break;
      overlaps[order[i]].push_back(order[j]);
      overlaps[order[j]].push_back(order[i]);
    }
  }
  return overlaps;
}

class Rehearsal : public ControlHost {
 public:
  Rehearsal(const Plan& plan, const ControlUnit& unit, int64_t stop_after, Diagnostics& diagnostics)
      : plan_(plan),
        unit_(unit),
        stop_after_(stop_after),
        diagnostics_(diagnostics),
        overlaps_(Overlaps(plan)),
        next_ordering_(NextOrdering(plan)),
        buffers_(plan.buffers.size()),
        streams_(plan.streams.size()),
        control_clock_(plan.streams.size(), 0),
        tokens_(plan.tokens.size()) {
    for (BufferState& buffer : buffers_) buffer.reads.resize(streams_.size());
    for (const InitOp& op : plan.init) buffers_[op.buffer].written = Whole(op.buffer);
    for (StreamState& stream : streams_) stream.clock.assign(streams_.size(), 0);
    for (size_t t = 0; t < tokens_.size(); ++t) {
      tokens_[t].assign(static_cast<size_t>(plan.tokens[t].initial), control_clock_);
    }
    for (size_t r = 0; r < unit.regions.size(); ++r) {
      const Region& region = unit.regions[r];
      words_.push_back(InitialWords(region));
      if (IsSignals(region)) signals_ = r;
      const bool completion = region.access == RegionAccess::kCompletion;
      if (!completion && region.access != RegionAccess::kQueue) {
        region_stream_.push_back(0);
        continue;
      }
      region_stream_.push_back(FindStream(region.stream));
      StreamState& stream = streams_[region_stream_.back()];
      (completion ? stream.completion_capacity : stream.capacity) = region.size;
    }
  }

  // True when nothing was reported.
  bool Run() {
    std::vector<RegionBytes> regions;
    for (std::vector<int64_t>& words : words_) {
      regions.push_back(std::as_writable_bytes(std::span(words)));
    }
    const ControlOutcome outcome = RunControl(unit_, regions, *this);
    const ControlInstruction& last = unit_.blocks[outcome.block].instructions[outcome.instruction];
    switch (outcome.end) {
      case ControlEnd::kTerminated:
        Advance();
        if (!failed_) CheckDrained();
        break;
      case ControlEnd::kStopped:
        if (!failed_) ReportStuck(last);
        break;
      case ControlEnd::kOutOfBounds:
        Error(Kind::kSafety, last.span, "an offset computed here lies outside its region");
        break;
      case ControlEnd::kIdle:
        Error(Kind::kLiveness, last.span,
              "more than " + std::to_string(kMaxIdleInstructions) +
                  " instructions run here without a push or a pop");
        break;
    }
    return !failed_;
  }

 private:
  bool Push(RegionId queue, int64_t value) override {
    ++pushed_;
    if (signals_ &&
        (pushed_ > stop_after_ || pushed_ > kMaxDescriptors || commands_ > kMaxCommands)) {
      words_[*signals_][0] = 1;
    }
    // A unit that does not listen is cut off.
    if (pushed_ > 2 * kMaxDescriptors || commands_ > 2 * kMaxCommands) {
      cut_off_ = true;
      return false;
    }
    StreamState& stream = streams_[region_stream_[queue]];
    if (Full(stream)) Advance();
    if (failed_ || Full(stream)) return false;
    stream.queue.push_back({value, control_clock_});
    Advance();
    return !failed_;
  }

  std::optional<int64_t> Pop(RegionId queue) override {
    StreamState& stream = streams_[region_stream_[queue]];
    if (stream.completions.empty()) Advance();
    if (failed_ || stream.completions.empty()) return std::nullopt;
    Descriptor done = std::move(stream.completions.front());
    stream.completions.pop_front();
    Join(control_clock_, done.clock);
    return done.value;
  }

  static bool Full(const StreamState& stream) {
    return static_cast<int64_t>(stream.queue.size()) >= stream.capacity;
  }

  StreamId FindStream(const std::string& name) const {
    for (size_t s = 0; s < plan_.streams.size(); ++s) {
      if (plan_.streams[s].name == name) return static_cast<StreamId>(s);
    }
    return 0;
  }

  void Error(Kind kind, support::Span span, const std::string& message) {
    failed_ = true;
    diagnostics_.Error(kind, span, "control unit '" + unit_.name + "': " + message);
  }

  // Runs every stream as far as it comes.
  void Advance() {
    for (bool moved = true; moved && !failed_;) {
      moved = false;
      for (size_t s = 0; s < streams_.size() && !failed_; ++s) {
        while (!failed_ && Step(static_cast<StreamId>(s))) moved = true;
      }
    }
  }

  static SequenceId SequenceOf(const Descriptor& descriptor) {
    return static_cast<SequenceId>(descriptor.value & ((int64_t{1} << kSequenceBits) - 1));
  }

  // One command of one stream; false when the stream cannot move.
  bool Step(StreamId id) {
    StreamState& stream = streams_[id];
    if (!stream.running) {
      if (stream.queue.empty()) return false;
      stream.running = std::move(stream.queue.front());
      stream.queue.pop_front();
      stream.position = 0;
      Join(stream.clock, stream.running->clock);
      // Between runs of a sequence an arena holds nothing.
      for (BufferId buffer : arena_written_[id]) buffers_[buffer].written.clear();
      arena_written_[id].clear();
    }
    const SequenceId sequence_id = SequenceOf(*stream.running);
    const Sequence& sequence = plan_.sequences[sequence_id];
    if (!Looks()) {
      // What only touches bytes is counted, and passed over.
      const size_t passed = next_ordering_[sequence_id][stream.position] - stream.position;
      stream.position += passed;
      stream.clock[id] += static_cast<int64_t>(passed);
      commands_ += static_cast<int64_t>(passed);
    }
    if (stream.position == sequence.commands.size()) {
      stream.running.reset();
      return true;
    }
    ++commands_;
    const Command& command = sequence.commands[stream.position];
    if (command.kind == CommandKind::kWait) {
      auto& token = tokens_[command.token];
      if (token.empty()) return false;
      Join(stream.clock, token.front());
      token.pop_front();
    }
    if (command.kind == CommandKind::kComplete &&
        static_cast<int64_t>(stream.completions.size()) >= stream.completion_capacity) {
      return false;
    }
    const AccessAt at = {id, ++stream.clock[id], sequence_id, stream.position};
    ++stream.position;
    switch (command.kind) {
      case CommandKind::kLaunch:
        TouchArguments(command, at);
        break;
      case CommandKind::kLoad:
        for (const auto& [field, buffer] : command.fields) Write(buffer, at);
        for (BufferId buffer : command.mask) Write(buffer, at);
        break;
      case CommandKind::kCopy:
        Read(command.args[0], at);
        Write(command.args[1], at);
        break;
      case CommandKind::kReport:
        for (const auto& [name, buffer] : command.values) Read(buffer, at);
        break;
      case CommandKind::kCheckpoint:
        for (BufferId buffer : plan_.parameters) Read(buffer, at);
        for (BufferId buffer : plan_.optimiser_state) Read(buffer, at);
        break;
      case CommandKind::kSignal:
        tokens_[command.token].push_back(stream.clock);
        break;
      case CommandKind::kComplete:
        stream.completions.push_back({stream.running->value, stream.clock});
        break;
      case CommandKind::kWait:
      case CommandKind::kPublish:
        break;
    }
    return true;
  }

  void TouchArguments(const Command& command, const AccessAt& at) {
    const Kernel& kernel = plan_.kernels[command.kernel];
    for (size_t i = 0; i < command.args.size(); ++i) {
      if (kernel.params[i].access != Access::kOut) Read(command.args[i], at);
    }
    for (size_t i = 0; i < command.args.size(); ++i) {
      if (kernel.params[i].access == Access::kInOut) Write(command.args[i], at);
      if (kernel.params[i].access != Access::kOut) continue;
      auto [stored, added] = stored_.try_emplace({command.kernel, static_cast<uint32_t>(i)});
      if (added) stored->second = StoredElements(kernel, static_cast<uint32_t>(i));
      Write(command.args[i], at, stored->second);
    }
  }

  ElementRuns Whole(BufferId id) const {
    const int64_t elements = tensor::NumElements(plan_.buffers[id].shape);
    return elements > 0 ? ElementRuns{{0, elements}} : ElementRuns{};
  }

  bool IsWritten(BufferId id) const {
    const int64_t elements = tensor::NumElements(plan_.buffers[id].shape);
    const ElementRuns& written = buffers_[id].written;
    if (elements <= 0) return written.empty();
    return written.size() == 1 && written.front() == ElementRuns::value_type{0, elements};
  }

  bool Before(const AccessAt& earlier, const AccessAt& now) const {
    return earlier.stream == now.stream ||
           earlier.time <= streams_[now.stream].clock[earlier.stream];
  }

  std::string Place(const AccessAt& at) const {
    return "command " + std::to_string(at.position) + " of sequence '" +
           plan_.sequences[at.sequence].name + "'";
  }

  void Race(BufferId buffer, const AccessAt& earlier, bool earlier_writes, const AccessAt& now,
            bool now_writes) {
    const support::Span here = plan_.sequences[now.sequence].commands[now.position].span;
    failed_ = true;
    diagnostics_
        .Error(Kind::kSafety, here,
               Place(now) + (now_writes ? " writes" : " reads") + " buffer '" +
                   plan_.buffers[buffer].name + "' while " + Place(earlier) + " may still " +
                   (earlier_writes ? "write" : "read") + " those bytes")
        .With({plan_.sequences[earlier.sequence].commands[earlier.position].span,
               "on stream '" + plan_.streams[earlier.stream].name + "', the other access"})
        .Fix("order the two streams with a token");
  }

  // Whether accesses are still looked at.
  bool Looks() const { return !failed_ && accesses_ <= kMaxAccesses; }

  // True when the access is to be looked at further.
  bool Count(BufferId buffer) {
    accesses_ += static_cast<int64_t>(overlaps_[buffer].size());
    return Looks();
  }

  void Read(BufferId id, const AccessAt& at) {
    if (!Count(id)) return;
    BufferState& buffer = buffers_[id];
    if (!IsWritten(id)) return NotWritten(id, at);
    for (BufferId other : overlaps_[id]) {
      const auto& write = buffers_[other].write;
      if (write && !Before(*write, at)) return Race(id, *write, true, at, false);
    }
    buffer.reads[at.stream] = at;
  }

  void NotWritten(BufferId id, const AccessAt& at) {
    failed_ = true;
    const BufferState& buffer = buffers_[id];
    const support::Span here = plan_.sequences[at.sequence].commands[at.position].span;
    const std::string reads = Place(at) + " reads buffer '" + plan_.buffers[id].name + "', ";
    if (buffer.written.empty()) {
      diagnostics_.Error(Kind::kSafety, here, reads + "which nothing has written before");
      return;
    }
    const Command& writer =
        plan_.sequences[buffer.write->sequence].commands[buffer.write->position];
    diagnostics_
        .Error(Kind::kSafety, here,
               reads + "of whose " + std::to_string(tensor::NumElements(plan_.buffers[id].shape)) +
                   " elements only " + std::to_string(CountElements(buffer.written)) +
                   " have been written, the last of them by kernel '" +
                   plan_.kernels[writer.kernel].name + "'")
        .With({writer.span, "the last launch that writes it"})
        .Fix("let the axes of the kernel's stores cover the whole buffer");
  }

  void Write(BufferId id, const AccessAt& at) { Write(id, at, Whole(id)); }

  void Write(BufferId id, const AccessAt& at, const ElementRuns& stored) {
    if (!Count(id)) return;
    for (BufferId other : overlaps_[id]) {
      BufferState& state = buffers_[other];
      if (state.write && !Before(*state.write, at)) return Race(id, *state.write, true, at, true);
      for (const auto& read : state.reads) {
        if (read && !Before(*read, at)) return Race(id, *read, false, at, true);
      }
      // The bytes of a neighbour are gone.
      if (other != id) state.written.clear();
    }
    BufferState& buffer = buffers_[id];
    buffer.write = at;
    if (buffer.written.empty()) {
      buffer.written = stored;
    } else if (!IsWritten(id)) {
      accesses_ += static_cast<int64_t>(buffer.written.size() + stored.size());
      buffer.written = UnionOf(buffer.written, stored);
    }
    if (plan_.pools[plan_.buffers[id].pool].kind == PoolKind::kArena) {
      arena_written_[at.stream].push_back(id);
    }
  }

  // The unit has terminated: nothing may be left under way, and the tokens lie as they began.
  void CheckDrained() {
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].running) return ReportBlocked(static_cast<StreamId>(s));
    }
    for (size_t t = 0; t < tokens_.size(); ++t) {
      const auto count = static_cast<int64_t>(tokens_[t].size());
      const Token& token = plan_.tokens[t];
      if (count == token.initial) continue;
      Error(Kind::kLiveness, token.span,
            "token '" + token.name + "' begins with " + std::to_string(token.initial) +
                " and ends with " + std::to_string(count) +
                ": its waits and signals do not balance");
      return;
    }
  }

  void ReportBlocked(StreamId id) {
    const StreamState& stream = streams_[id];
    const Sequence& sequence = plan_.sequences[SequenceOf(*stream.running)];
    const Command& command = sequence.commands[stream.position];
    const std::string where = "command " + std::to_string(stream.position) + " of sequence '" +
                              sequence.name + "' waits for ever: ";
    if (command.kind == CommandKind::kWait) {
      Error(Kind::kLiveness, command.span,
            where + "token '" + plan_.tokens[command.token].name + "' is not signalled");
    } else {
      Error(Kind::kLiveness, command.span, where + "nothing pops the completion");
    }
  }

  // Control waits and no stream can move.
  void ReportStuck(const ControlInstruction& instruction) {
    if (cut_off_) {
      Error(Kind::kLiveness, instruction.span, "it goes on long after a stop signal");
      return;
    }
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].running) return ReportBlocked(static_cast<StreamId>(s));
    }
    Error(Kind::kLiveness, instruction.span, "this pop waits for ever: nothing completes");
  }

  const Plan& plan_;
  const ControlUnit& unit_;
  const int64_t stop_after_;
  Diagnostics& diagnostics_;
  const std::vector<std::vector<BufferId>> overlaps_;
  const std::vector<std::vector<size_t>> next_ordering_;
  std::vector<BufferState> buffers_;
  std::vector<StreamState> streams_;
  std::map<StreamId, std::vector<BufferId>> arena_written_;
  std::map<std::pair<KernelId, uint32_t>, ElementRuns> stored_;  // of an out parameter, by a launch
  Clock control_clock_;
  std::vector<std::deque<Clock>> tokens_;
  std::vector<std::vector<int64_t>> words_;
  std::vector<StreamId> region_stream_;
  std::optional<size_t> signals_;
  int64_t pushed_ = 0;
  int64_t commands_ = 0;
  int64_t accesses_ = 0;
  bool failed_ = false;
  bool cut_off_ = false;
};

// Enough for every slot of a pipeline to have been used, and an odd number, so that the stop comes
// in the middle of a step.
constexpr int64_t kEarlyStop = 13;

}  // namespace

void Rehearse(const Plan& plan, const ControlUnit& unit, Diagnostics& diagnostics) {
  if (!Rehearsal(plan, unit, kMaxDescriptors, diagnostics).Run()) return;
  Rehearsal(plan, unit, kEarlyStop, diagnostics).Run();
}

}  // namespace l3c::l0
