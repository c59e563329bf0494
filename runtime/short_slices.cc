#include "runtime/short_slices.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace l3c::runtime {
namespace {

// The kernel's sched_attr, in its first version. (Its own header defines again what <sched.h> has.)
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // of the usual policy: the slice, in nanoseconds
  uint64_t deadline = 0;
  uint64_t period = 0;
};

}  // namespace

void UseShortSlices() {
#ifdef SYS_sched_setattr
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;  // someone knows better
  constexpr uint64_t kShortest = 100'000;        // the least that is granted
  attributes.size = sizeof attributes;
  attributes.runtime = kShortest;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

}  // namespace l3c::runtime
