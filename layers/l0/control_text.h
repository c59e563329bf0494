// The text of a control unit; layers/l0/control.h shows one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l0/control.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"

namespace l3c::l0 {

std::string_view ArithOpName(ArithOp op);  // "add", …, "shr"
std::string_view CmpOpName(CmpOp op);      // "eq", "ne", "lt", "gt"

// `sequences` are the plan's, by id.
void PrintControl(const ControlUnit& unit, const std::vector<std::string>& sequences,
                  support::Printer& out);

// At the word `control`. Nothing when anything was reported.
std::optional<ControlUnit> ParseControl(support::ParserBase& parser,
                                        const std::vector<std::string>& sequences,
                                        const std::vector<std::string>& streams);

}  // namespace l3c::l0
