// libFuzzer's entry for serialized e-graphs.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  l3c::egraph::FuzzJson({reinterpret_cast<const char*>(data), size});
  return 0;
}
