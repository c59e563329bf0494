#include "layers/l0/control_build.h"

#include <map>
#include <string>
#include <utility>

namespace l3c::l0 {
namespace {

// Appends instructions to one unit. Every result is a new register, so the unit is in SSA form.
class Builder {
 public:
  explicit Builder(std::string name) { unit_.name = std::move(name); }

  RegionId AddRegion(std::string name, RegionAccess access, std::vector<int64_t> values,
                     std::vector<std::string> names) {
    Region region;
    region.name = std::move(name);
    region.access = access;
    region.size = static_cast<int64_t>(values.size()) * 8;
    region.values = std::move(values);
    region.names = std::move(names);
    return AddRegion(std::move(region));
  }
  RegionId AddRegion(Region region) {
    unit_.regions.push_back(std::move(region));
    return static_cast<RegionId>(unit_.regions.size() - 1);
  }
  Region& region(RegionId id) { return unit_.regions[id]; }

  // Blocks are made before they are filled, so that branches may lead forward. They stand in the
  // text in the order of their making.
  BlockId AddBlock(std::string name) {
    unit_.blocks.push_back({std::move(name), {}, {}});
    return static_cast<BlockId>(unit_.blocks.size() - 1);
  }
  void Fill(BlockId block) { block_ = block; }

  Operand Load(RegionId region, int64_t word) {
    ControlInstruction load{.op = ControlOp::kLoad, .region = region, .a = Operand::Imm(8 * word)};
    return Append(std::move(load));
  }
  void Store(RegionId region, int64_t word, Operand value) {
    Emit({.op = ControlOp::kStore, .region = region, .a = Operand::Imm(8 * word), .b = value});
  }
  Operand Arith(ArithOp op, Operand a, Operand b) {
    return Append({.op = ControlOp::kArith, .arith = op, .a = a, .b = b});
  }
  Operand Cmp(CmpOp op, Operand a, Operand b) {
    return Append({.op = ControlOp::kCmp, .cmp = op, .a = a, .b = b});
  }
  void Push(RegionId queue, Operand descriptor) {
    Emit({.op = ControlOp::kQueuePush, .region = queue, .a = descriptor});
  }
  Operand Pop(RegionId queue) { return Append({.op = ControlOp::kQueuePop, .region = queue}); }
  void Branch(Operand condition, BlockId then, BlockId otherwise) {
    Emit({.op = ControlOp::kBranch, .a = condition, .target = then, .otherwise = otherwise});
  }
  void Jump(BlockId target) { Emit({.op = ControlOp::kJump, .target = target}); }
  void Terminate() { Emit({.op = ControlOp::kTerminate}); }

  ControlUnit Take() { return std::move(unit_); }

 private:
  void Emit(ControlInstruction instruction) {
    unit_.blocks[block_].instructions.push_back(std::move(instruction));
  }
  Operand Append(ControlInstruction instruction) {
    instruction.result = unit_.registers++;
    Operand result = Operand::Reg(instruction.result);
    Emit(std::move(instruction));
    return result;
  }

  ControlUnit unit_;
  BlockId block_ = 0;
};

// The queues of a unit: one to each stream that it gives work to.
class Queues {
 public:
  Queues(const Plan& plan, Builder& builder) : plan_(plan), builder_(builder) {}

  // A queue holds twice as many descriptors as the pipeline is deep: enough for a stream to find
  // work when control is slow to wake, and few enough for a stop to take effect soon.
  void Add(const std::vector<SequenceId>& sequences) {
    for (SequenceId sequence : sequences) {
      const int64_t capacity = 2 * static_cast<int64_t>(sequences.size());
      StreamId stream = plan_.sequences[sequence].stream;
      auto [it, added] = queues_.emplace(stream, 0);
      if (added) {
        Region queue;
        queue.name = plan_.streams[stream].name + "_q";
        queue.access = RegionAccess::kQueue;
        queue.size = capacity;
        queue.stream = plan_.streams[stream].name;
        it->second = builder_.AddRegion(std::move(queue));
      }
      int64_t& size = builder_.region(it->second).size;
      if (size < capacity) size = capacity;
    }
  }

