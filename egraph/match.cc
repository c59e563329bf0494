#include "egraph/match.h"

#include <algorithm>
#include <utility>

#include "egraph/hash.h"

namespace l3c::egraph {
namespace {

// Costly limits (bytes, clock) are looked at once in this many matches, and in this many rows.
constexpr uint64_t kMatchesPerLook = 256;
constexpr uint64_t kWorkPerLook = 1 << 14;

bool SameOperand(const Operand& a, const Operand& b) {
  return a.is_constant == b.is_constant && a.bits == b.bits;
}

}  // namespace

// --- The forest

void JoinForest::Clear() {
  nodes_.clear();
  leaves_.clear();
  leaf_trees_.clear();
  trees_.clear();
  keys_.clear();
  checks_.clear();
  outputs_.clear();
  slot_count_ = 0;
}

size_t JoinForest::Bytes() const {
  return nodes_.size() * sizeof(Node) + leaves_.size() * (sizeof(Leaf) + sizeof(uint32_t)) +
         trees_.size() * sizeof(Tree) + keys_.size() * sizeof(Operand) +
         checks_.size() * sizeof(Check) + outputs_.size() * sizeof(Operand);
}

uint64_t JoinForest::Hash(const Node& node) const {
  uint64_t h = Mix(static_cast<uint64_t>(node.kind), uint64_t{node.from} << 32 | node.to);
  // Addresses decide only how fast equal nodes are found, never which are equal.
  h = Mix(h, reinterpret_cast<uintptr_t>(node.table));
  h = Mix(h, reinterpret_cast<uintptr_t>(node.index));
  h = Mix(h, reinterpret_cast<uintptr_t>(node.fn));
  for (uint32_t i = 0; i < node.key_count; ++i) {
    const Operand& key = keys_[node.first_key + i];
    h = Mix(h, uint64_t{key.is_constant} << 32 | key.bits);
  }
  for (uint32_t i = 0; i < node.check_count; ++i) {
    const Check& check = checks_[node.first_check + i];
    h = Mix(h, static_cast<uint64_t>(check.kind) << 48 | uint64_t{check.column} << 32 | check.bits);
  }
  return Mix(h, static_cast<uint64_t>(node.output.kind) << 32 | node.output.bits);
}

bool JoinForest::Same(const Node& a, const Node& b) const {
  if (a.hash != b.hash || a.kind != b.kind || a.from != b.from || a.to != b.to ||
      a.table != b.table || a.index != b.index || a.fn != b.fn || a.key_count != b.key_count ||
      a.check_count != b.check_count || a.output != b.output) {
    return false;
  }
  for (uint32_t i = 0; i < a.key_count; ++i) {
    if (!SameOperand(keys_[a.first_key + i], keys_[b.first_key + i])) return false;
  }
  for (uint32_t i = 0; i < a.check_count; ++i) {
    if (checks_[a.first_check + i] != checks_[b.first_check + i]) return false;
  }
  return true;
}

uint32_t JoinForest::Add(const EGraph& graph, JoinIndexes& indexes, const Query& query,
                         const JoinPlan& plan, std::span<const Rows> rows,
                         std::span<const uint32_t> outputs, uint64_t stop_at) {
  using Kind = JoinPlan::Check::Kind;
  // Slots are named by when they are bound, so that plans of different rules compare. What is bound
  // from the start is a constant of this search.
  renamed_.assign(query.slot_sorts.size(), Operand{});
  for (const Query::Preset& preset : query.presets) {
    renamed_[preset.slot] =
        Operand::Constant(graph.Canonical(query.slot_sorts[preset.slot], preset.value));
  }
  uint32_t bound = 0;
  const auto rename = [&](JoinPlan::Check::Kind kind, uint32_t column, uint32_t bits,
                          uint32_t offset) -> Check {
    if (kind == Kind::kBind) {
      renamed_[bits] = Operand::Slot(bound);
      return {Kind::kBind, offset, column, bound++};
    }
    if (kind == Kind::kSlot) {
      const Operand& operand = renamed_[bits];
      return {operand.is_constant ? Kind::kConstant : Kind::kSlot, offset, column, operand.bits};
    }
    return {Kind::kConstant, offset, column, bits};
  };

  const bool interns =
      std::any_of(plan.steps.begin(), plan.steps.end(), [&](const JoinPlan::Step& step) {
        return step.kind == JoinPlan::Step::Kind::kPrimitive &&
               !graph.primitives()[step.primitive].reads_only;
      });
  uint32_t parent = kNone;
  uint32_t tree = kNone;
  const size_t count = std::max<size_t>(1, plan.steps.size());
  for (size_t s = 0; s < count; ++s) {
    Node node{Node::Kind::kOnce};
    node.first_key = static_cast<uint32_t>(keys_.size());
    node.first_check = static_cast<uint32_t>(checks_.size());
    if (s < plan.steps.size()) {
      const JoinPlan::Step& step = plan.steps[s];
      switch (step.kind) {
        case JoinPlan::Step::Kind::kScan:
          node.kind = Node::Kind::kScan;
          break;
        case JoinPlan::Step::Kind::kScanBack:
          node.kind = Node::Kind::kScanBack;
          break;
        case JoinPlan::Step::Kind::kLookup:
          node.kind = Node::Kind::kLookup;
          break;
        case JoinPlan::Step::Kind::kProbe:
          node.kind = Node::Kind::kProbe;
          break;
        case JoinPlan::Step::Kind::kPrimitive:
          node.kind = Node::Kind::kPrimitive;
          break;
      }
      if (node.kind == Node::Kind::kPrimitive) {
        node.fn = &graph.primitives()[step.primitive].fn;
      } else {
        const FunctionId f = query.atoms[step.atom].function;
        node.table = &graph.table(f);
        node.from = rows[step.atom].from;
        node.to = rows[step.atom].to;
        if (node.kind == Node::Kind::kProbe) {
          node.index = &indexes.Get(f, *node.table, step.index_mask);
          node.check_rows = node.index->MayBeStale(*node.table);
        }
      }
      for (uint32_t i = 0; i < step.key_count; ++i) {
        const Operand& key = plan.keys[step.first_key + i];
        keys_.push_back(key.is_constant ? key : renamed_[key.bits]);
      }
      for (uint32_t i = 0; i < step.check_count; ++i) {
        const JoinPlan::Check& check = plan.checks[step.first_check + i];
        const uint32_t offset = node.index == nullptr ? 0 : node.index->Offset(check.column);
        checks_.push_back(rename(check.kind, check.column, check.bits, offset));
      }
      if (node.kind == Node::Kind::kPrimitive) {
        node.output = rename(step.output.kind, 0, step.output.bits, 0);
      }
    }
    node.key_count = static_cast<uint32_t>(keys_.size()) - node.first_key;
    node.check_count = static_cast<uint32_t>(checks_.size()) - node.first_check;
    node.parent = parent;
    node.hash = Hash(node);

    uint32_t same = kNone;
    if (parent == kNone) {
      for (uint32_t t = 0; t < trees_.size() && same == kNone; ++t) {
        if (trees_[t].interns != interns || !Same(nodes_[trees_[t].root], node)) continue;
        same = trees_[t].root;
        tree = t;
      }
    } else {
      for (same = nodes_[parent].first_child; same != kNone && !Same(nodes_[same], node);) {
        same = nodes_[same].next_sibling;
      }
    }
    if (same != kNone) {
      keys_.resize(node.first_key);
      checks_.resize(node.first_check);
      parent = same;
      continue;
    }
    const auto id = static_cast<uint32_t>(nodes_.size());
    if (parent == kNone) {
      tree = static_cast<uint32_t>(trees_.size());
      trees_.push_back({id, 0, interns});
    } else if (nodes_[parent].first_child == kNone) {
      nodes_[parent].first_child = nodes_[parent].last_child = id;
    } else {
      nodes_[nodes_[parent].last_child].next_sibling = id;
      nodes_[parent].last_child = id;
    }
    nodes_.push_back(node);
    parent = id;
  }
  slot_count_ = std::max(slot_count_, bound);

  Leaf leaf;
  leaf.node = parent;
  leaf.next = nodes_[parent].first_leaf;
  leaf.number = trees_[tree].leaf_count++;
  leaf.first_output = static_cast<uint32_t>(outputs_.size());
  leaf.output_count = static_cast<uint32_t>(outputs.size());
  leaf.stop_at = stop_at;
  for (uint32_t slot : outputs) outputs_.push_back(renamed_[slot]);
  const auto number = static_cast<uint32_t>(leaves_.size());
  nodes_[parent].first_leaf = number;
  leaves_.push_back(leaf);
  leaf_trees_.push_back(tree);
  return number;
}

// --- The meter

uint64_t SearchMeter::Add(uint64_t matches, uint64_t bytes, uint64_t work) {
  const uint64_t all = matches_.fetch_add(matches, std::memory_order_relaxed) + matches;
  const uint64_t all_bytes = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const uint64_t all_work = work_.fetch_add(work, std::memory_order_relaxed) + work;
  if (all > limits_.matches) StopFor(Stop::kMatches);
  if (all_bytes > limits_.bytes) StopFor(Stop::kBytes);
  if (all_work > limits_.work) StopFor(Stop::kWork);
  if (limits_.deadline && Clock::now() > *limits_.deadline) StopFor(Stop::kTime);
  return all > limits_.matches ? 0 : limits_.matches - all;
}

// --- Running a tree

JoinRun::JoinRun(EGraph& graph, const JoinForest& forest, SearchMeter& meter, MatchMemory& memory,
                 bool see_subsumed)
    : graph_(graph),
      forest_(forest),
      meter_(meter),
      arena_(memory),
      see_subsumed_(see_subsumed),
      slots_(forest.slot_count(), Value::kNone),
      closed_nodes_(forest.node_count(), 0),
      closed_leaves_(forest.leaf_count(), 0),
      node_work_(forest.node_count(), 0) {}

bool JoinRun::Run(const JoinForest::Tree& tree, uint32_t from, uint32_t to,
                  std::span<MatchBuffer> found) {
  found_ = found;
  next_look_ = work_;
  if (!Flush()) return false;
  const Node& root = forest_.node(tree.root);
  const bool scans = root.kind == Node::Kind::kScan || root.kind == Node::Kind::kScanBack;
  const bool complete = scans ? ExecuteScan(tree.root, from, to) : Execute(tree.root);
  if (any_closed_) {
    std::fill(closed_nodes_.begin(), closed_nodes_.end(), 0);
    std::fill(closed_leaves_.begin(), closed_leaves_.end(), 0);
    any_closed_ = false;
  }
  return Flush() && complete;
}

bool JoinRun::Flush() {
  // The counters are shared with other threads.
  if ((matches_ | bytes_) == 0 && work_ == added_work_ && allowed_ != 0) {
    return meter_.stopped() == SearchMeter::Stop::kNone;
  }
  allowed_ = meter_.Add(matches_, bytes_, work_ - std::exchange(added_work_, work_));
  matches_ = bytes_ = 0;
  return meter_.stopped() == SearchMeter::Stop::kNone;
}

bool JoinRun::Look() {
  if (!Flush()) return false;
  const uint64_t left = meter_.WorkLeft();
  if (left == 0) meter_.StopFor(SearchMeter::Stop::kWork);
  next_look_ = work_ + std::min(left, kWorkPerLook);
  return left != 0;
}

inline bool JoinRun::Compare(const JoinForest::Check& check, uint32_t value) {
  switch (check.kind) {
    case JoinPlan::Check::Kind::kConstant:
      return value == check.bits;
    case JoinPlan::Check::Kind::kSlot:
      return value == slots_[check.bits];
    case JoinPlan::Check::Kind::kBind:
      slots_[check.bits] = value;
      return true;
  }
  return true;
}

inline bool JoinRun::Accept(const Node& node, const uint32_t* cells) {
  const JoinForest::Check* check = forest_.checks_.data() + node.first_check;
  for (uint32_t i = 0; i < node.check_count; ++i, ++check) {
    if (!Compare(*check, cells[check->column])) return false;
  }
  return true;
}

inline bool JoinRun::AcceptEntry(const Node& node, const uint32_t* entry) {
  const JoinForest::Check* check = forest_.checks_.data() + node.first_check;
  for (uint32_t i = 0; i < node.check_count; ++i, ++check) {
    const uint32_t value = check->offset != 0
                               ? entry[check->offset]
                               : node.table->Get(*entry & ~JoinIndex::kSubsumedBit, check->column);
    if (!Compare(*check, value)) return false;
  }
  return true;
}

bool JoinRun::Execute(uint32_t number) {
  const Node& node = forest_.node(number);
  if (closed_nodes_[number] != 0) return true;
  uint32_t key[EGraph::kMaxArity + 1];
  for (uint32_t i = 0; i < node.key_count; ++i) {
    const Operand& operand = forest_.keys_[node.first_key + i];
    key[i] = operand.is_constant ? operand.bits : slots_[operand.bits];
  }
  switch (node.kind) {
    case Node::Kind::kOnce:
      return Descend(node);
    case Node::Kind::kScan:
    case Node::Kind::kScanBack:
      return ExecuteScan(number, node.from, node.to);
    case Node::Kind::kLookup:
      return ExecuteLookup(number, key);
    case Node::Kind::kProbe:
      return ExecuteProbe(number, key);
    case Node::Kind::kPrimitive:
      return ExecutePrimitive(number, key);
  }
  return true;
}

bool JoinRun::Descend(const Node& node) {
  for (uint32_t leaf = node.first_leaf; leaf != JoinForest::kNone;
       leaf = forest_.leaves_[leaf].next) {
    if (!Emit(leaf)) return false;
  }
  for (uint32_t child = node.first_child; child != JoinForest::kNone;
       child = forest_.nodes_[child].next_sibling) {
    if (!Execute(child)) return false;
  }
  return true;
}

bool JoinRun::ExecuteScan(uint32_t number, uint32_t from, uint32_t to) {
  const Node& node = forest_.node(number);
  const bool back = node.kind == Node::Kind::kScanBack;
  for (uint32_t i = from; i < to; ++i) {
    const uint32_t row = back ? from + (to - 1 - i) : i;
    if (!CountWork(number)) return false;
    const uint32_t* cells = node.table->Cells(row);
    if (!Visible(*node.table, cells) || !Accept(node, cells)) continue;
    if (!Descend(node)) return false;
    if (any_closed_ && closed_nodes_[number] != 0) return true;
  }
  return true;
}

bool JoinRun::ExecuteLookup(uint32_t number, const uint32_t* key) {
  const Node& node = forest_.node(number);
  if (!CountWork(number)) return false;
  const uint32_t row = node.table->Find(key);
  if (row == Table::kNoRow || row < node.from || row >= node.to) return true;
  const uint32_t* cells = node.table->Cells(row);
  return !Visible(*node.table, cells) || !Accept(node, cells) || Descend(node);
}

bool JoinRun::ExecuteProbe(uint32_t number, const uint32_t* key) {
  // From new rows to old ones.
  const Node& node = forest_.node(number);
  const Table& table = *node.table;
  const JoinIndex& index = *node.index;
  for (uint32_t row = index.Newest(table, key); row != JoinIndex::kEnd; row = index.Next(row)) {
    if (row < node.from) return true;
    if (!CountWork(number)) return false;
    if (row >= node.to) continue;
    const uint32_t* cells = table.Cells(row);
    if (!Visible(table, cells) || !Accept(node, cells)) continue;
    if (!Descend(node)) return false;
    if (any_closed_ && closed_nodes_[number] != 0) return true;
  }
  const JoinIndex::Run run = index.Sorted(table, key);
  const uint32_t width = index.Width();
  const uint32_t* entry = run.first;
  for (uint32_t i = 0; i < run.count; ++i, entry += width) {
    const uint32_t row = *entry & ~JoinIndex::kSubsumedBit;
    if (row < node.from) break;
    if (!CountWork(number)) return false;
    if (row >= node.to) continue;
    if (node.check_rows ? !Visible(table, table.Cells(row))
                        : (*entry & JoinIndex::kSubsumedBit) != 0 && !see_subsumed_) {
      continue;
    }
    if (!AcceptEntry(node, entry)) continue;
    if (!Descend(node)) return false;
    if (any_closed_ && closed_nodes_[number] != 0) return true;
  }
  return true;
}

bool JoinRun::ExecutePrimitive(uint32_t number, const uint32_t* key) {
  const Node& node = forest_.node(number);
  if (!CountWork(number)) return false;
  Value args[EGraph::kMaxArity + 1];
  for (uint32_t i = 0; i < node.key_count; ++i) args[i] = Value{key[i]};
  const std::optional<Value> result = (*node.fn)(graph_, std::span(args, node.key_count));
  return !result || !Compare(node.output, result->bits) || Descend(node);
}

bool JoinRun::Emit(uint32_t number) {
  const JoinForest::Leaf& leaf = forest_.leaves_[number];
  if (closed_leaves_[number] != 0) return true;
  if (matches_ == allowed_) [[unlikely]] {
    meter_.StopFor(SearchMeter::Stop::kMatches);
    return false;
  }
  MatchBuffer& buffer = found_[leaf.number];
  const uint64_t bytes = buffer.bytes();
  uint32_t* record = buffer.Append(leaf.output_count, arena_);
  bytes_ += buffer.bytes() - bytes;
  const Operand* output = forest_.outputs_.data() + leaf.first_output;
  const uint32_t* slots = slots_.data();
  for (const Operand* end = output + leaf.output_count; output != end; ++output, ++record) {
    *record = output->is_constant ? output->bits : slots[output->bits];
  }
  if (buffer.count() >= leaf.stop_at) Close(number);
  ++matches_;
  return matches_ % kMatchesPerLook != 0 || Flush();
}

// Marks the leaf, and all nodes that have nothing open below them.
void JoinRun::Close(uint32_t number) {
  any_closed_ = true;
  closed_leaves_[number] = 1;
  for (uint32_t n = forest_.leaves_[number].node; n != JoinForest::kNone;
       n = forest_.nodes_[n].parent) {
    const Node& node = forest_.nodes_[n];
    for (uint32_t l = node.first_leaf; l != JoinForest::kNone; l = forest_.leaves_[l].next) {
      if (closed_leaves_[l] == 0) return;
    }
    for (uint32_t c = node.first_child; c != JoinForest::kNone;
         c = forest_.nodes_[c].next_sibling) {
      if (closed_nodes_[c] == 0) return;
    }
    closed_nodes_[n] = 1;
  }
}

}  // namespace l3c::egraph
