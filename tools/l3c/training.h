// A training run as its user sees it: progress while it goes on, Ctrl-C, figures at its end. `l3c
// run` and the programs that `l3c build` makes share it, so that both say the same.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"
#include "runtime/session.h"
#include "runtime/timeline.h"

namespace l3c::tools {

struct Presentation {
  bool json = false;     // one JSON object a line
  bool color = false;    // a terminal, and wanted
  std::string timeline;  // file for what each stream did when; "": none
  std::string resume;    // the command that goes on with an interrupted run, but for the folder
  // What else is done with the times of the run's commands; false after printing why it failed.
  std::function<bool(const runtime::Timeline&)> observe = nullptr;
  // When the command began: what comes before the first step counts in its time.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

// Trains into run_options.output, a run's folder, and tells how it goes. The exit code: 0, 1 after
// printing an error, 130 when it was interrupted.
int TrainAndTell(const l0::Plan& plan, const runtime::KernelTable& kernels,
                 runtime::RunOptions run_options, const Presentation& presentation,
                 double compile_seconds);

// The same for an evaluation of run_options.checkpoint.
int EvaluateAndTell(const l0::Plan& plan, const runtime::KernelTable& kernels,
                    const runtime::RunOptions& run_options, const Presentation& presentation,
                    double compile_seconds);

double SecondsSince(std::chrono::steady_clock::time_point start);

}  // namespace l3c::tools
