// Walks from a candidate's roots to the operands: what a kernel could compute in registers, where
// the elements lie that it needs, and how often it would compute them (candidates.h has the idea).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/sum_groups.h"

namespace l3c::l0::lower {

class Analyser {
 public:
  Analyser(const ValueTable& table, const std::vector<bool>& stored,
           const CandidateOptions& options)
      : table_(table), stored_(stored), options_(options) {}

  // Nothing when the candidate cannot be: an anchor that is not met at one point of the space.
  std::optional<Candidate> Analyse(KernelKind kind, std::vector<ValueId> roots, ValueId anchor,
                                   std::vector<SideUpdate> sides = {});

  // The walk over the rows that `root` is the sum of, with what can be made of them besides.
  std::optional<Candidate> AnalyseSums(const WalkPart& root, std::vector<const WalkPart*> partners);

  // Matmuls that the last analysis met at every point of the root's space exactly once.
  const std::vector<ValueId>& anchors_met() const { return anchors_met_; }
  uint64_t pruned() const { return pruned_; }

 private:
  static constexpr int kMaxSplits = 8;

  std::optional<Candidate> Walked(KernelKind kind, std::vector<ValueId> roots, ValueId anchor);

  struct Origin {
    ValueId reduction = -1;   // -1: the root's shape
    uint32_t definition = 0;  // of the reduction: each has axes of its own
    uint32_t dim = 0;
    uint32_t digit = 0;
  };
  struct Item {
    uint32_t context;
    ValueId value;
    IndexMap map;
  };

  void Start(KernelKind kind, const std::vector<ValueId>& roots, ValueId anchor);

  // The space of a scatter is that of what is added: (index [k…], updates [k…, …]).
  bool StartScatter(KernelKind kind, ValueId root);

  // The space is that of what is added up, the same points for all.
  void StartSums();

  bool HasAdded(ValueId v) const { return candidate_.FindAdded(v) != nullptr; }

  // A kernel of the user's loads its operands and stores its value, and does nothing else.
  bool StartOwn(KernelKind kind, const std::vector<ValueId>& roots);

  // One axis (or its digits) for each dimension; the map that reads them as an index.
  IndexMap NewAxes(ValueId reduction, uint32_t definition, const tensor::Shape& dims);

  // What is computed from the anchor, among the values up to the roots: operands have smaller
  // numbers than what is computed from them, so no others are met.
  void FindDependents(const std::vector<ValueId>& roots, ValueId anchor);
  bool IsDependent(ValueId v) const;

  bool IsRoot(ValueId v) const;

  // In rings around the roots. Where the bound on a kernel's size cuts, the kernel's own context
  // comes before its passes: what a pass lacks it leaves to others, but the root needs its
  // operands.
  void Walk();
  void Push(Item item);
  uint64_t BoundAxes(uint32_t context) const;
  void Meet(const Item& item);
  void Compute(const Item& item, uint32_t index, bool first);
  bool Readable(ValueId v) const;
  void Define(const Item& item, uint32_t index, uint32_t d, bool first);

  // An entry is computed for all of its maps or for none: one that the definition cannot serve is
  // enough.
  void Bar(uint32_t index, uint32_t definition);

  // A register tile has as many lanes as its widest value leaves room for: f64 arithmetic on the
  // side (a learning rate) would halve those of a contraction.
  bool TooWide(ValueId v, const Definition& definition) const;

  // Has the axes cut so that the item's dimensions are known the next time.
  void Need(const Item& item);

  // Whether a figure a column, such as what a side update needs, is at `map`.
  bool IsOfColumns(const IndexMap& map) const;

  template <typename AddInline>
  void Reduce(const Item& item, uint32_t d, AddInline&& inlines);

  void Split(const SplitRequest& request);

  // Of the point set of `axes` in a context, walked in order: everything inside the innermost axis
  // that matters is hoisted out.
  double Points(uint32_t context_index, uint64_t axes) const;
  void CountPoints();
  uint64_t ComputedAxes(const Entry& entry) const;

  static constexpr size_t kMaxAxes = 30;
  static constexpr double kBlocksOfAKernel = 8;

  const ValueTable& table_;
  const std::vector<bool>& stored_;
  const CandidateOptions& options_;
  Candidate candidate_;
  std::map<std::tuple<ValueId, uint32_t, uint32_t>, std::vector<int64_t>> splits_;
  std::vector<Origin> origins_;  // by axis
  std::deque<Item> queue_;
  std::deque<Item> later_;  // of passes, when the kernel's own context goes first
  std::vector<ValueId> anchors_met_;
  std::vector<SideUpdate> sides_;                   // kUpdateAnchor
  uint64_t columns_ = 0;                            // the axes of the root's last dimension
  std::vector<const WalkPart*> partners_;           // kSums: the root and what may be made with it
  std::set<std::pair<uint32_t, uint32_t>> barred_;  // (entry, definition): cannot be computed there
  ValueId first_dependent_ = 0;                     // of the anchor
  std::vector<bool> dependent_;                     // from it on
  bool restart_ = false;
  bool failed_ = false;
  bool last_attempt_ = false;
  bool own_first_ = false;
  bool full_ = false;  // the bound on a kernel's size was met
  uint64_t pruned_ = 0;
};

}  // namespace l3c::l0::lower
