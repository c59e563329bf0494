#include "layers/l0/lower/candidates.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "layers/l0/lower/analyser.h"
#include "layers/l0/lower/side_updates.h"
#include "layers/l0/lower/sum_groups.h"

namespace l3c::l0::lower {

using tensor::NumElements;
using tensor::Op;
using tensor::Shape;

const Entry* Candidate::Find(uint32_t context, ValueId value) const {
  auto it = index_.find({context, value});
  return it == index_.end() ? nullptr : &entries[it->second];
}

const AddedSum* Candidate::FindAdded(ValueId value) const {
  for (const AddedSum& sum : added) {
    if (sum.value == value) return &sum;
  }
  return nullptr;
}

IndexMap IdentityMap(const Shape& shape) {
  IndexMap map;
  for (size_t d = 0; d < shape.size(); ++d) {
    map.dims.push_back(shape[d] == 1 ? Affine{} : AxisTerm(static_cast<AxisId>(d)));
  }
  return map;
}

int32_t VersionBefore(const CandidateSet& set, ValueId value, uint32_t kernel) {
  const std::vector<uint32_t>& storers = set.storers[value];
  const auto it = std::lower_bound(storers.begin(), storers.end(), kernel);
  return static_cast<int32_t>(it - storers.begin()) - 1;
}

int64_t LastVersion(const CandidateSet& set, ValueId value) {
  return static_cast<int64_t>(set.storers[value].size()) - 1;
}

namespace {

// Of the space, the axes around the passes: those outside of the first one's row. 0 without passes.
uint64_t OuterAxes(const Candidate& kernel) {
  uint64_t outer = 0;
  for (const Context& context : kernel.contexts) {
    if (context.reduction < 0) continue;
    const Entry* entry = kernel.Find(0, context.reduction);
    if (entry != nullptr) outer |= entry->axes;
  }
  return outer & ((uint64_t{1} << kernel.root_axes) - 1);
}

// Whether the context's walks are of one row: those of the kernel's own are, inside of its passes.
bool WalksRow(const Candidate& kernel, uint32_t context, uint64_t outer) {
  if (context == 0) return true;
  const Entry* entry = kernel.Find(0, kernel.contexts[context].reduction);
  return entry != nullptr && entry->axes == outer;
}

}  // namespace

double RowBytes(const Candidate& kernel, const Entry& entry) {
  const uint64_t outer = OuterAxes(kernel);
  double bytes = 4;
  for (AxisId a = 0; a < kernel.extents.size(); ++a) {
    if (((entry.axes & ~outer) >> a) & 1) bytes *= static_cast<double>(kernel.extents[a]);
  }
  return bytes;
}

bool IsNear(const ValueTable& table, const Candidate& kernel, const Entry& entry) {
  constexpr double kNearBytes = 64e3;
  if (static_cast<double>(Bytes(table.values[entry.value])) <= kNearBytes) return false;
  const uint64_t outer = OuterAxes(kernel);
  if (outer == 0 || entry.hoisted || !WalksRow(kernel, entry.context, outer)) return false;
  if (RowBytes(kernel, entry) > kNearBytes) return false;
  for (uint32_t c = 0; c < kernel.contexts.size(); ++c) {
    const Entry* other = c == entry.context ? nullptr : kernel.Find(c, entry.value);
    if (other != nullptr && other->readable && !other->hoisted && WalksRow(kernel, c, outer)) {
      return true;
    }
  }
  return false;
}

namespace {

bool Computes(const Candidate& candidate, ValueId root) {
  const Entry* entry = candidate.Find(0, root);
  return entry && !entry->inlines.empty();
}

class CandidateFinder {
 public:
  CandidateFinder(const Step& step, const ValueTable& table, const std::vector<bool>& stored,
                  const CandidateOptions& options)
      : step_(step),
        table_(table),
        stored_(stored),
        options_(options),
        analyser_(table, stored, options) {}

