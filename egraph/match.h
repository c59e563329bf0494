// Finding the matches of many queries at once: join plans that begin alike share their beginning.
//
// Semi-naive evaluation asks for the matches that hold at least one new row. They are split by the
// first atom that matches a new one: for atom i, the atoms before it match old rows, it matches new
// rows, the atoms after it match all. The parts are disjoint, and a part whose atom i has no new
// rows costs nothing. Every part of every rule is one plan (plan.h).
//
// The plans of a step are put into a JoinForest: a tree for every distinct first step, whose paths
// are plans and whose leaves are parts. A tree is run as nested loops. For each leaf the matches
// come in the order in which its plan alone would give them.
//
// A forest is read-only while it runs: several JoinRuns may walk it on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/match_buffer.h"
#include "egraph/plan.h"

namespace l3c::egraph {

class JoinForest {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  struct Check {
    JoinPlan::Check::Kind kind;
    uint32_t offset;  // in an entry of the index; 0: to be read from the table
    uint32_t column;
    uint32_t bits;
    friend bool operator==(const Check&, const Check&) = default;
  };
  struct Node {
    enum class Kind : uint8_t { kOnce, kScan, kScanBack, kLookup, kProbe, kPrimitive } kind;
    bool check_rows = true;  // an index may name rows that are gone
    uint32_t from = 0, to = 0;
    const Table* table = nullptr;
    const JoinIndex* index = nullptr;
    const PrimitiveFn* fn = nullptr;
    uint32_t first_key = 0, key_count = 0;
    uint32_t first_check = 0, check_count = 0;
    Check output{JoinPlan::Check::Kind::kConstant, 0, 0, 0};
    uint64_t hash = 0;
    uint32_t parent = kNone;
    uint32_t first_child = kNone, last_child = kNone, next_sibling = kNone;
    uint32_t first_leaf = kNone;
  };
  struct Leaf {
    uint32_t node = kNone;
    uint32_t next = kNone;  // of the same node
    uint32_t number = 0;    // among those of its tree
    uint32_t first_output = 0, output_count = 0;
    uint64_t stop_at = kNoLimit;  // looks for no more matches than this
  };
  struct Tree {
    uint32_t root = kNone;
    uint32_t leaf_count = 0;
    bool interns = false;  // has a primitive that may intern: for one thread only
  };
  // The rows that an atom may match: [from, to).
  struct Rows {
    uint32_t from, to;
  };

  void Clear();
  size_t Bytes() const;  // of what has been added
  // Adds a part of a query; `rows` by atom, `outputs` are the slots whose values a match consists
  // of. Returns the leaf.
  uint32_t Add(const EGraph& graph, JoinIndexes& indexes, const Query& query, const JoinPlan& plan,
               std::span<const Rows> rows, std::span<const uint32_t> outputs, uint64_t stop_at);

  const std::vector<Tree>& trees() const { return trees_; }
  const Node& node(uint32_t i) const { return nodes_[i]; }
  const Leaf& leaf(uint32_t i) const { return leaves_[i]; }
  uint32_t tree_of(uint32_t leaf) const { return leaf_trees_[leaf]; }
  uint32_t slot_count() const { return slot_count_; }
  size_t node_count() const { return nodes_.size(); }
  size_t leaf_count() const { return leaves_.size(); }

 private:
  friend class JoinRun;
  bool Same(const Node& a, const Node& b) const;
  uint64_t Hash(const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<uint32_t> leaf_trees_;
  std::vector<Tree> trees_;
  std::vector<Operand> keys_;
  std::vector<Check> checks_;
  std::vector<Operand> outputs_;
  uint32_t slot_count_ = 0;
  std::vector<Operand> renamed_;  // by slot of the query
};

// How much a search may find, and how much it has: shared by the threads of a search.
class SearchMeter {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Stop : uint8_t { kNone, kMatches, kBytes, kWork, kTime };
  struct Limits {
    uint64_t matches = JoinForest::kNoLimit;
    uint64_t bytes = JoinForest::kNoLimit;
    uint64_t work = JoinForest::kNoLimit;
    std::optional<Clock::time_point> deadline;
  };

  explicit SearchMeter(const Limits& limits) : limits_(limits) {}

  // What has been found, and the work done for it, since the last call. Returns how many more
  // matches may come.
  uint64_t Add(uint64_t matches, uint64_t bytes, uint64_t work);
  uint64_t work() const { return work_.load(std::memory_order_relaxed); }
  uint64_t WorkLeft() const { return limits_.work - std::min(limits_.work, work()); }
  void StopFor(Stop reason) {
    Stop none = Stop::kNone;
    stop_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
  }
  Stop stopped() const { return stop_.load(std::memory_order_relaxed); }

 private:
  const Limits limits_;
  std::atomic<uint64_t> matches_ = 0;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> work_ = 0;
  std::atomic<Stop> stop_ = Stop::kNone;
};

// Walks trees of a forest; one for each thread.
class JoinRun {
 public:
  // What it finds stands in `memory`.
  JoinRun(EGraph& graph, const JoinForest& forest, SearchMeter& meter, MatchMemory& memory,
          bool see_subsumed = false);

  // Runs a tree on rows [from, to) of its root. `found` has a buffer for every leaf of the tree, to
  // which the matches are appended. False when the meter stopped it.
  bool Run(const JoinForest::Tree& tree, uint32_t from, uint32_t to, std::span<MatchBuffer> found);
  // By node of the forest: the rows looked at, or calls of a primitive, so far.
  const std::vector<uint64_t>& node_work() const { return node_work_; }

 private:
  using Node = JoinForest::Node;
  // Whether the loops may go on: false when the meter stopped the search.
  bool Execute(uint32_t node);
  bool Descend(const Node& node);
  bool ExecuteScan(uint32_t number, uint32_t from, uint32_t to);
  bool ExecuteProbe(uint32_t number, const uint32_t* key);
  bool ExecuteLookup(uint32_t number, const uint32_t* key);
  bool ExecutePrimitive(uint32_t number, const uint32_t* key);
  // A row is about to be looked at, or a primitive called, at a node. False when it may not be.
  bool CountWork(uint32_t number) {
    if (work_ >= next_look_ && !Look()) [[unlikely]]
      return false;
    ++work_;
    ++node_work_[number];
    return true;
  }
  bool Look();
  bool Visible(const Table& table, const uint32_t* cells) const {
    return table.IsVisible(cells) || (see_subsumed_ && table.IsLive(cells));
  }
  // A row by its cells.
  bool Accept(const Node& node, const uint32_t* cells);
  bool AcceptEntry(const Node& node, const uint32_t* entry);
  bool Compare(const JoinForest::Check& check, uint32_t value);
  bool Emit(uint32_t leaf);
  void Close(uint32_t leaf);
  bool Flush();

  EGraph& graph_;
  const JoinForest& forest_;
  SearchMeter& meter_;
  MatchArena arena_;
  const bool see_subsumed_;
  std::span<MatchBuffer> found_;
  std::vector<uint32_t> slots_;
  // Leaves that have all they look for, and nodes below which all have, in the current tree.
  std::vector<uint8_t> closed_nodes_;
  std::vector<uint8_t> closed_leaves_;
  bool any_closed_ = false;
  uint64_t matches_ = 0;  // since the last Flush()
  uint64_t bytes_ = 0;
  uint64_t allowed_ = 0;  // matches until the limit
  uint64_t work_ = 0;
  uint64_t added_work_ = 0;  // what the meter knows of
  uint64_t next_look_ = 0;   // at the clock and at what is left of the work
  std::vector<uint64_t> node_work_;
};

}  // namespace l3c::egraph
