#include "egraph/bulk_insert.h"

#include <utility>

namespace l3c::egraph {
namespace {

// Lookups whose waits for memory overlap.
constexpr uint32_t kTogether = 64;
// Fewer slots are copied sooner than threads are told to.
constexpr size_t kMinSharedSlots = size_t{1} << 16;

}  // namespace

void BulkInsert::Begin(const Job& job, WorkerPool* pool) {
  job_ = job;
  Table& table = *job.table;
  arity_ = table.arguments();
  base_ = table.row_count();
  new_rows_ = 0;
  pieces_ = (job.count + kPiece - 1) / kPiece;
  Reserve(table, job.count, pool);
  // With fewer entries, threads would be told of more than they do.
  pool_ = job.count > 4 * kPiece ? pool : nullptr;
  const auto make_room = [](auto& values, size_t size) {
    if (values.size() < size) values.resize(size);
  };
  make_room(args_, size_t{job.count} * arity_);
  for (auto* values : {&outputs_, &rows_, &row_outputs_, &hashes_, &slots_}) {
    make_room(*values, job.count);
  }
  make_room(new_, job.count);
  any_later_.assign(pieces_, 0);
  if (job.replaced != nullptr) {
    const uint32_t first = job.replaced[0];
    dying_.assign((job.replaced[job.count - 1] - first) / 64 + 1, 0);
    for (uint32_t m = 0; m < job.count; ++m) {
      const uint32_t place = job.replaced[m] - first;
      dying_[place / 64] |= uint64_t{1} << (place % 64);
    }
  }
  if (pool_ == nullptr) return;
  make_room(pending_, job.count);
  make_room(pending_counts_, pieces_);
}

uint32_t BulkInsert::EntryOf(uint32_t row) const {
  const uint32_t place = row - job_.replaced[0];
  if (row < job_.replaced[0] || row > job_.replaced[job_.count - 1]) return kNone;
  if ((dying_[place / 64] >> (place % 64) & 1) == 0) return kNone;
  const uint32_t* end = job_.replaced + job_.count;
  return static_cast<uint32_t>(std::lower_bound(job_.replaced, end, row) - job_.replaced);
}

uint32_t BulkInsert::FlagsFor(uint32_t entry) const {
  return job_.replaced == nullptr ? job_.rule.index : job_.table->Flags(job_.replaced[entry]);
}

void BulkInsert::Probe(uint32_t from, uint32_t to) {
  const Table& table = *job_.table;
  for (uint32_t m = from; m < to; ++m) {
    hashes_[m] = table.Hash(Args(m));
    table.FetchSlot(hashes_[m]);
  }
  for (uint32_t m = from; m < to; ++m) slots_[m] = table.Probe(hashes_[m]);
}

// Marks the replaced rows of entries dead, when all that took their places are there.
void BulkInsert::KillPiece(uint32_t from, uint32_t to) {
  Table& table = *job_.table;
  for (uint32_t m = from; m < to; ++m) {
    table.MutableCells(job_.replaced[m])[arity_ + 1] |= Table::kDeadBit;
  }
}

// Counts the replaced rows as dead, and gives entries that met the row of a later one its new row.
void BulkInsert::EndInsertion() {
  if (job_.replaced == nullptr) return;
  Table& table = *job_.table;
  table.live_ -= job_.count;
  table.retired_ += job_.count;
  for (uint32_t m = 0; m < job_.count && job_.replaced[m] < table.kept_; ++m) {
    table.killed_.push_back(job_.replaced[m]);
  }
  for (uint32_t piece = 0; piece < pieces_; ++piece) {
    if (any_later_[piece] == 0) continue;
    const uint32_t end = std::min(job_.count, (piece + 1) * kPiece);
    for (uint32_t m = piece * kPiece; m < end; ++m) {
      if (rows_[m] < base_ + job_.count) continue;
      const uint32_t later = rows_[m] - base_ - job_.count;
      rows_[m] = rows_[later];
      row_outputs_[m] = row_outputs_[later];
    }
  }
}

// --- One thread

void BulkInsert::InsertPiece(uint32_t from, uint32_t to) {
  Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  for (uint32_t begin = from; begin < to; begin += kTogether) {
    const uint32_t end = std::min(to, begin + kTogether);
    Probe(begin, end);
    for (uint32_t m = begin; m < end; ++m) {
      const uint32_t* args = Args(m);
      size_t s = slots_[m];
      bool own_slot = false;
      new_[m] = 1;
      for (; table.slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
        if (table.slots_[s].hash != hashes_[m]) continue;
        const uint32_t row = table.slots_[s].row_plus_1 - 1;
        const uint32_t* cells = table.Cells(row);
        if (!table.SameArgs(cells, args) || (cells[arity_ + 1] & Table::kDeadBit) != 0) continue;
        const uint32_t replacing = job_.replaced == nullptr ? kNone : EntryOf(row);
        own_slot = replacing == m;  // only its output has changed
        if (own_slot) break;
        new_[m] = 0;
        rows_[m] = row;
        row_outputs_[m] = cells[arity_];
        if (replacing != kNone) {
          any_later_[from / kPiece] = 1;
          rows_[m] = base_ + job_.count + replacing;
        }
        break;
      }
      if (new_[m] == 0) continue;
      table.used_ += own_slot ? 0 : 1;
      row_outputs_[m] = job_.new_classes ? job_.first_class + new_rows_ : outputs_[m];
      rows_[m] = table.AppendAt(s, hashes_[m], args, row_outputs_[m], FlagsFor(m));
      ++new_rows_;
    }
  }
}

// --- Several threads

void BulkInsert::LookUpPiece(uint32_t piece, uint32_t to) {
  const Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  const uint32_t from = piece * kPiece;
  uint32_t pending = from;
  for (uint32_t begin = from; begin < to; begin += kTogether) {
    const uint32_t end = std::min(to, begin + kTogether);
    Probe(begin, end);
    for (uint32_t m = begin; m < end; ++m) {
      const uint32_t* args = Args(m);
      size_t s = slots_[m];
      new_[m] = 1;
      for (; table.slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
        if (table.slots_[s].hash != hashes_[m]) continue;
        const uint32_t row = table.slots_[s].row_plus_1 - 1;
        const uint32_t* cells = table.Cells(row);
        if (!table.SameArgs(cells, args) || (cells[arity_ + 1] & Table::kDeadBit) != 0) continue;
        const uint32_t replacing = job_.replaced == nullptr ? kNone : EntryOf(row);
        if (replacing == m) break;  // its slot passes on to what it becomes
        new_[m] = 0;
        rows_[m] = row;
        row_outputs_[m] = cells[arity_];
        if (replacing != kNone) {
          any_later_[piece] = 1;
          rows_[m] = base_ + job_.count + replacing;
        }
        break;
      }
      if (new_[m] == 0) continue;
      slots_[m] = static_cast<uint32_t>(s);
      pending_[pending++] = m;
    }
  }
  pending_counts_[piece] = pending - from;
}

// Since an entry was looked up, slots that were empty have been taken, by rows from base_ on.
void BulkInsert::Enter(uint32_t m) {
  Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  const uint32_t* args = Args(m);
  size_t s = slots_[m];
  bool own_slot = false;
  for (; table.slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (table.slots_[s].hash != hashes_[m]) continue;
    const uint32_t row = table.slots_[s].row_plus_1 - 1;
    const uint32_t* cells = table.Cells(row);
    if (!table.SameArgs(cells, args)) continue;
    own_slot = row < base_;
    if (own_slot) break;
    new_[m] = 0;
    rows_[m] = row;
    row_outputs_[m] = cells[arity_];
    return;
  }
  table.used_ += own_slot ? 0 : 1;
  row_outputs_[m] = job_.new_classes ? job_.first_class + new_rows_ : outputs_[m];
  rows_[m] = table.AppendAt(s, hashes_[m], args, row_outputs_[m], FlagsFor(m));
  ++new_rows_;
}

void BulkInsert::EnterPending() {
  // So far ahead the slots, which another processor may have, are asked for.
  constexpr uint32_t kAhead = 16;
  const Table& table = *job_.table;
  const auto fetch = [&](uint32_t m) {
    __builtin_prefetch(&table.slots_[slots_[m]], 1);
    if (job_.replaced != nullptr) __builtin_prefetch(table.Cells(job_.replaced[m]) + arity_ + 1);
  };
  for (uint32_t piece = 0; piece < pieces_; ++piece) {
    const uint32_t* pending = &pending_[piece * kPiece];
    const uint32_t count = pending_counts_[piece];
    for (uint32_t i = 0; i < std::min(count, kAhead); ++i) fetch(pending[i]);
    for (uint32_t i = 0; i < count; ++i) {
      if (i + kAhead < count) fetch(pending[i + kAhead]);
      Enter(pending[i]);
    }
  }
}

// --- Room

void BulkInsert::Reserve(Table& table, uint32_t rows, WorkerPool* pool) {
  if ((table.used_ + rows) * 4 <= table.slots_.size() * 3) return;
  const size_t size = table.GrownSlots(rows);
  if (pool == nullptr || table.used_ != table.live_ || table.slots_.size() < kMinSharedSlots) {
    table.GrowSlots(size);
  } else {
    GrowSlots(table, size, *pool);
  }
}

// The slots are copied by stretches of the old ones. One goes to as many stretches of the new ones
// as these are longer; what a run of slots carries beyond its stretch is put in its place
// afterwards.
void BulkInsert::GrowSlots(Table& table, size_t size, WorkerPool& pool) {
  constexpr uint32_t kStretches = 32;
  const ZeroedArray<Table::Slot> old = std::exchange(table.slots_, ZeroedArray<Table::Slot>(size));
  const size_t length = old.size() / kStretches;
  const size_t old_mask = old.size() - 1;
  const size_t mask = size - 1;
  std::vector<Table::Slot> left[kStretches];
  // Threads that begin on one huge page together would each clear one for it, so turns that follow
  // each other are far apart.
  pool.For(kStretches, [&](uint32_t turn) {
    const uint32_t stretch = turn % 4 * (kStretches / 4) + turn / 4;
    const size_t from = stretch * length;
    for (size_t i = from; i < from + length; ++i) {
      if (old[i].row_plus_1 == 0) continue;
      size_t s = old[i].hash & mask;
      // At home in the stretch before, or in the last one.
      bool outside = ((s & old_mask) - from) >= length;
      while (!outside && table.slots_[s].row_plus_1 != 0) {
        ++s;
        outside = (s & old_mask) - from >= length;
      }
      if (outside) {
        left[stretch].push_back(old[i]);
      } else {
        table.slots_[s] = old[i];
      }
    }
  });
  for (const auto& slots : left) {
    for (const Table::Slot& slot : slots) {
      size_t s = slot.hash & mask;
      while (table.slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
      table.slots_[s] = slot;
    }
  }
}

}  // namespace l3c::egraph
