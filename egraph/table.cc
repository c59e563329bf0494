#include "egraph/table.h"

#include <algorithm>
#include <cstring>

#include "egraph/hash.h"

namespace l3c::egraph {
namespace {

// The first chunks of a table come from the heap: a table of a few would not fill the huge page
// that it opens.
constexpr size_t kHeapChunks = 4;

// Removes slot `hole` of an open-addressing table by moving later ones back: an entry moves when
// its home is not after the hole.
template <typename Slot, typename IsEmpty, typename Home>
void CloseGap(ZeroedArray<Slot>& slots, size_t hole, IsEmpty is_empty, Home home) {
  const size_t mask = slots.size() - 1;
  for (size_t s = (hole + 1) & mask; !is_empty(slots[s]); s = (s + 1) & mask) {
    if (((s - home(slots[s])) & mask) >= ((s - hole) & mask)) {
      slots[hole] = slots[s];
      hole = s;
    }
  }
  slots[hole] = Slot{};
}

}  // namespace

Table::Table(uint32_t arguments) : arguments_(arguments), width_(arguments + 2) {}

Table::Table(const Table& other) { *this = other; }

Table& Table::operator=(const Table& other) {
  if (this == &other) return *this;
  arguments_ = other.arguments_;
  width_ = other.width_;
  rows_ = other.rows_;
  live_ = other.live_;
  shift_ = other.shift_;
  kept_ = other.kept_;
  chunks_.clear();
  for (const auto& chunk : other.chunks_) {
    AddChunk();
    std::memcpy(chunks_.back().get(), chunk.get(), ChunkWords() * sizeof(uint32_t));
  }
  slots_ = other.slots_;
  used_ = other.used_;
  marks_ = other.marks_;
  indexes_.clear();
  for (const auto& index : other.indexes_) {
    indexes_.push_back(std::make_unique<ColumnIndex>(*index));
  }
  layout_ = other.layout_;
  retired_ = other.retired_;
  levels_ = other.levels_;
  killed_ = other.killed_;
  subsumed_ = other.subsumed_;
  return *this;
}

// --- Rows

uint32_t Table::Hash(const uint32_t* args) const {
  uint64_t h = 0;
  for (uint32_t i = 0; i < arguments_; ++i) h = Mix(h, args[i]);
  return Fold(h);
}

uint32_t Table::Find(const uint32_t* args) const {
  if (slots_.empty()) return kNoRow;
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = Hash(args);
  for (size_t s = hash & mask; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (slots_[s].hash != hash) continue;
    const uint32_t* cells = Cells(slots_[s].row_plus_1 - 1);
    if (SameArgs(cells, args) && (cells[arguments_ + 1] & kDeadBit) == 0) {
      return slots_[s].row_plus_1 - 1;
    }
  }
  return kNoRow;
}

// The number of slots with which `live` rows leave room for a while.
size_t Table::SlotsFor(size_t live) const {
  size_t size = 16;
  while ((live + 1) * 10 > size * 7) size *= 2;
  return size;
}

size_t Table::GrownSlots(uint32_t rows) const {
  const size_t needed = SlotsFor(size_t{live_} + rows);
  return std::clamp(SlotsFor(expected_), needed, 4 * needed);
}

void Table::GrowSlots(size_t size) {
  if (used_ != live_) return FillSlots(size);
  // Nothing to sort out: the slots are copied in order, which are two runs through the new ones.
  const ZeroedArray<Slot> old = std::exchange(slots_, ZeroedArray<Slot>(size));
  const size_t mask = size - 1;
  for (const Slot& slot : old) {
    if (slot.row_plus_1 == 0) continue;
    size_t s = slot.hash & mask;
    while (slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
    slots_[s] = slot;
  }
}

void Table::FillSlots(size_t size) {
  if (slots_.size() == size) {
    std::memset(static_cast<void*>(slots_.begin()), 0, slots_.Bytes());
  } else {
    slots_ = ZeroedArray<Slot>();
    slots_ = ZeroedArray<Slot>(size);
  }
  used_ = live_;
  if (size == 0) return;
  const size_t mask = size - 1;
  for (uint32_t row = 0; row < rows_; ++row) {
    const uint32_t* cells = Cells(row);
    if ((cells[arguments_ + 1] & kDeadBit) != 0) continue;
    const uint32_t hash = Hash(cells);
    size_t s = hash & mask;
    while (slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
    slots_[s] = {row + 1, hash};
  }
}

void Table::EraseSlot(uint32_t row) {
  const size_t mask = slots_.size() - 1;
  size_t s = Hash(Cells(row)) & mask;
  while (slots_[s].row_plus_1 != row + 1) {
    if (slots_[s].row_plus_1 == 0) return;
    s = (s + 1) & mask;
  }
  --used_;
  CloseGap(
      slots_, s, [](const Slot& slot) { return slot.row_plus_1 == 0; },
      [mask](const Slot& slot) { return slot.hash & mask; });
}

void Table::EnsureSlot(uint32_t row) {
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = Hash(Cells(row));
  size_t s = hash & mask;
  for (; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (slots_[s].row_plus_1 == row + 1) return;
  }
  slots_[s] = {row + 1, hash};
  ++used_;
}

void Table::SetFirstChunk(uint32_t shift) {
  RowBlock chunk = MakeRowBlock(size_t{width_} << shift);
  std::memcpy(chunk.get(), chunks_[0].get(), size_t{rows_} * width_ * sizeof(uint32_t));
  chunks_[0] = std::move(chunk);
  shift_ = shift;
}

void Table::Reserve(uint32_t rows) {
  // At most three quarters full.
  if ((used_ + rows) * 4 > slots_.size() * 3) GrowSlots(GrownSlots(rows));
}

void Table::AddChunk() {
  const bool many = chunks_.size() >= kHeapChunks;
  chunks_.push_back(many ? MakeRowBlockInSlab(ChunkWords()) : MakeRowBlock(ChunkWords()));
}

void Table::AddChunks(uint32_t rows) {
  while (rows > (chunks_.size() << shift_)) {
    if (chunks_.empty() || shift_ == kChunkShift) {
      AddChunk();
    } else {
      SetFirstChunk(shift_ + 1);
    }
  }
}

uint32_t Table::Append(const uint32_t* args, uint32_t output, RuleId rule, bool subsumed) {
  Reserve(1);
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = Hash(args);
  size_t s = hash & mask;
  while (slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
  ++used_;
  return AppendAt(s, hash, args, output, rule.index | (subsumed ? kSubsumedBit : 0));
}

std::pair<uint32_t, bool> Table::FindOrAppend(const uint32_t* args, uint32_t output, RuleId rule) {
  Reserve(1);
  const uint32_t hash = Hash(args);
  return FindOrAppendAt(hash & static_cast<uint32_t>(slots_.size() - 1), hash, args, output, rule);
}

std::pair<uint32_t, bool> Table::FindOrAppendAt(uint32_t slot, uint32_t hash, const uint32_t* args,
                                                uint32_t output, RuleId rule) {
  const size_t mask = slots_.size() - 1;
  size_t s = slot;
  for (; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (slots_[s].hash != hash) continue;
    const uint32_t* cells = Cells(slots_[s].row_plus_1 - 1);
    if (SameArgs(cells, args) && (cells[arguments_ + 1] & kDeadBit) == 0) {
      return {slots_[s].row_plus_1 - 1, false};
    }
  }
  ++used_;
  return {AppendAt(s, hash, args, output, rule.index), true};
}

void Table::Kill(uint32_t row) {
  if (row < kept_) killed_.push_back(row);
  MutableCells(row)[arguments_ + 1] |= kDeadBit;
  ++retired_;
  --live_;
}

std::pair<uint32_t, bool> Table::Replace(uint32_t row, const uint32_t* args, uint32_t output) {
  Reserve(1);
  const uint32_t hash = Hash(args);
  return ReplaceAt(hash & static_cast<uint32_t>(slots_.size() - 1), hash, row, args, output);
}

std::pair<uint32_t, bool> Table::ReplaceAt(uint32_t slot, uint32_t hash, uint32_t row,
                                           const uint32_t* args, uint32_t output) {
  const uint32_t flags = Flags(row);
  Kill(row);
  const size_t mask = slots_.size() - 1;
  size_t s = slot;
  for (; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (slots_[s].hash != hash) continue;
    const uint32_t other = slots_[s].row_plus_1 - 1;
    const uint32_t* cells = Cells(other);
    if (!SameArgs(cells, args)) continue;
    // Only the output has changed: the slot passes on.
    if (other == row) return {AppendAt(s, hash, args, output, flags), true};
    if ((cells[arguments_ + 1] & kDeadBit) == 0) return {other, false};
  }
  ++used_;
  return {AppendAt(s, hash, args, output, flags), true};
}

void Table::MarkSubsumed(uint32_t row) {
  uint32_t& flags = MutableCells(row)[arguments_ + 1];
  if (row < kept_ && (flags & kSubsumedBit) == 0) subsumed_.push_back(row);
  flags |= kSubsumedBit;
  ++retired_;
}

void Table::Compact() {
  // Indexes that the latest Push() saw come back at Pop(), the others are built anew when needed.
  indexes_.resize(levels_.empty() ? 0 : levels_.back().indexes.size());
  for (auto& index : indexes_) Shorten(*index, kept_);
  size_t mark = 0;
  uint32_t kept = kept_;
  while (mark < marks_.size() && marks_[mark].second < kept_) ++mark;
  for (uint32_t row = kept_; row < rows_; ++row) {
    for (; mark < marks_.size() && marks_[mark].second == row; ++mark) marks_[mark].second = kept;
    if (!IsLive(row)) continue;
    if (row != kept) std::memcpy(MutableCells(kept), Cells(row), width_ * sizeof(uint32_t));
    ++kept;
  }
  for (; mark < marks_.size(); ++mark) marks_[mark].second = kept;
  if (kept == rows_) return;
  rows_ = kept;
  ++layout_;
  retired_ = 0;
  // A few spare chunks are not worth an allocation; many are.
  const size_t needed = (size_t{rows_} + (size_t{1} << shift_) - 1) >> shift_;
  if (chunks_.size() > needed + 1) chunks_.resize(needed + 1);
  FillSlots(slots_.size());
}

void Table::Mark(uint64_t clock) {
  if (marks_.empty() ? rows_ == 0 : marks_.back().second == rows_) return;
  marks_.emplace_back(clock, rows_);
}

uint32_t Table::RowsAt(uint64_t clock) const {
  auto it = std::upper_bound(marks_.begin(), marks_.end(), clock,
                             [](uint64_t c, const auto& mark) { return c < mark.first; });
  return it == marks_.begin() ? 0 : std::prev(it)->second;
}

// --- Column indexes

const ColumnIndex& Table::Index(uint32_t column) {
  for (auto& index : indexes_) {
    if (index->column_ == column) {
      Extend(*index);
      return *index;
    }
  }
  indexes_.push_back(std::make_unique<ColumnIndex>(column));
  Extend(*indexes_.back());
  return *indexes_.back();
}

inline size_t Table::KeySlot(const ColumnIndex& index, uint32_t key) {
  const size_t mask = index.slots_.size() - 1;
  size_t s = Fold(Mix(0, key)) & mask;
  while (index.slots_[s].newest_plus_1 != 0 && index.slots_[s].key != key) s = (s + 1) & mask;
  return s;
}

void Table::ResizeIndex(ColumnIndex& index, size_t size) {
  const ZeroedArray<ColumnIndex::Slot> old =
      std::exchange(index.slots_, ZeroedArray<ColumnIndex::Slot>(size));
  const size_t mask = size - 1;
  for (const ColumnIndex::Slot& slot : old) {
    if (slot.newest_plus_1 == 0) continue;
    size_t s = Fold(Mix(0, slot.key)) & mask;
    while (index.slots_[s].newest_plus_1 != 0) s = (s + 1) & mask;
    index.slots_[s] = slot;
  }
}

void Table::Extend(ColumnIndex& index) {
  uint32_t row = index.indexed();
  if (row == rows_) return;
  index.next_.resize(rows_, ColumnIndex::kLeftOut);
  for (; row < rows_; ++row) {
    const uint32_t* cells = Cells(row);
    if ((cells[arguments_ + 1] & kDeadBit) != 0) continue;
    if ((size_t{index.keys_} + 1) * 3 > index.slots_.size() * 2) {
      ResizeIndex(index, std::max<size_t>(16, index.slots_.size() * 2));
    }
    const uint32_t key = cells[index.column_];
    ColumnIndex::Slot& slot = index.slots_[KeySlot(index, key)];
    index.keys_ += slot.newest_plus_1 == 0;
    index.next_[row] = slot.newest_plus_1 - 1;  // kEnd where it is the first
    slot.newest_plus_1 = row + 1;
    slot.key = key;
  }
}

void Table::Shorten(ColumnIndex& index, uint32_t rows) {
  if (index.indexed() <= rows) return;
  for (uint32_t row = index.indexed(); row-- > rows;) {
    const uint32_t next = index.next_[row];
    if (next == ColumnIndex::kLeftOut) continue;
    const size_t s = KeySlot(index, Get(row, index.column_));
    ColumnIndex::Slot& slot = index.slots_[s];
    slot.newest_plus_1 = next + 1;
    if (next != ColumnIndex::kEnd) continue;
    --index.keys_;
    const size_t mask = index.slots_.size() - 1;
    CloseGap(
        index.slots_, s, [](const ColumnIndex::Slot& other) { return other.newest_plus_1 == 0; },
        [mask](const ColumnIndex::Slot& other) { return Fold(Mix(0, other.key)) & mask; });
  }
  index.next_.Truncate(rows, index.next_.capacity());
}

uint32_t Table::Newest(const ColumnIndex& index, uint32_t key) const {
  if (index.slots_.empty()) return ColumnIndex::kEnd;
  // Less 1, no row is kEnd.
  return index.slots_[KeySlot(index, key)].newest_plus_1 - 1;
}

// --- Undo

void Table::Push() {
  Level level{rows_, live_,          shift_,        retired_,       layout_,          slots_.size(),
              used_, chunks_.size(), marks_.size(), killed_.size(), subsumed_.size(), {}};
  for (const auto& index : indexes_) {
    level.indexes.push_back({index->indexed(), index->slots_.size(), index->next_.capacity()});
  }
  levels_.push_back(std::move(level));
  kept_ = rows_;
}

void Table::Pop() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  kept_ = levels_.empty() ? 0 : levels_.back().rows;

  // The keys of rows that go are read once more.
  indexes_.resize(level.indexes.size());
  for (size_t i = 0; i < indexes_.size(); ++i) {
    ColumnIndex& index = *indexes_[i];
    Shorten(index, level.indexes[i].indexed);
    index.next_.Truncate(level.indexes[i].indexed, level.indexes[i].capacity);
    if (index.slots_.size() != level.indexes[i].slots) ResizeIndex(index, level.indexes[i].slots);
  }

  const bool same_slots = slots_.size() == level.slots;
  if (same_slots) {
    for (uint32_t row = level.rows; row < rows_; ++row) EraseSlot(row);
  }
  rows_ = level.rows;
  live_ = level.live;
  layout_ = level.layout;
  retired_ = level.retired;
  for (size_t i = level.killed; i < killed_.size(); ++i) {
    MutableCells(killed_[i])[arguments_ + 1] &= ~kDeadBit;
    if (same_slots) EnsureSlot(killed_[i]);
  }
  killed_.resize(level.killed);
  for (size_t i = level.subsumed; i < subsumed_.size(); ++i) {
    MutableCells(subsumed_[i])[arguments_ + 1] &= ~kSubsumedBit;
  }
  subsumed_.resize(level.subsumed);
  marks_.resize(level.marks);
  chunks_.resize(level.chunks);
  if (shift_ != level.shift) {
    if (chunks_.empty()) {
      shift_ = level.shift;
    } else {
      SetFirstChunk(level.shift);
    }
  }
  if (!same_slots) FillSlots(level.slots);
  // Slots of dead rows that have gone since count as if they were there, so that the slots grow
  // when they would have.
  used_ = level.used;
}

void Table::DropLevel() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  kept_ = levels_.empty() ? 0 : levels_.back().rows;
  const auto forget = [this](std::vector<uint32_t>& rows, size_t first) {
    const auto begin = rows.begin() + static_cast<ptrdiff_t>(first);
    rows.erase(std::remove_if(begin, rows.end(), [this](uint32_t row) { return row >= kept_; }),
               rows.end());
  };
  forget(killed_, level.killed);
  forget(subsumed_, level.subsumed);
}

// --- Memory

// The small lists count by their length: what Pop() brings back must not depend on what they once
// held.
size_t Table::Bytes() const {
  size_t bytes = sizeof(Table) + slots_.Bytes() + chunks_.size() * ChunkWords() * sizeof(uint32_t) +
                 marks_.size() * sizeof(marks_[0]) + levels_.size() * sizeof(Level) +
                 (killed_.size() + subsumed_.size()) * sizeof(uint32_t);
  for (const auto& index : indexes_) bytes += index->Bytes();
  return bytes;
}

size_t Table::BytesWith(uint32_t rows) const {
  size_t bytes = Bytes();
  if ((used_ + rows) * 4 > slots_.size() * 3) {
    bytes += GrownSlots(rows) * sizeof(Slot);
  }
  const size_t room = (chunks_.size() << shift_) - rows_;
  if (rows > room) {
    const size_t chunk = (size_t{width_} << kChunkShift) * sizeof(uint32_t);
    if (chunks_.size() * chunk == 0 || shift_ != kChunkShift) {
      bytes += 2 * size_t{rows_ + rows} * width_ * sizeof(uint32_t);
    } else {
      bytes += ((rows - room) >> kChunkShift) * chunk + chunk;
    }
  }
  return bytes;
}

}  // namespace l3c::egraph
