#include "runtime/table_column.h"

#include <algorithm>

#include "layers/support/printer.h"
#include "runtime/cells.h"
#include "runtime/message.h"

namespace l3c::runtime {

absl::Status FindColumn(const ByteStream& stream, std::string_view titles, const std::string& title,
                        size_t* index) {
  const std::vector<std::string_view> cells = SplitCells(titles, kCellSeparators);
  const auto found = std::find(cells.begin(), cells.end(), title);
  if (found == cells.end()) {
    std::vector<std::string> names;
    for (std::string_view cell : cells) names.push_back(Message("'", cell.substr(0, 40), "'"));
    if (names.size() > 20) names.resize(20);
    return stream.Bad(
        Message("the first line has no title '", title, "'; it has ", support::Join(names)));
  }
  *index = static_cast<size_t>(found - cells.begin());
  return absl::OkStatus();
}

absl::Status KeepColumn(const ByteStream& stream, int64_t line, size_t index,
                        std::vector<std::string_view>& cells) {
  if (index >= cells.size()) {
    return stream.Bad(Message("line ", line, " has ", cells.size(), " values, and column ",
                              index + 1, " is wanted"));
  }
  cells = {cells[index]};
  return absl::OkStatus();
}

}  // namespace l3c::runtime
