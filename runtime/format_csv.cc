// csv: a sample a line. A first line without a number in front is a line of titles, and `column`
// then takes the one column of a title instead of all of them.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/array_format.h"
#include "runtime/cells.h"
#include "runtime/line_reader.h"
#include "runtime/message.h"
#include "runtime/table_column.h"

namespace l3c::runtime {
namespace {

template <class T>
void AppendElement(std::vector<std::byte>& bytes, T value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

class CsvReader {
 public:
  CsvReader(ByteStream& stream, const Wanted& wanted)
      : stream_(stream),
        floats_(tensor::IsFloat(wanted.dtype)),
        per_line_(tensor::NumElements(wanted.sample)),
        column_(wanted.column) {
    array_.type = floats_ ? (wanted.dtype == tensor::DType::kF32 ? Stored::kF32 : Stored::kF64)
                          : Stored::kI64;
    array_.extents = wanted.sample;
    array_.extents.insert(array_.extents.begin(), 0);
  }

  absl::StatusOr<StoredArray> Read() {
    absl::Status status = ForEachLine(stream_, [&](int64_t number, std::string_view line) {
      return AddLine(number, StripBlanks(line));
    });
    if (!status.ok()) return status;
    return std::move(array_);
  }

 private:
  absl::Status AddLine(int64_t number, std::string_view line) {
    if (line.empty()) return absl::OkStatus();
    if (!column_.empty() && !column_found_) {
      column_found_ = true;
      return FindColumn(stream_, line, column_, &column_index_);
    }
    const size_t before = array_.bytes.size();
    int64_t count = 0;
    std::vector<std::string_view> cells = SplitCells(line, kCellSeparators);
    if (!column_.empty()) {
      if (absl::Status s = KeepColumn(stream_, number, column_index_, cells); !s.ok()) return s;
    }
    for (std::string_view cell : cells) {
      if (!AddCell(cell)) {
        // A first line without a number in front is a line of titles.
        if (number == 1 && count == 0) return absl::OkStatus();
        return stream_.Bad(Message("line ", number, ": '", cell.substr(0, 40), "' is not ",
                                   floats_ ? "a number" : "a whole number"));
      }
      if (absl::Status s = CheckCell(number, cell); !s.ok()) return s;
      ++count;
    }
    if (count != per_line_) {
      array_.bytes.resize(before);
      return stream_.Bad(Message("line ", number, " has ", count, " values, not ", per_line_));
    }
    ++array_.extents[0];
    return absl::OkStatus();
  }

  // OutOfRange where the last cell is a number that the field cannot have.
  absl::Status CheckCell(int64_t number, std::string_view cell) const {
    if (!floats_ || std::isfinite(value_)) {
      const bool fits = array_.type != Stored::kF32 ||
                        std::abs(value_) <= static_cast<double>(std::numeric_limits<float>::max());
      if (fits) return absl::OkStatus();
      return absl::OutOfRangeError(Message(stream_.path(), ": line ", number, ": '",
                                           cell.substr(0, 40), "' does not fit f32"));
    }
    return absl::OutOfRangeError(Message(stream_.path(), ": line ", number, ": '",
                                         cell.substr(0, 40), "' is no finite number"));
  }

  bool AddCell(std::string_view cell) {
    if (array_.type == Stored::kI64) {
      int64_t value = 0;
      if (!ParseCell(cell, &value)) return false;
      AppendElement(array_.bytes, value);
      return true;
    }
    if (!ParseCell(cell, &value_)) return false;
    if (array_.type == Stored::kF32) {
      AppendElement(array_.bytes, static_cast<float>(value_));
    } else {
      AppendElement(array_.bytes, value_);
    }
    return true;
  }

  ByteStream& stream_;
  const bool floats_;
  const int64_t per_line_;
  const std::string column_;
  bool column_found_ = false;
  size_t column_index_ = 0;
  double value_ = 0;  // of the last cell of reals
  StoredArray array_;
};

absl::StatusOr<StoredArray> Read(ByteStream& stream, const Wanted& wanted) {
  return CsvReader(stream, wanted).Read();
}

}  // namespace

const ArrayFormat kCsvFormat = {.name = "csv", .read = Read, .columns = true};

}  // namespace l3c::runtime
