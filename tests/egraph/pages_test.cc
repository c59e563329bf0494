#include "egraph/pages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "egraph/row_memory.h"
#include "gtest/gtest.h"

namespace l3c::egraph {
namespace {

TEST(Pages, GrowingArraysKeepTheirValuesThroughAllKindsOfMemory) {
  GrowingArray<uint32_t> values;
  std::vector<std::pair<size_t, size_t>> marks;  // size, capacity
  constexpr uint32_t kCount = 3u << 20;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (values.size() == values.capacity()) marks.emplace_back(values.size(), values.capacity());
    const size_t told = values.BytesAt(values.size() + 1);
    values.push_back(i * 7);
    ASSERT_EQ(values.Bytes(), told);
  }
  // Large ones have whole huge pages.
  EXPECT_EQ(values.Bytes() % kHugePage, 0u);
  EXPECT_LE(values.Bytes(), kCount * sizeof(uint32_t) * 5 / 4 + kHugePage);
  const GrowingArray<uint32_t> copy = values;
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
    values.Truncate(mark->first, mark->second);
    ASSERT_EQ(values.capacity(), mark->second);
    for (uint32_t i = 0; i < mark->first; i += 97) ASSERT_EQ(values[i], i * 7);
  }
  for (uint32_t i = 0; i < kCount; i += 97) ASSERT_EQ(copy[i], i * 7);
}

TEST(Pages, ElementsThatDoNotDivideAHugePage) {
  struct Three {
    uint32_t a, b, c;
  };
  GrowingArray<Three> values;
  for (uint32_t i = 0; i < 500'000; ++i) values.push_back({i, i + 1, i + 2});
  for (uint32_t i = 0; i < 500'000; ++i) ASSERT_EQ(values[i].c, i + 2);
}

TEST(Pages, LargeBlocksBeginWhereAHugePageMay) {
  for (const size_t bytes : {kHugePage, kHugePage + 12345, 5 * kHugePage}) {
    void* block = MapPages(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kHugePage, 0u);
    std::memset(block, 1, bytes);
    block = RemapPages(block, bytes, 2 * bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kHugePage, 0u);
    const auto* read = static_cast<const uint8_t*>(block);
    EXPECT_EQ(read[0] + read[bytes - 1], 2);
    EXPECT_EQ(read[2 * bytes - 1], 0);
    UnmapPages(block, 2 * bytes);
  }
}

TEST(RowMemory, BlocksLieSideBySideAndAreUsedAgain) {
  constexpr size_t kWords = 16384;  // 64 KiB: 32 in a huge page
  std::vector<RowBlock> blocks;
  std::set<uint32_t*> places;
  for (uint32_t b = 0; b < 100; ++b) {
    blocks.push_back(MakeRowBlockInSlab(kWords));
    std::fill_n(blocks.back().get(), kWords, b);
    places.insert(blocks.back().get());
  }
  EXPECT_EQ(places.size(), 100u);
  for (uint32_t b = 0; b < 100; ++b) {
    EXPECT_EQ(blocks[b][0], b);
    EXPECT_EQ(blocks[b][kWords - 1], b);
  }
  // Of the first huge page, which the other blocks keep.
  uint32_t* freed = blocks[5].get();
  blocks[5].reset();
  blocks[5] = MakeRowBlockInSlab(kWords);
  EXPECT_EQ(blocks[5].get(), freed);
  std::fill_n(blocks[5].get(), kWords, 5u);
  // Whatever the order in which they go, pages come and go with them.
  for (uint32_t b = 0; b < 100; b += 2) blocks[b].reset();
  for (uint32_t b = 0; b < 100; b += 2) blocks[b] = MakeRowBlockInSlab(kWords);
  for (uint32_t b = 1; b < 100; b += 2) EXPECT_EQ(blocks[b][kWords / 2], b);
  blocks.clear();
}

TEST(RowMemory, SizesThatASlabDoesNotServeComeFromTheHeap) {
  for (const size_t words : {size_t{16}, size_t{1} << 20}) {
    RowBlock block = MakeRowBlockInSlab(words);
    EXPECT_EQ(block.get_deleter().slab, nullptr);
    std::fill_n(block.get(), words, 1u);
  }
}

TEST(RowMemory, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::vector<RowBlock> blocks;
      for (uint32_t i = 0; i < 200; ++i) {
        blocks.push_back(MakeRowBlockInSlab(12288 + 4096 * (i % 3)));
        std::fill_n(blocks.back().get(), 64, t);
        if (i % 5 == 4) blocks.erase(blocks.begin());
      }
      for (const RowBlock& block : blocks) EXPECT_EQ(block[63], t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace l3c::egraph