  CandidateSet Run() {
    for (ValueId v = 0; v < static_cast<ValueId>(table_.values.size()); ++v) {
      if (!stored_[v]) continue;
      AddKernels({v}, -1);
      if (rows_ <= options_.max_rows) continue;
      CandidateSet none;
      none.too_many_at = static_cast<double>(v + 1) / static_cast<double>(table_.values.size());
      return none;
    }
    if (options_.fuse) AddJoined();
    FindGroups();
    OrderGroups();
    for (uint32_t k = 0; k < set_.kernels.size(); ++k) {
      Candidate& kernel = set_.kernels[k];
      kernel.position = k;
      kernel.first_context = set_.contexts;
      set_.contexts += static_cast<uint32_t>(kernel.contexts.size());
    }
    set_.storers.resize(table_.values.size());
    for (uint32_t k = 0; k < set_.kernels.size(); ++k) {
      const Candidate& kernel = set_.kernels[k];
      if (kernel.group >= 0) continue;
      set_.storers[kernel.roots[0]].push_back(k);
      for (ValueId v : kernel.beside) set_.storers[v].push_back(k);
    }
    set_.pruned_entries = analyser_.pruned();
    FindMissing();
    return std::move(set_);
  }

 private:
  static constexpr int64_t kMostLateBytes = 1 << 16;

  // Values that no kernel can compute are too long a chain of values that are not kept, or a view
  // of one whose place is no affine function of the axes: keeping what the bound on a kernel's size
  // cut off, or what was viewed, makes two kernels of it.
  void FindMissing() {
    std::vector<bool> had(table_.values.size());
    for (const Candidate& kernel : set_.kernels) {
      if (!CanCompute(kernel)) continue;
      for (ValueId root : kernel.roots) had[root] = true;
    }
    for (const Candidate& kernel : set_.kernels) {
      for (ValueId root : kernel.roots) {
        if (!had[root]) set_.missing.insert(kernel.unmet.begin(), kernel.unmet.end());
      }
    }
  }

  // A scalar is no work beside a tensor, but whoever reads it would wait for all of the tensor:
  // every update of a step for that of the embedding, say, and what they read would live till then.
  bool CanSideStore(const Candidate& kernel, const Entry& entry) const {
    if (tensor::NumElements(table_.values[entry.value].shape) == 1 &&
        tensor::NumElements(table_.values[kernel.roots[0]].shape) > 1) {
      return false;
    }
    return options_.fuse && entry.context == 0 && stored_[entry.value] &&
           table_.values[entry.value].input < 0 && entry.value != kernel.roots[0] &&
           !entry.inlines.empty() && entry.maps.size() == 1 &&
           IsBijective(entry.maps[0], table_.values[entry.value].shape, kernel.extents);
  }

  void AddKernels(const std::vector<ValueId>& roots, int32_t group) {
    const bool update = group >= 0;
    auto loop = analyser_.Analyse(update ? KernelKind::kUpdate : KernelKind::kLoop, roots, -1);
    if (!loop) return;
    std::vector<ValueId> anchors = analyser_.anchors_met();
    if (loop->scatter) anchors.clear();
    if (!update && options_.fuse) {
      if (auto part = DescribePart(table_, *loop, roots[0])) parts_.push_back(*std::move(part));
    }
    if (!options_.fuse) {
      std::erase_if(anchors, [&](ValueId a) { return roots.size() != 1 || a != roots[0]; });
    }
    auto keep = [&](std::optional<Candidate> candidate) {
      if (!candidate) return;
      for (ValueId root : roots) {
        if (!Computes(*candidate, root) && !OnlyReads(*candidate, root)) return;
      }
      candidate->group = group;
      if (update && !MayOverwrite(*candidate, roots, set_.groups[group])) return;
      std::erase_if(candidate->sides, [&](const SideUpdate& side) {
        const bool computed = std::all_of(side.roots.begin(), side.roots.end(),
                                          [&](ValueId root) { return Computes(*candidate, root); });
        return !computed || !MayOverwrite(*candidate, side.roots, set_.groups[side.group]);
      });
      if (!update) {
        for (const Entry& entry : candidate->entries) {
          if (CanSideStore(*candidate, entry)) candidate->beside.push_back(entry.value);
        }
      }
      rows_ += Rows(*candidate);
      set_.kernels.push_back(std::move(*candidate));
    };
    keep(std::move(loop));
    for (ValueId anchor : anchors) {
      if (!update) {
        keep(analyser_.Analyse(KernelKind::kAnchor, roots, anchor));
        continue;
      }
      std::vector<SideUpdate> sides = SideUpdatesOf(table_, column_sums_, roots, anchor);
      keep(analyser_.Analyse(KernelKind::kUpdateAnchor, roots, anchor, std::move(sides)));
    }
  }

