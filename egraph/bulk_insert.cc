#include "egraph/bulk_insert.h"

#include <bit>
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
  any_later_ = false;
  Reserve(table, job.count, pool);
  // So few slots would be shared by all threads anyway.
  pool_ = job.count > kPiece && table.slots_.size() >= kMinSharedSlots ? pool : nullptr;
  const auto make_room = [&](std::vector<uint32_t>& values, size_t size) {
    if (values.size() < size) values.resize(size);
  };
  make_room(args_, size_t{job.count} * arity_);
  for (auto* values : {&hashes_, &slots_, &rows_, &outputs_, &row_outputs_}) {
    make_room(*values, job.count);
  }
  if (new_.size() < job.count) new_.resize(job.count);
  if (job.replaced != nullptr) {
    const uint32_t first = job.replaced[0];
    dying_.assign((job.replaced[job.count - 1] - first) / 64 + 1, 0);
    for (uint32_t m = 0; m < job.count; ++m) {
      const uint32_t place = job.replaced[m] - first;
      dying_[place / 64] |= uint64_t{1} << (place % 64);
    }
  }
  if (pool_ == nullptr) return;
  make_room(numbers_, job.count);
  make_room(open_, job.count);
  make_room(ends_, size_t{(job.count + kPiece - 1) / kPiece} * kParts);
  part_shift_ = static_cast<uint32_t>(std::countr_zero(table.slots_.size() / kParts));
  for (auto& left : left_) left.clear();
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

void BulkInsert::Fetch(uint32_t from, uint32_t to) {
  const Table& table = *job_.table;
  for (uint32_t m = from; m < to; ++m) {
    hashes_[m] = table.Hash(Args(m));
    table.FetchSlot(hashes_[m]);
  }
  for (uint32_t m = from; m < to; ++m) slots_[m] = table.Probe(hashes_[m]);
}

// --- One thread

