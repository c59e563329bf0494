// The table of one function: rows of 32-bit cells in chunks, and a hash index on the arguments.
//
// Rows are only ever appended. A row that changes (its arguments or its output were merged) is
// marked dead and appended again, so "new since" is a row number, which is what semi-naive
// evaluation asks for. The cells of a row lie together: a lookup that hits reads one cache line of
// the hash and one of the row. Chunks hold a power of two of rows; the first grows by doubling up
// to full size, so a table of ten rows costs a few hundred bytes and a large one never copies more
// than its hash slots.
//
// A dead row keeps its hash slot, which lookups pass over, until the slots are built anew: killing
// touches nothing but the row. Dead rows are squeezed out by Compact().
//
// Push() opens a level of undo: rows that were there stay where they are, and what happens to them
// is written down. Pop() takes time by what has changed since, not by what there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "egraph/ids.h"
#include "egraph/pages.h"
#include "egraph/row_memory.h"

namespace l3c::egraph {

// The rows of a table that have a given value in one column, newest first: what a rebuild looks up.
//
// One chain of rows per distinct key, found through open addressing. Built on first use, extended
// by the rows appended since.
class ColumnIndex {
 public:
  static constexpr uint32_t kEnd = 0xffffffffu;

  explicit ColumnIndex(uint32_t column) : column_(column) {}

  uint32_t column() const { return column_; }
  // Rows indexed so far: [0, indexed()).
  uint32_t indexed() const { return static_cast<uint32_t>(next_.size()); }
  uint32_t Next(uint32_t row) const { return next_[row]; }
  size_t Bytes() const { return slots_.Bytes() + next_.Bytes(); }

 private:
  friend class Table;
  static constexpr uint32_t kLeftOut = 0xfffffffeu;  // in next_: the row was dead when indexed
  struct Slot {
    uint32_t newest_plus_1 = 0;  // row, 0 where empty
    uint32_t key = 0;
  };
  uint32_t column_;
  ZeroedArray<Slot> slots_;
  GrowingArray<uint32_t> next_;  // by row: the next older one of the same key
  uint32_t keys_ = 0;
};

class Table {
 public:
  static constexpr uint32_t kNoRow = 0xffffffffu;

  // `arguments` cells, then the output, then one of provenance.
  explicit Table(uint32_t arguments);
  Table(const Table&);
  Table& operator=(const Table&);
  Table(Table&&) noexcept = default;
  Table& operator=(Table&&) noexcept = default;

  uint32_t arguments() const { return arguments_; }
  uint32_t row_count() const { return rows_; }  // dead ones included
  uint32_t live_count() const { return live_; }

  // Cells 0 … arguments()-1 are arguments, cell arguments() is the output. Valid until the next
  // append.
  const uint32_t* Cells(uint32_t row) const {
    return chunks_[row >> shift_].get() + size_t{row & ((1u << shift_) - 1)} * width_;
  }
  uint32_t Get(uint32_t row, uint32_t column) const { return Cells(row)[column]; }
  uint32_t Output(uint32_t row) const { return Cells(row)[arguments_]; }
  bool IsLive(uint32_t row) const { return IsLive(Cells(row)); }
  // Live and open to matching and extraction.
  bool IsVisible(uint32_t row) const { return IsVisible(Cells(row)); }
  RuleId Provenance(uint32_t row) const { return RuleId{Flags(row) & kRuleMask}; }
  bool IsSubsumed(uint32_t row) const { return (Flags(row) & kSubsumedBit) != 0; }
  // The same of a row by its cells.
  bool IsLive(const uint32_t* cells) const { return (cells[arguments_ + 1] & kDeadBit) == 0; }
  bool IsVisible(const uint32_t* cells) const {
    return (cells[arguments_ + 1] & (kDeadBit | kSubsumedBit)) == 0;
  }
  bool IsSubsumed(const uint32_t* cells) const {
    return (cells[arguments_ + 1] & kSubsumedBit) != 0;
  }
  void MarkSubsumed(uint32_t row);
  // For whoever keeps row numbers: changes when rows get other numbers; and, with that unchanged,
  // how many rows have died or been subsumed. Pop() brings both back: it is for those who were
  // there at the Push().
  uint64_t layout() const { return layout_; }
  uint32_t retired() const { return retired_; }

