// The table of one function: rows of 32-bit columns in chunks, and a hash index on the arguments.
//
// Rows are only ever appended. A row that changes (its arguments or its output were merged) is
// marked dead and appended again, so "new since" is a row number, which is what semi-naive
// evaluation asks for. Chunks hold a power of two of rows, column after column; the first grows by
// doubling up to full size, so a table of ten rows costs a few hundred bytes and a large one never
// copies more than its hash slots. Dead rows are squeezed out by Compact().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "egraph/ids.h"

namespace l3c::egraph {

// The rows of a table whose columns `mask` have given values, newest first.
//
// One chain of rows per distinct key, found through open addressing. Built on first use, extended
// by the rows appended since.
class ColumnIndex {
 public:
  static constexpr uint32_t kEnd = 0xffffffffu;

  explicit ColumnIndex(uint64_t mask);

  uint64_t mask() const { return mask_; }
  const std::vector<uint32_t>& key_columns() const { return key_columns_; }
  // Rows indexed so far: [0, indexed()).
  uint32_t indexed() const { return indexed_; }
  // How many rows share the key of a row, averaged over rows: what a join through this index meets.
  double RowsPerProbe() const {
    return rows_ == 0 ? 0 : static_cast<double>(squares_) / static_cast<double>(rows_);
  }
  uint32_t Next(uint32_t row) const { return next_[row]; }
  size_t Bytes() const {
    return slots_.capacity() * sizeof(Slot) + next_.capacity() * sizeof(uint32_t);
  }

 private:
  friend class Table;
  uint64_t mask_;
  std::vector<uint32_t> key_columns_;
  struct Slot {
    uint32_t newest = kEnd;  // row, kEnd where empty
    uint32_t rows = 0;       // of this key
  };
  std::vector<Slot> slots_;
  std::vector<uint32_t> next_;  // by row: the next older one of the same key
  uint32_t indexed_ = 0;
  uint32_t keys_ = 0;
  uint64_t rows_ = 0;     // entered, so the sum of Slot::rows
  uint64_t squares_ = 0;  // the sum of their squares
};

class Table {
 public:
  static constexpr uint32_t kNoRow = 0xffffffffu;

  // `arguments` columns, then the output column, then one of provenance.
  explicit Table(uint32_t arguments);
  Table(const Table&);
  Table& operator=(const Table&);
  Table(Table&&) noexcept = default;
  Table& operator=(Table&&) noexcept = default;

  uint32_t arguments() const { return arguments_; }
  uint32_t row_count() const { return rows_; }  // dead ones included
  uint32_t live_count() const { return live_; }

  // Columns 0 … arguments()-1 are arguments, column arguments() is the output.
  uint32_t Get(uint32_t row, uint32_t column) const { return *Cell(row, column); }
  uint32_t Output(uint32_t row) const { return *Cell(row, arguments_); }
  bool IsLive(uint32_t row) const { return (*Cell(row, arguments_ + 1) & kDeadBit) == 0; }
  // Live and open to matching and extraction.
  bool IsVisible(uint32_t row) const {
    return (*Cell(row, arguments_ + 1) & (kDeadBit | kSubsumedBit)) == 0;
  }
  RuleId Provenance(uint32_t row) const { return RuleId{*Cell(row, arguments_ + 1) & kRuleMask}; }
  bool IsSubsumed(uint32_t row) const { return (*Cell(row, arguments_ + 1) & kSubsumedBit) != 0; }
  void MarkSubsumed(uint32_t row) {
    *Cell(row, arguments_ + 1) |= kSubsumedBit;
    ++retired_;
  }
  // For whoever keeps row numbers: changes when rows get other numbers or come back to life; and,
  // with that unchanged, how many rows have died or been subsumed.
  uint64_t layout() const { return layout_; }
  uint32_t retired() const { return retired_; }

