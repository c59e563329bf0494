#include "egraph/join_index.h"

#include <algorithm>
#include <bit>

#include "egraph/hash.h"

namespace l3c::egraph {
namespace {

// Columns kept in entries, at most; a table with more is read itself.
constexpr size_t kMaxKept = 4;
// So many rows may always hang in chains; beyond, half as many as are sorted.
constexpr uint32_t kMaxTail = 64;
// Dense keys: an array of at most so many places a row.
constexpr uint64_t kMaxPlaces = 4;

// Where there is too little room, small arrays get twice what is needed, for soon they need it;
// large ones just that.
size_t RoomFor(size_t size) {
  constexpr size_t kSmall = 1 << 14;
  return size < kSmall ? 2 * size : size;
}

uint32_t HashKey(const uint32_t* key, size_t count) {
  uint64_t h = 0;
  for (size_t i = 0; i < count; ++i) h = Mix(h, key[i]);
  return Fold(h);
}

}  // namespace

JoinIndex::JoinIndex(uint32_t columns, uint64_t mask) : mask_(mask), offsets_(columns, 0) {
  std::vector<uint32_t> others;
  for (uint32_t c = 0; c < columns; ++c) {
    ((mask >> c & 1) != 0 ? key_columns_ : others).push_back(c);
  }
  if (others.size() > kMaxKept) return;
  kept_columns_ = std::move(others);
  for (uint32_t c : kept_columns_) offsets_[c] = static_cast<uint8_t>(width_++);
}

uint32_t JoinIndex::HashOf(const Table& table, uint32_t row) const {
  uint64_t h = 0;
  for (uint32_t c : key_columns_) h = Mix(h, table.Get(row, c));
  return Fold(h);
}

bool JoinIndex::HasKey(const Table& table, uint32_t row, const uint32_t* key) const {
  for (size_t i = 0; i < key_columns_.size(); ++i) {
    if (table.Get(row, key_columns_[i]) != key[i]) return false;
  }
  return true;
}

bool JoinIndex::SameKey(const Table& table, uint32_t a, uint32_t b) const {
  for (uint32_t c : key_columns_) {
    if (table.Get(a, c) != table.Get(b, c)) return false;
  }
  return true;
}

bool JoinIndex::ManyDead(const Table& table) const {
  return uint64_t{table.retired() - retired_} * 8 > sorted_rows_ + uint64_t{kMaxTail};
}

void JoinIndex::Refresh(const Table& table) {
  const uint32_t rows = table.row_count();
  const bool renumbered = layout_ != table.layout();
  const uint32_t fresh = rows - (renumbered ? 0 : sorted_rows_);
  const uint32_t sorted = renumbered ? 0 : sorted_rows_;
  if (fresh > std::max(kMaxTail, sorted / 2) || (!renumbered && ManyDead(table))) {
    Sort(table);
    return;
  }
  if (renumbered) {
    layout_ = table.layout();
    retired_ = table.retired();
    sorted_rows_ = sorted_count_ = indexed_ = tail_count_ = tail_keys_ = 0;
    squares_ = 0;
    dense_ = false;
    starts_.clear();
    slots_.clear();
    next_.clear();
    std::fill(tail_.begin(), tail_.end(), TailSlot{});
  }
  if (indexed_ == rows) return;
  next_.resize(rows - sorted_rows_, kEnd);
  for (uint32_t row = indexed_; row < rows; ++row) {
    if (table.IsLive(row)) AddToTail(table, row);
  }
  indexed_ = rows;
}

void JoinIndex::Sort(const Table& table) {
  const uint32_t rows = table.row_count();
  layout_ = table.layout();
  retired_ = table.retired();
  sorted_rows_ = indexed_ = rows;
  sorted_count_ = table.live_count();
  tail_count_ = tail_keys_ = 0;
  tail_.clear();
  next_.clear();
  squares_ = 0;
  const size_t words = size_t{sorted_count_} * width_;
  if (entries_.size() < words) {
    entries_ = ZeroedArray<uint32_t>();
    entries_ = ZeroedArray<uint32_t>(RoomFor(words));
  }

  dense_ = false;
  if (key_columns_.size() == 1) {
    uint32_t largest = 0;
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t* cells = table.Cells(row);
      if (table.IsLive(cells)) largest = std::max(largest, cells[key_columns_[0]]);
    }
    dense_ = largest < kMaxPlaces * sorted_count_;
    if (dense_) SortDense(table, largest + 1);
  }
  if (!dense_) SortHashed(table);
}

void JoinIndex::WriteEntry(const Table& table, uint32_t row, uint32_t entry) {
  const uint32_t* cells = table.Cells(row);
  uint32_t* out = entries_.begin() + size_t{entry} * width_;
  *out++ = row | (table.IsSubsumed(cells) ? kSubsumedBit : 0);
  for (const uint32_t c : kept_columns_) *out++ = cells[c];
}

