// File reads through io_uring. Built where liburing is installed.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/file_reader.h"

namespace l3c::runtime {

// Unavailable where the kernel or the container does not grant a ring, or this build has none.
absl::StatusOr<std::unique_ptr<FileReader>> MakeUringReader();

}  // namespace l3c::runtime
