// The text of a kernel's own code (kernel_code.h), as it stands in a .l0 file:
//
//   code KERNEL : llvm SYMBOL { "a line of the module" … }
//   code KERNEL : object SYMBOL at "FILE" of "DIGEST"   // 16 hexadecimal digits
#pragma once

#include <optional>

#include "layers/l0/kernel_code.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"

namespace l3c::l0 {

void PrintCode(const KernelCode& code, const std::string& kernel, support::Printer& out);

// What stands after `code KERNEL :`. Nothing when anything was reported.
std::optional<KernelCode> ParseCode(support::ParserBase& parser);

}  // namespace l3c::l0