  // Small values that nothing but reports needs.
  std::vector<bool> FindLate() const {
    std::vector<bool> late(table_.values.size(), true);
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      const bool awaited =
          step_.outputs[o].kind == StepOutput::Kind::kState || step_.outputs[o].order >= 0;
      if (awaited) late[table_.outputs[o]] = false;
    }
    for (ValueId v = static_cast<ValueId>(table_.values.size()); v-- > 0;) {
      if (table_.values[v].input >= 0 || Bytes(table_.values[v]) > kMostLateBytes) late[v] = false;
      if (late[v]) continue;
      for (const Definition& d : table_.values[v].definitions) {
        for (ValueId input : d.inputs) late[input] = false;
      }
    }
    return late;
  }

  // Candidates that make several sums in one walk, each behind the kernels of its root, and at the
  // end those for what only reports need of their sums. As far as there is room: all that they
  // make can be had otherwise.
  void AddJoined() {
    const std::vector<bool> late = FindLate();
    std::map<ValueId, Candidate> joined;
    bool for_reports = false;
    const auto is_root = [&](const WalkPart& part) {
      return part.kind == WalkKind::kColumns && !late[part.value];
    };
    for (const WalkPart& sum : parts_) {
      if (!is_root(sum)) continue;
      // Of sums that go together the last has all others for partners.
      const bool last = std::none_of(parts_.begin(), parts_.end(), [&](const WalkPart& other) {
        return is_root(other) && other.value > sum.value && CanJoin(sum, other);
      });
      if (!last) continue;
      auto candidate = analyser_.AnalyseSums(sum, PartnersOf(sum, parts_, late));
      if (!candidate || !StoreBesideSums(*candidate)) continue;
      if (!Fits(*candidate)) continue;
      for (ValueId v : candidate->beside) {
        if (late[v]) candidate->late.insert(v);
      }
      for_reports |= !candidate->late.empty();
      joined.emplace(sum.value, *std::move(candidate));
    }
    if (joined.empty()) return;
    std::vector<Candidate> kernels;
    for (size_t k = 0; k < set_.kernels.size(); ++k) {
      const ValueId root = set_.kernels[k].roots[0];
      kernels.push_back(std::move(set_.kernels[k]));
      if (k + 1 < set_.kernels.size() && set_.kernels[k + 1].roots[0] == root) continue;
      if (auto it = joined.find(root); it != joined.end()) kernels.push_back(std::move(it->second));
    }
    set_.kernels = std::move(kernels);
    for (ValueId v = 0; for_reports && v < static_cast<ValueId>(late.size()); ++v) {
      if (!late[v] || !stored_[v]) continue;
      auto candidate = analyser_.Analyse(KernelKind::kLoop, {v}, -1);
      if (!candidate || candidate->scatter || table_.values[v].own >= 0) continue;
      candidate->kind = KernelKind::kLast;
      // What is large would have to be kept until then.
      for (Entry& entry : candidate->entries) {
        if (Bytes(table_.values[entry.value]) > kMostLateBytes) entry.readable = false;
      }
      if (CanCompute(*candidate) && Fits(*candidate)) set_.kernels.push_back(*std::move(candidate));
    }
  }

  bool Fits(const Candidate& candidate) {
    const uint64_t rows = Rows(candidate);
    if (rows_ + rows > options_.max_rows) return false;
    rows_ += rows;
    return true;
  }