void JoinIndex::SortDense(const Table& table, uint32_t key_limit) {
  slots_ = std::vector<KeySlot>();
  if (starts_.capacity() <= key_limit) {
    starts_ = std::vector<uint32_t>();
    starts_.reserve(RoomFor(size_t{key_limit} + 1));
  }
  starts_.assign(key_limit + 1, 0);
  const uint32_t column = key_columns_[0];
  for (uint32_t row = 0; row < sorted_rows_; ++row) {
    const uint32_t* cells = table.Cells(row);
    if (table.IsLive(cells)) ++starts_[cells[column]];
  }
  uint32_t end = 0;
  for (uint32_t& start : starts_) {
    squares_ += uint64_t{start} * start;
    end += start;
    start = end;  // where the rows of the key end; filling goes down from there
  }
  // Ascending rows fill downwards: the newest comes first.
  for (uint32_t row = 0; row < sorted_rows_; ++row) {
    const uint32_t* cells = table.Cells(row);
    if (table.IsLive(cells)) WriteEntry(table, row, --starts_[cells[column]]);
  }
}

void JoinIndex::SortHashed(const Table& table) {
  starts_ = std::vector<uint32_t>();
  slots_.assign(std::bit_ceil(std::max<size_t>(16, size_t{sorted_count_} * 3 / 2)), KeySlot{});
  const size_t mask = slots_.size() - 1;
  const bool single = key_columns_.size() == 1;
  std::vector<uint32_t> slot_of(sorted_rows_);
  // While counting, `begin` is a row of the key.
  for (uint32_t row = 0; row < sorted_rows_; ++row) {
    if (!table.IsLive(row)) continue;
    const uint32_t hash = HashOf(table, row);
    const uint32_t tag = single ? table.Get(row, key_columns_[0]) : hash;
    size_t s = hash & mask;
    while (slots_[s].count != 0 &&
           (slots_[s].hash != tag || (!single && !SameKey(table, slots_[s].begin, row)))) {
      s = (s + 1) & mask;
    }
    KeySlot& slot = slots_[s];
    slot.begin = row;
    slot.hash = tag;
    squares_ += 2 * uint64_t{slot.count} + 1;
    ++slot.count;
    slot_of[row] = static_cast<uint32_t>(s);
  }
  uint32_t end = 0;
  for (KeySlot& slot : slots_) {
    end += slot.count;
    slot.begin = end;
  }
  for (uint32_t row = 0; row < sorted_rows_; ++row) {
    if (table.IsLive(row)) WriteEntry(table, row, --slots_[slot_of[row]].begin);
  }
}

JoinIndex::Run JoinIndex::SortedByHash(const Table& table, const uint32_t* key) const {
  if (slots_.empty()) return {nullptr, 0};
  const size_t mask = slots_.size() - 1;
  const bool single = key_columns_.size() == 1;
  const uint32_t hash = HashKey(key, key_columns_.size());
  const uint32_t tag = single ? *key : hash;
  for (size_t s = hash & mask; slots_[s].count != 0; s = (s + 1) & mask) {
    if (slots_[s].hash != tag) continue;
    const uint32_t* first = entries_.begin() + size_t{slots_[s].begin} * width_;
    if (single || HasKey(table, *first & ~kSubsumedBit, key)) return {first, slots_[s].count};
  }
  return {nullptr, 0};
}

uint32_t JoinIndex::NewestOfTail(const Table& table, const uint32_t* key) const {
  const size_t mask = tail_.size() - 1;
  for (size_t s = HashKey(key, key_columns_.size()) & mask; tail_[s].newest != kEnd;
       s = (s + 1) & mask) {
    if (HasKey(table, tail_[s].newest, key)) return tail_[s].newest;
  }
  return kEnd;
}

void JoinIndex::GrowTail(const Table& table) {
  const std::vector<TailSlot> old = std::move(tail_);
  tail_.assign(std::max<size_t>(16, old.size() * 2), TailSlot{});
  const size_t mask = tail_.size() - 1;
  for (const TailSlot& slot : old) {
    if (slot.newest == kEnd) continue;
    size_t s = HashOf(table, slot.newest) & mask;
    while (tail_[s].newest != kEnd) s = (s + 1) & mask;
    tail_[s] = slot;
  }
}

void JoinIndex::AddToTail(const Table& table, uint32_t row) {
  if ((size_t{tail_keys_} + 1) * 3 > tail_.size() * 2) GrowTail(table);
  const size_t mask = tail_.size() - 1;
  size_t s = HashOf(table, row) & mask;
  while (tail_[s].newest != kEnd && !SameKey(table, tail_[s].newest, row)) s = (s + 1) & mask;
  TailSlot& slot = tail_[s];
  tail_keys_ += slot.newest == kEnd;
  next_[row - sorted_rows_] = slot.newest;
  slot.newest = row;
  squares_ += 2 * uint64_t{slot.rows} + 1;
  ++slot.rows;
  ++tail_count_;
}

size_t JoinIndex::Bytes() const {
  return sizeof(JoinIndex) + starts_.capacity() * sizeof(uint32_t) +
         slots_.capacity() * sizeof(KeySlot) + entries_.Bytes() +
         tail_.capacity() * sizeof(TailSlot) + next_.capacity() * sizeof(uint32_t);
}

}  // namespace l3c::egraph
