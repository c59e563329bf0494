// Files that are on the disk when the call returns, and their checksums.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace l3c::runtime {

using Bytes = std::span<const std::byte>;

// Writes the parts one after the other, syncs, and returns the SHA-256 of the whole in hex.
absl::StatusOr<std::string> WriteDurably(const std::string& path, std::span<const Bytes> parts);
absl::Status SyncFolder(const std::string& path);

// Both refuse what is no regular file.
absl::StatusOr<std::string> HashFile(const std::string& path);
// Refuses files of more than `limit` bytes.
absl::StatusOr<std::string> ReadText(const std::string& path, size_t limit);

}  // namespace l3c::runtime
