#include "layers/l0/lower/repeated_blocks.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

using tensor::Node;
using tensor::NodeId;
using tensor::Op;

namespace {

constexpr NodeId kNone = RepeatedBlocks::kNone;
constexpr int64_t kOutside = std::numeric_limits<int64_t>::min();

// Copies that are equal in all they read, at least: one of them is searched.
constexpr int64_t kLeastCopies = 3;
// Nodes of a copy; a search of less takes no time worth saving.
constexpr size_t kLeastNodes = 24;

// Nodes that follow one another, each equal in kind to the one `period` further on.
struct Strand {
  size_t start = 0;
  size_t length = 0;
  size_t period = 0;
  size_t phase = 0;  // where the first whole copy begins; there may be parts of others at both ends
  // The block of copy c is base + direction · c: a backward pass meets the last layer first.
  bool placed = false;
  int64_t base = 0;
  int64_t direction = 1;

  size_t end() const { return start + length; }
  int64_t CopyOf(NodeId node) const {
    const int64_t at = static_cast<int64_t>(node) - static_cast<int64_t>(start + phase);
    const auto p = static_cast<int64_t>(period);
    return at >= 0 ? at / p : -((p - 1 - at) / p);
  }
  // The first node of a copy with whole ones around it.
  size_t Middle() const { return start + phase + (length / period / 2 - 1) * period; }
};

class BlockFinder {
 public:
  explicit BlockFinder(const Step& step) : step_(step), nodes_(step.graph.nodes()) {}

  std::optional<RepeatedBlocks> Find() {
    if (!step_.own.empty()) return std::nullopt;
    ReadKinds();
    FindStrands();
    if (strands_.empty()) return std::nullopt;
    PlaceStrands();
    if (!ChooseWindow()) return std::nullopt;
    return Result();
  }

 private:
  // What a node is, every name forgotten.
  void ReadKinds() {
    std::map<NodeId, size_t> input_of;
    for (size_t i = 0; i < step_.inputs.size(); ++i) input_of[step_.inputs[i].node] = i;
    std::map<std::string, uint32_t> known;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      const Node& node = nodes_[id];
      std::string kind;
      const auto add = [&](int64_t number) {
        kind.append(reinterpret_cast<const char*>(&number), sizeof(number));
      };
      add(static_cast<int64_t>(node.op));
      add(static_cast<int64_t>(node.dtype));
      if (id < step_.memory.size()) add(step_.memory[id]);
      add(static_cast<int64_t>(node.shape.size()));
      for (int64_t extent : node.shape) add(extent);
      add(static_cast<int64_t>(node.inputs.size()));
      add(static_cast<int64_t>(node.attr.ints.size()));
      for (int64_t i : node.attr.ints) add(i);
      add(node.attr.axis);
      add(static_cast<int64_t>(node.attr.dtype));
      kind.append(reinterpret_cast<const char*>(&node.attr.scalar), sizeof(double));
      if (node.op == Op::kInput) {
        const auto it = input_of.find(id);
        const bool state =
            it != input_of.end() && step_.inputs[it->second].kind == StepInput::Kind::kState;
        // A field of the batch is like no other.
        add(state ? -1 : static_cast<int64_t>(id));
        if (state) state_of_[id] = step_.inputs[it->second].state;
      }
      kinds_.push_back(known.try_emplace(kind, static_cast<uint32_t>(known.size())).first->second);
    }
    ReadConstants();
  }

