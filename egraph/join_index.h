// The rows of one table by the values of some of its columns: what a join probes.
//
// Most rows are in sorted runs: entries of one key stand side by side, newest row first, with
// copies of the other columns where there are few, so that a probe touches a line or two of memory
// and never the table. Keys that are dense enough (ids of classes, as a rule) are found through an
// array, others through a hash. Rows that came since the last sort hang in chains behind a hash of
// their own; when they are many, everything is sorted again, so an index costs O(1) a row over its
// life.
//
// Rows that died since the last sort are still in it: see MayBeStale().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "egraph/pages.h"
#include "egraph/table.h"

namespace l3c::egraph {

class JoinIndex {
 public:
  static constexpr uint32_t kSubsumedBit = 0x80000000u;
  static constexpr uint32_t kEnd = 0xffffffffu;

  // `mask`: bit c for key column c, arguments first, then the output.
  JoinIndex(uint32_t columns, uint64_t mask);

  uint64_t mask() const { return mask_; }
  // Brings it up to date with the table; the same one at every call.
  void Refresh(const Table& table);
  // Whether Refresh() would change nothing.
  bool IsCurrent(const Table& table) const {
    return layout_ == table.layout() && indexed_ == table.row_count() && !ManyDead(table);
  }
  // Whether entries may name rows that died or were subsumed, so that each must be looked at.
  bool MayBeStale(const Table& table) const { return table.retired() != retired_; }

  // How many rows share the key of a row, averaged over rows: what a join through this index meets.
  double RowsPerProbe() const {
    const uint64_t rows = sorted_count_ + tail_count_;
    return rows == 0 ? 0 : static_cast<double>(squares_) / static_cast<double>(rows);
  }
  size_t Bytes() const;

  // Entries are Width() words: the row (kSubsumedBit where it is subsumed), then its other columns
  // where they are kept. Offset() is the place of a column in an entry; 0: it is not kept.
  uint32_t Width() const { return width_; }
  uint32_t Offset(uint32_t column) const { return offsets_[column]; }
  // The sorted rows with this key (key columns in ascending order): entries [first, first + count).
  struct Run {
    const uint32_t* first;
    uint32_t count;
  };
  Run Sorted(const Table& table, const uint32_t* key) const {
    if (!dense_) return SortedByHash(table, key);
    if (size_t{*key} + 1 >= starts_.size()) return {nullptr, 0};
    const uint32_t begin = starts_[*key];
    return {entries_.begin() + size_t{begin} * width_, starts_[*key + 1] - begin};
  }
  // The newest row with this key that came since the last sort; Next() is the one before it.
  uint32_t Newest(const Table& table, const uint32_t* key) const {
    return tail_count_ == 0 ? kEnd : NewestOfTail(table, key);
  }
  uint32_t Next(uint32_t row) const { return next_[row - sorted_rows_]; }

 private:
  struct KeySlot {
    uint32_t begin = 0;  // entry
    uint32_t count = 0;  // 0 where empty
    uint32_t hash = 0;   // the key itself where it is one column
  };
  struct TailSlot {
    uint32_t newest = kEnd;
    uint32_t rows = 0;
  };
  Run SortedByHash(const Table& table, const uint32_t* key) const;
  uint32_t NewestOfTail(const Table& table, const uint32_t* key) const;
  // Whether dead entries cost as much as many chains would.
  bool ManyDead(const Table& table) const;
  uint32_t HashOf(const Table& table, uint32_t row) const;
  bool HasKey(const Table& table, uint32_t row, const uint32_t* key) const;
  bool SameKey(const Table& table, uint32_t a, uint32_t b) const;
  void Sort(const Table& table);
  void SortDense(const Table& table, uint32_t key_limit);
  void SortHashed(const Table& table);
  void WriteEntry(const Table& table, uint32_t row, uint32_t entry);
  void AddToTail(const Table& table, uint32_t row);
  void GrowTail(const Table& table);

  uint64_t mask_;
  std::vector<uint32_t> key_columns_;
  std::vector<uint32_t> kept_columns_;
  std::vector<uint8_t> offsets_;  // by column
  uint32_t width_ = 1;

  uint64_t layout_ = 0;       // of the table, at the last sort
  uint32_t retired_ = 0;      // rows of the table that had died or been subsumed by then
  uint32_t sorted_rows_ = 0;  // rows [0, sorted_rows_) have been sorted
  uint32_t sorted_count_ = 0;
  bool dense_ = false;
  std::vector<uint32_t> starts_;   // dense: by key, the first entry; one more at the end
  std::vector<KeySlot> slots_;     // otherwise
  ZeroedArray<uint32_t> entries_;  // has more room than there are entries

  uint32_t indexed_ = 0;  // rows [sorted_rows_, indexed_) are in chains
  uint32_t tail_count_ = 0;
  uint32_t tail_keys_ = 0;
  std::vector<TailSlot> tail_;
  std::vector<uint32_t> next_;

  uint64_t squares_ = 0;  // the sum of the squares of rows per key
};

}  // namespace l3c::egraph