void BulkInsert::InsertPiece(uint32_t from, uint32_t to) {
  Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  for (uint32_t begin = from; begin < to; begin += kTogether) {
    const uint32_t end = std::min(to, begin + kTogether);
    Fetch(begin, end);
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
          any_later_ = true;
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

void BulkInsert::EndInsertion() {
  Table& table = *job_.table;
  for (uint32_t m = 0; m < job_.count; ++m) table.Kill(job_.replaced[m]);
  if (!any_later_) return;
  for (uint32_t m = 0; m < job_.count; ++m) {
    if (rows_[m] < base_ + job_.count) continue;
    const uint32_t later = rows_[m] - base_ - job_.count;
    rows_[m] = rows_[later];
    row_outputs_[m] = row_outputs_[later];
  }
}

// --- Several threads

void BulkInsert::FindPiece(uint32_t piece, uint32_t to) {
  const Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  const uint32_t from = piece * kPiece;
  uint32_t counts[kParts] = {};
  for (uint32_t begin = from; begin < to; begin += kTogether) {
    const uint32_t end = std::min(to, begin + kTogether);
    Fetch(begin, end);
    for (uint32_t m = begin; m < end; ++m) {
      const uint32_t* args = Args(m);
      size_t s = slots_[m];
      rows_[m] = base_ + m;
      new_[m] = 1;  // to be placed
      for (; table.slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
        if (table.slots_[s].hash != hashes_[m]) continue;
        const uint32_t row = table.slots_[s].row_plus_1 - 1;
        const uint32_t* cells = table.Cells(row);
        if (!table.SameArgs(cells, args) || (cells[arity_ + 1] & Table::kDeadBit) != 0) continue;
        const uint32_t replacing = job_.replaced == nullptr ? kNone : EntryOf(row);
        rows_[m] = replacing == kNone ? row : base_ + replacing;
        row_outputs_[m] = cells[arity_];
        new_[m] = 0;
        break;
      }
      slots_[m] = static_cast<uint32_t>(s);
      counts[PartOf(hashes_[m] & mask)] += new_[m];
    }
  }
  // The entries to be placed, in order within each part.
  uint32_t place = from;
  for (uint32_t part = 0; part < kParts; ++part) {
    const uint32_t begin = place;
    place += counts[part];
    counts[part] = begin;
    ends_[piece * kParts + part] = place;
  }
  for (uint32_t m = from; m < to; ++m) {
    if (new_[m] != 0) open_[counts[PartOf(hashes_[m] & mask)]++] = m;
  }
}

bool BulkInsert::Place(uint32_t m, size_t end) {
  Table& table = *job_.table;
  for (size_t s = slots_[m]; s < end; ++s) {
    Table::Slot& slot = table.slots_[s];
    if (slot.row_plus_1 == 0) {
      slot = {base_ + m + 1, hashes_[m]};
      slots_[m] = static_cast<uint32_t>(s);
      return true;
    }
    // What was there before is not equal: it would have been found.
    if (slot.hash != hashes_[m] || slot.row_plus_1 <= base_) continue;
    const uint32_t other = slot.row_plus_1 - 1 - base_;
    if (!table.SameArgs(Args(other), Args(m))) continue;
    rows_[m] = base_ + other;
    return true;
  }
  return false;
}

void BulkInsert::PlacePart(uint32_t part, uint32_t pieces) {
  constexpr uint32_t kAhead = 8;
  Table& table = *job_.table;
  const size_t first = size_t{part} << part_shift_;
  const size_t end = first + (size_t{1} << part_shift_);
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    const uint32_t to = ends_[piece * kParts + part];
    uint32_t i = part == 0 ? piece * kPiece : ends_[piece * kParts + part - 1];
    for (uint32_t k = i; k < std::min(to, i + kAhead); ++k) {
      __builtin_prefetch(&table.slots_[slots_[open_[k]]], 1);
    }
    for (; i < to; ++i) {
      if (i + kAhead < to) __builtin_prefetch(&table.slots_[slots_[open_[i + kAhead]]], 1);
      const uint32_t m = open_[i];
      if (slots_[m] < first || slots_[m] >= end || !Place(m, end)) left_[part].push_back(m);
    }
  }
}

void BulkInsert::Number() {
  Table& table = *job_.table;
  // Runs of slots that reach beyond their part. Equal entries are of one part, so all of them are
  // here if one is.
  for (const auto& left : left_) {
    for (const uint32_t m : left) {
      if (Place(m, table.slots_.size())) continue;
      slots_[m] = 0;
      Place(m, table.slots_.size());
    }
  }
  uint32_t next = base_;
  uint32_t own_slots = 0;
  for (uint32_t m = 0; m < job_.count; ++m) {
    numbers_[m] = next;
    const bool first = rows_[m] == base_ + m;
    own_slots += first && new_[m] == 0;  // it has the slot of the row that it replaces
    next += first;
  }
  new_rows_ = next - base_;
  table.ReserveRows(next);
  table.rows_ = next;
  table.live_ += new_rows_;
  table.used_ += new_rows_ - own_slots;
  if (job_.replaced == nullptr) return;
  table.live_ -= job_.count;
  table.retired_ += job_.count;
  for (uint32_t m = 0; m < job_.count && job_.replaced[m] < table.kept_; ++m) {
    table.killed_.push_back(job_.replaced[m]);
  }
}

void BulkInsert::WritePiece(uint32_t from, uint32_t to) {
  Table& table = *job_.table;
  for (uint32_t m = from; m < to; ++m) {
    const uint32_t flags = FlagsFor(m);
    if (job_.replaced != nullptr) {
      table.MutableCells(job_.replaced[m])[arity_ + 1] = flags | Table::kDeadBit;
    }
    const uint32_t first = rows_[m] - base_;
    new_[m] = 0;
    if (rows_[m] < base_) continue;
    const uint32_t row = numbers_[first];
    row_outputs_[m] = job_.new_classes ? job_.first_class + (row - base_) : outputs_[first];
    rows_[m] = row;
    if (first != m) continue;
    new_[m] = 1;
    table.slots_[slots_[m]] = {row + 1, hashes_[m]};
    uint32_t* cells = table.MutableCells(row);
    std::copy_n(Args(m), arity_, cells);
    cells[arity_] = row_outputs_[m];
    cells[arity_ + 1] = flags;
  }
}

// --- Room

void BulkInsert::Reserve(Table& table, uint32_t rows, WorkerPool* pool) {
  if ((table.used_ + rows) * 4 <= table.slots_.size() * 3) return;
  const size_t size = table.SlotsFor(table.live_ + rows);
  if (pool == nullptr || table.used_ != table.live_ || table.slots_.size() < kMinSharedSlots) {
    table.GrowSlots(table.live_ + rows);
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
