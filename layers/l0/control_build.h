// The standard control units: training in phases, and evaluation.
//
// Training, for each phase in turn:
//
//   for each step:         push load[k] to its loader, train[k] to its compute stream, argument =
//                          the step's number in the phase; k takes the pipeline slots in turn
//   at an epoch's end      (or when the phase's steps are done): publish_train, argument = the
//   number
//                          of epochs finished; then an evaluation if one is due or the phase is
//                          over; then a checkpoint if one is due or the phase is over
//   evaluation:            load_eval[k], eval[k] for each batch (argument: the batch), publish_test
//   before each step and   if the host asks to stop: checkpoint, terminate
//   evaluation batch:
//
// The cursor region holds everything that a resumed run needs, so a run may stop after any step or
// in the middle of an evaluation: phase, step and epoch in the phase, step in the epoch, what is
// due, and the batch of a running evaluation. A checkpoint is pushed behind all the work that the
// cursor counts, and control waits for its completion before it moves the cursor on.
//
// The loop bounds stand in the read-only region `limits`, one row of five words a phase:
// steps, steps an epoch, evaluation batches, epochs between evaluations, between checkpoints.
//
// Example, depth 2:
//   TrainingControl control;
//   control.phases = {{.steps = 4690, .steps_per_epoch = 469, .eval_batches = 79, .eval_every = 1,
//                      .checkpoint_every = 1, .load = {load_0, load_1}, .train = {train_0,
//                      train_1}, .publish_train = p, .load_eval = {le_0, le_1}, .eval = {e_0, e_1},
//                      .publish_test = q}};
//   control.checkpoint = c;        // sequence { checkpoint  complete }
//   plan.control = {BuildTrainingControl(plan, control), BuildEvaluationControl(plan, evaluation)};
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/l0/control.h"
#include "layers/l0/plan.h"

namespace l3c::l0 {

// Sequences are given by id and run on the streams that the plan gives them; the unit gets one
// queue for each stream. `load` and `train` (and `load_eval` and `eval`) are as long as the
// pipeline is deep. Sequences that come after work of other streams (publish, checkpoint) wait for
// it by tokens of their own when those streams differ. After an epoch or an evaluation the slots
// begin again at the first, so a ring of tokens over compute streams of several slots would come
// apart: give all slots of a phase one compute stream, or tokens that do not depend on the slot
// before.
struct PhaseControl {
  int64_t steps = 0;             // of the whole phase; >= 0
  int64_t steps_per_epoch = 1;   // >= 1
  int64_t eval_batches = 0;      // 0: no evaluation, and load_eval, eval, publish_test stay empty
  int64_t eval_every = 0;        // epochs; 0: only at the end of the phase
  int64_t checkpoint_every = 0;  // epochs; 0: only at the end of the phase
  std::vector<SequenceId> load;
  std::vector<SequenceId> train;
  SequenceId publish_train = 0;  // { publish train }
  std::vector<SequenceId> load_eval;
  std::vector<SequenceId> eval;
  SequenceId publish_test = 0;  // { publish test }
  // Transfers of each slot beside the loads, on a stream of their own; empty where there are none.
  std::vector<SequenceId> fetch, fetch_eval;
  // By slot: the parts of a step that other compute streams run, started with `train` and `eval`;
  // empty where there is one compute stream.
  std::vector<std::vector<SequenceId>> beside, beside_eval;
};

struct TrainingControl {
  std::vector<PhaseControl> phases;
  SequenceId checkpoint = 0;  // must end in a `complete` command
};

struct EvaluationControl {
  int64_t batches = 1;  // >= 1
  std::vector<SequenceId> load;
  std::vector<SequenceId> eval;
  SequenceId publish = 0;
  std::vector<SequenceId> fetch;
  std::vector<std::vector<SequenceId>> beside;
};

// The unit `train`. Reads plan.streams and plan.sequences, nothing else of the plan.
ControlUnit BuildTrainingControl(const Plan& plan, const TrainingControl& control);
// The unit `evaluate`.
ControlUnit BuildEvaluationControl(const Plan& plan, const EvaluationControl& control);

}  // namespace l3c::l0
