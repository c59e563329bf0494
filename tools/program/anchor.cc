#include "tools/program/anchor.h"

#include <cmath>

// Functions of our own around those of the C library, whose symbols may stand for several
// implementations until the program starts.
extern "C" {
double l3c_sin(double x) { return std::sin(x); }
double l3c_exp2(double x) { return std::exp2(x); }
double l3c_log2(double x) { return std::log2(x); }
double l3c_fmod(double x, double y) { return std::fmod(x, y); }
float l3c_fmodf(float x, float y) { return std::fmod(x, y); }

extern const l3c::program::Anchor l3c_anchor;
}

// In assembly, so that the compiler takes none of it for constant.
asm(R"(
  .pushsection l3c_program, "a", @progbits
  .balign 16
  .globl l3c_anchor
  .type l3c_anchor, @object
l3c_anchor:
  .asciz "l3c program v1"
  .byte 0
  .quad 0
  .quad 0
  .quad 0
  .long l3c_sin - .
  .long l3c_exp2 - .
  .long l3c_log2 - .
  .long l3c_fmod - .
  .long l3c_fmodf - .
  .long 0
  .size l3c_anchor, . - l3c_anchor
  .popsection
)");

namespace l3c::program {

static_assert(sizeof(Anchor) == 64);

const Anchor& TheAnchor() { return l3c_anchor; }

}  // namespace l3c::program
