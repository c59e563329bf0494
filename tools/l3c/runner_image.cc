#include "tools/l3c/runner_image.h"

// Part of l3c itself, so that it cannot be missing or of another version.
asm(R"(
  .pushsection .rodata
  .balign 16
l3c_runner_begin:
  .incbin ")" L3C_RUNNER R"("
l3c_runner_end:
  .popsection
)");

extern "C" {
extern const char l3c_runner_begin[];
extern const char l3c_runner_end[];
}

namespace l3c::tools {

std::string_view RunnerImage() { return {l3c_runner_begin, l3c_runner_end}; }

}  // namespace l3c::tools
