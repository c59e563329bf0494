// The one place where `l3c build` writes into the prebuilt runtime: it says where the program's
// code and tables lie, and tells the builder the addresses of the functions that kernels may call.
#pragma once

#include <cstdint>

namespace l3c::program {

inline constexpr char kAnchorSection[] = "l3c_program";
inline constexpr char kAnchorMagic[16] = "l3c program v1";
inline constexpr const char* kCallable[] = {"sin", "exp2", "log2", "fmod", "fmodf"};

struct Anchor {
  char magic[16];
  // Counted from the anchor's own address; all 0 while there is no program.
  int64_t code;
  int64_t tables;
  int64_t tables_size;
  // Of kCallable, each counted from the address of its own entry.
  int32_t callable[6];
};

const Anchor& TheAnchor();

}  // namespace l3c::program