  // Of each slot, as many as it has streams.
  void AddSlots(const std::vector<std::vector<SequenceId>>& slots) {
    for (size_t i = 0; !slots.empty() && i < slots.front().size(); ++i) {
      std::vector<SequenceId> of_stream;
      for (const std::vector<SequenceId>& slot : slots) of_stream.push_back(slot[i]);
      Add(of_stream);
    }
  }
  void PushAll(const std::vector<SequenceId>& sequences, Operand shifted_argument) {
    for (SequenceId sequence : sequences) Push(sequence, shifted_argument);
  }

  // Pushes `sequence` with `argument`, a register already shifted to its place.
  void Push(SequenceId sequence, Operand shifted_argument) {
    Operand descriptor =
        builder_.Arith(ArithOp::kOr, shifted_argument, Operand::Sequence(sequence));
    builder_.Push(queues_.at(plan_.sequences[sequence].stream), descriptor);
  }
  void Push(SequenceId sequence) {
    builder_.Push(queues_.at(plan_.sequences[sequence].stream), Operand::Sequence(sequence));
  }

 private:
  const Plan& plan_;
  Builder& builder_;
  std::map<StreamId, RegionId> queues_;
};

Operand ShiftArgument(Builder& b, Operand argument) {
  return b.Arith(ArithOp::kShl, argument, Operand::Imm(kSequenceBits));
}

// Words of the cursor.
enum CursorWord : int64_t {
  kPhase,
  kStep,             // of the phase
  kEpochStep,        // steps done of the present epoch
  kEpoch,            // epochs finished in the phase
  kSinceEval,        // epochs since the last evaluation
  kSinceCheckpoint,  // epochs since the last checkpoint
  kEvaluating,       // 1 while an evaluation is under way
  kEvalBatch,        // its next batch
  kCursorWords,
};

// Words of a phase's row of `limits`.
enum LimitWord : int64_t {
  kSteps,
  kStepsPerEpoch,
  kEvalBatches,
  kEvalEvery,
  kCheckpointEvery,
  kLimitWords,
};

class TrainingBuilder {
 public:
  TrainingBuilder(const Plan& plan, const TrainingControl& control)
      : plan_(plan), control_(control), b_("train"), queues_(plan, b_) {}

  ControlUnit Build() {
    std::vector<int64_t> limits;
    std::vector<std::string> names;
    for (size_t p = 0; p < control_.phases.size(); ++p) {
      const PhaseControl& phase = control_.phases[p];
      limits.insert(limits.end(), {phase.steps, phase.steps_per_epoch, phase.eval_batches,
                                   phase.eval_every, phase.checkpoint_every});
      for (const char* name :
           {"steps", "steps_per_epoch", "eval_batches", "eval_every", "checkpoint_every"}) {
        names.push_back(Prefix(p) + name);
      }
    }
    limits_ = b_.AddRegion("limits", RegionAccess::kReadOnly, std::move(limits), std::move(names));
    cursor_ =
        b_.AddRegion("cursor", RegionAccess::kReadWrite, std::vector<int64_t>(kCursorWords, 0),
                     {"phase", "step", "epoch_step", "epoch", "since_eval", "since_checkpoint",
                      "evaluating", "eval_batch"});
    signals_ = b_.AddRegion("signals", RegionAccess::kReadOnly, {0}, {"stop"});
    for (const PhaseControl& phase : control_.phases) {
      queues_.Add(phase.load);
      queues_.Add(phase.fetch);
      queues_.Add(phase.train);
      queues_.AddSlots(phase.beside);
      queues_.Add({phase.publish_train});
      if (phase.eval_batches == 0) continue;
      queues_.Add(phase.load_eval);
      queues_.Add(phase.fetch_eval);
      queues_.Add(phase.eval);
      queues_.AddSlots(phase.beside_eval);
      queues_.Add({phase.publish_test});
    }
    queues_.Add({control_.checkpoint});
    const std::string& saver = plan_.streams[plan_.sequences[control_.checkpoint].stream].name;
    Region done;
    done.name = saver + "_done";
    done.access = RegionAccess::kCompletion;
    done.size = 1;
    done.stream = saver;
    done_ = b_.AddRegion(std::move(done));

    MakeBlocks();
    FillEntry();
    for (size_t phase = 0; phase < control_.phases.size(); ++phase) FillPhase(phase);
    b_.Fill(stop_);
    Save();
    b_.Jump(finish_);
    b_.Fill(finish_);
    b_.Terminate();
    return b_.Take();
  }

