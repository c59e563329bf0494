// A run's timeline as Chrome's trace format: one track a stream, one event a command, times in
// microseconds since the run began. Browsers (about:tracing, Perfetto) show it.
#pragma once

#include <string>

#include "layers/l0/plan.h"
#include "runtime/timeline.h"

namespace l3c::tools {

// False after printing why it could not be written.
bool WriteTimeline(const l0::Plan& plan, const runtime::Timeline& timeline,
                   const std::string& path);

}  // namespace l3c::tools
