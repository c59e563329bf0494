// libFuzzer's entry for the text language.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  l3c::egraph::FuzzLanguage({reinterpret_cast<const char*>(data), size});
  return 0;
}