  // What is made of constants alone is the same wherever it stands, and belongs to no block: a
  // backward pass takes what the first layer made of them.
  void ReadConstants() {
    std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> known;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      const Node& node = nodes_[id];
      std::vector<uint32_t> of;
      for (const NodeId a : node.inputs) of.push_back(constant_[a]);
      const bool varies = node.op == Op::kInput || node.op == Op::kRandom ||
                          std::find(of.begin(), of.end(), 0u) != of.end();
      constant_.push_back(varies ? 0
                                 : known
                                       .try_emplace({kinds_[id], std::move(of)},
                                                    static_cast<uint32_t>(known.size()) + 1)
                                       .first->second);
    }
  }

  // Distances at which several nodes in a row come again.
  std::vector<size_t> Periods() const {
    constexpr size_t kRow = 10;
    constexpr size_t kMost = 48;
    std::map<std::vector<uint32_t>, size_t> last;
    std::map<size_t, size_t> count;
    for (size_t i = 0; i + kRow <= kinds_.size(); ++i) {
      const std::vector<uint32_t> row(kinds_.begin() + static_cast<long>(i),
                                      kinds_.begin() + static_cast<long>(i + kRow));
      const auto [it, inserted] = last.try_emplace(row, i);
      if (!inserted) ++count[i - std::exchange(it->second, i)];
    }
    std::vector<std::pair<size_t, size_t>> order;  // (count, period)
    for (const auto& [period, n] : count) order.emplace_back(n, period);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (order.size() > kMost) order.resize(kMost);
    std::vector<size_t> periods;
    for (const auto& [n, period] : order) periods.push_back(period);
    std::sort(periods.begin(), periods.end());
    return periods;
  }

  // The longest first, so that what repeats inside of a block does not count.
  void FindStrands() {
    constexpr size_t kMostStrands = 24;
    const std::vector<size_t> periods = Periods();
    strand_of_.assign(nodes_.size(), -1);
    while (strands_.size() < kMostStrands) {
      Strand best;
      const auto consider = [&](size_t start, size_t matched, size_t period) {
        const Strand strand = {start, matched + period, period};
        if (strand.length < static_cast<size_t>(kLeastCopies) * period) return;
        if (strand.length > best.length) best = strand;
      };
      for (const size_t period : periods) {
        size_t matched = 0;
        for (size_t i = 0; i + period < kinds_.size(); ++i) {
          const bool same =
              kinds_[i] == kinds_[i + period] && strand_of_[i] < 0 && strand_of_[i + period] < 0;
          if (same) {
            ++matched;
            continue;
          }
          consider(i - matched, matched, period);
          matched = 0;
        }
        consider(kinds_.size() - std::min(kinds_.size(), period) - matched, matched, period);
      }
      if (best.length == 0) return;
      for (size_t i = best.start; i < best.end(); ++i) {
        strand_of_[i] = static_cast<int32_t>(strands_.size());
      }
      strands_.push_back(best);
    }
  }

  // Where copies may begin so that least is carried from one to the next: in a residual network,
  // behind the sum.
  std::vector<size_t> Phases(size_t s) const {
    const Strand& strand = strands_[s];
    const size_t middle = strand.Middle();
    std::vector<size_t> last_use(strand.period, 0);  // by place in a copy
    for (size_t i = middle; i < strand.end(); ++i) {
      for (const NodeId a : nodes_[i].inputs) {
        if (a < middle || a >= middle + strand.period || constant_[a] != 0) continue;
        last_use[a - middle] = std::max(last_use[a - middle], i - middle);
      }
    }
    std::vector<int64_t> carried(strand.period, 0);
    for (size_t a = 0; a < strand.period; ++a) {
      for (size_t cut = a + 1; cut <= last_use[a]; ++cut) ++carried[cut % strand.period];
    }
    const int64_t least = *std::min_element(carried.begin(), carried.end());
    std::vector<size_t> phases;
    for (size_t p = 0; p < strand.period; ++p) {
      if (carried[p] == least) phases.push_back(p);
    }
    return phases;
  }

  // By how many copies b is after a in one strand; 0 where they are not the same place of it.
  int64_t Apart(NodeId a, NodeId b) const {
    if (strand_of_[a] < 0 || strand_of_[a] != strand_of_[b]) return 0;
    const Strand& strand = strands_[static_cast<size_t>(strand_of_[a])];
    const int64_t distance = static_cast<int64_t>(b) - static_cast<int64_t>(a);
    const auto period = static_cast<int64_t>(strand.period);
    return distance % period == 0 ? distance / period : 0;
  }

  // The longest strand says where blocks begin; others belong to the blocks that they read, or that
  // read them, and so do states.
  void PlaceStrands() {
    block_.assign(nodes_.size(), kOutside);
    later_.assign(nodes_.size(), kNone);
    earlier_.assign(nodes_.size(), kNone);
    strands_.front().phase = Phases(0).front();
    Place(strands_.front(), 0, 1);
    for (bool changed = true; changed;) {
      changed = PlaceOperands();
      for (size_t s = 0; s < strands_.size(); ++s) {
        if (!strands_[s].placed) changed |= PlaceByReads(s);
      }
    }
  }

  void Place(Strand& strand, int64_t base, int64_t direction) {
    strand.placed = true;
    strand.base = base;
    strand.direction = direction;
    for (size_t i = strand.start; i < strand.end(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (constant_[id] == 0) block_[id] = base + direction * strand.CopyOf(id);
      const NodeId next = i + strand.period < strand.end() ? id + strand.period : kNone;
      const NodeId last = i >= strand.start + strand.period ? id - strand.period : kNone;
      later_[id] = direction > 0 ? next : last;
      earlier_[id] = direction > 0 ? last : next;
    }
  }

  // States, and what the first and the last copy read instead of a neighbour's: what the same place
  // of two copies reads is the same place of two.
  bool PlaceOperands() {
    bool changed = false;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (block_[id] == kOutside || later_[id] == kNone) continue;
      const Node& node = nodes_[id];
      const Node& next = nodes_[later_[id]];
      for (size_t i = 0; i < node.inputs.size() && i < next.inputs.size(); ++i) {
        const NodeId a = node.inputs[i];
        const NodeId b = next.inputs[i];
        if (a == b || later_[a] != kNone || earlier_[b] != kNone || constant_[a] != 0 ||
            constant_[b] != 0 || nodes_[a].shape != nodes_[b].shape ||
            nodes_[a].dtype != nodes_[b].dtype) {
          continue;
        }
        const bool states = kinds_[a] == kinds_[b] && state_of_.contains(a);
        const bool known_a = block_[a] != kOutside;
        const bool known_b = block_[b] != kOutside;
        if (!known_a && !known_b && states) block_[a] = block_[id];
        if (!known_a && known_b) block_[a] = block_[b] - 1;
        if (!known_b && block_[a] != kOutside) block_[b] = block_[a] + 1;
        if (block_[a] == kOutside || block_[b] != block_[a] + 1) continue;
        later_[a] = b;
        earlier_[b] = a;
        changed = true;
      }
    }
    return changed;
  }

  // As most of the operands in the middle of the strand have it.
  bool PlaceByReads(size_t s) {
    Strand& strand = strands_[s];
    struct Read {
      NodeId node;  // of the strand
      int64_t block;
      int64_t direction;
    };
    std::vector<Read> reads;
    // Operands of a node and of the same place a copy later, where one of the two is known.
    const auto compare = [&](NodeId user, NodeId next) {
      const Node& u = nodes_[user];
      const Node& n = nodes_[next];
      const bool own = strand_of_[user] == static_cast<int32_t>(s);
      for (size_t i = 0; i < u.inputs.size() && i < n.inputs.size(); ++i) {
        const NodeId a = u.inputs[i];
        const NodeId b = n.inputs[i];
        if (own && a != b && block_[a] != kOutside) {
          if (later_[a] == b) reads.push_back({user, block_[a], 1});
          if (earlier_[a] == b) reads.push_back({user, block_[a], -1});
        }
        if (!own && strand_of_[a] == static_cast<int32_t>(s)) {
          const int64_t apart = Apart(a, b);
          if (apart == 1 || apart == -1) reads.push_back({a, block_[user], apart});
        }
      }
    };
    const size_t middle = strand.Middle();
    for (size_t i = middle; i < middle + strand.period; ++i) {
      compare(static_cast<NodeId>(i), static_cast<NodeId>(i + strand.period));
    }
    if (reads.empty()) {
      for (NodeId id = 0; id < nodes_.size(); ++id) {
        if (block_[id] != kOutside && later_[id] != kNone) compare(id, later_[id]);
      }
    }
    if (reads.empty()) return false;
    size_t most = 0;
    size_t phase = 0;
    std::pair<int64_t, int64_t> place;
    for (const size_t p : Phases(s)) {
      strand.phase = p;
      std::map<std::pair<int64_t, int64_t>, size_t> votes;  // (base, direction)
      for (const Read& read : reads) {
        const int64_t base = read.block - read.direction * strand.CopyOf(read.node);
        const size_t n = ++votes[{base, read.direction}];
        if (n <= most) continue;
        most = n;
        phase = p;
        place = {base, read.direction};
      }
    }
    strand.phase = phase;
    Place(strand, place.first, place.second);
    return true;
  }

  // The blocks that are equal as the header says.
  bool ChooseWindow() {
    int64_t low = std::numeric_limits<int64_t>::max();
    int64_t high = std::numeric_limits<int64_t>::min();
    for (const int64_t block : block_) {
      if (block == kOutside) continue;
      low = std::min(low, block);
      high = std::max(high, block);
    }
    const auto count = static_cast<size_t>(high - low + 1);
    std::vector<size_t> nodes(count, 0);
    std::vector<bool> equal(count, true);   // to the next
    std::vector<bool> apart(count, false);  // read from outside, or by metrics
    FollowOutputs();
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (block_[id] == kOutside) {
        for (const NodeId a : nodes_[id].inputs) {
          if (block_[a] != kOutside) apart[static_cast<size_t>(block_[a] - low)] = true;
        }
        continue;
      }
      const auto b = static_cast<size_t>(block_[id] - low);
      ++nodes[b];
      equal[b] = equal[b] && SamePlace(id);
    }
    for (const StepOutput& output : step_.outputs) {
      const int64_t block = block_[output.node];
      if (output.kind != StepOutput::Kind::kReport || block == kOutside) continue;
      apart[static_cast<size_t>(block - low)] = true;
    }
    int64_t best = 0;
    for (size_t first = 0; first < count; ++first) {
      size_t last = first;
      while (!apart[first] && last + 1 < count && equal[last] && !apart[last + 1] &&
             nodes[last] == nodes[last + 1]) {
        ++last;
      }
      const auto length = static_cast<int64_t>(last - first) + 1;
      if (length <= best) continue;
      best = length;
      low_ = low + static_cast<int64_t>(first) - 1;
      high_ = low + static_cast<int64_t>(last) + 2;
    }
    if (best < kLeastCopies) return false;
    bool contracts = false;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      contracts |= block_[id] == low_ + 1 && IsContraction(nodes_[id].op);
    }
    return nodes[static_cast<size_t>(low_ + 1 - low)] >= kLeastNodes && contracts;
  }

  // Whether the same place of the next block does the same with the same places.
  bool SamePlace(NodeId id) const {
    const NodeId next = later_[id];
    if (next == kNone || kinds_[id] != kinds_[next] || block_[next] != block_[id] + 1 ||
        !SameOutputs(id, next)) {
      return false;
    }
    for (size_t i = 0; i < nodes_[id].inputs.size(); ++i) {
      const NodeId a = nodes_[id].inputs[i];
      const NodeId b = nodes_[next].inputs[i];
      if (constant_[a] != 0 ? constant_[a] == constant_[b]
                            : (a == b ? block_[a] == kOutside : later_[a] == b)) {
        continue;
      }
      return false;
    }
    return true;
  }

  // States whose new values are the same place of two copies are the same place of them too.
  void FollowOutputs() {
    for (const auto& [node, state] : state_of_) {
      // A state of one copy may stand where a copy that is no copy after all has something else.
      const auto later = state_of_.find(later_[node]);
      if (later != state_of_.end()) later_state_[state] = later->second;
    }
    for (const StepOutput& output : step_.outputs) {
      if (output.kind == StepOutput::Kind::kState) states_at_[output.node].push_back(output.state);
    }
    for (const auto& [node, states] : states_at_) {
      if (later_[node] == kNone) continue;
      const auto next = states_at_.find(later_[node]);
      if (next == states_at_.end() || next->second.size() != states.size()) continue;
      for (size_t i = 0; i < states.size(); ++i) {
        later_state_.try_emplace(states[i], next->second[i]);
      }
    }
  }

  bool SameOutputs(NodeId id, NodeId next) const {
    const auto here = states_at_.find(id);
    const auto there = states_at_.find(next);
    if (here == states_at_.end() || there == states_at_.end()) {
      return (here == states_at_.end()) == (there == states_at_.end());
    }
    if (here->second.size() != there->second.size()) return false;
    for (size_t i = 0; i < here->second.size(); ++i) {
      const auto it = later_state_.find(here->second[i]);
      if (it == later_state_.end() || it->second != there->second[i]) return false;
    }
    return true;
  }

  RepeatedBlocks Result() {
    RepeatedBlocks blocks;
    blocks.left_out = high_ - low_ - 3;
    for (const int64_t block : block_) {
      blocks.copy.push_back(block == kOutside ? RepeatedBlocks::kNoCopy : block - low_ - 1);
      if (block > low_ + 1 && block < high_ - 1) ++blocks.left_out_nodes;
    }
    blocks.later = later_;
    blocks.earlier = earlier_;
    blocks.later_state = later_state_;
    for (const auto& [state, next] : later_state_) blocks.earlier_state[next] = state;
    return blocks;
  }

  const Step& step_;
  const std::vector<Node>& nodes_;
  std::vector<uint32_t> kinds_;          // by node
  std::vector<uint32_t> constant_;       // by node: equal for equal constants, 0 for all else
  std::map<NodeId, uint32_t> state_of_;  // by input
  std::vector<Strand> strands_;
  std::vector<int32_t> strand_of_;  // by node
  std::vector<int64_t> block_;      // by node
  std::vector<NodeId> later_;
  std::vector<NodeId> earlier_;
  std::map<uint32_t, uint32_t> later_state_;
  std::map<NodeId, std::vector<uint32_t>> states_at_;  // by node: those whose new value it is
  int64_t low_ = 0;                                    // the blocks that are equal
  int64_t high_ = 0;
};

}  // namespace

NodeId RepeatedBlocks::Shift(NodeId node, int64_t copies) const {
  for (; copies > 0 && node != kNone; --copies) node = later[node];
  for (; copies < 0 && node != kNone; ++copies) node = earlier[node];
  return node;
}

std::optional<uint32_t> RepeatedBlocks::ShiftState(uint32_t state, int64_t copies) const {
  const std::map<uint32_t, uint32_t>& next = copies > 0 ? later_state : earlier_state;
  for (int64_t i = 0; i < std::abs(copies); ++i) {
    const auto it = next.find(state);
    if (it == next.end()) return std::nullopt;
    state = it->second;
  }
  return state;
}

std::optional<RepeatedBlocks> FindRepeatedBlocks(const Step& step) {
  return BlockFinder(step).Find();
}

}  // namespace l3c::l0::lower