  // The live row with these arguments, or kNoRow.
  uint32_t Find(const uint32_t* args) const;
  // Appends a row; no live row may have these arguments.
  uint32_t Append(const uint32_t* args, uint32_t output, RuleId rule, bool subsumed);
  // Find(), then Append() when there is none; hashes once.
  std::pair<uint32_t, bool> FindOrAppend(const uint32_t* args, uint32_t output, RuleId rule);
  void Kill(uint32_t row);
  // Drops dead rows and all column indexes; row numbers change, Mark()s follow.
  void Compact();

  // Remembers that the rows so far were there at search step `clock`; clocks only grow.
  void Mark(uint64_t clock);
  // How many rows were there at the latest Mark() with a clock not after `clock`.
  uint32_t RowsAt(uint64_t clock) const;

  // The index on the columns in `mask` (bit c: column c), built and extended as needed. Valid until
  // Compact() or the end of the table.
  const ColumnIndex& Index(uint64_t mask);
  // Of the indexes there are, the one on some of the columns in `mask` that meets the fewest rows
  // per probe; nullptr when there is none.
  const ColumnIndex* BestIndex(uint64_t mask) const;
  // The newest row with this key (key columns in ascending order), or ColumnIndex::kEnd.
  uint32_t Newest(const ColumnIndex& index, const uint32_t* key) const;

  size_t Bytes() const;

 private:
  // The provenance column holds the rule's id and two flags.
  static constexpr uint32_t kSubsumedBit = 0x80000000u;
  static constexpr uint32_t kDeadBit = 0x40000000u;
  static constexpr uint32_t kRuleMask = 0x3fffffffu;
  static constexpr uint32_t kFirstShift = 3;   // rows of the first allocation: 8
  static constexpr uint32_t kChunkShift = 12;  // rows of a full chunk: 4096

  uint32_t* Cell(uint32_t row, uint32_t column) {
    return chunks_[row >> shift_].get() + (size_t{column} << shift_) + (row & ((1u << shift_) - 1));
  }
  const uint32_t* Cell(uint32_t row, uint32_t column) const {
    return chunks_[row >> shift_].get() + (size_t{column} << shift_) + (row & ((1u << shift_) - 1));
  }
  uint32_t width() const { return arguments_ + 2; }
  uint32_t Hash(const uint32_t* args) const;
  uint32_t HashRow(uint32_t row) const;
  bool SameArgs(uint32_t row, const uint32_t* args) const;
  void ReserveRow();
  void GrowSlots();
  void RebuildSlots();  // from the rows
  uint32_t AppendAt(size_t slot, uint32_t hash, const uint32_t* args, uint32_t output,
                    uint32_t provenance);
  uint32_t HashKey(const ColumnIndex& index, uint32_t row) const;
  bool SameKey(const ColumnIndex& index, uint32_t row, uint32_t other) const;
  void Extend(ColumnIndex& index);
  void GrowIndex(ColumnIndex& index);

  uint32_t arguments_;
  uint32_t rows_ = 0;
  uint32_t live_ = 0;
  uint64_t layout_ = 0;
  uint32_t retired_ = 0;
  uint32_t shift_ = kFirstShift;  // log2 of a chunk's rows; below kChunkShift there is one chunk
  std::vector<std::unique_ptr<uint32_t[]>> chunks_;
  // Open addressing on the arguments. The hash is kept beside the row: a row is looked at only when
  // it is almost surely the right one, and growing touches no rows at all.
  struct Slot {
    uint32_t row_plus_1 = 0;  // 0 where empty
    uint32_t hash = 0;
  };
  std::vector<Slot> slots_;
  std::vector<std::pair<uint64_t, uint32_t>> marks_;
  std::vector<std::unique_ptr<ColumnIndex>> indexes_;
};

// A live row, for readers.
class Row {
 public:
  Row(const Table* table, uint32_t row) : table_(table), row_(row) {}
  uint32_t size() const { return table_->arguments(); }
  Value arg(uint32_t i) const { return Value{table_->Get(row_, i)}; }
  Value output() const { return Value{table_->Output(row_)}; }
  RuleId rule() const { return table_->Provenance(row_); }
  bool subsumed() const { return table_->IsSubsumed(row_); }

 private:
  const Table* table_;
  uint32_t row_;
};

}  // namespace l3c::egraph
