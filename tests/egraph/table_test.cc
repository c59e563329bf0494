// Tables against a plain model, and undo against a picture taken before.
#include "egraph/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "egraph/union_find.h"

namespace l3c::egraph {
namespace {

using Args = std::array<uint32_t, 2>;

// Everything that a reader can see of a table: rows in order with their flags, what lookups find,
// what indexes hold.
struct Picture {
  std::vector<std::vector<uint32_t>> rows;
  std::map<Args, uint32_t> found;
  std::vector<uint32_t> rows_at;
  std::vector<std::vector<uint32_t>> chains;
  size_t bytes = 0;
};

constexpr uint32_t kKeys = 40;

uint32_t Draw(std::mt19937& random, uint32_t below) {
  return static_cast<uint32_t>(random() % below);
}

Picture Take(const Table& table, uint64_t clock, const std::vector<const ColumnIndex*>& indexes) {
  Picture picture;
  for (uint32_t r = 0; r < table.row_count(); ++r) {
    picture.rows.push_back({table.Get(r, 0), table.Get(r, 1), table.Output(r),
                            table.Provenance(r).index, table.IsLive(r), table.IsSubsumed(r)});
  }
  for (uint32_t a = 0; a < kKeys; ++a) {
    for (uint32_t b = 0; b < kKeys; ++b) {
      const Args args{a, b};
      const uint32_t row = table.Find(args.data());
      if (row != Table::kNoRow) picture.found[args] = row;
    }
  }
  for (uint64_t c = 0; c <= clock; ++c) picture.rows_at.push_back(table.RowsAt(c));
  for (const ColumnIndex* index : indexes) {
    for (uint32_t key = 0; key < kKeys; ++key) {
      std::vector<uint32_t>& chain = picture.chains.emplace_back();
      for (uint32_t row = table.Newest(*index, key); row != ColumnIndex::kEnd;
           row = index->Next(row)) {
        chain.push_back(row);
      }
    }
  }
  picture.bytes = table.Bytes();
  return picture;
}

class TableTest : public testing::TestWithParam<uint32_t> {
 protected:
  void Change(std::mt19937& random, Table& table, std::map<Args, uint32_t>& model) {
    const Args args{Draw(random, kKeys), Draw(random, kKeys)};
    const uint32_t value = Draw(random, 1000);
    const RuleId rule{static_cast<uint32_t>(random() % 7)};
    const auto it = model.find(args);
    switch (random() % 5) {
      case 0:
      case 1: {
        const auto [row, inserted] = table.FindOrAppend(args.data(), value, rule);
        ASSERT_EQ(inserted, it == model.end());
        if (inserted) model[args] = value;
        ASSERT_EQ(table.Output(row), model[args]);
        break;
      }
      case 2:
        if (it == model.end()) break;
        table.Kill(table.Find(args.data()));
        model.erase(it);
        break;
      case 3: {  // the arguments or only the output of a row change
        if (it == model.end()) break;
        const uint32_t row = table.Find(args.data());
        const Args moved = random() % 2 == 0 ? args : Args{Draw(random, kKeys), args[1]};
        model.erase(it);
        const auto [other, appended] = table.Replace(row, moved.data(), value);
        ASSERT_EQ(appended, !model.contains(moved));
        if (appended) model[moved] = value;
        ASSERT_EQ(table.Output(other), model[moved]);
        break;
      }
      case 4:
        if (it != model.end()) table.MarkSubsumed(table.Find(args.data()));
        break;
    }
  }
  static void Check(const Table& table, const std::map<Args, uint32_t>& model) {
    ASSERT_EQ(table.live_count(), model.size());
    for (uint32_t a = 0; a < kKeys; ++a) {
      for (uint32_t b = 0; b < kKeys; ++b) {
        const Args args{a, b};
        const uint32_t row = table.Find(args.data());
        const auto it = model.find(args);
        ASSERT_EQ(row == Table::kNoRow, it == model.end());
        if (row == Table::kNoRow) continue;
        ASSERT_EQ(table.Output(row), it->second);
      }
    }
  }
};

TEST_P(TableTest, AgreesWithAModel) {
  std::mt19937 random(GetParam());
  Table table(2);
  std::map<Args, uint32_t> model;
  for (int round = 0; round < 30; ++round) {
    const size_t bound = table.BytesWith(100);
    for (int i = 0; i < 100; ++i) Change(random, table, model);
    EXPECT_LE(table.Bytes(), bound);
    if (random() % 4 == 0) table.Compact();
    Check(table, model);
  }
}

TEST_P(TableTest, PopBringsBackWhatWasThere) {
  std::mt19937 random(GetParam());
  Table table(2);
  std::map<Args, uint32_t> model;
  uint64_t clock = 0;
  std::vector<const ColumnIndex*> indexes;  // so far
  struct Saved {
    Picture picture;
    std::map<Args, uint32_t> model;
    uint64_t clock;
    std::vector<const ColumnIndex*> indexes;
  };
  std::vector<Saved> saved;
  for (int round = 0; round < 60; ++round) {
    const int changes = static_cast<int>(random() % 200);
    for (int i = 0; i < changes; ++i) Change(random, table, model);
    if (random() % 3 == 0) {
      table.Compact();
      if (saved.empty()) indexes.clear();
      if (!saved.empty()) indexes = saved.back().indexes;
    }
    if (random() % 2 == 0) table.Mark(++clock);
    const ColumnIndex* index = &table.Index(random() % 2);
    if (std::find(indexes.begin(), indexes.end(), index) == indexes.end()) {
      indexes.push_back(index);
    }
    if (random() % 2 == 0) {
      saved.push_back({Take(table, clock, indexes), model, clock, indexes});
      table.Push();
    } else if (!saved.empty()) {
      table.Pop();
      Saved last = std::move(saved.back());
      saved.pop_back();
      model = std::move(last.model);
      clock = last.clock;
      indexes = last.indexes;
      const Picture now = Take(table, clock, indexes);
      EXPECT_EQ(now.rows, last.picture.rows);
      EXPECT_EQ(now.found, last.picture.found);
      EXPECT_EQ(now.rows_at, last.picture.rows_at);
      EXPECT_EQ(now.chains, last.picture.chains);
      EXPECT_EQ(now.bytes, last.picture.bytes);
      Check(table, model);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TableTest, testing::Range(0u, 12u));

TEST(Table, CompactionKeepsOrderAndMarks) {
  Table table(1);
  for (uint32_t i = 0; i < 1000; ++i) {
    if (i == 600) table.Mark(3);
    table.Append(&i, i, kInitial, false);
  }
  for (uint32_t i = 0; i < 1000; i += 3) table.Kill(i);
  table.Compact();
  ASSERT_EQ(table.row_count(), table.live_count());
  EXPECT_EQ(table.RowsAt(2), 0u);
  EXPECT_EQ(table.RowsAt(3), 400u);
  for (uint32_t r = 1; r < table.row_count(); ++r) EXPECT_LT(table.Get(r - 1, 0), table.Get(r, 0));
}

TEST(UnionFind, PopBringsBackParentsAndRoots) {
  std::mt19937 random(7);
  UnionFind classes;
  std::vector<std::vector<uint32_t>> saved;
  const auto roots = [&] {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < classes.size(); ++i) all.push_back(classes.Find(i));
    return all;
  };
  for (int round = 0; round < 300; ++round) {
    if (round % 3 == 0) {
      const auto first = static_cast<uint32_t>(classes.size());
      EXPECT_EQ(classes.AddMany(20 + round), first);
      for (uint32_t id = first; id < classes.size(); ++id) EXPECT_TRUE(classes.IsRoot(id));
    } else {
      for (int i = 0; i < 20; ++i) classes.Add();
    }
    for (int i = 0; i < 8; ++i) {
      const uint32_t a = classes.Find(random() % classes.size());
      const uint32_t b = classes.Find(random() % classes.size());
      if (a == b) continue;
      EXPECT_EQ(classes.Join(a, b), std::max(a, b));
    }
    if (random() % 2 == 0) {
      saved.push_back(roots());
      classes.Push();
      if (random() % 2 == 0) roots();  // shortens paths
    } else if (!saved.empty()) {
      classes.Pop();
      ASSERT_EQ(roots(), saved.back());
      for (uint32_t i = 0; i < classes.size(); ++i) {
        ASSERT_EQ(classes.IsRoot(i), saved.back()[i] == i);
      }
      saved.pop_back();
    }
  }
}

TEST(Table, ExpectedRowsGetTheirSlotsAtOnce) {
  Table table(1), expecting(1);
  uint32_t next = 0;
  const auto add = [&](Table& t, uint32_t rows) {
    for (uint32_t i = 0; i < rows; ++i, ++next) t.Append(&next, next, RuleId{1}, false);
  };
  add(table, 1000);
  next = 0;
  add(expecting, 1000);
  EXPECT_EQ(table.Bytes(), expecting.Bytes());
  // What is expected takes nothing before slots have to grow, and is told beforehand.
  expecting.Expect(1'000'000);
  EXPECT_EQ(table.Bytes(), expecting.Bytes());
  const size_t told = expecting.BytesWith(1000);
  add(expecting, 1000);
  EXPECT_LE(expecting.Bytes(), told);
  next = 1000;
  add(table, 1000);
  EXPECT_GT(expecting.Bytes(), table.Bytes());
  // Four times what 2000 rows need, no more.
  EXPECT_EQ(expecting.Bytes() - table.Bytes(), 3 * 4096 * 2 * sizeof(uint32_t));
  for (uint32_t key = 0; key < next; ++key) ASSERT_EQ(table.Find(&key), expecting.Find(&key));
}

}  // namespace
}  // namespace l3c::egraph
