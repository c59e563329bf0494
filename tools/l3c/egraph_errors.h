// How the commands of the e-graph tell what is wrong with a file: as all diagnostics of l3c, on
// standard error and, where lines were asked for, on standard output.
#pragma once

#include <string>

#include "egraph/program.h"
#include "egraph/serialize.h"
#include "layers/support/diagnostics.h"
#include "tools/l3c/options.h"

namespace l3c::tools {

// The first line of the report: "FILE:LINE:COL: error[KIND]: MESSAGE".
std::string ErrorLine(const egraph::ProgramStatus& status);
// `text` is what was read, unless the error is in a file that it includes.
void ReportError(const egraph::ProgramStatus& status, const std::string& text,
                 const Options& options);
void ReportError(const egraph::SerializedResult& read, const std::string& text,
                 const Options& options);
// What concerns a whole file. False.
bool Refuse(const std::string& path, support::Kind kind, const std::string& message,
            const Options& options);

}  // namespace l3c::tools