  // The sums are made by several workers where all keep one axis beside the columns; what is stored
  // with them has to keep it too. False where there is none.
  bool StoreBesideSums(Candidate& candidate) const {
    uint64_t common = ~uint64_t{0};
    for (const AddedSum& sum : candidate.added) {
      common &= candidate.Find(0, sum.value)->axes;
    }
    std::optional<AxisId> split;
    for (AxisId a = 0; a + 1 < candidate.root_axes; ++a) {
      if (!((common >> a) & 1) || candidate.extents[a] < 2) continue;
      if (!split || candidate.extents[a] > candidate.extents[*split]) split = a;
    }
    if (!split) return false;
    for (const Entry& entry : candidate.entries) {
      if (((entry.axes >> *split) & 1) == 0) continue;
      if (CanSideStore(candidate, entry)) candidate.beside.push_back(entry.value);
    }
    return true;
  }

  // Of the e-graph: the facts about a candidate and what the rules make of them.
  static uint64_t Rows(const Candidate& candidate) {
    uint64_t rows = 2 + 4 * (1 + candidate.beside.size());  // root, beside, later; Store, Sooner
    for (const Entry& entry : candidate.entries) {
      const uint64_t ways = entry.inlines.size() + entry.readable + entry.hoisted;
      rows += 1 + 2 * ways;  // InReg; a fact and a term each
    }
    for (const SideUpdate& side : candidate.sides) rows += 2 * side.roots.size() + 3;
    return rows;
  }

  // A kernel may also just copy a value that is given.
  bool OnlyReads(const Candidate& candidate, ValueId root) const {
    const Entry* entry = candidate.Find(0, root);
    return entry && entry->readable;
  }

  static bool Gathers(const Candidate& candidate, ValueId v) {
    return std::find(candidate.tables.begin(), candidate.tables.end(), v) != candidate.tables.end();
  }

  // In place is legal where each old value is read at the element that is written, and nowhere
  // else.
  bool MayOverwrite(const Candidate& candidate, const std::vector<ValueId>& roots,
                    const UpdateGroup& group) const {
    const Entry* root = candidate.Find(0, roots.front());
    if (root == nullptr) return false;
    for (const UpdateMember& member : group.members) {
      if (member.old_value < 0) continue;
      if (Gathers(candidate, member.old_value)) return false;
      for (const Entry& entry : candidate.entries) {
        if (entry.value != member.old_value || entry.hoisted) continue;
        if (entry.context != 0 || entry.maps.size() != 1) return false;
        if (entry.maps[0] != root->maps[0]) return false;
      }
    }
    return true;
  }

  // States whose new values are made at the same points from one another share an update.
  void FindGroups() {
    std::vector<UpdateMember> members;
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      if (step_.outputs[o].kind != StepOutput::Kind::kState) continue;
      UpdateMember member;
      member.state = step_.outputs[o].state;
      member.new_value = table_.outputs[o];
      for (size_t i = 0; i < step_.inputs.size(); ++i) {
        if (step_.inputs[i].kind == StepInput::Kind::kState &&
            step_.inputs[i].state == member.state) {
          member.old_value = table_.inputs[i];
        }
      }
      members.push_back(member);
    }
    std::vector<size_t> parent(members.size());
    std::iota(parent.begin(), parent.end(), size_t{0});
    auto find = [&](size_t i) {
      while (parent[i] != i) i = parent[i];
      return i;
    };
    if (options_.fuse) {
      for (size_t i = 0; i < members.size(); ++i) {
        auto loop = analyser_.Analyse(KernelKind::kUpdate, {members[i].new_value}, -1);
        if (!loop) continue;
        const Entry* root = loop->Find(0, members[i].new_value);
        for (size_t j = 0; j < members.size(); ++j) {
          if (i == j) continue;
          const Entry* other = loop->Find(0, members[j].new_value);
          if (other && other->maps.size() == 1 && other->maps[0] == root->maps[0] &&
              table_.values[members[j].new_value].shape ==
                  table_.values[members[i].new_value].shape) {
            parent[std::max(find(i), find(j))] = std::min(find(i), find(j));
          }
        }
      }
    }
    std::vector<int32_t> group_of(members.size(), -1);
    for (size_t i = 0; i < members.size(); ++i) {
      const size_t leader = find(i);
      if (group_of[leader] < 0) {
        group_of[leader] = static_cast<int32_t>(set_.groups.size());
        set_.groups.push_back({});
      }
      set_.groups[group_of[leader]].members.push_back(members[i]);
    }
  }

