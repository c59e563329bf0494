// L3 module → canonical text. Parsing the text and printing again gives the same bytes.
#pragma once

#include <string>

#include "layers/l3/ir.h"
#include "layers/support/printer.h"

namespace l3c::l3 {

// The first line `# l3c l3 v1`, a blank line, and the declarations.
std::string Print(const Module& module);
// The declarations alone, separated by blank lines: what files of lower layers begin with.
void PrintDeclarations(const Module& module, support::Printer& out);
// What a term computes, without its name and weight: "divergence(classify.out, mnist.labels)".
std::string PrintTermKind(const Term& term);

}  // namespace l3c::l3
