#include "layers/l0/lower/assemble.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "layers/l0/control_build.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/lower/arena.h"
#include "layers/l0/lower/stream_order.h"
#include "layers/l0/lower/streams.h"
#include "layers/l0/lower/window.h"
#include "layers/l1/init.h"

namespace l3c::l0::lower {

using support::Kind;

namespace {

// Beyond this a phase is taken for a mistake. `steps: n` is bounded by the same in the text of L1.
constexpr int64_t kMaxPhaseSteps = int64_t{1} << 40;
// The staging buffers and tokens of `pipeline_depth` batches in flight.
struct Staging {
  std::vector<std::string> fields;
  std::vector<std::vector<BufferId>> buffers;  // [slot][field]; the mask, if any, is the last
  bool mask = false;
  std::vector<TokenId> free;
  std::vector<TokenId> full;
};

struct PipelineSequences {
  std::vector<SequenceId> load;
  std::vector<SequenceId> fetch;  // empty: all state is where it is used
  std::vector<SequenceId> run;
  std::vector<std::vector<SequenceId>> beside;  // by slot: of other compute streams
};

class Assembler {
 public:
  Assembler(const l1::Program& program, bool one_of_each, support::Diagnostics& diagnostics)
      : program_(program), one_of_each_(one_of_each), diagnostics_(diagnostics) {}

  bool Assemble(const std::map<std::string, LoweredStep>& steps, Plan& plan) {
    plan_ = &plan;
    plan.name = program_.system.name;
    streams_ = InferStreams(program_, Memories(steps), one_of_each_);
    plan.streams = streams_.streams;
    State();
    Sources();
    // In the order of the phases, so that the text reads as the run goes.
    for (const l1::Phase& phase : program_.schedule.phases) {
      for (const std::string& name : {phase.pipeline, phase.eval}) {
        if (name.empty() || sequences_.contains(name)) continue;
        Sequences(steps.at(name));
      }
    }
    for (const l1::Metric& metric : program_.schedule.metrics) {
      // Phases that differ in what they update report the same sums from graphs of their own.
      const auto same = [&](const Metric& m) {
        return m.name == metric.name && m.split == metric.split &&
               m.numerator == metric.numerator && m.denominator == metric.denominator;
      };
      if (std::any_of(plan.metrics.begin(), plan.metrics.end(), same)) continue;
      plan.metrics.push_back(
          {metric.name, metric.split, metric.numerator, metric.denominator, metric.span});
    }
    return Control(steps);
  }

 private:
  std::string Unique(std::string name) {
    std::string id;
    for (char c : name) {
      const bool word =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      id += word ? c : '_';
    }
    std::string unique = id;
    for (int n = 2; !names_.insert(unique).second; ++n) unique = id + "_" + std::to_string(n);
    return unique;
  }

  uint32_t ComputeNode() const {
    for (const l1::TensorGraph& graph : program_.graphs) return graph.node;
    return 0;
  }

  // The memory that a launch works in: that of the first value that it writes.
  uint32_t MemoryOf(const LoweredStep& lowered, const Launch& launch) const {
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      const Binding& binding = launch.bindings[p];
      if (launch.kernel.params[p].access == Access::kIn) continue;
      if (binding.state < 0) return lowered.table.values[binding.storage.value].memory;
      const StateRef& ref = all_state_[static_cast<size_t>(binding.state)];
      return l1::MemoryOf(program_.system, program_.actors[ref.actor].node);
    }
    return l1::MemoryOf(program_.system, ComputeNode());
  }

  // Those that launches work in; the first alone where state is brought in, launch by launch in one
  // order.
  std::set<uint32_t> Memories(const std::map<std::string, LoweredStep>& steps) const {
    std::set<uint32_t> memories;
    for (const auto& far : Far()) {
      if (far) return {};
    }
    for (const auto& [name, lowered] : steps) {
      for (const Launch& launch : lowered.plan.launches) {
        memories.insert(MemoryOf(lowered, launch));
      }
    }
    return memories;
  }

  PoolId AddPool(const std::string& name, PoolKind kind, uint32_t memory) {
    const l1::SystemNode& node = program_.system.nodes[memory];
    Pool pool;
    pool.name = Unique(name);
    pool.kind = kind;
    pool.node = node.name;
    pool.capacity = l1::BufferCapacity(node);
    plan_->pools.push_back(std::move(pool));
    return static_cast<PoolId>(plan_->pools.size() - 1);
  }

