// Rows for many arguments at once, on several threads, with the outcome of one thread that takes
// one after the other.
//
// Entries are filled and looked up by pieces, which any thread may take, in a table that does not
// change meanwhile. Most are found there. One thread then enters the others in order, among which
// it meets equal ones; it begins where their lookup ended, so nothing that it needs has to be
// searched for. One thread alone does all of it piece by piece.
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
  uint32_t EntryOf(uint32_t row) const;
  uint32_t FlagsFor(uint32_t entry) const;
  // Hashes entries, and finds the first slots that may be theirs.
  void Probe(uint32_t from, uint32_t to);
  // One thread.
  void InsertPiece(uint32_t from, uint32_t to);
  void KillPiece(uint32_t from, uint32_t to);
  void EndInsertion();
  // Several. What a piece does not find is in pending_, from the place of its first entry on.
  void LookUpPiece(uint32_t piece, uint32_t to);
  void Enter(uint32_t entry);
  void EnterPending();
  static void GrowSlots(Table& table, size_t size, WorkerPool& pool);

  Job job_;
  WorkerPool* pool_ = nullptr;
  uint32_t arity_ = 0;
  uint32_t base_ = 0;  // rows at the start
  uint32_t new_rows_ = 0;
  uint32_t pieces_ = 0;
  std::vector<uint64_t> dying_;  // bit by row from the first replaced one on
  // By entry. A row from base_ + job_.count on stands for that of a later entry, which has none
  // yet.
  std::vector<uint32_t> args_, outputs_, rows_, row_outputs_, hashes_, slots_, pending_;
  std::vector<uint8_t> new_;
  // By piece.
  std::vector<uint32_t> pending_counts_;
  std::vector<uint8_t> any_later_;
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
    KillPiece(0, job_.count);
    for (uint32_t p = 0; p < pieces_; ++p) settle(p * kPiece, end(p));
    return;
  }
  pool_->For(pieces_, [&](uint32_t p) {
    fill(p * kPiece, end(p));
    LookUpPiece(p, end(p));
  });
  EnterPending();
  EndInsertion();
  pool_->For(pieces_, [&](uint32_t p) {
    if (job_.replaced != nullptr) KillPiece(p * kPiece, end(p));
    settle(p * kPiece, end(p));
  });
}

}  // namespace l3c::egraph
