#include "egraph/table.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace l3c::egraph {
namespace {

// Multiplicative hashing with a fixed multiplier (2^64 / golden ratio): same input, same layout.
inline uint64_t Mix(uint64_t hash, uint32_t x) {
  return (std::rotl(hash, 23) ^ x) * 0x9e3779b97f4a7c15u;
}
inline uint32_t Fold(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

ColumnIndex::ColumnIndex(uint64_t mask) : mask_(mask) {
  for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    key_columns_.push_back(static_cast<uint32_t>(std::countr_zero(rest)));
  }
}

Table::Table(uint32_t arguments) : arguments_(arguments) {}

Table::Table(const Table& other) { *this = other; }

Table& Table::operator=(const Table& other) {
  if (this == &other) return *this;
  arguments_ = other.arguments_;
  rows_ = other.rows_;
  live_ = other.live_;
  shift_ = other.shift_;
  chunks_.clear();
  const size_t words = size_t{width()} << shift_;
  for (const auto& chunk : other.chunks_) {
    chunks_.push_back(std::make_unique<uint32_t[]>(words));
    std::memcpy(chunks_.back().get(), chunk.get(), words * sizeof(uint32_t));
  }
  slots_ = other.slots_;
  marks_ = other.marks_;
  indexes_.clear();
  layout_ = std::max(layout_, other.layout_) + 1;
  retired_ = 0;
  return *this;
}

uint32_t Table::Hash(const uint32_t* args) const {
  uint64_t h = 0;
  for (uint32_t i = 0; i < arguments_; ++i) h = Mix(h, args[i]);
  return Fold(h);
}

uint32_t Table::HashRow(uint32_t row) const {
  uint64_t h = 0;
  const uint32_t* cell = Cell(row, 0);
  for (uint32_t i = 0; i < arguments_; ++i, cell += size_t{1} << shift_) h = Mix(h, *cell);
  return Fold(h);
}

bool Table::SameArgs(uint32_t row, const uint32_t* args) const {
  const uint32_t* cell = Cell(row, 0);
  for (uint32_t i = 0; i < arguments_; ++i, cell += size_t{1} << shift_) {
    if (*cell != args[i]) return false;
  }
  return true;
}

uint32_t Table::Find(const uint32_t* args) const {
  if (slots_.empty()) return kNoRow;
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = Hash(args);
  for (size_t s = hash & mask; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (slots_[s].hash == hash && SameArgs(slots_[s].row_plus_1 - 1, args)) {
      return slots_[s].row_plus_1 - 1;
    }
  }
  return kNoRow;
}

void Table::GrowSlots() {
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(std::max<size_t>(16, old.size() * 2), Slot{});
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.row_plus_1 == 0) continue;
    size_t s = slot.hash & mask;
    while (slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
    slots_[s] = slot;
  }
}

void Table::RebuildSlots() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  const size_t mask = slots_.size() - 1;
  for (uint32_t row = 0; row < rows_; ++row) {
    if (!IsLive(row)) continue;
    const uint32_t hash = HashRow(row);
    size_t s = hash & mask;
    while (slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
    slots_[s] = {row + 1, hash};
  }
}

void Table::ReserveRow() {
  // At most three quarters full.
  if ((size_t{live_} + 1) * 4 > slots_.size() * 3) GrowSlots();
  if (rows_ < (chunks_.size() << shift_)) return;
  if (chunks_.empty() || shift_ == kChunkShift) {
    chunks_.push_back(std::make_unique<uint32_t[]>(size_t{width()} << shift_));
    return;
  }
  // One chunk, not yet of full size: twice as large, its columns further apart.
  auto wider = std::make_unique<uint32_t[]>(size_t{width()} << (shift_ + 1));
  for (uint32_t c = 0; c < width(); ++c) {
    std::memcpy(wider.get() + (size_t{c} << (shift_ + 1)), chunks_[0].get() + (size_t{c} << shift_),
                rows_ * sizeof(uint32_t));
  }
  chunks_[0] = std::move(wider);
  ++shift_;
}

uint32_t Table::AppendAt(size_t slot, uint32_t hash, const uint32_t* args, uint32_t output,
                         uint32_t provenance) {
  const uint32_t row = rows_++;
  ++live_;
  slots_[slot] = {row + 1, hash};
  uint32_t* cell = Cell(row, 0);
  const size_t stride = size_t{1} << shift_;
  for (uint32_t i = 0; i < arguments_; ++i, cell += stride) *cell = args[i];
  *cell = output;
  cell[stride] = provenance;
  return row;
}

uint32_t Table::Append(const uint32_t* args, uint32_t output, RuleId rule, bool subsumed) {
  ReserveRow();
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = Hash(args);
  size_t s = hash & mask;
  while (slots_[s].row_plus_1 != 0) s = (s + 1) & mask;
  return AppendAt(s, hash, args, output, rule.index | (subsumed ? kSubsumedBit : 0));
}

std::pair<uint32_t, bool> Table::FindOrAppend(const uint32_t* args, uint32_t output, RuleId rule) {
  ReserveRow();
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = Hash(args);
  size_t s = hash & mask;
  for (; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    if (slots_[s].hash == hash && SameArgs(slots_[s].row_plus_1 - 1, args)) {
      return {slots_[s].row_plus_1 - 1, false};
    }
  }
  return {AppendAt(s, hash, args, output, rule.index), true};
}

