// The commands. Each prints its result, or what is wrong, and returns the exit code.
#pragma once

#include "tools/l3c/options.h"

namespace l3c::tools {

int Check(const Options& options);
int Optimize(const Options& options);
int Lower(const Options& options);
int Run(const Options& options);
int Eval(const Options& options);
int Build(const Options& options);
int Emit(const Options& options);
int EGraphRun(const Options& options);
int EGraphExtract(const Options& options);
int Rules(const Options& options);
int RulesCheck(const Options& options);
int Cache(const Options& options);
int Sweep(const Options& options);
int SweepCompare(const Options& options);
int Calibrate(const Options& options);  // without a kernel compiler: says so

}  // namespace l3c::tools
