// Queues, semaphores and the worker team under load.
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/block_pool.h"
#include "runtime/descriptor_queue.h"
#include "runtime/semaphore.h"
#include "runtime/worker_team.h"

namespace l3c::runtime {
namespace {

TEST(DescriptorQueue, KeepsOrderAcrossThreads) {
  DescriptorQueue queue(3);
  std::thread producer([&] {
    for (int64_t i = 0; i < 2000; ++i) ASSERT_TRUE(queue.Push(i));
    queue.Finish();
  });
  for (int64_t i = 0; i < 2000; ++i) ASSERT_EQ(queue.Pop(), i);
  EXPECT_EQ(queue.Pop(), std::nullopt);
  producer.join();
}

TEST(DescriptorQueue, CancelWakesBothEnds) {
  DescriptorQueue full(1), empty(1);
  ASSERT_TRUE(full.Push(1));
  std::thread pusher([&] { EXPECT_FALSE(full.Push(2)); });
  std::thread popper([&] { EXPECT_EQ(empty.Pop(), std::nullopt); });
  full.Cancel();
  empty.Cancel();
  pusher.join();
  popper.join();
}

TEST(DescriptorQueue, HoldsNoMoreThanItsCapacity) {
  for (int64_t capacity : {1, 2, 3, 5}) {
    DescriptorQueue queue(capacity);
    std::atomic<int64_t> pushed = 0;
    std::thread producer([&] {
      for (int64_t i = 0; i < 3000; ++i) {
        ASSERT_TRUE(queue.Push(i));
        pushed = i + 1;
      }
      queue.Finish();
    });
    for (int64_t i = 0; i < 3000; ++i) {
      ASSERT_LE(pushed, i + capacity);
      ASSERT_EQ(queue.Pop(), i);
    }
    EXPECT_EQ(queue.Pop(), std::nullopt);
    producer.join();
  }
}

TEST(DescriptorQueue, FinishWakesTheOneWhoWaits) {
  DescriptorQueue queue(2);
  std::thread popper([&] { EXPECT_EQ(queue.Pop(), std::nullopt); });
  queue.Finish();
  popper.join();
}

// Each thread writes to what it has taken: two owners of a block show, here and to the sanitizer.
TEST(BlockPool, GivesABlockToOneAtATime) {
  constexpr uint32_t kBlocks = 5;
  BlockPool pool(sizeof(int64_t), kBlocks);
  std::vector<std::thread> threads;
  std::atomic<int64_t> taken = 0;
  for (int64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      std::vector<std::byte*> mine;
      for (int i = 0; i < 4000; ++i) {
        if (std::byte* block = pool.Take()) {
          *reinterpret_cast<int64_t*>(block) = id;
          mine.push_back(block);
          ++taken;
        }
        if (mine.size() == 2 || (i % 3 == 0 && !mine.empty())) {
          ASSERT_EQ(*reinterpret_cast<int64_t*>(mine.back()), id);
          pool.Give(mine.back());
          mine.pop_back();
        }
      }
      for (std::byte* block : mine) pool.Give(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken, 4000);
  // All of them are back, each once.
  std::set<std::byte*> all;
  while (std::byte* block = pool.Take()) all.insert(block);
  EXPECT_EQ(all.size(), kBlocks);
}

TEST(Semaphore, PassesDataBetweenThreads) {
  Semaphore ready(0), free(2);
  int slots[2] = {};
  std::thread producer([&] {
    for (int i = 0; i < 5000; ++i) {
      ASSERT_TRUE(free.Wait());
      slots[i % 2] = i;
      ready.Signal();
    }
  });
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(ready.Wait());
    ASSERT_EQ(slots[i % 2], i);
    free.Signal();
  }
  producer.join();
}

TEST(Semaphore, CloseEndsEveryWait) {
  Semaphore semaphore(0);
  std::thread first([&] { EXPECT_FALSE(semaphore.Wait()); });
  std::thread second([&] { EXPECT_FALSE(semaphore.Wait()); });
  semaphore.Close();
  semaphore.Signal();
  EXPECT_FALSE(semaphore.Wait());
  first.join();
  second.join();
}

// Adds 1 to each block's cell: plain memory, so a block run twice or not at all shows, and a
// missing happens-before is the thread sanitizer's to find.
void AddOne(void* const* params, int64_t begin, int64_t end) {
  auto* cells = static_cast<int64_t*>(params[0]);
  for (int64_t i = begin; i < end; ++i) ++cells[i];
}

TEST(WorkerTeam, RunsEachBlockOnce) {
  for (int threads : {1, 2, 3, 8}) {
    WorkerTeam team(threads);
    for (int64_t blocks : {0, 1, 2, 5, 64}) {
      std::vector<int64_t> cells(static_cast<size_t>(blocks));
      void* params[] = {cells.data()};
      for (int i = 0; i < 200; ++i) team.Run(AddOne, params, blocks);
      EXPECT_EQ(cells, std::vector<int64_t>(static_cast<size_t>(blocks), 200));
    }
  }
}

TEST(WorkerTeam, StreamsTakeTurns) {
  WorkerTeam team(2);
  std::vector<int64_t> a(16), b(16);
  const auto run = [&](std::vector<int64_t>& cells) {
    void* params[] = {cells.data()};
    for (int i = 0; i < 500; ++i) team.Run(AddOne, params, 16);
  };
  std::thread other([&] { run(a); });
  run(b);
  other.join();
  EXPECT_EQ(a, std::vector<int64_t>(16, 500));
  EXPECT_EQ(b, std::vector<int64_t>(16, 500));
}

}  // namespace
}  // namespace l3c::runtime
