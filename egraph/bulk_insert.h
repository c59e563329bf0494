// Rows for many arguments at once, on several threads, with the outcome of one thread that takes
// one after the other.
//
// Entries are filled by pieces, which any thread may take, and sorted by the part of the hash that
// they belong to. A part is worked through by one thread in the order of the entries: it looks them
// up and enters those that are not there, among which it meets equal ones. So the slots of a part
// are in the cache of one processor. New rows are then counted, in order, so that they get the
// numbers that one thread gives them, and written by pieces. One thread alone does all of it entry
// by entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "egraph/table.h"
#include "egraph/worker_pool.h"

namespace l3c::egraph {

class BulkInsert {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kPiece = 256;  // entries that a thread takes at a time

  // Entries [0, count) for `table`.
  struct Job {
    Table* table = nullptr;
    uint32_t count = 0;
    RuleId rule;  // of new rows
    // With `new_classes`, the output of the first new row is this one, that of the next one more,
    // and so on; otherwise an entry has its Output().
    bool new_classes = false;
    uint32_t first_class = 0;
    // Rows that the entries replace, if any, in ascending order: they die, and what comes in the
    // place of one has its rule and is subsumed where it was.
    const uint32_t* replaced = nullptr;
  };

  // Makes room. `pool` may be null: one thread.
  void Begin(const Job& job, WorkerPool* pool);
  uint32_t* Args(uint32_t entry) { return args_.data() + size_t{entry} * arity_; }
  uint32_t& Output(uint32_t entry) { return outputs_[entry]; }

  // Inserts the entries. `fill(from, to)` writes the arguments and outputs of entries [from, to),
  // on any thread, and may read the table's rows. `settle(from, to)` is called, on any thread as
  // well, once these entries have what is below.
  template <typename Fill, typename Settle>
  void Insert(Fill&& fill, Settle&& settle);

  // The row of an entry; whether it is new, of the first entry that has it; the row's output.
  uint32_t Row(uint32_t entry) const { return rows_[entry]; }
  bool IsNew(uint32_t entry) const { return new_[entry] != 0; }
  uint32_t RowOutput(uint32_t entry) const { return row_outputs_[entry]; }
  uint32_t new_rows() const { return new_rows_; }

  // Table::Reserve() on several threads.
  static void Reserve(Table& table, uint32_t rows, WorkerPool* pool);

 private:
  static constexpr uint32_t kParts = 8;  // of a hash

  uint32_t EntryOf(uint32_t row) const;
  uint32_t FlagsFor(uint32_t entry) const;
  // One thread.
  void InsertPiece(uint32_t from, uint32_t to);
  void EndInsertion();
  // Several. Entries that are sorted by part stand at a place.
  void SortPiece(uint32_t piece, uint32_t to);
  void PlacePart(uint32_t part);
  // Looks the entry at `place` up from slot `s` on, before `end`, and enters it where it is not
  // there. False when neither happened.
  bool LookUp(uint32_t place, size_t s, size_t end, uint32_t part);
  void Number();
  void WritePiece(uint32_t piece, uint32_t to);
  void WriteSlots(uint32_t part);
  void SettlePiece(uint32_t from, uint32_t to);
  template <typename Fn>
  void ForPlaces(uint32_t part, Fn&& fn) const;
  static void GrowSlots(Table& table, size_t size, WorkerPool& pool);

  Job job_;
  WorkerPool* pool_ = nullptr;
  uint32_t arity_ = 0;
  uint32_t base_ =
      0;  // rows at the start; base_ + entry names the row of an entry until it has one
  uint32_t new_rows_ = 0;
  uint32_t pieces_ = 0;
  uint32_t part_shift_ = 0;
  bool any_later_ = false;       // entries whose row is that of a later one
  std::vector<uint64_t> dying_;  // bit by row from the first replaced one on
  // By entry.
  std::vector<uint32_t> args_, outputs_, rows_, row_outputs_, hashes_, slots_, places_;
  std::vector<uint8_t> new_;
  // By place; the slots of what is placed there are in slots_.
  std::vector<uint32_t> entries_, found_, found_outputs_;
  std::vector<uint32_t> ends_;  // by piece and part: after its places
  // By part and piece: the entries that are the first with their row, of which the number of the
  // first new row of a piece follows.
  std::vector<uint32_t> firsts_;
  std::vector<uint32_t> numbers_;  // by entry
  struct Part {
    std::vector<uint32_t> left;  // places that found no slot in it
    uint32_t own_slots = 0;      // entries that keep the slot of the row that they replace
  };
  Part parts_[kParts];
};

template <typename Fill, typename Settle>
void BulkInsert::Insert(Fill&& fill, Settle&& settle) {
  const auto end = [this](uint32_t piece) { return std::min(job_.count, (piece + 1) * kPiece); };
  if (pool_ == nullptr) {
    for (uint32_t p = 0; p < pieces_; ++p) {
      fill(p * kPiece, end(p));
      InsertPiece(p * kPiece, end(p));
      if (job_.replaced == nullptr) settle(p * kPiece, end(p));
    }
    if (job_.replaced == nullptr) return;
    EndInsertion();
    for (uint32_t p = 0; p < pieces_; ++p) settle(p * kPiece, end(p));
    return;
  }
  pool_->For(pieces_, [&](uint32_t p) {
    fill(p * kPiece, end(p));
    SortPiece(p, end(p));
  });
  pool_->For(kParts, [&](uint32_t part) { PlacePart(part); });
  Number();
  pool_->For(pieces_, [&](uint32_t p) { WritePiece(p, end(p)); });
  pool_->For(kParts, [&](uint32_t part) {
    WriteSlots(part);
    for (uint32_t p = pieces_ * part / kParts; p < pieces_ * (part + 1) / kParts; ++p) {
      SettlePiece(p * kPiece, end(p));
      settle(p * kPiece, end(p));
    }
  });
}

}  // namespace l3c::egraph
