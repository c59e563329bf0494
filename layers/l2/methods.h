// Ways to sample: what a batch is made of. Each is a form with checks; what it means is a
// SamplePlan, which the lowering to L1 writes as a sampling stage, and the filters of a curriculum,
// which are part of the step's tensor graph.
#pragma once

#include <string_view>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l2 {

//   epoch_shuffle(batch, drop_last)              every row once an epoch, in a drawn order
//   stream_window(window, stride, batch, …)      the same of windows of consecutive rows
//   curriculum([{ filter, duration }, …], batch) for `duration` steps only the rows count for which
//                                                the filter holds; then the next stage, at last all
//   replay(buffer, priority, batch)              drawn with replacement from the last rows of a
//                                                stream, evenly or the newer ones more often
//   distributed_shard(shards, method)            each of so many shards of the data gives a batch
//                                                of the inner method; a step takes them together
const std::vector<Entry>& SampleEntries();
const std::vector<Entry>& CurriculumEntries();  // the record { filter: predicate, duration: n }

struct SamplePlan {
  bool replay = false;  // else shuffled epochs
  int64_t batch = 1;    // rows of one step, of all shards
  bool drop_last = false;
  int64_t window = 0;  // rows that make a sample; 0: one
  int64_t stride = 1;
  int64_t shards = 1;
  int64_t buffer = 0;
  bool recent = false;
  std::vector<Form> curriculum;  // its stages
};
SamplePlan PlanOf(const Form& sample);

// Rows of one step.
int64_t BatchOf(const Form& sample);
bool DropsLast(const Form& sample);
// Samples of an epoch, of so many stored rows.
int64_t SamplesOf(const SamplePlan& plan, int64_t stored_rows);

// Reports what the method cannot draw from the data: `fields` are those that are read.
void CheckSample(const Form& sample, const l3::Module& spec, const std::vector<l3::Ref>& fields,
                 support::Diagnostics& diagnostics);

}  // namespace l3c::l2
