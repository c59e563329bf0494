// --tune SECONDS: the plan that a command goes on with is the one whose steps are fastest here.
//
// What was measured is kept in the cache, by all that it depends on: the placement, the options of
// the lowering, the evidence, the machine and the threads. The same command goes on with it after
// Ctrl-C or a kill, and once the seconds are spent it takes the same plan again without measuring.
#pragma once

#include "tools/l3c/compile.h"
#include "tools/l3c/options.h"

namespace l3c::tools {

// Nothing happens without --tune. `compilation` has reached L0 from above. What was taken is told
// on standard error, or as JSON lines; all that was measured with --explain. The exit code to end
// with, 0: the command goes on.
int TuneIfAsked(Compilation& compilation, const Options& options);

}  // namespace l3c::tools