  // Whether every root can be had from what the kernel may read.
  bool CanCompute(const Candidate& kernel) const {
    std::vector<uint32_t> order(kernel.entries.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const Entry& x = kernel.entries[a];
      const Entry& y = kernel.entries[b];
      return x.value != y.value ? x.value < y.value : x.context < y.context;
    });
    std::map<std::pair<uint32_t, ValueId>, bool> known;
    const auto has = [&](uint32_t context, ValueId v) {
      auto it = known.find({context, v});
      return it != known.end() && it->second;
    };
    for (uint32_t i : order) {
      const Entry& entry = kernel.entries[i];
      bool can = entry.readable || (entry.hoisted && has(0, entry.value));
      for (const Inline& way : entry.inlines) {
        const Definition& d = table_.values[entry.value].definitions[way.definition];
        bool all = true;
        if (!IsContraction(d.op)) {
          const uint32_t context = way.pass >= 0 ? static_cast<uint32_t>(way.pass) : entry.context;
          const size_t first = d.op == Op::kGather ? 1 : 0;  // the table is in memory
          for (size_t in = first; in < d.inputs.size(); ++in) all &= has(context, d.inputs[in]);
        }
        can |= all;
      }
      known[{entry.context, entry.value}] = can;
    }
    return std::all_of(kernel.roots.begin(), kernel.roots.end(),
                       [&](ValueId root) { return has(0, root); });
  }

  // The new values, where kernels of the group's own can store them: each is computed (moving one
  // state into another is a copy), and none is that of two members.
  std::vector<ValueId> RootsOf(const UpdateGroup& group) const {
    std::vector<ValueId> roots;
    for (const UpdateMember& member : group.members) {
      const bool twice = std::find(roots.begin(), roots.end(), member.new_value) != roots.end();
      if (twice || table_.values[member.new_value].input >= 0) return {};
      roots.push_back(member.new_value);
    }
    return roots;
  }

  // Makes the update kernels of each group and puts groups that read a state before the group that
  // overwrites it. Groups that read one another are not done in place.
  void OrderGroups() {
    const size_t n = set_.groups.size();
    const size_t ordinary = set_.kernels.size();
    std::vector<std::pair<size_t, size_t>> ranges(n);
    for (size_t g = 0; g < n && options_.fuse; ++g) {
      const std::vector<ValueId> roots = RootsOf(set_.groups[g]);
      if (roots.empty() || table_.values[roots.front()].shape.size() != 1) continue;
      auto loop = analyser_.Analyse(KernelKind::kUpdate, roots, -1);
      if (!loop) continue;
      loop->group = static_cast<int32_t>(g);
      if (auto sum = DescribeColumnSum(table_, *loop)) column_sums_.push_back(*std::move(sum));
    }
    for (size_t g = 0; g < n; ++g) {
      const std::vector<ValueId> roots = RootsOf(set_.groups[g]);
      const size_t first = set_.kernels.size();
      if (!roots.empty()) AddKernels(roots, static_cast<int32_t>(g));
      ranges[g] = {first, set_.kernels.size()};
      set_.groups[g].in_place = set_.kernels.size() > first;
    }
    // before[a][b]: kernels of group a may read old state of group b.
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
    std::map<ValueId, std::vector<size_t>> groups_of;  // by old state
    for (size_t b = 0; b < n; ++b) {
      for (const UpdateMember& member : set_.groups[b].members) {
        if (member.old_value >= 0) groups_of[member.old_value].push_back(b);
      }
    }
    for (size_t a = 0; a < n; ++a) {
      const auto read = [&](ValueId v) {
        const auto it = groups_of.find(v);
        if (it == groups_of.end()) return;
        for (size_t b : it->second) before[a][b] = before[a][b] || a != b;
      };
      for (size_t k = ranges[a].first; k < ranges[a].second; ++k) {
        for (ValueId table : set_.kernels[k].tables) read(table);
        for (const Entry& entry : set_.kernels[k].entries) {
          if (entry.readable) read(entry.value);
        }
      }
    }
    // A side update overwrites before the group's own would: only where no third group reads it.
    for (size_t a = 0; a < n; ++a) {
      for (size_t k = ranges[a].first; k < ranges[a].second; ++k) {
        std::erase_if(set_.kernels[k].sides, [&](const SideUpdate& side) {
          const auto h = static_cast<size_t>(side.group);
          for (size_t other = 0; other < n; ++other) {
            if (other != a && other != h && before[other][h]) return true;
          }
          return before[h][a] || !set_.groups[h].in_place;
        });
      }
    }
    std::vector<bool> placed(n);
    std::vector<size_t> order;
    for (size_t g = 0; g < n; ++g) placed[g] = !set_.groups[g].in_place;
    // Kernels of group a do without old state of group b, where they can.
    auto renounce = [&](size_t a, size_t b) {
      std::vector<Candidate> left;
      for (size_t k = ranges[a].first; k < ranges[a].second; ++k) {
        Candidate kernel = set_.kernels[k];
        bool gathers = false;
        for (const UpdateMember& member : set_.groups[b].members) {
          gathers |= Gathers(kernel, member.old_value);
        }
        if (gathers) continue;
        for (Entry& entry : kernel.entries) {
          for (const UpdateMember& member : set_.groups[b].members) {
            if (entry.value == member.old_value) entry.readable = false;
          }
        }
        if (CanCompute(kernel)) left.push_back(std::move(kernel));
      }
      if (left.empty()) return false;
      for (size_t k = 0; k < left.size(); ++k) {
        set_.kernels[ranges[a].first + k] = std::move(left[k]);
      }
      ranges[a].second = ranges[a].first + left.size();
      before[a][b] = false;
      return true;
    };
    while (true) {
      size_t pick = n;
      size_t first_left = n;
      for (size_t g = 0; g < n && pick == n; ++g) {
        if (placed[g]) continue;
        if (first_left == n) first_left = g;
        bool free = true;
        for (size_t other = 0; other < n; ++other) {
          if (!placed[other] && before[other][g]) free = false;
        }
        if (free) pick = g;
      }
      if (pick == n && first_left == n) break;
      if (pick == n) {
        bool freed = true;
        for (size_t other = 0; other < n && freed; ++other) {
          if (!placed[other] && before[other][first_left]) freed = renounce(other, first_left);
        }
        if (freed) continue;
        placed[first_left] = true;
        set_.groups[first_left].in_place = false;
        continue;
      }
      placed[pick] = true;
      order.push_back(pick);
    }
    std::vector<Candidate> kernels;
    for (size_t k = 0; k < ordinary; ++k) kernels.push_back(std::move(set_.kernels[k]));
    for (size_t g : order) {
      for (size_t k = ranges[g].first; k < ranges[g].second; ++k) {
        kernels.push_back(std::move(set_.kernels[k]));
      }
    }
    set_.kernels = std::move(kernels);
  }

  const Step& step_;
  const ValueTable& table_;
  const std::vector<bool>& stored_;
  const CandidateOptions& options_;
  Analyser analyser_;
  CandidateSet set_;
  std::vector<WalkPart> parts_;
  std::vector<ColumnSum> column_sums_;
  uint64_t rows_ = 0;  // of set_.kernels
};

}  // namespace

CandidateSet FindCandidates(const Step& step, const ValueTable& table,
                            const std::vector<bool>& stored, const CandidateOptions& options) {
  return CandidateFinder(step, table, stored, options).Run();
}

}  // namespace l3c::l0::lower