  // The live row with these arguments, or kNoRow.
  uint32_t Find(const uint32_t* args) const;
  // Appends a row; no live row may have these arguments.
  uint32_t Append(const uint32_t* args, uint32_t output, RuleId rule, bool subsumed);
  // Find(), then Append() when there is none; hashes once.
  std::pair<uint32_t, bool> FindOrAppend(const uint32_t* args, uint32_t output, RuleId rule);
  // The same for many rows at once, so that their cache misses overlap: Reserve() for their number,
  // then, action by action for all of them, Hash() and FetchSlot(), Probe(), and FindOrAppendAt().
  // Nothing else may change the table in between.
  void Reserve(uint32_t rows);
  // So many rows will soon be live, as far as one knows; 0: nothing is known. Slots that have to
  // grow then make room for them as well, but no more than four times what is needed.
  void Expect(uint32_t rows) { expected_ = rows; }
  uint32_t Hash(const uint32_t* args) const;
  void FetchSlot(uint32_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  // The first slot that may be that of arguments with this hash; fetches its row, if it has one.
  uint32_t Probe(uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t s = hash & mask;
    while (slots_[s].row_plus_1 != 0 && slots_[s].hash != hash) s = (s + 1) & mask;
    if (slots_[s].row_plus_1 != 0) __builtin_prefetch(Cells(slots_[s].row_plus_1 - 1));
    return static_cast<uint32_t>(s);
  }
  std::pair<uint32_t, bool> FindOrAppendAt(uint32_t slot, uint32_t hash, const uint32_t* args,
                                           uint32_t output, RuleId rule);
  void Kill(uint32_t row);
  // Kills `row`, then FindOrAppend() with the rule of `row`, and subsumed where it was.
  std::pair<uint32_t, bool> Replace(uint32_t row, const uint32_t* args, uint32_t output);
  // The same in batches, like FindOrAppendAt().
  std::pair<uint32_t, bool> ReplaceAt(uint32_t slot, uint32_t hash, uint32_t row,
                                      const uint32_t* args, uint32_t output);
  // Drops dead rows and column indexes; row numbers change, Mark()s follow. What was there at the
  // latest Push() stays.
  void Compact();

  // Remembers that the rows so far were there at search step `clock`; clocks only grow.
  void Mark(uint64_t clock);
  // How many rows were there at the latest Mark() with a clock not after `clock`.
  uint32_t RowsAt(uint64_t clock) const;

  // The index on a column (arguments(): the output), built and extended as needed. Valid until
  // Compact(), Pop() or the end of the table.
  const ColumnIndex& Index(uint32_t column);
  // The newest row with this key, or ColumnIndex::kEnd.
  uint32_t Newest(const ColumnIndex& index, uint32_t key) const;

  // Pop() makes everything, order, indexes and Bytes() included, what it was at the matching
  // Push().
  void Push();
  void Pop();
  // Closes the latest level and keeps what has happened since.
  void DropLevel();

  size_t Bytes() const;
  // An upper bound of Bytes() while and after `rows` more are appended: hash slots that have to
  // grow are there twice for a moment.
  size_t BytesWith(uint32_t rows) const;

 private:
  friend class BulkInsert;  // bulk_insert.h

  // The provenance cell holds the rule's id and two flags.
  static constexpr uint32_t kSubsumedBit = 0x80000000u;
  static constexpr uint32_t kDeadBit = 0x40000000u;
  static constexpr uint32_t kRuleMask = 0x3fffffffu;
  static constexpr uint32_t kFirstShift = 3;   // rows of the first allocation: 8
  static constexpr uint32_t kChunkShift = 12;  // rows of a full chunk: 4096

  // Open addressing on the arguments. The hash is kept beside the row: a row is looked at only when
  // it is almost surely the right one, and growing touches no rows at all.
  struct Slot {
    uint32_t row_plus_1 = 0;  // 0 where empty
    uint32_t hash = 0;
  };
  struct Level {
    uint32_t rows, live, shift;
    uint32_t retired;
    uint64_t layout;
    size_t slots, used, chunks, marks, killed, subsumed;
    struct Index {
      uint32_t indexed;
      size_t slots;
      size_t capacity;
    };
    std::vector<Index> indexes;
  };

  uint32_t* MutableCells(uint32_t row) {
    return chunks_[row >> shift_].get() + size_t{row & ((1u << shift_) - 1)} * width_;
  }
  uint32_t Flags(uint32_t row) const { return Cells(row)[arguments_ + 1]; }
  bool SameArgs(const uint32_t* cells, const uint32_t* args) const {
    for (uint32_t i = 0; i < arguments_; ++i) {
      if (cells[i] != args[i]) return false;
    }
    return true;
  }
  size_t ChunkWords() const { return size_t{width_} << shift_; }
  void AddChunk();
  size_t SlotsFor(size_t live) const;
  void ReserveRows(uint32_t rows) {  // room for so many, all in all
    if (rows > (chunks_.size() << shift_)) [[unlikely]]
      AddChunks(rows);
  }
  void AddChunks(uint32_t rows);
  void SetFirstChunk(uint32_t shift);
  size_t GrownSlots(uint32_t rows) const;  // their number when they grow for `rows` more
  void GrowSlots(size_t size);
  void FillSlots(size_t size);  // anew, from the rows
  void EraseSlot(uint32_t row);
  void EnsureSlot(uint32_t row);
  uint32_t AppendAt(size_t slot, uint32_t hash, const uint32_t* args, uint32_t output,
                    uint32_t flags) {
    ReserveRows(rows_ + 1);
    const uint32_t row = rows_++;
    ++live_;
    slots_[slot] = {row + 1, hash};
    uint32_t* cells = MutableCells(row);
    for (uint32_t i = 0; i < arguments_; ++i) cells[i] = args[i];
    cells[arguments_] = output;
    cells[arguments_ + 1] = flags;
    return row;
  }
  // The slot of the key, or an empty one.
  static size_t KeySlot(const ColumnIndex& index, uint32_t key);
  void Extend(ColumnIndex& index);
  void ResizeIndex(ColumnIndex& index, size_t slots);
  // Takes the rows from `rows` on out of the index.
  void Shorten(ColumnIndex& index, uint32_t rows);

  uint32_t arguments_;
  uint32_t width_;
  uint32_t rows_ = 0;
  uint32_t live_ = 0;
  uint32_t shift_ = kFirstShift;  // log2 of a chunk's rows; below kChunkShift there is one chunk
  uint32_t kept_ = 0;             // rows at the latest Push()
  uint32_t retired_ = 0;
  uint32_t expected_ = 0;
  uint64_t layout_ = 0;
  std::vector<RowBlock> chunks_;
  ZeroedArray<Slot> slots_;
  size_t used_ = 0;  // slots that are not empty
  std::vector<std::pair<uint64_t, uint32_t>> marks_;
  std::vector<std::unique_ptr<ColumnIndex>> indexes_;
  std::vector<Level> levels_;
  // Of the rows that were there at the latest Push() then: killed and subsumed ones, in order.
  std::vector<uint32_t> killed_;
  std::vector<uint32_t> subsumed_;
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
