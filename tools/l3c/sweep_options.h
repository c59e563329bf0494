// The command line of l3c sweep.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/l3c/options.h"

namespace l3c::tools {

// `memory`: text of --memory-limit, read where all sizes are.
void AddSweepCommand(CLI::App& app, Options& options, std::string& memory, std::string& color,
                     std::string& diagnostics);

}  // namespace l3c::tools
