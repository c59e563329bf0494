// The text of a kernel, as it stands in a .l0 file (kernel.h has a whole example).
//
//   kernel NAME(PARAM: in|out|inout DTYPE [SHAPE], …) {
//       origin "h1", "h2"                             // lineage; left out when empty
//       axis NAME : grid N block N [tile N] [vector N]
//       axis NAME : loop|reduce N [tile N] [vector N]
//       %0 = load x[784*i + k - 1] if 0 <= i + k - 1 < 28, 0 <= j < 28
//       %1 = load table[c + 64*%0 of 1000]            // row %0 of 1000, each 64 elements
//       %2 = const f32 -inf                           // a number, or 3 for an integer, 1 for true
//       %3 = range i
//       %4 = cast %3 to f32                           // bitcast alike
//       %5 = add %2, %4                               // and mul neg reciprocal max mod cmplt cmpne
//                                                     // where exp2 log2 sin sqrt
//       %6 = reduce_add %5 over k, l                  // reduce_max
//       store y[256*i + j], %6
//       store y[64*%0 of 1000 + c] += %6
//   }
//
// Values are numbered from 0 in order, without gaps; a store has no number. The dtype of a value
// follows from its operands. For a kernel that VerifyKernel accepts, parsing what is printed gives
// the same kernel in all but spans. A float constant is printed as the double it holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/l0/kernel.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"

namespace l3c::l0 {

std::string_view UopName(UOp op);  // "load", "add", … (reduce: "reduce")

void PrintKernel(const Kernel& kernel, support::Printer& out);
std::string PrintKernel(const Kernel& kernel);

// Reads one kernel, at the word `kernel`. Nothing when anything was reported; then the parser
// stands at a later declaration or past the kernel.
std::optional<Kernel> ParseKernel(support::ParserBase& parser);

}  // namespace l3c::l0