 private:
  struct PhaseBlocks {
    BlockId enter = 0, here = 0;  // of several phases only
    std::vector<BlockId> step, poll;
    BlockId epoch_end = 0;
    BlockId evaluate = 0;
    std::vector<BlockId> eval, eval_poll;
    BlockId eval_end = 0;
    BlockId after_epoch = 0;
    BlockId save = 0, poll_saved = 0;
    BlockId resume = 0;
    BlockId poll_resume = 0;
    BlockId leave = 0;
  };

  static bool Evaluates(const PhaseControl& phase) { return phase.eval_batches > 0; }

  // A unit of one phase, the usual case, needs no prefix.
  std::string Prefix(size_t p) const {
    return control_.phases.size() == 1 ? std::string() : "phase_" + std::to_string(p) + "_";
  }

  void MakeBlocks() {
    entry_ = b_.AddBlock("entry");
    for (size_t p = 0; p < control_.phases.size(); ++p) {
      const PhaseControl& phase = control_.phases[p];
      auto block = [&](const std::string& name) { return b_.AddBlock(Prefix(p) + name); };
      PhaseBlocks blocks;
      if (control_.phases.size() > 1) blocks.enter = block("enter");
      if (p + 1 < control_.phases.size()) blocks.here = block("here");
      for (size_t k = 0; k < phase.load.size(); ++k) {
        blocks.step.push_back(block("step_" + std::to_string(k)));
        blocks.poll.push_back(block("poll_" + std::to_string(k)));
      }
      blocks.epoch_end = block("epoch_end");
      if (Evaluates(phase)) {
        blocks.evaluate = block("evaluate");
        for (size_t k = 0; k < phase.load_eval.size(); ++k) {
          blocks.eval.push_back(block("eval_" + std::to_string(k)));
          blocks.eval_poll.push_back(block("eval_poll_" + std::to_string(k)));
        }
        blocks.eval_end = block("eval_end");
      }
      blocks.after_epoch = block("after_epoch");
      blocks.save = block("save");
      blocks.poll_saved = block("poll_saved");
      blocks.resume = block("resume");
      blocks.poll_resume = block("poll_resume");
      blocks.leave = block("leave");
      blocks_.push_back(std::move(blocks));
    }
    stop_ = b_.AddBlock("stop");
    finish_ = b_.AddBlock("finish");
  }

  // Goes to where the cursor stands.
  void FillEntry() {
    b_.Fill(entry_);
    if (control_.phases.size() == 1) {
      FillEnter(0);
      return;
    }
    // A chain of tests over the phases, each in the `enter` block of the phase before.
    b_.Jump(blocks_.empty() ? finish_ : blocks_[0].enter);
    for (size_t p = 0; p < control_.phases.size(); ++p) {
      b_.Fill(blocks_[p].enter);
      FillEnter(p);
    }
  }

  void FillEnter(size_t p) {
    const PhaseControl& phase = control_.phases[p];
    const PhaseBlocks& blocks = blocks_[p];
    if (p + 1 < control_.phases.size()) {
      Operand current = b_.Load(cursor_, kPhase);
      Operand is_here = b_.Cmp(CmpOp::kEq, current, Operand::Imm(static_cast<int64_t>(p)));
      b_.Branch(is_here, blocks.here, blocks_[p + 1].enter);
      b_.Fill(blocks.here);
    }
    if (Evaluates(phase)) {
      Operand evaluating = b_.Load(cursor_, kEvaluating);
      b_.Branch(evaluating, blocks.eval_poll.back(), blocks.resume);
    } else {
      b_.Jump(blocks.resume);
    }
  }

  Operand Limit(size_t p, LimitWord word) {
    return b_.Load(limits_, static_cast<int64_t>(p) * kLimitWords + word);
  }