void Table::Kill(uint32_t row) {
  const size_t mask = slots_.size() - 1;
  size_t hole = HashRow(row) & mask;
  while (slots_[hole].row_plus_1 != row + 1) hole = (hole + 1) & mask;
  // Close the gap: an entry moves back when its home is not after the hole.
  for (size_t s = (hole + 1) & mask; slots_[s].row_plus_1 != 0; s = (s + 1) & mask) {
    const size_t home = slots_[s].hash & mask;
    if (((s - home) & mask) >= ((s - hole) & mask)) {
      slots_[hole] = slots_[s];
      hole = s;
    }
  }
  slots_[hole] = Slot{};
  *Cell(row, arguments_ + 1) |= kDeadBit;
  ++retired_;
  --live_;
}

void Table::Compact() {
  indexes_.clear();
  if (live_ == rows_) return;
  ++layout_;
  retired_ = 0;
  size_t mark = 0;
  uint32_t kept = 0;
  for (uint32_t row = 0; row < rows_; ++row) {
    for (; mark < marks_.size() && marks_[mark].second == row; ++mark) marks_[mark].second = kept;
    if (!IsLive(row)) continue;
    if (row != kept) {
      for (uint32_t c = 0; c < width(); ++c) *Cell(kept, c) = *Cell(row, c);
    }
    ++kept;
  }
  for (; mark < marks_.size(); ++mark) marks_[mark].second = kept;
  rows_ = kept;
  // A few spare chunks are not worth an allocation; many are.
  const size_t needed = (size_t{rows_} + (size_t{1} << shift_) - 1) >> shift_;
  if (chunks_.size() > needed + 1) chunks_.resize(needed + 1);
  RebuildSlots();
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

const ColumnIndex* Table::BestIndex(uint64_t mask) const {
  const ColumnIndex* best = nullptr;
  for (const auto& index : indexes_) {
    if ((index->mask_ & ~mask) != 0) continue;
    if (best == nullptr || index->RowsPerProbe() < best->RowsPerProbe()) best = index.get();
  }
  return best;
}

const ColumnIndex& Table::Index(uint64_t mask) {
  for (auto& index : indexes_) {
    if (index->mask_ == mask) {
      Extend(*index);
      return *index;
    }
  }
  indexes_.push_back(std::make_unique<ColumnIndex>(mask));
  Extend(*indexes_.back());
  return *indexes_.back();
}

uint32_t Table::HashKey(const ColumnIndex& index, uint32_t row) const {
  uint64_t h = 0;
  for (uint32_t c : index.key_columns_) h = Mix(h, Get(row, c));
  return Fold(h);
}

bool Table::SameKey(const ColumnIndex& index, uint32_t row, uint32_t other) const {
  for (uint32_t c : index.key_columns_) {
    if (Get(row, c) != Get(other, c)) return false;
  }
  return true;
}

void Table::GrowIndex(ColumnIndex& index) {
  std::vector<ColumnIndex::Slot> old = std::move(index.slots_);
  index.slots_.assign(std::max<size_t>(16, old.size() * 2), ColumnIndex::Slot{});
  const size_t mask = index.slots_.size() - 1;
  for (const ColumnIndex::Slot& slot : old) {
    if (slot.newest == ColumnIndex::kEnd) continue;
    size_t s = HashKey(index, slot.newest) & mask;
    while (index.slots_[s].newest != ColumnIndex::kEnd) s = (s + 1) & mask;
    index.slots_[s] = slot;
  }
}

void Table::Extend(ColumnIndex& index) {
  if (index.indexed_ == rows_) return;
  index.next_.resize(rows_, ColumnIndex::kEnd);
  for (uint32_t row = index.indexed_; row < rows_; ++row) {
    if (!IsLive(row)) continue;
    if ((size_t{index.keys_} + 1) * 3 > index.slots_.size() * 2) GrowIndex(index);
    const size_t mask = index.slots_.size() - 1;
    size_t s = HashKey(index, row) & mask;
    while (index.slots_[s].newest != ColumnIndex::kEnd &&
           !SameKey(index, index.slots_[s].newest, row)) {
      s = (s + 1) & mask;
    }
    ColumnIndex::Slot& slot = index.slots_[s];
    index.keys_ += slot.newest == ColumnIndex::kEnd;
    index.next_[row] = slot.newest;
    slot.newest = row;
    ++index.rows_;
    index.squares_ += 2 * uint64_t{slot.rows} + 1;
    ++slot.rows;
  }
  index.indexed_ = rows_;
}

uint32_t Table::Newest(const ColumnIndex& index, const uint32_t* key) const {
  if (index.slots_.empty()) return ColumnIndex::kEnd;
  const size_t width = index.key_columns_.size();
  uint64_t h = 0;
  for (size_t i = 0; i < width; ++i) h = Mix(h, key[i]);
  const size_t mask = index.slots_.size() - 1;
  for (size_t s = Fold(h) & mask; index.slots_[s].newest != ColumnIndex::kEnd; s = (s + 1) & mask) {
    const uint32_t head = index.slots_[s].newest;
    size_t i = 0;
    while (i < width && Get(head, index.key_columns_[i]) == key[i]) ++i;
    if (i == width) return head;
  }
  return ColumnIndex::kEnd;
}

size_t Table::Bytes() const {
  size_t bytes = sizeof(Table) + slots_.capacity() * sizeof(Slot) +
                 chunks_.size() * (size_t{width()} << shift_) * sizeof(uint32_t) +
                 marks_.capacity() * sizeof(marks_[0]);
  for (const auto& index : indexes_) bytes += index->Bytes();
  return bytes;
}

}  // namespace l3c::egraph
