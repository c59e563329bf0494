// The best schedule of a chain under a bound on memory, by dynamic programming from the definition.
//
// Layer l has a forward launch F(l), which reads a(l−1) and writes a(l), and a backward launch
// B(l), which reads a(l−1), a(l) and d(l) and writes d(l−1). a(0) is given and d(n) needs no
// memory. A schedule may run forward launches again; what it keeps it keeps until it is read for
// the last time (Beaumont et al. 2019, section 4; Griewank and Walther 2000 for equal layers).
#pragma once

#include <cstdint>
#include <vector>

#include "layers/l0/lower/launch_graph.h"

namespace l3c::l0::lower {

struct Chain {
  std::vector<int64_t> forward;   // cost of F(l), l from 1; [0] unused, as in all of them
  std::vector<int64_t> value;     // bytes of a(l)
  std::vector<int64_t> gradient;  // bytes of d(l)
  int layers() const { return static_cast<int>(forward.size()) - 1; }
};

LaunchGraph GraphOf(const Chain& chain);

// By bytes from 0 to `most`: the least cost of all forward launches, first runs included; −1 where
// no schedule fits.
std::vector<int64_t> BestCosts(const Chain& chain, int64_t most);

}  // namespace l3c::l0::lower
