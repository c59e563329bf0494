// What a run tells its host while it goes on. The runtime formats nothing.
//
// Calls come from the run's own threads, one at a time, and hold up the stream that makes them: a
// sink should be quick. A sink may call RequestStop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace l3c::runtime {

struct Value {
  std::string name;
  double value = 0;
};

// One executed `report` command.
struct Report {
  std::string split;
  int64_t argument = 0;       // of the sequence's descriptor: the batch's number
  std::vector<Value> values;  // as reported, not yet divided by anything
};

// At most ten a second.
struct Progress {
  std::string split;
  int64_t steps = 0;              // batches of `split` done: training's steps, from the very first
  int64_t samples = 0;            // rows of them
  double seconds = 0;             // since this run (or this evaluation) began
  double samples_per_second = 0;  // over the last second or so
};

// A `publish` command: the end of an epoch (split "train") or of an evaluation ("test").
struct Period {
  std::string split;
  int64_t argument = 0;        // of the descriptor: the number of epochs finished
  std::vector<Value> metrics;  // of this split, in the plan's order
  int64_t steps = 0;           // batches in the period
  double seconds = 0;          // since the period began in this run
};

struct CheckpointWritten {
  std::string path;
  int64_t steps = 0;
  double seconds = 0;  // that writing took
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnReport(const Report& report) { (void)report; }
  virtual void OnProgress(const Progress& progress) { (void)progress; }
  virtual void OnPeriod(const Period& period) { (void)period; }
  virtual void OnCheckpoint(const CheckpointWritten& checkpoint) { (void)checkpoint; }
};

}  // namespace l3c::runtime
