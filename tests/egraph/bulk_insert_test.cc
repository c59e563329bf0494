// Rows inserted by several threads are those, in the same order, that one thread inserts.
#include "egraph/bulk_insert.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "egraph/worker_pool.h"

namespace l3c::egraph {
namespace {

using Cells = std::vector<uint32_t>;

// Live rows in order: arguments, output, rule, whether it is subsumed.
std::vector<Cells> Rows(const Table& table) {
  std::vector<Cells> rows;
  for (uint32_t row = 0; row < table.row_count(); ++row) {
    if (!table.IsLive(row)) continue;
    Cells cells(table.Cells(row), table.Cells(row) + table.arguments() + 1);
    cells.push_back(table.Provenance(row).index);
    cells.push_back(table.IsSubsumed(row));
    rows.push_back(cells);
  }
  return rows;
}

void Fill(Table* table, uint32_t rows, uint32_t spread, std::mt19937& random) {
  for (uint32_t i = 0; i < rows; ++i) {
    const uint32_t args[] = {static_cast<uint32_t>(random() % spread),
                             static_cast<uint32_t>(random() % spread)};
    table->FindOrAppend(args, i, RuleId{i % 7});
  }
}

class BulkInsertTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  WorkerPool* Pool() { return GetParam() == 1 ? nullptr : &pool_; }

