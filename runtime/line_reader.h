// A text file line by line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/byte_stream.h"

namespace l3c::runtime {

inline constexpr size_t kMaxLine = size_t{64} << 20;

// Calls visit(number, line), numbers from 1, until it returns an error. The last line need not end
// in a newline; an empty last line is not visited.
template <class Visit>
absl::Status ForEachLine(ByteStream& stream, Visit visit) {
  std::string line;
  std::vector<std::byte> chunk(size_t{1} << 18);
  int64_t number = 0;
  for (;;) {
    absl::StatusOr<size_t> got = stream.Read(chunk.data(), chunk.size());
    if (!got.ok()) return got.status();
    for (size_t i = 0; i < *got; ++i) {
      const char c = static_cast<char>(chunk[i]);
      if (c != '\n') {
        line += c;
        if (line.size() > kMaxLine) return stream.Bad("a line of more than 64 MiB");
        continue;
      }
      if (absl::Status s = visit(++number, line); !s.ok()) return s;
      line.clear();
    }
    if (*got < chunk.size()) break;
  }
  return line.empty() ? absl::OkStatus() : visit(++number, line);
}

}  // namespace l3c::runtime