  void FillPhase(size_t p) {
    const PhaseControl& phase = control_.phases[p];
    const PhaseBlocks& blocks = blocks_[p];
    size_t depth = phase.load.size();
    for (size_t k = 0; k < depth; ++k) {
      b_.Fill(blocks.step[k]);
      Operand step = b_.Load(cursor_, kStep);
      Operand argument = ShiftArgument(b_, step);
      queues_.Push(phase.load[k], argument);
      if (!phase.fetch.empty()) queues_.Push(phase.fetch[k], argument);
      queues_.Push(phase.train[k], argument);
      if (!phase.beside.empty()) queues_.PushAll(phase.beside[k], argument);
      Operand next = Increment(kStep, step);
      Operand epoch_step = Increment(kEpochStep, b_.Load(cursor_, kEpochStep));
      Operand full = b_.Cmp(CmpOp::kEq, epoch_step, Limit(p, kStepsPerEpoch));
      Operand last = b_.Cmp(CmpOp::kEq, next, Limit(p, kSteps));
      b_.Branch(b_.Arith(ArithOp::kOr, full, last), blocks.epoch_end, blocks.poll[k]);

      b_.Fill(blocks.poll[k]);
      b_.Branch(b_.Load(signals_, 0), stop_, blocks.step[(k + 1) % depth]);
    }

    b_.Fill(blocks.epoch_end);
    b_.Store(cursor_, kEpochStep, Operand::Imm(0));
    Operand epoch = Increment(kEpoch, b_.Load(cursor_, kEpoch));
    Operand since_eval = Increment(kSinceEval, b_.Load(cursor_, kSinceEval));
    Increment(kSinceCheckpoint, b_.Load(cursor_, kSinceCheckpoint));
    queues_.Push(phase.publish_train, ShiftArgument(b_, epoch));
    if (Evaluates(phase)) {
      Operand due = Due(p, since_eval, kEvalEvery);
      b_.Branch(due, blocks.evaluate, blocks.after_epoch);
      FillEvaluation(p);
    } else {
      b_.Jump(blocks.after_epoch);
    }

    b_.Fill(blocks.after_epoch);
    b_.Branch(Due(p, b_.Load(cursor_, kSinceCheckpoint), kCheckpointEvery), blocks.save,
              blocks.resume);

    b_.Fill(blocks.save);
    b_.Store(cursor_, kSinceCheckpoint, Operand::Imm(0));
    Save();
    Operand done = b_.Cmp(CmpOp::kEq, b_.Load(cursor_, kStep), Limit(p, kSteps));
    b_.Branch(done, blocks.leave, blocks.poll_saved);
    // A stop asked for now needs no second checkpoint.
    b_.Fill(blocks.poll_saved);
    b_.Branch(b_.Load(signals_, 0), finish_, blocks.step[0]);

    b_.Fill(blocks.resume);
    Operand more = b_.Cmp(CmpOp::kLt, b_.Load(cursor_, kStep), Limit(p, kSteps));
    b_.Branch(more, blocks.poll_resume, blocks.leave);

    b_.Fill(blocks.poll_resume);
    b_.Branch(b_.Load(signals_, 0), stop_, blocks.step[0]);

    b_.Fill(blocks.leave);
    if (p + 1 < control_.phases.size()) {
      for (int64_t word = 0; word < kCursorWords; ++word) {
        int64_t value = word == kPhase ? static_cast<int64_t>(p + 1) : 0;
        b_.Store(cursor_, word, Operand::Imm(value));
      }
      b_.Jump(blocks_[p + 1].enter);
    } else {
      b_.Jump(finish_);
    }
  }

  void FillEvaluation(size_t p) {
    const PhaseControl& phase = control_.phases[p];
    const PhaseBlocks& blocks = blocks_[p];
    b_.Fill(blocks.evaluate);
    b_.Store(cursor_, kSinceEval, Operand::Imm(0));
    b_.Store(cursor_, kEvaluating, Operand::Imm(1));
    b_.Store(cursor_, kEvalBatch, Operand::Imm(0));
    b_.Jump(blocks.eval_poll.back());
    size_t depth = phase.load_eval.size();
    for (size_t k = 0; k < depth; ++k) {
      b_.Fill(blocks.eval[k]);
      Operand batch = b_.Load(cursor_, kEvalBatch);
      Operand argument = ShiftArgument(b_, batch);
      queues_.Push(phase.load_eval[k], argument);
      if (!phase.fetch_eval.empty()) queues_.Push(phase.fetch_eval[k], argument);
      queues_.Push(phase.eval[k], argument);
      if (!phase.beside_eval.empty()) queues_.PushAll(phase.beside_eval[k], argument);
      Operand next = Increment(kEvalBatch, batch);
      Operand more = b_.Cmp(CmpOp::kLt, next, Limit(p, kEvalBatches));
      b_.Branch(more, blocks.eval_poll[k], blocks.eval_end);

      b_.Fill(blocks.eval_poll[k]);
      b_.Branch(b_.Load(signals_, 0), stop_, blocks.eval[(k + 1) % depth]);
    }
    b_.Fill(blocks.eval_end);
    b_.Store(cursor_, kEvaluating, Operand::Imm(0));
    queues_.Push(phase.publish_test, ShiftArgument(b_, b_.Load(cursor_, kEpoch)));
    b_.Jump(blocks.after_epoch);
  }

