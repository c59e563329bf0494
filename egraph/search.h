// The search of one step: all matches of a set of rules on a graph that does not change meanwhile.
//
// What is found, and in which order, does not depend on the number of threads. Trees of the forest
// (match.h) are cut into chunks of the rows of their first step; the chunks are numbered, any
// thread may take the next one, and their matches are put together by number. Trees with a
// primitive that may intern a value are run afterwards, by one thread, in order. When the chunks of
// several threads find more than a limit allows, what they found is dropped and one thread does the
// search again, so that it stops where it always stops.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/match.h"
#include "egraph/match_buffer.h"
#include "egraph/pages.h"
#include "egraph/plan.h"
#include "egraph/worker_pool.h"

namespace l3c::egraph {

// What is kept of a match of a rule: what its actions read, but for proofs, which name the values
// of all variables.
struct KeptSlots {
  bool alike = false;  // no action reads a slot: the matches differ in nothing
  std::vector<uint32_t> slots;
};

class SearchCache {
 public:
  size_t Bytes() const;
  // The same plans and indexes, which are shared until one of the two changes them.
  std::unique_ptr<SearchCache> Save() const;
  // Copies what is shared.
  void Unshare();
  void ForgetSaved() { indexes_.ForgetCopies(); }
  // Takes over from `other`, which goes, what has no influence on any result.
  void Inherit(SearchCache& other);

 private:
  friend class RuleSearch;
  struct Part {
    bool planned = false;
    std::vector<uint32_t> rows;  // by atom, when it was planned
    JoinPlan plan;
  };
  struct RulePlans {
    std::shared_ptr<const Rule> rule;  // ids of rules may be used again
    KeptSlots kept;
    std::vector<Part> parts;  // by atom with new rows
    size_t Bytes() const;
  };
  JoinIndexes indexes_;
  std::vector<std::shared_ptr<RulePlans>> plans_;  // by rule
  size_t plan_bytes_ = 0;                          // of all in plans_
  JoinForest forest_;
  std::unique_ptr<WorkerPool> pool_;
  std::vector<MatchBuffer> buffers_;
  MatchMemory memory_;  // of the buffers
  VectorMark saved_buffers_;
};

class RuleSearch {
 public:
  explicit RuleSearch(EGraph& graph)
      : graph_(graph), cache_(graph.search_cache_.Get()), planner_(graph, cache_.indexes_) {}

  using Limits = SearchMeter::Limits;

  // The threads that searches with so many share; null for one. Theirs while nothing is searched.
  WorkerPool* Pool(uint32_t threads);
  // Starts over. What was found is gone.
  void Begin();
  // Adds a rule, to be matched on what is new since it has `seen` the search step of that number.
  // In each chunk no more than `stop_at` matches are looked for. False when nothing is new for it.
  bool Add(RuleId rule, uint64_t seen, uint64_t stop_at);
  const KeptSlots& Kept(RuleId rule) { return PlansOf(rule).kept; }
  // Searches for all that was added.
  SearchMeter::Stop Run(const Limits& limits, uint32_t threads);
  // Rows looked at by the latest Run() or HasMatch(), keys looked up and primitives called: in all,
  // and for the rule added as number `i`. What rules look at together is shared out among them, so
  // that their parts add up to the whole.
  uint64_t work() const { return work_; }
  uint64_t Work(size_t i) const;

  // What was found for the rule added as number `i`, in order.
  uint64_t Count(size_t i) const;
  // The memory that all of it takes.
  uint64_t MatchBytes() const;
  // Calls `fn(span)` for runs of matches, their values side by side, until it gives false.
  template <typename Fn>
  bool ForEachRun(size_t i, Fn&& fn) const;

  // Whether the query has a match; `subsumed_too`: also among subsumed rows. Nothing where a limit
  // ended the search before that was known; which, goes to `stop`.
  std::optional<bool> HasMatch(const Query& query, bool subsumed_too, const Limits& limits,
                               SearchMeter::Stop* stop);

 private:
  struct Chunk {
    uint32_t tree = 0;
    uint32_t from = 0, to = 0;  // rows of its root
    size_t first_buffer = 0;    // in SearchCache::buffers_, one for each leaf of the tree
  };
  struct Added {
    size_t first_leaf = 0, leaf_count = 0;  // in leaves_
  };
  const SearchCache::RulePlans& PlansOf(RuleId rule);
  void MakePlan(RuleId rule, size_t delta_atom);
  void AddPart(RuleId rule, size_t delta_atom, uint64_t stop_at);
  void MakeChunks();
  void ClearBuffers();
  bool RunChunk(JoinRun& run, const Chunk& chunk);
  SearchMeter::Stop RunInOrder(bool interning_only, SearchMeter& meter);
  void AddWork(const JoinRun& run);
  void CountLeaves();

  EGraph& graph_;
  SearchCache& cache_;
  Planner planner_;
  std::vector<Added> added_;
  std::vector<uint32_t> leaves_;                 // of the forest
  std::vector<Chunk> chunks_;                    // by tree, then by rows
  std::vector<size_t> first_chunk_;              // by tree; one more at the end
  std::vector<uint32_t> old_rows_, row_counts_;  // by atom
  std::vector<JoinForest::Rows> rows_;
  uint64_t work_ = 0;
  // By node of the forest: the work there, how many leaves are below it, and the first of them.
  std::vector<uint64_t> node_work_;
  std::vector<uint32_t> node_leaves_, first_below_;
};

template <typename Fn>
bool RuleSearch::ForEachRun(size_t i, Fn&& fn) const {
  const Added& added = added_[i];
  for (size_t l = 0; l < added.leaf_count; ++l) {
    const uint32_t leaf = leaves_[added.first_leaf + l];
    const uint32_t tree = cache_.forest_.tree_of(leaf);
    for (size_t c = first_chunk_[tree]; c < first_chunk_[tree + 1]; ++c) {
      const MatchBuffer& buffer =
          cache_.buffers_[chunks_[c].first_buffer + cache_.forest_.leaf(leaf).number];
      if (cache_.forest_.leaf(leaf).output_count == 0) {
        for (uint64_t m = 0; m < buffer.count(); ++m) {
          if (!fn(std::span<const uint32_t>())) return false;
        }
        continue;
      }
      for (size_t s = 0; s < buffer.segment_count(); ++s) {
        if (!fn(buffer.segment(s))) return false;
      }
    }
  }
  return true;
}

}  // namespace l3c::egraph