 private:
  WorkerPool pool_{GetParam()};
};

TEST_P(BulkInsertTest, InsertsWhatOneAfterTheOtherDoes) {
  std::mt19937 random(5);
  for (const uint32_t spread : {40u, 400u, 4000u}) {
    Table expected(2), table(2), alone(2);
    for (Table* t : {&expected, &table, &alone}) {
      std::mt19937 same(7);
      Fill(t, 60'000, spread, same);
    }
    BulkInsert bulk, bulk_alone;
    for (int round = 0; round < 12; ++round) {
      // What one round adds meets what is there, and itself.
      const uint32_t count = 1 + random() % 9000;
      std::vector<Cells> entries(count);
      for (Cells& args : entries) {
        args = {static_cast<uint32_t>(random() % spread), static_cast<uint32_t>(random() % spread)};
      }
      const uint32_t kill = random() % table.row_count();
      if (table.IsLive(kill)) {
        for (Table* t : {&expected, &table, &alone}) t->Kill(kill);
      }
      BulkInsert::Job job;
      job.table = &table;
      job.count = count;
      job.rule = RuleId{9};
      job.new_classes = round % 2 == 0;
      job.first_class = 1'000'000u * (round + 1);
      std::vector<uint8_t> settled(count, 0);
      const auto insert = [&](BulkInsert* to_fill, WorkerPool* pool) {
        to_fill->Begin(job, pool);
        to_fill->Insert(
            [&](uint32_t from, uint32_t to) {
              for (uint32_t m = from; m < to; ++m) {
                std::copy(entries[m].begin(), entries[m].end(), to_fill->Args(m));
                to_fill->Output(m) = m;
              }
            },
            [&](uint32_t from, uint32_t to) {
              for (uint32_t m = from; m < to; ++m) ++settled[m];
            });
      };
      insert(&bulk, Pool());
      job.table = &alone;
      insert(&bulk_alone, nullptr);
      uint32_t fresh = 0;
      for (uint32_t m = 0; m < count; ++m) {
        const uint32_t output = job.new_classes ? job.first_class + fresh : m;
        const auto [row, inserted] = expected.FindOrAppend(entries[m].data(), output, RuleId{9});
        fresh += inserted;
        ASSERT_EQ(bulk.Row(m), row) << m;
        ASSERT_EQ(bulk.IsNew(m), inserted) << m;
        ASSERT_EQ(bulk.RowOutput(m), expected.Output(row)) << m;
        ASSERT_EQ(settled[m], 2) << m;
      }
      EXPECT_EQ(bulk.new_rows(), fresh);
      EXPECT_EQ(table.Bytes(), alone.Bytes());
    }
    EXPECT_EQ(Rows(table), Rows(expected));
  }
}

// Rows whose arguments change to those of others, of rows that change as well, or stay.
TEST_P(BulkInsertTest, ReplacesRows) {
  std::mt19937 random(11);
  for (int round = 0; round < 8; ++round) {
    const uint32_t spread = 300;
    Table table(2);
    Fill(&table, 60'000, spread, random);
    if (round % 2 == 1) table.Push();
    // Arguments divisible by three are what is canonical; outputs below 30,000.
    const auto canonical = [](uint32_t x) { return x / 3 * 3; };
    std::vector<uint32_t> stale;
    for (uint32_t row = 0; row < table.row_count() && stale.size() < 20'000; ++row) {
      const uint32_t* cells = table.Cells(row);
      if (random() % 16 == 0) table.MarkSubsumed(row);
      if (canonical(cells[0]) != cells[0] || canonical(cells[1]) != cells[1] ||
          cells[2] >= 30'000) {
        stale.push_back(row);
      }
    }
    // What is to be there at the end: by arguments, how often it was asked for.
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> keys;
    for (const Cells& cells : Rows(table)) keys[{cells[0], cells[1]}] = 0;
    for (const uint32_t row : stale) {
      keys.erase({table.Get(row, 0), table.Get(row, 1)});
    }
    for (const uint32_t row : stale) {
      ++keys[{canonical(table.Get(row, 0)), canonical(table.Get(row, 1))}];
    }
    const uint32_t before = table.row_count();
    BulkInsert::Job job;
    job.table = &table;
    job.count = static_cast<uint32_t>(stale.size());
    job.replaced = stale.data();
    BulkInsert bulk;
    bulk.Begin(job, Pool());
    bulk.Insert(
        [&](uint32_t from, uint32_t to) {
          for (uint32_t m = from; m < to; ++m) {
            const uint32_t* cells = table.Cells(stale[m]);
            bulk.Args(m)[0] = canonical(cells[0]);
            bulk.Args(m)[1] = canonical(cells[1]);
            bulk.Output(m) = cells[2] % 30'000;
          }
        },
        [](uint32_t, uint32_t) {});
    EXPECT_EQ(table.live_count(), keys.size());
    uint32_t newest = before;
    for (uint32_t m = 0; m < stale.size(); ++m) {
      ASSERT_FALSE(table.IsLive(stale[m]));
      const uint32_t* cells = table.Cells(bulk.Row(m));
      ASSERT_TRUE(table.IsLive(bulk.Row(m)));
      ASSERT_EQ(cells[0], bulk.Args(m)[0]);
      ASSERT_EQ(cells[1], bulk.Args(m)[1]);
      ASSERT_EQ(bulk.RowOutput(m), cells[2]);
      ASSERT_EQ(table.Find(bulk.Args(m)), bulk.Row(m));
      if (!bulk.IsNew(m)) continue;
      ASSERT_EQ(bulk.Row(m), newest++);  // in order
      ASSERT_EQ(table.Output(bulk.Row(m)), bulk.Output(m));
      ASSERT_EQ(table.Provenance(bulk.Row(m)), table.Provenance(stale[m]));
      ASSERT_EQ(table.IsSubsumed(bulk.Row(m)), table.IsSubsumed(stale[m]));
    }
    EXPECT_EQ(newest, table.row_count());
    if (round % 2 == 0) continue;
    table.Pop();
    EXPECT_EQ(table.row_count(), before);
    for (uint32_t row = 0; row < before; ++row) ASSERT_EQ(table.Find(table.Cells(row)), row);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, BulkInsertTest, ::testing::Values(1u, 2u, 4u));

TEST(WorkerPool, TurnsAreTakenOnceAndErrorsPassOn) {
  WorkerPool pool(4);
  for (uint32_t round = 0; round < 300; ++round) {
    std::vector<uint32_t> turns(round, 0);
    pool.For(round, [&](uint32_t i) { ++turns[i]; });
    EXPECT_EQ(turns, std::vector<uint32_t>(round, 1));
    if (round % 50 == 49) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_THROW(pool.For(100,
                        [](uint32_t i) {
                          if (i == 57) throw i;
                        }),
               uint32_t);
  uint32_t done = 0;
  pool.For(1, [&](uint32_t) { ++done; });
  EXPECT_EQ(done, 1u);
}

}  // namespace
}  // namespace l3c::egraph