  Operand Increment(CursorWord word, Operand value) {
    Operand next = b_.Arith(ArithOp::kAdd, value, Operand::Imm(1));
    b_.Store(cursor_, word, next);
    return next;
  }

  // `since` has reached the cadence, or the phase has done its steps. A cadence of 0 is never
  // reached, for `since` is at least 1 here.
  Operand Due(size_t p, Operand since, LimitWord cadence) {
    Operand reached = b_.Cmp(CmpOp::kEq, since, Limit(p, cadence));
    Operand over = b_.Cmp(CmpOp::kEq, b_.Load(cursor_, kStep), Limit(p, kSteps));
    return b_.Arith(ArithOp::kOr, reached, over);
  }

  void Save() {
    queues_.Push(control_.checkpoint, ShiftArgument(b_, b_.Load(cursor_, kStep)));
    b_.Pop(done_);
  }

  const Plan& plan_;
  const TrainingControl& control_;
  Builder b_;
  Queues queues_;
  RegionId limits_ = 0, cursor_ = 0, signals_ = 0, done_ = 0;
  BlockId entry_ = 0, stop_ = 0, finish_ = 0;
  std::vector<PhaseBlocks> blocks_;
};

}  // namespace

ControlUnit BuildTrainingControl(const Plan& plan, const TrainingControl& control) {
  return TrainingBuilder(plan, control).Build();
}

ControlUnit BuildEvaluationControl(const Plan& plan, const EvaluationControl& control) {
  Builder b("evaluate");
  RegionId limits = b.AddRegion("limits", RegionAccess::kReadOnly, {control.batches}, {"batches"});
  RegionId cursor = b.AddRegion("cursor", RegionAccess::kReadWrite, {0}, {"batch"});
  RegionId signals = b.AddRegion("signals", RegionAccess::kReadOnly, {0}, {"stop"});
  Queues queues(plan, b);
  queues.Add(control.load);
  queues.Add(control.fetch);
  queues.Add(control.eval);
  queues.AddSlots(control.beside);
  queues.Add({control.publish});

  size_t depth = control.load.size();
  BlockId entry = b.AddBlock("entry");
  std::vector<BlockId> batches, polls;
  for (size_t k = 0; k < depth; ++k) {
    batches.push_back(b.AddBlock("batch_" + std::to_string(k)));
    polls.push_back(b.AddBlock("poll_" + std::to_string(k)));
  }
  BlockId publish = b.AddBlock("publish");
  BlockId finish = b.AddBlock("finish");

  b.Fill(entry);
  b.Jump(polls.back());
  for (size_t k = 0; k < depth; ++k) {
    b.Fill(batches[k]);
    Operand batch = b.Load(cursor, 0);
    Operand argument = ShiftArgument(b, batch);
    queues.Push(control.load[k], argument);
    if (!control.fetch.empty()) queues.Push(control.fetch[k], argument);
    queues.Push(control.eval[k], argument);
    if (!control.beside.empty()) queues.PushAll(control.beside[k], argument);
    Operand next = b.Arith(ArithOp::kAdd, batch, Operand::Imm(1));
    b.Store(cursor, 0, next);
    b.Branch(b.Cmp(CmpOp::kLt, next, b.Load(limits, 0)), polls[k], publish);
    b.Fill(polls[k]);
    b.Branch(b.Load(signals, 0), finish, batches[(k + 1) % depth]);
  }
  b.Fill(publish);
  queues.Push(control.publish);
  b.Jump(finish);
  b.Fill(finish);
  b.Terminate();
  return b.Take();
}

}  // namespace l3c::l0
