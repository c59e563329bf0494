#include "layers/support/tile_permission.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace l3c::support {
namespace {

bool Ask() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kAmxTile = 1u << 24;  // CPUID leaf 7, EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAmxTile) == 0) return false;
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  constexpr int kTileData = 18;               // the component of XSAVE that tiles are
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

bool TilesPermitted() {
  static const bool permitted = Ask();
  return permitted;
}

}  // namespace l3c::support
