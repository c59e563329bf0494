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
  pieces_ = (job.count + kPiece - 1) / kPiece;
  Reserve(table, job.count, pool);
  // So few slots would be shared by all threads anyway.
  pool_ = job.count > 4 * kPiece && table.slots_.size() >= kMinSharedSlots ? pool : nullptr;
  const auto make_room = [](std::vector<uint32_t>& values, size_t size) {
    if (values.size() < size) values.resize(size);
  };
  make_room(args_, size_t{job.count} * arity_);
  for (auto* values : {&outputs_, &rows_, &row_outputs_, &hashes_, &slots_}) {
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
  for (auto* values : {&places_, &entries_, &found_, &found_outputs_, &numbers_}) {
    make_room(*values, job.count);
  }
  make_room(ends_, size_t{pieces_} * kParts);
  firsts_.assign(size_t{pieces_} * kParts, 0);
  part_shift_ = static_cast<uint32_t>(std::countr_zero(table.slots_.size() / kParts));
  for (Part& part : parts_) {
    part.left.clear();
    part.own_slots = 0;
  }
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

// --- One thread

void BulkInsert::InsertPiece(uint32_t from, uint32_t to) {
  Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  for (uint32_t begin = from; begin < to; begin += kTogether) {
    const uint32_t end = std::min(to, begin + kTogether);
    for (uint32_t m = begin; m < end; ++m) {
      hashes_[m] = table.Hash(Args(m));
      table.FetchSlot(hashes_[m]);
    }
    for (uint32_t m = begin; m < end; ++m) slots_[m] = table.Probe(hashes_[m]);
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

template <typename Fn>
void BulkInsert::ForPlaces(uint32_t part, Fn&& fn) const {
  for (uint32_t piece = 0; piece < pieces_; ++piece) {
    const uint32_t end = ends_[piece * kParts + part];
    uint32_t place = part == 0 ? piece * kPiece : ends_[piece * kParts + part - 1];
    for (; place < end; ++place) fn(place);
  }
}

// The places of a piece are its entries, by part and in order.
void BulkInsert::SortPiece(uint32_t piece, uint32_t to) {
  const Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  const uint32_t from = piece * kPiece;
  uint32_t hashes[kPiece];
  uint32_t next[kParts] = {};
  for (uint32_t m = from; m < to; ++m) {
    hashes[m - from] = table.Hash(Args(m));
    ++next[(hashes[m - from] & mask) >> part_shift_];
  }
  uint32_t place = from;
  for (uint32_t part = 0; part < kParts; ++part) {
    const uint32_t begin = place;
    place += next[part];
    next[part] = begin;
    ends_[piece * kParts + part] = place;
  }
  for (uint32_t m = from; m < to; ++m) {
    const uint32_t at = next[(hashes[m - from] & mask) >> part_shift_]++;
    places_[m] = at;
    entries_[at] = m;
    hashes_[at] = hashes[m - from];
  }
}

void BulkInsert::PlacePart(uint32_t part) {
  const Table& table = *job_.table;
  const size_t mask = table.slots_.size() - 1;
  const size_t end = (size_t{part} + 1) << part_shift_;
  uint32_t together[kTogether];
  uint32_t count = 0;
  const auto look_up = [&] {
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t hash = hashes_[together[k]];
      size_t s = hash & mask;
      while (s < end && table.slots_[s].row_plus_1 != 0 && table.slots_[s].hash != hash) ++s;
      slots_[together[k]] = static_cast<uint32_t>(s);
      if (s == end || table.slots_[s].row_plus_1 == 0 || table.slots_[s].row_plus_1 > base_) {
        continue;
      }
      __builtin_prefetch(table.Cells(table.slots_[s].row_plus_1 - 1));
    }
    for (uint32_t k = 0; k < count; ++k) {
      if (!LookUp(together[k], slots_[together[k]], end, part)) {
        parts_[part].left.push_back(together[k]);
      }
    }
    count = 0;
  };
  ForPlaces(part, [&](uint32_t place) {
    table.FetchSlot(hashes_[place]);
    __builtin_prefetch(Args(entries_[place]));
    together[count++] = place;
    if (count == kTogether) look_up();
  });
  look_up();
}

bool BulkInsert::LookUp(uint32_t place, size_t s, size_t end, uint32_t part) {
  Table& table = *job_.table;
  const uint32_t entry = entries_[place];
  const uint32_t* args = Args(entry);
  for (; s < end; ++s) {
    Table::Slot& slot = table.slots_[s];
    if (slot.row_plus_1 == 0) {
      slot = {base_ + entry + 1, hashes_[place]};
      break;
    }
    if (slot.hash != hashes_[place]) continue;
    const uint32_t row = slot.row_plus_1 - 1;
    if (row >= base_) {
      if (!table.SameArgs(Args(row - base_), args)) continue;
      found_[place] = row;
      return true;
    }
    const uint32_t* cells = table.Cells(row);
    if (!table.SameArgs(cells, args) || (cells[arity_ + 1] & Table::kDeadBit) != 0) continue;
    const uint32_t replacing = job_.replaced == nullptr ? kNone : EntryOf(row);
    if (replacing == entry) {  // only its output has changed
      ++parts_[part].own_slots;
      break;
    }
    found_[place] = replacing == kNone ? row : base_ + replacing;
    found_outputs_[place] = cells[arity_];
    return true;
  }
  if (s == end) return false;
  found_[place] = base_ + entry;
  slots_[place] = static_cast<uint32_t>(s);
  ++firsts_[part * pieces_ + entry / kPiece];
  return true;
}

void BulkInsert::Number() {
  Table& table = *job_.table;
  // Runs of slots that reach beyond their part. Equal entries are of one part, so all of them are
  // here if one is.
  const size_t size = table.slots_.size();
  uint32_t own_slots = 0;
  for (uint32_t part = 0; part < kParts; ++part) {
    for (const uint32_t place : parts_[part].left) {
      if (!LookUp(place, hashes_[place] & (size - 1), size, part)) LookUp(place, 0, size, part);
    }
    own_slots += parts_[part].own_slots;
  }
  uint32_t next = base_;
  for (uint32_t piece = 0; piece < pieces_; ++piece) {
    const uint32_t first = next;
    for (uint32_t part = 0; part < kParts; ++part) next += firsts_[part * pieces_ + piece];
    firsts_[piece] = first;  // read above for this piece and the part 0 only
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

void BulkInsert::WritePiece(uint32_t piece, uint32_t to) {
  Table& table = *job_.table;
  uint32_t next = firsts_[piece];
  for (uint32_t m = piece * kPiece; m < to; ++m) {
    const uint32_t flags = FlagsFor(m);
    if (job_.replaced != nullptr) {
      table.MutableCells(job_.replaced[m])[arity_ + 1] = flags | Table::kDeadBit;
    }
    if (found_[places_[m]] != base_ + m) continue;
    numbers_[m] = next;
    uint32_t* cells = table.MutableCells(next++);
    std::copy_n(Args(m), arity_, cells);
    cells[arity_] = job_.new_classes ? job_.first_class + (numbers_[m] - base_) : outputs_[m];
    cells[arity_ + 1] = flags;
  }
}

void BulkInsert::WriteSlots(uint32_t part) {
  ForPlaces(part, [&](uint32_t place) {
    const uint32_t entry = entries_[place];
    if (found_[place] != base_ + entry) return;
    job_.table->slots_[slots_[place]].row_plus_1 = numbers_[entry] + 1;
  });
}

void BulkInsert::SettlePiece(uint32_t from, uint32_t to) {
  for (uint32_t m = from; m < to; ++m) {
    const uint32_t place = places_[m];
    new_[m] = found_[place] == base_ + m;
    if (found_[place] < base_) {
      rows_[m] = found_[place];
      row_outputs_[m] = found_outputs_[place];
      continue;
    }
    const uint32_t first = found_[place] - base_;
    rows_[m] = numbers_[first];
    row_outputs_[m] = job_.new_classes ? job_.first_class + (rows_[m] - base_) : outputs_[first];
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