  // The pool of a memory, of those that are one for each.
  PoolId PoolIn(const std::string& name, PoolKind kind, uint32_t memory) {
    const auto [it, fresh] = pools_.try_emplace({kind, memory}, 0);
    if (fresh) it->second = AddPool(name, kind, memory);
    return it->second;
  }

  static int64_t Aligned(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Appends at the end of a pool whose buffers all live for the whole run.
  BufferId AddResident(PoolId pool, const std::string& name, tensor::DType dtype,
                       const tensor::Shape& shape, support::Span span) {
    Buffer buffer;
    buffer.name = Unique(name);
    buffer.dtype = dtype;
    buffer.shape = shape;
    buffer.pool = pool;
    buffer.size = tensor::NumElements(shape) * static_cast<int64_t>(tensor::SizeOf(dtype));
    buffer.offset = Aligned(plan_->pools[pool].size);
    buffer.first_use = 0;
    buffer.last_use = kWholeRun;
    buffer.span = span;
    plan_->pools[pool].size = buffer.offset + buffer.size;
    plan_->buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(plan_->buffers.size() - 1);
  }

  void State() {
    for (const StateRef& ref : AllState(program_)) {
      const l1::Actor& actor = program_.actors[ref.actor];
      const PoolId pool =
          PoolIn("state", PoolKind::kPersistent, l1::HomeOf(program_.system, actor));
      const l1::StateField& field = actor.state[ref.field];
      const BufferId id = AddResident(pool, field.name, field.dtype, field.shape, field.span);
      state_.push_back(id);
      (field.parameter ? plan_->parameters : plan_->optimiser_state).push_back(id);
      const l1::InitDistribution distribution = l1::DistributionOf(field);
      InitOp init;
      init.buffer = id;
      init.a = distribution.a;
      init.b = distribution.b;
      init.span = field.span;
      switch (distribution.kind) {
        case l1::InitKind::kNormal:
        case l1::InitKind::kKaiming:
          init.kind = InitKind::kNormal;
          break;
        case l1::InitKind::kUniform:
          init.kind = InitKind::kUniform;
          break;
        default:
          init.kind = init.a == 0 ? InitKind::kZeros : InitKind::kConstant;
          break;
      }
      if (init.kind == InitKind::kNormal || init.kind == InitKind::kUniform) {
        init.seed = program_.schedule.seed;
        init.key = l1::StateKey(l1::NameForState(actor), field.name);
      }
      plan_->init.push_back(init);
    }
  }

  void Sources() {
    for (const l1::BoundData& data : program_.data) {
      DataSource source;
      source.name = data.name;
      source.path = data.fields.empty() ? "" : data.fields.front().path;
      source.span = data.span;
      for (const l1::BoundField& field : data.fields) {
        source.fields.push_back(
            {field.name, field.dtype, field.shape, field.classes, field.ignored});
      }
      plan_->sources.push_back(std::move(source));
    }
  }

  SamplerId AddSampler(const Step& step) {
    Sampler sampler;
    sampler.name = Unique(step.name + "_batches");
    for (uint32_t s = 0; s < plan_->sources.size(); ++s) {
      if (plan_->sources[s].name == step.sampling.data) sampler.source = s;
    }
    sampler.split = step.sampling.split;
    sampler.kind = step.sampling.kind == l1::SampleKind::kEpochShuffle ? SampleKind::kEpochShuffle
                   : step.sampling.kind == l1::SampleKind::kReplay     ? SampleKind::kReplay
                                                                       : SampleKind::kSequential;
    sampler.window = step.sampling.window;
    sampler.stride = step.sampling.stride;
    sampler.shards = step.sampling.shards;
    sampler.buffer = step.sampling.buffer;
    sampler.recent = step.sampling.recent;
    sampler.batch = step.sampling.batch;
    sampler.samples = step.sampling.rows;
    sampler.drop_last = step.sampling.drop_last;
    sampler.seed = program_.schedule.seed;
    sampler.span = step.sampling.span;
    plan_->samplers.push_back(std::move(sampler));
    return static_cast<SamplerId>(plan_->samplers.size() - 1);
  }

  // Pipelines that read batches of the same form take turns with the same buffers.
  Staging& StagingOf(const Step& step) {
    std::string key;
    std::vector<const StepInput*> inputs;
    const StepInput* mask = nullptr;
    for (const StepInput& input : step.inputs) {
      if (input.kind == StepInput::Kind::kField) inputs.push_back(&input);
      if (input.kind == StepInput::Kind::kMask) mask = &input;
    }
    if (mask) inputs.push_back(mask);
    for (const StepInput* input : inputs) {
      const tensor::Node& node = step.graph.node(input->node);
      key += input->field + ":" + std::string(tensor::DTypeName(node.dtype)) +
             tensor::ShapeToString(node.shape) + "@" + std::to_string(step.memory[input->node]) +
             ";";
    }
    auto [it, inserted] = staging_.try_emplace(key);
    Staging& staging = it->second;
    if (!inserted) return staging;
    staging.mask = mask != nullptr;
    for (const StepInput* input : inputs) staging.fields.push_back(input->field);
    for (int64_t k = 0; k < Depth(); ++k) {
      const std::string slot = "_" + std::to_string(k);
      std::vector<BufferId> buffers;
      for (const StepInput* input : inputs) {
        const tensor::Node& node = step.graph.node(input->node);
        const PoolId pool = PoolIn("staging", PoolKind::kStaging, step.memory[input->node]);
        buffers.push_back(
            AddResident(pool, input->field + slot, node.dtype, node.shape, node.span));
      }
      staging.buffers.push_back(std::move(buffers));
      plan_->tokens.push_back({Unique("free" + slot), 1, {}});
      staging.free.push_back(static_cast<TokenId>(plan_->tokens.size() - 1));
      plan_->tokens.push_back({Unique("full" + slot), 0, {}});
      staging.full.push_back(static_cast<TokenId>(plan_->tokens.size() - 1));
    }
    return staging;
  }

  int64_t Depth() const { return std::max<int64_t>(1, program_.schedule.pipeline_depth); }

  // The same kernel under other names is stored once.
  KernelId AddKernel(const Kernel& kernel, const std::string& pipeline) {
    Kernel plain = kernel;
    plain.name = "k";
    plain.origin.clear();
    for (size_t p = 0; p < plain.params.size(); ++p) plain.params[p].name = "p" + std::to_string(p);
    for (size_t a = 0; a < plain.axes.size(); ++a) plain.axes[a].name = "a" + std::to_string(a);
    auto [it, inserted] = kernels_.try_emplace(PrintKernel(plain), 0);
    if (inserted) {
      Kernel named = kernel;
      named.name = Unique(pipeline + "_" + kernel.name);
      plan_->kernels.push_back(std::move(named));
      it->second = static_cast<KernelId>(plan_->kernels.size() - 1);
    }
    return it->second;
  }

  // The user's are told apart by their code.
  KernelId AddOwn(const OwnKernel& own, const std::string& pipeline) {
    const auto id = static_cast<KernelId>(plan_->kernels.size());
    plan_->kernels.push_back(own.kernel);
    plan_->kernels.back().name = Unique(pipeline + "_" + own.name);
    if (own.code) {
      plan_->code.push_back(*own.code);
      plan_->code.back().kernel = id;
    }
    return id;
  }

  SequenceId AddSequence(std::string name, StreamId stream, std::vector<Command> commands) {
    plan_->sequences.push_back({Unique(std::move(name)), stream, std::move(commands), {}});
    return static_cast<SequenceId>(plan_->sequences.size() - 1);
  }

  static Command TokenCommand(CommandKind kind, TokenId token) {
    Command command;
    command.kind = kind;
    command.token = token;
    return command;
  }

  void Sequences(const LoweredStep& lowered) {
    const Step& step = lowered.step;
    Staging& staging = StagingOf(step);
    const SamplerId sampler = AddSampler(step);
    std::vector<KernelId> kernels;
    for (const Launch& launch : lowered.plan.launches) {
      kernels.push_back(launch.own < 0
                            ? AddKernel(launch.kernel, step.name)
                            : AddOwn(step.own[static_cast<size_t>(launch.own)], step.name));
    }
    std::map<Storage, BufferId> arena;
    // Positions are those of the commands; all slots run the same list.
    PipelineSequences& sequences = sequences_[step.name];
    for (int64_t k = 0; k < Depth(); ++k) {
      const std::string slot = "_" + std::to_string(k);
      Command load;
      load.kind = CommandKind::kLoad;
      load.sampler = sampler;
      for (size_t f = 0; f < staging.fields.size(); ++f) {
        if (staging.mask && f + 1 == staging.fields.size()) {
          load.mask = {staging.buffers[k][f]};
        } else {
          load.fields.emplace_back(staging.fields[f], staging.buffers[k][f]);
        }
      }
      std::vector<Command> loads = {TokenCommand(CommandKind::kWait, staging.free[k])};
      if (!staging.fields.empty()) loads.push_back(std::move(load));
      loads.push_back(TokenCommand(CommandKind::kSignal, staging.full[k]));
      sequences.load.push_back(
          AddSequence("load_" + step.name + slot, streams_.LoaderOf(k), std::move(loads)));
    }
    const StateWindow window = MakeWindow(lowered.plan, step, lowered.table, Far());
    const std::vector<BufferId> brought = PlaceWindow(step, window);
    if (!window.slots.empty()) {
      sequences.fetch.assign(static_cast<size_t>(Depth()), Fetch(step, window, brought));
    }
    Timeline timeline = Lay(lowered, window);
    std::vector<StreamId> streams;  // by event
    for (const Event& event : timeline) {
      streams.push_back(
          event.kind == Event::Kind::kLaunch
              ? streams_.ComputeIn(MemoryOf(lowered, lowered.plan.launches[event.index]))
              : streams_.compute);
    }
    const std::set<StreamId> used(streams.begin(), streams.end());
    PlaceArena(lowered, timeline, used.size() > 1, arena);
    for (int64_t k = 0; k < Depth(); ++k) {
      const std::string name = step.name + "_" + std::to_string(k);
      std::vector<Command> commands = Commands(lowered, timeline, staging, kernels, arena, window,
                                               brought, static_cast<size_t>(k));
      if (used.size() == 1) {
        sequences.run.push_back(AddSequence(name, streams_.compute, std::move(commands)));
        continue;
      }
      std::map<StreamId, std::vector<Command>> dealt =
          Deal(streams, std::move(commands), staging.buffers[static_cast<size_t>(k)]);
      sequences.run.push_back(
          AddSequence(name, streams_.compute, std::move(dealt.at(streams_.compute))));
      dealt.erase(streams_.compute);
      std::vector<SequenceId>& beside = sequences.beside.emplace_back();
      for (auto& [stream, own] : dealt) {
        beside.push_back(
            AddSequence(name + "_" + plan_->streams[stream].node, stream, std::move(own)));
      }
    }
  }

  // A step's commands, each for its stream, and what the streams hand over to one another. `batch`:
  // the buffers of the slot, which are filled before the first command and given up by a signal.
  std::map<StreamId, std::vector<Command>> Deal(const std::vector<StreamId>& streams,
                                                std::vector<Command> commands,
                                                const std::vector<BufferId>& batch) {
    std::vector<StreamedCommand> touched;
    for (size_t i = 0; i < commands.size(); ++i) {
      const Command& command = commands[i];
      StreamedCommand& touches = touched.emplace_back();
      touches.stream = streams[i];
      if (command.kind == CommandKind::kWait || command.kind == CommandKind::kSignal) {
        touches.writes = batch;
      } else if (command.kind == CommandKind::kCopy) {
        touches.reads = {command.args[0]};
        touches.writes = {command.args[1]};
      }
      for (const auto& [name, buffer] : command.values) touches.reads.push_back(buffer);
      if (command.kind != CommandKind::kLaunch) continue;
      const Kernel& kernel = plan_->kernels[command.kernel];
      for (size_t p = 0; p < command.args.size(); ++p) {
        (kernel.params[p].access == Access::kIn ? touches.reads : touches.writes)
            .push_back(command.args[p]);
      }
    }
    std::vector<std::vector<TokenId>> waits(commands.size()), signals(commands.size());
    for (const Handover& handover : OrderStreams(*plan_, touched)) {
      const TokenId token = Between(streams[handover.after], streams[handover.before]);
      signals[handover.after].push_back(token);
      waits[handover.before].push_back(token);
    }
    std::map<StreamId, std::vector<Command>> dealt;
    for (size_t i = 0; i < commands.size(); ++i) {
      std::vector<Command>& own = dealt[streams[i]];
      for (TokenId token : waits[i]) own.push_back(TokenCommand(CommandKind::kWait, token));
      own.push_back(std::move(commands[i]));
      for (TokenId token : signals[i]) own.push_back(TokenCommand(CommandKind::kSignal, token));
    }
    return dealt;
  }

  TokenId Between(StreamId from, StreamId to) {
    const auto [token, fresh] = between_.try_emplace({from, to}, 0);
    if (fresh) {
      token->second = AddToken(plan_->streams[from].node + "_to_" + plan_->streams[to].node);
    }
    return token->second;
  }

  // One step's commands, without a slot's buffers yet.
  struct Event {
    enum class Kind : uint8_t {
      kWait,
      kLaunch,
      kFree,
      kCopy,
      kReport,
      kFetched,  // the state of the next launch is there
      kUsed,     // and is used no more
      kStored,   // what was written is back
    } kind;
    size_t index = 0;  // of the launch or copy
  };
  using Timeline = std::vector<Event>;

  static bool ReadsBatch(const LoweredStep& lowered, const Binding& binding) {
    return binding.state < 0 && binding.storage.kernel < 0 && binding.storage.value >= 0 &&
           lowered.table.values[binding.storage.value].input >= 0;
  }

  Timeline Lay(const LoweredStep& lowered, const StateWindow& window) const {
    const StepPlan& plan = lowered.plan;
    size_t last_reader = 0;  // launches that must be over before the batch may be replaced
    for (size_t i = 0; i < plan.launches.size(); ++i) {
      for (const Binding& b : plan.launches[i].bindings) {
        if (ReadsBatch(lowered, b)) last_reader = i + 1;
      }
    }
    bool copies_batch = false;
    for (const ChosenCopy& copy : plan.copies) copies_batch |= copy.from.kernel < 0;
    bool reports_batch = false;
    for (size_t o = 0; o < lowered.step.outputs.size(); ++o) {
      reports_batch |=
          lowered.step.outputs[o].kind == StepOutput::Kind::kReport && plan.reports[o].kernel < 0;
    }
    const bool late = copies_batch || reports_batch;
    Timeline timeline = {{Event::Kind::kWait, 0}};
    std::vector<size_t> last(static_cast<size_t>(window.turns));  // launch of each turn
    for (size_t i = 0; i < plan.launches.size(); ++i) {
      if (window.turn_of[i] >= 0) last[static_cast<size_t>(window.turn_of[i])] = i;
    }
    int64_t turn = -1;
    for (size_t i = 0; i <= plan.launches.size(); ++i) {
      if (i == last_reader && !late) timeline.push_back({Event::Kind::kFree, 0});
      if (i == plan.launches.size()) break;
      const int64_t its = window.turn_of[i];
      if (its > turn) timeline.push_back({Event::Kind::kFetched, 0});
      turn = std::max(turn, its);
      timeline.push_back({Event::Kind::kLaunch, i});
      // The last turn's end is told after the copies, which write to state that the next step
      // brings in.
      const bool ends = its >= 0 && last[static_cast<size_t>(its)] == i;
      if (ends && its + 1 < window.turns) timeline.push_back({Event::Kind::kUsed, 0});
    }
    for (size_t i = 0; i < plan.copies.size(); ++i) timeline.push_back({Event::Kind::kCopy, i});
    if (window.turns > 0) timeline.push_back({Event::Kind::kUsed, 0});
    if (window.written()) timeline.push_back({Event::Kind::kStored, 0});
    timeline.push_back({Event::Kind::kReport, 0});
    if (late) timeline.push_back({Event::Kind::kFree, 0});
    return timeline;
  }

  // `shared`: by several streams, whose positions do not compare.
  void PlaceArena(const LoweredStep& lowered, const Timeline& timeline, bool shared,
                  std::map<Storage, BufferId>& arena) {
    // Where in the timeline what PackArena() counts by launch, copy and report stands.
    std::vector<int64_t> positions;
    for (const Event::Kind kind :
         {Event::Kind::kLaunch, Event::Kind::kCopy, Event::Kind::kReport}) {
      for (size_t at = 0; at < timeline.size(); ++at) {
        if (timeline[at].kind == kind) positions.push_back(static_cast<int64_t>(at));
      }
    }
    const Arena packed = PackArena(lowered.plan, lowered.table, shared);
    std::map<uint32_t, PoolId> pools;
    for (const auto& [memory, packing] : packed.packings) {
      pools[memory] = AddPool((shared ? "exchange_" : "arena_") + lowered.step.name,
                              shared ? PoolKind::kExchange : PoolKind::kArena, memory);
      plan_->pools[pools[memory]].size = packing.size;
    }
    for (const auto& [storage, slot] : packed.slots) {
      const Value& value = lowered.table.values[storage.value];
      const PoolId pool = pools.at(value.memory);
      Buffer buffer;
      buffer.name = Unique(lowered.step.name + "_" + value.name);
      buffer.dtype = value.dtype;
      buffer.shape = value.shape;
      buffer.pool = pool;
      buffer.offset = slot.offset;
      buffer.size = slot.size;
      buffer.first_use = shared ? 0 : positions[static_cast<size_t>(slot.first_use)];
      buffer.last_use = shared ? kWholeRun : positions[static_cast<size_t>(slot.last_use)];
      buffer.span = value.span;
      plan_->buffers.push_back(std::move(buffer));
      arena[storage] = static_cast<BufferId>(plan_->buffers.size() - 1);
    }
  }

  // The state that is not where the kernels of its actor work.
  FarStates Far() const {
    FarStates far;
    for (const StateRef& ref : AllState(program_)) {
      const l1::Actor& actor = program_.actors[ref.actor];
      const l1::StateField& field = actor.state[ref.field];
      const uint32_t near = l1::MemoryOf(program_.system, actor.node);
      far.emplace_back();
      if (!l1::IsBroughtIn(program_.system, actor)) continue;
      far.back() = {l1::ByteSize(field.dtype, field.shape), near};
    }
    return far;
  }

  // A buffer for each slot.
  std::vector<BufferId> PlaceWindow(const Step& step, const StateWindow& window) {
    std::map<uint32_t, PoolId> pools;
    for (const auto& [memory, bytes] : window.bytes) {
      pools[memory] = AddPool("window_" + step.name, PoolKind::kWindow, memory);
      plan_->pools[pools[memory]].size = bytes;
    }
    const FarStates far = Far();
    std::vector<BufferId> brought;
    for (const WindowSlot& slot : window.slots) {
      Buffer buffer = plan_->buffers[state_[slot.state]];
      buffer.name = Unique(step.name + "_near_" + buffer.name);
      buffer.pool = pools.at(far[slot.state]->memory);
      buffer.offset = slot.offset;
      plan_->buffers.push_back(std::move(buffer));
      brought.push_back(static_cast<BufferId>(plan_->buffers.size() - 1));
    }
    return brought;
  }

  TokenId AddToken(const std::string& name) {
    plan_->tokens.push_back({Unique(name), 0, {}});
    return static_cast<TokenId>(plan_->tokens.size() - 1);
  }

  // The transfers of a step: during turn t what the launch before wrote goes back, and what the
  // launch after needs comes in. They are in order, so what goes back is there when it is needed.
  SequenceId Fetch(const Step& step, const StateWindow& window,
                   const std::vector<BufferId>& brought) {
    if (!fetched_) {
      fetched_ = AddToken("fetched");
      used_ = AddToken("used");
      plan_->streams.push_back(
          {"transfer", StreamKind::kTransfer, program_.system.nodes[ComputeNode()].name, {}});
      transfers_ = static_cast<StreamId>(plan_->streams.size() - 1);
    }
    if (window.written() && !stored_) stored_ = AddToken("stored");
    std::vector<Command> commands;
    const auto copy = [&](BufferId from, BufferId to) {
      Command command;
      command.kind = CommandKind::kCopy;
      command.args = {from, to};
      commands.push_back(std::move(command));
    };
    const int64_t turns = window.turns;
    for (int64_t turn = -1; turn <= turns; ++turn) {
      if (turn > 0) {
        commands.push_back(TokenCommand(CommandKind::kWait, *used_));
        for (size_t i = 0; i < window.slots.size(); ++i) {
          const WindowSlot& slot = window.slots[i];
          if (slot.written && slot.last == turn - 1) copy(brought[i], state_[slot.state]);
        }
      }
      if (turn + 1 >= turns) continue;
      for (size_t i = 0; i < window.slots.size(); ++i) {
        const WindowSlot& slot = window.slots[i];
        if (slot.filled && slot.first == turn + 1) copy(state_[slot.state], brought[i]);
      }
      commands.push_back(TokenCommand(CommandKind::kSignal, *fetched_));
    }
    if (window.written()) commands.push_back(TokenCommand(CommandKind::kSignal, *stored_));
    return AddSequence("fetch_" + step.name, transfers_, std::move(commands));
  }

  BufferId BufferOf(const LoweredStep& lowered, const Storage& storage, const Staging& staging,
                    const std::map<Storage, BufferId>& arena, size_t k) const {
    if (storage.kernel >= 0) return arena.at(storage);
    const StepInput& input = lowered.step.inputs[lowered.table.values[storage.value].input];
    if (input.kind == StepInput::Kind::kState) return state_[input.state];
    for (size_t f = 0; f < staging.fields.size(); ++f) {
      if (staging.fields[f] == input.field) return staging.buffers[k][f];
    }
    return 0;  // not reached: every field of the step has a staging buffer
  }

  std::vector<Command> Commands(const LoweredStep& lowered, const Timeline& timeline,
                                const Staging& staging, const std::vector<KernelId>& kernels,
                                const std::map<Storage, BufferId>& arena, const StateWindow& window,
                                const std::vector<BufferId>& brought, size_t k) const {
    std::vector<Command> commands;
    for (const Event& event : timeline) {
      Command command;
      switch (event.kind) {
        case Event::Kind::kWait:
          command = TokenCommand(CommandKind::kWait, staging.full[k]);
          break;
        case Event::Kind::kFree:
          command = TokenCommand(CommandKind::kSignal, staging.free[k]);
          break;
        case Event::Kind::kLaunch:
          command.kind = CommandKind::kLaunch;
          command.kernel = kernels[event.index];
          for (const Binding& b : lowered.plan.launches[event.index].bindings) {
            const auto slot =
                window.SlotOf(StateOf(b, lowered.step, lowered.table), window.turn_of[event.index]);
            command.args.push_back(slot ? brought[*slot]
                                   : b.state >= 0
                                       ? state_[b.state]
                                       : BufferOf(lowered, b.storage, staging, arena, k));
          }
          break;
        case Event::Kind::kFetched:
          command = TokenCommand(CommandKind::kWait, *fetched_);
          break;
        case Event::Kind::kUsed:
          command = TokenCommand(CommandKind::kSignal, *used_);
          break;
        case Event::Kind::kStored:
          command = TokenCommand(CommandKind::kWait, *stored_);
          break;
        case Event::Kind::kCopy: {
          const ChosenCopy& copy = lowered.plan.copies[event.index];
          command.kind = CommandKind::kCopy;
          command.args = {BufferOf(lowered, copy.from, staging, arena, k), state_[copy.state]};
          break;
        }
        case Event::Kind::kReport:
          command.kind = CommandKind::kReport;
          command.split = lowered.step.sampling.split;
          for (size_t o = 0; o < lowered.step.outputs.size(); ++o) {
            const StepOutput& output = lowered.step.outputs[o];
            if (output.kind != StepOutput::Kind::kReport) continue;
            command.values.emplace_back(
                output.name, BufferOf(lowered, lowered.plan.reports[o], staging, arena, k));
          }
          // Without values too: a run counts its steps by reports.
          break;
      }
      commands.push_back(std::move(command));
    }
    return commands;
  }

  SequenceId Publish(const std::string& split) {
    auto [it, inserted] = publish_.try_emplace(split, 0);
    if (inserted) {
      Command command;
      command.kind = CommandKind::kPublish;
      command.split = split;
      it->second = AddSequence("publish_" + split, streams_.compute, {command});
    }
    return it->second;
  }

  static int64_t Batches(const l1::Sampling& sampling) {
    const int64_t batch = std::max<int64_t>(1, sampling.batch);
    return sampling.drop_last ? sampling.rows / batch : (sampling.rows + batch - 1) / batch;
  }

  bool Control(const std::map<std::string, LoweredStep>& steps) {
    TrainingControl training;
    EvaluationControl evaluation;
    for (const l1::Phase& phase : program_.schedule.phases) {
      const Step& train = steps.at(phase.pipeline).step;
      PhaseControl control;
      control.steps_per_epoch = Batches(train.sampling);
      if (control.steps_per_epoch == 0 && phase.epochs > 0) {
        diagnostics_
            .Error(Kind::kResourceBound, phase.span,
                   "phase '" + phase.name + "' runs for epochs, but the rows of split '" +
                       train.sampling.split + "' are not stated")
            .Fix("add `rows: n` to the stage's sample, or give the phase `steps: n`");
        return false;
      }
      control.steps = phase.steps;
      if (phase.epochs > 0) {
        // Both factors may be a billion times what anybody trains for.
        if (__builtin_mul_overflow(phase.epochs, control.steps_per_epoch, &control.steps) ||
            control.steps > kMaxPhaseSteps) {
          diagnostics_
              .Error(Kind::kResourceBound, phase.span,
                     "phase '" + phase.name + "' makes " + std::to_string(phase.epochs) +
                         " epochs of " + std::to_string(control.steps_per_epoch) +
                         " steps; a phase makes at most " + std::to_string(kMaxPhaseSteps) +
                         " steps in all")
              .Fix("train for fewer epochs");
          return false;
        }
      }
      control.steps_per_epoch = std::max<int64_t>(
          1, control.steps_per_epoch > 0 ? control.steps_per_epoch : control.steps);
      control.checkpoint_every = phase.checkpoint_every;
      control.load = sequences_.at(phase.pipeline).load;
      control.fetch = sequences_.at(phase.pipeline).fetch;
      control.train = sequences_.at(phase.pipeline).run;
      control.beside = sequences_.at(phase.pipeline).beside;
      control.publish_train = Publish(train.sampling.split);
      if (!phase.eval.empty()) {
        const Step& eval = steps.at(phase.eval).step;
        control.eval_batches = Batches(eval.sampling);
        if (control.eval_batches == 0) {
          diagnostics_
              .Error(Kind::kResourceBound, phase.span,
                     "pipeline '" + phase.eval + "' evaluates split '" + eval.sampling.split +
                         "', whose rows are not stated")
              .Fix("add `rows: n` to the stage's sample");
          return false;
        }
        control.eval_every = phase.eval_every;
        control.load_eval = sequences_.at(phase.eval).load;
        control.fetch_eval = sequences_.at(phase.eval).fetch;
        control.eval = sequences_.at(phase.eval).run;
        control.beside_eval = sequences_.at(phase.eval).beside;
        control.publish_test = Publish(eval.sampling.split);
        evaluation = {control.eval_batches, control.load_eval,  control.eval,
                      control.publish_test, control.fetch_eval, control.beside_eval};
      }
      plan_->phases.push_back(
          {phase.name, phase.epochs, control.steps, train.sampling.batch, phase.span});
      training.phases.push_back(std::move(control));
    }
    Command checkpoint;
    checkpoint.kind = CommandKind::kCheckpoint;
    Command complete;
    complete.kind = CommandKind::kComplete;
    training.checkpoint = AddSequence("checkpoint", streams_.compute, {checkpoint, complete});
    plan_->control.push_back(BuildTrainingControl(*plan_, training));
    if (!evaluation.eval.empty()) {
      plan_->control.push_back(BuildEvaluationControl(*plan_, evaluation));
    }
    return true;
  }

  const l1::Program& program_;
  const std::vector<StateRef> all_state_ = AllState(program_);
  const bool one_of_each_;
  support::Diagnostics& diagnostics_;
  Plan* plan_ = nullptr;
  StreamPlan streams_;
  std::set<std::string> names_;
  std::vector<BufferId> state_;                            // by index into AllState
  std::map<std::pair<PoolKind, uint32_t>, PoolId> pools_;  // by kind and memory
  std::map<std::string, Staging> staging_;
  std::map<std::string, KernelId> kernels_;  // by text
  std::map<std::string, PipelineSequences> sequences_;
  std::map<std::string, SequenceId> publish_;
  // Between the compute stream and that of transfers.
  std::optional<TokenId> fetched_, used_, stored_;
  std::map<std::pair<StreamId, StreamId>, TokenId> between_;  // compute streams
  StreamId transfers_ = 0;
};

}  // namespace

bool AssemblePlan(const l1::Program& program, const std::map<std::string, LoweredStep>& steps,
                  bool one_of_each, Plan& plan, support::Diagnostics& diagnostics) {
  return Assembler(program, one_of_each, diagnostics).Assemble(steps, plan);
}

}  // namespace l3c::l0::lower
