// Stands in for plain_cbc.cc where the library is not installed: nothing is found.
#include "bench/extraction/plain_cbc.h"

namespace l3c::bench {

PlainCbcResult SolvePlainCbc(const egraph::NodeGraph&, std::span<const double>,
                             std::span<const egraph::ClassRef>, const egraph::TimeLimit&) {
  return {};
}

}  // namespace l3c::bench
