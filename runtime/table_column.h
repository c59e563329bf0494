// One column of a csv file, by its title.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/byte_stream.h"

namespace l3c::runtime {

inline constexpr std::string_view kCellSeparators = ",;\t";

// Which column of the line of titles has this one.
absl::Status FindColumn(const ByteStream& stream, std::string_view titles, const std::string& title,
                        size_t* index);
// Leaves that column's cell alone.
absl::Status KeepColumn(const ByteStream& stream, int64_t line, size_t index,
                        std::vector<std::string_view>& cells);

}  // namespace l3c::runtime
